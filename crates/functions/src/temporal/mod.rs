//! Functions on dates, times, timestamps and intervals, with PostgreSQL's semantics; functions that
//! PostgreSQL lacks follow DuckDB.
//!
//! All compute in microseconds, because timestamps in nanoseconds end in 2262.

mod age;
mod at_zone;
mod bucket;
mod clock_fields;
pub(crate) mod fields;
mod make;
mod names;
mod part;
mod round;
pub(crate) mod series;
mod strftime;
mod timetz;
mod trunc;

use tessera_types::{Atom, Result};

use super::compare::interval_length;
use tessera_values::rowwise::{InputValue, OutputValue, lenient};
use tessera_values::types::{Arg, ResolvedCall};

/// The names of the functions.
pub(crate) const NAMES: &[&str] = &[
    "age",
    "century",
    "date_add",
    "date_bin",
    "date_diff",
    "date_part",
    "date_sub",
    "date_trunc",
    "datediff",
    "datepart",
    "datesub",
    "datetrunc",
    "day",
    "dayname",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "decade",
    "epoch",
    "epoch_ms",
    "epoch_ns",
    "epoch_us",
    "era",
    "extract",
    "hour",
    "interval_in",
    "interval_to",
    "isfinite",
    "isodow",
    "isoyear",
    "julian",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "last_day",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "make_timestamp_ms",
    "make_timestamp_ns",
    "make_timestamptz",
    "microsecond",
    "millennium",
    "millisecond",
    "minute",
    "month",
    "monthname",
    "nanosecond",
    "overlaps",
    "quarter",
    "round_moment",
    "round_time",
    "second",
    "strftime",
    "strptime",
    "time_bucket",
    "timetz_at",
    "timetz_in",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "to_centuries",
    "to_days",
    "to_decades",
    "to_hours",
    "to_microseconds",
    "to_millennia",
    "to_milliseconds",
    "to_minutes",
    "to_months",
    "to_quarters",
    "to_seconds",
    "to_weeks",
    "to_years",
    "try_strptime",
    "week",
    "weekday",
    "weekofyear",
    "year",
    "yearweek",
];

/// Resolves a call if it is one of these functions.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "extract" | "date_part" | "datepart" => part::resolve(name, args),
        "date_trunc" | "datetrunc" => trunc::resolve(name, args),
        "date_bin" => trunc::resolve_bin(name, args),
        "age" => age::resolve(name, args),
        "overlaps" => age::overlaps(name, args),
        "date_diff" | "datediff" => age::difference(name, args, false),
        "date_sub" | "datesub" => age::difference(name, args, true),
        "date_add" => age::added(name, args),
        "justify_days" | "justify_hours" | "justify_interval" => age::justified(name, args),
        "isfinite" => make::is_finite(name, args),
        "last_day" => make::last_day(name, args),
        "make_date" => make::date(name, args),
        "make_time" => make::time(name, args),
        "make_timestamp" | "make_timestamptz" => make::timestamp(name, args),
        "make_timestamp_ms" | "make_timestamp_ns" => make::from_number(name, args),
        "make_interval" => make::interval(name, args),
        "generate_series" | "range" => return series::resolve(name, args),
        // With a format pattern, `to_timestamp` is another function.
        "to_timestamp" if args.len() == 1 => make::from_epoch(name, args),
        "epoch_ms" | "epoch_us" | "epoch_ns" => make::epoch(name, args),
        "round_moment" | "round_time" => round::moment(name, args),
        "interval_in" | "interval_to" => round::interval(name, args),
        "strftime" => strftime::resolve(name, args),
        "strptime" | "try_strptime" => strftime::resolve_parse(name, args),
        "timezone" if args.len() == 2 => at_zone::resolve(name, args),
        "time_bucket" => bucket::resolve(name, args),
        "timetz_at" => timetz::at_zone(name, args),
        "timetz_in" => timetz::in_zone(name, args),
        _ if NAMES.contains(&name) => names::resolve(name, args),
        _ => return None,
    })
}

/// `greatest` and `least` of intervals, compared by length; NULLs are ignored.
pub(crate) fn extreme(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let largest = name == "greatest";
    Ok(lenient(Atom::Interval, args, vec![Atom::Interval; args.len()], move |arguments| {
        let intervals =
            arguments.iter().filter(|value| **value != InputValue::Null).map(InputValue::interval);
        let found = intervals.reduce(|best, next| {
            let (a, b) = (interval_length(best), interval_length(next));
            let better = if largest { b > a } else { b < a };
            if better { next } else { best }
        });
        Ok(found.map_or(OutputValue::Null, OutputValue::Interval))
    }))
}
