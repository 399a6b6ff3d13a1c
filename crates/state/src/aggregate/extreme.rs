//! `min`, `max` and `any_value` of values of fixed width, `bool_and` and `bool_or`.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use tessera_types::Result;
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, plain};

/// Selects the value to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtremeKind {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Any that is not NULL.
    Any,
}

/// State: the value's bits (1 or 2 words), and 1 if there is a value (1 word).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ExtremeState<B> {
    bits: B,
    seen: u64,
}

// SAFETY: words only, no padding, every pattern is a value.
unsafe impl Pod for ExtremeState<u64> {}
// SAFETY: as above.
unsafe impl Pod for ExtremeState<[u64; 2]> {}

/// A value of fixed width that can be compared and stored in a state.
pub(super) trait Fixed: Copy {
    /// The stored form.
    type Bits: Copy + 'static;
    /// Converts to bits.
    fn to_bits(self) -> Self::Bits;
    /// Converts from bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Returns whether the value precedes the other in SQL's order.
    fn before(self, other: Self) -> bool;
}

macro_rules! fixed {
    ($($native:ty)*) => { $(impl Fixed for $native {
        type Bits = u64;
        #[inline(always)]
        fn to_bits(self) -> u64 { self as u64 }
        #[inline(always)]
        fn from_bits(bits: u64) -> Self { bits as $native }
        #[inline(always)]
        fn before(self, other: Self) -> bool { self < other }
    })* };
}
fixed!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! fixed_float {
    ($($native:ty: $bits:ty),*) => { $(impl Fixed for $native {
        type Bits = u64;
        #[inline(always)]
        fn to_bits(self) -> u64 { <$native>::to_bits(self).into() }
        #[inline(always)]
        fn from_bits(bits: u64) -> Self { <$native>::from_bits(bits as $bits) }
        /// NaN follows every other number.
        #[inline(always)]
        fn before(self, other: Self) -> bool { self < other || (other.is_nan() && !self.is_nan()) }
    })* };
}
fixed_float!(f32: u32, f64: u64);

impl Fixed for i128 {
    type Bits = [u64; 2];

    #[inline(always)]
    fn to_bits(self) -> [u64; 2] {
        [self as u64, (self as u128 >> 64) as u64]
    }

    #[inline(always)]
    fn from_bits([low, high]: [u64; 2]) -> Self {
        (u128::from(high) << 64 | u128::from(low)) as i128
    }

    #[inline(always)]
    fn before(self, other: Self) -> bool {
        self < other
    }
}

impl Fixed for IntervalMonthDayNano {
    type Bits = [u64; 2];

    fn to_bits(self) -> [u64; 2] {
        [u64::from(self.months as u32) << 32 | u64::from(self.days as u32), self.nanoseconds as u64]
    }

    fn from_bits([days, nanoseconds]: [u64; 2]) -> Self {
        IntervalMonthDayNano::new((days >> 32) as i32, days as i32, nanoseconds as i64)
    }

    /// As in PostgreSQL, a month counts as 30 days and a day as 24 hours.
    fn before(self, other: Self) -> bool {
        let length = |value: Self| {
            let days = i128::from(value.months) * 30 + i128::from(value.days);
            days * 86_400_000_000_000 + i128::from(value.nanoseconds)
        };
        length(self) < length(other)
    }
}

struct ExtremeFold<N, const KEEP: u8>(PhantomData<N>);

impl<N: Fixed, const KEEP: u8> Fold for ExtremeFold<N, KEEP>
where
    ExtremeState<N::Bits>: Pod,
{
    type State = ExtremeState<N::Bits>;
    type Value = N;

    #[inline(always)]
    fn fold(&self, state: &mut Self::State, value: N) -> Result<()> {
        let better = state.seen == 0 || {
            let kept = N::from_bits(state.bits);
            match KEEP {
                MIN => value.before(kept),
                MAX => kept.before(value),
                _ => false,
            }
        };
        if better {
            *state = ExtremeState { bits: value.to_bits(), seen: 1 };
        }
        Ok(())
    }
}

