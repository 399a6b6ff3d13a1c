//! The text form of constants.
//!
//! A constant is a literal and a type, `'1998-09-02'::date`. The type decides how the literal is
//! read: numbers as decimals or floats, strings as dates and times. A literal after `RAW` is the
//! raw value, which may be invalid for its type; such a plan can be sent and printed, but the
//! verifier rejects it.

use std::sync::Arc;

use tessera_types::{Atom, TimeUnit, quote_text};

use crate::scalar::Scalar;

/// A literal without its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Boolean(bool),
    /// A number with its sign.
    Number(String),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Interval(i32, i32, i64),
    Items(Vec<Literal>),
}

/// The type of the item at `position` of a nested constant.
fn child(atom: Option<&Atom>, position: usize) -> Option<&Atom> {
    match atom? {
        Atom::List(slot) => Some(&slot.atom),
        Atom::Struct(slots) => slots.get(position).map(|(_, slot)| &slot.atom),
        Atom::Map(key, value) => {
            Some(if position.is_multiple_of(2) { &key.atom } else { &value.atom })
        }
        _ => None,
    }
}

impl Literal {
    /// The type of a literal that is written without one.
    pub(super) fn default_atom(&self) -> Option<Atom> {
        Some(match self {
            Literal::Null => Atom::Null,
            Literal::Boolean(_) => Atom::Boolean,
            Literal::Number(number) if is_whole(number) => Atom::Int64,
            Literal::Number(_) | Literal::Float(_) => Atom::Float64,
            Literal::Text(_) => Atom::String,
            Literal::Bytes(_) => Atom::Bytes,
            Literal::Interval(..) => Atom::Interval,
            Literal::Items(_) => return None,
        })
    }

    /// Returns the literal's value as `atom`; without a type, the raw value.
    ///
    /// # Errors
    /// The literal is invalid for the type; the error is the message.
    pub(super) fn scalar(&self, atom: Option<&Atom>) -> Result<Scalar, String> {
        Ok(match (self, atom) {
            (Literal::Null, _) => Scalar::Null,
            (Literal::Boolean(value), _) => Scalar::Boolean(*value),
            (Literal::Number(number), Some(Atom::Decimal(_, scale))) => {
                Scalar::Integer(decimal(number, *scale)?)
            }
            (Literal::Number(number), Some(Atom::Float32 | Atom::Float64)) => {
                Scalar::Float(float(number)?)
            }
            (Literal::Number(number), _) if is_whole(number) => Scalar::Integer(
                number
                    .parse()
                    .map_err(|_| format!("number {number} has too many digits for any type"))?,
            ),
            (Literal::Number(number), _) => Scalar::Float(float(number)?),
            (Literal::Float(value), _) => Scalar::Float(*value),
            (Literal::Text(text), Some(Atom::Date)) => {
                Scalar::Integer(date(text).ok_or_else(|| {
                    format!("invalid date '{text}'; expected a form such as '1998-09-02'")
                })?)
            }
            (Literal::Text(text), Some(Atom::Enum(labels))) => {
                let place = labels.labels().iter().position(|label| **label == **text);
                Scalar::Integer(
                    place.ok_or_else(|| {
                        format!("'{text}' is not a label of enum {}", labels.name())
                    })? as i128,
                )
            }
            (Literal::Text(text), Some(Atom::Time(unit))) => {
                Scalar::Integer(time(text, *unit).ok_or_else(|| {
                    format!("invalid time '{text}'; expected a form such as '23:59:59'")
                })?)
            }
            (Literal::Text(text), Some(Atom::Timestamp(unit, _))) => {
                Scalar::Integer(timestamp(text, *unit).ok_or_else(|| {
                    format!(
                        "invalid timestamp '{text}'; expected a form such as '1998-09-02 23:59:59'"
                    )
                })?)
            }
            (Literal::Text(text), _) => Scalar::String(text.as_str().into()),
            (Literal::Bytes(bytes), _) => Scalar::Bytes(bytes.as_slice().into()),
            (Literal::Interval(months, days, nanoseconds), _) => {
                Scalar::Interval { months: *months, days: *days, nanoseconds: *nanoseconds }
            }
            (Literal::Items(items), atom) => Scalar::Nested(
                items
                    .iter()
                    .enumerate()
                    .map(|(position, item)| item.scalar(child(atom, position)))
                    .collect::<Result<Arc<[Scalar]>, String>>()?,
            ),
        })
    }
}

