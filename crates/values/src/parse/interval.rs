//! Parses intervals in the formats that PostgreSQL accepts: amounts with units, `1-2` for years and
//! months, a time, `ago`, and ISO 8601 durations such as `P1Y2M3DT4H5M6S`. Quarters and nanoseconds
//! are DuckDB's.

use arrow::datatypes::IntervalMonthDayNano;

use crate::parse::Failure;
use crate::parse::unit::Unit;
use crate::temporal::clock::{clock, microseconds};
use crate::temporal::tokens::{TokenKind, tokenize};

const DAY_NANOS: i128 = 86_400_000_000_000;

/// Accumulates the parts of an interval.
#[derive(Debug, Default)]
struct IntervalBuilder {
    months: i64,
    days: i64,
    nanoseconds: i128,
    /// Units seen so far; each may occur only once.
    seen: Vec<Unit>,
}

impl IntervalBuilder {
    fn see(&mut self, unit: Unit) -> Result<(), Failure> {
        if self.seen.contains(&unit) {
            return Err(Failure::Invalid);
        }
        self.seen.push(unit);
        Ok(())
    }

    /// Adds an integer and a fraction of a unit. Fractions of months become days (30 per month);
    /// fractions of years are rounded to months.
    fn add(&mut self, whole: i64, fraction: f64, unit: Unit) -> Result<(), Failure> {
        match unit {
            Unit::Day | Unit::Week => {
                let scale = if unit == Unit::Week { 7 } else { 1 };
                self.add_days(whole.checked_mul(scale).ok_or(Failure::Interval)?)?;
                let part = fraction * scale as f64;
                self.add_days(part.trunc() as i64)?;
                self.add_fraction(part.fract(), DAY_NANOS);
            }
            Unit::Month => {
                self.add_months(whole)?;
                let part = fraction * 30.0;
                self.add_days(part.trunc() as i64)?;
                self.add_fraction(part.fract(), DAY_NANOS);
            }
            Unit::Quarter | Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
                let scale = unit.months();
                self.add_months(whole.checked_mul(scale).ok_or(Failure::Interval)?)?;
                self.add_months((fraction * scale as f64).round_ties_even() as i64)?;
            }
            _ => {
                self.nanoseconds += i128::from(whole) * unit.nanoseconds();
                self.add_fraction(fraction, unit.nanoseconds());
            }
        }
        Ok(())
    }

    fn add_months(&mut self, months: i64) -> Result<(), Failure> {
        self.months = self.months.checked_add(months).ok_or(Failure::Interval)?;
        Ok(())
    }

    fn add_days(&mut self, days: i64) -> Result<(), Failure> {
        self.days = self.days.checked_add(days).ok_or(Failure::Interval)?;
        Ok(())
    }

    /// Adds a fraction of a unit, rounded to microseconds unless the unit is smaller.
    fn add_fraction(&mut self, fraction: f64, unit: i128) {
        let unit = unit as f64;
        self.nanoseconds += match unit >= 1e6 {
            true => {
                let micros = fraction * (unit / 1e3);
                let rest = micros.fract();
                let carry = i128::from(rest > 0.5) - i128::from(rest < -0.5);
                (micros.trunc() as i128 + carry) * 1_000
            }
            false => (fraction * unit).round() as i128,
        };
    }

    fn finish(self, sign: i64) -> Result<IntervalMonthDayNano, Failure> {
        let small = |value: i64| {
            value
                .checked_mul(sign)
                .and_then(|value| i32::try_from(value).ok())
                .ok_or(Failure::Interval)
        };
        let nanoseconds =
            i64::try_from(self.nanoseconds * i128::from(sign)).map_err(|_| Failure::Interval)?;
        Ok(IntervalMonthDayNano::new(small(self.months)?, small(self.days)?, nanoseconds))
    }
}

/// The units that an interval type is declared with, such as `YEAR TO MONTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRange {
    /// The first unit.
    pub largest: Unit,
    /// The last unit.
    pub smallest: Unit,
}

/// Parses an interval with any units.
pub fn interval(text: &str) -> Result<IntervalMonthDayNano, Failure> {
    interval_in(text, None)
}

/// Parses an interval of a unit range: a number without a unit counts the smallest unit, and
/// smaller units are cut off.
pub fn interval_in(text: &str, range: Option<UnitRange>) -> Result<IntervalMonthDayNano, Failure> {
    let value = match with_units(text, range) {
        Err(Failure::Invalid) => iso(text.trim()).ok_or(Failure::Invalid)?,
        other => other?,
    };
    Ok(range.map_or(value, |range| truncate_to(value, range)))
}

/// Removes the parts of an interval that are smaller than a range.
pub fn truncate_to(value: IntervalMonthDayNano, range: UnitRange) -> IntervalMonthDayNano {
    let (months, days, nanoseconds) = (value.months, value.days, value.nanoseconds);
    let to = |unit: Unit| {
        let step = unit.nanoseconds() as i64;
        nanoseconds / step * step
    };
    match range.smallest {
        Unit::Year => IntervalMonthDayNano::new(months / 12 * 12, 0, 0),
        Unit::Month => IntervalMonthDayNano::new(months, 0, 0),
        Unit::Day => IntervalMonthDayNano::new(months, days, 0),
        unit @ (Unit::Hour | Unit::Minute) => IntervalMonthDayNano::new(months, days, to(unit)),
        _ => value,
    }
}

