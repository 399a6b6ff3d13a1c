//! Parses dates, times and timestamps in the formats that PostgreSQL accepts: ISO 8601, numbers
//! with the month first, month names, `epoch`, `infinity`, with BC, AM, PM and time zones.

use tessera_text::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH, civil, day_number};

use crate::parse::Failure;
use crate::temporal::clock::{checked, clock, microseconds, number, offset};
use crate::temporal::tokens::{Token, TokenKind, tokenize};
use crate::temporal::zones::{Zone, zone_named};

/// The result of parsing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DateTimeValue {
    Infinity,
    MinusInfinity,
    Finite {
        /// Days since 1970-01-01.
        day: Option<i64>,
        /// Microseconds of the day, up to 24:00.
        time: Option<i64>,
        zone: Option<Zone>,
    },
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTHS_LONG: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 18] = [
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
];

/// Whether a word is a month or a day of the week.
pub(super) fn is_calendar_word(word: &str) -> bool {
    month(word).is_some() || DAYS.contains(&word)
}

fn month(word: &str) -> Option<i64> {
    let place = |names: &[&str; 12]| names.iter().position(|name| *name == word);
    let found = place(&MONTHS).or_else(|| place(&MONTHS_LONG)).or((word == "sept").then_some(8));
    found.map(|index| index as i64 + 1)
}

/// Parses a date, time or timestamp.
pub(crate) fn read(text: &str) -> Result<DateTimeValue, Failure> {
    parse_fields(text, DateTimeParser::default())
}

/// Like [`read`], for a time of day: a plain number is a time.
pub(crate) fn read_time(text: &str) -> Result<DateTimeValue, Failure> {
    parse_fields(text, DateTimeParser { only_time: true, ..DateTimeParser::default() })
}

fn parse_fields(text: &str, mut state: DateTimeParser) -> Result<DateTimeValue, Failure> {
    let tokens = tokenize(text).ok_or(Failure::Invalid)?;
    for (index, token) in tokens.iter().enumerate() {
        state.token(token, tokens.get(index + 1))?;
    }
    if let Some(special) = state.special {
        return if tokens.len() == 1 { Ok(special) } else { Err(Failure::Invalid) };
    }
    state.finish()
}

#[derive(Debug, Default)]
struct DateTimeParser {
    special: Option<DateTimeValue>,
    /// Whether a number without separators is a time.
    only_time: bool,
    year: Option<i64>,
    month: Option<i64>,
    date: Option<i64>,
    /// The day of the year.
    day_of_year: Option<i64>,
    /// The day, if it was given as a whole.
    day: Option<i64>,
    /// Whether the year has one or two digits.
    short_year: bool,
    month_in_words: bool,
    before_christ: Option<bool>,
    afternoon: Option<bool>,
    weekday: bool,
    hours: Option<(i64, i64)>,
    zone: Option<Zone>,
    /// The meaning of the next number: `j` for a Julian day, `t` for a time.
    next_is: Option<char>,
}

fn put<T>(place: &mut Option<T>, value: T) -> Result<(), Failure> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Failure::Invalid),
    }
}

impl DateTimeParser {
    fn has_date(&self) -> bool {
        self.day.is_some()
            || (self.year.is_some() && self.month.is_some() && self.date.is_some())
            || (self.year.is_some() && self.day_of_year.is_some())
    }

    /// Whether nothing of a date or a time was read.
    fn is_empty(&self) -> bool {
        let has_part = self.year.is_some() || self.month.is_some() || self.date.is_some();
        !has_part && self.day.is_none() && self.hours.is_none()
    }

