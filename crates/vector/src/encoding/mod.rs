//! Encodings of stored columns: one file per encoding, all behind the trait [`Encoding`].
//!
//! A [`Segment`](crate::Segment) requests an [`Offer`] from each of [`ENCODINGS`] and takes the
//! shortest. Trait methods are called once per segment or chunk, never once per value.

mod aggregate;
mod condition;
mod constant;
mod dictionary;
mod frame_of_reference;
mod plain;
#[cfg(test)]
mod properties;
mod run_length;
mod values;

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use tessera_types::Result;

pub use aggregate::Aggregate;
pub use condition::Condition;
pub use constant::Constant;
pub use dictionary::Dictionary;
pub use frame_of_reference::FrameOfReference;
pub use plain::Plain;
pub use run_length::RunLength;
pub use values::Values;

use crate::column::Column;
use crate::segment::Positions;

/// All encodings. If two offers have the same size, the first one wins.
pub const ENCODINGS: &[Encode] = &[
    Constant::encode,
    FrameOfReference::encode,
    Dictionary::encode,
    RunLength::encode,
    Plain::encode,
];

/// The type of [`Encoding::encode`].
pub type Encode = for<'a> fn(&'a Values) -> Result<Option<Offer<'a>>>;

/// Encoded values of one logical type. All operations except `decode` have a default that decodes.
pub trait Encoding: std::fmt::Debug + Send + Sync {
    /// The name of the encoding.
    fn name(&self) -> &'static str;

    /// Offers to encode these values; `None` if the encoding does not apply or cannot save memory.
    ///
    /// # Errors
    /// An Arrow kernel failed.
    fn encode(values: &Values) -> Result<Option<Offer<'_>>>
    where
        Self: Sized;

    /// The number of values.
    fn len(&self) -> usize;

    /// Whether there are no values.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size in bytes of memory.
    fn bytes(&self) -> usize;

    /// Decodes a range of rows, which lies within the segment.
    ///
    /// # Errors
    /// Arrow rejects the decoded values.
    fn decode(&self, rows: Range<usize>) -> Result<Column>;

    /// Decodes the values at these positions, in this order.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn take(&self, positions: &[u32]) -> Result<Column> {
        self.decode(0..self.len())?.take(&UInt32Array::from(positions.to_vec()))
    }

    /// Evaluates a condition at some positions: true, false or NULL for each.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        condition.of_column(&values_at(self, positions)?)
    }

    /// Returns the indexes into `positions` at which the values satisfy a condition, ascending.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn filter(&self, condition: &Condition, positions: &Positions) -> Result<UInt32Array> {
        Ok(places_of_true(&self.compare(condition, positions)?))
    }

    /// Evaluates a condition for the whole segment, at a far lower cost than decoding it.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn verdict(&self, _condition: &Condition) -> Result<Verdict> {
        Ok(Verdict::Decode)
    }

    /// Aggregates all values to an array of one value; `None` if the type does not support the
    /// aggregate.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        aggregate.of_plain(&self.decode(0..self.len())?.plain()?)
    }
}

/// The result of [`Encoding::verdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every value satisfies the condition.
    All,
    /// No value satisfies the condition.
    None,
    /// Undecided; `filter` works without decoding the values.
    Filter,
    /// Undecided; the values have to be decoded.
    Decode,
}

/// An offer to encode values.
pub struct Offer<'a> {
    /// The approximate size of the encoded values in bytes of memory.
    pub bytes: usize,
    /// Encodes the values.
    pub make: Box<dyn FnOnce() -> Result<Box<dyn Encoding>> + 'a>,
}

impl<'a> Offer<'a> {
    /// Creates an offer with this size.
    pub fn new<E: Encoding + 'static>(
        bytes: usize,
        make: impl FnOnce() -> Result<E> + 'a,
    ) -> Result<Option<Offer<'a>>> {
        Ok(Some(Offer { bytes, make: Box::new(move || Ok(Box::new(make()?))) }))
    }
}

impl std::fmt::Debug for Offer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Encodes values with the shortest offer; without an offer, they stay plain.
pub(crate) fn shortest(array: &ArrayRef, encodings: &[Encode]) -> Result<Box<dyn Encoding>> {
    let values = Values::new(array);
    let mut best: Option<Offer<'_>> = None;
    for encode in encodings {
        let offer = encode(&values)?;
        best = match (best, offer) {
            (Some(best), Some(offer)) if offer.bytes < best.bytes => Some(offer),
            (None, offer) => offer,
            (best, _) => best,
        };
    }
    match best {
        Some(best) => (best.make)(),
        None => Ok(Box::new(Plain::new(array)?)),
    }
}

/// Returns the values at some positions.
pub(crate) fn values_at<E: Encoding + ?Sized>(
    encoding: &E,
    positions: &Positions,
) -> Result<Column> {
    match positions {
        Positions::Range(start, len) => encoding.decode(*start..start + len),
        Positions::Listed(list) => encoding.take(list),
    }
}

/// The indexes where a condition is true, neither false nor NULL.
fn places_of_true(truth: &BooleanArray) -> UInt32Array {
    let places = |bits: &BooleanBuffer| bits.set_indices_u32().collect::<Vec<_>>().into();
    match truth.nulls() {
        Some(nulls) => places(&(truth.values() & nulls.inner())),
        None => places(truth.values()),
    }
}

#[cfg(test)]
mod tests {
    use super::ENCODINGS;

    /// Each encoding has a doc example that names it.
    #[test]
    fn each_encoding_has_an_example() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/encoding");
        let (mut count, mut lacking) = (0, Vec::new());
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            if text.contains("\nimpl Encoding for ") {
                count += 1;
                if !text.contains("/// assert_eq!(segment.encoding(), \"") {
                    lacking.push(path);
                }
            }
        }
        assert_eq!(count, ENCODINGS.len());
        assert!(lacking.is_empty(), "without a doc example: {lacking:?}");
    }
}
