//! Splits SQL text into statements and parses each.

use sqlparser::ast::{
    DescribeSubject, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, Statement as Parsed,
    Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tessera_types::{Code, Error, Result, Span, suggest};

use crate::dialect::Tessera;
use crate::effort::bounded;
use crate::error::from_parser;
use crate::statement::{ExplainFormat, ExplainOptions, ParsedStatement, StatementKind};
use crate::{external_table, macro_definition, named_columns, prepare, type_definition};

/// The path that stands for standard output.
pub const STANDARD_OUTPUT: &str = "/dev/stdout";

/// The maximum nesting depth of parentheses, subqueries and other constructs.
pub const SQL_DEPTH_MAX: usize = 2_000;

/// Parses SQL text into statements, which semicolons separate.
///
/// # Errors
/// The text is not valid SQL (the error has its position), or is nested deeper than
/// [`SQL_DEPTH_MAX`].
pub fn parse(sql: &str) -> Result<Vec<ParsedStatement>> {
    statements(sql).map_err(|error| match error.span() {
        // The parser reports no position for the end of the text.
        None | Some(Span { line: 0, .. })
            if error.code() == Code::Syntax && is_at_end(error.message()) =>
        {
            error.at(end_of(sql))
        }
        _ => error,
    })
}

/// Whether a message says that the text ends too early.
fn is_at_end(message: &str) -> bool {
    message.contains("EOF") || message.contains("the end of the text")
}

/// Returns the position after the last character that is not a space.
fn end_of(sql: &str) -> Span {
    let text = sql.trim_end();
    let last_line = text.rsplit('\n').next().unwrap_or(text);
    Span {
        line: text.matches('\n').count() as u32 + 1,
        column: last_line.chars().count() as u32 + 1,
    }
}

fn statements(sql: &str) -> Result<Vec<ParsedStatement>> {
    let tokens = crate::long_lists::tokens(sql)?;
    bounded(tokens.len(), || statements_of(sql, tokens))
}

fn statements_of(sql: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<ParsedStatement>> {
    let is_parameter =
        |token: &TokenWithSpan| matches!(token.token, Token::Question | Token::Placeholder(_));
    let has_parameters = tokens.iter().any(is_parameter);
    let mut parser = Parser::new(&Tessera)
        .with_tokens_with_locations(tokens)
        .with_recursion_limit(SQL_DEPTH_MAX);
    let mut statements = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        let start = parser.peek_token();
        if start.token == Token::EOF {
            return Ok(statements);
        }
        let mut kind = statement(&mut parser)?;
        if has_parameters {
            crate::parameters::numbered(&mut kind)?;
        }
        let end = parser.peek_token();
        if !matches!(end.token, Token::SemiColon | Token::EOF) {
            return Err(unexpected("the end of the statement (;)", &parser));
        }
        let text =
            between(sql, start.span.start, (end.token != Token::EOF).then_some(end.span.start));
        statements.push(ParsedStatement { kind, text });
    }
}

/// Returns the text between two positions.
fn between(
    sql: &str,
    start: sqlparser::tokenizer::Location,
    end: Option<sqlparser::tokenizer::Location>,
) -> String {
    let offset = |place: sqlparser::tokenizer::Location| {
        let line_start: usize = sql
            .split_inclusive('\n')
            .take(place.line.saturating_sub(1) as usize)
            .map(str::len)
            .sum();
        let rest = sql.get(line_start..).unwrap_or("");
        let column = place.column.saturating_sub(1) as usize;
        line_start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
    };
    let (from, to) = (offset(start), end.map_or(sql.len(), offset));
    sql.get(from..to).unwrap_or(sql).trim().to_string()
}

fn statement(parser: &mut Parser<'_>) -> Result<StatementKind> {
    if parser.parse_keyword(Keyword::EXPLAIN) {
        let options = explain_options(parser)?;
        if parser.peek_keyword(Keyword::EXPLAIN) {
            return Err(unexpected("a query", parser));
        }
        let inner = Box::new(statement(parser)?);
        return Ok(StatementKind::Explain { options, inner });
    }
    if parser.parse_keyword(Keyword::COPY) {
        return copy(parser);
    }
    if parser.parse_keywords(&[Keyword::SHOW, Keyword::TABLES]) {
        return Ok(StatementKind::Tables);
    }
    if parser.parse_keywords(&[Keyword::SHOW, Keyword::TIME, Keyword::ZONE]) {
        let variable = vec![Ident::new("timezone")];
        return Ok(StatementKind::Sql(Box::new(Parsed::ShowVariable { variable })));
    }
    if let Some(kind) = prepare::parse(parser, statement)? {
        return Ok(kind);
    }
    if parser.peek_one_of_keywords(&[Keyword::DESCRIBE, Keyword::DESC]).is_some() {
        return parser.parse_query().map(description).map_err(|e| from_parser(&e));
    }
    if parser.parse_keywords(&[Keyword::SHOW, Keyword::ALL, Keyword::TABLES]) {
        return of_query(ALL_TABLES);
    }
    if parser.parse_keywords(&[Keyword::SHOW, Keyword::FUNCTIONS]) {
        return of_query(ALL_FUNCTIONS);
    }
    // Beside `SHOW (query)`, SHOW has the name of a setting.
    if parser.peek_keyword(Keyword::SHOW) && parser.peek_nth_token(1).token != Token::LParen {
        parser.next_token();
        let shown = parser.parse_show().map_err(|e| from_parser(&e))?;
        return Ok(StatementKind::Sql(Box::new(shown)));
    }
    if parser.parse_keyword(Keyword::RESET) {
        return reset(parser);
    }
    if let Some(create) = external_table::parse(parser).map_err(|e| from_parser(&e))? {
        return Ok(StatementKind::CreateExternalTable(Box::new(create)));
    }
    if let Some(kind) = type_definition::parse(parser).map_err(|e| from_parser(&e))? {
        return Ok(kind);
    }
    if let Some(kind) = macro_definition::parse(parser).map_err(|e| from_parser(&e))? {
        return Ok(kind);
    }
    if let Some(create) = named_columns::parse(parser).map_err(|e| from_parser(&e))? {
        return Ok(StatementKind::CreateNamedColumns(Box::new(create)));
    }
    parser
        .parse_statement()
        .map(|parsed| StatementKind::Sql(Box::new(parsed)))
        .map_err(|e| from_parser(&e))
}

/// Returns the statement of a query that begins with DESCRIBE.
fn description(query: Box<Query>) -> StatementKind {
    let is_plain = query.order_by.is_none() && query.limit_clause.is_none();
    match &*query.body {
        SetExpr::Describe(describe) if is_plain => match &describe.subject {
            DescribeSubject::Name(name) => StatementKind::Describe(name.clone()),
            DescribeSubject::Query(query) => StatementKind::DescribeQuery(query.clone()),
            DescribeSubject::Tables => StatementKind::Tables,
        },
        _ => StatementKind::Sql(Box::new(Parsed::Query(query))),
    }
}

/// Parses `RESET name`, after `RESET`.
fn reset(parser: &mut Parser<'_>) -> Result<StatementKind> {
    let mut parts = Vec::new();
    loop {
        match parser.next_token().token {
            Token::Word(word) => parts.push(word.value.to_ascii_lowercase()),
            Token::SingleQuotedString(text) => parts.push(text.to_ascii_lowercase()),
            _ => {
                parser.prev_token();
                return Err(unexpected("the name of a setting", parser));
            }
        }
        if !parser.consume_token(&Token::Period) {
            return Ok(StatementKind::Reset(parts.join(".")));
        }
    }
}

/// The options of EXPLAIN.
const EXPLAIN_OPTIONS: [&str; 4] = ["analyze", "verbose", "platform", "format"];

fn explain_options(parser: &mut Parser<'_>) -> Result<ExplainOptions> {
    let mut options = ExplainOptions::default();
    if parser.peek_token().token == Token::LParen && option_follows(parser) {
        parser.next_token();
        for (name, value) in option_list(parser, "")? {
            let flag = || match value.to_ascii_lowercase().as_str() {
                "" | "true" | "on" | "1" => Ok(true),
                "false" | "off" | "0" => Ok(false),
                _ => Err(Error::new(
                    Code::Syntax,
                    format!("EXPLAIN option {name} must be true or false, not {value}"),
                )),
            };
            match name.as_str() {
                "analyze" => options.analyze = flag()?,
                "verbose" => options.verbose = flag()?,
                "platform" => options.platform = Some(value),
                "format" => options.format = explain_format(&value)?,
                _ => {
                    let hint = suggest(&name, "expected", &EXPLAIN_OPTIONS);
                    let message = format!("unknown option '{name}' of EXPLAIN{hint}");
                    return Err(Error::new(Code::Syntax, message));
                }
            }
        }
        return Ok(options);
    }
    options.analyze = parser.parse_keyword(Keyword::ANALYZE);
    options.verbose = parser.parse_keyword(Keyword::VERBOSE);
    Ok(options)
}

/// Returns whether the parenthesis after EXPLAIN opens options rather than a query.
fn option_follows(parser: &Parser<'_>) -> bool {
    match parser.peek_nth_token(1).token {
        Token::Word(word) => EXPLAIN_OPTIONS.contains(&word.value.to_ascii_lowercase().as_str()),
        _ => false,
    }
}

fn explain_format(name: &str) -> Result<ExplainFormat> {
    match name.to_ascii_lowercase().as_str() {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "html" => Ok(ExplainFormat::Html),
        _ => Err(Error::new(
            Code::Syntax,
            format!(
                "unknown format '{name}' of EXPLAIN{}",
                suggest(name, "expected", &["text", "json", "html"])
            ),
        )),
    }
}

/// Parses `name [value], … )`: names in lower case. `flag` stands for a missing value; the names of
/// a list `(a, b)` are separated by commas.
fn option_list(parser: &mut Parser<'_>, flag: &str) -> Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    loop {
        if parser.consume_token(&Token::RParen) {
            return Ok(options);
        }
        let name = match parser.next_token().token {
            Token::Word(word) => word.value.to_ascii_lowercase(),
            Token::SingleQuotedString(text) => text.to_ascii_lowercase(),
            other => {
                return Err(Error::new(
                    Code::Syntax,
                    format!("expected the name of an option, found {other}"),
                ));
            }
        };
        let _ = parser.consume_token(&Token::Eq);
        let value = match parser.peek_token().token {
            Token::Comma | Token::RParen => flag.to_string(),
            Token::LParen => {
                parser.next_token();
                let names = parser.parse_comma_separated(Parser::parse_identifier);
                let names = names.map_err(|e| from_parser(&e))?;
                parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
                names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
            }
            Token::Word(word) => {
                parser.next_token();
                word.value
            }
            _ => match parser.parse_value().map_err(|e| from_parser(&e))?.value {
                Value::SingleQuotedString(text) => text,
                other => other.to_string(),
            },
        };
        options.push((name, value));
        if !parser.consume_token(&Token::Comma) && parser.peek_token().token != Token::RParen {
            let token = parser.peek_token();
            let span =
                Span { line: token.span.start.line as u32, column: token.span.start.column as u32 };
            let message = format!("expected , or ) in a list of options, found {token}");
            return Err(Error::new(Code::Syntax, message).at(span));
        }
    }
}

