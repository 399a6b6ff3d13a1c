//! DuckDB's functions that are named after their result: `year(x)`, `dayname(x)`, `to_days(n)`.

use arrow::datatypes::IntervalMonthDayNano;

use tessera_text::names::{DAYS, MONTHS};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::part::{Style, resolve_named};
use crate::temporal::fields::{Calendar, Field};
use tessera_values::parse::interval::interval;
use tessera_values::parse::unit::Unit;
use tessera_values::rowwise::{MICROSECONDS, OutputValue, TIME, signature, strict, takes};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let field = match name {
        "nanosecond" => return nanoseconds(name, args),
        "epoch" => return resolve_named(name, Field::Epoch, args, Style::Double),
        "julian" => return resolve_named(name, Field::Julian, args, Style::Double),
        "dayname" | "monthname" | "era" | "yearweek" => return of_date(name, args),
        _ => name.strip_prefix("to_").map_or_else(|| Field::named(name), |_| None),
    };
    match field {
        Some(field) => resolve_named(name, field, args, Style::Whole),
        None => units(name, args),
    }
}

fn of_date(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let fits =
        matches!(args, [value] if takes(value, &MICROSECONDS) && *value.atom != Atom::String);
    if !fits {
        return Err(wrong_arguments(name, args, "it takes a date or a timestamp"));
    }
    let of = move |work: fn(&Calendar) -> OutputValue, atom: Atom| {
        strict(atom, args, vec![Atom::Date], move |arguments| {
            Ok(work(&Calendar::of(arguments[0].whole())))
        })
    };
    Ok(match name {
        "dayname" => of(
            |date| OutputValue::Text(DAYS[date.day_of_week() as usize % 7].to_string()),
            Atom::String,
        ),
        "monthname" => of(
            |date| OutputValue::Text(MONTHS[(date.month - 1) as usize % 12].to_string()),
            Atom::String,
        ),
        "era" => of(|date| OutputValue::Whole(i64::from(date.year > 0)), Atom::Int64),
        _ => of(|date| OutputValue::Whole(date.shown_iso_year() * 100 + date.week()), Atom::Int64),
    })
}

/// `nanosecond(x)`: the second of a minute with its fraction, in nanoseconds.
fn nanoseconds(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let is_time = args.len() == 1 && matches!(args[0].atom, Atom::Time(_));
    let wanted = if is_time { TIME } else { MICROSECONDS };
    let casts = signature(name, args, &[wanted])?;
    Ok(strict(Atom::Int64, args, casts, |arguments| {
        Ok(match arguments[0].whole() {
            // Infinite timestamps have no fields.
            i64::MIN | i64::MAX => OutputValue::Null,
            moment => OutputValue::Whole(moment.rem_euclid(60_000_000) * 1_000),
        })
    }))
}

/// `to_days(n)` and the like: an interval of `n` units.
fn units(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let unit = name.strip_prefix("to_").and_then(Unit::named);
    let Some(one) = unit.and_then(|unit| interval(&format!("1 {}", unit.name())).ok()) else {
        return Err(wrong_arguments(name, args, "it takes a number"));
    };
    let fractions = matches!(name, "to_seconds" | "to_milliseconds");
    let wanted = if fractions { Atom::Float64 } else { Atom::Int64 };
    let casts = signature(name, args, &[wanted])?;
    Ok(strict(Atom::Interval, args, casts, move |arguments| {
        let overflow = || {
            Error::new(Code::Overflow, "interval out of range")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        };
        if fractions {
            let micros = arguments[0].double() * (one.nanoseconds / 1_000) as f64;
            return match micros.abs() < 9.2e15 {
                true => Ok(OutputValue::Interval(IntervalMonthDayNano::new(
                    0,
                    0,
                    micros.round_ties_even() as i64 * 1_000,
                ))),
                false => Err(overflow()),
            };
        }
        let number = arguments[0].whole();
        let small = |part: i32| {
            i64::from(part).checked_mul(number).and_then(|part| i32::try_from(part).ok())
        };
        let value = small(one.months).zip(small(one.days)).zip(one.nanoseconds.checked_mul(number));
        let value =
            value.map(|((months, days), nanos)| IntervalMonthDayNano::new(months, days, nanos));
        value.map(OutputValue::Interval).ok_or_else(overflow)
    }))
}
