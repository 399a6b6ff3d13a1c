//! `CREATE TABLE … AS` with names of columns.

use sqlparser::ast::{Ident, ObjectName, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// `CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (columns) AS query`, with columns that
/// have no types.
#[derive(Debug, Clone)]
pub struct NamedColumns {
    /// The name.
    pub name: ObjectName,
    /// The names of the first columns.
    pub columns: Vec<Ident>,
    /// The query that provides the rows.
    pub query: Box<Query>,
    /// Whether the table belongs to the session only.
    pub temporary: bool,
    /// Whether to do nothing if the table exists.
    pub if_not_exists: bool,
    /// Whether to replace an existing table.
    pub or_replace: bool,
}

/// Parses the statement if it starts at the parser's position.
pub(crate) fn parse(
    parser: &mut Parser<'_>,
) -> std::result::Result<Option<NamedColumns>, ParserError> {
    use Keyword::{AS, CREATE, EXISTS, IF, NOT, OR, REPLACE, TABLE, TEMP, TEMPORARY};
    if !parser.peek_keyword(CREATE) {
        return Ok(None);
    }
    let head = parser.maybe_parse(|parser| {
        parser.expect_keyword(CREATE)?;
        let or_replace = parser.parse_keywords(&[OR, REPLACE]);
        let temporary = parser.parse_one_of_keywords(&[TEMP, TEMPORARY]).is_some();
        parser.expect_keyword(TABLE)?;
        let if_not_exists = parser.parse_keywords(&[IF, NOT, EXISTS]);
        let name = parser.parse_object_name(false)?;
        parser.expect_token(&Token::LParen)?;
        let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword(AS)?;
        Ok((or_replace, temporary, if_not_exists, name, columns))
    })?;
    let Some((or_replace, temporary, if_not_exists, name, columns)) = head else { return Ok(None) };
    let query = parser.parse_query()?;
    Ok(Some(NamedColumns { name, columns, query, temporary, if_not_exists, or_replace }))
}
