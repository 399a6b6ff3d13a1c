//! Values to be encoded, with cached properties that several encodings need.

use std::cell::OnceCell;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, IntervalMonthDayNano};

use crate::column::Column;

/// The minimum average length of a run. Shorter runs decode slowly and are not considered.
const ROWS_OF_RUN_MIN: usize = 8;

/// Plain values to be encoded.
#[derive(Debug)]
pub struct Values {
    array: ArrayRef,
    nulls: Option<NullBuffer>,
    numbers: OnceCell<Option<Vec<i64>>>,
    run_ends: OnceCell<Option<Vec<u32>>>,
}

impl Values {
    /// Creates values from an array in plain form.
    pub fn new(array: &ArrayRef) -> Values {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Values { array: array.clone(), nulls, numbers: OnceCell::new(), run_ends: OnceCell::new() }
    }

    /// The plain values.
    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    /// The NULLs; `None` if there are no NULLs.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// The size of the NULL bitmap in bytes; 0 if there are no NULLs.
    pub fn null_bytes(&self) -> usize {
        self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8))
    }

    /// The size of the values in plain form, in bytes.
    pub fn plain_bytes(&self) -> usize {
        Column::Plain(self.array.clone()).value_bytes()
    }

    /// Whether all values are NULL; true without values.
    pub fn is_all_null(&self) -> bool {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count) == self.array.len()
    }

    /// The values as integers, if the type is stored as integers and all values fit. Numbers at
    /// NULL positions are arbitrary.
    pub fn numbers(&self) -> Option<&[i64]> {
        self.numbers.get_or_init(|| numbers_of(&self.array)).as_deref()
    }

    /// The end of each run of bitwise equal values; `None` for nested types or if runs are short.
    pub fn run_ends(&self) -> Option<&[u32]> {
        self.run_ends.get_or_init(|| run_ends(&self.array, self.nulls.as_ref())).as_deref()
    }

    /// Whether all values are the same.
    pub fn is_constant(&self) -> bool {
        self.is_all_null() || self.run_ends().is_some_and(|ends| ends.len() == 1)
    }
}

fn run_ends(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Option<Vec<u32>> {
    let len = array.len();
    macro_rules! of_bits {
        ($native:ty) => {{
            let data = array.to_data();
            let values = &data.buffers().first()?.typed_data::<$native>()
                [data.offset()..data.offset() + len];
            ends(len, nulls, |at| values[at] == values[at - 1])
        }};
    }
    match (array.data_type(), array.data_type().primitive_width()) {
        (DataType::Boolean, _) => {
            let values = array.as_boolean().values();
            ends(len, nulls, |at| values.value(at) == values.value(at - 1))
        }
        (DataType::Utf8View, _) => {
            let values = array.as_string_view();
            ends(len, nulls, |at| values.value(at) == values.value(at - 1))
        }
        (DataType::BinaryView, _) => {
            let values = array.as_binary_view();
            ends(len, nulls, |at| values.value(at) == values.value(at - 1))
        }
        // The layout of an interval may differ from that of a 16-byte integer.
        (DataType::Interval(_), _) => of_bits!(IntervalMonthDayNano),
        (_, Some(1)) => of_bits!(u8),
        (_, Some(2)) => of_bits!(u16),
        (_, Some(4)) => of_bits!(u32),
        (_, Some(8)) => of_bits!(u64),
        (_, Some(16)) => of_bits!(i128),
        _ => None,
    }
}

/// The ends of runs. `is_same` says whether a value equals the previous one; NULLs equal each
/// other.
fn ends(
    len: usize,
    nulls: Option<&NullBuffer>,
    is_same: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    let ends_max = (len / ROWS_OF_RUN_MIN).max(1);
    let mut ends = Vec::new();
    for at in 1..len {
        let is_same = match nulls.map(|nulls| (nulls.is_valid(at - 1), nulls.is_valid(at))) {
            None | Some((true, true)) => is_same(at),
            Some((before, this)) => before == this,
        };
        if !is_same {
            ends.push(at as u32);
            if ends.len() >= ends_max {
                return None;
            }
        }
    }
    if len > 0 {
        ends.push(len as u32);
    }
    Some(ends)
}

/// The values as integers, if the type is stored as integers and all values fit.
fn numbers_of(array: &ArrayRef) -> Option<Vec<i64>> {
    let data = array.to_data();
    let (offset, len) = (data.offset(), data.len());
    macro_rules! numbers {
        ($native:ty) => {{
            let values = &data.buffers().first()?.typed_data::<$native>()[offset..offset + len];
            Some(values.iter().map(|value| i64::from(*value)).collect())
        }};
    }
    match (is_signed(array.data_type())?, array.data_type().primitive_width()?) {
        (true, 1) => numbers!(i8),
        (true, 2) => numbers!(i16),
        (true, 4) => numbers!(i32),
        (true, 8) => numbers!(i64),
        (true, 16) => {
            let values = &data.buffers().first()?.typed_data::<i128>()[offset..offset + len];
            // The stored value of a NULL is irrelevant.
            let number = |(at, value): (usize, &i128)| match i64::try_from(*value) {
                Err(_) if array.is_null(at) => Some(0),
                number => number.ok(),
            };
            values.iter().enumerate().map(number).collect()
        }
        (false, 1) => numbers!(u8),
        (false, 2) => numbers!(u16),
        (false, 4) => numbers!(u32),
        _ => None,
    }
}

/// Whether an integer type is signed; `None` if values are not integers of at most 64 bits.
fn is_signed(data_type: &DataType) -> Option<bool> {
    match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(false),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(true),
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => {
            Some(true)
        }
        DataType::Timestamp(..) | DataType::Duration(_) => Some(true),
        DataType::Decimal64(..) | DataType::Decimal128(..) => Some(true),
        _ => None,
    }
}
