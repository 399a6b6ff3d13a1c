//! Frame-of-reference encoding: integers as bit-packed differences from the least one.

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;
use tessera_codegen::Comparison;
use tessera_types::Result;

use super::dictionary::nulls_at;
use super::{Aggregate, Condition, Encoding, Offer, Values, Verdict};
use crate::column::Column;
use crate::packed::{BITS_MAX, Number, PackedNumbers};

/// Integers, and types stored as integers: dates, times, decimals.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// # use tessera_vector::encoding::{Encoding, FrameOfReference};
/// # use tessera_vector::{Positions, Segment};
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![1000, 1003, 1001, 1002, 1000]));
/// let segment = Segment::with(&values, &[FrameOfReference::encode])?;
/// assert_eq!(segment.encoding(), "frame_of_reference");
/// assert_eq!(&segment.decode(&Positions::Range(1, 3))?.plain()?, &values.slice(1, 3));
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct FrameOfReference {
    data_type: DataType,
    least: i64,
    greatest: i64,
    differences: PackedNumbers,
    nulls: Option<NullBuffer>,
    len: usize,
}

impl Encoding for FrameOfReference {
    fn name(&self) -> &'static str {
        "frame_of_reference"
    }

    fn encode(values: &Values) -> Result<Option<Offer<'_>>> {
        let (array, nulls) = (values.array(), values.nulls());
        let Some(numbers) = values.numbers().filter(|_| !values.is_all_null()) else {
            return Ok(None);
        };
        // Numbers at NULL positions are ignored.
        let is_there = move |at: usize| nulls.is_none_or(|nulls| nulls.is_valid(at));
        let there =
            numbers.iter().enumerate().filter(|(at, _)| is_there(*at)).map(|(_, number)| *number);
        let (least, greatest) = there.fold((i64::MAX, i64::MIN), |(least, most), number| {
            (least.min(number), most.max(number))
        });
        let bits = u64::BITS - (greatest.wrapping_sub(least) as u64).leading_zeros();
        let width = array.data_type().primitive_width().unwrap_or(8);
        let is_constant = bits == 0 && nulls.is_none();
        if is_constant || bits > BITS_MAX || bits as usize >= width * 8 {
            return Ok(None);
        }
        let bytes = PackedNumbers::bytes_of(numbers.len(), bits) + values.null_bytes();
        Offer::new(bytes, move || {
            let difference = |(at, number): (usize, &i64)| {
                if is_there(at) { number.wrapping_sub(least) as u64 } else { 0 }
            };
            let differences: Vec<u64> = numbers.iter().enumerate().map(difference).collect();
            Ok(FrameOfReference {
                data_type: array.data_type().clone(),
                least,
                greatest,
                differences: PackedNumbers::new(&differences, bits),
                nulls: nulls.cloned(),
                len: numbers.len(),
            })
        })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.differences.bytes() + self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8))
    }

    fn decode(&self, rows: Range<usize>) -> Result<Column> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(rows.start, rows.len()));
        self.column(&Rows::Range(rows), nulls)
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls_at(nulls, positions));
        self.column(&Rows::Listed(positions), nulls)
    }

    /// Uses only the least and the greatest value. Filtering decoded values is as fast as filtering
    /// packed ones.
    fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        let Some(number) = condition.number() else { return Ok(Verdict::Decode) };
        let (least, greatest) = (i128::from(self.least), i128::from(self.greatest));
        let (all, none) = match condition.comparison() {
            Comparison::Eq => {
                (least == number && greatest == number, number < least || number > greatest)
            }
            Comparison::NotEq => {
                (number < least || number > greatest, least == number && greatest == number)
            }
            Comparison::Lt => (greatest < number, least >= number),
            Comparison::LtEq => (greatest <= number, least > number),
            Comparison::Gt => (least > number, greatest <= number),
            Comparison::GtEq => (least >= number, greatest < number),
            Comparison::Distinct | Comparison::NotDistinct => (false, false),
        };
        Ok(match (all, none) {
            (_, true) => Verdict::None,
            (true, _) if self.nulls.is_none() => Verdict::All,
            _ => Verdict::Decode,
        })
    }

    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        let of = |number: i64| {
            let packed = PackedNumbers::new(&[0], 0);
            let data = ArrayData::builder(self.data_type.clone()).len(1);
            let data =
                data.add_buffer(buffer_of(&self.data_type, number, &packed, &Rows::Range(0..1)));
            Ok(Some(make_array(data.build()?)))
        };
        match aggregate {
            Aggregate::Count => Ok(Some(Aggregate::count(self.len, self.nulls.as_ref()))),
            Aggregate::Min => of(self.least),
            Aggregate::Max => of(self.greatest),
            Aggregate::Sum => {
                let count = self.len - self.nulls.as_ref().map_or(0, NullBuffer::null_count);
                // The differences at NULL positions are 0.
                let differences: Vec<u64> = self.differences.unpack(0, self.len, 0);
                let differences: i128 = differences.into_iter().map(i128::from).sum();
                Aggregate::sum(
                    &self.data_type,
                    i128::from(self.least) * count as i128 + differences,
                )
            }
        }
    }
}

impl FrameOfReference {
    fn column(&self, rows: &Rows<'_>, nulls: Option<NullBuffer>) -> Result<Column> {
        let buffer = buffer_of(&self.data_type, self.least, &self.differences, rows);
        let data = ArrayData::builder(self.data_type.clone()).len(rows.len());
        Ok(Column::Plain(make_array(data.nulls(nulls).add_buffer(buffer).build()?)))
    }
}

enum Rows<'a> {
    Range(Range<usize>),
    Listed(&'a [u32]),
}

impl Rows<'_> {
    fn len(&self) -> usize {
        match self {
            Rows::Range(rows) => rows.len(),
            Rows::Listed(positions) => positions.len(),
        }
    }
}

fn unpacked<N: Number>(packed: &PackedNumbers, rows: &Rows<'_>, base: i64) -> Vec<N> {
    match rows {
        Rows::Range(rows) => packed.unpack(rows.start, rows.len(), base),
        Rows::Listed(positions) => packed.unpack_at(positions, base),
    }
}

/// Unpacks rows into a buffer of the type's native values.
fn buffer_of(
    data_type: &DataType,
    least: i64,
    differences: &PackedNumbers,
    rows: &Rows<'_>,
) -> Buffer {
    macro_rules! values {
        ($native:ty) => {
            Buffer::from_vec(unpacked::<$native>(differences, rows, least))
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
