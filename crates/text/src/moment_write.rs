//! `to_char` of timestamps and intervals.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use tessera_types::Result;

use crate::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH};
use crate::calendar::{civil, day_number};
use crate::format_fault;
use crate::moment_patterns::{Case, Field, Kind, Part, Pattern};
use crate::names::{DAYS, MONTHS};

/// The months in Roman numbers.
pub(crate) const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What a pattern shows of a timestamp or an interval.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    is_interval: bool,
    /// Whether there is a time zone, which is UTC.
    has_zone: bool,
    year: i64,
    month: i64,
    date: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    microseconds: i64,
}

impl Moment {
    /// Of a timestamp in microseconds; none where it is infinite.
    pub fn of_timestamp(value: i64, has_zone: bool) -> Option<Moment> {
        if matches!(value, i64::MIN | i64::MAX) {
            return None;
        }
        let (day, time) = (value.div_euclid(DAY_MICROSECONDS), value.rem_euclid(DAY_MICROSECONDS));
        let (year, month, date) = civil(day);
        Some(Moment {
            is_interval: false,
            has_zone,
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

    /// An interval, whose fields are not those of a day.
    pub fn of_interval(value: IntervalMonthDayNano) -> Moment {
        let (months, date) = (i64::from(value.months), i64::from(value.days));
        let time = value.nanoseconds / 1_000;
        Moment {
            is_interval: true,
            has_zone: false,
            year: months / 12,
            month: months % 12,
            date,
            // About how many days the interval has.
            day_of_year: months * 30 + date,
            hour: time / 3_600_000_000,
            minute: time / 60_000_000 % 60,
            second: time / 1_000_000 % 60,
            microseconds: time % 1_000_000,
        }
    }

    /// The year as people count: there is no year 0, and years before it show no sign.
    fn shown(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn julian(&self) -> i64 {
        day_number(self.year, self.month, self.date) + JULIAN_EPOCH
    }

    /// 0 is Sunday.
    fn day_of_week(&self) -> i64 {
        (self.julian() + 1).rem_euclid(7)
    }

    /// The year of the ISO week, and the Julian day with which that begins.
    fn iso_year(&self) -> (i64, i64) {
        let day = self.julian();
        let first =
            [self.year + 1, self.year].into_iter().map(|year| (year, first_of_iso_year(year)));
        let found = first.into_iter().find(|(_, first)| *first <= day);
        found.unwrap_or_else(|| (self.year - 1, first_of_iso_year(self.year - 1)))
    }
}

/// The Julian day on which the first ISO week of a year begins.
pub(crate) fn first_of_iso_year(year: i64) -> i64 {
    let fourth = day_number(year, 1, 4) + JULIAN_EPOCH;
    fourth - fourth.rem_euclid(7)
}

/// The text of a moment.
///
/// # Errors
/// An interval has no such field.
pub fn write(moment: &Moment, pattern: &Pattern) -> Result<String> {
    let mut out = String::with_capacity(pattern.parts.len() * 4);
    for part in &pattern.parts {
        match part {
            Part::Field(field) => write_field(moment, field, &mut out)?,
            Part::Separator(character) | Part::Space(character) | Part::Text(character) => {
                out.push(*character);
            }
        }
    }
    Ok(out)
}

fn of_dates_only(kind: Kind) -> bool {
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

fn write_field(moment: &Moment, field: &Field, out: &mut String) -> Result<()> {
    if moment.is_interval && of_dates_only(field.kind) {
        return Err(format_fault(format!("an interval has no field '{}'", field.name)));
    }
    // How wide a number is; a sign comes in addition.
    let padded = |value: i64, width: usize| -> Shown {
        let width = if field.fill { 0 } else { width + usize::from(value < 0) };
        Shown::Number(format!("{value:0width$}"))
    };
    // What is as wide as another value, which has the sign.
    let as_wide = |value: i64, width: usize, sign: i64| -> Shown {
        let width = if field.fill { 0 } else { width + usize::from(sign < 0) };
        Shown::Number(format!("{value:0width$}"))
    };
    let name = |name: &str, case: Case, width: usize| -> Shown {
        let width = if field.fill || field.local { 0 } else { width };
        Shown::Name(format!("{:width$}", case.of(name)))
    };
    let weekday = || DAYS[moment.day_of_week() as usize % 7];
    // Intervals have no months by name.
    let month = || MONTHS[(moment.month - 1).rem_euclid(12) as usize];
    let shown = match field.kind {
        Kind::Fixed => return Ok(()),
        Kind::Half { points, case } => {
            let after_noon = moment.hour % 24 >= 12;
            let text = match (points, after_noon) {
                (false, false) => "AM",
                (false, true) => "PM",
                (true, false) => "A.M.",
                (true, true) => "P.M.",
            };
            Shown::Name(case.of(text))
        }
        Kind::Era { points, case } => {
            let text = match (points, moment.year <= 0) {
                (false, false) => "AD",
                (false, true) => "BC",
                (true, false) => "A.D.",
                (true, true) => "B.C.",
            };
            Shown::Name(case.of(text))
        }
        Kind::Hour12 => {
            let hour = if moment.hour % 12 == 0 { 12 } else { moment.hour % 12 };
            as_wide(hour, 2, moment.hour)
        }
        Kind::Hour24 => padded(moment.hour, 2),
        Kind::Minute => padded(moment.minute, 2),
        Kind::Second => padded(moment.second, 2),
        Kind::Milliseconds => fraction(moment, 3),
        Kind::Microseconds => fraction(moment, 6),
        Kind::Fraction(digits) => fraction(moment, digits),
        Kind::SecondOfDay => {
            Shown::Number((moment.hour * 3_600 + moment.minute * 60 + moment.second).to_string())
        }
        Kind::Zone(case) => {
            Shown::Name(if moment.has_zone { case.of("UTC") } else { String::new() })
        }
        Kind::ZoneHour => Shown::Name("+00".to_string()),
        Kind::ZoneMinute => Shown::Name("00".to_string()),
        Kind::Offset => Shown::Name(if field.fill { "+0" } else { "+00" }.to_string()),
        Kind::MonthName(case) => name(month(), case, 9),
        Kind::MonthShort(case) => Shown::Name(case.of(&month()[..3])),
        Kind::Month => padded(moment.month, 2),
        Kind::Day(case) => name(weekday(), case, 9),
        Kind::DayShort(case) => Shown::Name(case.of(&weekday()[..3])),
        Kind::DayOfYear => as_wide(moment.day_of_year, 3, 0),
        Kind::IsoDayOfYear => as_wide(moment.julian() - moment.iso_year().1 + 1, 3, 0),
        Kind::DayOfMonth => as_wide(moment.date, 2, 0),
        Kind::DayOfWeek => Shown::Number((moment.day_of_week() + 1).to_string()),
        Kind::IsoDayOfWeek => Shown::Number(((moment.day_of_week() + 6) % 7 + 1).to_string()),
        Kind::Week => as_wide((moment.day_of_year - 1) / 7 + 1, 2, 0),
        Kind::IsoWeek => as_wide((moment.julian() - moment.iso_year().1) / 7 + 1, 2, 0),
        Kind::WeekOfMonth => Shown::Number(((moment.date - 1) / 7 + 1).to_string()),
        Kind::Quarter if moment.month == 0 => return Ok(()),
        Kind::Quarter => Shown::Number(((moment.month - 1) / 3 + 1).to_string()),
        Kind::Century => padded(century(moment), 2),
        Kind::Julian => Shown::Number(moment.julian().to_string()),
        Kind::Roman(_) if moment.month == 0 && moment.year == 0 => return Ok(()),
        Kind::Roman(case) => {
            // Months of an interval may be missing or negative: whole years show December or
            // January.
            let index = match moment.month {
                0 => {
                    if moment.year >= 0 {
                        11
                    } else {
                        0
                    }
                }
                1.. => moment.month - 1,
                _ => moment.month + 12,
            };
            let number = ROMAN_MONTHS[index.rem_euclid(12) as usize];
            let width = if field.fill { 0 } else { 4 };
            Shown::Name(format!("{:width$}", case.of(number)))
        }
        Kind::YearWithComma => {
            let year = moment.shown(moment.year);
            Shown::Number(format!("{},{:03}", year / 1_000, year % 1_000))
        }
        Kind::Year(digits) => year(moment.shown(moment.year), digits, field.fill, moment),
        Kind::IsoYear(digits) => {
            year(moment.shown(moment.iso_year().0), digits, field.fill, moment)
        }
    };
    match (shown, field.ordinal) {
        (Shown::Number(number), Some(case)) => {
            let _ = write!(out, "{number}{}", ordinal(&number, case));
        }
        (Shown::Number(text) | Shown::Name(text), _) => out.push_str(&text),
    }
    Ok(())
}

/// What a field shows: only numbers have the ending of an ordinal.
enum Shown {
    Number(String),
    Name(String),
}

fn fraction(moment: &Moment, digits: u32) -> Shown {
    let value = moment.microseconds / 10_i64.pow(6 - digits.min(6));
    let width = digits as usize;
    Shown::Number(format!("{value:0width$}"))
}

fn century(moment: &Moment) -> i64 {
    match (moment.is_interval, moment.year) {
        (true, year) => year / 100,
        (false, year @ 1..) => (year - 1) / 100 + 1,
        (false, year) => year / 100 - 1,
    }
}

/// The last digits of a year. Whether there is room for a sign depends on the year of the calendar.
fn year(shown: i64, digits: u32, fill: bool, moment: &Moment) -> Shown {
    let value = if digits < 4 { shown % 10_i64.pow(digits) } else { shown };
    let sign = usize::from(moment.shown(moment.year) < 0);
    let width = if fill || digits == 1 { 0 } else { digits as usize + sign };
    Shown::Number(format!("{value:0width$}"))
}

/// The ending of an ordinal number.
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
        write(&Moment::of_timestamp(value, true).unwrap(), &Pattern::parse(pattern)).unwrap()
    }

    #[test]
    fn timestamps_are_written_as_by_postgresql() {
        let day = day_number(2024, 1, 5) * DAY_MICROSECONDS;
        let moment = day + 47_045_123_456;
        for (pattern, expected) in [
            ("YYYY-MM-DD HH24:MI:SS.US", "2024-01-05 13:04:05.123456"),
            ("HH12:MI AM a.m. FMHH:MI", "01:04 PM p.m. 1:04"),
            ("FMDay, FMDDth FMMonth Y,YYY", "Friday, 5th January 2,024"),
            ("DAY|Day|dy|MON|mon", "FRIDAY   |Friday   |fri|JAN|jan"),
            ("IYYY-IW-ID IDDD WW W Q CC J RM", "2024-01-5 005 01 1 1 21 2460315 I   "),
            ("FF3 FF1 MS SSSSS TZ tz OF", "123 1 123 47045 UTC utc +00"),
        ] {
            assert_eq!(shown(moment, pattern), expected, "{pattern}");
        }
        assert_eq!(shown(day_number(-43, 3, 15) * DAY_MICROSECONDS, "FMYYYY BC CC"), "44 BC -01");
    }

    #[test]
    fn intervals_have_signs() {
        let interval = IntervalMonthDayNano::new(-14, -3, -3_723_004_000_000);
        let of = |pattern| write(&Moment::of_interval(interval), &Pattern::parse(pattern));
        assert_eq!(of("YYYY MM DD HH24:MI:SS MS").unwrap(), "-0001 -02 -3 -01:-02:-03 -04");
        assert!(of("Month").is_err());
    }
}
