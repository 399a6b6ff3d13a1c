//! Moments and numbers as texts: the calendar, and the patterns of PostgreSQL's `to_char`,
//! `to_date`, `to_timestamp` and `to_number`.

pub mod calendar;
mod moment_patterns;
mod moment_read;
mod moment_write;
pub mod names;
mod number_patterns;
mod number_read;
mod number_write;

use tessera_types::{Error, SqlState};

pub use moment_patterns::Pattern;
pub use moment_read::read as read_moment;
pub use moment_write::{Moment, write as write_moment};
pub use number_patterns::NumberPattern;
pub use number_read::read as read_number;
pub use number_write::{Number, write as write_number};

/// A failure with its state.
fn fault(message: impl Into<String>, state: SqlState) -> Error {
    Error::data(message.into()).with_state(state)
}

fn format_fault(message: impl Into<String>) -> Error {
    fault(message, SqlState::INVALID_DATETIME_FORMAT)
}
