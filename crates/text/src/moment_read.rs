//! `to_date` and `to_timestamp`: texts read by a pattern.

use tessera_types::{Error, Result, SqlState};

use crate::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH};
use crate::calendar::{civil, day_number};
use crate::fault;
use crate::format_fault;
use crate::moment_patterns::{Convention, Field, Kind, Part, Pattern, is_separator, is_space};
use crate::moment_write::{ROMAN_MONTHS, first_of_iso_year};
use crate::names::{DAYS, MONTHS};

/// The first day that there is: 4714-11-24 BC.
const FIRST_DAY: i64 = -JULIAN_EPOCH;
/// The day after the last: 5874898-01-01.
const END_DAY: i64 = 2_145_042_907;
/// Offsets of time zones have at most so many hours.
const OFFSET_HOURS_MAX: i64 = 15;
/// Microseconds from 1970 to 2000, from where PostgreSQL rounds.
const TO_2000: i64 = 946_684_800_000_000;

fn overflow(text: &str) -> Error {
    fault(
        format!("date/time field value out of range: '{text}'"),
        SqlState::DATETIME_FIELD_OVERFLOW,
    )
}

/// What has been read. A field that was not is 0, as is one that is.
#[derive(Debug, Default)]
struct Told {
    convention: Option<Convention>,
    hour: i64,
    minute: i64,
    second: i64,
    second_of_day: i64,
    milliseconds: i64,
    microseconds: i64,
    digits: u32,
    half: i64,
    twelve_hours: bool,
    weekday: i64,
    date: i64,
    day_of_year: i64,
    month: i64,
    year: i64,
    year_digits: u32,
    era: i64,
    century: i64,
    julian: i64,
    week: i64,
    week_of_month: i64,
    zone_sign: i64,
    zone_hour: i64,
    zone_minute: i64,
}

/// A date and time.
#[derive(Debug)]
pub struct Found {
    year: i64,
    month: i64,
    date: i64,
    microseconds: i64,
    /// How many digits of a second are kept, where the pattern says so.
    digits: u32,
    /// Seconds east of UTC.
    offset: i64,
}

impl Found {
    fn day(&self) -> Option<i64> {
        let day = day_number(self.year, self.month, self.date);
        (FIRST_DAY..END_DAY).contains(&day).then_some(day)
    }

    /// As days since 1970.
    ///
    /// # Errors
    /// The calendar has no such day.
    pub fn date(&self, text: &str) -> Result<i64> {
        self.day().ok_or_else(|| {
            fault(format!("date out of range: '{text}'"), SqlState::DATETIME_FIELD_OVERFLOW)
        })
    }

    /// As microseconds since 1970, in UTC.
    ///
    /// # Errors
    /// It is beyond the type.
    pub fn timestamp(&self) -> Result<i64> {
        let out_of_range = || fault("timestamp out of range", SqlState::DATETIME_FIELD_OVERFLOW);
        let day = self.day().ok_or_else(out_of_range)?;
        let time = self.microseconds - self.offset * 1_000_000;
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

/// Reads a text.
///
/// # Errors
/// It does not fit the pattern, or its fields contradict each other or the calendar.
pub fn read(text: &str, pattern: &Pattern) -> Result<Found> {
    let told = Reader { rest: text, before: None, told: Told::default() }.read(pattern)?;
    told.found(text)
}

struct Reader<'a> {
    rest: &'a str,
    /// The character before `rest`.
    before: Option<char>,
    told: Told,
}

impl Reader<'_> {
    fn skip(&mut self) {
        let mut characters = self.rest.chars();
        self.before = characters.next().or(self.before);
        self.rest = characters.as_str();
    }

    fn skip_spaces(&mut self) -> i64 {
        let mut skipped = 0;
        while self.rest.starts_with(is_space) {
            self.skip();
            skipped += 1;
        }
        skipped
    }

    fn advance(&mut self, bytes: usize) {
        self.before = self.rest[..bytes].chars().next_back().or(self.before);
        self.rest = &self.rest[bytes..];
    }

