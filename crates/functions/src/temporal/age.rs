//! Differences of timestamps, overlaps, and normalized intervals.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::datatypes::IntervalMonthDayNano;

use tessera_text::calendar::{DAY_MICROSECONDS, add_months, day_number};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use super::part::{field_of, unsupported};
use crate::datetime::shift;
use crate::temporal::fields::{Calendar, Field, microseconds_of};
use tessera_values::rowwise::{
    InputValue, MICROSECONDS, OutputValue, TIME, lenient, signature, strict, takes,
};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

const DAY_NANOS: i64 = DAY_MICROSECONDS * 1_000;

fn out_of_range() -> Error {
    Error::new(Code::Overflow, "interval out of range")
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
}

/// The common timestamp type of the arguments: with a time zone if one of them has one.
fn meeting(args: &[&Arg<'_>]) -> Atom {
    let zone = args.iter().find_map(|arg| match arg.atom {
        Atom::Timestamp(_, Some(zone)) => Some(zone.clone()),
        _ => None,
    });
    Atom::Timestamp(TimeUnit::Microsecond, zone)
}

/// The time zone of a timestamp type, in which days and months are added.
fn zone_of(atom: &Atom) -> Option<Tz> {
    match atom {
        Atom::Timestamp(_, Some(zone)) => Tz::from_str(zone).ok(),
        _ => None,
    }
}

/// `age(later, earlier)` in calendar years, months and days.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    // Local times are compared, also of timestamps with time zone.
    let casts = signature(name, args, &[MICROSECONDS, MICROSECONDS])?;
    Ok(strict(Atom::Interval, args, casts, |arguments| {
        age(arguments[0].whole(), arguments[1].whole())
            .map(OutputValue::Interval)
            .ok_or_else(out_of_range)
    }))
}

fn age(later: i64, earlier: i64) -> Option<IntervalMonthDayNano> {
    if later < earlier {
        let age = age(earlier, later)?;
        return Some(IntervalMonthDayNano::new(-age.months, -age.days, -age.nanoseconds));
    }
    if later == i64::MAX || earlier == i64::MIN {
        return None;
    }
    let split = |moment: i64| {
        let date = Calendar::of(moment.div_euclid(DAY_MICROSECONDS));
        (date, moment.rem_euclid(DAY_MICROSECONDS))
    };
    let ((to, to_time), (from, from_time)) = (split(later), split(earlier));
    let mut time = to_time - from_time;
    let mut days = to.date - from.date;
    let mut months = (to.year * 12 + to.month) - (from.year * 12 + from.month);
    if time < 0 {
        time += DAY_MICROSECONDS;
        days -= 1;
    }
    if days < 0 {
        // The number of days in the month of the earlier timestamp.
        let (year, month) =
            if from.month == 12 { (from.year + 1, 1) } else { (from.year, from.month + 1) };
        days += day_number(year, month, 1) - day_number(from.year, from.month, 1);
        months -= 1;
    }
    Some(IntervalMonthDayNano::new(i32::try_from(months).ok()?, days as i32, time * 1_000))
}

/// `justify_days`, `justify_hours`, `justify_interval`.
pub(super) fn justified(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Interval])?;
    let work = match name {
        "justify_days" => justify_days,
        "justify_hours" => justify_hours,
        _ => justify_interval,
    };
    Ok(strict(Atom::Interval, args, casts, move |arguments| {
        work(arguments[0].interval()).map(OutputValue::Interval).ok_or_else(out_of_range)
    }))
}

/// Gives a part of less than one day the same sign as the days.
fn of_one_sign(days: i32, nanos: i64) -> (i32, i64) {
    if days > 0 && nanos < 0 {
        (days - 1, nanos + DAY_NANOS)
    } else if days < 0 && nanos > 0 {
        (days + 1, nanos - DAY_NANOS)
    } else {
        (days, nanos)
    }
}

/// Converts 24 hours to a day.
pub(super) fn justify_hours(value: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let days = value.days.checked_add(i32::try_from(value.nanoseconds / DAY_NANOS).ok()?)?;
    let (days, nanos) = of_one_sign(days, value.nanoseconds % DAY_NANOS);
    Some(IntervalMonthDayNano::new(value.months, days, nanos))
}

/// Converts 30 days to a month.
fn justify_days(value: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let mut months = value.months.checked_add(value.days / 30)?;
    let mut days = value.days % 30;
    if months > 0 && days < 0 {
        days += 30;
        months -= 1;
    } else if months < 0 && days > 0 {
        days -= 30;
        months += 1;
    }
    Some(IntervalMonthDayNano::new(months, days, value.nanoseconds))
}

