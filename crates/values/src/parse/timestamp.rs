//! Parses dates, times and timestamps: a fast path for the most common format, and conversion of
//! what the general parser returns.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};
use tessera_text::calendar::{
    DAY_MICROSECONDS, JULIAN_EPOCH, civil, day_number, offset_at, with_rules,
};
use tessera_types::{Result, TimeUnit};

use crate::parse::Failure;
use crate::scalar::per_second;
use crate::temporal::read::{DateTimeValue, read};
use crate::temporal::zones::Zone;

/// The ends (exclusive) of PostgreSQL's date and timestamp ranges.
pub const DATE_END: i64 = 2_147_483_494 - JULIAN_EPOCH;
pub(crate) const TIMESTAMP_END: i64 = 109_203_528 - JULIAN_EPOCH;

pub(super) fn in_calendar(day: i64, end: i64) -> Result<i128, Failure> {
    if (-JULIAN_EPOCH..end).contains(&day) { Ok(day.into()) } else { Err(Failure::Range) }
}

/// Converts microseconds to a unit.
pub(super) fn in_unit(micros: i64, unit: TimeUnit) -> i128 {
    let (micros, per_second) = (i128::from(micros), i128::from(per_second(unit)));
    match per_second >= 1_000_000 {
        true => micros * (per_second / 1_000_000),
        false => micros.div_euclid(1_000_000 / per_second),
    }
}

/// Parses a timestamp to a count of units since 1970.
pub(super) fn timestamp(
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
    let (day, time, parsed_zone) = match read(text)? {
        DateTimeValue::Infinity => return Ok(i64::MAX.into()),
        DateTimeValue::MinusInfinity => return Ok(i64::MIN.into()),
        DateTimeValue::Finite { day: Some(day), time, zone } => (day, time.unwrap_or(0), zone),
        DateTimeValue::Finite { day: None, .. } => return Err(Failure::Invalid),
    };
    in_calendar(day, TIMESTAMP_END)?;
    let mut micros = day.checked_mul(DAY_MICROSECONDS).and_then(|day| day.checked_add(time));
    if let Some(zone) = zone {
        let zone = zone.as_ref().map_err(|_| Failure::Invalid)?;
        let local = micros.map_or(0, |micros| micros.div_euclid(1_000_000));
        let offset = match parsed_zone {
            None => offset_in(local, zone),
            Some(Zone::Fixed(offset)) => offset,
            Some(Zone::Named(zone)) => offset_in(local, &zone),
        };
        micros = micros.and_then(|micros| micros.checked_sub(offset * 1_000_000));
        let first = -JULIAN_EPOCH * DAY_MICROSECONDS;
        micros = micros.filter(|micros| *micros >= first);
    }
    micros.map(|micros| in_unit(micros, unit)).ok_or(Failure::Range)
}

/// A date with an optional time and UTC offset.
#[derive(Debug, PartialEq)]
pub(super) struct SimpleTimestamp {
    pub(super) day: i64,
    nanos: i64,
    offset: Option<i64>,
}

impl SimpleTimestamp {
    fn read(text: &str) -> Result<SimpleTimestamp, Failure> {
        let (day, rest) = date(text)?;
        let rest = rest.strip_prefix(['T', 't']).unwrap_or(rest.trim_start());
        if rest.is_empty() {
            return Ok(SimpleTimestamp { day, nanos: 0, offset: None });
        }
        let (nanos, rest) = time(rest).ok_or(Failure::Invalid)?;
        Ok(SimpleTimestamp {
            day,
            nanos,
            offset: offset(rest.trim_start()).ok_or(Failure::Invalid)?,
        })
    }
}

/// Parses the most common timestamp format; `None` for other formats, and if the unit cannot
/// represent all digits.
pub(super) fn simple(text: &str, unit: TimeUnit) -> Option<SimpleTimestamp> {
    let moment = SimpleTimestamp::read(text).ok()?;
    let exact = unit == TimeUnit::Nanosecond || moment.nanos % 1_000 == 0 && !is_long(text);
    // The general parser handles years before 1 and far in the future.
    (exact && moment.nanos < 86_400_000_000_000 && (FIRST_DAY..LAST_DAY).contains(&moment.day))
        .then_some(moment)
}

/// About 0001-01-01 and 9999-12-31.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// Whether a text has a fraction of more than nine digits.
fn is_long(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count() > 9)
}

/// The UTC offset, in seconds, at a local time of a zone. For a time repeated by a clock change it
/// is the later offset; for a skipped time, the offset before the change.
pub fn offset_in(local: i64, zone: &Tz) -> i64 {
    const DAY_SECONDS: i64 = 86_400;
    DateTime::from_timestamp(with_rules(local), 0)
        .and_then(|local| zone.offset_from_local_datetime(&local.naive_utc()).latest())
        .map_or_else(
            || offset_at(zone, local - DAY_SECONDS),
            |offset| offset.fix().local_minus_utc().into(),
        )
}

/// Parses one to `most` digits and returns the rest of the text.
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

/// Parses `HH:MM[:SS[.fraction]]` to nanoseconds and returns the rest of the text.
pub(super) fn time(text: &str) -> Option<(i64, &str)> {
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

/// Parses an optional UTC offset to seconds: empty, `Z`, `UTC`, `+HH`, `-HH:MM` or `+HHMM`.
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
            assert_eq!(
                SimpleTimestamp::read(text),
                Ok(SimpleTimestamp { day, nanos, offset }),
                "{text}"
            );
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
            assert!(SimpleTimestamp::read(text).is_err(), "{text}");
        }
    }
}
