//! `timezone(zone, timestamp)`, the function behind `AT TIME ZONE`.

use std::sync::Arc;

use tessera_types::{Atom, Code, Error, Result, SqlState};

use crate::patterns::PatternCache;
use tessera_values::rowwise::{InputValue, MICROSECONDS, OutputValue, fault, strict, zoned};
use tessera_values::temporal::zones::{Zone, zone_of};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// Resolves `timezone(zone, timestamp)`: the local time of a timestamp with time zone, or the
/// timestamp with time zone of a local time. The zone is a name or an offset as an interval.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || {
        let hint = "it takes a time zone as text or an interval, and a timestamp";
        wrong_arguments(name, args, hint)
    };
    let [zone, value] = args else { return Err(wrong()) };
    let of_interval = matches!(zone.atom, Atom::Interval | Atom::Duration(_));
    if !of_interval && !matches!(zone.atom, Atom::String | Atom::Null) {
        return Err(wrong());
    }
    let to_local = match value.atom {
        Atom::Timestamp(_, Some(_)) | Atom::Null => true,
        Atom::Timestamp(_, None) => false,
        _ => return Err(wrong()),
    };
    let (from, to) = if to_local { (zoned(), MICROSECONDS) } else { (MICROSECONDS, zoned()) };
    let casts = vec![if of_interval { Atom::Interval } else { Atom::String }, from];
    let cache = PatternCache::new(zone_of);
    Ok(strict(to, args, casts, move |arguments| {
        let moment = arguments[1].whole();
        if matches!(moment, i64::MIN | i64::MAX) {
            return Ok(OutputValue::Whole(moment));
        }
        let zone = zone_given(&arguments[0], &cache)?;
        let seconds = moment.div_euclid(1_000_000);
        let moved = match to_local {
            true => moment.checked_add(zone.offset_at(seconds) * 1_000_000),
            false => moment.checked_sub(zone.offset_in(seconds) * 1_000_000),
        };
        moved.map(OutputValue::Whole).ok_or_else(|| {
            Error::new(Code::Overflow, "timestamp out of range")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        })
    }))
}

/// Returns the zone of an argument, a name or an offset as an interval.
pub(super) fn zone_given(
    argument: &InputValue<'_>,
    named: &PatternCache<Zone>,
) -> Result<Arc<Zone>> {
    match argument {
        InputValue::Interval(offset) => Ok(Arc::new(of_offset(*offset)?)),
        name => named.get(name.text()),
    }
}

/// A zone whose offset is an interval of hours, minutes and seconds.
fn of_offset(offset: arrow::datatypes::IntervalMonthDayNano) -> Result<Zone> {
    if offset.months != 0 || offset.days != 0 {
        return Err(fault(
            "a time zone as an interval must have hours, minutes and seconds only",
            SqlState::INVALID_PARAMETER_VALUE,
        ));
    }
    Ok(Zone::Fixed(offset.nanoseconds / 1_000_000_000))
}
