//! Dates, times, timestamps and intervals made of numbers, and the other way.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::datatypes::IntervalMonthDayNano;

use tessera_text::calendar::{DAY_MICROSECONDS, civil, day_number};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use super::trunc::zone_named;
use crate::moments::fields::Calendar;
use crate::parse::offset_in;
use crate::rowwise::{In, MICROSECONDS, Out, TIME, fault, signature, strict, takes, zoned};
use crate::types::{Arg, Resolved, wrong_arguments};

fn out_of_range(what: &str) -> Error {
    Error::new(Code::Overflow, format!("{what} out of range"))
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
}

pub(super) fn is_finite(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let [value] = args else { return Err(wrong_arguments(name, args, "it takes one value")) };
    let atom = match value.atom {
        Atom::Date => Atom::Date,
        Atom::Interval | Atom::Duration(_) => Atom::Interval,
        Atom::Timestamp(..) => MICROSECONDS,
        Atom::Float32 | Atom::Float64 => Atom::Float64,
        _ => {
            return Err(wrong_arguments(
                name,
                args,
                "it takes a date, timestamp, interval or double",
            ));
        }
    };
    let is_date = atom == Atom::Date;
    Ok(strict(Atom::Boolean, args, vec![atom], move |given| {
        Ok(Out::Boolean(match given[0] {
            In::Whole(day) if is_date => day != i64::from(i32::MAX) && day != i64::from(i32::MIN),
            In::Whole(moment) => moment != i64::MAX && moment != i64::MIN,
            In::Double(value) => value.is_finite(),
            _ => true,
        }))
    }))
}

/// The last day of the month.
pub(super) fn last_day(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let [value] = args else { return Err(wrong_arguments(name, args, "it takes a date")) };
    if !takes(value, &MICROSECONDS) {
        return Err(wrong_arguments(name, args, "it takes a date"));
    }
    Ok(strict(Atom::Date, args, vec![Atom::Date], |given| {
        let date = Calendar::of(given[0].whole());
        let (year, month) =
            if date.month == 12 { (date.year + 1, 1) } else { (date.year, date.month + 1) };
        Ok(Out::Whole(day_number(year, month, 1) - 1))
    }))
}

/// The day of a date that there is; years before 1 are counted from -1 down.
fn day_of(year: i64, month: i64, date: i64) -> Option<i64> {
    let year = match year {
        0 => return None,
        ..0 => year + 1,
        _ => year,
    };
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&date)
        || !(-4_712..=5_874_897).contains(&year)
    {
        return None;
    }
    let day = day_number(year, month, date);
    (civil(day) == (year, month, date)).then_some(day)
}

/// Microseconds of a time of day that there is.
fn time_of(hour: i64, minute: i64, second: f64) -> Option<i64> {
    let in_range =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let time = (hour * 60 + minute) * 60_000_000 + (second * 1e6).round_ties_even() as i64;
    (in_range && (hour < 24 || time == DAY_MICROSECONDS)).then_some(time)
}

pub(super) fn date(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::Int64, Atom::Int64, Atom::Int64])?;
    Ok(strict(Atom::Date, args, casts, |given| {
        let [year, month, date] = [0, 1, 2].map(|index: usize| given[index].whole());
        let day = day_of(year, month, date);
        day.map(Out::Whole)
            .ok_or_else(|| out_of_range(&format!("date field value: {year}-{month:02}-{date:02}")))
    }))
}

pub(super) fn time(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::Int64, Atom::Int64, Atom::Float64])?;
    Ok(strict(TIME, args, casts, |given| {
        let (hour, minute, second) = (given[0].whole(), given[1].whole(), given[2].double());
        let time = time_of(hour, minute, second);
        time.map(Out::Whole).ok_or_else(|| {
            out_of_range(&format!("time field value: {hour:02}:{minute:02}:{second}"))
        })
    }))
}

/// `make_timestamp(year, month, day, hour, minute, second)`, `make_timestamptz(… [, zone])`; of one
/// number, microseconds.
pub(super) fn timestamp(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let atom = if name == "make_timestamptz" { zoned() } else { MICROSECONDS };
    if args.len() == 1 {
        let casts = signature(name, args, &[Atom::Int64])?;
        return Ok(strict(atom, args, casts, |given| Ok(Out::Whole(given[0].whole()))));
    }
    let mut wanted = vec![Atom::Int64; 5];
    wanted.push(Atom::Float64);
    if args.len() == 7 && name == "make_timestamptz" {
        wanted.push(Atom::String);
    }
    let casts = signature(name, args, &wanted)?;
    Ok(strict(atom, args, casts, |given| {
        let number = |index: usize| given[index].whole();
        let (day, time) = (
            day_of(number(0), number(1), number(2)),
            time_of(number(3), number(4), given[5].double()),
        );
        let moment = day.zip(time).and_then(|(day, time)| {
            day.checked_mul(DAY_MICROSECONDS).and_then(|midnight| midnight.checked_add(time))
        });
        let moment = moment.ok_or_else(|| out_of_range("date or time field value"))?;
        let offset = match given.get(6) {
            Some(zone) => offset_in(moment.div_euclid(1_000_000), &named_zone(zone.text())?),
            None => 0,
        };
        Ok(Out::Whole(moment - offset * 1_000_000))
    }))
}

