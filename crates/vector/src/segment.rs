//! A column of some tuples that are kept: encoded once, decoded piece by piece.
//!
//! Whole numbers, and what is kept as such (dates, times, decimals), are differences from the least of them, bit-packed (frame of reference);
//! strings of which there are few are a dictionary, its keys bit-packed; what is the same everywhere is kept once; the rest is plain.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::DictionaryArray;
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, StringViewArray, UInt32Array, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType;
use tessera_types::Result;

use crate::column::{Column, own_strings};
use crate::packed::{BITS_MAX, Number, Packed};

/// A dictionary is kept for at most one distinct string in so many.
const ROWS_OF_STRING_MIN: usize = 4;
/// What arrays take beside their values.
const SMALL_BYTES: usize = 1 << 10;

/// Encoded values of one logical type.
#[derive(Debug)]
pub struct Segment {
    encoding: Encoding,
    bytes: usize,
}

#[derive(Debug)]
enum Encoding {
    Plain(ArrayRef),
    /// One value.
    Constant(ArrayRef),
    /// Differences from a number.
    Numbers {
        data_type: DataType,
        least: i64,
        differences: Packed,
        nulls: Option<NullBuffer>,
    },
    /// Positions in a list of strings.
    Strings {
        values: ArrayRef,
        keys: Packed,
        nulls: Option<NullBuffer>,
    },
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
        let encoding = encoded(array)?;
        let nulls = |nulls: &Option<NullBuffer>| nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8));
        let bytes = match &encoding {
            Encoding::Plain(array) | Encoding::Constant(array) => array.get_array_memory_size(),
            Encoding::Numbers { differences, nulls: of, .. } => differences.bytes() + nulls(of),
            Encoding::Strings { values, keys, nulls: of } => {
                values.get_array_memory_size() + keys.bytes() + nulls(of)
            }
        };
        Ok(Segment { encoding, bytes })
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The values at some positions.
    ///
    /// # Errors
    /// Arrow refuses what was encoded.
    pub fn decode(&self, positions: &Positions) -> Result<Column> {
        let nulls = |nulls: &Option<NullBuffer>| nulls.as_ref().map(|nulls| positions.of_nulls(nulls));
        match &self.encoding {
            Encoding::Plain(array) => match positions {
                Positions::Range(start, len) if !array.data_type().is_nested() => {
                    Ok(Column::new(array.slice(*start, *len)))
                }
                // The buffers of what is nested are counted whole, for each slice.
                _ => Ok(Column::Plain(take(array, &positions.listed(), None)?)),
            },
            Encoding::Constant(value) => Ok(Column::Constant(value.clone(), positions.len())),
            Encoding::Numbers { data_type, least, differences, nulls: of } => {
                let buffer = buffer_of(data_type, *least, differences, positions);
                let data = ArrayData::builder(data_type.clone()).len(positions.len());
                Ok(Column::Plain(make_array(data.nulls(nulls(of)).add_buffer(buffer).build()?)))
            }
            Encoding::Strings { values, keys, nulls: of } => {
                let keys = UInt32Array::new(unpacked(keys, positions, 0).into(), nulls(of));
                Ok(Column::Dictionary(Arc::new(DictionaryArray::try_new(keys, values.clone())?)))
            }
        }
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
            Positions::Listed(list) => chosen.values().iter().map(|at| list[*at as usize]).collect(),
        })
    }

    fn listed(&self) -> UInt32Array {
        match self {
            Positions::Range(start, len) => {
                UInt32Array::from_iter_values(*start as u32..(start + len) as u32)
            }
            Positions::Listed(list) => UInt32Array::from(list.clone()),
        }
    }

    fn of_nulls(&self, nulls: &NullBuffer) -> NullBuffer {
        match self {
            Positions::Range(start, len) => nulls.slice(*start, *len),
            Positions::Listed(list) => list.iter().map(|at| nulls.is_valid(*at as usize)).collect(),
        }
    }
}

fn unpacked<N: Number>(packed: &Packed, positions: &Positions, base: i64) -> Vec<N> {
    match positions {
        Positions::Range(start, len) => packed.unpack(*start, *len, base),
        Positions::Listed(list) => packed.unpack_at(list, base),
    }
}

fn encoded(array: &ArrayRef) -> Result<Encoding> {
    if array.null_count() == array.len() || array.is_empty() {
        let none = UInt32Array::from(vec![None::<u32>]);
        return Ok(Encoding::Constant(take(array, &none, None)?));
    }
    if let Some(numbers) = numbers_of(array) {
        return packed(array, &numbers);
    }
    if let Some(strings) = array.as_string_view_opt() {
        return dictionary(array, strings);
    }
    Ok(Encoding::Plain(owned(array)?))
}

