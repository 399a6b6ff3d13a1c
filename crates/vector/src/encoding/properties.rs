//! Property tests: all encodings agree with plain arrays for any runs, rows and conditions.

use arrow::array::ArrayRef;
use proptest::prelude::*;

use super::{Condition, ENCODINGS, Values};
use crate::conformance::{self, COMPARISONS};
use crate::segment::Positions;

/// Values in runs of one to forty rows.
fn numbers() -> impl Strategy<Value = Vec<Option<i64>>> {
    let number = prop_oneof![
        1 => Just(None),
        4 => (-3i64..4).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
    ];
    let len = prop_oneof![1usize..3, 4usize..40];
    prop::collection::vec((number, len), 0..30).prop_map(|runs| {
        runs.into_iter().flat_map(|(number, len)| std::iter::repeat_n(number, len)).collect()
    })
}

/// An array of some type, with a range and a list of its rows.
fn arrays() -> impl Strategy<Value = (ArrayRef, [Positions; 2])> {
    let places = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let list = prop::collection::vec(any::<prop::sample::Index>(), 0..60);
    (numbers(), any::<prop::sample::Index>(), places, list, any::<bool>()).prop_map(
        |(numbers, kind, (start, part), list, is_sorted)| {
            let len = numbers.len();
            let array = kind.get(&conformance::of_every_type(len, |row| numbers[row])).clone();
            let start = start.index(len + 1);
            let mut list: Vec<u32> =
                list.iter().filter(|_| len > 0).map(|at| at.index(len) as u32).collect();
            if is_sorted {
                list.sort_unstable();
            }
            let range = Positions::Range(start, part.index(len - start + 1));
            (array, [range, Positions::Listed(list)])
        },
    )
}

proptest! {
    #[test]
    fn encoded_values_are_those_of_the_array(
        (array, places) in arrays(),
        row in any::<prop::sample::Index>(),
        comparison in prop::sample::select(&COMPARISONS[..]),
    ) {
        for encode in ENCODINGS {
            let values = Values::new(&array);
            let Some(offer) = encode(&values).unwrap() else { continue };
            let encoding = (offer.make)().unwrap();
            conformance::positions(&*encoding, &array, &places);
            conformance::aggregates(&*encoding, &array);
            if !array.is_empty() {
                let constant = array.slice(row.index(array.len()), 1);
                if let Some(condition) = Condition::new(comparison, &constant) {
                    conformance::conditions(&*encoding, &array, (&condition, &constant), &places);
                }
            }
        }
    }
}
