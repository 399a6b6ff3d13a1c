//! Text formats of dates, times and numbers: the calendar, and the patterns of PostgreSQL's
//! `to_char`, `to_date`, `to_timestamp` and `to_number`.

#![forbid(unsafe_code)]

pub mod calendar;
mod date_time_fields;
mod date_time_format;
mod date_time_parse;
mod date_time_pattern;
pub mod names;
mod number_format;
mod number_parse;
mod number_pattern;

use tessera_types::{Error, SqlState};

pub use date_time_format::{DateTimeValue, format as format_date_time};
pub use date_time_parse::parse as parse_date_time;
pub use date_time_pattern::DateTimePattern;
pub use number_format::{Number, format as format_number};
pub use number_parse::parse as parse_number;
pub use number_pattern::NumberPattern;

/// Creates a data error with a SQLSTATE.
fn data_error(message: impl Into<String>, state: SqlState) -> Error {
    Error::data(message.into()).with_state(state)
}

fn format_error(message: impl Into<String>) -> Error {
    data_error(message, SqlState::INVALID_DATETIME_FORMAT)
}