/// Processes tokens from last to first, so that a unit is known before its amount.
fn with_units(text: &str, range: Option<UnitRange>) -> Result<IntervalMonthDayNano, Failure> {
    let tokens = tokenize(text).ok_or(Failure::Invalid)?;
    let mut builder = IntervalBuilder::default();
    let mut unit: Option<Unit> = None;
    let (mut sign, mut unit_waits, mut found) = (1, false, false);
    for (index, token) in tokens.iter().enumerate().rev() {
        let text = token.text.as_str();
        let signed = matches!(token.kind, TokenKind::Signed);
        match token.kind {
            TokenKind::Time => {
                time(&mut builder, text, 1, range)?;
                (unit, unit_waits, found) = (Some(Unit::Day), false, true);
            }
            TokenKind::Signed if text.contains(':') => {
                let negative = text.starts_with('-');
                time(&mut builder, &text[1..], if negative { -1 } else { 1 }, range)?;
                (unit, unit_waits, found) = (Some(Unit::Day), false, true);
            }
            TokenKind::Number | TokenKind::Date | TokenKind::Signed => {
                let rightmost = range.map_or(Unit::Second, |range| range.smallest);
                let counted = unit.unwrap_or(rightmost);
                amount(&mut builder, text, signed, counted)?;
                (unit_waits, found) = (false, true);
                // A number before hours counts days.
                unit = Some(if counted == Unit::Hour { Unit::Day } else { counted });
            }
            TokenKind::Text | TokenKind::Special => {
                if unit_waits {
                    return Err(Failure::Invalid);
                }
                if text == "ago" && index + 1 == tokens.len() {
                    sign = -1;
                    continue;
                }
                unit = Some(Unit::named(text).ok_or(Failure::Invalid)?);
                unit_waits = true;
            }
        }
    }
    if !found || unit_waits {
        return Err(Failure::Invalid);
    }
    builder.finish(sign)
}

/// Parses an amount of a unit, or years and months.
fn amount(
    builder: &mut IntervalBuilder,
    text: &str,
    signed: bool,
    unit: Unit,
) -> Result<(), Failure> {
    let negative = text.starts_with('-');
    let digits = if signed { &text[1..] } else { text };
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = digits.split_at(end);
    let sign = if negative { -1 } else { 1 };
    let whole: i64 = match whole {
        "" if rest.starts_with('.') => 0,
        "" => return Err(Failure::Invalid),
        whole => whole.parse().map_err(|_| Failure::Interval)?,
    };
    if let Some(months) = rest.strip_prefix('-') {
        let months: i64 = months.parse().map_err(|_| Failure::Invalid)?;
        if months >= 12 {
            return Err(Failure::Interval);
        }
        builder.see(Unit::Month)?;
        let years = whole.checked_mul(12).ok_or(Failure::Interval)?;
        return builder.add_months(sign * (years + months));
    }
    let fraction: f64 = match rest {
        "" | "." => 0.0,
        rest if rest.starts_with('.') => {
            format!("0{rest}").parse().map_err(|_| Failure::Invalid)?
        }
        _ => return Err(Failure::Invalid),
    };
    builder.see(unit)?;
    builder.add(sign * whole, sign as f64 * fraction, unit)
}

/// Parses a time, which may have any number of hours.
fn time(
    builder: &mut IntervalBuilder,
    text: &str,
    sign: i64,
    range: Option<UnitRange>,
) -> Result<(), Failure> {
    for unit in [Unit::Hour, Unit::Minute, Unit::Second] {
        builder.see(unit)?;
    }
    let parts: Vec<&str> = text.split(':').collect();
    let number = |text: &str| -> Result<i64, Failure> {
        match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            true => text.parse().map_err(|_| Failure::Interval),
            false => Err(Failure::Invalid),
        }
    };
    let seconds = |text: &str| -> Result<(i64, i64), Failure> {
        match text.find('.') {
            Some(at) => Ok((number(&text[..at])?, microseconds(&text[at..])?)),
            None => Ok((number(text)?, 0)),
        }
    };
    let minutes_first =
        range.is_some_and(|range| (range.largest, range.smallest) == (Unit::Minute, Unit::Second));
    let (hours, minutes, (second, micros)) = match parts[..] {
        // `5:30.5`, or two numbers in an interval declared as minutes to seconds.
        [minutes, second] if second.contains('.') || minutes_first => {
            (0, number(minutes)?, seconds(second)?)
        }
        [hours, minutes] => (number(hours)?, number(minutes)?, (0, 0)),
        [hours, minutes, second] => (number(hours)?, number(minutes)?, seconds(second)?),
        _ => return Err(Failure::Invalid),
    };
    if minutes > 59 || second > 60 {
        return Err(Failure::Interval);
    }
    let total = i128::from(hours) * 3_600 + i128::from(minutes * 60 + second);
    builder.nanoseconds += i128::from(sign) * (total * 1_000_000_000 + i128::from(micros) * 1_000);
    Ok(())
}