/// Returns the text of a constant, without its type where the literal alone is sufficient.
pub(super) fn constant(value: &Scalar, atom: &Atom, bare: bool) -> String {
    let usual = matches!(
        (value, atom),
        (Scalar::Null, Atom::Null)
            | (Scalar::Boolean(_), Atom::Boolean)
            | (Scalar::Integer(_), Atom::Int64)
            | (Scalar::Float(_), Atom::Float64)
            | (Scalar::String(_), Atom::String)
            | (Scalar::Bytes(_), Atom::Bytes)
            | (Scalar::Interval { .. }, Atom::Interval)
    );
    match typed(value, Some(atom)) {
        Some(text) if bare && usual => text,
        Some(text) => format!("{text}::{atom}"),
        None => format!("RAW {}::{atom}", raw(value)),
    }
}

/// Returns the literal that parses back to `value` as `atom`, if there is one.
fn typed(value: &Scalar, atom: Option<&Atom>) -> Option<String> {
    Some(match (value, atom) {
        (Scalar::Integer(digits), Some(Atom::Decimal(_, scale))) => decimal_text(*digits, *scale),
        (Scalar::Integer(_), Some(Atom::Float32 | Atom::Float64)) => return None,
        (Scalar::Float(_), Some(Atom::Decimal(..))) => return None,
        (
            Scalar::String(_),
            Some(Atom::Date | Atom::Time(_) | Atom::Timestamp(..) | Atom::Enum(_)),
        ) => return None,
        (Scalar::Integer(place), Some(Atom::Enum(labels))) => {
            let label = labels.labels().get(usize::try_from(*place).ok()?)?;
            text(label)
        }
        (Scalar::Integer(days), Some(Atom::Date)) => {
            date_text(*days).map_or_else(|| days.to_string(), |text| format!("'{text}'"))
        }
        (Scalar::Integer(count), Some(Atom::Time(unit))) => {
            time_text(*count, *unit).map_or_else(|| count.to_string(), |text| format!("'{text}'"))
        }
        (Scalar::Integer(count), Some(Atom::Timestamp(unit, _))) => timestamp_text(*count, *unit)
            .map_or_else(|| count.to_string(), |text| format!("'{text}'")),
        (Scalar::Nested(items), atom) => {
            let items =
                items.iter().enumerate().map(|(position, item)| typed(item, child(atom, position)));
            format!("ITEMS[{}]", items.collect::<Option<Vec<_>>>()?.join(", "))
        }
        _ => raw(value),
    })
}

