//! A conformance suite for [`Encoding`], as plain functions that a test calls: pass an `encode`
//! function to [`encoding`]. The functions panic if an encoding breaks a rule.
//!
//! ```
//! use tessera_vector::conformance;
//! use tessera_vector::encoding::{Encoding, RunLength};
//!
//! let types = conformance::encoding(RunLength::encode);
//! assert!(types.len() > 10);
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal64Array,
    Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, NullArray, StringViewArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, UInt8Array, UInt32Array, UInt64Array,
    make_comparator, new_null_array,
};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType,
};
use tessera_codegen::Comparison;

use crate::encoding::{Aggregate, Condition, Encode, Encoding, Values, Verdict};
use crate::physical::interval_length;
use crate::segment::{Positions, Segment};

pub(crate) const COMPARISONS: [Comparison; 8] = [
    Comparison::Eq,
    Comparison::NotEq,
    Comparison::Lt,
    Comparison::LtEq,
    Comparison::Gt,
    Comparison::GtEq,
    Comparison::Distinct,
    Comparison::NotDistinct,
];

/// Rows of most samples: several full bitmap words and a partial one.
const ROWS: usize = 203;

/// Checks an encoding with all [`samples`] and returns the types that it encoded.
///
/// # Panics
/// The encoding breaks a rule, or never makes an offer.
pub fn encoding(encode: Encode) -> Vec<DataType> {
    let mut types: Vec<DataType> = Vec::new();
    for array in samples() {
        let len = array.len();
        for array in [array.clone(), array.slice(len / 3, len / 2), array.slice(0, len.min(1))] {
            let values = Values::new(&array);
            let Some(offer) = encode(&values).expect("an offer or none") else { continue };
            let bytes = offer.bytes;
            let made = (offer.make)().expect("what was offered");
            assert!(
                made.bytes() <= 2 * bytes + 4_096,
                "{made:?}: {} bytes of {bytes}",
                made.bytes()
            );
            assert!(!made.name().is_empty() && made.name() != "none");
            encoded(&*made, &array);
            // The encoding also works as the only choice of a segment.
            let segment = Segment::with(&array, &[encode]).expect("a segment");
            assert_eq!(segment.encoding(), made.name());
            if !types.contains(array.data_type()) {
                types.push(array.data_type().clone());
            }
        }
    }
    assert!(!types.is_empty(), "the encoding has taken no sample");
    types
}

/// Checks every operation on encoded values against the plain array.
///
/// # Panics
/// A result differs.
pub fn encoded(encoding: &dyn Encoding, array: &ArrayRef) {
    let len = array.len();
    assert_eq!((encoding.len(), encoding.is_empty()), (len, array.is_empty()));
    let places = places(len);
    self::positions(encoding, array, &places);
    for constant in constants(array) {
        for comparison in COMPARISONS {
            if let Some(condition) = Condition::new(comparison, &constant) {
                conditions(encoding, array, (&condition, &constant), &places[..FEW]);
            }
        }
    }
    aggregates(encoding, array);
}

/// Checks `decode` and `take` at some positions.
pub(crate) fn positions(encoding: &dyn Encoding, array: &ArrayRef, places: &[Positions]) {
    for positions in places {
        let list = listed(positions);
        let expected = take(array, &list, None).expect("positions within the array");
        let column = match positions {
            Positions::Range(start, len) => encoding.decode(*start..start + len),
            Positions::Listed(list) => encoding.take(list),
        };
        let column = column.expect("what was encoded");
        assert_eq!(column.len(), list.len(), "{encoding:?} at {positions:?}");
        let plain = column.plain().expect("a plain form");
        assert_eq!(plain.data_type(), array.data_type(), "{encoding:?}");
        assert_eq!(&plain, &expected, "{encoding:?} at {positions:?}");
    }
}