/// Parses ISO 8601: `P` with amounts and designators and `T` before times, or
/// `P0001-02-03T04:05:06`.
fn iso(text: &str) -> Option<IntervalMonthDayNano> {
    let body = text.strip_prefix('P')?;
    let (dates, times) = match body.split_once('T') {
        Some((dates, times)) => (dates, Some(times)),
        None => (body, None),
    };
    if dates.is_empty() && times.is_none_or(str::is_empty) {
        return None;
    }
    let mut builder = IntervalBuilder::default();
    if dates.bytes().skip(1).any(|byte| byte == b'-')
        && !dates.contains(|c: char| c.is_ascii_alphabetic())
    {
        let mut parts = dates.split('-');
        for unit in [Unit::Year, Unit::Month, Unit::Day] {
            if let Some(part) = parts.next() {
                builder.add(part.parse().ok()?, 0.0, unit).ok()?;
            }
        }
        if parts.next().is_some() {
            return None;
        }
        if let Some(times) = times {
            let ((hour, rest), more) = clock(times).ok()?;
            if !more.is_empty() {
                return None;
            }
            builder.nanoseconds += (i128::from(hour) * 3_600_000_000 + i128::from(rest)) * 1_000;
        }
        return builder.finish(1).ok();
    }
    let date_unit = |letter: u8| match letter {
        b'Y' => Some(Unit::Year),
        b'M' => Some(Unit::Month),
        b'W' => Some(Unit::Week),
        b'D' => Some(Unit::Day),
        _ => None,
    };
    let time_unit = |letter: u8| match letter {
        b'H' => Some(Unit::Hour),
        b'M' => Some(Unit::Minute),
        b'S' => Some(Unit::Second),
        _ => None,
    };
    designated(&mut builder, dates, &date_unit)?;
    designated(&mut builder, times.unwrap_or(""), &time_unit)?;
    builder.finish(1).ok()
}

fn designated(
    builder: &mut IntervalBuilder,
    text: &str,
    unit: &dyn Fn(u8) -> Option<Unit>,
) -> Option<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = unit(rest.as_bytes()[end])?;
        let amount = &rest[..end];
        let negative = amount.starts_with('-');
        let digits = amount.strip_prefix(['-', '+']).unwrap_or(amount);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty()
            || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
        let sign = if negative { -1 } else { 1 };
        builder.add(sign * whole, sign as f64 * fraction, unit).ok()?;
        rest = &rest[end + 1..];
    }
    Some(())
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
            ("1-2", 14, 0, 0),
            ("-1-2", -14, 0, 0),
            ("1 02:03:04", 0, 1, 7_384_000_000_000),
            ("1 -00:01", 0, 1, -60_000_000_000),
            ("@ 1 minute ago", 0, 0, -60_000_000_000),
            ("1.33 years", 16, 0, 0),
            ("P1Y2M3DT4H5M6S", 14, 3, 14_706_000_000_000),
            ("P1W", 0, 7, 0),
            ("PT1.5H", 0, 0, 5_400_000_000_000),
            ("P-1D", 0, -1, 0),
            ("P0001-02-03T04:05:06", 14, 3, 14_706_000_000_000),
        ] {
            assert_eq!(
                interval(text),
                Ok(IntervalMonthDayNano::new(months, days, nanos)),
                "{text}"
            );
        }
        for text in [
            "",
            "soon",
            "1 parsec",
            "1:2:3:4",
            "days",
            "1 day 2:x",
            "é",
            "1 day 2 days",
            "P",
            "PT",
            "P1H",
        ] {
            assert_eq!(interval(text), Err(Failure::Invalid), "{text}");
        }
        for text in ["99999999999 years", "1 99999999999999:00:00", "1:60"] {
            assert_eq!(interval(text), Err(Failure::Interval), "{text}");
        }
    }

    #[test]
    fn ranges_name_the_unit_and_cut() {
        let range = |largest, smallest| Some(UnitRange { largest, smallest });
        let read = |text, range| interval_in(text, range).unwrap();
        assert_eq!(read("3", range(Unit::Month, Unit::Month)), IntervalMonthDayNano::new(3, 0, 0));
        assert_eq!(
            read("1-2", range(Unit::Year, Unit::Month)),
            IntervalMonthDayNano::new(14, 0, 0)
        );
        assert_eq!(
            read("1 day 2 hours", range(Unit::Day, Unit::Day)),
            IntervalMonthDayNano::new(0, 1, 0)
        );
        let minutes = read("1:30", range(Unit::Minute, Unit::Second));
        assert_eq!(minutes, IntervalMonthDayNano::new(0, 0, 90_000_000_000));
    }
}
