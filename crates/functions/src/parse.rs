//! Text as values, as casts from string read it.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::*;
use chrono::{DateTime, Offset, TimeZone};
use tessera_context::interrupt::Every;
use tessera_text::calendar::{
    DAY_MICROSECONDS, JULIAN_EPOCH, civil, day_number, offset_at, with_rules,
};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use super::kernel::unexpected;
use super::moments::read::{Told, read as read_moment, read_time};
use super::moments::zones::Zone;
use super::parse_float::{double, single};
use super::parse_interval::interval;
use super::scalar::{per_second, with_whole_number};

/// Each text as a value of a type.
///
/// # Errors
/// A text that is none, unless `safe`: then it becomes NULL.
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

/// Why a text is not a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Failure {
    Invalid,
    Range,
    /// An interval is too long.
    Interval,
    /// The offset of a time zone is too large.
    Zone,
}

impl Failure {
    pub(crate) fn error(self, text: &str, to: &Atom) -> Error {
        let mut short: String = text.chars().take(60).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        let temporal = to.is_temporal();
        let beyond =
            || Error::new(Code::Overflow, format!("'{short}' is out of range for type {to}"));
        match self {
            Failure::Interval => beyond().with_state(SqlState::INTERVAL_FIELD_OVERFLOW),
            Failure::Zone => beyond().with_state(SqlState::INVALID_TIME_ZONE_DISPLACEMENT),
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

/// `\x` and digits, or characters of which `\\` is a backslash and `\ooo` the byte of that number.
fn bytes(text: &str) -> Result<Vec<u8>, SqlState> {
    match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits).ok_or(SqlState::INVALID_PARAMETER_VALUE),
        None => escaped(text),
    }
}

/// Characters of which `\\\\` is a backslash and `\\ooo` the byte of that number.
pub(super) fn escaped(text: &str) -> Result<Vec<u8>, SqlState> {
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

/// Pairs of digits, with spaces between pairs.
pub(super) fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
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

/// What reads an unscaled number of a type.
fn whole_reader(atom: &Atom) -> Reader {
    match atom.clone() {
        Atom::Decimal(precision, scale) => Box::new(move |text| decimal(text, precision, scale)),
        Atom::Date => Box::new(|text| match simple(text, TimeUnit::Microsecond) {
            Some(moment) => Ok(moment.day.into()),
            None => match read_moment(text)? {
                Told::Infinity => Ok(i32::MAX.into()),
                Told::MinusInfinity => Ok(i32::MIN.into()),
                Told::Moment { day: Some(day), .. } => in_calendar(day, DATE_END),
                Told::Moment { day: None, .. } => Err(Failure::Invalid),
            },
        }),
        Atom::Time(unit) => Box::new(move |text| {
            if unit == TimeUnit::Nanosecond
                && let Some((nanos, "")) = time(text)
            {
                return Ok(nanos.into());
            }
            match read_time(text)? {
                Told::Moment { time: Some(micros), .. } => Ok(in_unit(micros, unit)),
                _ => Err(Failure::Invalid),
            }
        }),
        Atom::Timestamp(unit, zone) => {
            let zone = zone.map(|zone| Tz::from_str(&zone));
            Box::new(move |text| timestamp(text, unit, zone.as_ref()))
        }
        Atom::Duration(unit) => Box::new(move |text| {
            let nanos = super::compare::interval_length(interval(text)?);
            Ok(nanos / i128::from(1_000_000_000 / per_second(unit)))
        }),
        _ => Box::new(integer),
    }
}

/// The day after the last date, and after the last timestamp, as PostgreSQL has them.
pub(super) const DATE_END: i64 = 2_147_483_494 - JULIAN_EPOCH;
const TIMESTAMP_END: i64 = 109_203_528 - JULIAN_EPOCH;

fn in_calendar(day: i64, end: i64) -> Result<i128, Failure> {
    if (-JULIAN_EPOCH..end).contains(&day) { Ok(day.into()) } else { Err(Failure::Range) }
}

/// Microseconds in a unit.
fn in_unit(micros: i64, unit: TimeUnit) -> i128 {
    let (micros, per_second) = (i128::from(micros), i128::from(per_second(unit)));
    match per_second >= 1_000_000 {
        true => micros * (per_second / 1_000_000),
        false => micros.div_euclid(1_000_000 / per_second),
    }
}

fn timestamp(
    text: &str,
    unit: TimeUnit,
    zone: Option<&Result<Tz, arrow::error::ArrowError>>,
) -> Result<i128, Failure> {
    if let Some(moment) = simple(text, unit) {
        let mut seconds = i128::from(moment.day) * 86_400;
        match zone {
            None => {}
            Some(Err(_)) => return Err(Failure::Invalid),
            Some(Ok(zone)) => {
                let local = moment.day * 86_400 + moment.nanos / 1_000_000_000;
                seconds -= i128::from(moment.offset.unwrap_or_else(|| offset_in(local, zone)));
            }
        }
        let per_second = per_second(unit);
        let fraction = moment.nanos / (1_000_000_000 / per_second);
        return Ok(seconds * i128::from(per_second) + i128::from(fraction));
    }
    let (day, time, told) = match read_moment(text)? {
        Told::Infinity => return Ok(i64::MAX.into()),
        Told::MinusInfinity => return Ok(i64::MIN.into()),
        Told::Moment { day: Some(day), time, zone } => (day, time.unwrap_or(0), zone),
        Told::Moment { day: None, .. } => return Err(Failure::Invalid),
    };
    in_calendar(day, TIMESTAMP_END)?;
    let mut micros = day.checked_mul(DAY_MICROSECONDS).and_then(|day| day.checked_add(time));
    if let Some(zone) = zone {
        let zone = zone.as_ref().map_err(|_| Failure::Invalid)?;
        let local = micros.map_or(0, |micros| micros.div_euclid(1_000_000));
        let offset = match told {
            None => offset_in(local, zone),
            Some(Zone::Fixed(offset)) => offset,
            Some(Zone::Named(zone)) => offset_in(local, &zone),
        };
        micros = micros.and_then(|micros| micros.checked_sub(offset * 1_000_000));
    }
    micros.map(|micros| in_unit(micros, unit)).ok_or(Failure::Range)
}

fn integer(text: &str) -> Result<i128, Failure> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Failure::Invalid);
    }
    text.parse().map_err(|_| Failure::Range)
}