/// Checks `compare`, `filter` and `verdict` of a condition at some positions.
pub(crate) fn conditions(
    encoding: &dyn Encoding,
    array: &ArrayRef,
    (condition, constant): (&Condition, &ArrayRef),
    places: &[Positions],
) {
    let what = || format!("{:?} {constant:?} of {encoding:?}", condition.comparison());
    let order = orders(array, constant);
    let nulls = |row| (is_null(array, row), is_null(constant, 0));
    let truth = (0..array.len())
        .map(|row| expected_truth(condition.comparison(), nulls(row), || order(row)));
    let truth: Vec<Option<bool>> = truth.collect();
    for positions in places {
        let list = listed(positions);
        let expected: BooleanArray = list.values().iter().map(|at| truth[*at as usize]).collect();
        let compared = encoding.compare(condition, positions).expect("a comparison");
        assert_eq!(compared, expected, "{} at {positions:?}", what());
        let expected: Vec<u32> = (0..list.len() as u32)
            .filter(|at| truth[list.value(*at as usize) as usize] == Some(true))
            .collect();
        let found = encoding.filter(condition, positions).expect("a filter");
        assert_eq!(found.values(), &expected[..], "{} at {positions:?}", what());
    }
    let true_count = truth.iter().filter(|truth| **truth == Some(true)).count();
    match encoding.verdict(condition).expect("a verdict") {
        Verdict::All => assert_eq!(true_count, array.len(), "{}", what()),
        Verdict::None => assert_eq!(true_count, 0, "{}", what()),
        Verdict::Filter | Verdict::Decode => {}
    }
}

/// Checks all aggregates.
pub(crate) fn aggregates(encoding: &dyn Encoding, array: &ArrayRef) {
    let rows: Vec<usize> = (0..array.len()).filter(|row| !is_null(array, *row)).collect();
    let find = |aggregate| encoding.aggregate(aggregate).expect("an aggregate");
    let count = find(Aggregate::Count).expect("everything is counted");
    assert_eq!(count.as_primitive::<Int64Type>().value(0), rows.len() as i64, "{encoding:?}");
    for (aggregate, better) in
        [(Aggregate::Min, Ordering::Less), (Aggregate::Max, Ordering::Greater)]
    {
        let Some(found) = find(aggregate) else { continue };
        assert_eq!((found.len(), found.data_type()), (1, array.data_type()), "{encoding:?}");
        assert_eq!(is_null(&found, 0), rows.is_empty(), "{aggregate:?} of {encoding:?}");
        let mut is_there = rows.is_empty();
        let order = orders(array, &found);
        for row in &rows {
            let ordering = order(*row);
            assert_ne!(ordering, better, "{aggregate:?} of {encoding:?}");
            is_there |= ordering.is_eq();
        }
        assert!(is_there, "{aggregate:?} of {encoding:?}");
    }
    let Some(found) = find(Aggregate::Sum) else { return };
    let wide = arrow::compute::cast(array, &DataType::Decimal128(38, found_scale(&found)));
    let Ok(wide) = wide else { return };
    let wide = wide.as_primitive::<Decimal128Type>();
    let sum =
        wide.iter().flatten().fold(None, |sum: Option<i128>, value| Some(sum.unwrap_or(0) + value));
    let found = found.as_primitive::<Decimal128Type>();
    assert_eq!(found.is_valid(0).then(|| found.value(0)), sum, "{encoding:?}");
}

fn found_scale(sum: &ArrayRef) -> i8 {
    match sum.data_type() {
        DataType::Decimal128(_, scale) => *scale,
        other => panic!("a sum of type {other}"),
    }
}

/// Ranges and lists of rows; conditions are tested only at the first [`FEW`].
fn places(len: usize) -> Vec<Positions> {
    let range = |start: usize, part: usize| {
        let start = start.min(len);
        Positions::Range(start, part.min(len - start))
    };
    let all = 0..len as u32;
    let lists: [Vec<u32>; 5] = [
        all.clone().skip(len / 4).step_by(7).flat_map(|at| [at, at]).collect(),
        all.clone().map(|at| at * 37 % len as u32).take(50).collect(),
        Vec::new(),
        all.clone().rev().step_by(3).collect(),
        all.collect(),
    ];
    let mut places = vec![range(0, len), range(len / 3, len / 2)];
    places.extend(lists.map(Positions::Listed));
    let ranges = [(0, 0), (len, 0), (0, 1), (len / 2 + 1, 3), (len.max(1) - 1, 1)];
    places.extend(ranges.map(|(start, part)| range(start, part)));
    places
}

/// The number of positions at which conditions are tested.
const FEW: usize = 5;

