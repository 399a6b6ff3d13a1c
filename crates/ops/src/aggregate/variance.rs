//! `var_samp`, `var_pop`, `stddev_samp`, `stddev_pop`: Welford's method, merged by Chan's.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use tessera_encodings::Column;
use tessera_types::Result;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold_array, merge};
use super::{Aggregate, Output, OutputKind, plain};
use crate::expression::plain::to_form;

/// State: count, mean, sum of squared distances from the mean (3 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VarianceState {
    count: u64,
    mean: f64,
    squares: f64,
}

// SAFETY: three words, no padding, every pattern is a value.
unsafe impl Pod for VarianceState {}

struct Welford;

impl Fold for Welford {
    type State = VarianceState;
    type Value = f64;

    #[inline(always)]
    fn fold(&self, state: &mut VarianceState, value: f64) -> Result<()> {
        state.count += 1;
        let distance = value - state.mean;
        state.mean += distance / state.count as f64;
        state.squares += distance * (value - state.mean);
        Ok(())
    }
}

/// All four functions; the output says which.
#[derive(Debug)]
pub(crate) struct Variance {
    /// Where the state starts.
    pub(crate) offset: usize,
}

impl Aggregate for Variance {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = to_form(plain(args, 0)?, &DataType::Float64)?;
        fold_array(&Welford, area, self.offset, groups, array.as_primitive::<Float64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, |state: &mut VarianceState, other: VarianceState| {
            if state.count == 0 {
                *state = other;
            } else if other.count > 0 {
                let (ours, theirs) = (state.count as f64, other.count as f64);
                let total = ours + theirs;
                let distance = other.mean - state.mean;
                state.mean += distance * theirs / total;
                state.squares += other.squares + distance * distance * ours * theirs / total;
                state.count += other.count;
            }
            Ok(())
        })
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let (sample, root) = match output.kind {
            OutputKind::Variance { sample, root } => (sample, root),
            _ => (true, false),
        };
        let values = area.states::<VarianceState>(self.offset).map(|state| {
            let divisor = if sample { state.count.checked_sub(1) } else { Some(state.count) };
            let variance = divisor.filter(|divisor| *divisor > 0).map(|d| state.squares / d as f64);
            if root { variance.map(f64::sqrt) } else { variance }
        });
        to_form(Arc::new(values.collect::<Float64Array>()), &output.data_type)
    }
}
