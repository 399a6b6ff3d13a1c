//! Parses values from text, as casts from string do.

mod float;
pub mod interval;
pub(crate) mod list;
pub(crate) mod nested;
pub mod timestamp;
pub mod unit;

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::*;
use tessera_context::interrupt::Every;
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use crate::kernel::unexpected;
use crate::parse::float::{double, single};
use crate::parse::interval::interval;
use crate::parse::timestamp::{DATE_END, in_calendar, in_unit, simple, time, timestamp};
use crate::scalar::per_second;
use crate::temporal::read::{DateTimeValue, read as read_moment, read_time};
use crate::temporal::timetz::TimeTz;
use crate::temporal::zones::Zone;
use crate::with_whole_number;

/// Parses each text as a value of a type.
///
/// # Errors
/// A text is invalid. With `safe` it becomes NULL instead.
pub(crate) fn parse_array(array: &ArrayRef, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    Ok(match to {
        Atom::Boolean => Arc::new(BooleanArray::from(rows(texts, to, safe, |text| {
            boolean(text).ok_or(Failure::Invalid)
        })?)),
        Atom::Float32 => {
            let values = rows(texts, to, safe, single)?;
            Arc::new(Float32Array::from(values))
        }
        Atom::Float64 => {
            let values = rows(texts, to, safe, double)?;
            Arc::new(Float64Array::from(values))
        }
        Atom::Bytes => {
            let mut builder = BinaryViewBuilder::with_capacity(texts.len());
            for text in texts {
                match text.map(bytes) {
                    None => builder.append_null(),
                    Some(Ok(value)) => builder.append_value(value),
                    Some(Err(_)) if safe => builder.append_null(),
                    Some(Err(state)) => {
                        let error = Failure::Invalid.error(text.unwrap_or_default(), to);
                        return Err(error.with_state(state));
                    }
                }
            }
            Arc::new(builder.finish())
        }
        Atom::Interval => {
            let values = rows(texts, to, safe, interval)?;
            Arc::new(IntervalMonthDayNanoArray::from(values))
        }
        whole_number => {
            let read = whole_reader(whole_number);
            macro_rules! run {
                ($type:ty) => {{
                    let values = rows(texts, to, safe, |text| {
                        <$type as ArrowPrimitiveType>::Native::try_from(read(text)?)
                            .map_err(|_| Failure::Range)
                    })?;
                    let array: PrimitiveArray<$type> = values.into_iter().collect();
                    Arc::new(array.with_data_type(to.arrow())) as ArrayRef
                }};
            }
            with_whole_number!(
                whole_number,
                run,
                return Err(Error::internal(format!("text read as {to}")))
            )
        }
    })
}

/// The reason why a text is not a valid value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Failure {
    /// The text does not have the form of the type.
    Invalid,
    /// The value is out of the range of the type.
    Range,
    /// An interval is out of range.
    Interval,
    /// A time zone offset is out of range.
    Zone,
    /// The name of a time zone is unknown.
    ZoneName,
}

/// The characters of a text that a message shows.
const SHOWN_MAX: usize = 60;

/// Returns the part of a text that a message shows.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl Failure {
    /// The error of a text that is not a value of type `to`.
    pub fn error(self, text: &str, to: &Atom) -> Error {
        let short = excerpt(text);
        let temporal = to.is_temporal();
        let beyond =
            || Error::new(Code::Overflow, format!("'{short}' is out of range for type {to}"));
        match self {
            Failure::Interval => beyond().with_state(SqlState::INTERVAL_FIELD_OVERFLOW),
            Failure::Zone => beyond().with_state(SqlState::INVALID_TIME_ZONE_DISPLACEMENT),
            Failure::ZoneName => Error::data(format!(
                "unknown time zone in '{short}' for type {to}; use a name of the IANA database"
            ))
            .with_state(SqlState::INVALID_PARAMETER_VALUE),
            Failure::Invalid => Error::data(format!("invalid input for type {to}: '{short}'"))
                .with_state(match temporal {
                    true => SqlState::INVALID_DATETIME_FORMAT,
                    false => SqlState::INVALID_TEXT_REPRESENTATION,
                }),
            Failure::Range => {
                if temporal {
                    beyond().with_state(SqlState::DATETIME_FIELD_OVERFLOW)
                } else {
                    beyond()
                }
            }
        }
    }
}

