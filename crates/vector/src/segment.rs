//! Segments: stored columns that are encoded once and decoded piece by piece.

use arrow::array::{ArrayRef, BooleanArray, UInt32Array};
use tessera_types::Result;

use crate::column::Column;
use crate::encoding::{
    Aggregate, Condition, ENCODINGS, Encode, Encoding, Verdict, shortest, values_at,
};

/// Encoded values of one logical type.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// # use tessera_vector::{Positions, Segment};
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 7, 7, 7]));
/// let segment = Segment::new(&values)?;
/// assert_eq!(segment.encoding(), "constant");
/// assert_eq!(segment.decode(&Positions::Range(1, 2))?.len(), 2);
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct Segment {
    encoding: Box<dyn Encoding>,
}

/// Positions of values in a segment.
#[derive(Debug, Clone)]
pub enum Positions {
    /// The first position and the number of positions.
    Range(usize, usize),
    /// A list of positions, in any order.
    Listed(Vec<u32>),
}

impl Segment {
    /// Encodes plain values with the encoding that takes the fewest bytes.
    ///
    /// # Errors
    /// An Arrow kernel failed.
    pub fn new(array: &ArrayRef) -> Result<Segment> {
        Segment::with(array, ENCODINGS)
    }

    /// Like [`Segment::new`], but considers only these encodings. Without a suitable one, values
    /// stay plain.
    ///
    /// # Errors
    /// As [`Segment::new`].
    pub fn with(array: &ArrayRef, encodings: &[Encode]) -> Result<Segment> {
        Ok(Segment { encoding: shortest(array, encodings)? })
    }

    /// The encoded values.
    pub fn encoded(&self) -> &dyn Encoding {
        &*self.encoding
    }

    /// The name of the chosen encoding.
    pub fn encoding(&self) -> &'static str {
        self.encoding.name()
    }

    /// The size in bytes of memory.
    pub fn bytes(&self) -> usize {
        self.encoding.bytes()
    }

    /// Returns the values at some positions.
    ///
    /// # Errors
    /// Arrow rejects the decoded values.
    pub fn decode(&self, positions: &Positions) -> Result<Column> {
        values_at(&*self.encoding, positions)
    }

    /// Evaluates a condition at some positions: true, false or NULL for each.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        self.encoding.compare(condition, positions)
    }

    /// Returns the indexes into `positions` at which the values satisfy a condition, ascending.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn filter(&self, condition: &Condition, positions: &Positions) -> Result<UInt32Array> {
        self.encoding.filter(condition, positions)
    }

    /// Evaluates a condition for the whole segment, as far as that is cheap.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        self.encoding.verdict(condition)
    }

    /// Aggregates all values to an array of one value; `None` if the type does not support the
    /// aggregate.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        self.encoding.aggregate(aggregate)
    }
}

impl Positions {
    /// The number of positions.
    pub fn len(&self) -> usize {
        match self {
            Positions::Range(_, len) => *len,
            Positions::Listed(list) => list.len(),
        }
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions at these indexes of this list.
    pub fn at(&self, chosen: &UInt32Array) -> Positions {
        let start = |start: &usize| chosen.values().iter().map(|at| *start as u32 + at).collect();
        Positions::Listed(match self {
            Positions::Range(first, _) => start(first),
            Positions::Listed(list) => {
                chosen.values().iter().map(|at| list[*at as usize]).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::conformance;

    /// All operations on segments of every sample, and of parts of it, agree with the values.
    #[test]
    fn samples_come_back() {
        for array in conformance::samples() {
            let len = array.len();
            for (start, part) in [(0, len), (0, 0), (len / 3, len / 2), (0, len.min(1))] {
                let array = array.slice(start, part);
                conformance::encoded(Segment::new(&array).unwrap().encoded(), &array);
            }
        }
    }

    #[test]
    fn few_values_of_large_buffers_are_small() {
        for array in conformance::samples().iter().filter(|array| array.len() > 100) {
            if array.data_type().is_nested() {
                continue;
            }
            let array = array.slice(50, 3);
            assert!(Segment::new(&array).unwrap().bytes() < 2_000, "{}", array.data_type());
        }
    }

    fn encoding_of(array: &ArrayRef) -> (&'static str, usize) {
        let segment = Segment::new(array).unwrap();
        (segment.encoding(), segment.bytes())
    }

    #[test]
    fn the_shortest_wins() {
        let numbers = |number: fn(i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..10_000).map(number)))
        };
        let strings = |number: fn(i64) -> i64| -> ArrayRef {
            let text = |i| format!("string number {}", number(i));
            Arc::new(StringViewArray::from_iter_values((0..10_000).map(text)))
        };
        assert_eq!(encoding_of(&numbers(|_| 42)).0, "constant");
        assert_eq!(
            encoding_of(&numbers(|i| i * 7 % 100)),
            ("frame_of_reference", 10_000 * 7 / 8 + 8)
        );
        assert_eq!(
            encoding_of(&numbers(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))).0,
            "plain"
        );
        assert_eq!(encoding_of(&numbers(|i| i / 100)).0, "run_length");
        // One bit per row is smaller than a value and a run end per ten rows.
        assert_eq!(encoding_of(&numbers(|i| i / 10 % 2)).0, "frame_of_reference");
        assert_eq!(encoding_of(&strings(|i| i * 7 % 10)).0, "dictionary");
        assert_eq!(encoding_of(&strings(|i| i)).0, "plain");
        assert_eq!(encoding_of(&strings(|i| i / 1_000)).0, "run_length");
        assert!(encoding_of(&numbers(|i| i / 100)).1 < 2_000);
        assert_eq!(Segment::with(&numbers(|_| 42), &[]).unwrap().encoding(), "plain");
    }

    #[test]
    fn few_of_a_range_are_listed() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let segment = Segment::new(&values).unwrap();
        let some = Positions::Range(10, 20).at(&vec![3, 5].into());
        let fewer = some.at(&vec![1].into());
        let found = segment.decode(&fewer).unwrap().plain().unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().values(), &[15]);
        assert_eq!((some.len(), fewer.is_empty()), (2, false));
    }
}
