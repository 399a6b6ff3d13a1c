//! Formatting of timestamps and intervals: `to_char`.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use tessera_types::Result;

use crate::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH};
use crate::calendar::{civil, day_number};
use crate::date_time_pattern::{Case, DateTimePattern, Field, Kind, Part};
use crate::format_error;
use crate::names::{DAYS, MONTHS};

/// The months as Roman numerals.
pub(crate) const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The field values of a timestamp or an interval.
#[derive(Debug, Clone)]
pub struct DateTimeValue {
    is_interval: bool,
    /// The offset from UTC in seconds, and its abbreviation, of a timestamp with time zone.
    zone: Option<(i64, String)>,
    year: i64,
    month: i64,
    date: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    microseconds: i64,
}

impl DateTimeValue {
    /// Splits a timestamp in microseconds, in the local time of an offset from UTC in seconds with
    /// an abbreviation; `None` if it is infinite.
    pub fn of_timestamp(value: i64, zone: Option<(i64, String)>) -> Option<DateTimeValue> {
        if matches!(value, i64::MIN | i64::MAX) {
            return None;
        }
        let offset = zone.as_ref().map_or(0, |(offset, _)| *offset);
        let value = value.saturating_add(offset * 1_000_000);
        let (day, time) = (value.div_euclid(DAY_MICROSECONDS), value.rem_euclid(DAY_MICROSECONDS));
        let (year, month, date) = civil(day);
        Some(DateTimeValue {
            is_interval: false,
            zone,
            year,
            month,
            date,
            day_of_year: day - day_number(year, 1, 1) + 1,
            hour: time / 3_600_000_000,
            minute: time / 60_000_000 % 60,
            second: time / 1_000_000 % 60,
            microseconds: time % 1_000_000,
        })
    }

    /// Splits an interval. Its fields are not limited to the ranges of a date.
    pub fn of_interval(value: IntervalMonthDayNano) -> DateTimeValue {
        let (months, date) = (i64::from(value.months), i64::from(value.days));
        let time = value.nanoseconds / 1_000;
        DateTimeValue {
            is_interval: true,
            zone: None,
            year: months / 12,
            month: months % 12,
            date,
            // The approximate number of days of the interval.
            day_of_year: months * 30 + date,
            hour: time / 3_600_000_000,
            minute: time / 60_000_000 % 60,
            second: time / 1_000_000 % 60,
            microseconds: time % 1_000_000,
        }
    }

    /// The sign of the offset from UTC.
    fn sign(&self) -> char {
        if self.zone.as_ref().is_some_and(|(offset, _)| *offset < 0) { '-' } else { '+' }
    }

    /// The minutes of the offset from UTC, without sign.
    fn minutes(&self) -> i64 {
        self.zone.as_ref().map_or(0, |(offset, _)| offset.abs() / 60)
    }

    /// The offset from UTC in hours, with minutes where there are some.
    fn offset(&self, is_short: bool) -> String {
        let (sign, minutes) = (self.sign(), self.minutes());
        let hours = match is_short {
            true => format!("{sign}{}", minutes / 60),
            false => format!("{sign}{:02}", minutes / 60),
        };
        if minutes % 60 == 0 { hours } else { format!("{hours}:{:02}", minutes % 60) }
    }

    /// Returns the year as people count: without a year 0, and with positive years BC.
    fn displayed_year(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn julian(&self) -> i64 {
        day_number(self.year, self.month, self.date) + JULIAN_EPOCH
    }

    /// 0 is Sunday.
    fn day_of_week(&self) -> i64 {
        (self.julian() + 1).rem_euclid(7)
    }

    /// Returns the ISO week year and the Julian day on which it begins.
    fn iso_year(&self) -> (i64, i64) {
        let day = self.julian();
        let first =
            [self.year + 1, self.year].into_iter().map(|year| (year, first_of_iso_year(year)));
        let found = first.into_iter().find(|(_, first)| *first <= day);
        found.unwrap_or_else(|| (self.year - 1, first_of_iso_year(self.year - 1)))
    }
}

/// Returns the Julian day on which the first ISO week of a year begins.
pub(crate) fn first_of_iso_year(year: i64) -> i64 {
    let fourth = day_number(year, 1, 4) + JULIAN_EPOCH;
    fourth - fourth.rem_euclid(7)
}

/// Formats a timestamp or an interval.
///
/// # Errors
/// The pattern has a field that intervals do not have.
pub fn format(value: &DateTimeValue, pattern: &DateTimePattern) -> Result<String> {
    let mut out = String::with_capacity(pattern.parts.len() * 4);
    for part in &pattern.parts {
        match part {
            Part::Field(field) => write_field(value, field, &mut out)?,
            Part::Separator(character) | Part::Space(character) | Part::Text(character) => {
                out.push(*character);
            }
        }
    }
    Ok(out)
}

/// Returns whether only dates have a field of this kind.
fn is_date_only(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Era { .. }
            | Day(_)
            | DayShort(_)
            | MonthName(_)
            | MonthShort(_)
            | DayOfWeek
            | IsoDayOfWeek
            | Zone(_)
            | ZoneHour
            | ZoneMinute
            | Offset
    )
}