fn listed(positions: &Positions) -> UInt32Array {
    match positions {
        Positions::Range(start, len) => {
            UInt32Array::from_iter_values(*start as u32..(start + len) as u32)
        }
        Positions::Listed(list) => list.clone().into(),
    }
}

/// Constants to compare with: some values of the array, NULL, and a value that may not occur.
fn constants(array: &ArrayRef) -> Vec<ArrayRef> {
    let len = array.len();
    let rows = [0, len / 2, len.max(1) - 1];
    let mut constants: Vec<ArrayRef> =
        rows.iter().filter(|row| **row < len).map(|row| array.slice(*row, 1)).collect();
    constants.push(new_null_array(array.data_type(), 1));
    let others = of_every_type(1, |_| Some(51)).into_iter();
    constants.extend(others.filter(|other| other.data_type() == array.data_type()));
    constants
}

fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.logical_nulls().is_some_and(|nulls| nulls.is_null(row))
}

/// The expected result of a comparison, computed value by value.
fn expected_truth(
    comparison: Comparison,
    nulls: (bool, bool),
    ordering: impl FnOnce() -> Ordering,
) -> Option<bool> {
    let same_null = match nulls {
        (false, false) => None,
        (left, right) => Some(left == right),
    };
    match (comparison, same_null) {
        (Comparison::Distinct, Some(same)) => return Some(!same),
        (Comparison::NotDistinct, Some(same)) => return Some(same),
        (_, Some(_)) => return None,
        _ => {}
    }
    let ordering = ordering();
    Some(match comparison {
        Comparison::Eq | Comparison::NotDistinct => ordering.is_eq(),
        Comparison::NotEq | Comparison::Distinct => ordering.is_ne(),
        Comparison::Lt => ordering.is_lt(),
        Comparison::LtEq => ordering.is_le(),
        Comparison::Gt => ordering.is_gt(),
        Comparison::GtEq => ordering.is_ge(),
    })
}

/// Compares a value, given by its row, with a constant; neither is NULL.
fn orders<'a>(array: &'a ArrayRef, constant: &'a ArrayRef) -> Box<dyn Fn(usize) -> Ordering + 'a> {
    fn floats(a: f64, b: f64) -> Ordering {
        a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    }
    match array.data_type() {
        DataType::Float32 => {
            let (values, constant) =
                (array.as_primitive::<Float32Type>(), constant.as_primitive::<Float32Type>());
            Box::new(|row| floats(values.value(row).into(), constant.value(0).into()))
        }
        DataType::Float64 => {
            let (values, constant) =
                (array.as_primitive::<Float64Type>(), constant.as_primitive::<Float64Type>());
            Box::new(|row| floats(values.value(row), constant.value(0)))
        }
        DataType::Interval(_) => {
            let length = |array: &ArrayRef, row| {
                interval_length(array.as_primitive::<IntervalMonthDayNanoType>().value(row))
            };
            Box::new(move |row| length(array, row).cmp(&length(constant, 0)))
        }
        _ => {
            let order = make_comparator(array, constant, SortOptions::default()).expect("an order");
            Box::new(move |row| order(row, 0))
        }
    }
}

/// Arrays of every plain type: with and without NULLs, constant, in runs, with extremes, empty.
pub fn samples() -> Vec<ArrayRef> {
    let numbers: [fn(usize) -> Option<i64>; 10] = [
        |i| Some(i as i64 * 7919 % 1009 - 500),
        |i| (i % 3 > 0).then_some(i as i64 * 7919 % 1009),
        |i| Some(if i % 2 == 0 { i64::MIN } else { i64::MAX }),
        |_| Some(42),
        |i| (i == 7).then_some(42),
        |_| None,
        |i| Some(i64::MAX - i as i64),
        |i| Some((i / 20 * 7) as i64),
        |i| (i / 9 % 4 > 0).then_some((i / 9 % 3) as i64 - 1),
        |i| Some(if i < 100 { -1 } else { i64::MAX }),
    ];
    let mut samples: Vec<ArrayRef> =
        numbers.iter().flat_map(|number| of_every_type(ROWS, *number)).collect();
    samples.extend(of_every_type(0, |_| None));
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, 1.5];
    for rows_of_each in [1, 25] {
        let of = |i: usize| special[i / rows_of_each % special.len()];
        samples.push(Arc::new(Float64Array::from_iter_values((0..ROWS).map(of))));
        samples.push(Arc::new(Float32Array::from_iter_values((0..ROWS).map(|i| of(i) as f32))));
        samples.push(Arc::new(Float64Array::from_iter(
            (0..ROWS).map(|i| (i % 50 > 20).then_some(of(i))),
        )));
    }
    samples.push(Arc::new(NullArray::new(ROWS)));
    samples
}

