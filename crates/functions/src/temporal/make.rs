//! Constructors of dates, times, timestamps and intervals from numbers, and the reverse.

use arrow::datatypes::IntervalMonthDayNano;

use tessera_text::calendar::{DAY_MICROSECONDS, civil, day_number};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use crate::temporal::fields::Calendar;
use tessera_values::rowwise::{
    InputValue, MICROSECONDS, OutputValue, TIME, fault, signature, strict, takes, zoned,
};
use tessera_values::temporal::zones::{Zone, zone_of};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

fn out_of_range(what: &str) -> Error {
    Error::new(Code::Overflow, format!("{what} out of range"))
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
}

pub(super) fn is_finite(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
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
    Ok(strict(Atom::Boolean, args, vec![atom], move |arguments| {
        Ok(OutputValue::Boolean(match arguments[0] {
            InputValue::Whole(day) if is_date => {
                day != i64::from(i32::MAX) && day != i64::from(i32::MIN)
            }
            InputValue::Whole(moment) => moment != i64::MAX && moment != i64::MIN,
            InputValue::Double(value) => value.is_finite(),
            _ => true,
        }))
    }))
}

/// `last_day`: the last day of the month.
pub(super) fn last_day(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let [value] = args else { return Err(wrong_arguments(name, args, "it takes a date")) };
    if !takes(value, &MICROSECONDS) {
        return Err(wrong_arguments(name, args, "it takes a date"));
    }
    Ok(strict(Atom::Date, args, vec![Atom::Date], |arguments| {
        let date = Calendar::of(arguments[0].whole());
        let (year, month) =
            if date.month == 12 { (date.year + 1, 1) } else { (date.year, date.month + 1) };
        Ok(OutputValue::Whole(day_number(year, month, 1) - 1))
    }))
}

/// The day of a valid date; years before 1 are negative, and year 0 is invalid.
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

/// The microseconds of a valid time of day.
fn time_of(hour: i64, minute: i64, second: f64) -> Option<i64> {
    let in_range =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let time = (hour * 60 + minute) * 60_000_000 + (second * 1e6).round_ties_even() as i64;
    (in_range && (hour < 24 || time == DAY_MICROSECONDS)).then_some(time)
}

pub(super) fn date(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64, Atom::Int64, Atom::Int64])?;
    Ok(strict(Atom::Date, args, casts, |arguments| {
        let [year, month, date] = [0, 1, 2].map(|index: usize| arguments[index].whole());
        let day = day_of(year, month, date);
        day.map(OutputValue::Whole)
            .ok_or_else(|| out_of_range(&format!("date field value: {year}-{month:02}-{date:02}")))
    }))
}

pub(super) fn time(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64, Atom::Int64, Atom::Float64])?;
    Ok(strict(TIME, args, casts, |arguments| {
        let (hour, minute, second) =
            (arguments[0].whole(), arguments[1].whole(), arguments[2].double());
        let time = time_of(hour, minute, second);
        time.map(OutputValue::Whole).ok_or_else(|| {
            out_of_range(&format!("time field value: {hour:02}:{minute:02}:{second}"))
        })
    }))
}

/// `make_timestamp(year, month, day, hour, minute, second)` and `make_timestamptz(… [, zone])`; a
/// single argument is in microseconds.
pub(super) fn timestamp(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let atom = if name == "make_timestamptz" { zoned() } else { MICROSECONDS };
    if args.len() == 1 {
        let casts = signature(name, args, &[Atom::Int64])?;
        return Ok(strict(atom, args, casts, |arguments| {
            Ok(OutputValue::Whole(arguments[0].whole()))
        }));
    }
    let mut wanted = vec![Atom::Int64; 5];
    wanted.push(Atom::Float64);
    if args.len() == 7 && name == "make_timestamptz" {
        wanted.push(Atom::String);
    }
    let casts = signature(name, args, &wanted)?;
    Ok(strict(atom, args, casts, |arguments| {
        let number = |index: usize| arguments[index].whole();
        let (day, time) = (
            day_of(number(0), number(1), number(2)),
            time_of(number(3), number(4), arguments[5].double()),
        );
        let moment = day.zip(time).and_then(|(day, time)| {
            day.checked_mul(DAY_MICROSECONDS).and_then(|midnight| midnight.checked_add(time))
        });
        let moment = moment.ok_or_else(|| out_of_range("date or time field value"))?;
        let offset = match arguments.get(6) {
            Some(zone) => named_zone(zone.text())?.offset_in(moment.div_euclid(1_000_000)),
            None => 0,
        };
        Ok(OutputValue::Whole(moment - offset * 1_000_000))
    }))
}

