//! Resolution of the fields that were read from a text into a date and time.

use tessera_types::{Error, Result, SqlState};

use crate::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH, civil, day_number};
use crate::date_time_format::first_of_iso_year;
use crate::date_time_pattern::Convention;
use crate::{data_error, format_error};

/// The first supported day: 4714-11-24 BC.
const FIRST_DAY: i64 = -JULIAN_EPOCH;
/// The day after the last supported day: 5874898-01-01.
const END_DAY: i64 = 2_145_042_907;
/// The maximum offset of a time zone in hours.
const OFFSET_HOURS_MAX: i64 = 15;
/// Microseconds from 1970 to 2000, the origin of PostgreSQL's rounding.
const TO_2000: i64 = 946_684_800_000_000;

fn overflow(text: &str) -> Error {
    data_error(
        format!("date/time field value out of range: '{text}'"),
        SqlState::DATETIME_FIELD_OVERFLOW,
    )
}

/// The field values read from a text. 0 means a missing field or the value 0.
#[derive(Debug, Default)]
pub(crate) struct ParsedFields {
    pub(crate) convention: Option<Convention>,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) second_of_day: i64,
    pub(crate) milliseconds: i64,
    pub(crate) microseconds: i64,
    pub(crate) digits: u32,
    pub(crate) half: i64,
    pub(crate) twelve_hours: bool,
    pub(crate) weekday: i64,
    pub(crate) date: i64,
    pub(crate) day_of_year: i64,
    pub(crate) month: i64,
    pub(crate) year: i64,
    pub(crate) year_digits: u32,
    pub(crate) era: i64,
    pub(crate) century: i64,
    pub(crate) julian: i64,
    pub(crate) week: i64,
    pub(crate) week_of_month: i64,
    pub(crate) zone_sign: i64,
    pub(crate) zone_hour: i64,
    pub(crate) zone_minute: i64,
}

/// A parsed date and time.
#[derive(Debug)]
pub struct ParsedDateTime {
    year: i64,
    month: i64,
    date: i64,
    microseconds: i64,
    /// The number of fractional digits of a second to keep, if the pattern has one.
    digits: u32,
    /// Seconds east of UTC, if the text has an offset.
    offset: Option<i64>,
}

impl ParsedDateTime {
    fn day(&self) -> Option<i64> {
        let day = day_number(self.year, self.month, self.date);
        (FIRST_DAY..END_DAY).contains(&day).then_some(day)
    }

    /// Returns the date in days since 1970.
    ///
    /// # Errors
    /// The day is out of range.
    pub fn date(&self, text: &str) -> Result<i64> {
        self.day().ok_or_else(|| {
            data_error(format!("date out of range: '{text}'"), SqlState::DATETIME_FIELD_OVERFLOW)
        })
    }

