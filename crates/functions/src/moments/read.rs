//! Text as dates, times and timestamps, in the forms that PostgreSQL reads: ISO 8601, numbers with
//! the month first, months in words, `epoch`, `infinity`, with BC, AM, PM and zones.

use tessera_text::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH, civil, day_number};

use super::tokens::{Field, Kind, fields};
use super::zones::{Zone, zone_named};
use crate::parse::Failure;

/// What a text tells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told {
    Infinity,
    MinusInfinity,
    Moment {
        /// Since 1970-01-01.
        day: Option<i64>,
        /// Microseconds of the day, up to those of 24:00.
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
pub(super) fn is_of_calendar(word: &str) -> bool {
    month(word).is_some() || DAYS.contains(&word)
}

fn month(word: &str) -> Option<i64> {
    let place = |names: &[&str; 12]| names.iter().position(|name| *name == word);
    let found = place(&MONTHS).or_else(|| place(&MONTHS_LONG)).or((word == "sept").then_some(8));
    found.map(|index| index as i64 + 1)
}

/// What a text tells; what is wrong with it else.
pub(crate) fn read(text: &str) -> Result<Told, Failure> {
    told(text, State::default())
}

/// The same for a time of day: digits alone are one.
pub(crate) fn read_time(text: &str) -> Result<Told, Failure> {
    told(text, State { only_time: true, ..State::default() })
}

fn told(text: &str, mut state: State) -> Result<Told, Failure> {
    let fields = fields(text).ok_or(Failure::Invalid)?;
    for (index, field) in fields.iter().enumerate() {
        state.field(field, fields.get(index + 1))?;
    }
    if let Some(special) = state.special {
        return if fields.len() == 1 { Ok(special) } else { Err(Failure::Invalid) };
    }
    state.finish()
}

#[derive(Debug, Default)]
struct State {
    special: Option<Told>,
    /// A number without separators is a time.
    only_time: bool,
    year: Option<i64>,
    month: Option<i64>,
    date: Option<i64>,
    /// The day of the year.
    day_of_year: Option<i64>,
    /// The day, found as a whole.
    day: Option<i64>,
    /// The year has one or two digits.
    short_year: bool,
    month_in_words: bool,
    before_christ: Option<bool>,
    afternoon: Option<bool>,
    weekday: bool,
    hours: Option<(i64, i64)>,
    zone: Option<Zone>,
    /// What the next number is: `j` a Julian day, `t` a time.
    next_is: Option<char>,
}

/// Digits as a number.
fn number(digits: &str) -> Result<i64, Failure> {
    match digits.parse::<i32>() {
        Ok(number) => Ok(number.into()),
        Err(_) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(Failure::Range)
        }
        Err(_) => Err(Failure::Invalid),
    }
}

fn put<T>(place: &mut Option<T>, value: T) -> Result<(), Failure> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Failure::Invalid),
    }
}

impl State {
    fn has_date(&self) -> bool {
        self.day.is_some()
            || (self.year.is_some() && self.month.is_some() && self.date.is_some())
            || (self.year.is_some() && self.day_of_year.is_some())
    }

    fn field(&mut self, field: &Field, next: Option<&Field>) -> Result<(), Failure> {
        let text = field.text.as_str();
        match field.kind {
            Kind::Date => self.date_field(text),
            Kind::Time => {
                self.next_is = None;
                let (time, rest) = clock(text)?;
                if !rest.is_empty() {
                    return Err(Failure::Invalid);
                }
                put(&mut self.hours, time)
            }
            Kind::Signed => put(&mut self.zone, Zone::Fixed(offset(text)?)),
            Kind::Number => self.number_field(text),
            Kind::Special => match text {
                "-infinity" => put(&mut self.special, Told::MinusInfinity),
                "+infinity" => put(&mut self.special, Told::Infinity),
                _ => Err(Failure::Invalid),
            },
            Kind::Text => self.word(text, next),
        }
    }

    fn date_field(&mut self, text: &str) -> Result<(), Failure> {
        if self.next_is.take() == Some('j') {
            return self.julian(text);
        }
        let is_zone = self.only_time && text.starts_with(|c: char| c.is_ascii_alphabetic());
        if self.has_date() || (self.month.is_some() && self.date.is_some()) || is_zone {
            // A time with the offset of a zone, as `040506-08`, or the name of a zone.
            return match text.find('-') {
                Some(at) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                    put(&mut self.zone, Zone::Fixed(offset(&text[at..])?))?;
                    self.digits(&text[..at])
                }
                _ => put(&mut self.zone, zone_named(text).ok_or(Failure::Invalid)?),
            };
        }
        // Behind a time only words are a date, or digits alone.
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
        // Months in words come first, so that numbers beside them are known.
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