fn write_field(value: &DateTimeValue, field: &Field, out: &mut String) -> Result<()> {
    if value.is_interval && is_date_only(field.kind) {
        return Err(format_error(format!("field '{}' is not valid for an interval", field.name)));
    }
    // Pads a number; a sign adds to the width.
    let padded = |value: i64, width: usize| -> FieldText {
        let width = if field.fill { 0 } else { width + usize::from(value < 0) };
        FieldText::Number(format!("{value:0width$}"))
    };
    // Pads a number as wide as a related value that has a sign.
    let as_wide = |value: i64, width: usize, sign: i64| -> FieldText {
        let width = if field.fill { 0 } else { width + usize::from(sign < 0) };
        FieldText::Number(format!("{value:0width$}"))
    };
    let name = |name: &str, case: Case, width: usize| -> FieldText {
        let width = if field.fill || field.local { 0 } else { width };
        FieldText::Name(format!("{:width$}", case.of(name)))
    };
    let weekday = || DAYS[value.day_of_week() as usize % 7];
    // Intervals do not use month names.
    let month = || MONTHS[(value.month - 1).rem_euclid(12) as usize];
    let shown = match field.kind {
        Kind::Fixed => return Ok(()),
        Kind::Half { points, case } => {
            let after_noon = value.hour % 24 >= 12;
            let text = match (points, after_noon) {
                (false, false) => "AM",
                (false, true) => "PM",
                (true, false) => "A.M.",
                (true, true) => "P.M.",
            };
            FieldText::Name(case.of(text))
        }
        Kind::Era { points, case } => {
            let text = match (points, value.year <= 0) {
                (false, false) => "AD",
                (false, true) => "BC",
                (true, false) => "A.D.",
                (true, true) => "B.C.",
            };
            FieldText::Name(case.of(text))
        }
        Kind::Hour12 => {
            let hour = if value.hour % 12 == 0 { 12 } else { value.hour % 12 };
            as_wide(hour, 2, value.hour)
        }
        Kind::Hour24 => padded(value.hour, 2),
        Kind::Minute => padded(value.minute, 2),
        Kind::Second => padded(value.second, 2),
        Kind::Milliseconds => fraction(value, 3),
        Kind::Microseconds => fraction(value, 6),
        Kind::Fraction(digits) => fraction(value, digits),
        Kind::SecondOfDay => {
            FieldText::Number((value.hour * 3_600 + value.minute * 60 + value.second).to_string())
        }
        Kind::Zone(case) => {
            FieldText::Name(value.zone.as_ref().map_or_else(String::new, |(_, name)| case.of(name)))
        }
        Kind::ZoneHour => FieldText::Name(format!("{}{:02}", value.sign(), value.minutes() / 60)),
        Kind::ZoneMinute => FieldText::Name(format!("{:02}", value.minutes() % 60)),
        Kind::Offset => FieldText::Name(value.offset(field.fill)),
        Kind::MonthName(case) => name(month(), case, 9),
        Kind::MonthShort(case) => FieldText::Name(case.of(&month()[..3])),
        Kind::Month => padded(value.month, 2),
        Kind::Day(case) => name(weekday(), case, 9),
        Kind::DayShort(case) => FieldText::Name(case.of(&weekday()[..3])),
        Kind::DayOfYear => as_wide(value.day_of_year, 3, 0),
        Kind::IsoDayOfYear => as_wide(value.julian() - value.iso_year().1 + 1, 3, 0),
        Kind::DayOfMonth => as_wide(value.date, 2, 0),
        Kind::DayOfWeek => FieldText::Number((value.day_of_week() + 1).to_string()),
        Kind::IsoDayOfWeek => FieldText::Number(((value.day_of_week() + 6) % 7 + 1).to_string()),
        Kind::Week => as_wide((value.day_of_year - 1) / 7 + 1, 2, 0),
        Kind::IsoWeek => as_wide((value.julian() - value.iso_year().1) / 7 + 1, 2, 0),
        Kind::WeekOfMonth => FieldText::Number(((value.date - 1) / 7 + 1).to_string()),
        Kind::Quarter if value.month == 0 => return Ok(()),
        Kind::Quarter => FieldText::Number(((value.month - 1) / 3 + 1).to_string()),
        Kind::Century => padded(century(value), 2),
        Kind::Julian => FieldText::Number(value.julian().to_string()),
        Kind::Roman(_) if value.month == 0 && value.year == 0 => return Ok(()),
        Kind::Roman(case) => {
            // The months of an interval may be zero or negative: whole years print December or
            // January.
            let index = match value.month {
                0 => {
                    if value.year >= 0 {
                        11
                    } else {
                        0
                    }
                }
                1.. => value.month - 1,
                _ => value.month + 12,
            };
            let number = ROMAN_MONTHS[index.rem_euclid(12) as usize];
            let width = if field.fill { 0 } else { 4 };
            FieldText::Name(format!("{:width$}", case.of(number)))
        }
        Kind::YearWithComma => {
            let year = value.displayed_year(value.year);
            FieldText::Number(format!("{},{:03}", year / 1_000, year % 1_000))
        }
        Kind::Year(digits) => year(value.displayed_year(value.year), digits, field.fill, value),
        Kind::IsoYear(digits) => {
            year(value.displayed_year(value.iso_year().0), digits, field.fill, value)
        }
    };
    match (shown, field.ordinal) {
        (FieldText::Number(number), Some(case)) => {
            let _ = write!(out, "{number}{}", ordinal(&number, case));
        }
        (FieldText::Number(text) | FieldText::Name(text), _) => out.push_str(&text),
    }
    Ok(())
}

