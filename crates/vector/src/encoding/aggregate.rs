//! Aggregates over all values of a segment.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Int64Array,
    PrimitiveArray, UInt32Array, downcast_primitive_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{self, take};
use arrow::datatypes::{
    DataType, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use tessera_types::Result;

use crate::physical::{canonical32, canonical64, interval_length};

/// The maximum number of digits of a sum.
const SUM_DIGITS: u8 = 38;

/// An aggregate function over all non-NULL values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of values, as int64.
    Count,
    /// The least value, in the type of the values; NULL without values.
    Min,
    /// The greatest value, in the type of the values; NULL without values. NaN is greater than
    /// every other float.
    Max,
    /// The sum of integers or decimals, as a decimal of 38 digits with the scale of the values;
    /// NULL without values.
    Sum,
}

impl Aggregate {
    /// Aggregates plain values to an array of one value. Returns `None` if the type does not
    /// support the aggregate, or if a sum has more than 38 digits.
    ///
    /// # Errors
    /// An Arrow kernel failed.
    pub fn of_plain(self, values: &ArrayRef) -> Result<Option<ArrayRef>> {
        self.of_runs(values, std::iter::repeat(1))
    }

    /// Like [`Aggregate::of_plain`], for run-length encoded values: value `i` is repeated `lens[i]`
    /// times.
    ///
    /// # Errors
    /// As [`Aggregate::of_plain`].
    pub fn of_runs(
        self,
        values: &ArrayRef,
        lens: impl IntoIterator<Item = u32>,
    ) -> Result<Option<ArrayRef>> {
        match self {
            Aggregate::Count => {
                let nulls = values.logical_nulls();
                let is_there = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
                let lens = (0..values.len()).zip(lens);
                let count = lens
                    .filter(|(at, _)| is_there(*at))
                    .map(|(_, len)| i64::from(len))
                    .sum::<i64>();
                Ok(Some(Arc::new(Int64Array::from(vec![count]))))
            }
            Aggregate::Min | Aggregate::Max => extreme(values, self == Aggregate::Max),
            Aggregate::Sum => {
                if sum_scale(values.data_type()).is_none() {
                    return Ok(None);
                }
                if values.null_count() == values.len() {
                    let none = Decimal128Array::from(vec![None]);
                    let scale = sum_scale(values.data_type()).unwrap_or(0);
                    return Ok(Some(Arc::new(none.with_precision_and_scale(SUM_DIGITS, scale)?)));
                }
                match sum(values, lens) {
                    Some(sum) => Aggregate::sum(values.data_type(), sum),
                    None => Ok(None),
                }
            }
        }
    }

    /// The count of `len` values minus the NULLs.
    pub fn count(len: usize, nulls: Option<&NullBuffer>) -> ArrayRef {
        let count = (len - nulls.map_or(0, NullBuffer::null_count)) as i64;
        Arc::new(Int64Array::from(vec![count]))
    }

    /// Returns the sum of at least one value, in the sum's type.
    ///
    /// # Errors
    /// Arrow rejects the type.
    pub fn sum(of: &DataType, sum: i128) -> Result<Option<ArrayRef>> {
        let Some(scale) =
            sum_scale(of).filter(|_| sum.unsigned_abs() < 10u128.pow(SUM_DIGITS.into()))
        else {
            return Ok(None);
        };
        let sum = Decimal128Array::from(vec![sum]).with_precision_and_scale(SUM_DIGITS, scale)?;
        Ok(Some(Arc::new(sum)))
    }
}

/// The scale of a sum; `None` for types without an exact sum.
fn sum_scale(of: &DataType) -> Option<i8> {
    match of {
        DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        other => other.is_integer().then_some(0),
    }
}

fn sum(values: &ArrayRef, lens: impl IntoIterator<Item = u32>) -> Option<i128> {
    fn of<T: ArrowPrimitiveType>(
        values: &ArrayRef,
        mut lens: impl Iterator<Item = u32>,
    ) -> Option<i128>
    where
        T::Native: Into<i128>,
    {
        values.as_primitive::<T>().iter().try_fold(0i128, |sum, value| {
            let len = lens.next()?;
            let Some(value) = value else { return Some(sum) };
            let value: i128 = value.into();
            sum.checked_add(value.checked_mul(len.into())?)
        })
    }
    let lens = lens.into_iter();
    match values.data_type() {
        DataType::Int8 => of::<Int8Type>(values, lens),
        DataType::Int16 => of::<Int16Type>(values, lens),
        DataType::Int32 => of::<Int32Type>(values, lens),
        DataType::Int64 => of::<Int64Type>(values, lens),
        DataType::UInt8 => of::<UInt8Type>(values, lens),
        DataType::UInt16 => of::<UInt16Type>(values, lens),
        DataType::UInt32 => of::<UInt32Type>(values, lens),
        DataType::UInt64 => of::<UInt64Type>(values, lens),
        DataType::Decimal64(..) => of::<Decimal64Type>(values, lens),
        DataType::Decimal128(..) => of::<Decimal128Type>(values, lens),
        _ => None,
    }
}

/// The least or the greatest value; `None` for types without an order.
fn extreme(values: &ArrayRef, greatest: bool) -> Result<Option<ArrayRef>> {
    fn of<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, greatest: bool) -> ArrayRef
    where
        T::Native: PartialOrd,
    {
        let found = if greatest { compute::max(values) } else { compute::min(values) };
        Arc::new(PrimitiveArray::<T>::from_iter([found]).with_data_type(values.data_type().clone()))
    }
    /// Compares by a key with the same order. Few types need it, so keys need not be fast.
    fn by_key<K: Ord>(
        values: &ArrayRef,
        greatest: bool,
        key: impl Fn(usize) -> K,
    ) -> Result<ArrayRef> {
        let there = (0..values.len()).filter(|at| values.is_valid(*at));
        let found = if greatest {
            there.max_by_key(|at| key(*at))
        } else {
            there.min_by_key(|at| key(*at))
        };
        Ok(take(values, &UInt32Array::from(vec![found.map(|at| at as u32)]), None)?)
    }
    // Maps the bits of a float to an integer with the same order.
    let ordered = |bits: u64| if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    Ok(Some(match values.data_type() {
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>();
            let wide =
                |at: usize| f64::from(f32::from_bits(canonical32(floats.value(at).to_bits())));
            by_key(values, greatest, |at| ordered(canonical64(wide(at).to_bits())))?
        }
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>();
            by_key(values, greatest, |at| ordered(canonical64(floats.value(at).to_bits())))?
        }
        DataType::Interval(_) => {
            let Some(intervals) = values.as_primitive_opt::<IntervalMonthDayNanoType>() else {
                return Ok(None);
            };
            by_key(values, greatest, |at| interval_length(intervals.value(at)))?
        }
        DataType::Utf8View => {
            let strings = values.as_string_view();
            by_key(values, greatest, |at| strings.value(at))?
        }
        DataType::BinaryView => {
            let bytes = values.as_binary_view();
            by_key(values, greatest, |at| bytes.value(at))?
        }
        DataType::Boolean => {
            let booleans = values.as_boolean();
            let found = if greatest {
                compute::max_boolean(booleans)
            } else {
                compute::min_boolean(booleans)
            };
            Arc::new(BooleanArray::from(vec![found]))
        }
        _ => downcast_primitive_array!(
            values => of(values, greatest),
            _ => return Ok(None)
        ),
    }))
}
