//! `CREATE EXTERNAL TABLE`.

use sqlparser::ast::{ColumnDef, ColumnOptionDef, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

type ParseResult<T> = std::result::Result<T, ParserError>;

/// `CREATE [OR REPLACE] EXTERNAL TABLE [IF NOT EXISTS] name [(columns)] STORED AS format
/// [PARTITIONED BY (names)] [OPTIONS (name value, …)] LOCATION 'path'`; the clauses after the
/// columns may stand in any order.
#[derive(Debug, Clone)]
pub struct ExternalTable {
    /// The name.
    pub name: ObjectName,
    /// The declared columns.
    pub columns: Vec<ColumnDef>,
    /// The format as it is written.
    pub format: String,
    /// Paths or glob patterns.
    pub locations: Vec<String>,
    /// The partition columns.
    pub partitions: Vec<Ident>,
    /// Options by name, as they are written.
    pub options: Vec<(String, String)>,
    /// Whether to do nothing if the table exists.
    pub if_not_exists: bool,
    /// Whether to replace an existing table.
    pub or_replace: bool,
    /// Whether it has a clause that is parsed but not supported.
    pub has_unsupported: bool,
}

/// Parses the statement if it starts at the parser's position.
pub(crate) fn parse(parser: &mut Parser<'_>) -> ParseResult<Option<ExternalTable>> {
    use Keyword::{CREATE, EXTERNAL, OR, REPLACE, UNBOUNDED};
    if parser.parse_keywords(&[CREATE, EXTERNAL]) {
        table(parser, false, false).map(Some)
    } else if parser.parse_keywords(&[CREATE, OR, REPLACE, EXTERNAL]) {
        table(parser, true, false).map(Some)
    } else if parser.parse_keywords(&[CREATE, UNBOUNDED, EXTERNAL]) {
        table(parser, false, true).map(Some)
    } else if parser.parse_keywords(&[CREATE, OR, REPLACE, UNBOUNDED, EXTERNAL]) {
        table(parser, true, true).map(Some)
    } else {
        Ok(None)
    }
}

fn table(
    parser: &mut Parser<'_>,
    or_replace: bool,
    is_unbounded: bool,
) -> ParseResult<ExternalTable> {
    let is_temporary = parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]).is_some();
    parser.expect_keyword(Keyword::TABLE)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    if if_not_exists && or_replace {
        return error("'IF NOT EXISTS' cannot coexist with 'REPLACE'");
    }
    let name = parser.parse_object_name(true)?;
    let mut has_unsupported = is_unbounded || is_temporary;
    let mut columns = Vec::new();
    if parser.peek_token_ref().token == Token::LParen {
        for column in list(parser, "column definition", column)? {
            match column {
                Some(column) => columns.push(column),
                None => has_unsupported = true,
            }
        }
    }
    let mut clauses = Clauses::default();
    clauses.parse(parser)?;
    columns.extend(clauses.partition_columns);
    let missing =
        |clause: &str| format!("Missing {clause} clause in CREATE EXTERNAL TABLE statement");
    let Some(format) = clauses.format else { return error(missing("STORED AS")) };
    let Some(locations) = clauses.locations else { return error(missing("LOCATION")) };
    Ok(ExternalTable {
        name,
        columns,
        format,
        locations,
        partitions: clauses.partitions.unwrap_or_default(),
        options: clauses.options.unwrap_or_default(),
        if_not_exists,
        or_replace,
        has_unsupported: has_unsupported || clauses.is_ordered,
    })
}

/// The clauses after the columns.
#[derive(Default)]
struct Clauses {
    format: Option<String>,
    locations: Option<Vec<String>>,
    partitions: Option<Vec<Ident>>,
    /// The columns of PARTITIONED BY that have a type.
    partition_columns: Vec<ColumnDef>,
    options: Option<Vec<(String, String)>>,
    /// Whether WITH ORDER is present.
    is_ordered: bool,
}

