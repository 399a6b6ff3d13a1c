//! Decoded values of some rows of a column chunk.

use std::sync::Arc;

use arrow::array::{Array, DictionaryArray, Int32Array};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::Int32Type;

use tessera_types::Atom;
use tessera_vector::Column;

use super::dictionary::{Dictionary, Mask};
use super::text;
use super::values::{Values, Width};

/// Strings with larger dictionaries leave the scan as plain views: the per-value state of consumers
/// would cost more than it saves.
const DICTIONARY_VALUES_MAX: usize = 8_192;

/// Decoded values of some rows: codes into a dictionary, or values.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(super) values: DecodedValues,
    pub(super) nulls: Option<NullBuffer>,
}

#[derive(Debug)]
pub(super) enum DecodedValues {
    Codes(Vec<u32>, Arc<Dictionary>),
    Values(Values),
}

impl Decoded {
    /// Returns the rows at these positions, all of which exist.
    pub(crate) fn keep(&self, positions: &[u32]) -> Decoded {
        fn take<T: Copy>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|position| values[*position as usize]).collect()
        }
        let values = match &self.values {
            DecodedValues::Codes(codes, dictionary) => {
                DecodedValues::Codes(take(codes, positions), dictionary.clone())
            }
            DecodedValues::Values(Values::Four(values)) => {
                DecodedValues::Values(Values::Four(take(values, positions)))
            }
            DecodedValues::Values(Values::Eight(values)) => {
                DecodedValues::Values(Values::Eight(take(values, positions)))
            }
            DecodedValues::Values(Values::Views(views, buffers)) => {
                DecodedValues::Values(Values::Views(take(views, positions), buffers.clone()))
            }
        };
        let valid = |nulls: &NullBuffer| {
            positions
                .iter()
                .map(|position| nulls.is_valid(*position as usize))
                .collect::<NullBuffer>()
        };
        Decoded { values, nulls: self.nulls.as_ref().map(valid) }
    }

    /// Whether a value is NULL.
    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0)
    }

    /// Returns the dictionary, if the values are codes.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match &self.values {
            DecodedValues::Codes(_, dictionary) => Some(dictionary),
            DecodedValues::Values(_) => None,
        }
    }

    /// Returns those of `candidates` (or of all rows) whose value passes the mask.
    pub(crate) fn select(&self, mask: &Mask, candidates: Option<&[u32]>) -> Vec<u32> {
        let DecodedValues::Codes(codes, _) = &self.values else { return Vec::new() };
        // Codes were checked against the dictionary, which has the length of the mask; the code of
        // a NULL may be out of range of an empty one.
        let test = |row: usize| mask.values.get(codes[row] as usize).copied().unwrap_or(false);
        let passes = |row: usize| match &self.nulls {
            Some(nulls) if nulls.is_null(row) => mask.null,
            _ => test(row),
        };
        let mut out = vec![0; candidates.map_or(codes.len(), <[u32]>::len)];
        let mut len = 0;
        // Branch-free: each position is written, and kept by advancing the output.
        match (candidates, &self.nulls) {
            (None, None) => {
                for row in 0..codes.len() {
                    out[len] = row as u32;
                    len += usize::from(test(row));
                }
            }
            (None, Some(_)) => {
                for row in 0..codes.len() {
                    out[len] = row as u32;
                    len += usize::from(passes(row));
                }
            }
            (Some(candidates), _) => {
                for &row in candidates {
                    out[len] = row;
                    len += usize::from(passes(row as usize));
                }
            }
        }
        out.truncate(len);
        out
    }

    /// Converts the values to a column.
    pub(super) fn into_column(self, width: Width, atom: &Atom) -> Result<Column, String> {
        let nulls = self.nulls;
        let values = match self.values {
            DecodedValues::Codes(codes, dictionary)
                if width == Width::View && dictionary.array.len() <= DICTIONARY_VALUES_MAX =>
            {
                let keys = Int32Array::new(ScalarBuffer::from(Buffer::from(codes)), nulls);
                let array = DictionaryArray::<Int32Type>::try_new(keys, dictionary.array.clone())
                    .map_err(text)?;
                return Ok(Column::Dictionary(Arc::new(array)));
            }
            DecodedValues::Codes(codes, dictionary) => {
                let mut out = Values::with_capacity(width, codes.len());
                out.gather(&codes, &dictionary, nulls.is_some())?;
                out
            }
            DecodedValues::Values(values) => values,
        };
        values.into_array(atom, nulls).map(Column::Plain)
    }
}
