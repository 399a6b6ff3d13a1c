//! Rounding to declared precisions: `timestamp(p)`, `time(p)`, `interval(p)`, and intervals
//! restricted to some units.

use arrow::datatypes::IntervalMonthDayNano;
use tessera_types::{Atom, Error, Result, SqlState};

use tessera_values::parse::interval::{UnitRange, interval_in, truncate_to};
use tessera_values::parse::unit::Unit;
use tessera_values::rowwise::{InputValue, MICROSECONDS, OutputValue, TIME, fault, strict};
use tessera_values::temporal::rounded;
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// Microseconds from 1970 to 2000: PostgreSQL rounds relative to 2000.
const TO_2000: i64 = 946_684_800_000_000;

/// `round_moment(timestamp, digits)`, `round_time(time, digits)`.
pub(super) fn moment(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let [value, digits] = args else {
        return Err(wrong_arguments(name, args, "it takes a value and digits"));
    };
    if *value.atom == Atom::TimeTz {
        return super::timetz::rounded(name, args);
    }
    let of_time = name == "round_time";
    let atom = match value.atom {
        _ if of_time => TIME,
        Atom::Timestamp(_, zone) => {
            Atom::Timestamp(tessera_types::TimeUnit::Microsecond, zone.clone())
        }
        _ => MICROSECONDS,
    };
    if !digits.atom.is_integer() {
        return Err(wrong_arguments(name, args, "it takes a value and digits"));
    }
    let from = if of_time { 0 } else { TO_2000 };
    Ok(strict(atom.clone(), args, vec![atom, Atom::Int64], move |arguments| {
        let (moment, digits) = (arguments[0].whole(), arguments[1].whole());
        if matches!(moment, i64::MAX | i64::MIN) {
            return Ok(OutputValue::Whole(moment));
        }
        let found = moment
            .checked_sub(from)
            .and_then(|m| rounded(m, digits))
            .and_then(|m| m.checked_add(from));
        found
            .map(OutputValue::Whole)
            .ok_or_else(|| fault("timestamp out of range", SqlState::DATETIME_FIELD_OVERFLOW))
    }))
}

/// `interval_in(text, largest, smallest, digits)` and `interval_to(interval, largest, smallest,
/// digits)`. The units are those of `INTERVAL largest TO smallest` or empty; a negative `digits`
/// keeps all digits.
pub(super) fn interval(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if args.len() != 4 {
        return Err(wrong_arguments(name, args, "it takes a value, two units and digits"));
    }
    let reads = name == "interval_in";
    let first = if reads { Atom::String } else { Atom::Interval };
    let casts = vec![first, Atom::String, Atom::String, Atom::Int64];
    Ok(strict(Atom::Interval, args, casts, move |arguments| {
        let range = match (Unit::named(arguments[1].text()), Unit::named(arguments[2].text())) {
            (Some(largest), Some(smallest)) => Some(UnitRange { largest, smallest }),
            _ => None,
        };
        let value = match arguments[0] {
            InputValue::Text(text) => {
                interval_in(text, range).map_err(|failure| failure.error(text, &Atom::Interval))?
            }
            value => range.map_or(value.interval(), |range| truncate_to(value.interval(), range)),
        };
        let digits = arguments[3].whole();
        if digits < 0 {
            return Ok(OutputValue::Interval(value));
        }
        let micros = rounded(value.nanoseconds / 1_000, digits);
        let nanos = micros.and_then(|micros| micros.checked_mul(1_000));
        let nanos = nanos.ok_or_else(|| -> Error {
            fault("interval out of range", SqlState::INTERVAL_FIELD_OVERFLOW)
        })?;
        Ok(OutputValue::Interval(IntervalMonthDayNano::new(value.months, value.days, nanos)))
    }))
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!(rounded(500_000, 0), Some(1_000_000));
        assert_eq!(rounded(-500_000, 0), Some(-1_000_000));
        assert_eq!(rounded(449_999, 1), Some(400_000));
        assert_eq!(rounded(123, 6), Some(123));
        assert_eq!(rounded(i64::MAX, 0), None);
    }
}