/// Sign, digits with at most one point, an exponent; rounded half away from zero to the scale.
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
    // How many of the digits stand before the last kept place.
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

/// A date with an optional time and an optional offset from UTC.
#[derive(Debug, PartialEq)]
struct Moment {
    day: i64,
    nanos: i64,
    offset: Option<i64>,
}

impl Moment {
    fn read(text: &str) -> Result<Moment, Failure> {
        let (day, rest) = date(text)?;
        let rest = rest.strip_prefix(['T', 't']).unwrap_or(rest.trim_start());
        if rest.is_empty() {
            return Ok(Moment { day, nanos: 0, offset: None });
        }
        let (nanos, rest) = time(rest).ok_or(Failure::Invalid)?;
        Ok(Moment { day, nanos, offset: offset(rest.trim_start()).ok_or(Failure::Invalid)? })
    }
}

/// A moment in the form that most texts have; none where it is another, or has more digits than the
/// unit keeps.
fn simple(text: &str, unit: TimeUnit) -> Option<Moment> {
    let moment = Moment::read(text).ok()?;
    let exact = unit == TimeUnit::Nanosecond || moment.nanos % 1_000 == 0 && !is_long(text);
    // Years before 1 and far ones are read with care.
    (exact && moment.nanos < 86_400_000_000_000 && (FIRST_DAY..LAST_DAY).contains(&moment.day))
        .then_some(moment)
}

