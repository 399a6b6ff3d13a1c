//! `min`, `max` and `any_value` of values of fixed width, `bool_and` and `bool_or`.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use tessera_functions::plain::to_form;
use tessera_types::Result;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold, fold_array, merge};
use super::{Aggregate, Output, plain};

/// Which value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Any that is not NULL.
    Any,
}

/// State: the value's bits (1 or 2 words) and whether there is one (1 word).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Kept<B> {
    bits: B,
    seen: u64,
}

// SAFETY: words only, no padding, every pattern is a value.
unsafe impl Pod for Kept<u64> {}
// SAFETY: as above.
unsafe impl Pod for Kept<[u64; 2]> {}

/// A value of fixed width that can be compared and kept in a state.
pub(super) trait Fixed: Copy {
    /// What it is kept as.
    type Bits: Copy + 'static;
    /// To bits.
    fn to_bits(self) -> Self::Bits;
    /// And back.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Whether it comes before the other in SQL's order.
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
        /// NaN comes after every other number.
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

struct KeepFold<N, const KEEP: u8>(PhantomData<N>);

impl<N: Fixed, const KEEP: u8> Fold for KeepFold<N, KEEP>
where
    Kept<N::Bits>: Pod,
{
    type State = Kept<N::Bits>;
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
            *state = Kept { bits: value.to_bits(), seen: 1 };
        }
        Ok(())
    }
}

const MIN: u8 = Keep::Min as u8;
const MAX: u8 = Keep::Max as u8;
const ANY: u8 = Keep::Any as u8;

/// Calls `$call` with the step that keeps what `$keep` says of values of type `$native`.
macro_rules! with_step {
    ($keep:expr, $native:ty, |$step:ident| $call:expr) => {
        match $keep {
            Keep::Min => {
                let $step = KeepFold::<$native, MIN>(PhantomData);
                $call
            }
            Keep::Max => {
                let $step = KeepFold::<$native, MAX>(PhantomData);
                $call
            }
            Keep::Any => {
                let $step = KeepFold::<$native, ANY>(PhantomData);
                $call
            }
        }
    };
}

fn merge_kept<N: Fixed, const KEEP: u8>(
    step: &KeepFold<N, KEEP>,
    area: &mut Area,
    offset: usize,
    pairs: &Pairs<'_>,
) -> Result<()>
where
    Kept<N::Bits>: Pod,
{
    merge(area, offset, pairs, |state: &mut Kept<N::Bits>, other: Kept<N::Bits>| match other.seen {
        0 => Ok(()),
        _ => step.fold(state, N::from_bits(other.bits)),
    })
}

/// `min`, `max` or `any_value` of an Arrow primitive.
#[derive(Debug)]
pub(super) struct Extreme<T> {
    offset: usize,
    keep: Keep,
    data_type: DataType,
    values: PhantomData<fn() -> T>,
}

impl<T> Extreme<T> {
    /// Over values of this type.
    pub(super) fn new(offset: usize, keep: Keep, data_type: DataType) -> Self {
        Extreme { offset, keep, data_type, values: PhantomData }
    }
}

impl<T> Aggregate for Extreme<T>
where
    T: ArrowPrimitiveType + std::fmt::Debug,
    T::Native: Fixed,
    Kept<<T::Native as Fixed>::Bits>: Pod,
{
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_primitive::<T>();
        with_step!(self.keep, T::Native, |step| fold_array(&step, area, self.offset, groups, array))
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        with_step!(self.keep, T::Native, |step| merge_kept(&step, area, self.offset, pairs))
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<Kept<<T::Native as Fixed>::Bits>>(self.offset);
        let values =
            states.map(|state| (state.seen != 0).then(|| T::Native::from_bits(state.bits)));
        let values = values.collect::<PrimitiveArray<T>>().with_data_type(self.data_type.clone());
        to_form(Arc::new(values), &output.data_type)
    }
}

/// `min` (`bool_and`), `max` (`bool_or`) or `any_value` of booleans.
#[derive(Debug)]
pub(super) struct BooleanExtreme {
    /// Where the state starts.
    pub offset: usize,
    /// Which value is kept.
    pub keep: Keep,
}

impl Aggregate for BooleanExtreme {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let array = array.as_boolean();
        let values = array.values();
        with_step!(self.keep, u64, |step| {
            fold(&step, area, self.offset, groups, array.nulls(), |row| {
                u64::from(values.value(row))
            })
        })
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        with_step!(self.keep, u64, |step| merge_kept(&step, area, self.offset, pairs))
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let states = area.states::<Kept<u64>>(self.offset);
        let values = states.map(|state| (state.seen != 0).then_some(state.bits != 0));
        to_form(Arc::new(values.collect::<BooleanArray>()), &output.data_type)
    }
}