fn justify_interval(value: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let (mut months, mut days, mut nanos) = (value.months, value.days, value.nanoseconds);
    // Convert days first if adding the hours could overflow.
    if days > 0 && nanos > 0 || days < 0 && nanos < 0 {
        months = months.checked_add(days / 30)?;
        days %= 30;
    }
    days = days.checked_add(i32::try_from(nanos / DAY_NANOS).ok()?)?;
    nanos %= DAY_NANOS;
    months = months.checked_add(days / 30)?;
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && nanos < 0)) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || (days == 0 && nanos > 0)) {
        days -= 30;
        months += 1;
    }
    let (days, nanos) = of_one_sign(days, nanos);
    Some(IntervalMonthDayNano::new(months, days, nanos))
}

/// `overlaps(from, to, from, to)`, the function behind `(from, to) OVERLAPS (from, to)`. An
/// interval as `to` is added to `from`.
pub(super) fn overlaps(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let [a, b, c, d] = args else {
        return Err(wrong_arguments(name, args, "it takes two pairs"));
    };
    let of_time = args.iter().any(|arg| matches!(arg.atom, Atom::Time(_)));
    let atom = match of_time {
        // Packed times with time zone are in their order.
        _ if args.iter().any(|arg| *arg.atom == Atom::TimeTz) => Atom::TimeTz,
        true => TIME,
        false => meeting(&[a, b, c, d]),
    };
    let end = |arg: &Arg<'_>| match arg.atom {
        Atom::Interval | Atom::Duration(_) if atom != Atom::TimeTz => Atom::Interval,
        _ => atom.clone(),
    };
    let wanted = [atom.clone(), end(b), atom.clone(), end(d)];
    if !args.iter().zip(&wanted).all(|(arg, wanted)| takes(arg, wanted)) {
        return Err(wrong_arguments(
            name,
            args,
            "it takes pairs of timestamps, or of timestamps and intervals",
        ));
    }
    let zone = zone_of(&atom);
    let moved = move |start: &InputValue<'_>, end: &InputValue<'_>| -> Result<Option<i64>> {
        Ok(match (start, end) {
            (InputValue::Whole(start), InputValue::Interval(by)) if of_time => {
                Some((start + by.nanoseconds / 1_000).rem_euclid(DAY_MICROSECONDS))
            }
            (InputValue::Whole(start), InputValue::Interval(by)) => {
                let moved = shift(*start, *by, 1, TimeUnit::Microsecond, zone.as_ref());
                Some(moved.ok_or_else(out_of_range)?)
            }
            (_, InputValue::Whole(end)) => Some(*end),
            _ => None,
        })
    };
    Ok(lenient(Atom::Boolean, args, wanted.to_vec(), move |arguments| {
        let start = |value: &InputValue<'_>| match value {
            InputValue::Whole(value) => Some(*value),
            _ => None,
        };
        let first = (start(&arguments[0]), moved(&arguments[0], &arguments[1])?);
        let second = (start(&arguments[2]), moved(&arguments[2], &arguments[3])?);
        Ok(overlap(first, second).map_or(OutputValue::Null, OutputValue::Boolean))
    }))
}

type Period = (Option<i64>, Option<i64>);

/// Whether two periods overlap; their ends may be swapped or NULL.
fn overlap(first: Period, second: Period) -> Option<bool> {
    // A NULL is treated as the later end of its period.
    let ordered = |(a, b): Period| -> Option<(i64, Option<i64>)> {
        match (a, b) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some((one, None)),
            (Some(a), Some(b)) => Some((a.min(b), Some(a.max(b)))),
        }
    };
    let ((s1, e1), (s2, e2)) = (ordered(first)?, ordered(second)?);
    let later = |start: i64, end: Option<i64>, other_end: Option<i64>| match (end, other_end) {
        (_, Some(other)) if start < other => Some(true),
        (_, None) => None,
        // The later period begins after the end of the earlier one.
        (None, Some(_)) => None,
        (Some(_), Some(_)) => Some(false),
    };
    match s1.cmp(&s2) {
        std::cmp::Ordering::Greater => later(s1, e1, e2),
        std::cmp::Ordering::Less => later(s2, e2, e1),
        std::cmp::Ordering::Equal => match (e1, e2) {
            (Some(_), Some(_)) => Some(true),
            _ => None,
        },
    }
}