const MIN: u8 = ExtremeKind::Min as u8;
const MAX: u8 = ExtremeKind::Max as u8;
const ANY: u8 = ExtremeKind::Any as u8;

/// Calls `$call` with the fold that `$kind` selects for values of type `$native`.
macro_rules! with_step {
    ($kind:expr, $native:ty, |$step:ident| $call:expr) => {
        match $kind {
            ExtremeKind::Min => {
                let $step = ExtremeFold::<$native, MIN>(PhantomData);
                $call
            }
            ExtremeKind::Max => {
                let $step = ExtremeFold::<$native, MAX>(PhantomData);
                $call
            }
            ExtremeKind::Any => {
                let $step = ExtremeFold::<$native, ANY>(PhantomData);
                $call
            }
        }
    };
}

fn merge_states<N: Fixed, const KEEP: u8>(
    step: &ExtremeFold<N, KEEP>,
    state: &mut ExtremeState<N::Bits>,
    other: ExtremeState<N::Bits>,
) -> Result<()>
where
    ExtremeState<N::Bits>: Pod,
{
    match other.seen {
        0 => Ok(()),
        _ => step.fold(state, N::from_bits(other.bits)),
    }
}

/// `min`, `max` or `any_value` of an Arrow primitive.
#[derive(Debug)]
pub(super) struct Extreme<T> {
    offset: usize,
    kind: ExtremeKind,
    data_type: DataType,
    values: PhantomData<fn() -> T>,
}

impl<T> Extreme<T> {
    /// Creates the function over values of this type.
    pub(super) fn new(offset: usize, kind: ExtremeKind, data_type: DataType) -> Self {
        Extreme { offset, kind, data_type, values: PhantomData }
    }
}

impl<T> Aggregate for Extreme<T>
where
    T: ArrowPrimitiveType + std::fmt::Debug,
    T::Native: Fixed,
    ExtremeState<<T::Native as Fixed>::Bits>: Pod,
{
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_primitive::<T>();
        with_step!(self.kind, T::Native, |step| fold_array(&step, area, self.offset, groups, array))
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        with_step!(self.kind, T::Native, |step| merge(area, self.offset, pairs, |state, other| {
            merge_states(&step, state, other)
        }))
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        with_step!(self.kind, T::Native, |step| {
            let merge = |state: &mut _, other| merge_states(&step, state, other);
            merge_ranges(from, self.offset, ranges, into, merge)
        })?;
        Ok(true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<ExtremeState<<T::Native as Fixed>::Bits>>(self.offset);
        let values =
            states.map(|state| (state.seen != 0).then(|| T::Native::from_bits(state.bits)));
        let values = values.collect::<PrimitiveArray<T>>().with_data_type(self.data_type.clone());
        to_form(Arc::new(values), &output.data_type)
    }
}

/// `min` (`bool_and`), `max` (`bool_or`) or `any_value` of booleans.
#[derive(Debug)]
pub(super) struct BooleanExtreme {
    /// The offset of the state.
    pub offset: usize,
    /// Selects the value to keep.
    pub kind: ExtremeKind,
}

impl Aggregate for BooleanExtreme {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_boolean();
        let values = array.values();
        with_step!(self.kind, u64, |step| {
            fold(&step, area, self.offset, groups, array.nulls(), |row| {
                u64::from(values.value(row))
            })
        })
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        with_step!(self.kind, u64, |step| merge(area, self.offset, pairs, |state, other| {
            merge_states(&step, state, other)
        }))
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        with_step!(self.kind, u64, |step| {
            let merge = |state: &mut _, other| merge_states(&step, state, other);
            merge_ranges(from, self.offset, ranges, into, merge)
        })?;
        Ok(true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<ExtremeState<u64>>(self.offset);
        let values = states.map(|state| (state.seen != 0).then_some(state.bits != 0));
        to_form(Arc::new(values.collect::<BooleanArray>()), &output.data_type)
    }
}