    /// A number that is part of a date; which part, its length and what came before tell.
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
            (false, false, false) if is_long => Place::Year,
            (false, false, false) | (true, false, false) | (false, false, true) => Place::Month,
            (false, true, false) if self.month_in_words && is_long => Place::Year,
            (true, true, false) if self.month_in_words && is_long && self.short_year => {
                // What was taken for the year is the day.
                self.date = self.year.take();
                Place::Year
            }
            (false, true, false) | (true, true, false) => Place::Date,
            (false, true, true) => Place::Year,
            _ => return Err(Failure::Invalid),
        };
        match place {
            Place::Year => {
                self.short_year = digits.len() <= 2;
                put(&mut self.year, value)
            }
            Place::Month => put(&mut self.month, value),
            Place::Date => put(&mut self.date, value),
        }
    }

    fn number_field(&mut self, text: &str) -> Result<(), Failure> {
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
            return self.date_field(text);
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

    /// Digits without separators: a date, or a time.
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

    fn word(&mut self, word: &str, next: Option<&Field>) -> Result<(), Failure> {
        match word {
            "infinity" | "inf" => put(&mut self.special, Told::Infinity),
            "epoch" => put(
                &mut self.special,
                Told::Moment { day: Some(0), time: Some(0), zone: Some(Zone::Fixed(0)) },
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
                    self.next_is = next.filter(|next| next.kind == Kind::Number).map(|_| 't');
                    Ok(())
                }
                false => Err(Failure::Invalid),
            },
            _ => {
                if let Some(month) = month(word) {
                    // A day that was taken for the month is one.
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

    fn finish(self) -> Result<Told, Failure> {
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
        Ok(Told::Moment { day, time, zone: self.zone })
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

enum Place {
    Year,
    Month,
    Date,
}

/// Hours, and microseconds behind them, of `HH:MM[:SS[.fraction]]`; and what follows.
pub(crate) fn clock(text: &str) -> Result<((i64, i64), &str), Failure> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let end = digits(text);
    let hour = number(&text[..end])?;
    let rest = text[end..].strip_prefix(':').ok_or(Failure::Invalid)?;
    let end = digits(rest);
    let minute = number(&rest[..end])?;
    let mut rest = &rest[end..];
    let (mut second, mut micros) = (0, 0);
    if let Some(fraction) = rest.strip_prefix('.') {
        // Minutes and seconds.
        let end = 1 + digits(fraction);
        return Ok((checked(0, hour, minute, microseconds(&rest[..end])?)?, &rest[end..]));
    }
    if let Some(after) = rest.strip_prefix(':') {
        let end = digits(after);
        second = number(&after[..end])?;
        rest = &after[end..];
        if rest.starts_with('.') {
            let end = 1 + digits(&rest[1..]);
            micros = microseconds(&rest[..end])?;
            rest = &rest[end..];
        }
    }
    Ok((checked(hour, minute, second, micros)?, rest))
}

/// A time that there is, 24:00 and the leap second among them.
fn checked(hour: i64, minute: i64, second: i64, micros: i64) -> Result<(i64, i64), Failure> {
    let rest = (minute * 60 + second) * 1_000_000 + micros;
    let in_range = hour < 24 && minute < 60 && (second < 60 || (second == 60 && micros == 0))
        || (hour == 24 && rest == 0);
    if in_range { Ok((hour, rest)) } else { Err(Failure::Range) }
}

/// `.fraction` of a second in microseconds, rounded half to even as a double is.
pub(crate) fn microseconds(fraction: &str) -> Result<i64, Failure> {
    if fraction == "." {
        return Ok(0);
    }
    let part: f64 = format!("0{fraction}").parse().map_err(|_| Failure::Invalid)?;
    Ok((part * 1e6).round_ties_even() as i64)
}

/// `+HH`, `-HH:MM`, `+HHMM`, `+HH:MM:SS` in seconds.
fn offset(text: &str) -> Result<i64, Failure> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => return Err(Failure::Invalid),
    };
    let (hours, minutes, seconds) = match digits.split(':').collect::<Vec<_>>()[..] {
        [whole] if whole.len() > 2 && whole.is_ascii() => {
            let (hours, minutes) = whole.split_at(whole.len() - 2);
            (number(hours)?, number(minutes)?, 0)
        }
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return Err(Failure::Invalid),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Failure::Zone);
    }
    let seconds = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -seconds } else { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_dates_are_postgresqls() {
        let day = |text: &str| match read(text) {
            Ok(Told::Moment { day: Some(day), .. }) => civil(day),
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
            Ok(Told::Moment { time: Some(time), .. }) => time,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(time("00:00:01.2345678"), 1_234_568);
        assert_eq!(time("23:59:59.9999999"), DAY_MICROSECONDS);
        assert_eq!(time("24:00"), DAY_MICROSECONDS);
        assert_eq!(time("12:30 AM"), 30 * 60_000_000);
        assert!(matches!(read_time("040506"), Ok(Told::Moment { time: Some(14_706_000_000), .. })));
        assert_eq!(read("2024-01-01 10:00+16").err(), Some(Failure::Zone));
    }
}
