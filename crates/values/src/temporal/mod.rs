//! Dates, times, timestamps and time zones in text, as PostgreSQL reads them.

pub mod clock;
pub(crate) mod moments;
pub mod read;
pub mod session_zone;
pub mod timetz;
pub mod timetz_arithmetic;
pub mod tokens;
pub mod zones;
