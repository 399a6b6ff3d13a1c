//! DuckDB's functions that are named like what they give: `year(x)`, `dayname(x)`, `to_days(n)`.

use arrow::datatypes::IntervalMonthDayNano;

use tessera_text::names::{DAYS, MONTHS};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::part::{Style, resolve_named};
use crate::moments::fields::{Calendar, Field};
use crate::parse_interval::{Unit, interval};
use crate::rowwise::{MICROSECONDS, Out, signature, strict, takes};
use crate::types::{Arg, Resolved, wrong_arguments};

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let field = match name {
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

fn of_date(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let fits =
        matches!(args, [value] if takes(value, &MICROSECONDS) && *value.atom != Atom::String);
    if !fits {
        return Err(wrong_arguments(name, args, "it takes a date or a timestamp"));
    }
    let of = move |work: fn(&Calendar) -> Out, atom: Atom| {
        strict(atom, args, vec![Atom::Date], move |given| Ok(work(&Calendar::of(given[0].whole()))))
    };
    Ok(match name {
        "dayname" => {
            of(|date| Out::Text(DAYS[date.day_of_week() as usize % 7].to_string()), Atom::String)
        }
        "monthname" => {
            of(|date| Out::Text(MONTHS[(date.month - 1) as usize % 12].to_string()), Atom::String)
        }
        "era" => of(|date| Out::Whole(i64::from(date.year > 0)), Atom::Int64),
        _ => of(|date| Out::Whole(date.shown_iso_year() * 100 + date.week()), Atom::Int64),
    })
}

/// `to_days(n)` and its like: an interval of so many units.
fn units(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let unit = name.strip_prefix("to_").and_then(Unit::named);
    let Some(one) = unit.and_then(|unit| interval(&format!("1 {}", unit.name())).ok()) else {
        return Err(wrong_arguments(name, args, "it takes a number"));
    };
    let fractions = matches!(name, "to_seconds" | "to_milliseconds");
    let wanted = if fractions { Atom::Float64 } else { Atom::Int64 };
    let casts = signature(name, args, &[wanted])?;
    Ok(strict(Atom::Interval, args, casts, move |given| {
        let overflow = || {
            Error::new(Code::Overflow, "interval out of range")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        };
        if fractions {
            let micros = given[0].double() * (one.nanoseconds / 1_000) as f64;
            return match micros.abs() < 9.2e15 {
                true => Ok(Out::Interval(IntervalMonthDayNano::new(
                    0,
                    0,
                    micros.round_ties_even() as i64 * 1_000,
                ))),
                false => Err(overflow()),
            };
        }
        let number = given[0].whole();
        let small = |part: i32| {
            i64::from(part).checked_mul(number).and_then(|part| i32::try_from(part).ok())
        };
        let value = small(one.months).zip(small(one.days)).zip(one.nanoseconds.checked_mul(number));
        let value =
            value.map(|((months, days), nanos)| IntervalMonthDayNano::new(months, days, nanos));
        value.map(Out::Interval).ok_or_else(overflow)
    }))
}
