//! Names in the form in which they are looked up.

use sqlparser::ast::Ident;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::dialect::Tessera;

/// Returns a name in the form used for lookups: lower case unless quoted.
pub fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Parses a list of names: `a, "B c"`. `None` for other texts.
pub fn parse_names(text: &str) -> Option<Vec<String>> {
    let mut parser = Parser::new(&Tessera).try_with_sql(text).ok()?;
    let names = parser.parse_comma_separated(Parser::parse_identifier).ok()?;
    let is_whole = parser.peek_token().token == Token::EOF;
    is_whole.then(|| names.iter().map(normalized).collect())
}