/// The values without what else is in their buffers, where that is much.
fn owned(array: &ArrayRef) -> Result<ArrayRef> {
    let array = own_strings(array);
    let needed = array.to_data().get_slice_memory_size()?;
    if array.get_array_memory_size() <= 2 * needed + SMALL_BYTES {
        return Ok(array);
    }
    let all = UInt32Array::from_iter_values(0..array.len() as u32);
    Ok(take(&array, &all, None)?)
}

/// Numbers as differences from the least one; those of NULLs count for nothing.
fn packed(array: &ArrayRef, numbers: &[i64]) -> Result<Encoding> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let is_there = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
    let there = || numbers.iter().enumerate().filter(|(at, _)| is_there(*at)).map(|(_, number)| *number);
    let (least, greatest) = there()
        .fold((i64::MAX, i64::MIN), |(least, greatest), number| (least.min(number), greatest.max(number)));
    let bits = u64::BITS - (greatest.wrapping_sub(least) as u64).leading_zeros();
    if bits == 0 && nulls.is_none() {
        let first = UInt32Array::from(vec![0]);
        return Ok(Encoding::Constant(take(array, &first, None)?));
    }
    let width = array.data_type().primitive_width().unwrap_or(8);
    if bits > BITS_MAX || bits as usize >= width * 8 {
        return Ok(Encoding::Plain(owned(array)?));
    }
    let difference =
        |(at, number): (usize, &i64)| if is_there(at) { number.wrapping_sub(least) as u64 } else { 0 };
    let differences: Vec<u64> = numbers.iter().enumerate().map(difference).collect();
    let (data_type, differences) = (array.data_type().clone(), Packed::new(&differences, bits));
    Ok(Encoding::Numbers { data_type, least, differences, nulls })
}

fn dictionary(array: &ArrayRef, strings: &StringViewArray) -> Result<Encoding> {
    let values_max = strings.len() / ROWS_OF_STRING_MIN;
    let (mut numbers, mut keys): (HashMap<&str, u64>, _) =
        (HashMap::new(), Vec::with_capacity(strings.len()));
    for string in strings {
        let next = numbers.len() as u64;
        keys.push(string.map_or(0, |string| *numbers.entry(string).or_insert(next)));
        if numbers.len() > values_max.max(1) {
            return Ok(Encoding::Plain(owned(array)?));
        }
    }
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let mut values: Vec<(&str, u64)> = numbers.into_iter().collect();
    values.sort_unstable_by_key(|(_, number)| *number);
    let values: ArrayRef =
        Arc::new(StringViewArray::from_iter_values(values.into_iter().map(|(string, _)| string)));
    let values = own_strings(&values);
    if values.len() == 1 && nulls.is_none() {
        return Ok(Encoding::Constant(values));
    }
    let bits = u64::BITS - (values.len() as u64 - 1).leading_zeros();
    Ok(Encoding::Strings { values, keys: Packed::new(&keys, bits), nulls })
}

/// The values of an array as numbers, where it has a type that is kept as whole numbers and all fit.
fn numbers_of(array: &ArrayRef) -> Option<Vec<i64>> {
    let data = array.to_data();
    let (offset, len) = (data.offset(), data.len());
    macro_rules! numbers {
        ($native:ty) => {{
            let values = &data.buffers().first()?.typed_data::<$native>()[offset..offset + len];
            values.iter().map(|value| i64::try_from(*value).ok()).collect()
        }};
    }
    // What stands in the place of a NULL decides nothing.
    let is_whole = is_whole(array.data_type());
    match (is_whole?, array.data_type().primitive_width()?) {
        (true, 1) => numbers!(i8),
        (true, 2) => numbers!(i16),
        (true, 4) => numbers!(i32),
        (true, 8) => numbers!(i64),
        (true, 16) => {
            let values = &data.buffers().first()?.typed_data::<i128>()[offset..offset + len];
            let number = |(at, value): (usize, &i128)| match i64::try_from(*value) {
                Err(_) if array.is_null(at) => Some(0),
                number => number.ok(),
            };
            values.iter().enumerate().map(number).collect()
        }
        (false, 1) => numbers!(u8),
        (false, 2) => numbers!(u16),
        (false, 4) => numbers!(u32),
        _ => None,
    }
}

/// Whether values of a type are whole numbers with a sign; none where they are not whole.
fn is_whole(data_type: &DataType) -> Option<bool> {
    match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(false),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(true),
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => Some(true),
        DataType::Timestamp(..) | DataType::Duration(_) => Some(true),
        DataType::Decimal64(..) | DataType::Decimal128(..) => Some(true),
        _ => None,
    }
}