/// Parses `COPY table | (query) TO 'path' | STDOUT [STORED AS format] [OPTIONS (…)] [[WITH] (…)]`,
/// after `COPY`.
fn copy(parser: &mut Parser<'_>) -> Result<StatementKind> {
    let query = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query().map_err(|e| from_parser(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
        query
    } else {
        table_query(&parser.parse_object_name(false).map_err(|e| from_parser(&e))?)?
    };
    parser.expect_keyword(Keyword::TO).map_err(|e| from_parser(&e))?;
    let is_output = parser.parse_keyword(Keyword::STDOUT);
    let path = match is_output {
        true => STANDARD_OUTPUT.to_string(),
        false => parser.parse_literal_string().map_err(|e| from_parser(&e))?,
    };
    let mut format = None;
    let mut options = Vec::new();
    loop {
        if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
            match parser.next_token().token {
                Token::Word(word) => format = Some(word.value.to_ascii_lowercase()),
                other => {
                    return Err(Error::new(
                        Code::Syntax,
                        format!("expected a file format, found {other}"),
                    ));
                }
            }
        } else if parser.parse_keyword(Keyword::OPTIONS) || parser.parse_keyword(Keyword::WITH) {
            parser.expect_token(&Token::LParen).map_err(|e| from_parser(&e))?;
            options.extend(option_list(parser, "true")?);
        } else if parser.consume_token(&Token::LParen) {
            options.extend(option_list(parser, "true")?);
        } else {
            break;
        }
    }
    if let Some(at) = options.iter().position(|(name, _)| name == "format") {
        format = Some(options.remove(at).1.to_ascii_lowercase());
    }
    Ok(StatementKind::Copy { query, path, format, options })
}

