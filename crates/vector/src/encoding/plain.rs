//! Plain encoding: values in Arrow's plain form.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use tessera_types::Result;

use super::{Encoding, Offer, Values};
use crate::column::{Column, compact_strings};

/// The allowed overhead of an array in bytes.
const SMALL_BYTES: usize = 1 << 10;

/// Values in plain form. This encoding applies to every type.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// # use tessera_vector::encoding::{Encoding, Plain};
/// # use tessera_vector::{Positions, Segment};
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![5, 1, 4, 1, 3]));
/// let segment = Segment::with(&values, &[Plain::encode])?;
/// assert_eq!(segment.encoding(), "plain");
/// assert_eq!(&segment.decode(&Positions::Range(1, 3))?.plain()?, &values.slice(1, 3));
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct Plain(ArrayRef);

impl Plain {
    /// Copies the values out of their buffers if those are much larger than the values.
    ///
    /// # Errors
    /// An Arrow kernel failed.
    pub(super) fn new(array: &ArrayRef) -> Result<Plain> {
        let array = compact_strings(array);
        let needed = array.to_data().get_slice_memory_size()?;
        if array.get_array_memory_size() <= 2 * needed + SMALL_BYTES {
            return Ok(Plain(array));
        }
        let all = UInt32Array::from_iter_values(0..array.len() as u32);
        Ok(Plain(take(&array, &all, None)?))
    }
}

impl Encoding for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn encode(values: &Values) -> Result<Option<Offer<'_>>> {
        let bytes = values.plain_bytes() + values.null_bytes();
        Offer::new(bytes, || Plain::new(values.array()))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.get_array_memory_size()
    }

    fn decode(&self, rows: Range<usize>) -> Result<Column> {
        if self.0.data_type().is_nested() {
            // The size of a nested slice would include its buffers in full, so copy the rows.
            let rows = UInt32Array::from_iter_values(rows.start as u32..rows.end as u32);
            return Ok(Column::Plain(take(&self.0, &rows, None)?));
        }
        Ok(Column::new(self.0.slice(rows.start, rows.len())))
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        Ok(Column::Plain(take(&self.0, &UInt32Array::from(positions.to_vec()), None)?))
    }
}