/// The output of a field; only numbers take an ordinal suffix.
enum FieldText {
    Number(String),
    Name(String),
}

fn fraction(value: &DateTimeValue, digits: u32) -> FieldText {
    let value = value.microseconds / 10_i64.pow(6 - digits.min(6));
    let width = digits as usize;
    FieldText::Number(format!("{value:0width$}"))
}

fn century(value: &DateTimeValue) -> i64 {
    match (value.is_interval, value.year) {
        (true, year) => year / 100,
        (false, year @ 1..) => (year - 1) / 100 + 1,
        (false, year) => year / 100 - 1,
    }
}

/// Formats the last digits of a year. The sign of the calendar year determines the padding.
fn year(shown: i64, digits: u32, fill: bool, value: &DateTimeValue) -> FieldText {
    let number = if digits < 4 { shown % 10_i64.pow(digits) } else { shown };
    let sign = usize::from(value.displayed_year(value.year) < 0);
    let width = if fill || digits == 1 { 0 } else { digits as usize + sign };
    FieldText::Number(format!("{number:0width$}"))
}

/// Returns the suffix of an ordinal number.
pub(crate) fn ordinal(number: &str, case: Case) -> &'static str {
    let digits = number.as_bytes();
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match (digits.last(), is_teen, case) {
        (Some(b'1'), false, Case::Upper) => "ST",
        (Some(b'1'), false, _) => "st",
        (Some(b'2'), false, Case::Upper) => "ND",
        (Some(b'2'), false, _) => "nd",
        (Some(b'3'), false, Case::Upper) => "RD",
        (Some(b'3'), false, _) => "rd",
        (_, _, Case::Upper) => "TH",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: i64, pattern: &str) -> String {
        format(
            &DateTimeValue::of_timestamp(value, Some((0, "UTC".into()))).unwrap(),
            &DateTimePattern::parse(pattern),
        )
        .unwrap()
    }

    #[test]
    fn timestamps_are_written_as_by_postgresql() {
        let day = day_number(2024, 1, 5) * DAY_MICROSECONDS;
        let value = day + 47_045_123_456;
        for (pattern, expected) in [
            ("YYYY-MM-DD HH24:MI:SS.US", "2024-01-05 13:04:05.123456"),
            ("HH12:MI AM a.m. FMHH:MI", "01:04 PM p.m. 1:04"),
            ("FMDay, FMDDth FMMonth Y,YYY", "Friday, 5th January 2,024"),
            ("DAY|Day|dy|MON|mon", "FRIDAY   |Friday   |fri|JAN|jan"),
            ("IYYY-IW-ID IDDD WW W Q CC J RM", "2024-01-5 005 01 1 1 21 2460315 I   "),
            ("FF3 FF1 MS SSSSS TZ tz OF", "123 1 123 47045 UTC utc +00"),
        ] {
            assert_eq!(shown(value, pattern), expected, "{pattern}");
        }
        assert_eq!(shown(day_number(-43, 3, 15) * DAY_MICROSECONDS, "FMYYYY BC CC"), "44 BC -01");
    }

    #[test]
    fn intervals_have_signs() {
        let interval = IntervalMonthDayNano::new(-14, -3, -3_723_004_000_000);
        let of = |pattern| {
            format(&DateTimeValue::of_interval(interval), &DateTimePattern::parse(pattern))
        };
        assert_eq!(of("YYYY MM DD HH24:MI:SS MS").unwrap(), "-0001 -02 -3 -01:-02:-03 -04");
        assert!(of("Month").is_err());
    }
}