/// 0001-01-01 and 9999-12-31, about.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// Whether a text has a fraction of more than nine digits.
fn is_long(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count() > 9)
}

/// The offset in force in a zone at a local time, in seconds. A time that a change of clocks
/// repeats counts as the later one; one that it skips is told by the clocks before it.
pub(crate) fn offset_in(local: i64, zone: &Tz) -> i64 {
    const DAY_SECONDS: i64 = 86_400;
    DateTime::from_timestamp(with_rules(local), 0)
        .and_then(|local| zone.offset_from_local_datetime(&local.naive_utc()).latest())
        .map_or_else(
            || offset_at(zone, local - DAY_SECONDS),
            |offset| offset.fix().local_minus_utc().into(),
        )
}

/// At least one and at most `most` digits, and what follows.
fn number(text: &str, most: usize) -> Option<(i64, &str)> {
    let end = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((text.get(..end)?.parse().ok()?, &text[end..]))
}

fn date(text: &str) -> Result<(i64, &str), Failure> {
    let read = || -> Option<(i64, i64, i64, &str)> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 8 {
            let (month, _) = number(&text[4..], 2)?;
            let (date, rest) = number(&text[6..], 2)?;
            return Some((number(text, 4)?.0, month, date, rest));
        }
        if digits < 4 {
            return None;
        }
        let (year, rest) = number(text, 6)?;
        let separator = rest.chars().next().filter(|c| matches!(c, '-' | '/'))?;
        let (month, rest) = number(&rest[1..], 2)?;
        let (date, rest) = number(rest.strip_prefix(separator)?, 2)?;
        Some((year, month, date, rest))
    };
    let (year, month, date, rest) = read().ok_or(Failure::Invalid)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return Err(Failure::Range);
    }
    let day = day_number(year, month, date);
    if civil(day) != (year, month, date) {
        return Err(Failure::Range);
    }
    Ok((day, rest))
}

/// Nanoseconds of `HH:MM[:SS[.fraction]]`, and what follows.
fn time(text: &str) -> Option<(i64, &str)> {
    let (hours, rest) = number(text, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (mut seconds, mut fraction, mut rest) = (0, 0, rest);
    if let Some(after) = rest.strip_prefix(':') {
        (seconds, rest) = number(after, 2)?;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let kept = &after[..digits.min(9)];
            fraction = format!("{kept:0<9}").parse::<i64>().ok()?;
            rest = &after[digits..];
        }
    }
    let in_range = hours < 24 && minutes < 60 && (seconds < 60 || (seconds, fraction) == (60, 0))
        || (hours, minutes, seconds, fraction) == (24, 0, 0, 0);
    in_range.then_some((((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction, rest))
}

/// Nothing, `Z`, `UTC`, `+HH`, `-HH:MM`, `+HHMM`, in seconds.
fn offset(text: &str) -> Option<Option<i64>> {
    match text {
        "" => return Some(None),
        "Z" | "z" | "UTC" => return Some(Some(0)),
        _ => {}
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2)? };
    (rest.is_empty() && hours < 16 && minutes < 60)
        .then_some(Some(sign * (hours * 3_600 + minutes * 60)))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn moments_are_read() {
        let day = 19_782;
        for (text, nanos, offset) in [
            ("2024-02-29", 0, None),
            ("20240229", 0, None),
            ("2024/2/29 1:02", 3_720_000_000_000, None),
            ("2024-02-29T01:02:03.5Z", 3_723_500_000_000, Some(0)),
            ("2024-02-29 01:02:03+05:30", 3_723_000_000_000, Some(19_800)),
            ("2024-02-29 01:02:03 -08", 3_723_000_000_000, Some(-28_800)),
        ] {
            assert_eq!(Moment::read(text), Ok(Moment { day, nanos, offset }), "{text}");
        }
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-02-29 25:00",
            "2024-02",
            "x",
            "",
            "2024-02-29 1",
            "2024-02-29é",
        ] {
            assert!(Moment::read(text).is_err(), "{text}");
        }
    }
}