    /// Returns the timestamp in microseconds since 1970, in UTC. `offset_in` is the offset from UTC
    /// in seconds at a local time in seconds, for a text without an offset.
    ///
    /// # Errors
    /// The timestamp is out of range.
    pub fn timestamp(&self, offset_in: impl Fn(i64) -> i64) -> Result<i64> {
        let out_of_range =
            || data_error("timestamp out of range", SqlState::DATETIME_FIELD_OVERFLOW);
        let day = self.day().ok_or_else(out_of_range)?;
        let local = day.saturating_mul(86_400).saturating_add(self.microseconds / 1_000_000);
        let offset = self.offset.unwrap_or_else(|| offset_in(local));
        let time = self.microseconds - offset * 1_000_000;
        let moment = day.checked_mul(DAY_MICROSECONDS).and_then(|start| start.checked_add(time));
        let mut moment =
            moment.filter(|moment| *moment >= FIRST_DAY * DAY_MICROSECONDS && *moment != i64::MAX);
        if (1..6).contains(&self.digits) {
            let unit = 10_i64.pow(6 - self.digits);
            moment = moment.and_then(|moment| {
                let since = moment.checked_sub(TO_2000)?;
                let rounded = (since.checked_abs()?.checked_add(unit / 2)? / unit) * unit;
                (rounded * since.signum()).checked_add(TO_2000)
            });
        }
        moment.ok_or_else(out_of_range)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl ParsedFields {
    fn time(&self) -> Result<(i64, i64, i64)> {
        let mut time = match self.second_of_day {
            0 => (0, 0, 0),
            all => (all / 3_600, all % 3_600 / 60, all % 60),
        };
        let or = |value: i64, other: i64| if value == 0 { other } else { value };
        time = (or(self.hour, time.0), or(self.minute, time.1), or(self.second, time.2));
        if self.twelve_hours {
            if !(1..=12).contains(&time.0) {
                return Err(format_error(format!(
                    "hour '{}' is invalid for the 12-hour clock",
                    time.0
                )));
            }
            time.0 = time.0 % 12 + if self.half == 1 { 12 } else { 0 };
        }
        Ok(time)
    }

    /// Returns the year, where 0 is the year before 1; `None` if no field determines it.
    fn year(&self) -> Option<i64> {
        let century = if self.era == 1 { -self.century } else { self.century };
        if self.year == 0 {
            // A century alone means its first year.
            return (self.century != 0).then_some(if century >= 0 {
                (century - 1) * 100 + 1
            } else {
                century * 100 + 1
            });
        }
        if self.century != 0 && self.year_digits <= 2 {
            let year = self.year % 100;
            return Some(match (year, century >= 0) {
                (0, true) => century * 100,
                (0, false) => century * 100 + 1,
                (_, true) => year + (century - 1) * 100,
                (_, false) => (century + 1) * 100 - year + 1,
            });
        }
        let year = if self.era == 1 { -self.year } else { self.year };
        Some(if year < 0 { year + 1 } else { year })
    }

    /// Checks the fields and combines them.
    pub(crate) fn resolve(mut self, text: &str) -> Result<ParsedDateTime> {
        let (hour, minute, second) = self.time()?;
        let field_year = self.year();
        let (mut year, mut month, mut date) = (field_year.unwrap_or(0), 1, 1);
        let (mut has_year, mut has_month, mut has_date) = (field_year.is_some(), false, false);
        if self.julian != 0 {
            (year, month, date) = civil(self.julian - JULIAN_EPOCH);
            (has_year, has_month, has_date) = (true, true, true);
        }
        let is_iso = self.convention == Some(Convention::IsoWeek);
        if self.week != 0 && is_iso {
            let monday = first_of_iso_year(year) + (self.week - 1) * 7;
            // Sunday, which is 1, ends the week.
            let day = match self.weekday {
                0 => monday,
                2.. => monday + self.weekday - 2,
                _ => monday + 6,
            };
            (year, month, date) = civil(day - JULIAN_EPOCH);
            (has_year, has_month, has_date) = (true, true, true);
        } else if self.week != 0 {
            self.day_of_year = (self.week - 1) * 7 + 1;
        }
        if self.week_of_month != 0 {
            self.date = (self.week_of_month - 1) * 7 + 1;
        }
        if self.date != 0 {
            (date, has_date) = (self.date, true);
        }
        if self.month != 0 {
            (month, has_month) = (self.month, true);
        }
        if self.day_of_year != 0 && (month <= 1 || date <= 1) {
            if year == 0 && self.era == 0 {
                return Err(format_error("cannot calculate day of year without year information"));
            }
            if is_iso {
                let day = first_of_iso_year(year) + self.day_of_year - 1;
                (year, month, date) = civil(day - JULIAN_EPOCH);
                (has_year, has_month, has_date) = (true, true, true);
            } else {
                let before = |month: i64| day_number(year, month, 1) - day_number(year, 1, 1);
                let ends = |month: i64| {
                    if month == 12 { 365 + i64::from(is_leap(year)) } else { before(month + 1) }
                };
                let found = (1..=12).find(|month| self.day_of_year <= ends(*month)).unwrap_or(13);
                if month <= 1 {
                    month = found;
                }
                if date <= 1 {
                    date = self.day_of_year - if found == 13 { ends(12) } else { before(found) };
                }
                (has_month, has_date) = (true, true);
            }
        }
        let days = |month: i64| match month {
            2 => 28 + i64::from(is_leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let in_calendar = (!has_month || (1..=12).contains(&month))
            && (!has_date || (1..=31).contains(&date))
            && (!(has_year && has_month && has_date) || date <= days(month));
        let microseconds = self.milliseconds * 1_000 + self.microseconds;
        let in_day = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..1_000_000).contains(&microseconds);
        if !in_calendar || !in_day {
            return Err(overflow(text));
        }
        if self.zone_sign != 0
            && !((0..=OFFSET_HOURS_MAX).contains(&self.zone_hour)
                && (0..60).contains(&self.zone_minute))
        {
            return Err(data_error(
                format!("time zone displacement out of range: '{text}'"),
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
            ));
        }
        Ok(ParsedDateTime {
            year,
            month,
            date,
            microseconds: ((hour * 60 + minute) * 60 + second) * 1_000_000 + microseconds,
            digits: self.digits,
            offset: (self.zone_sign != 0)
                .then(|| self.zone_sign * (self.zone_hour * 60 + self.zone_minute) * 60),
        })
    }
}
