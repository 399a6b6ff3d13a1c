//! Types of the user: `CREATE TYPE` and `DROP TYPE`.

use sqlparser::ast::{DataType, Ident, Query, StructBracketKind, StructField};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::names::normalized;
use crate::statement::StatementKind;

/// `CREATE [OR REPLACE] [TEMP] TYPE [IF NOT EXISTS] name AS …`.
#[derive(Debug, Clone)]
pub struct CreateType {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub body: TypeBody,
    /// Whether to replace an existing one.
    pub or_replace: bool,
    /// Whether to do nothing if one exists.
    pub if_not_exists: bool,
}

/// What a type of the user stands for.
#[derive(Debug, Clone)]
pub enum TypeBody {
    /// An enum with these labels.
    Labels(Vec<String>),
    /// An enum whose labels are the values of a query, in its order.
    LabelsOf(Box<Query>),
    /// Another type.
    Type(DataType),
}

/// `DROP TYPE [IF EXISTS] name, …`.
#[derive(Debug, Clone)]
pub struct DropTypes {
    /// The names.
    pub names: Vec<String>,
    /// Whether to ignore unknown names.
    pub if_exists: bool,
}

type ParseResult<T> = std::result::Result<T, ParserError>;

/// Parses `CREATE TYPE` or `DROP TYPE` if one starts at the parser's position.
pub(crate) fn parse(parser: &mut Parser<'_>) -> ParseResult<Option<StatementKind>> {
    use Keyword::{
        AS, CASCADE, CREATE, DROP, EXISTS, IF, NOT, OR, REPLACE, RESTRICT, TEMP, TEMPORARY, TYPE,
    };
    if parser.parse_keywords(&[DROP, TYPE]) {
        let if_exists = parser.parse_keywords(&[IF, EXISTS]);
        let names = parser.parse_comma_separated(|parser| parser.parse_identifier())?;
        // Nothing depends on a type: tables and views have its labels or its name.
        let _ = parser.parse_one_of_keywords(&[CASCADE, RESTRICT]);
        let names = names.iter().map(normalized).collect();
        return Ok(Some(StatementKind::DropTypes(DropTypes { names, if_exists })));
    }
    let is_create = parser.maybe_parse(|parser| {
        parser.expect_keyword(CREATE)?;
        let or_replace = parser.parse_keywords(&[OR, REPLACE]);
        let _ = parser.parse_one_of_keywords(&[TEMP, TEMPORARY]);
        parser.expect_keyword(TYPE)?;
        Ok(or_replace)
    })?;
    let Some(or_replace) = is_create else { return Ok(None) };
    let if_not_exists = parser.parse_keywords(&[IF, NOT, EXISTS]);
    let name = normalized(&parser.parse_identifier()?);
    parser.expect_keyword(AS)?;
    let body = body(parser)?;
    let create = CreateType { name, body, or_replace, if_not_exists };
    Ok(Some(StatementKind::CreateType(Box::new(create))))
}

fn body(parser: &mut Parser<'_>) -> ParseResult<TypeBody> {
    if !parser.parse_keyword(Keyword::ENUM) {
        return match parser.consume_token(&Token::LParen) {
            true => Ok(TypeBody::Type(composite(parser)?)),
            false => Ok(TypeBody::Type(parser.parse_data_type()?)),
        };
    }
    parser.expect_token(&Token::LParen)?;
    let is_query = [Keyword::SELECT, Keyword::WITH, Keyword::FROM, Keyword::VALUES]
        .into_iter()
        .any(|word| parser.peek_keyword(word));
    let body = match is_query {
        true => TypeBody::LabelsOf(parser.parse_query()?),
        false => TypeBody::Labels(parser.parse_comma_separated0(label, Token::RParen)?),
    };
    parser.expect_token(&Token::RParen)?;
    Ok(body)
}

fn label(parser: &mut Parser<'_>) -> ParseResult<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        _ => parser.expected("a label in single quotes", token),
    }
}

/// Parses the fields of PostgreSQL's composite types.
fn composite(parser: &mut Parser<'_>) -> ParseResult<DataType> {
    let fields = parser.parse_comma_separated0(
        |parser| {
            let name: Ident = parser.parse_identifier()?;
            let field_type = parser.parse_data_type()?;
            Ok(StructField { field_name: Some(name), field_type, options: None })
        },
        Token::RParen,
    )?;
    parser.expect_token(&Token::RParen)?;
    Ok(DataType::Struct(fields, StructBracketKind::Parentheses))
}