    fn read(mut self, pattern: &Pattern) -> Result<Told> {
        let mut fixed = false;
        // How many more characters were skipped than the pattern has.
        let mut extra = 0;
        for (index, part) in pattern.parts.iter().enumerate() {
            if self.rest.is_empty() {
                break;
            }
            let is_fixed = matches!(part, Part::Field(Field { kind: Kind::Fixed, .. }));
            if !fixed && !is_fixed && (index == 0 || matches!(part, Part::Field(_))) {
                extra += self.skip_spaces();
            }
            match part {
                Part::Separator(_) | Part::Space(_) if !fixed => {
                    extra -= 1;
                    if self.rest.starts_with(|c| is_space(c) || is_separator(c)) {
                        self.skip();
                        extra += 1;
                    }
                }
                Part::Text(_) if !fixed && extra > 0 => extra -= 1,
                // It need not be the pattern's character.
                Part::Separator(_) | Part::Space(_) | Part::Text(_) => self.skip(),
                Part::Field(field) => {
                    if let Some(convention) = field.kind.convention() {
                        match self.told.convention {
                            Some(known) if known != convention => {
                                return Err(format_fault(
                                    "invalid combination of date conventions",
                                ));
                            }
                            _ => self.told.convention = Some(convention),
                        }
                    }
                    fixed |= is_fixed;
                    let reads_all = field.fill || pattern.ends_at_separator(index);
                    self.field(field, reads_all, extra)?;
                    if !fixed {
                        extra = self.skip_spaces();
                    }
                }
            }
        }
        Ok(self.told)
    }

    fn field(&mut self, field: &Field, reads_all: bool, extra: i64) -> Result<()> {
        let name = field.name;
        macro_rules! number {
            ($target:ident, $width:expr) => {{
                let (value, length) = self.number(name, $width, reads_all)?;
                set(&mut self.told.$target, value, name)?;
                length
            }};
        }
        match field.kind {
            Kind::Fixed => return Ok(()),
            Kind::Half { points, .. } => {
                let names: &[&str] = if points { &["a.m.", "p.m."] } else { &["am", "pm"] };
                let half = self.word(name, names)?;
                set(&mut self.told.half, half as i64, name)?;
                self.told.twelve_hours = true;
                return Ok(());
            }
            Kind::Era { points, .. } => {
                let names: &[&str] = if points { &["a.d.", "b.c."] } else { &["ad", "bc"] };
                let era = self.word(name, names)?;
                return set(&mut self.told.era, era as i64, name);
            }
            Kind::MonthName(_) => {
                let month = self.word(name, &MONTHS)?;
                return set(&mut self.told.month, month as i64 + 1, name);
            }
            Kind::MonthShort(_) => {
                let month = self.word(name, &MONTHS.map(|month| &month[..3]))?;
                return set(&mut self.told.month, month as i64 + 1, name);
            }
            Kind::Day(_) | Kind::DayShort(_) => {
                let day = match field.kind {
                    Kind::Day(_) => self.word(name, &DAYS)?,
                    _ => self.word(name, &DAYS.map(|day| &day[..3]))?,
                };
                set(&mut self.told.weekday, day as i64, name)?;
                self.told.weekday += 1;
                return Ok(());
            }
            Kind::Roman(_) => {
                // Longer names stand before those that they begin with.
                let mut names = ROMAN_MONTHS;
                names.reverse();
                let month = 12 - self.word(name, &names)? as i64;
                return set(&mut self.told.month, month, name);
            }
            Kind::Zone(_) | Kind::Offset => {
                return Err(Error::unsupported(format!("the field '{name}' is only for to_char")));
            }
            Kind::ZoneHour => {
                if self.rest.starts_with(['+', '-', ' ']) {
                    self.told.zone_sign = if self.rest.starts_with('-') { -1 } else { 1 };
                    self.skip();
                } else {
                    // The sign may have been taken for a separator.
                    self.told.zone_sign =
                        if extra > 0 && self.before == Some('-') { -1 } else { 1 };
                }
                number!(zone_hour, 2);
                return Ok(());
            }
            Kind::ZoneMinute => {
                if self.told.zone_sign == 0 {
                    self.told.zone_sign = 1;
                }
                number!(zone_minute, 2);
                return Ok(());
            }
            Kind::Hour12 => {
                number!(hour, 2);
                self.told.twelve_hours = true;
            }
            Kind::Hour24 => _ = number!(hour, 2),
            Kind::Minute => _ = number!(minute, 2),
            Kind::Second => _ = number!(second, 2),
            Kind::SecondOfDay => _ = number!(second_of_day, name.len()),
            Kind::Milliseconds => {
                let length = number!(milliseconds, 3);
                self.told.milliseconds *= 10_i64.pow(3_usize.saturating_sub(length) as u32);
            }
            Kind::Microseconds | Kind::Fraction(_) => {
                let width = match field.kind {
                    Kind::Fraction(digits) => {
                        self.told.digits = digits;
                        digits as usize
                    }
                    _ => 6,
                };
                let length = number!(microseconds, width);
                self.told.microseconds *= 10_i64.pow(6_usize.saturating_sub(length) as u32);
            }
            Kind::Month => _ = number!(month, 2),
            Kind::DayOfYear | Kind::IsoDayOfYear => _ = number!(day_of_year, 3),
            Kind::DayOfMonth => _ = number!(date, 2),
            Kind::DayOfWeek => _ = number!(weekday, 1),
            Kind::IsoDayOfWeek => {
                number!(weekday, 1);
                // Sunday is 1.
                self.told.weekday += 1;
                if self.told.weekday > 7 {
                    self.told.weekday = 1;
                }
            }
            Kind::Week | Kind::IsoWeek => _ = number!(week, 2),
            // Which day of a quarter is meant cannot be known.
            Kind::Quarter => _ = self.number(name, 1, reads_all)?,
            Kind::Century => _ = number!(century, 2),
            Kind::YearWithComma => {
                let year = self.year_with_comma()?;
                set(&mut self.told.year, year, name)?;
                self.told.year_digits = 4;
            }
            Kind::Year(digits) | Kind::IsoYear(digits) => {
                let length = number!(year, digits as usize);
                if digits < 4 && length < 4 {
                    self.told.year = near_2020(self.told.year);
                }
                self.told.year_digits = digits;
            }
            Kind::WeekOfMonth => _ = number!(week_of_month, 1),
            Kind::Julian => _ = number!(julian, 1),
        }
        if field.ordinal.is_some() {
            self.skip();
            self.skip();
        }
        Ok(())
    }

