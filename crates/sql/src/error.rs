//! DataFusion's and the parser's errors in Tessera's words.

use datafusion_common::{DataFusionError, SchemaError};
use sqlparser::parser::ParserError;
use tessera_types::{Code, Error, Span, SqlState};

use crate::parse::SQL_DEPTH_MAX;
use crate::signature;

/// A failure of the planner, with its place where the planner kept one.
pub(crate) fn from_datafusion(error: DataFusionError) -> Error {
    let span = error.iter().find_map(place);
    let root = error.find_root();
    let of_arguments = match root {
        DataFusionError::Internal(text) | DataFusionError::Plan(text) | DataFusionError::Execution(text) => {
            signature::message(&clean(text))
        }
        _ => None,
    };
    let mapped = match root {
        _ if let Some(message) = of_arguments => {
            Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
        }
        DataFusionError::SQL(parser, _) => from_parser(parser),
        DataFusionError::External(source) => match source.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => Error::semantic(source.to_string()),
        },
        DataFusionError::NotImplemented(text) => Error::unsupported(clean(text)),
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) => {
            Error::semantic(clean(text)).with_state(state_of_plan(text))
        }
        DataFusionError::SchemaError(schema, _) => {
            Error::semantic(schema_message(schema)).with_state(state_of_schema(schema))
        }
        DataFusionError::ArrowError(arrow, _) => {
            let text = arrow.to_string();
            if text.contains("verflow") { Error::new(Code::Overflow, text) } else { Error::data(text) }
        }
        DataFusionError::Execution(text) => Error::data(clean(text)),
        DataFusionError::Internal(text) => Error::internal(clean(text)),
        other => Error::semantic(clean(&other.message())),
    };
    match span {
        Some(span) => mapped.at(span),
        None => mapped,
    }
}

/// Whether the planner fails because it gives two columns one name, which SQL allows.
pub(crate) fn names_clash(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::Plan(text) => text.contains("require unique expression names"),
        DataFusionError::SchemaError(schema, _) => !matches!(**schema, SchemaError::FieldNotFound { .. }),
        _ => false,
    }
}

/// One of our errors on its way through DataFusion's planner.
pub(crate) fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A failure of the parser; it writes the place into its message, from where it is taken.
pub(crate) fn from_parser(error: &ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::new(
            Code::Limit,
            format!(
                "the statement is nested deeper than {SQL_DEPTH_MAX} levels (SQL_DEPTH_MAX); write it with fewer \
                 parentheses or subqueries"
            ),
        )
        .with_state(SqlState::STATEMENT_TOO_COMPLEX),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            let (message, span) = split_place(text);
            let error = Error::new(Code::Syntax, message);
            match span {
                Some(span) => error.at(span),
                None => error,
            }
        }
    }
}

/// `message at Line: 1, Column: 8` → message and place.
fn split_place(text: &str) -> (&str, Option<Span>) {
    let Some(at) = text.rfind(" at Line: ") else { return (text, None) };
    let mut numbers = text[at + " at Line: ".len()..].split(", Column: ");
    let mut number = || numbers.next().and_then(|digits| digits.trim().parse::<u32>().ok());
    match (number(), number()) {
        (Some(line), Some(column)) if line > 0 => (&text[..at], Some(Span { line, column })),
        _ => (&text[..at], None),
    }
}

/// The text without advice that is DataFusion's own.
fn clean(text: &str) -> String {
    let text = text.split("\n\nbacktrace:").next().unwrap_or(text);
    let text = text
        .split("This issue was likely caused by a bug in DataFusion")
        .next()
        .unwrap_or(text)
        .trim_end_matches(['\n', '.', ' ']);
    text.strip_prefix("Error during planning: ").unwrap_or(text).to_string()
}

