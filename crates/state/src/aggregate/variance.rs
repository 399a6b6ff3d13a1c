//! `var_samp`, `var_pop`, `stddev_samp`, `stddev_pop`: exact sums for integers and decimals; for
//! floats the method of Youngs and Cramer, merged by Chan's, as in PostgreSQL. Results equal
//! PostgreSQL's to the last digit.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type, i256};
use tessera_types::{Code, Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::sum::Exact;
use super::{Aggregate, Output, OutputKind, plain};

#[cold]
fn overflow() -> Error {
    Error::new(
        Code::Overflow,
        "a variance leaves the range of its computation; cast the argument to double precision or to fewer digits",
    )
}

/// Returns the divisor, and whether to take the root.
fn form(output: &Output, count: u64) -> (Option<u64>, bool) {
    let (sample, root) = match output.kind {
        OutputKind::Variance { sample, root } => (sample, root),
        _ => (true, false),
    };
    let divisor = if sample { count.checked_sub(1) } else { Some(count) };
    (divisor.filter(|divisor| *divisor > 0), root)
}

/// State for floats: count, sum, sum of squared deviations from the mean (3 words). The last is NaN
/// after an infinite or NaN value, and infinite after an overflow of finite values. An overflow is
/// reported only at the end, since another worker may have an infinite value.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct VarianceState {
    count: u64,
    sum: f64,
    squares: f64,
}

impl VarianceState {
    /// Sets the state; `is_finite` says whether all its values are finite.
    #[inline(always)]
    fn set(&mut self, count: u64, sum: f64, squares: f64, is_finite: bool) {
        *self = VarianceState { count, sum, squares };
        if !is_finite {
            self.squares = f64::NAN;
        } else if !(sum.is_finite() && squares.is_finite()) {
            self.squares = f64::INFINITY;
        }
    }
}

// SAFETY: three words, no padding, every pattern is a value.
unsafe impl Pod for VarianceState {}

struct YoungsCramer;

impl Fold for YoungsCramer {
    type State = VarianceState;
    type Value = f64;

    #[inline(always)]
    fn fold(&self, state: &mut VarianceState, value: f64) -> Result<()> {
        let count = state.count + 1;
        let (before, after, sum) = (state.count as f64, count as f64, state.sum + value);
        let mut squares = state.squares;
        if count > 1 {
            let distance = value * after - sum;
            squares += distance * distance / (after * before);
        }
        state.set(count, sum, squares, !state.squares.is_nan() && value.is_finite());
        Ok(())
    }
}

/// All four functions of floats; the output selects one.
#[derive(Debug)]
pub(super) struct Variance {
    /// The offset of the state.
    pub offset: usize,
}

impl Aggregate for Variance {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = to_form(plain(args, 0)?, &DataType::Float64)?;
        fold_array(&YoungsCramer, area, self.offset, groups, array.as_primitive::<Float64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, merge_floats)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, merge_floats).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let values = area.states::<VarianceState>(self.offset).map(|state| {
            if state.squares.is_infinite() {
                return Err(overflow());
            }
            let (divisor, root) = form(output, state.count);
            let variance = divisor.map(|divisor| state.squares / divisor as f64);
            Ok(if root { variance.map(f64::sqrt) } else { variance })
        });
        to_form(Arc::new(values.collect::<Result<Float64Array>>()?), &output.data_type)
    }
}

/// State for integers: count, sum of 128 bits, sum of squares of 256 bits, low words first (7
/// words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ExactVarianceState {
    count: u64,
    sum: [u64; 2],
    squares: [u64; 4],
}

/// Words of an [`ExactVarianceState`].
pub(super) const EXACT_WORDS: usize = size_of::<ExactVarianceState>() / 8;

// SAFETY: seven words, no padding, every pattern is a value.
unsafe impl Pod for ExactVarianceState {}

