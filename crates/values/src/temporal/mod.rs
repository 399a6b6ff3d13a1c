//! Dates, times, timestamps and time zones in text, as PostgreSQL reads them.

pub mod clock;
pub(crate) mod moments;
pub mod read;
pub mod session_zone;
pub mod timetz;
pub mod timetz_arithmetic;
pub mod tokens;
pub mod zones;

/// Rounds microseconds to this many digits of a second, half away from zero; `None` on overflow.
pub fn rounded(value: i64, digits: i64) -> Option<i64> {
    let unit = 10i64.pow(6 - digits.clamp(0, 6) as u32);
    let up = value.unsigned_abs().checked_add(unit as u64 / 2)? / unit as u64 * unit as u64;
    let up = i64::try_from(up).ok()?;
    Some(if value < 0 { -up } else { up })
}