fn raw(value: &Scalar) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Boolean(value) => value.to_string(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() && value.to_bits() == f64::NAN.to_bits() => {
            "NAN".into()
        }
        Scalar::Float(value) if value.is_nan() => format!("NAN(x'{:016x}')", value.to_bits()),
        Scalar::Float(value) if value.is_infinite() => {
            if *value > 0.0 {
                "INF".into()
            } else {
                "-INF".into()
            }
        }
        Scalar::Float(value) => format!("{value:?}"),
        Scalar::String(value) => text(value),
        Scalar::Bytes(value) => {
            format!("x'{}'", value.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Scalar::Interval { months, days, nanoseconds } => {
            format!("INTERVAL({months}, {days}, {nanoseconds})")
        }
        Scalar::Nested(items) => {
            format!("ITEMS[{}]", items.iter().map(raw).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns a string in quotes, on one line.
pub(super) fn text(value: &str) -> String {
    if !value.chars().any(char::is_control) {
        return quote_text(value);
    }
    let mut out = String::from("e'");
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' | '\'' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

pub(super) fn is_whole(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn float(number: &str) -> Result<f64, String> {
    number.parse().map_err(|_| format!("invalid number {number}"))
}

fn decimal(number: &str, scale: i8) -> Result<i128, String> {
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::try_from(scale).unwrap_or(0);
    if fraction.len() > scale {
        return Err(format!("{number} has more than {scale} digits after the point"));
    }
    let sign = if negative { "-" } else { "" };
    format!("{sign}{whole}{fraction:0<scale$}").parse().map_err(|_| {
        format!("invalid decimal {number}; expected at most {scale} digits after the point")
    })
}

fn decimal_text(digits: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let sign = if digits < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{fraction}")
}

// Conversion between days and dates: H. Hinnant, "chrono-compatible low-level date algorithms".
// Only the years 0001 to 9999 have a text form; other day counts are printed as numbers.

const DAYS_MIN: i128 = -719_162;
const DAYS_MAX: i128 = 2_932_896;
const DAY_SECONDS: i128 = 86_400;

fn civil(days: i128) -> (i128, i128, i128) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i128::from(month <= 2), month, day)
}

fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = year - i128::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

fn date_text(count: i128) -> Option<String> {
    (DAYS_MIN..=DAYS_MAX).contains(&count).then(|| {
        let (year, month, day) = civil(count);
        format!("{year:04}-{month:02}-{day:02}")
    })
}

fn fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i128; N]> {
    let mut parts = text.split(separator);
    let mut values = [0; N];
    for (value, width) in values.iter_mut().zip(widths) {
        let part = parts
            .next()
            .filter(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))?;
        *value = part.parse().ok()?;
    }
    parts.next().is_none().then_some(values)
}

fn date(text: &str) -> Option<i128> {
    let [year, month, day] = fields(text, '-', [4, 2, 2])?;
    let count = days(year, month, day);
    (year > 0 && civil(count) == (year, month, day)).then_some(count)
}

/// The digits of the fraction of a second, and the units per second.
fn precision(unit: TimeUnit) -> (usize, i128) {
    match unit {
        TimeUnit::Second => (0, 1),
        TimeUnit::Millisecond => (3, 1_000),
        TimeUnit::Microsecond => (6, 1_000_000),
        TimeUnit::Nanosecond => (9, 1_000_000_000),
    }
}

fn time_text(count: i128, unit: TimeUnit) -> Option<String> {
    let (digits, per_second) = precision(unit);
    if !(0..DAY_SECONDS * per_second).contains(&count) {
        return None;
    }
    let (seconds, fraction) = (count / per_second, count % per_second);
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(if fraction == 0 { whole } else { format!("{whole}.{fraction:0digits$}") })
}

fn time(text: &str, unit: TimeUnit) -> Option<i128> {
    let (digits, per_second) = precision(unit);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let [hours, minutes, seconds] = fields(whole, ':', [2, 2, 2])?;
    if hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > digits {
        return None;
    }
    if !fraction.bytes().all(|b| b.is_ascii_digit()) || (text.contains('.') && fraction.is_empty())
    {
        return None;
    }
    let fraction: i128 = format!("0{fraction:0<digits$}").parse().ok()?;
    Some((hours * 3_600 + minutes * 60 + seconds) * per_second + fraction)
}

fn timestamp_text(count: i128, unit: TimeUnit) -> Option<String> {
    let day = DAY_SECONDS * precision(unit).1;
    let date = date_text(count.div_euclid(day))?;
    Some(format!("{date} {}", time_text(count.rem_euclid(day), unit)?))
}

fn timestamp(text: &str, unit: TimeUnit) -> Option<i128> {
    let (of_date, of_time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    Some(date(of_date)? * DAY_SECONDS * precision(unit).1 + time(of_time, unit)?)
}
