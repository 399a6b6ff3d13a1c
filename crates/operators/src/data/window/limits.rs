//! Frames that end at a distance of the order key.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Float64Type, Int64Type};
use tessera_plan::SortKey;
use tessera_types::{Error, Result};
use tessera_values::canonical::canonical_values;

use super::batch::Span;

/// Values as numbers with the same order, in the direction of the sort; `None` is NULL.
#[derive(Debug)]
pub(super) struct Keys(Vec<Option<i128>>);

/// The values up to which the frames of a batch extend.
#[derive(Debug)]
pub(super) struct BoundLimit {
    keys: Keys,
    limits: Keys,
    nulls_first: bool,
}

impl Keys {
    pub(super) fn new(values: &ArrayRef, key: &SortKey) -> Result<Keys> {
        let values = canonical_values(values.clone())?;
        let signed = |number: i128| if key.descending { -number } else { number };
        let keys = match values.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let floats = cast(&values, &DataType::Float64)?;
                let floats = floats.as_primitive::<Float64Type>().iter();
                floats.map(|value| value.map(|value| signed(ordered(value)))).collect()
            }
            DataType::Decimal128(..) => {
                let numbers = values.as_primitive::<Decimal128Type>().iter();
                numbers.map(|value| value.map(signed)).collect()
            }
            // Short decimals; a cast to integers would round them.
            DataType::Decimal64(..) => {
                let numbers = values.as_primitive::<Decimal64Type>().iter();
                numbers.map(|value| value.map(|value| signed(i128::from(value)))).collect()
            }
            data_type if data_type.is_primitive() => {
                let numbers = cast(&values, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>().iter();
                numbers.map(|value| value.map(|value| signed(i128::from(value)))).collect()
            }
            other => return Err(Error::internal(format!("a frame over distances of {other}"))),
        };
        Ok(Keys(keys))
    }
}

/// A number with the order of a float; NaN is the largest.
fn ordered(value: f64) -> i128 {
    let bits = value.to_bits() as i64;
    i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
}

impl BoundLimit {
    pub(super) fn new(keys: Keys, limits: &ArrayRef, key: &SortKey) -> Result<BoundLimit> {
        Ok(BoundLimit { keys, limits: Keys::new(limits, key)?, nulls_first: key.nulls_first })
    }

    /// Returns the first row at or behind the limit of `row`. `from` is the result of the row
    /// before, where the search starts.
    pub(super) fn start(&self, row: u32, peers: Span, partition: Span, from: &mut u32) -> u32 {
        self.search(row, partition, from, |key, limit| key < limit).unwrap_or(peers.start)
    }

    /// Returns the row after the last one that is not behind the limit of `row`.
    pub(super) fn end(&self, row: u32, peers: Span, partition: Span, from: &mut u32) -> u32 {
        self.search(row, partition, from, |key, limit| key <= limit).unwrap_or(peers.end)
    }

    /// Returns the first row of the partition that is not before the limit; `None` if the key of
    /// the row is NULL, whose frame is its peers.
    fn search(
        &self,
        row: u32,
        partition: Span,
        from: &mut u32,
        is_before: impl Fn(i128, i128) -> bool,
    ) -> Option<u32> {
        let (Some(_), Some(limit)) = (self.keys.0[row as usize], self.limits.0[row as usize])
        else {
            return None;
        };
        let is_before = |row: u32| match self.keys.0[row as usize] {
            Some(key) => is_before(key, limit),
            None => self.nulls_first,
        };
        // Limits usually grow with the keys, so that the last result is near.
        let mut at = (*from).clamp(partition.start, partition.end);
        if at > partition.start && !is_before(at - 1) {
            let (mut low, mut high) = (partition.start, at - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_before(middle) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            at = low;
        }
        while at < partition.end && is_before(at) {
            at += 1;
        }
        *from = at;
        Some(at)
    }
}
