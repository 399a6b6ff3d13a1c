//! Bodies of fuzz targets.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, Float32Array, Int16Array, Int64Array, StringViewArray,
    UInt32Array,
};
use arrow::compute::take;

use crate::conformance::{self, COMPARISONS};
use crate::encoding::{Condition, ENCODINGS};
use crate::{Positions, Segment};

/// Checks that a segment returns the values that it was built from, at any positions.
pub fn segments(data: &[u8]) {
    let Some(([kind, start, len, step], values)) = data.split_first_chunk::<4>() else { return };
    let array = array_of(*kind, values);
    let segment = Segment::new(&array).expect("any values can be encoded");
    let (start, len) = (usize::from(*start).min(array.len()), usize::from(*len));
    let len = len.min(array.len() - start);
    let check = |positions: Positions, expected: ArrayRef| {
        let column = segment.decode(&positions).expect("what was encoded can be decoded");
        let plain = column.plain().expect("a column has a plain form");
        assert_eq!(plain.to_data(), expected.to_data(), "{positions:?}");
    };
    check(Positions::Range(start, len), array.slice(start, len));
    let listed: Vec<u32> =
        (start as u32..(start + len) as u32).step_by(usize::from(*step).max(1)).rev().collect();
    let expected =
        take(&array, &UInt32Array::from(listed.clone()), None).expect("positions within the array");
    check(Positions::Listed(listed.clone()), expected);
    // Also check the other operations, and an encoding that may not be the shortest.
    let constant = array.slice(start, len.min(1));
    let comparison = COMPARISONS[usize::from(*step) % COMPARISONS.len()];
    let encode = ENCODINGS[usize::from(*step) % ENCODINGS.len()];
    let other = Segment::with(&array, &[encode]).expect("any values can be encoded");
    for segment in [&segment, &other] {
        let places = [Positions::Range(start, len), Positions::Listed(listed.clone())];
        conformance::positions(segment.encoded(), &array, &places);
        conformance::aggregates(segment.encoded(), &array);
        if let Some(condition) = Condition::new(comparison, &constant) {
            conformance::conditions(segment.encoded(), &array, (&condition, &constant), &places);
        }
    }
}

fn array_of(kind: u8, bytes: &[u8]) -> ArrayRef {
    let eights = || {
        bytes.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            i64::from_le_bytes(word)
        })
    };
    // Makes some values NULL.
    let some = |number: i64| (number & 7 != 3).then_some(number);
    match kind % 8 {
        0 => Arc::new(Int64Array::from_iter(eights().map(some))),
        1 => Arc::new(Int64Array::from_iter_values(eights())),
        2 => Arc::new(Int16Array::from_iter(
            bytes.iter().map(|byte| some((*byte).into()).map(|byte| byte as i16)),
        )),
        3 => Arc::new(Decimal128Array::from_iter(
            eights().map(|number| some(number).map(i128::from)),
        )),
        4 => Arc::new(Decimal128Array::from_iter_values(
            eights().map(|number| i128::from(number) << (number & 63)),
        )),
        // Runs: the high half of a byte is the value, its low half is the length.
        6 => {
            let runs = bytes.iter().flat_map(|byte| {
                std::iter::repeat_n(some((byte >> 4).into()), usize::from(byte & 15) + 1)
            });
            Arc::new(Int64Array::from_iter(runs.map(|number| number.map(|number| number - 8))))
        }
        7 => {
            let runs = bytes.chunks(4).flat_map(|bytes| {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                std::iter::repeat_n(f32::from_le_bytes(word), usize::from(word[0] & 15) + 1)
            });
            Arc::new(Float32Array::from_iter_values(runs))
        }
        _ => {
            let texts = bytes.split(|byte| *byte == 0).map(|text| match text {
                b"null" => None,
                text => Some(String::from_utf8_lossy(text).into_owned()),
            });
            Arc::new(StringViewArray::from_iter(texts))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn segments() {
        let numbers: Vec<u8> = (0..90u64).flat_map(|number| (number * 977).to_le_bytes()).collect();
        let of = |kind: u8, bytes: &[u8]| [&[kind, 3, 60, 2], bytes].concat();
        let texts =
            [&b"a\0"[..], b"bb\0", b"null\0", b"a longer text than twelve\0"].concat().repeat(9);
        let seeds: Vec<Vec<u8>> = [0, 1, 2, 3, 4, 6, 7]
            .map(|kind| of(kind, &numbers))
            .into_iter()
            .chain([of(5, &texts)])
            .collect();
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        tessera_fuzzing::mutate("segments", &seeds, super::segments);
    }
}