/// Parses the text of a view.
///
/// # Errors
/// The text is not valid SQL, or it is not one query.
pub fn query_of_view(text: &str) -> Result<Box<Query>> {
    let mut statements = parse(text)?;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(Error::semantic("the text of a view must be one query"));
    };
    if let StatementKind::Sql(parsed) = statement.kind
        && let Parsed::Query(query) = *parsed
    {
        return Ok(query);
    }
    Err(Error::semantic("the text of a view must be a query"))
}

/// Returns the query `SELECT * FROM name`.
///
/// # Errors
/// The name is nested too deep.
pub fn table_query(name: &ObjectName) -> Result<Box<Query>> {
    query(&format!("SELECT * FROM {name}"))
}

/// The query of `SHOW ALL TABLES`, with DuckDB's columns.
const ALL_TABLES: &str = "SELECT table_catalog AS database, table_schema AS schema, \
     t.table_name AS name, array_agg(column_name ORDER BY ordinal_position) AS column_names, \
     array_agg(data_type ORDER BY ordinal_position) AS column_types, \
     any_value(table_type = 'LOCAL TEMPORARY') AS temporary \
     FROM information_schema.tables AS t \
     LEFT JOIN information_schema.columns AS c USING (table_catalog, table_schema, table_name) \
     GROUP BY ALL ORDER BY name";

