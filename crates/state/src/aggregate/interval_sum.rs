//! `sum` and `avg` of intervals: months, days and nanoseconds are summed separately.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, IntervalMonthDayNanoArray};
use arrow::datatypes::IntervalMonthDayNano;
use tessera_functions::divide_interval;
use tessera_types::{Code, Error, Result, SqlState};
use tessera_values::plain::to_form;
use tessera_vector::Column;
use tessera_vector::physical::interval_values;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, OutputKind, counts, plain};

/// State: months, days, nanoseconds, and the number of values (4 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct IntervalState {
    months: u64,
    days: u64,
    nanoseconds: u64,
    count: u64,
}

// SAFETY: four words, no padding, every pattern is a value.
unsafe impl Pod for IntervalState {}

fn overflow() -> Error {
    Error::new(Code::Overflow, "a sum of intervals leaves the range of its type")
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
}

fn add(state: &mut IntervalState, [months, days, nanoseconds]: [i64; 3], count: u64) -> Result<()> {
    let sum = |a: u64, b: i64| (a as i64).checked_add(b).map(|sum| sum as u64).ok_or_else(overflow);
    *state = IntervalState {
        months: sum(state.months, months)?,
        days: sum(state.days, days)?,
        nanoseconds: sum(state.nanoseconds, nanoseconds)?,
        count: state.count + count,
    };
    Ok(())
}

struct Add;

impl Fold for Add {
    type State = IntervalState;
    type Value = IntervalMonthDayNano;

    fn fold(&self, state: &mut IntervalState, value: IntervalMonthDayNano) -> Result<()> {
        add(state, [value.months.into(), value.days.into(), value.nanoseconds], 1)
    }
}

/// The sum of intervals.
#[derive(Debug)]
pub(super) struct IntervalSum {
    /// The offset of the state.
    pub offset: usize,
}

fn merge_sums(state: &mut IntervalState, other: IntervalState) -> Result<()> {
    let parts = [other.months as i64, other.days as i64, other.nanoseconds as i64];
    add(state, parts, other.count)
}

impl Aggregate for IntervalSum {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let values = interval_values(&array)?;
        fold(&Add, area, self.offset, groups, array.nulls(), |row| values[row])
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, merge_sums)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, merge_sums).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        if output.kind == OutputKind::Count {
            return counts(
                area.states::<IntervalState>(self.offset).map(|state| state.count),
                output,
            );
        }
        let value = |state: IntervalState| -> Result<Option<IntervalMonthDayNano>> {
            let narrow = |part: u64| i32::try_from(part as i64).map_err(|_| overflow());
            Ok(match state.count {
                0 => None,
                count => {
                    let (months, days) = (narrow(state.months)?, narrow(state.days)?);
                    let sum = IntervalMonthDayNano::new(months, days, state.nanoseconds as i64);
                    Some(match output.kind {
                        OutputKind::Average => divide_interval(sum, count).ok_or_else(overflow)?,
                        _ => sum,
                    })
                }
            })
        };
        let sums = area.states(self.offset).map(value);
        to_form(Arc::new(sums.collect::<Result<IntervalMonthDayNanoArray>>()?), &output.data_type)
    }
}
