//! Text as intervals.

use arrow::datatypes::IntervalMonthDayNano;

use super::parse::Failure;

/// The part of an interval that a unit counts in.
#[derive(Clone, Copy)]
enum Part {
    Months,
    Days,
    Nanoseconds,
}

/// The part a unit counts in, and how many of it one unit is.
fn unit(name: &str) -> Option<(Part, f64)> {
    Some(match name.to_ascii_lowercase().as_str() {
        "century" | "centuries" => (Part::Months, 1_200.0),
        "decade" | "decades" => (Part::Months, 120.0),
        "year" | "years" | "y" | "yr" | "yrs" => (Part::Months, 12.0),
        "quarter" | "quarters" => (Part::Months, 3.0),
        "month" | "months" | "mon" | "mons" => (Part::Months, 1.0),
        "week" | "weeks" | "w" => (Part::Days, 7.0),
        "day" | "days" | "d" => (Part::Days, 1.0),
        "hour" | "hours" | "h" | "hr" | "hrs" => (Part::Nanoseconds, 3_600e9),
        "minute" | "minutes" | "m" | "min" | "mins" => (Part::Nanoseconds, 60e9),
        "second" | "seconds" | "s" | "sec" | "secs" => (Part::Nanoseconds, 1e9),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => (Part::Nanoseconds, 1e6),
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => (Part::Nanoseconds, 1e3),
        "nanosecond" | "nanoseconds" | "ns" => (Part::Nanoseconds, 1.0),
        _ => return None,
    })
}

/// The parts of an interval, whole but for the last.
#[derive(Default)]
struct Sum {
    months: f64,
    days: f64,
    nanoseconds: f64,
}

impl Sum {
    /// Adds so many units. Fractions go to the next smaller part, a month having 30 days.
    fn add(&mut self, amount: f64, unit: (Part, f64)) {
        let amount = amount * unit.1;
        match unit.0 {
            Part::Months => {
                self.months += amount.trunc();
                self.add(amount.fract() * 30.0, (Part::Days, 1.0));
            }
            Part::Days => {
                self.days += amount.trunc();
                self.nanoseconds += amount.fract() * 86_400e9;
            }
            Part::Nanoseconds => self.nanoseconds += amount,
        }
    }

    /// Adds a time of day, `[-]HH:MM[:SS[.fraction]]`.
    fn add_clock(&mut self, text: &str) -> Result<(), Failure> {
        let negative = text.strip_prefix('-');
        let clock = negative.or(text.strip_prefix('+')).unwrap_or(text);
        let sign = if negative.is_some() { -1.0 } else { 1.0 };
        let mut unit = 3_600e9;
        for part in clock.split(':') {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if unit < 1e9 || part.is_empty() || !digits {
                return Err(Failure::Invalid);
            }
            let amount: f64 = part.parse().map_err(|_| Failure::Invalid)?;
            self.add(sign * amount, (Part::Nanoseconds, unit));
            unit /= 60.0;
        }
        Ok(())
    }
}

/// Amounts with units and a time, in any order: `1 year -2 months 3 days 04:05:06.5`; with `ago` at the end, negated. A
/// number alone counts seconds.
pub(crate) fn interval(text: &str) -> Result<IntervalMonthDayNano, Failure> {
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ago = words.len() > 1 && words.last() == Some(&"ago");
    words.truncate(words.len() - usize::from(ago));
    if words.is_empty() {
        return Err(Failure::Invalid);
    }
    let mut sum = Sum::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word.contains(':') {
            sum.add_clock(word)?;
            continue;
        }
        let end = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        let (amount, attached) = word.split_at(end);
        let amount: f64 = amount.parse().map_err(|_| Failure::Invalid)?;
        let name = if attached.is_empty() { words.next().unwrap_or("s") } else { attached };
        sum.add(amount, unit(name).ok_or(Failure::Invalid)?);
    }
    let sign = if ago { -1.0 } else { 1.0 };
    let whole = |value: f64| match value.abs() <= f64::from(i32::MAX) {
        true => Ok((sign * value) as i32),
        false => Err(Failure::Range),
    };
    if sum.nanoseconds.abs() >= 9.2e18 {
        return Err(Failure::Range);
    }
    let nanoseconds = (sign * sum.nanoseconds).round() as i64;
    Ok(IntervalMonthDayNano::new(whole(sum.months)?, whole(sum.days)?, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read() {
        for (text, months, days, nanos) in [
            ("1 year 2 months 3 days 04:05:06.5", 14, 3, 14_706_500_000_000),
            ("1y -2mons", 10, 0, 0),
            ("1.5 months", 1, 15, 0),
            ("1.5 days", 0, 1, 43_200_000_000_000),
            ("2 weeks", 0, 14, 0),
            ("90", 0, 0, 90_000_000_000),
            ("-01:30", 0, 0, -5_400_000_000_000),
            ("1 day ago", 0, -1, 0),
            ("250 ms", 0, 0, 250_000_000),
        ] {
            assert_eq!(interval(text), Ok(IntervalMonthDayNano::new(months, days, nanos)), "{text}");
        }
        for text in ["", "soon", "1 parsec", "1:2:3:4", "days", "1 day 2:x", "1e99 days", "é"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