fn named_zone(name: &str) -> Result<Tz> {
    // `+2` as `+02:00`.
    if let Some(digits) = name.strip_prefix(['+', '-'])
        && digits.len() <= 2
        && let Ok(hours) = digits.parse::<u8>()
    {
        // As PostgreSQL's farthest zone.
        if hours > 15 {
            return Err(fault(
                format!("numeric time zone '{name}' is out of range"),
                SqlState::INVALID_PARAMETER_VALUE,
            ));
        }
        return Ok(Tz::from_str(&format!("{}{digits:0>2}:00", &name[..1]))?);
    }
    zone_named(name)
}

/// `make_interval(years, months, weeks, days, hours, minutes, seconds)`, of which the last ones may
/// be left out.
pub(super) fn interval(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let mut wanted = vec![Atom::Int64; args.len().min(6)];
    if args.len() == 7 {
        wanted.push(Atom::Float64);
    }
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Interval, args, casts, |given| {
        let number = |index: usize| given.get(index).map_or(0, In::whole);
        let seconds = given.get(6).map_or(0.0, In::double);
        let small = |large: Option<i64>| large.and_then(|large| i32::try_from(large).ok());
        let months =
            small(number(0).checked_mul(12).and_then(|months| months.checked_add(number(1))));
        let days = small(number(2).checked_mul(7).and_then(|days| days.checked_add(number(3))));
        // What is out of range by itself must not overflow below.
        let micros = (seconds * 1e6).round_ties_even().clamp(-1e19, 1e19);
        let nanos = (i128::from(number(4)) * 3_600 + i128::from(number(5)) * 60) * 1_000_000_000
            + micros as i128 * 1_000;
        match (months, days, i64::try_from(nanos)) {
            (Some(months), Some(days), Ok(nanos)) if seconds.is_finite() => {
                Ok(Out::Interval(IntervalMonthDayNano::new(months, days, nanos)))
            }
            _ => Err(out_of_range("interval")),
        }
    }))
}

/// Seconds from 1970 to 2000, from where PostgreSQL counts.
const TO_2000: i64 = 946_684_800;

/// `to_timestamp(seconds since 1970)`.
pub(super) fn from_epoch(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::Float64])?;
    Ok(strict(zoned(), args, casts, |given| {
        let seconds = given[0].double();
        if seconds.is_nan() {
            return Err(out_of_range("timestamp NaN is"));
        }
        if seconds.is_infinite() {
            return Ok(Out::Whole(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
        }
        let micros = ((seconds - TO_2000 as f64) * 1e6).round_ties_even();
        let moment = (micros.abs() < 9.2e18)
            .then_some(micros as i64)
            .and_then(|m| m.checked_add(TO_2000 * 1_000_000));
        moment.map(Out::Whole).ok_or_else(|| out_of_range(&format!("timestamp {seconds} is")))
    }))
}

/// DuckDB's `epoch_ms` and its like: of a moment its number, of a number of milliseconds the
/// moment.
pub(super) fn epoch(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let per_second: i64 = match name {
        "epoch_ms" => 1_000,
        "epoch_us" => 1_000_000,
        _ => 1_000_000_000,
    };
    if let [value] = args
        && value.atom.is_integer()
        && name == "epoch_ms"
    {
        return Ok(strict(MICROSECONDS, args, vec![Atom::Int64], |given| {
            given[0]
                .whole()
                .checked_mul(1_000)
                .map(Out::Whole)
                .ok_or_else(|| out_of_range("timestamp"))
        }));
    }
    let of_interval = args.len() == 1 && matches!(args[0].atom, Atom::Interval | Atom::Duration(_));
    let of_time = args.len() == 1 && matches!(args[0].atom, Atom::Time(_));
    let wanted = match (of_interval, of_time) {
        (true, _) => Atom::Interval,
        (_, true) => TIME,
        _ => Atom::Timestamp(TimeUnit::Microsecond, None),
    };
    let casts = signature(name, args, &[wanted])?;
    Ok(strict(Atom::Int64, args, casts, move |given| {
        let micros = match given[0] {
            In::Interval(value) => {
                let days = i64::from(value.months) * 30 + i64::from(value.days);
                let micros = days.checked_mul(DAY_MICROSECONDS);
                let micros =
                    micros.and_then(|micros| micros.checked_add(value.nanoseconds / 1_000));
                micros.ok_or_else(|| out_of_range("microseconds"))?
            }
            value => value.whole(),
        };
        let number = match per_second {
            1_000 => Some(micros.div_euclid(1_000)),
            1_000_000 => Some(micros),
            _ => micros.checked_mul(1_000),
        };
        number.map(Out::Whole).ok_or_else(|| out_of_range("nanoseconds"))
    }))
}
