//! Dictionary encoding of strings: the distinct strings, and a bit-packed key per row.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, StringViewArray, UInt32Array};
use arrow::buffer::NullBuffer;
use tessera_types::Result;

use super::{Aggregate, Condition, Encoding, Offer, Values, Verdict};
use crate::column::{Column, compact_strings};
use crate::packed::PackedNumbers;

/// The minimum number of rows per distinct string.
const ROWS_OF_STRING_MIN: usize = 4;

/// The minimum number of rows per distinct string at which a condition is first evaluated on the
/// dictionary, before any row is decoded.
const ROWS_OF_STRING_FOR_VERDICT: usize = 8;

/// Dictionary-encoded strings.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, StringViewArray};
/// # use tessera_vector::encoding::{Encoding, Dictionary};
/// # use tessera_vector::{Positions, Segment};
/// let texts = ["on", "off", "off", "on", "on", "on", "off", "on"];
/// let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
/// let segment = Segment::with(&values, &[Dictionary::encode])?;
/// assert_eq!(segment.encoding(), "dictionary");
/// assert_eq!(&segment.decode(&Positions::Range(1, 3))?.plain()?, &values.slice(1, 3));
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct Dictionary {
    /// The distinct strings in order of first occurrence. Each is used by some row.
    values: ArrayRef,
    keys: PackedNumbers,
    nulls: Option<NullBuffer>,
    len: usize,
}

impl Encoding for Dictionary {
    fn name(&self) -> &'static str {
        "dictionary"
    }

    fn encode(values: &Values) -> Result<Option<Offer<'_>>> {
        let Some(strings) = values.array().as_string_view_opt() else { return Ok(None) };
        if values.is_constant() {
            return Ok(None);
        }
        let distinct_max = strings.len() / ROWS_OF_STRING_MIN;
        let (mut numbers, mut keys): (HashMap<&str, u64>, _) =
            (HashMap::new(), Vec::with_capacity(strings.len()));
        for string in strings {
            let next = numbers.len() as u64;
            keys.push(string.map_or(0, |string| *numbers.entry(string).or_insert(next)));
            if numbers.len() > distinct_max.max(1) {
                return Ok(None);
            }
        }
        let mut distinct: Vec<(&str, u64)> = numbers.into_iter().collect();
        distinct.sort_unstable_by_key(|(_, number)| *number);
        let distinct: ArrayRef = Arc::new(StringViewArray::from_iter_values(
            distinct.into_iter().map(|(string, _)| string),
        ));
        let bits = u64::BITS - (distinct.len() as u64 - 1).leading_zeros();
        let bytes = Column::Plain(distinct.clone()).value_bytes()
            + PackedNumbers::bytes_of(keys.len(), bits)
            + values.null_bytes();
        Offer::new(bytes, move || {
            let (len, nulls) = (keys.len(), values.nulls().cloned());
            Ok(Dictionary {
                values: compact_strings(&distinct),
                keys: PackedNumbers::new(&keys, bits),
                nulls,
                len,
            })
        })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        let nulls = self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8));
        self.values.get_array_memory_size() + self.keys.bytes() + nulls
    }

    fn decode(&self, rows: Range<usize>) -> Result<Column> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(rows.start, rows.len()));
        self.column(self.keys.unpack(rows.start, rows.len(), 0), nulls)
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls_at(nulls, positions));
        self.column(self.keys.unpack_at(positions, 0), nulls)
    }

    fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        if self.values.len() * ROWS_OF_STRING_FOR_VERDICT > self.len
            || self.nulls.is_some() && condition.is_total()
        {
            return Ok(Verdict::Decode);
        }
        Ok(match condition.of_plain(&self.values)?.true_count() {
            0 => Verdict::None,
            all if all == self.values.len() && self.nulls.is_none() => Verdict::All,
            _ => Verdict::Decode,
        })
    }

    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        match aggregate {
            Aggregate::Count => Ok(Some(Aggregate::count(self.len, self.nulls.as_ref()))),
            _ => aggregate.of_plain(&self.values),
        }
    }
}

impl Dictionary {
    /// All chunks share one dictionary array, so results computed for its values can be reused.
    fn column(&self, keys: Vec<u32>, nulls: Option<NullBuffer>) -> Result<Column> {
        let keys = UInt32Array::new(keys.into(), nulls);
        Ok(Column::Dictionary(Arc::new(DictionaryArray::try_new(keys, self.values.clone())?)))
    }
}

/// Returns the NULLs at some positions.
pub(super) fn nulls_at(nulls: &NullBuffer, positions: &[u32]) -> NullBuffer {
    positions.iter().map(|at| nulls.is_valid(*at as usize)).collect()
}
