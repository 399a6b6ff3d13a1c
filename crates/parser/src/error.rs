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

/// What the parser expects, as this program says it.
const EXPECTATIONS: [(&str, &str); 6] = [
    ("joined table", "a table, a subquery or a function"),
    ("literal int", "a whole number"),
    ("identifier", "a name"),
    ("date/time field", "a unit such as YEAR, MONTH or DAY"),
    (
        "an object type after CREATE",
        "TABLE, TEMP TABLE, EXTERNAL TABLE, VIEW or FUNCTION after CREATE",
    ),
    (
        "[NOT] NULL | TRUE | FALSE | DISTINCT | [form] NORMALIZED FROM after IS",
        "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS",
    ),
];

/// Rewrites `Expected: x, found: y` as `syntax error: expected x, found y`.
fn in_our_words(message: &str) -> String {
    if message.starts_with("Unexpected EOF while in a multi-line comment") {
        return "syntax error: a comment that begins with /* has no end".to_string();
    }
    let Some(rest) = message.strip_prefix("Expected").map(|rest| rest.trim_start_matches(':'))
    else {
        return format!("syntax error: {message}");
    };
    let rest = rest.trim_start();
    let (expected, found) = match rest.rsplit_once(", found: ") {
        Some((expected, found)) => (expected, Some(found)),
        None => (rest, None),
    };
    let known = EXPECTATIONS.iter().find(|(theirs, _)| *theirs == expected);
    let expected = match known {
        Some((_, ours)) => ours,
        // The parser lists many kinds of objects that do not exist here.
        None if expected.ends_with(" after DROP") => "TABLE, VIEW or FUNCTION after DROP",
        None => expected,
    };
    match found {
        Some("EOF") => format!("syntax error: expected {expected}, found the end of the text"),
        Some(found) => format!("syntax error: expected {expected}, found {found}"),
        None => format!("syntax error: expected {expected}"),
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

#[cfg(test)]
mod tests {
    use super::in_our_words;

    #[test]
    fn the_parsers_words_are_not_shown() {
        for (theirs, ours) in [
            ("Expected: ), found: EOF", "expected ), found the end of the text"),
            (
                "Expected: joined table, found: ;",
                "expected a table, a subquery or a function, found ;",
            ),
            ("Expected 'FROM' or ','", "expected 'FROM' or ','"),
            ("Expected an expression, found: from", "expected an expression, found from"),
            (
                "Expected: COLLATION, TABLE or USER after DROP, found: x",
                "expected TABLE, VIEW or FUNCTION after DROP, found x",
            ),
            (
                "Unexpected EOF while in a multi-line comment",
                "a comment that begins with /* has no end",
            ),
        ] {
            assert_eq!(in_our_words(theirs), format!("syntax error: {ours}"));
        }
    }
}
