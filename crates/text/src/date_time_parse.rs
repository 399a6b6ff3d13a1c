//! Parsing of dates and times with a pattern: `to_date` and `to_timestamp`.

use tessera_types::{Error, Result, SqlState};

use crate::data_error;
use crate::date_time_fields::{ParsedDateTime, ParsedFields};
use crate::date_time_format::ROMAN_MONTHS;
use crate::date_time_pattern::{DateTimePattern, Field, Kind, Part, is_separator, is_space};
use crate::format_error;
use crate::names::{DAYS, MONTHS};

/// Parses a text.
///
/// # Errors
/// The text does not match the pattern, or its fields contradict each other or the calendar.
pub fn parse(text: &str, pattern: &DateTimePattern) -> Result<ParsedDateTime> {
    let fields =
        Reader { rest: text, before: None, fields: ParsedFields::default() }.read(pattern)?;
    fields.resolve(text)
}

/// The state of parsing a date and time.
struct Reader<'a> {
    rest: &'a str,
    /// The character before `rest`.
    before: Option<char>,
    fields: ParsedFields,
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

    fn read(mut self, pattern: &DateTimePattern) -> Result<ParsedFields> {
        let mut fixed = false;
        // The number of characters skipped beyond those of the pattern.
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
                // Any character matches a literal character of the pattern.
                Part::Separator(_) | Part::Space(_) | Part::Text(_) => self.skip(),
                Part::Field(field) => {
                    if let Some(convention) = field.kind.convention() {
                        match self.fields.convention {
                            Some(known) if known != convention => {
                                return Err(format_error(
                                    "invalid combination of date conventions",
                                ));
                            }
                            _ => self.fields.convention = Some(convention),
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
        Ok(self.fields)
    }

    fn field(&mut self, field: &Field, reads_all: bool, extra: i64) -> Result<()> {
        let name = field.name;
        macro_rules! number {
            ($target:ident, $width:expr) => {{
                let (value, length) = self.number(name, $width, reads_all)?;
                set(&mut self.fields.$target, value, name)?;
                length
            }};
        }
        match field.kind {
            Kind::Fixed => return Ok(()),
            Kind::Half { points, .. } => {
                let names: &[&str] = if points { &["a.m.", "p.m."] } else { &["am", "pm"] };
                let half = self.word(name, names)?;
                set(&mut self.fields.half, half as i64, name)?;
                self.fields.twelve_hours = true;
                return Ok(());
            }
            Kind::Era { points, .. } => {
                let names: &[&str] = if points { &["a.d.", "b.c."] } else { &["ad", "bc"] };
                let era = self.word(name, names)?;
                return set(&mut self.fields.era, era as i64, name);
            }
            Kind::MonthName(_) => {
                let month = self.word(name, &MONTHS)?;
                return set(&mut self.fields.month, month as i64 + 1, name);
            }
            Kind::MonthShort(_) => {
                let month = self.word(name, &MONTHS.map(|month| &month[..3]))?;
                return set(&mut self.fields.month, month as i64 + 1, name);
            }
            Kind::Day(_) | Kind::DayShort(_) => {
                let day = match field.kind {
                    Kind::Day(_) => self.word(name, &DAYS)?,
                    _ => self.word(name, &DAYS.map(|day| &day[..3]))?,
                };
                set(&mut self.fields.weekday, day as i64, name)?;
                self.fields.weekday += 1;
                return Ok(());
            }
            Kind::Roman(_) => {
                // Longer names precede their prefixes.
                let mut names = ROMAN_MONTHS;
                names.reverse();
                let month = 12 - self.word(name, &names)? as i64;
                return set(&mut self.fields.month, month, name);
            }
            Kind::Zone(_) | Kind::Offset => {
                return Err(Error::unsupported(format!(
                    "field '{name}' is supported only in to_char"
                )));
            }
            Kind::ZoneHour => {
                if self.rest.starts_with(['+', '-', ' ']) {
                    self.fields.zone_sign = if self.rest.starts_with('-') { -1 } else { 1 };
                    self.skip();
                } else {
                    // The sign may have been skipped as a separator.
                    self.fields.zone_sign =
                        if extra > 0 && self.before == Some('-') { -1 } else { 1 };
                }
                number!(zone_hour, 2);
                return Ok(());
            }
            Kind::ZoneMinute => {
                if self.fields.zone_sign == 0 {
                    self.fields.zone_sign = 1;
                }
                number!(zone_minute, 2);
                return Ok(());
            }
            Kind::Hour12 => {
                number!(hour, 2);
                self.fields.twelve_hours = true;
            }
            Kind::Hour24 => _ = number!(hour, 2),
            Kind::Minute => _ = number!(minute, 2),
            Kind::Second => _ = number!(second, 2),
            Kind::SecondOfDay => _ = number!(second_of_day, name.len()),
            Kind::Milliseconds => {
                let length = number!(milliseconds, 3);
                self.fields.milliseconds *= 10_i64.pow(3_usize.saturating_sub(length) as u32);
            }
            Kind::Microseconds | Kind::Fraction(_) => {
                let width = match field.kind {
                    Kind::Fraction(digits) => {
                        self.fields.digits = digits;
                        digits as usize
                    }
                    _ => 6,
                };
                let length = number!(microseconds, width);
                self.fields.microseconds *= 10_i64.pow(6_usize.saturating_sub(length) as u32);
            }
            Kind::Month => _ = number!(month, 2),
            Kind::DayOfYear | Kind::IsoDayOfYear => _ = number!(day_of_year, 3),
            Kind::DayOfMonth => _ = number!(date, 2),
            Kind::DayOfWeek => _ = number!(weekday, 1),
            Kind::IsoDayOfWeek => {
                number!(weekday, 1);
                // Convert to 1 for Sunday.
                self.fields.weekday += 1;
                if self.fields.weekday > 7 {
                    self.fields.weekday = 1;
                }
            }
            Kind::Week | Kind::IsoWeek => _ = number!(week, 2),
            // A quarter does not determine a day and is ignored.
            Kind::Quarter => _ = self.number(name, 1, reads_all)?,
            Kind::Century => _ = number!(century, 2),
            Kind::YearWithComma => {
                let year = self.year_with_comma()?;
                set(&mut self.fields.year, year, name)?;
                self.fields.year_digits = 4;
            }
            Kind::Year(digits) | Kind::IsoYear(digits) => {
                let length = number!(year, digits as usize);
                if digits < 4 && length < 4 {
                    self.fields.year = near_2020(self.fields.year);
                }
                self.fields.year_digits = digits;
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

    /// Reads one of the names in any case and returns its index.
    fn word(&mut self, field: &str, names: &[&str]) -> Result<usize> {
        let begins = |name: &&str| {
            let start = self.rest.as_bytes().get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        let Some(index) = names.iter().position(begins) else {
            let word: String = self.rest.chars().take_while(|c| !is_space(*c)).collect();
            return Err(format_error(format!("invalid value '{word}' for '{field}'")));
        };
        self.advance(names[index].len());
        Ok(index)
    }

    /// Reads an integer, of exactly `width` characters if another digit may follow. Returns it and
    /// the number of characters read.
    fn number(&mut self, field: &str, width: usize, reads_all: bool) -> Result<(i64, usize)> {
        let start = self.rest.len();
        self.skip_spaces();
        let given = self.rest;
        let invalid = |what: &str| {
            let shown: String = given.chars().take(width).collect();
            format_error(format!("invalid value '{shown}' for '{field}': {what}"))
        };
        let bytes = given.as_bytes();
        let available = &bytes[..bytes.len().min(width)];
        let digits = if reads_all { bytes } else { available };
        if !reads_all && available.len() < width {
            return Err(format_error(format!(
                "source string is too short for field '{field}', which needs {width} characters"
            )));
        }
        let length = length_of_integer(digits);
        if !reads_all && length > 0 && length < width {
            return Err(invalid("too few digits"));
        }
        if length == 0 {
            return Err(invalid("expected an integer"));
        }
        let value = given[..length].strip_prefix('+').unwrap_or(&given[..length]).parse::<i32>();
        let value = value.map_err(|_| {
            let message = format!("value for '{field}' in source string is out of range");
            data_error(message, SqlState::DATETIME_FIELD_OVERFLOW)
        })?;
        self.advance(length);
        Ok((value.into(), start - self.rest.len()))
    }

    fn year_with_comma(&mut self) -> Result<i64> {
        let invalid = || format_error("invalid input string for 'Y,YYY'");
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

/// Returns the number of leading bytes that form a sign and digits.
fn length_of_integer(bytes: &[u8]) -> usize {
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = bytes[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { sign + digits }
}

/// Sets a field, which must be unset or equal.
fn set(target: &mut i64, value: i64, field: &str) -> Result<()> {
    if *target != 0 && *target != value {
        return Err(format_error(format!("conflicting values for field '{field}'")));
    }
    *target = value;
    Ok(())
}

/// Expands a year of up to three digits to the nearest year around 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::civil;

    fn date(text: &str, pattern: &str) -> Option<(i64, i64, i64)> {
        let found = parse(text, &DateTimePattern::parse(pattern)).ok()?;
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