fn named_zone(name: &str) -> Result<Zone> {
    // Parse `+2` as `+02:00`.
    if let Some(digits) = name.strip_prefix(['+', '-'])
        && digits.len() <= 2
        && let Ok(hours) = digits.parse::<i64>()
    {
        // PostgreSQL's limit for offsets.
        if hours > 15 {
            return Err(fault(
                format!("numeric time zone '{name}' is out of range"),
                SqlState::INVALID_PARAMETER_VALUE,
            ));
        }
        return Ok(Zone::Fixed(if name.starts_with('-') { -hours } else { hours } * 3_600));
    }
    zone_of(name)
}

/// `make_interval(years, months, weeks, days, hours, minutes, seconds)`; trailing arguments may be
/// omitted.
pub(super) fn interval(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::Int64; args.len().min(6)];
    if args.len() == 7 {
        wanted.push(Atom::Float64);
    }
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Interval, args, casts, |arguments| {
        let number = |index: usize| arguments.get(index).map_or(0, InputValue::whole);
        let seconds = arguments.get(6).map_or(0.0, InputValue::double);
        let small = |large: Option<i64>| large.and_then(|large| i32::try_from(large).ok());
        let months =
            small(number(0).checked_mul(12).and_then(|months| months.checked_add(number(1))));
        let days = small(number(2).checked_mul(7).and_then(|days| days.checked_add(number(3))));
        // Clamp out-of-range values, so that the sum below cannot overflow.
        let micros = (seconds * 1e6).round_ties_even().clamp(-1e19, 1e19);
        let nanos = (i128::from(number(4)) * 3_600 + i128::from(number(5)) * 60) * 1_000_000_000
            + micros as i128 * 1_000;
        match (months, days, i64::try_from(nanos)) {
            (Some(months), Some(days), Ok(nanos)) if seconds.is_finite() => {
                Ok(OutputValue::Interval(IntervalMonthDayNano::new(months, days, nanos)))
            }
            _ => Err(out_of_range("interval")),
        }
    }))
}

/// DuckDB's `make_timestamp_ms(milliseconds)` and `make_timestamp_ns(nanoseconds)`.
pub(super) fn from_number(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64])?;
    let of_milliseconds = name == "make_timestamp_ms";
    Ok(strict(MICROSECONDS, args, casts, move |arguments| {
        let number = arguments[0].whole();
        let micros = match of_milliseconds {
            true => number.checked_mul(1_000),
            false => Some(number.div_euclid(1_000)),
        };
        micros.map(OutputValue::Whole).ok_or_else(|| out_of_range("timestamp"))
    }))
}

/// Seconds from 1970 to 2000, PostgreSQL's epoch.
const TO_2000: i64 = 946_684_800;

/// `to_timestamp(seconds since 1970)`.
pub(super) fn from_epoch(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Float64])?;
    Ok(strict(zoned(), args, casts, |arguments| {
        let seconds = arguments[0].double();
        if seconds.is_nan() {
            return Err(out_of_range("timestamp NaN is"));
        }
        if seconds.is_infinite() {
            return Ok(OutputValue::Whole(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
        }
        let micros = ((seconds - TO_2000 as f64) * 1e6).round_ties_even();
        let moment = (micros.abs() < 9.2e18)
            .then_some(micros as i64)
            .and_then(|m| m.checked_add(TO_2000 * 1_000_000));
        moment
            .map(OutputValue::Whole)
            .ok_or_else(|| out_of_range(&format!("timestamp {seconds} is")))
    }))
}

/// DuckDB's `epoch_ms` and the like: from a timestamp to a number, or from milliseconds to a
/// timestamp.
pub(super) fn epoch(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let per_second: i64 = match name {
        "epoch_ms" => 1_000,
        "epoch_us" => 1_000_000,
        _ => 1_000_000_000,
    };
    if let [value] = args
        && value.atom.is_integer()
        && name == "epoch_ms"
    {
        return Ok(strict(MICROSECONDS, args, vec![Atom::Int64], |arguments| {
            arguments[0]
                .whole()
                .checked_mul(1_000)
                .map(OutputValue::Whole)
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
    Ok(strict(Atom::Int64, args, casts, move |arguments| {
        let micros = match arguments[0] {
            InputValue::Interval(value) => {
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
        number.map(OutputValue::Whole).ok_or_else(|| out_of_range("nanoseconds"))
    }))
}