/// Some values of a type as they lie in memory.
fn buffer_of(data_type: &DataType, least: i64, differences: &Packed, positions: &Positions) -> Buffer {
    macro_rules! values {
        ($native:ty) => {
            Buffer::from_vec(unpacked::<$native>(differences, positions, least))
        };
    }
    match data_type.primitive_width() {
        Some(1) => values!(i8),
        Some(2) => values!(i16),
        Some(4) => values!(i32),
        Some(16) => values!(i128),
        _ => values!(i64),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Decimal64Array, Decimal128Array, Float64Array, Int8Array, Int64Array,
        TimestampMicrosecondArray, UInt32Array,
    };

    use super::*;

    /// What comes back from everywhere is what was encoded; the bytes it takes.
    fn round_trip(array: ArrayRef) -> usize {
        let segment = Segment::new(&array).unwrap();
        let len = array.len();
        for (start, part) in
            [(0, len), (0, len.min(1)), (len / 3, len / 2), (len, 0), (len.saturating_sub(1), len.min(1))]
        {
            let column = segment.decode(&Positions::Range(start, part)).unwrap();
            assert_eq!(column.len(), part);
            assert_eq!(&column.plain().unwrap(), &array.slice(start, part), "{segment:?}");
            let chosen = UInt32Array::from_iter_values((0..part as u32).rev().step_by(3));
            let ends = UInt32Array::from_iter_values((0..chosen.len() as u32).take(2));
            let some = Positions::Range(start, part).at(&chosen);
            let listed = take(&array.slice(start, part), &chosen, None).unwrap();
            for (positions, expected) in [(&some, &listed), (&some.at(&ends), &listed.slice(0, ends.len()))] {
                assert_eq!(&segment.decode(positions).unwrap().plain().unwrap(), expected, "{segment:?}");
            }
        }
        segment.bytes()
    }

    fn every_type(number: impl Fn(usize) -> Option<i64> + Copy) -> Vec<ArrayRef> {
        let all = move || (0..1_000).map(number);
        let strings = |of: fn(i64) -> i64| all().map(move |n| n.map(|n| format!("string number {}", of(n))));
        vec![
            Arc::new(all().collect::<Int64Array>()),
            Arc::new(all().map(|n| n.map(|n| n as i8)).collect::<Int8Array>()),
            Arc::new(all().map(|n| n.map(|n| n as u32)).collect::<UInt32Array>()),
            Arc::new(all().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
            Arc::new(all().collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            Arc::new(
                all()
                    .map(|n| n.map(i128::from))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(38, 2)
                    .unwrap(),
            ),
            Arc::new(all().map(|n| n.map(|n| i128::from(n) << 70)).collect::<Decimal128Array>()),
            Arc::new(all().collect::<Decimal64Array>().with_precision_and_scale(18, 2).unwrap()),
            Arc::new(all().map(|n| n.map(|n| n as f64)).collect::<Float64Array>()),
            Arc::new(strings(|n| n % 17).collect::<StringViewArray>()),
            Arc::new(strings(|n| n).collect::<StringViewArray>()),
        ]
    }

    #[test]
    fn values_of_every_type_come_back() {
        let numbers: [fn(usize) -> Option<i64>; 7] = [
            |i| Some(i as i64 * 7919 % 1009 - 500),
            |i| (i % 3 > 0).then_some(i as i64 * 7919 % 1009),
            |i| Some(if i % 2 == 0 { i64::MIN } else { i64::MAX }),
            |_| Some(42),
            |i| (i == 7).then_some(42),
            |_| None,
            |i| Some(i64::MAX - i as i64),
        ];
        for number in numbers {
            for array in every_type(number) {
                round_trip(array.clone());
                round_trip(array.slice(0, 0));
                round_trip(array.slice(333, 500));
            }
        }
    }

    #[test]
    fn few_values_of_large_buffers_are_small() {
        for number in
            [|_| Some(42), |i| Some(i as i64 * i64::from(u32::MAX) * 977)] as [fn(usize) -> Option<i64>; 2]
        {
            for array in every_type(number) {
                assert!(round_trip(array.slice(500, 3)) < 2_000, "{}", array.data_type());
            }
        }
    }

    #[test]
    fn encodings_are_shorter() {
        let [small, .., prices, _, flags, texts] = &every_type(|i| Some(1_000_000 + i as i64 % 100))[..]
        else {
            panic!()
        };
        assert!(round_trip(small.clone()) < 1_000);
        assert!(round_trip(prices.clone()) < 1_000);
        assert!(round_trip(flags.clone()) < 3_000);
        assert!(round_trip(texts.clone()) < 6_000);
    }
}