fn rows<T>(
    texts: &StringViewArray,
    to: &Atom,
    safe: bool,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<Option<T>>> {
    let one = |text: Option<&str>| match text.map(|text| (text, read(text.trim_ascii()))) {
        None => Ok(None),
        Some((_, Ok(value))) => Ok(Some(value)),
        Some((_, Err(_))) if safe => Ok(None),
        Some((text, Err(failure))) => Err(failure.error(text, to)),
    };
    texts.iter().map(one).collect()
}

fn boolean(text: &str) -> Option<bool> {
    Some(match text.to_ascii_lowercase().as_str() {
        "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => true,
        "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => false,
        _ => return None,
    })
}

/// Parses `\x` and hexadecimal digits, or escaped bytes.
fn bytes(text: &str) -> Result<Vec<u8>, SqlState> {
    match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits).ok_or(SqlState::INVALID_PARAMETER_VALUE),
        None => escaped(text),
    }
}

/// Parses bytes in which `\\` is a backslash and `\ooo` is the byte with that octal code.
pub fn escaped(text: &str) -> Result<Vec<u8>, SqlState> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let every = Every::default();
    while let Some((&first, after)) = rest.split_first() {
        every.pass();
        if first != b'\\' {
            out.push(first);
            rest = after;
            continue;
        }
        match after {
            [b'\\', after @ ..] => {
                out.push(b'\\');
                rest = after;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => return Err(SqlState::INVALID_TEXT_REPRESENTATION),
        }
    }
    Ok(out)
}

/// Parses pairs of hexadecimal digits, optionally with spaces between pairs.
pub fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(digits.len() / 2);
    let (mut bytes, every) = (digits.bytes(), Every::default());
    while let Some(first) = bytes.next() {
        every.pass();
        if first.is_ascii_whitespace() {
            continue;
        }
        out.push(digit(first)? << 4 | digit(bytes.next()?)?);
    }
    Some(out)
}

type Reader = Box<dyn Fn(&str) -> Result<i128, Failure>>;

/// A parser for the unscaled integers of a type.
fn whole_reader(atom: &Atom) -> Reader {
    match atom.clone() {
        Atom::Decimal(precision, scale) => Box::new(move |text| decimal(text, precision, scale)),
        Atom::Date => Box::new(|text| match simple(text, TimeUnit::Microsecond) {
            Some(moment) => Ok(moment.day.into()),
            None => match read_moment(text)? {
                DateTimeValue::Infinity => Ok(i32::MAX.into()),
                DateTimeValue::MinusInfinity => Ok(i32::MIN.into()),
                DateTimeValue::Finite { day: Some(day), .. } => in_calendar(day, DATE_END),
                DateTimeValue::Finite { day: None, .. } => Err(Failure::Invalid),
            },
        }),
        Atom::Time(unit) => Box::new(move |text| {
            if unit == TimeUnit::Nanosecond
                && let Some((nanos, "")) = time(text)
            {
                return Ok(nanos.into());
            }
            match read_time(text)? {
                DateTimeValue::Finite { time: Some(micros), .. } => Ok(in_unit(micros, unit)),
                _ => Err(Failure::Invalid),
            }
        }),
        // A text without a zone is in UTC; the binder calls a function where the session has another.
        Atom::TimeTz => {
            Box::new(|text| TimeTz::read(text, &Zone::Fixed(0), 0).map(|time| time.packed().into()))
        }
        Atom::Timestamp(unit, zone) => {
            let zone = zone.map(|zone| Tz::from_str(&zone));
            Box::new(move |text| timestamp(text, unit, zone.as_ref()))
        }
        Atom::Duration(unit) => Box::new(move |text| {
            let nanos = tessera_vector::physical::interval_length(interval(text)?);
            Ok(nanos / i128::from(1_000_000_000 / per_second(unit)))
        }),
        _ => Box::new(integer),
    }
}

