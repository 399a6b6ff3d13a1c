//! Macros: `CREATE MACRO` and DuckDB's `CREATE FUNCTION`, and how they are dropped.

use sqlparser::ast::{ColumnDef, DataType, Expr as Ast, Ident, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::names::normalized;
use crate::statement::StatementKind;

/// `CREATE MACRO`, or `CREATE FUNCTION … LANGUAGE sql`.
#[derive(Debug, Clone)]
pub struct CreateMacro {
    /// The name.
    pub name: String,
    /// A macro for each number of arguments.
    pub overloads: Vec<Macro>,
    /// Whether to replace an existing one.
    pub or_replace: bool,
    /// Whether to do nothing if one exists.
    pub if_not_exists: bool,
    /// Whether it is a function of SQL, whose arguments and result have types.
    pub is_function: bool,
}

/// A macro, or a function in SQL.
#[derive(Debug, Clone)]
pub struct Macro {
    /// The parameters.
    pub parameters: Vec<MacroParameter>,
    /// What it stands for.
    pub body: MacroBody,
    /// The type of the value.
    pub result: Option<DataType>,
    /// The columns of `RETURNS TABLE`.
    pub columns: Vec<ColumnDef>,
    /// Whether the value is NULL where an argument is.
    pub is_strict: bool,
}

/// A parameter of a macro.
#[derive(Debug, Clone)]
pub struct MacroParameter {
    /// The name; `None` if it can be read as `$1` only.
    pub name: Option<String>,
    /// The value where the call has no argument for it.
    pub default: Option<Ast>,
    /// The declared type.
    pub data_type: Option<DataType>,
}

/// What a macro stands for.
#[derive(Debug, Clone)]
pub enum MacroBody {
    /// A value.
    Value(Box<Ast>),
    /// Rows of FROM.
    Table(Box<Query>),
}

/// `DROP MACRO [TABLE] [IF EXISTS] name`.
#[derive(Debug, Clone)]
pub struct DropMacro {
    /// The name.
    pub name: Ident,
    /// Whether to ignore an unknown name.
    pub if_exists: bool,
}

/// The first words of `CREATE MACRO`.
struct Head {
    name: Ident,
    parameters: Vec<MacroParameter>,
    or_replace: bool,
    if_not_exists: bool,
}

type ParseResult<T> = std::result::Result<T, ParserError>;

/// Parses `CREATE [OR REPLACE] [TEMP] MACRO` (or DuckDB's `FUNCTION`) or `DROP MACRO` if one starts
/// at the parser's position.
pub(crate) fn parse(parser: &mut Parser<'_>) -> ParseResult<Option<StatementKind>> {
    use Keyword::{CREATE, DROP, EXISTS, FUNCTION, IF, MACRO, OR, REPLACE, TABLE, TEMP, TEMPORARY};
    if parser.parse_keywords(&[DROP, MACRO]) {
        let _ = parser.parse_keyword(TABLE);
        let if_exists = parser.parse_keywords(&[IF, EXISTS]);
        let name = parser.parse_identifier()?;
        return Ok(Some(StatementKind::DropMacro(DropMacro { name, if_exists })));
    }
    if parser.parse_keywords(&[DROP, FUNCTION, TABLE]) {
        let if_exists = parser.parse_keywords(&[IF, EXISTS]);
        let name = parser.parse_identifier()?;
        return Ok(Some(StatementKind::DropMacro(DropMacro { name, if_exists })));
    }
    if !parser.peek_keyword(CREATE) {
        return Ok(None);
    }
    // The words between CREATE and the kind of the object.
    const BETWEEN: [Keyword; 4] = [OR, REPLACE, TEMP, TEMPORARY];
    let mut words = (1..).map(|at| match parser.peek_nth_token(at).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    });
    let kind = words.find(|word| !BETWEEN.contains(word));
    let created = match kind {
        Some(MACRO) => head(parser, MACRO)?,
        // The forms of PostgreSQL have types, or a text as body.
        Some(FUNCTION) => match parser.maybe_parse(|parser| head(parser, FUNCTION))? {
            Some(head) => head,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Head { name, parameters, or_replace, if_not_exists } = created;
    let mut overloads = vec![overload(parser, parameters)?];
    while parser.consume_token(&Token::Comma) {
        let parameters = parameter_list(parser)?;
        parser.expect_keyword(Keyword::AS)?;
        overloads.push(overload(parser, parameters)?);
    }
    Ok(Some(StatementKind::CreateMacro(Box::new(CreateMacro {
        name: normalized(&name),
        overloads,
        or_replace,
        if_not_exists,
        is_function: false,
    }))))
}

/// Parses everything before the body of the first overload.
fn head(parser: &mut Parser<'_>, kind: Keyword) -> ParseResult<Head> {
    use Keyword::{AS, CREATE, EXISTS, IF, NOT, OR, REPLACE, TEMP, TEMPORARY};
    parser.expect_keyword(CREATE)?;
    let or_replace = parser.parse_keywords(&[OR, REPLACE]);
    let _ = parser.parse_one_of_keywords(&[TEMP, TEMPORARY]);
    parser.expect_keyword(kind)?;
    let if_not_exists = parser.parse_keywords(&[IF, NOT, EXISTS]);
    let name = parser.parse_identifier()?;
    let parameters = parameter_list(parser)?;
    parser.expect_keyword(AS)?;
    let token = parser.peek_token();
    let is_text = matches!(
        token.token,
        Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
    );
    if kind == Keyword::FUNCTION && is_text {
        return parser.expected("an expression", token);
    }
    Ok(Head { name, parameters, or_replace, if_not_exists })
}

/// Parses `(name [type] [:= default], …)`.
fn parameter_list(parser: &mut Parser<'_>) -> ParseResult<Vec<MacroParameter>> {
    parser.expect_token(&Token::LParen)?;
    if parser.consume_token(&Token::RParen) {
        return Ok(Vec::new());
    }
    let parameters = parser.parse_comma_separated(|parser| {
        let name = parser.parse_identifier()?;
        let ends = matches!(
            parser.peek_token_ref().token,
            Token::Comma | Token::RParen | Token::Assignment | Token::Eq
        ) || parser.peek_keyword(Keyword::DEFAULT);
        let data_type = (!ends).then(|| parser.parse_data_type()).transpose()?;
        let has_default = parser.consume_token(&Token::Assignment)
            || parser.consume_token(&Token::Eq)
            || parser.parse_keyword(Keyword::DEFAULT);
        let default = has_default.then(|| parser.parse_expr()).transpose()?;
        Ok(MacroParameter { name: Some(normalized(&name)), default, data_type })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(parameters)
}

fn overload(parser: &mut Parser<'_>, parameters: Vec<MacroParameter>) -> ParseResult<Macro> {
    let body = match parser.parse_keyword(Keyword::TABLE) {
        true => MacroBody::Table(parser.parse_query()?),
        false => MacroBody::Value(Box::new(parser.parse_expr()?)),
    };
    Ok(Macro { parameters, body, result: None, columns: Vec::new(), is_strict: false })
}