    fn token(&mut self, token: &Token, next: Option<&Token>) -> Result<(), Failure> {
        let text = token.text.as_str();
        match token.kind {
            // The only token of a time, such as `040506-08`.
            TokenKind::Date if self.only_time && next.is_none() && self.is_empty() => {
                self.time_with_zone(text)
            }
            TokenKind::Date => self.date_token(text),
            TokenKind::Time => {
                self.next_is = None;
                let (time, rest) = clock(text)?;
                if !rest.is_empty() {
                    return Err(Failure::Invalid);
                }
                put(&mut self.hours, time)
            }
            TokenKind::Signed => put(&mut self.zone, Zone::Fixed(offset(text)?)),
            TokenKind::Number => self.number_token(text),
            TokenKind::Special => match text {
                "-infinity" => put(&mut self.special, DateTimeValue::MinusInfinity),
                "+infinity" => put(&mut self.special, DateTimeValue::Infinity),
                _ => Err(Failure::Invalid),
            },
            TokenKind::Text => self.word(text, next),
        }
    }

    fn date_token(&mut self, text: &str) -> Result<(), Failure> {
        if self.next_is.take() == Some('j') {
            return self.julian(text);
        }
        let is_zone = self.only_time && text.starts_with(|c: char| c.is_ascii_alphabetic());
        if self.has_date() || (self.month.is_some() && self.date.is_some()) || is_zone {
            return self.time_with_zone(text);
        }
        // After a time, a date must be in words or plain digits.
        if self.hours.is_some() && !self.only_time {
            return Err(Failure::Invalid);
        }
        let parts: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|part| !part.is_empty())
            .collect();
        if parts.len() > 3 || parts.is_empty() {
            return Err(Failure::Invalid);
        }
        // Month names come first, because they determine the meaning of the numbers.
        for part in &parts {
            if part.starts_with(|c: char| c.is_ascii_alphabetic()) {
                let month = month(part).ok_or(Failure::Invalid)?;
                put(&mut self.month, month)?;
                self.month_in_words = true;
            }
        }
        for part in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            self.date_number(part)?;
        }
        if self.has_date() { Ok(()) } else { Err(Failure::Invalid) }
    }

    /// A time with an offset, such as `040506-08`, or a zone name.
    fn time_with_zone(&mut self, text: &str) -> Result<(), Failure> {
        match text.find('-') {
            Some(at) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                put(&mut self.zone, Zone::Fixed(offset(&text[at..])?))?;
                self.digits(&text[..at])
            }
            _ => put(&mut self.zone, zone_named(text).ok_or(Failure::ZoneName)?),
        }
    }

    /// A number in a date. Its length and the previous parts determine its meaning.
    fn date_number(&mut self, digits: &str) -> Result<(), Failure> {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Failure::Invalid);
        }
        let value = number(digits)?;
        let known = (self.year.is_some(), self.month.is_some(), self.date.is_some());
        if digits.len() == 3 && known == (true, false, false) && (1..=366).contains(&value) {
            return put(&mut self.day_of_year, value);
        }
        let is_long = digits.len() >= 3;
        let place = match known {
            (false, false, false) if is_long => DatePart::Year,
            (false, false, false) | (true, false, false) | (false, false, true) => DatePart::Month,
            (false, true, false) if self.month_in_words && is_long => DatePart::Year,
            (true, true, false) if self.month_in_words && is_long && self.short_year => {
                // The value parsed as the year is the day.
                self.date = self.year.take();
                DatePart::Year
            }
            (false, true, false) | (true, true, false) => DatePart::Date,
            (false, true, true) => DatePart::Year,
            _ => return Err(Failure::Invalid),
        };
        match place {
            DatePart::Year => {
                self.short_year = digits.len() <= 2;
                put(&mut self.year, value)
            }
            DatePart::Month => put(&mut self.month, value),
            DatePart::Date => put(&mut self.date, value),
        }
    }

    fn number_token(&mut self, text: &str) -> Result<(), Failure> {
        match self.next_is.take() {
            Some('j') => return self.julian(text),
            Some(_) => return self.digits(text),
            None => {}
        }
        if self.only_time {
            return self.digits(text);
        }
        let has_any = self.year.is_some() || self.month.is_some() || self.date.is_some();
        if text.contains('.') && !has_any && !self.has_date() {
            return self.date_token(text);
        }
        if text.contains('.') && self.has_date() {
            return self.digits(text);
        }
        if (text.len() >= 6 && !has_any) || (self.has_date() && text.len() > 3) {
            return self.digits(text);
        }
        if self.has_date() {
            return Err(Failure::Invalid);
        }
        self.date_number(text)
    }

    /// Digits without separators: a date or a time.
    fn digits(&mut self, text: &str) -> Result<(), Failure> {
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Failure::Invalid);
        }
        if fraction.is_none() && !self.only_time && !self.has_date() && whole.len() >= 6 {
            let (rest, date) = whole.split_at(whole.len() - 2);
            let (year, month) = rest.split_at(rest.len() - 2);
            self.short_year = year.len() == 2;
            put(&mut self.year, number(year)?)?;
            put(&mut self.month, number(month)?)?;
            return put(&mut self.date, number(date)?);
        }
        let pair = |at: usize| number(&whole[at..at + 2]);
        let micros = fraction.map_or(Ok(0), microseconds)?;
        let (hour, minute, second) = match whole.len() {
            6 => (pair(0)?, pair(2)?, pair(4)?),
            4 => (pair(0)?, pair(2)?, 0),
            _ => return Err(Failure::Invalid),
        };
        put(&mut self.hours, checked(hour, minute, second, micros)?)
    }

    fn julian(&mut self, text: &str) -> Result<(), Failure> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        put(&mut self.day, number(whole)? - JULIAN_EPOCH)?;
        if !fraction.is_empty() {
            let part: f64 = format!("0.{fraction}").parse().map_err(|_| Failure::Invalid)?;
            let time = (part * DAY_MICROSECONDS as f64).round() as i64;
            put(&mut self.hours, (time / 3_600_000_000, time % 3_600_000_000))?;
        }
        Ok(())
    }

    fn word(&mut self, word: &str, next: Option<&Token>) -> Result<(), Failure> {
        match word {
            "infinity" | "inf" => put(&mut self.special, DateTimeValue::Infinity),
            "epoch" => put(
                &mut self.special,
                DateTimeValue::Finite { day: Some(0), time: Some(0), zone: Some(Zone::Fixed(0)) },
            ),
            "allballs" => put(&mut self.hours, (0, 0)),
            "am" => put(&mut self.afternoon, false),
            "pm" => put(&mut self.afternoon, true),
            "ad" => put(&mut self.before_christ, false),
            "bc" => put(&mut self.before_christ, true),
            "at" | "on" => Ok(()),
            "j" | "jd" | "julian" => {
                self.next_is = Some('j');
                Ok(())
            }
            "t" => match self.has_date() || self.only_time {
                true => {
                    self.next_is = next.filter(|next| next.kind == TokenKind::Number).map(|_| 't');
                    Ok(())
                }
                false => Err(Failure::Invalid),
            },
            _ => {
                if let Some(month) = month(word) {
                    // The value parsed as the month is the day.
                    if self.month.is_some() && !self.month_in_words && self.date.is_none() {
                        self.date = self.month.take();
                    }
                    self.month_in_words = true;
                    return put(&mut self.month, month);
                }
                if DAYS.contains(&word) {
                    return match std::mem::replace(&mut self.weekday, true) {
                        false => Ok(()),
                        true => Err(Failure::Invalid),
                    };
                }
                put(&mut self.zone, zone_named(word).ok_or(Failure::Invalid)?)
            }
        }
    }

    fn finish(self) -> Result<DateTimeValue, Failure> {
        let day = match self.day {
            Some(day) => Some(day),
            None => self.civil_day()?,
        };
        let mut hours = self.hours;
        if let (Some((hour, _)), Some(afternoon)) = (&mut hours, self.afternoon) {
            *hour = match (*hour, afternoon) {
                (13.., _) => return Err(Failure::Range),
                (12, false) => 0,
                (1..=11, true) | (0, true) => *hour + 12,
                (hour, _) => hour,
            };
        }
        let time = hours.map(|(hour, rest)| hour * 3_600_000_000 + rest);
        if day.is_none() && time.is_none() {
            return Err(Failure::Invalid);
        }
        Ok(DateTimeValue::Finite { day, time, zone: self.zone })
    }

    fn civil_day(&self) -> Result<Option<i64>, Failure> {
        let year = match (self.year, self.before_christ) {
            (None, _) => None,
            (Some(..=0), Some(true)) => return Err(Failure::Range),
            (Some(year), Some(true)) => Some(1 - year),
            (Some(year @ ..70), _) if self.short_year => Some(year + 2_000),
            (Some(year), _) if self.short_year => Some(year + 1_900),
            (Some(..=0), _) => return Err(Failure::Range),
            (year, _) => year,
        };
        if self.month.is_some_and(|month| !(1..=12).contains(&month))
            || self.date.is_some_and(|date| !(1..=31).contains(&date))
        {
            return Err(Failure::Range);
        }
        match (year, self.month, self.date, self.day_of_year) {
            (Some(year), None, None, Some(days)) => {
                let first = day_number(year, 1, 1);
                match first + days - 1 < day_number(year + 1, 1, 1) {
                    true => Ok(Some(first + days - 1)),
                    false => Err(Failure::Range),
                }
            }
            (Some(year), Some(month), Some(date), None) => {
                let day = day_number(year, month, date);
                if civil(day) == (year, month, date) { Ok(Some(day)) } else { Err(Failure::Range) }
            }
            (None, None, None, None) => Ok(None),
            _ => Err(Failure::Invalid),
        }
    }
}

