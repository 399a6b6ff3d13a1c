//! Conversions between dates, local times and timestamps with time zone.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    Date32Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use tessera_text::calendar::offset_at;
use tessera_types::{Atom, Result, TimeUnit};

use crate::kernel::unexpected;
use crate::parse::timestamp::offset_in;
use crate::scalar::per_second;

/// Calls a macro with Arrow's type of the timestamps of a unit.
macro_rules! for_unit {
    ($unit:expr, $run:ident) => {
        match $unit {
            TimeUnit::Second => $run!(TimestampSecondType),
            TimeUnit::Millisecond => $run!(TimestampMillisecondType),
            TimeUnit::Microsecond => $run!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => $run!(TimestampNanosecondType),
        }
    };
}

/// Converts days to the timestamps of their midnights; NULL if out of range. Infinite days stay
/// infinite.
pub(crate) fn midnights(array: &ArrayRef, unit: TimeUnit, atom: &Atom) -> Result<ArrayRef> {
    let days = array.as_primitive_opt::<Date32Type>().ok_or_else(|| unexpected(array))?;
    let per_day = 86_400 * per_second(unit);
    let moment = |day: i32| match day {
        i32::MAX => Some(i64::MAX),
        i32::MIN => Some(i64::MIN),
        _ => i64::from(day).checked_mul(per_day),
    };
    macro_rules! run {
        ($type:ty) => {{
            let output: PrimitiveArray<$type> = days.unary_opt(moment);
            Arc::new(output.with_data_type(atom.arrow())) as ArrayRef
        }};
    }
    Ok(for_unit!(unit, run))
}

/// Converts timestamps to the local time of their zone.
pub(crate) fn local_time(
    array: &ArrayRef,
    unit: TimeUnit,
    zone: &str,
    naive: &Atom,
) -> Result<ArrayRef> {
    let zone = Tz::from_str(zone)?;
    let second = per_second(unit);
    shifted(array, unit, naive, |moment| {
        Some(moment.saturating_add(offset_at(&zone, moment.div_euclid(second)) * second))
    })
}

/// Converts local times of a zone to timestamps with time zone; NULL if out of range.
pub(crate) fn zoned_time(
    array: &ArrayRef,
    unit: TimeUnit,
    zone: &str,
    to: &Atom,
) -> Result<ArrayRef> {
    let zone = Tz::from_str(zone)?;
    let second = per_second(unit);
    shifted(array, unit, to, |local| {
        local.checked_sub(offset_in(local.div_euclid(second), &zone) * second)
    })
}

/// Converts timestamps of a unit one by one to those of another type; NULL where `shift` returns
/// `None`. Infinite ones stay infinite.
fn shifted(
    array: &ArrayRef,
    unit: TimeUnit,
    to: &Atom,
    shift: impl Fn(i64) -> Option<i64>,
) -> Result<ArrayRef> {
    let finite = |moment: i64| match moment {
        i64::MAX | i64::MIN => Some(moment),
        _ => shift(moment),
    };
    macro_rules! run {
        ($type:ty) => {{
            let input = array.as_primitive_opt::<$type>().ok_or_else(|| unexpected(array))?;
            Arc::new(input.unary_opt::<_, $type>(finite).with_data_type(to.arrow())) as ArrayRef
        }};
    }
    Ok(for_unit!(unit, run))
}