/// Words of the planner's messages, and the state that PostgreSQL gives for what they complain of.
const STATES: [(&str, SqlState); 30] = [
    ("must be part of", SqlState::GROUPING_ERROR),
    ("must be in GROUP BY", SqlState::GROUPING_ERROR),
    ("GROUP BY clause", SqlState::GROUPING_ERROR),
    ("to grouping function is not in grouping columns", SqlState::GROUPING_ERROR),
    ("ggregate function calls cannot be nested", SqlState::GROUPING_ERROR),
    ("ggregate functions are not allowed", SqlState::GROUPING_ERROR),
    ("in SELECT clause. Valid columns", SqlState::INVALID_COLUMN_REFERENCE),
    ("Order by column out of bounds", SqlState::INVALID_COLUMN_REFERENCE),
    ("Order by index starts at 1", SqlState::INVALID_COLUMN_REFERENCE),
    ("must appear in select list", SqlState::INVALID_COLUMN_REFERENCE),
    ("must match initial ORDER BY", SqlState::INVALID_COLUMN_REFERENCE),
    ("names given as column alias", SqlState::INVALID_COLUMN_REFERENCE),
    ("different number of columns", SqlState::SYNTAX_ERROR),
    ("Too many columns", SqlState::SYNTAX_ERROR),
    ("Inconsistent data length", SqlState::SYNTAX_ERROR),
    ("specified more than once", SqlState::DUPLICATE_ALIAS),
    ("Invalid function", SqlState::UNDEFINED_FUNCTION),
    ("is not there for bytes", SqlState::UNDEFINED_FUNCTION),
    ("LIKE of bytes", SqlState::UNDEFINED_FUNCTION),
    ("No function matches", SqlState::UNDEFINED_FUNCTION),
    ("Unary operator '-'", SqlState::UNDEFINED_FUNCTION),
    ("logical boolean operation", SqlState::DATATYPE_MISMATCH),
    ("Cannot infer common argument type", SqlState::UNDEFINED_FUNCTION),
    ("Cannot coerce", SqlState::DATATYPE_MISMATCH),
    ("must be boolean", SqlState::DATATYPE_MISMATCH),
    ("requires a boolean expression", SqlState::DATATYPE_MISMATCH),
    ("non-boolean predicate", SqlState::DATATYPE_MISMATCH),
    ("Incompatible inputs for Union", SqlState::DATATYPE_MISMATCH),
    ("Expected LIMIT to be an integer", SqlState::INVALID_TEXT_REPRESENTATION),
    ("Percentile value must be", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
];

fn state_of_plan(text: &str) -> SqlState {
    let known = STATES.iter().find(|(words, _)| text.contains(words));
    known.map_or(Code::Semantic.sql_state(), |(_, state)| *state)
}

fn state_of_schema(error: &SchemaError) -> SqlState {
    match error {
        // A column of a table that FROM does not have.
        SchemaError::FieldNotFound { field, valid_fields }
            if field.relation.as_ref().is_some_and(|table| {
                valid_fields.iter().all(|known| known.relation.as_ref() != Some(table))
            }) =>
        {
            SqlState::UNDEFINED_TABLE
        }
        SchemaError::FieldNotFound { .. } => SqlState::UNDEFINED_COLUMN,
        SchemaError::AmbiguousReference { .. } => SqlState::AMBIGUOUS_COLUMN,
        SchemaError::DuplicateQualifiedField { .. } => SqlState::DUPLICATE_ALIAS,
        SchemaError::DuplicateUnqualifiedField { .. } => SqlState::AMBIGUOUS_COLUMN,
    }
}

fn schema_message(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut names: Vec<String> =
                valid_fields.iter().take(20).map(|column| column.flat_name()).collect();
            if valid_fields.len() > names.len() {
                names.push("…".to_string());
            }
            if names.is_empty() {
                format!("there is no column {}", field.flat_name())
            } else {
                format!("there is no column {}; there are {}", field.flat_name(), names.join(", "))
            }
        }
        SchemaError::AmbiguousReference { field } => {
            format!("column {} is ambiguous; write it as table.column", field.flat_name())
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            format!("column {qualifier}.{name} stands twice; give one of them another name with AS")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            format!(
                "column {name} stands twice (a cast is called like what is cast); compute one of them in a subquery, with a \
                 name of its own"
            )
        }
    }
}

fn place(error: &DataFusionError) -> Option<Span> {
    let DataFusionError::Diagnostic(diagnostic, _) = error else { return None };
    let start = diagnostic.span?.start;
    (start.line > 0).then_some(Span { line: start.line as u32, column: start.column as u32 })
}
