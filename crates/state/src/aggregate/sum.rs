//! `sum` and `avg`: exact for integers and decimals, in double precision for floats.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, Float64Array, Int64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use tessera_types::{Code, Error, Result};
use tessera_values::exact::quotient;
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, OutputKind, counts, plain};

/// State of an exact sum: 128 bits, low word first, and the number of values (3 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ExactState {
    low: u64,
    high: u64,
    count: u64,
}

// SAFETY: three words, no padding, every pattern is a value.
unsafe impl Pod for ExactState {}

impl ExactState {
    #[inline(always)]
    fn sum(&self) -> i128 {
        (u128::from(self.high) << 64 | u128::from(self.low)) as i128
    }

    #[inline(always)]
    fn set_sum(&mut self, sum: i128) {
        self.low = sum as u64;
        self.high = (sum as u128 >> 64) as u64;
    }

    #[inline(always)]
    fn merge(&mut self, other: ExactState) -> Result<()> {
        self.add(other.sum(), other.count)
    }

    #[inline(always)]
    fn add(&mut self, value: i128, count: u64) -> Result<()> {
        self.set_sum(self.sum().checked_add(value).ok_or_else(overflow)?);
        self.count += count;
        Ok(())
    }
}

/// State of a float sum: the sum and the number of values (2 words). The count's highest bit is set
/// if a value was infinite: without it, an infinite sum has overflowed. Compiled code leaves
/// infinite values to this tier.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct FloatState {
    sum: f64,
    count: u64,
}

/// The bit of [`FloatState::count`] that an infinite value sets.
const INFINITE: u64 = 1 << 63;

impl FloatState {
    #[inline(always)]
    fn add(&mut self, value: f64, count: u64) {
        self.sum += value;
        let infinite = if value.is_infinite() { INFINITE } else { 0 };
        self.count = (self.count + count) | infinite;
    }

    #[inline(always)]
    fn merge(&mut self, other: FloatState) -> Result<()> {
        self.sum += other.sum;
        let infinite = (self.count | other.count) & INFINITE;
        self.count = (self.count() + other.count()) | infinite;
        Ok(())
    }

    fn count(&self) -> u64 {
        self.count & !INFINITE
    }

    /// Returns the sum, or an error if finite values have overflowed.
    fn sum(&self) -> Result<f64> {
        match self.sum.is_infinite() && self.count & INFINITE == 0 {
            true => Err(overflow()),
            false => Ok(self.sum),
        }
    }
}

// SAFETY: two words, no padding, every pattern is a value.
unsafe impl Pod for FloatState {}

#[cold]
pub(super) fn overflow() -> Error {
    Error::new(
        Code::Overflow,
        "a sum leaves the range of its type; cast the argument of sum to a wider type",
    )
}

/// Values whose sum is exact.
pub(super) trait Exact: Copy {
    /// The value as 128 bits.
    fn wide(self) -> i128;
}

/// Values whose sum is a float.
pub(super) trait Inexact: Copy {
    /// The value as a double.
    fn double(self) -> f64;
}

macro_rules! exact {
    ($($native:ty)*) => { $(impl Exact for $native {
        #[inline(always)]
        fn wide(self) -> i128 { self as i128 }
    })* };
}
exact!(i8 i16 i32 i64 u8 u16 u32 u64 i128);

impl Inexact for f32 {
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(self)
    }
}

impl Inexact for f64 {
    #[inline(always)]
    fn double(self) -> f64 {
        self
    }
}

struct AddExact<N>(PhantomData<N>);

impl<N: Exact> Fold for AddExact<N> {
    type State = ExactState;
    type Value = N;

    #[inline(always)]
    fn fold(&self, state: &mut ExactState, value: N) -> Result<()> {
        if size_of::<N>() > 8 {
            return state.add(value.wide(), 1);
        }
        // Sums of 64-bit values cannot overflow 128 bits before the count overflows 64.
        state.set_sum(state.sum().wrapping_add(value.wide()));
        state.count += 1;
        Ok(())
    }
}

struct AddFloat<N>(PhantomData<N>);

impl<N: Inexact> Fold for AddFloat<N> {
    type State = FloatState;
    type Value = N;

    #[inline(always)]
    fn fold(&self, state: &mut FloatState, value: N) -> Result<()> {
        state.add(value.double(), 1);
        Ok(())
    }
}

/// Adds partial sums, each with its number of values.
struct MergeExact;

impl Fold for MergeExact {
    type State = ExactState;
    type Value = (i128, u64);

    #[inline(always)]
    fn fold(&self, state: &mut ExactState, (sum, count): (i128, u64)) -> Result<()> {
        state.add(sum, count)
    }
}

/// Like [`MergeExact`], for floats.
struct MergeFloat;