    /// Which of the names comes next, whatever its case.
    fn word(&mut self, field: &str, names: &[&str]) -> Result<usize> {
        let begins = |name: &&str| {
            let start = self.rest.as_bytes().get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        let Some(index) = names.iter().position(begins) else {
            let word: String = self.rest.chars().take_while(|c| !is_space(*c)).collect();
            return Err(format_fault(format!("invalid value '{word}' for '{field}'")));
        };
        self.advance(names[index].len());
        Ok(index)
    }

    /// A whole number, of exactly `width` characters where another digit may follow, and how many
    /// characters were read.
    fn number(&mut self, field: &str, width: usize, reads_all: bool) -> Result<(i64, usize)> {
        let start = self.rest.len();
        self.skip_spaces();
        let given = self.rest;
        let invalid = |what: &str| {
            let shown: String = given.chars().take(width).collect();
            format_fault(format!("invalid value '{shown}' for '{field}': {what}"))
        };
        let bytes = given.as_bytes();
        let available = &bytes[..bytes.len().min(width)];
        let digits = if reads_all { bytes } else { available };
        if !reads_all && available.len() < width {
            return Err(format_fault(format!(
                "source string too short for the field '{field}': it needs {width} characters"
            )));
        }
        let length = length_of_integer(digits);
        if !reads_all && length > 0 && length < width {
            return Err(invalid("too few digits"));
        }
        if length == 0 {
            return Err(invalid("a whole number is needed"));
        }
        let value = given[..length].strip_prefix('+').unwrap_or(&given[..length]).parse::<i32>();
        let value = value.map_err(|_| {
            let message = format!("value for '{field}' in source string is out of range");
            fault(message, SqlState::DATETIME_FIELD_OVERFLOW)
        })?;
        self.advance(length);
        Ok((value.into(), start - self.rest.len()))
    }

    fn year_with_comma(&mut self) -> Result<i64> {
        let invalid = || format_fault("invalid input string for 'Y,YYY'");
        self.skip_spaces();
        let thousands = length_of_integer(self.rest.as_bytes());
        let (thousands, behind) = self.rest.split_at(thousands);
        let millennia: i64 = thousands.trim_start_matches('+').parse().map_err(|_| invalid())?;
        let years = behind.strip_prefix(',').ok_or_else(invalid)?.trim_start_matches(is_space);
        let length = length_of_integer(&years.as_bytes()[..years.len().min(3)]);
        let value: i64 = years[..length].trim_start_matches('+').parse().map_err(|_| invalid())?;
        self.advance(self.rest.len() - years.len() + length);
        millennia.checked_mul(1_000).and_then(|year| year.checked_add(value)).ok_or_else(invalid)
    }
}

/// How many bytes are a sign and digits.
fn length_of_integer(bytes: &[u8]) -> usize {
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = bytes[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { sign + digits }
}

fn set(target: &mut i64, value: i64, field: &str) -> Result<()> {
    if *target != 0 && *target != value {
        return Err(format_fault(format!("conflicting values for the field '{field}'")));
    }
    *target = value;
    Ok(())
}

/// The year near 2020 that a year of up to three digits means.
fn near_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Told {
    fn time(&self) -> Result<(i64, i64, i64)> {
        let mut time = match self.second_of_day {
            0 => (0, 0, 0),
            all => (all / 3_600, all % 3_600 / 60, all % 60),
        };
        let or = |value: i64, other: i64| if value == 0 { other } else { value };
        time = (or(self.hour, time.0), or(self.minute, time.1), or(self.second, time.2));
        if self.twelve_hours {
            if !(1..=12).contains(&time.0) {
                return Err(format_fault(format!(
                    "hour '{}' is invalid for the 12-hour clock",
                    time.0
                )));
            }
            time.0 = time.0 % 12 + if self.half == 1 { 12 } else { 0 };
        }
        Ok(time)
    }

    /// The year, of which 0 is the one before 1; none where nothing tells it.
    fn year(&self) -> Option<i64> {
        let century = if self.era == 1 { -self.century } else { self.century };
        if self.year == 0 {
            // The first year of a century.
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

    fn found(mut self, text: &str) -> Result<Found> {
        let (hour, minute, second) = self.time()?;
        let told_year = self.year();
        let (mut year, mut month, mut date) = (told_year.unwrap_or(0), 1, 1);
        let (mut has_year, mut has_month, mut has_date) = (told_year.is_some(), false, false);
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
                return Err(format_fault("cannot calculate day of year without year information"));
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
            return Err(fault(
                format!("time zone displacement out of range: '{text}'"),
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
            ));
        }
        Ok(Found {
            year,
            month,
            date,
            microseconds: ((hour * 60 + minute) * 60 + second) * 1_000_000 + microseconds,
            digits: self.digits,
            offset: self.zone_sign * (self.zone_hour * 60 + self.zone_minute) * 60,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str, pattern: &str) -> Option<(i64, i64, i64)> {
        let found = read(text, &Pattern::parse(pattern)).ok()?;
        found.date(text).ok().map(civil)
    }

    #[test]
    fn dates_are_read_as_by_postgresql() {
        for (text, pattern, expected) in [
            ("2024-01-05", "YYYY-MM-DD", (2024, 1, 5)),
            ("05/01/2024", "DD/MM/YYYY", (2024, 1, 5)),
            ("20240105", "YYYYMMDD", (2024, 1, 5)),
            ("  5 january 24", "DD Month YY", (2024, 1, 5)),
            ("2024 366", "YYYY DDD", (2024, 12, 31)),
            ("2024-01-5", "IYYY-IW-ID", (2024, 1, 5)),
            ("44-03-15 BC", "YYYY-MM-DD BC", (-43, 3, 15)),
            ("XII 1999", "RM YYYY", (1999, 12, 1)),
            ("5th 2024", "DDth YYYY", (2024, 1, 5)),
        ] {
            assert_eq!(date(text, pattern), Some(expected), "'{text}' '{pattern}'");
        }
        for (text, pattern) in
            [("2024-02-30", "YYYY-MM-DD"), ("x", "YYYY"), ("2024 1", "YYYY IW"), ("5 13", "MM MM")]
        {
            assert_eq!(date(text, pattern), None, "'{text}' '{pattern}'");
        }
    }
}