enum DatePart {
    Year,
    Month,
    Date,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_dates_are_postgresqls() {
        let day = |text: &str| match read(text) {
            Ok(DateTimeValue::Finite { day: Some(day), .. }) => civil(day),
            other => panic!("{text}: {other:?}"),
        };
        for text in [
            "1999-01-08",
            "January 8, 1999",
            "1/8/1999",
            "01/08/99",
            "1999-Jan-08",
            "Jan-08-1999",
            "08-Jan-1999",
            "19990108",
            "990108",
            "1999.008",
            "J2451187",
            "8 january 1999",
            "Friday, January 8 1999",
            "Jan 8 1999 AD",
            "1999-01-08T04:05:06.789Z",
            "1999-01-08 04:05 PM",
            "1999-01-08 040506-08",
            "1999-01-08 04:05:06 America/New_York",
        ] {
            assert_eq!(day(text), (1999, 1, 8), "{text}");
        }
        assert_eq!(day("0044-03-15 BC"), (-43, 3, 15));
        for text in
            ["", "soon", "2024-01", "10:00 10:00", "2024-01-01 2024-01-02", "1 2", "2024-01-01 x"]
        {
            assert_eq!(read(text).err(), Some(Failure::Invalid), "{text}");
        }
        for text in
            ["2023-02-29", "0000-01-01", "2024-13-01", "2024-01-01 25:00", "13/13/2024", "12:60"]
        {
            assert_eq!(read(text).err(), Some(Failure::Range), "{text}");
        }
    }

    #[test]
    fn times_are_rounded_to_microseconds() {
        let time = |text: &str| match read(text) {
            Ok(DateTimeValue::Finite { time: Some(time), .. }) => time,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(time("00:00:01.2345678"), 1_234_568);
        assert_eq!(time("23:59:59.9999999"), DAY_MICROSECONDS);
        assert_eq!(time("24:00"), DAY_MICROSECONDS);
        assert_eq!(time("12:30 AM"), 30 * 60_000_000);
        assert!(matches!(
            read_time("040506"),
            Ok(DateTimeValue::Finite { time: Some(14_706_000_000), .. })
        ));
        assert_eq!(read("2024-01-01 10:00+16").err(), Some(Failure::Zone));
    }
}