impl Clauses {
    fn parse(&mut self, parser: &mut Parser<'_>) -> ParseResult<()> {
        loop {
            if parser.parse_keyword(Keyword::STORED) {
                parser.expect_keyword(Keyword::AS)?;
                let format = format(parser)?;
                set_once(&mut self.format, format, "STORED AS")?;
            } else if parser.parse_keyword(Keyword::LOCATION) {
                let locations = match parser.peek_token_ref().token {
                    Token::LParen => {
                        list(parser, "location definition", Parser::parse_literal_string)?
                    }
                    _ => vec![parser.parse_literal_string()?],
                };
                if locations.is_empty() {
                    return error("LOCATION requires at least one path");
                }
                set_once(&mut self.locations, locations, "LOCATION")?;
            } else if parser.parse_keyword(Keyword::PARTITIONED) {
                parser.expect_keyword(Keyword::BY)?;
                let (names, columns): (Vec<_>, Vec<_>) =
                    list(parser, "partition definition", partition)?.into_iter().unzip();
                self.partition_columns.extend(columns.into_iter().flatten());
                set_once(&mut self.partitions, names, "PARTITIONED BY")?;
            } else if parser.parse_keyword(Keyword::OPTIONS) {
                let options = list(parser, "option definition", option)?;
                set_once(&mut self.options, options, "OPTIONS")?;
            } else if parser.parse_keywords(&[Keyword::WITH, Keyword::ORDER]) {
                list(parser, "order definition", Parser::parse_order_by_expr)?;
                self.is_ordered = true;
            } else if matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
                return Ok(());
            } else {
                return parser.expected_ref("end of statement or ;", parser.peek_token_ref());
            }
        }
    }
}

fn error<T>(message: impl Into<String>) -> ParseResult<T> {
    Err(ParserError::ParserError(message.into()))
}

fn set_once<T>(clause: &mut Option<T>, value: T, name: &str) -> ParseResult<()> {
    match clause.replace(value) {
        Some(_) => error(format!("{name} specified more than once")),
        None => Ok(()),
    }
}

/// Parses `(item, …)`, with an optional trailing comma.
fn list<'a, T>(
    parser: &mut Parser<'a>,
    name: &str,
    item: impl Fn(&mut Parser<'a>) -> ParseResult<T>,
) -> ParseResult<Vec<T>> {
    parser.expect_token(&Token::LParen)?;
    let mut items = Vec::new();
    while !parser.consume_token(&Token::RParen) {
        items.push(item(parser)?);
        if !parser.consume_token(&Token::Comma) && parser.peek_token_ref().token != Token::RParen {
            return parser
                .expected_ref(&format!("',' or ')' after {name}"), parser.peek_token_ref());
        }
    }
    Ok(items)
}

/// Parses a column definition; returns `None` for a table constraint.
fn column(parser: &mut Parser<'_>) -> ParseResult<Option<ColumnDef>> {
    if parser.parse_optional_table_constraint()?.is_some() {
        return Ok(None);
    }
    match parser.peek_token_ref().token {
        Token::Word(_) => parser.parse_column_def().map(Some),
        _ => parser.expected_ref("column name or constraint definition", parser.peek_token_ref()),
    }
}

/// Parses a partition name, and its column if a type follows.
fn partition(parser: &mut Parser<'_>) -> ParseResult<(Ident, Option<ColumnDef>)> {
    let name = parser.parse_identifier()?;
    if matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
        return Ok((name, None));
    }
    let data_type = parser.parse_data_type()?;
    let mut options = Vec::new();
    while let Some(option) = parser.parse_optional_column_option()? {
        options.push(ColumnOptionDef { name: None, option });
    }
    Ok((name.clone(), Some(ColumnDef { name, data_type, options })))
}

fn format(parser: &mut Parser<'_>) -> ParseResult<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        _ => parser.expected("one of PARQUET, CSV, TSV, JSON or ARROW", token),
    }
}

/// Parses `name value`. A name may be a keyword or several words separated by periods.
fn option(parser: &mut Parser<'_>) -> ParseResult<(String, String)> {
    let token = parser.next_token();
    let mut name = match token.token {
        Token::Word(Word { value, .. }) => value,
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        _ => return parser.expected("key name", token),
    };
    while parser.consume_token(&Token::Period) {
        let token = parser.next_token();
        match token.token {
            Token::Word(word) => name = format!("{name}.{}", word.value),
            _ => return parser.expected("key name", token),
        }
    }
    let token = parser.next_token();
    let value = match token.token {
        Token::Word(Word { value, .. }) => value,
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::Number(number, _) => number,
        _ => return parser.expected("string or numeric value", token),
    };
    Ok((name, value))
}