/// Parses an integer as PostgreSQL's literals are written: `-12`, `0x1F`, `0b11`, `1_000`.
fn integer(text: &str) -> Result<i128, Failure> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| Failure::Range);
    }
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits),
    };
    // One underscore may stand before a digit, but at the begin of a decimal number.
    let single = !digits.contains("__") && !digits.ends_with('_');
    let is_digit = |c: char| c == '_' || c.is_digit(radix);
    if digits.is_empty() || !single || !digits.chars().all(is_digit) || !text_begins(digits, radix)
    {
        return Err(Failure::Invalid);
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    let value = i128::from_str_radix(&plain, radix).map_err(|_| Failure::Range)?;
    Ok(if text.starts_with('-') { -value } else { value })
}

/// Whether a number may begin with this character.
fn text_begins(digits: &str, radix: u32) -> bool {
    radix != 10 || !digits.starts_with('_')
}

/// Parses a decimal with an optional exponent; rounds half away from zero to the scale.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, Failure> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().map_err(|_| Failure::Invalid)?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes() {
        [b'-', ..] => (true, &mantissa[1..]),
        [b'+', ..] => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut digits = whole.bytes().chain(fraction.bytes());
    if whole.len() + fraction.len() == 0 || !digits.all(|byte| byte.is_ascii_digit()) {
        return Err(Failure::Invalid);
    }
    // The number of digits up to the last one that is kept.
    let kept = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let mut value: i128 = 0;
    for (i, byte) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let digit = i128::from(byte - b'0');
        if (i as i64) < kept {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(digit))
                .ok_or(Failure::Range)?;
        } else {
            value += i128::from(i as i64 == kept && digit >= 5);
            break;
        }
    }
    let missing = kept - (whole.len() + fraction.len()) as i64;
    if missing > 0 && value != 0 {
        let factor = u32::try_from(missing).ok().and_then(|missing| 10i128.checked_pow(missing));
        value = factor.and_then(|factor| value.checked_mul(factor)).ok_or(Failure::Range)?;
    }
    match value.unsigned_abs() < 10u128.pow(precision.into()) {
        true => Ok(if negative { -value } else { value }),
        false => Err(Failure::Range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_literals() {
        for (text, expected) in [
            ("-12", Ok(-12)),
            ("0x1F", Ok(31)),
            ("-0b101", Ok(-5)),
            ("+0o17", Ok(15)),
            ("1_000", Ok(1000)),
            ("0x_ff", Ok(255)),
            ("_1", Err(Failure::Invalid)),
            ("1_", Err(Failure::Invalid)),
            ("1__0", Err(Failure::Invalid)),
            ("0x", Err(Failure::Invalid)),
            ("0b12", Err(Failure::Invalid)),
            ("1e3", Err(Failure::Invalid)),
            ("--1", Err(Failure::Invalid)),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn decimals_round_half_away() {
        for (text, expected) in [
            ("1", Ok(100)),
            ("-1.5", Ok(-150)),
            ("1.005", Ok(101)),
            ("-1.005", Ok(-101)),
            ("1.0049", Ok(100)),
            (".5", Ok(50)),
            ("5.", Ok(500)),
            ("1e2", Ok(10_000)),
            ("125e-3", Ok(13)),
            ("0e99", Ok(0)),
            ("999.99", Ok(99_999)),
            ("0.001", Ok(0)),
            ("0.0000001", Ok(0)),
            ("9e-9", Ok(0)),
            ("99999", Err(Failure::Range)),
            ("1e40", Err(Failure::Range)),
            ("", Err(Failure::Invalid)),
            (".", Err(Failure::Invalid)),
            ("1.2.3", Err(Failure::Invalid)),
            ("abc", Err(Failure::Invalid)),
            ("1e", Err(Failure::Invalid)),
        ] {
            assert_eq!(decimal(text, 5, 2), expected, "{text}");
        }
    }
}