/// DuckDB's `date_diff(unit, from, to)` (boundaries crossed) and `date_sub` (whole units elapsed).
pub(super) fn difference(name: &str, args: &[Arg<'_>], whole: bool) -> Result<ResolvedCall> {
    let [_, from, to] = args else {
        return Err(wrong_arguments(name, args, "it takes a unit and two timestamps"));
    };
    let times =
        [from, to].iter().all(|arg| matches!(arg.atom, Atom::Time(_) | Atom::Null | Atom::String));
    let of_time = times && [from, to].iter().any(|arg| matches!(arg.atom, Atom::Time(_)));
    // Local times are compared, also of timestamps with time zone.
    let atom = if of_time { TIME } else { MICROSECONDS };
    let casts = signature(name, args, &[Atom::String, atom.clone(), atom.clone()])?;
    Ok(strict(Atom::Int64, args, casts, move |arguments| {
        let field = field_of(arguments[0].text(), &atom)?;
        let (from, to) = (arguments[1].whole(), arguments[2].whole());
        let apart = if whole { whole_units(field, from, to) } else { borders(field, from, to) };
        apart.map(OutputValue::Whole).ok_or_else(|| unsupported(arguments[0].text(), &atom))
    }))
}

fn borders(field: Field, from: i64, to: i64) -> Option<i64> {
    if let Some(unit) = microseconds_of(field) {
        return Some(to.div_euclid(unit) - from.div_euclid(unit));
    }
    let day = |moment: i64| moment.div_euclid(DAY_MICROSECONDS);
    let date = |moment: i64| Calendar::of(day(moment));
    let number = |moment: i64| -> Option<i64> {
        Some(match field {
            // Weeks begin on the weekday of 1970-01-01, as in DuckDB.
            Field::Week => day(moment) / 7,
            Field::Month => date(moment).year * 12 + date(moment).month,
            Field::Quarter => date(moment).year * 4 + date(moment).quarter(),
            Field::Year => date(moment).year,
            Field::Decade => date(moment).decade(),
            Field::Century => date(moment).century(),
            Field::Millennium => date(moment).millennium(),
            Field::IsoYear => date(moment).shown_iso_year(),
            Field::DayOfWeek | Field::IsoDayOfWeek | Field::DayOfYear | Field::Julian => {
                day(moment)
            }
            Field::Epoch => moment.div_euclid(1_000_000),
            _ => return None,
        })
    };
    Some(number(to)? - number(from)?)
}

fn whole_units(field: Field, from: i64, to: i64) -> Option<i64> {
    if let Some(unit) = microseconds_of(field) {
        return Some((to - from) / unit);
    }
    let per = match field {
        Field::Week => return Some((to - from) / (7 * DAY_MICROSECONDS)),
        Field::Month => 1,
        Field::Quarter => 3,
        Field::Year | Field::IsoYear => 12,
        Field::Decade => 120,
        Field::Century => 1_200,
        Field::Millennium => 12_000,
        _ => return None,
    };
    Some(months_between(from, to) / per)
}

/// The whole months between two timestamps.
fn months_between(from: i64, to: i64) -> i64 {
    if from > to {
        return -months_between(to, from);
    }
    let (day, time) = (from.div_euclid(DAY_MICROSECONDS), from.rem_euclid(DAY_MICROSECONDS));
    let (a, b) = (Calendar::of(day), Calendar::of(to.div_euclid(DAY_MICROSECONDS)));
    let months = (b.year * 12 + b.month) - (a.year * 12 + a.month);
    let reached = add_months(day, months) * DAY_MICROSECONDS + time;
    if reached > to { months - 1 } else { months }
}

/// DuckDB's `date_add(timestamp, interval)`.
pub(super) fn added(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let [moment, _] = args else {
        return Err(wrong_arguments(name, args, "it takes a timestamp and an interval"));
    };
    let atom = meeting(&[moment]);
    let casts = signature(name, args, &[atom.clone(), Atom::Interval])?;
    let zone = zone_of(&atom);
    Ok(strict(atom, args, casts, move |arguments| {
        let (moment, by) = (arguments[0].whole(), arguments[1].interval());
        let moved = shift(moment, by, 1, TimeUnit::Microsecond, zone.as_ref());
        moved.map(OutputValue::Whole).ok_or_else(out_of_range)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_overlap_as_in_postgresql() {
        let some = |a, b| (Some(a), Some(b));
        assert_eq!(overlap(some(1, 5), some(3, 8)), Some(true));
        assert_eq!(overlap(some(1, 3), some(3, 8)), Some(false));
        assert_eq!(overlap(some(5, 1), some(8, 3)), Some(true));
        assert_eq!(overlap(some(1, 1), some(1, 1)), Some(true));
        assert_eq!(overlap((Some(1), None), some(1, 1)), None);
        assert_eq!(overlap((Some(1), None), some(2, 3)), None);
        assert_eq!(overlap((Some(2), None), some(1, 3)), Some(true));
        assert_eq!(overlap((Some(4), None), some(1, 3)), None);
        assert_eq!(overlap((None, None), some(1, 3)), None);
    }

    #[test]
    fn months_between_are_whole() {
        let at = |year, month, date| day_number(year, month, date) * DAY_MICROSECONDS;
        assert_eq!(months_between(at(2024, 1, 31), at(2024, 2, 29)), 1);
        assert_eq!(months_between(at(2024, 1, 15), at(2024, 2, 14)), 0);
        assert_eq!(months_between(at(2024, 3, 15), at(2024, 1, 15)), -2);
    }
}
