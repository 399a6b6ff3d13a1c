//! The physical representation of values, used by hashing, packing and comparison.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{ArrowNativeType, DataType, IntervalMonthDayNano, IntervalUnit};

use tessera_types::{Error, Result};

/// The physical class of a type's plain form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// No values: the type of a bare NULL.
    Null,
    /// A bitmap.
    Boolean,
    /// 8 bits, compared bitwise.
    Bits8,
    /// 16 bits, compared bitwise.
    Bits16,
    /// 32 bits, compared bitwise.
    Bits32,
    /// 64 bits, compared bitwise.
    Bits64,
    /// 128 bits, compared bitwise.
    Bits128,
    /// 32-bit float: -0.0 equals 0.0, NaN equals NaN.
    Float32,
    /// 64-bit float: -0.0 equals 0.0, NaN equals NaN.
    Float64,
    /// Months, days and nanoseconds, compared by length; a month has 30 days.
    Interval,
    /// A 16-byte view of a string or bytes.
    View,
    /// A list, struct or map.
    Nested,
}

impl Physical {
    /// Returns the class of a plain Arrow type.
    ///
    /// # Errors
    /// The type is not a plain form.
    pub fn of(data_type: &DataType) -> Result<Physical> {
        Ok(match data_type {
            DataType::Null => Physical::Null,
            DataType::Boolean => Physical::Boolean,
            DataType::Int8 | DataType::UInt8 => Physical::Bits8,
            DataType::Int16 | DataType::UInt16 => Physical::Bits16,
            DataType::Int32 | DataType::UInt32 | DataType::Date32 | DataType::Time32(_) => {
                Physical::Bits32
            }
            DataType::Int64
            | DataType::UInt64
            | DataType::Decimal64(..)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Physical::Bits64,
            DataType::Decimal128(..) => Physical::Bits128,
            DataType::Float32 => Physical::Float32,
            DataType::Float64 => Physical::Float64,
            DataType::Interval(IntervalUnit::MonthDayNano) => Physical::Interval,
            DataType::Utf8View | DataType::BinaryView => Physical::View,
            DataType::List(_) | DataType::Struct(_) | DataType::Map(..) => Physical::Nested,
            other => {
                return Err(Error::internal(format!("Arrow type {other} is not a plain form")));
            }
        })
    }

    /// Whether compiled code can read the values: all fixed-width types except intervals.
    #[inline]
    pub fn is_coded(self) -> bool {
        !matches!(self, Physical::Null | Physical::Interval | Physical::View | Physical::Nested)
    }

    /// The width of a value in a row, in bytes; nested values are stored as references.
    #[inline]
    pub fn width_bytes(self) -> usize {
        match self {
            Physical::Null => 0,
            Physical::Boolean | Physical::Bits8 => 1,
            Physical::Bits16 => 2,
            Physical::Bits32 | Physical::Float32 => 4,
            Physical::Bits64 | Physical::Float64 | Physical::Nested => 8,
            Physical::Bits128 | Physical::Interval | Physical::View => 16,
        }
    }
}

/// Reinterprets a primitive or view array as native values of the same width.
///
/// The caller must have checked the width with [`Physical::of`].
#[inline]
pub fn raw_values<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// Canonical bits of a float: equal floats have equal bits.
#[inline(always)]
pub fn canonical32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value.is_nan() { 0x7fc0_0000 } else { (value + 0.0).to_bits() }
}

/// Canonical bits of a float: equal floats have equal bits.
#[inline(always)]
pub fn canonical64(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { (value + 0.0).to_bits() }
}

/// The length of an interval in nanoseconds, with a month of 30 days of 24 hours as in PostgreSQL.
#[inline(always)]
pub fn interval_length(value: IntervalMonthDayNano) -> i128 {
    const DAY: i128 = 86_400_000_000_000;
    (i128::from(value.months) * 30 + i128::from(value.days)) * DAY + i128::from(value.nanoseconds)
}

/// Decodes an interval from the 16 bytes of a row (Arrow's layout, little endian).
#[inline(always)]
pub fn interval_from_bits(bits: u128) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(
        bits as u32 as i32,
        (bits >> 32) as u32 as i32,
        (bits >> 64) as u64 as i64,
    )
}

/// Encodes an interval as the 16 bytes of a row.
#[inline(always)]
pub fn interval_to_bits(value: IntervalMonthDayNano) -> u128 {
    u128::from(value.months as u32)
        | u128::from(value.days as u32) << 32
        | u128::from(value.nanoseconds as u64) << 64
}

/// Returns the values of an interval array.
#[inline]
pub fn interval_values(array: &dyn Array) -> Result<&ScalarBuffer<IntervalMonthDayNano>> {
    use arrow::array::AsArray;
    array
        .as_primitive_opt::<arrow::datatypes::IntervalMonthDayNanoType>()
        .map(|array| array.values())
        .ok_or_else(|| Error::internal("an interval column is not an interval array"))
}
