//! Converts parser errors.

use sqlparser::parser::ParserError;
use tessera_types::{Code, Error, Span, SqlState};

use crate::parse::SQL_DEPTH_MAX;

/// Converts an error of the parser, which states the position in its message.
pub(crate) fn from_parser(error: &ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::new(
            Code::Limit,
            format!(
                "the statement is nested deeper than {SQL_DEPTH_MAX} levels (SQL_DEPTH_MAX); use fewer \
                 parentheses or subqueries"
            ),
        )
        .with_state(SqlState::STATEMENT_TOO_COMPLEX),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            let (message, span) = split_place(text);
            let error = Error::new(Code::Syntax, in_our_words(message));
            match span {
                Some(span) => error.at(span),
                None => error,
            }
        }
    }
}

/// Rewrites `Expected: x, found: y` as `syntax error: expected x, found y`.
fn in_our_words(message: &str) -> String {
    match message.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: ")) {
        Some((expected, found)) => format!("syntax error: expected {expected}, found {found}"),
        None => format!("syntax error: {message}"),
    }
}

/// Splits `message at Line: 1, Column: 8` into message and position.
fn split_place(text: &str) -> (&str, Option<Span>) {
    let Some(at) = text.rfind(" at Line: ") else { return (text, None) };
    let mut numbers = text[at + " at Line: ".len()..].split(", Column: ");
    let mut number = || numbers.next().and_then(|digits| digits.trim().parse::<u32>().ok());
    match (number(), number()) {
        (Some(line), Some(column)) if line > 0 => (&text[..at], Some(Span { line, column })),
        _ => (&text[..at], None),
    }
}
