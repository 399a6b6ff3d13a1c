//! A column of some tuples that are stored: encoded once, decoded piece by piece.

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

/// Which of a segment's values.
#[derive(Debug, Clone)]
pub enum Positions {
    /// The first, and how many.
    Range(usize, usize),
    /// These, in this order.
    Listed(Vec<u32>),
}

impl Segment {
    /// Encodes values in plain form as is shortest.
    ///
    /// # Errors
    /// Arrow's kernels fail.
    pub fn new(array: &ArrayRef) -> Result<Segment> {
        Segment::with(array, ENCODINGS)
    }

    /// The same with a choice of these encodings, or none.
    ///
    /// # Errors
    /// As [`Segment::new`].
    pub fn with(array: &ArrayRef, encodings: &[Encode]) -> Result<Segment> {
        Ok(Segment { encoding: shortest(array, encodings)? })
    }

    /// Its values as the encoding that was chosen keeps them.
    pub fn encoded(&self) -> &dyn Encoding {
        &*self.encoding
    }

    /// What its encoding is called.
    pub fn encoding(&self) -> &'static str {
        self.encoding.name()
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.encoding.bytes()
    }

    /// The values at some positions.
    ///
    /// # Errors
    /// Arrow refuses what was encoded.
    pub fn decode(&self, positions: &Positions) -> Result<Column> {
        values_at(&*self.encoding, positions)
    }

    /// What a condition says of the values at some positions: true, false or NULL.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        self.encoding.compare(condition, positions)
    }

    /// Which of some positions have a value that satisfies a condition: places among these
    /// positions, ascending.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn filter(&self, condition: &Condition, positions: &Positions) -> Result<UInt32Array> {
        self.encoding.filter(condition, positions)
    }

    /// What is known of a condition for the whole segment.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        self.encoding.verdict(condition)
    }

    /// An aggregate of all values, as an array of one value; none where the type has no such
    /// aggregate.
    ///
    /// # Errors
    /// As [`Segment::decode`].
    pub fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        self.encoding.aggregate(aggregate)
    }
}

impl Positions {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Positions::Range(_, len) => *len,
            Positions::Listed(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Of these, the ones at some positions among them.
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

    /// What is asked of a segment of every sample and of parts of it agrees with its values.
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
        // A bit for each row is less than a value and an end for each ten rows.
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
