//! `fsum` and `favg`, which add doubles with the error of each addition, and `product`.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::Float64Type;
use tessera_types::Result;
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::sum::overflow;
use super::{Aggregate, Output, OutputKind, counts, plain};

/// A sum, the sum of what its additions have lost (Neumaier), the number of values, and whether one
/// of them is infinite or NaN (4 words).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct CompensatedState {
    sum: f64,
    lost: f64,
    count: u64,
    is_special: u64,
}

// SAFETY: four words, no padding, every pattern is a value.
unsafe impl Pod for CompensatedState {}

impl CompensatedState {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += match self.sum.abs() >= value.abs() {
            true => (self.sum - sum) + value,
            false => (value - sum) + self.sum,
        };
        self.sum = sum;
    }

    #[inline(always)]
    fn merge(&mut self, other: CompensatedState) -> Result<()> {
        self.add(other.sum);
        self.lost += other.lost;
        self.count += other.count;
        self.is_special |= other.is_special;
        Ok(())
    }

    /// Returns the sum, or an error if finite values have overflowed.
    fn total(&self) -> Result<f64> {
        match (self.sum.is_finite(), self.is_special != 0) {
            (true, _) => Ok(self.sum + self.lost),
            (false, true) => Ok(self.sum),
            (false, false) => Err(overflow()),
        }
    }
}

struct AddCompensated;

impl Fold for AddCompensated {
    type State = CompensatedState;
    type Value = f64;

    #[inline(always)]
    fn fold(&self, state: &mut CompensatedState, value: f64) -> Result<()> {
        state.add(value);
        state.count += 1;
        state.is_special |= u64::from(!value.is_finite());
        Ok(())
    }
}

/// `fsum`, `favg` and their count.
#[derive(Debug)]
pub(super) struct CompensatedSum {
    /// The offset of the state.
    pub offset: usize,
}

impl Aggregate for CompensatedSum {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let values = plain(args, 0)?;
        fold_array(&AddCompensated, area, self.offset, groups, values.as_primitive::<Float64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, CompensatedState::merge)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, CompensatedState::merge).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<CompensatedState>(self.offset);
        let value = |state: CompensatedState| match (state.count, output.kind) {
            (0, _) => Ok(None),
            (count, OutputKind::Average) => Ok(Some(state.total()? / count as f64)),
            _ => state.total().map(Some),
        };
        if output.kind == OutputKind::Count {
            return counts(states.map(|state| state.count), output);
        }
        to_form(Arc::new(states.map(value).collect::<Result<Float64Array>>()?), &output.data_type)
    }
}

/// A product, and 1 if it has a factor (2 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ProductState {
    product: f64,
    seen: u64,
}

// SAFETY: two words, no padding, every pattern is a value.
unsafe impl Pod for ProductState {}

impl ProductState {
    #[inline(always)]
    fn merge(&mut self, other: ProductState) -> Result<()> {
        match (self.seen, other.seen) {
            (_, 0) => {}
            (0, _) => *self = other,
            _ => self.product *= other.product,
        }
        Ok(())
    }
}

struct Multiply;

impl Fold for Multiply {
    type State = ProductState;
    type Value = f64;

    #[inline(always)]
    fn fold(&self, state: &mut ProductState, value: f64) -> Result<()> {
        state.merge(ProductState { product: value, seen: 1 })
    }
}

/// The product of doubles; infinite where it leaves their range, as in DuckDB.
#[derive(Debug)]
pub(super) struct Product {
    /// The offset of the state.
    pub offset: usize,
}

impl Aggregate for Product {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let values = plain(args, 0)?;
        fold_array(&Multiply, area, self.offset, groups, values.as_primitive::<Float64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, ProductState::merge)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, ProductState::merge).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<ProductState>(self.offset);
        let values = states.map(|state| (state.seen != 0).then_some(state.product));
        to_form(Arc::new(values.collect::<Float64Array>()), &output.data_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_additions_lose_is_kept() {
        let state = |values: &[f64]| {
            let mut state = CompensatedState::default();
            values.iter().for_each(|value| AddCompensated.fold(&mut state, *value).unwrap());
            state
        };
        assert_eq!(state(&[1e16, 1.0, 1.0, -1e16]).total().unwrap(), 2.0);
        let mut parts = state(&[1e16, 1.0]);
        parts.merge(state(&[1.0, -1e16])).unwrap();
        assert_eq!((parts.total().unwrap(), parts.count), (2.0, 4));
        assert!(state(&[1e308, 1e308]).total().is_err());
        assert_eq!(state(&[1.0, f64::INFINITY]).total().unwrap(), f64::INFINITY);
        assert!(state(&[f64::INFINITY, f64::NEG_INFINITY]).total().unwrap().is_nan());
    }
}