/// Converts these numbers to an array of each plain type.
pub(crate) fn of_every_type(
    rows: usize,
    number: impl Fn(usize) -> Option<i64> + Copy,
) -> Vec<ArrayRef> {
    let all = move || (0..rows).map(number);
    let strings =
        |of: fn(i64) -> i64| all().map(move |n| n.map(|n| format!("string number {}", of(n))));
    let decimals = |shift: u32| {
        let values = all().map(|n| n.map(|n| i128::from(n) << shift)).collect::<Decimal128Array>();
        values.with_precision_and_scale(38, 2).expect("38 digits")
    };
    let interval = |n: i64| IntervalMonthDayNano::new(n as i32 % 3, n as i32 % 40, n);
    let integers: Int64Array = all().collect();
    let lists = all().map(|n| n.map(|n| vec![Some(n), None]));
    let integer = Arc::new(arrow::datatypes::Field::new("a", DataType::Int64, true));
    vec![
        Arc::new(all().map(|n| n.map(|n| n % 2 == 0)).collect::<BooleanArray>()),
        Arc::new(all().map(|n| n.map(|n| n as i8)).collect::<Int8Array>()),
        Arc::new(all().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
        Arc::new(all().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Arc::new(integers.clone()),
        Arc::new(all().map(|n| n.map(|n| n as u8)).collect::<UInt8Array>()),
        Arc::new(all().map(|n| n.map(|n| n as u32)).collect::<UInt32Array>()),
        Arc::new(all().map(|n| n.map(|n| n as u64)).collect::<UInt64Array>()),
        Arc::new(all().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
        Arc::new(all().collect::<Time64MicrosecondArray>()),
        Arc::new(all().collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Arc::new(all().map(|n| n.map(interval)).collect::<IntervalMonthDayNanoArray>()),
        Arc::new(
            all().collect::<Decimal64Array>().with_precision_and_scale(18, 2).expect("18 digits"),
        ),
        Arc::new(decimals(0)),
        Arc::new(decimals(50)),
        Arc::new(all().map(|n| n.map(|n| n as f32)).collect::<Float32Array>()),
        Arc::new(all().map(|n| n.map(|n| n as f64)).collect::<Float64Array>()),
        Arc::new(strings(|n| n % 17).collect::<StringViewArray>()),
        Arc::new(strings(|n| n).collect::<StringViewArray>()),
        Arc::new(all().map(|n| n.map(|n| n.to_string().into_bytes())).collect::<BinaryViewArray>()),
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        Arc::new(StructArray::new(vec![integer].into(), vec![Arc::new(integers)], None)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Constant, Dictionary, ENCODINGS, FrameOfReference, Plain, RunLength};

    #[test]
    fn constant() {
        assert!(encoding(Constant::encode).len() > 20);
    }

    #[test]
    fn dictionary() {
        assert_eq!(encoding(Dictionary::encode), [DataType::Utf8View]);
    }

    #[test]
    fn frame_of_reference() {
        assert!(encoding(FrameOfReference::encode).len() > 8);
    }

    #[test]
    fn plain() {
        assert!(encoding(Plain::encode).iter().any(DataType::is_nested));
    }

    #[test]
    fn run_length() {
        let types = encoding(RunLength::encode);
        assert!(types.len() > 15 && !types.iter().any(DataType::is_nested), "{types:?}");
    }

    #[test]
    fn names_differ() {
        let mut names = Vec::new();
        for array in samples() {
            for encode in ENCODINGS {
                if let Some(offer) = encode(&Values::new(&array)).unwrap() {
                    names.push((offer.make)().unwrap().name());
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ENCODINGS.len(), "{names:?}");
    }
}