impl Fold for MergeFloat {
    type State = FloatState;
    type Value = (f64, u64);

    #[inline(always)]
    fn fold(&self, state: &mut FloatState, (sum, count): (f64, u64)) -> Result<()> {
        state.add(sum, count);
        Ok(())
    }
}

/// Sum, average and count of integers, decimals or moments.
#[derive(Debug)]
pub(super) struct ExactSum<T> {
    offset: usize,
    scale: i8,
    values: PhantomData<fn() -> T>,
}

impl<T: ArrowPrimitiveType> ExactSum<T> {
    /// Creates the function over values of this type.
    pub(super) fn new(offset: usize, data_type: &DataType) -> Self {
        let scale = match data_type {
            DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
            _ => 0,
        };
        ExactSum { offset, scale, values: PhantomData }
    }
}

impl<T> Aggregate for ExactSum<T>
where
    T: ArrowPrimitiveType + std::fmt::Debug,
    T::Native: Exact,
{
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_primitive::<T>();
        if args.len() > 1 {
            let (counts, values) = (plain(args, 1)?, array.values());
            let counts = counts.as_primitive::<Int64Type>().values();
            let value = |row: usize| (values[row].wide(), counts[row] as u64);
            return fold(&MergeExact, area, self.offset, groups, array.nulls(), value);
        }
        fold_array(&AddExact(PhantomData), area, self.offset, groups, array)
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, ExactState::merge)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, ExactState::merge).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<ExactState>(self.offset);
        match (output.kind, &output.data_type) {
            (OutputKind::Count, _) => counts(states.map(|state| state.count), output),
            // Cut off to a moment, as in DuckDB.
            (OutputKind::Average, DataType::Timestamp(..)) => {
                let average = states.map(|state| match state.count {
                    0 => None,
                    count => Some((state.sum() / i128::from(count)) as i64),
                });
                let average = average.collect::<Int64Array>();
                Ok(cast(&average, &output.data_type)?)
            }
            (OutputKind::Average, _) => {
                let average = states.map(|state| match state.count {
                    0 => None,
                    count => Some(quotient(state.sum(), count, self.scale)),
                });
                to_form(Arc::new(average.collect::<Float64Array>()), &output.data_type)
            }
            (_, DataType::Int64) => {
                let sum = |state: ExactState| i64::try_from(state.sum()).map_err(|_| overflow());
                let sums = states.map(|state| (state.count > 0).then(|| sum(state)).transpose());
                Ok(Arc::new(sums.collect::<Result<Int64Array>>()?))
            }
            (_, other) => {
                let precision = match other {
                    DataType::Decimal128(precision, scale) if *scale == self.scale => *precision,
                    _ => 38,
                };
                let bound = 10i128.pow(u32::from(precision).min(38));
                let sums = states.map(|state| match state.sum() {
                    _ if state.count == 0 => Ok(None),
                    sum if sum.unsigned_abs() < bound.unsigned_abs() => Ok(Some(sum)),
                    _ => Err(overflow()),
                });
                let sums = sums.collect::<Result<Decimal128Array>>()?;
                to_form(Arc::new(sums.with_precision_and_scale(precision, self.scale)?), other)
            }
        }
    }
}

/// Sum, average and count of floats.
#[derive(Debug)]
pub(super) struct FloatSum<T> {
    offset: usize,
    values: PhantomData<fn() -> T>,
}

impl<T> FloatSum<T> {
    /// Creates the function with the state at `offset`.
    pub(super) fn new(offset: usize) -> Self {
        FloatSum { offset, values: PhantomData }
    }
}

impl<T> Aggregate for FloatSum<T>
where
    T: ArrowPrimitiveType + std::fmt::Debug,
    T::Native: Inexact,
{
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_primitive::<T>();
        if args.len() > 1 {
            let (counts, values) = (plain(args, 1)?, array.values());
            let counts = counts.as_primitive::<Int64Type>().values();
            let value = |row: usize| (values[row].double(), counts[row] as u64);
            return fold(&MergeFloat, area, self.offset, groups, array.nulls(), value);
        }
        fold_array(&AddFloat(PhantomData), area, self.offset, groups, array)
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, FloatState::merge)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, FloatState::merge).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<FloatState>(self.offset);
        let value = |state: FloatState| match output.kind {
            OutputKind::Average => state.sum().map(|sum| sum / state.count() as f64),
            _ => state.sum(),
        };
        match output.kind {
            OutputKind::Count => counts(states.map(|state| state.count()), output),
            _ => {
                let sums =
                    states.map(|state| (state.count() > 0).then(|| value(state)).transpose());
                to_form(Arc::new(sums.collect::<Result<Float64Array>>()?), &output.data_type)
            }
        }
    }
}
