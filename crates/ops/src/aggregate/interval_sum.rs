//! `sum` of intervals: months, days and nanoseconds each by themselves.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, IntervalMonthDayNanoArray};
use arrow::datatypes::IntervalMonthDayNano;
use tessera_encodings::Column;
use tessera_types::{Code, Error, Result};

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, fold};
use super::{Aggregate, Output, OutputKind, convert, plain};
use crate::physical::interval_values;

/// State: months, days, nanoseconds, and how many values there were (4 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct IntervalState {
    months: u64,
    days: u64,
    nanoseconds: u64,
    count: u64,
}

// SAFETY: four words, no padding, every pattern is a value.
unsafe impl Pod for IntervalState {}

fn overflow() -> Error {
    Error::new(Code::Overflow, "a sum of intervals leaves the range of its type")
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
pub(crate) struct IntervalSum {
    /// Where the state starts.
    pub(crate) offset: usize,
}

impl Aggregate for IntervalSum {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let values = interval_values(&array)?;
        fold(&Add, area, self.offset, groups, array.nulls(), |row| values[row])
    }

    fn merge(
        &mut self,
        area: &mut Area,
        into: &[u32],
        _: &mut dyn Any,
        from: &Area,
        rows: &[u32],
    ) -> Result<()> {
        for (&into, &row) in into.iter().zip(rows) {
            let other = from.get::<IntervalState>(row, self.offset);
            let parts = [other.months as i64, other.days as i64, other.nanoseconds as i64];
            add(area.get_mut(into, self.offset), parts, other.count)?;
        }
        Ok(())
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        if output.kind == OutputKind::Count {
            let count = |group| area.get::<IntervalState>(group, self.offset).count as i64;
            let counts = Int64Array::from_iter_values((0..area.groups() as u32).map(count));
            return convert(Arc::new(counts), &output.data_type);
        }
        let value = |state: IntervalState| -> Result<Option<IntervalMonthDayNano>> {
            let narrow = |part: u64| i32::try_from(part as i64).map_err(|_| overflow());
            Ok(match state.count {
                0 => None,
                _ => Some(IntervalMonthDayNano::new(
                    narrow(state.months)?,
                    narrow(state.days)?,
                    state.nanoseconds as i64,
                )),
            })
        };
        let groups = 0..area.groups() as u32;
        let sums = groups.map(|group| value(area.get(group, self.offset)));
        convert(Arc::new(sums.collect::<Result<IntervalMonthDayNanoArray>>()?), &output.data_type)
    }
}
