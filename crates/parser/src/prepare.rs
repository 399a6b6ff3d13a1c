//! PREPARE, EXECUTE and DEALLOCATE; SET VARIABLE and RESET VARIABLE.

use sqlparser::ast::{DataType, FunctionArg, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use tessera_types::{Error, Result};

use crate::error::from_parser;
use crate::statement::StatementKind;

/// `PREPARE name [(types)] AS statement`.
#[derive(Debug, Clone)]
pub struct Prepare {
    /// The name.
    pub name: Ident,
    /// The types of the first parameters.
    pub types: Vec<DataType>,
    /// The statement to prepare.
    pub statement: Box<StatementKind>,
}

/// `EXECUTE name [(values)]`.
#[derive(Debug, Clone)]
pub struct Execute {
    /// The name of the prepared statement.
    pub name: Ident,
    /// The values of its parameters.
    pub args: Vec<FunctionArg>,
}

type Statements = fn(&mut Parser<'_>) -> Result<StatementKind>;

/// Parses one of these statements if it starts at the parser's position; `statement` parses the
/// statement to prepare.
pub(crate) fn parse(
    parser: &mut Parser<'_>,
    statement: Statements,
) -> Result<Option<StatementKind>> {
    let word_at = |parser: &Parser<'_>, at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    };
    let is_variable = word_at(parser, 1).as_deref() == Some("variable");
    if parser.parse_keyword(Keyword::PREPARE) {
        return prepare(parser, statement).map(Some);
    }
    if parser.parse_keyword(Keyword::EXECUTE) {
        return execute(parser).map(Some);
    }
    if parser.parse_keyword(Keyword::DEALLOCATE) {
        let _ = parser.parse_keyword(Keyword::PREPARE);
        let name = match parser.parse_keyword(Keyword::ALL) {
            true => None,
            false => Some(parser.parse_identifier().map_err(|e| from_parser(&e))?),
        };
        return Ok(Some(StatementKind::Deallocate(name)));
    }
    if is_variable && parser.peek_keyword(Keyword::RESET) && word_at(parser, 2).is_some() {
        parser.next_token();
        parser.next_token();
        let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
        return Ok(Some(StatementKind::ResetVariable(name.value.to_lowercase())));
    }
    let assigns = || match parser.peek_nth_token(3).token {
        Token::Eq => true,
        Token::Word(word) => word.keyword == Keyword::TO,
        _ => false,
    };
    if is_variable && parser.peek_keyword(Keyword::SET) && word_at(parser, 2).is_some() && assigns()
    {
        parser.next_token();
        parser.next_token();
        let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
        parser.next_token();
        let value = Box::new(parser.parse_expr().map_err(|e| from_parser(&e))?);
        return Ok(Some(StatementKind::SetVariable { name: name.value.to_lowercase(), value }));
    }
    Ok(None)
}

fn prepare(parser: &mut Parser<'_>, statement: Statements) -> Result<StatementKind> {
    let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
    let mut types = Vec::new();
    if parser.consume_token(&Token::LParen) {
        types =
            parser.parse_comma_separated(Parser::parse_data_type).map_err(|e| from_parser(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
    }
    parser.expect_keyword(Keyword::AS).map_err(|e| from_parser(&e))?;
    let inner = match parser.peek_keyword(Keyword::PREPARE) {
        true => Err(Error::unsupported("PREPARE of PREPARE is not supported")),
        false => statement(parser),
    };
    Ok(StatementKind::Prepare(Prepare { name, types, statement: Box::new(inner?) }))
}

fn execute(parser: &mut Parser<'_>) -> Result<StatementKind> {
    let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
    let mut args = Vec::new();
    if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
        args = parser
            .parse_comma_separated(Parser::parse_function_args)
            .map_err(|e| from_parser(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
    }
    Ok(StatementKind::Execute(Execute { name, args }))
}