/// The query of `SHOW FUNCTIONS`.
const ALL_FUNCTIONS: &str = "SELECT function_name AS name, function_type AS kind, parameters \
     FROM duckdb_functions() ORDER BY name, parameters";

/// The statement of a generated query.
fn of_query(text: &str) -> Result<StatementKind> {
    Ok(StatementKind::Sql(Box::new(Parsed::Query(query(text)?))))
}

/// Parses generated text as a query.
///
/// # Errors
/// The text is not a query.
pub fn query(sql: &str) -> Result<Box<Query>> {
    let mut parser = Parser::new(&Tessera).try_with_sql(sql).map_err(|e| from_parser(&e))?;
    parser.parse_query().map_err(|e| from_parser(&e))
}

/// Builds the query `SELECT value`.
///
/// # Errors
/// None that a value can cause.
pub fn select(value: Expr) -> Result<Box<Query>> {
    let mut query = query("SELECT 1")?;
    match &mut *query.body {
        SetExpr::Select(select) => select.projection = vec![SelectItem::UnnamedExpr(value)],
        _ => return Err(Error::internal("SELECT 1 is no SELECT")),
    }
    Ok(query)
}

/// Parses generated text as an expression. Its parts have no place in a statement.
///
/// # Errors
/// The text is not an expression.
pub fn expression(sql: &str) -> std::result::Result<Expr, ParserError> {
    let tokens = Tokenizer::new(&Tessera, sql).tokenize()?;
    Parser::new(&Tessera).with_tokens(tokens).parse_expr()
}

fn unexpected(expected: &str, parser: &Parser<'_>) -> Error {
    let token = parser.peek_token();
    let span = Span { line: token.span.start.line as u32, column: token.span.start.column as u32 };
    Error::new(Code::Syntax, format!("syntax error: expected {expected}, found {token}")).at(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_reset_by_its_name() {
        let reset = |sql: &str| match parse(sql).map(|mut statements| statements.remove(0).kind) {
            Ok(StatementKind::Reset(name)) => Ok(name),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(reset("reset Threads;"), Ok("threads".to_string()));
        assert_eq!(reset("RESET \"a\".b"), Ok("a.b".to_string()));
        for sql in ["reset", "reset;", "reset a.", "reset a b", "reset 1"] {
            let error = parse(sql).unwrap_err();
            assert_eq!(error.code(), Code::Syntax, "{sql}: {error}");
        }
    }

    #[test]
    fn options_of_copy_are_flags_and_lists() {
        let sql = "copy t to 'x' (header, partition_by (a, \"B c\"), format csv, delimiter ';')";
        let mut statements = parse(sql).unwrap();
        let StatementKind::Copy { format, options, .. } = statements.remove(0).kind else {
            panic!("{sql}")
        };
        assert_eq!(format.as_deref(), Some("csv"));
        let wanted = [("header", "true"), ("partition_by", "a, \"B c\""), ("delimiter", ";")];
        let wanted = wanted.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(options, wanted);
    }

    #[test]
    fn describe_is_a_statement_and_a_query() {
        for (sql, is_name) in [("describe t", true), ("desc select 1", false)] {
            let kind = parse(sql).unwrap().remove(0).kind;
            assert_eq!(matches!(kind, StatementKind::Describe(_)), is_name, "{sql}");
            assert_eq!(matches!(kind, StatementKind::DescribeQuery(_)), !is_name, "{sql}");
        }
        let kind = parse("describe t limit 1").unwrap().remove(0).kind;
        assert!(matches!(kind, StatementKind::Sql(_)));
    }

    #[test]
    fn explain_of_explain_is_an_error_however_often() {
        let error = parse(&"explain ".repeat(100_000)).unwrap_err();
        assert_eq!(error.code(), Code::Syntax, "{error}");
    }
}