fn joined([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn split(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

impl ExactVarianceState {
    fn sum(&self) -> i128 {
        joined(self.sum) as i128
    }

    fn squares(&self) -> i256 {
        let [a, b, c, d] = self.squares;
        i256::from_parts(joined([a, b]), joined([c, d]) as i128)
    }

    fn add(&mut self, count: u64, sum: i128, squares: i256) -> Result<()> {
        self.count += count;
        self.sum = split(self.sum().checked_add(sum).ok_or_else(overflow)? as u128);
        let (low, high) = self.squares().checked_add(squares).ok_or_else(overflow)?.to_parts();
        let ([a, b], [c, d]) = (split(low), split(high as u128));
        self.squares = [a, b, c, d];
        Ok(())
    }
}

struct AddSquare<N>(PhantomData<N>);

impl<N: Exact> Fold for AddSquare<N> {
    type State = ExactVarianceState;
    type Value = N;

    #[inline(always)]
    fn fold(&self, state: &mut ExactVarianceState, value: N) -> Result<()> {
        let value = value.wide();
        if size_of::<N>() > 8 {
            let wide = i256::from_i128(value);
            return state.add(1, value, wide.wrapping_mul(wide));
        }
        // The square of a 64-bit number has 128 bits.
        let magnitude = value.unsigned_abs();
        state.add(1, value, i256::from_parts(magnitude * magnitude, 0))
    }
}

/// All four functions of integers or decimals; the output selects one.
#[derive(Debug)]
pub(super) struct ExactVariance<T> {
    offset: usize,
    scale: i8,
    values: PhantomData<fn() -> T>,
}

impl<T> ExactVariance<T> {
    /// Creates the function over values of this type.
    pub(super) fn new(offset: usize, data_type: &DataType) -> Self {
        let scale = match data_type {
            DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
            _ => 0,
        };
        ExactVariance { offset, scale, values: PhantomData }
    }
}

impl<T> Aggregate for ExactVariance<T>
where
    T: ArrowPrimitiveType + std::fmt::Debug,
    T::Native: Exact,
{
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        fold_array(&AddSquare(PhantomData), area, self.offset, groups, array.as_primitive::<T>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, merge_exact)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, merge_exact).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let values = area.states::<ExactVarianceState>(self.offset).map(|state| {
            let (divisor, root) = form(output, state.count);
            let Some(divisor) = divisor else { return Ok(None) };
            let variance = variance(&state, divisor, self.scale).ok_or_else(overflow)?;
            Ok(Some(if root { variance.sqrt() } else { variance }))
        });
        to_form(Arc::new(values.collect::<Result<Float64Array>>()?), &output.data_type)
    }
}

/// Computes `(n·Σx² − (Σx)²) / (n·divisor)` with an exact numerator.
fn variance(state: &ExactVarianceState, divisor: u64, scale: i8) -> Option<f64> {
    let sum = i256::from_i128(state.sum());
    let count = i256::from_parts(state.count.into(), 0);
    let numerator = count.checked_mul(state.squares())?.checked_sub(sum.checked_mul(sum)?)?;
    let (low, high) = numerator.to_parts();
    let numerator = high as f64 * 2f64.powi(128) + low as f64;
    let denominator = u128::from(state.count) * u128::from(divisor);
    let variance = numerator / denominator as f64;
    let power = 10f64.powi(scale.into());
    Some(variance / power / power)
}

/// Chan, Golub and LeVeque: combines the squared deviations of two sets of values.
fn merge_floats(state: &mut VarianceState, other: VarianceState) -> Result<()> {
    if state.count == 0 {
        *state = other;
    } else if other.count > 0 {
        let (ours, theirs) = (state.count as f64, other.count as f64);
        let distance = state.sum / ours - other.sum / theirs;
        let between = ours * theirs * distance * distance / (ours + theirs);
        let squares = state.squares + other.squares + between;
        let is_finite = !state.squares.is_nan() && !other.squares.is_nan();
        state.set(state.count + other.count, state.sum + other.sum, squares, is_finite);
    }
    Ok(())
}

fn merge_exact(state: &mut ExactVarianceState, other: ExactVarianceState) -> Result<()> {
    state.add(other.count, other.sum(), other.squares())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_value_counts_more_than_what_left_the_range() {
        let state = |values: &[f64]| {
            let mut state = VarianceState { count: 0, sum: 0.0, squares: 0.0 };
            values.iter().for_each(|value| YoungsCramer.fold(&mut state, *value).unwrap());
            state.squares
        };
        assert!(state(&[f64::INFINITY, 1e308, 1e308]).is_nan());
        assert!(state(&[1e308, 1e308, f64::INFINITY]).is_nan());
        assert!(state(&[1.0, f64::NAN]).is_nan());
        // An overflow is an error at the end, whatever values follow.
        assert!(state(&[1e308, 1e308]).is_infinite());
        assert!(state(&[1e308, 1e308, -1e308, 1.0]).is_infinite());
        assert_eq!(state(&[1.0, 3.0]), 2.0);
    }

    #[test]
    fn whole_numbers_have_exact_variances() {
        let mut state = ExactVarianceState { count: 0, sum: [0; 2], squares: [0; 4] };
        for value in
            [9_223_372_036_854_775_807i64, 9_223_372_036_854_775_806, 9_223_372_036_854_775_805]
        {
            AddSquare(PhantomData).fold(&mut state, value).unwrap();
        }
        assert_eq!(variance(&state, 2, 0), Some(1.0));
        assert_eq!(variance(&state, 3, 2), Some(2.0 / 3.0 / 1e4));
        let mut state = ExactVarianceState { count: 0, sum: [0; 2], squares: [0; 4] };
        for value in [-1i128, 0, 1] {
            AddSquare(PhantomData).fold(&mut state, value).unwrap();
        }
        assert_eq!(variance(&state, 2, 0), Some(1.0));
    }
}
