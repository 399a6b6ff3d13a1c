//! Values in Arrow's plain form.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use tessera_types::Result;

use super::{Encoding, Offer, Values};
use crate::column::{Column, own_strings};

/// What arrays take beside their values.
const SMALL_BYTES: usize = 1 << 10;

/// Values as they are. It always applies.
#[derive(Debug)]
pub struct Plain(ArrayRef);

impl Plain {
    /// Keeps the values without what else is in their buffers, where that is much.
    ///
    /// # Errors
    /// Arrow's kernels fail.
    pub(super) fn new(array: &ArrayRef) -> Result<Plain> {
        let array = own_strings(array);
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
            // The buffers of what is nested are counted whole, for each slice.
            let rows = UInt32Array::from_iter_values(rows.start as u32..rows.end as u32);
            return Ok(Column::Plain(take(&self.0, &rows, None)?));
        }
        Ok(Column::new(self.0.slice(rows.start, rows.len())))
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        Ok(Column::Plain(take(&self.0, &UInt32Array::from(positions.to_vec()), None)?))
    }
}
