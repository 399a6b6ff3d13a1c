//! Functions of times with time zone.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use tessera_types::{Atom, Result};
use tessera_values::rowwise::{InputValue, OutputValue, TIME, signature, strict, zoned};
use tessera_values::temporal::timetz::TimeTz;
use tessera_values::temporal::zones::{Zone, zone_of};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

use crate::patterns::PatternCache;
use crate::temporal::at_zone::zone_given;

fn packed(time: TimeTz) -> OutputValue {
    OutputValue::Whole(time.packed())
}

/// `timetz_in(value, zone, today, safe)`: a text, or a time of day, in a zone. With `safe`, a text
/// that is no time gives NULL.
pub(super) fn in_zone(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let of_time = matches!(args.first(), Some(Arg { atom: Atom::Time(_), .. }));
    let first = if of_time { TIME } else { Atom::String };
    let casts = signature(name, args, &[first, Atom::String, Atom::Date, Atom::Boolean])?;
    let zones = PatternCache::new(|name| Ok(Zone::Named(Tz::from_str(name)?)));
    Ok(strict(Atom::TimeTz, args, casts, move |arguments| {
        let (zone, today) = (zones.get(arguments[1].text())?, arguments[2].whole());
        match arguments[0] {
            InputValue::Text(text) => match TimeTz::read(text.trim_ascii(), &zone, today) {
                Ok(time) => Ok(packed(time)),
                Err(_) if arguments[3] == InputValue::Boolean(true) => Ok(OutputValue::Null),
                Err(failure) => Err(failure.error(text, &Atom::TimeTz)),
            },
            ref time => Ok(packed(TimeTz::of_time(time.whole(), &zone, today))),
        }
    }))
}

/// `timetz_at(zone, time, now)`: the same moment in a zone with the offset that it has now. The
/// zone is a name, or an offset as an interval.
pub(super) fn at_zone(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let of_interval =
        matches!(args.first(), Some(Arg { atom: Atom::Interval | Atom::Duration(_), .. }));
    let first = if of_interval { Atom::Interval } else { Atom::String };
    let casts = signature(name, args, &[first, Atom::TimeTz, zoned()]).map_err(|_| {
        let hint = "it takes a time zone as text or an interval, and a time";
        wrong_arguments("timezone", args.get(..2).unwrap_or(args), hint)
    })?;
    let zones = PatternCache::new(zone_of);
    Ok(strict(Atom::TimeTz, args, casts, move |arguments| {
        let zone = zone_given(&arguments[0], &zones)?;
        let east = zone.offset_at(arguments[2].whole().div_euclid(1_000_000));
        Ok(packed(TimeTz::unpacked(arguments[1].whole()).at(-east)))
    }))
}

/// `round_time(time, digits)` of a time with time zone.
pub(super) fn rounded(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::TimeTz, Atom::Int64])?;
    Ok(strict(Atom::TimeTz, args, casts, |arguments| {
        let time = TimeTz::unpacked(arguments[0].whole());
        Ok(packed(time.rounded(arguments[1].whole())))
    }))
}
