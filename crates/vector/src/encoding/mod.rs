//! How the values of a stored column are kept: one file an encoding, all behind the trait
//! [`Encoding`].
//!
//! [`ENCODINGS`] lists them. A [`Segment`](crate::Segment) asks each for an [`Offer`] and takes the
//! shortest. Calls go through the trait once a segment and chunk, never once a value.

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

/// All encodings. Of offers of the same length the first one wins.
pub const ENCODINGS: &[Encode] = &[
    Constant::encode,
    FrameOfReference::encode,
    Dictionary::encode,
    RunLength::encode,
    Plain::encode,
];

/// [`Encoding::encode`] of an encoding.
pub type Encode = for<'a> fn(&'a Values) -> Result<Option<Offer<'a>>>;

/// Encoded values of one logical type. Everything but `decode` has a default that decodes.
pub trait Encoding: std::fmt::Debug + Send + Sync {
    /// What the encoding is called.
    fn name(&self) -> &'static str;

    /// What it takes to keep these values; none where the encoding does not apply or cannot pay.
    ///
    /// # Errors
    /// Arrow's kernels fail.
    fn encode(values: &Values) -> Result<Option<Offer<'_>>>
    where
        Self: Sized;

    /// How many values there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that they take.
    fn bytes(&self) -> usize;

    /// The values of a range of rows, which is within the segment.
    ///
    /// # Errors
    /// Arrow refuses what was encoded.
    fn decode(&self, rows: Range<usize>) -> Result<Column>;

    /// The values at these positions, in this order.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn take(&self, positions: &[u32]) -> Result<Column> {
        self.decode(0..self.len())?.take(&UInt32Array::from(positions.to_vec()))
    }

    /// What a condition says of the values at some positions: true, false or NULL.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        condition.of_column(&values_at(self, positions)?)
    }

    /// Which of some positions have a value that satisfies a condition: places among these
    /// positions, ascending.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn filter(&self, condition: &Condition, positions: &Positions) -> Result<UInt32Array> {
        Ok(places_of_true(&self.compare(condition, positions)?))
    }

    /// What is known of a condition for the whole segment, at a cost far below that of decoding it.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn verdict(&self, _condition: &Condition) -> Result<Verdict> {
        Ok(Verdict::Decode)
    }

    /// An aggregate of all values, as an array of one value; none where the type has no such
    /// aggregate.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        aggregate.of_plain(&self.decode(0..self.len())?.plain()?)
    }
}

/// What [`Encoding::verdict`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every value satisfies the condition.
    All,
    /// No value does.
    None,
    /// Some may, and `filter` finds them without decoding the values.
    Filter,
    /// Some may, and the values have to be decoded.
    Decode,
}

/// Values that an encoding would keep.
pub struct Offer<'a> {
    /// Bytes of memory that they would take, about.
    pub bytes: usize,
    /// Encodes them.
    pub make: Box<dyn FnOnce() -> Result<Box<dyn Encoding>> + 'a>,
}

impl<'a> Offer<'a> {
    /// An offer of so many bytes.
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

/// Encodes values as is shortest; they stay plain where no encoding makes an offer.
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

/// The values at some positions.
pub(crate) fn values_at<E: Encoding + ?Sized>(
    encoding: &E,
    positions: &Positions,
) -> Result<Column> {
    match positions {
        Positions::Range(start, len) => encoding.decode(*start..start + len),
        Positions::Listed(list) => encoding.take(list),
    }
}

/// The places where a condition is true, neither false nor NULL.
fn places_of_true(truth: &BooleanArray) -> UInt32Array {
    let places = |bits: &BooleanBuffer| bits.set_indices_u32().collect::<Vec<_>>().into();
    match truth.nulls() {
        Some(nulls) => places(&(truth.values() & nulls.inner())),
        None => places(truth.values()),
    }
}
