//! Packs fields into as few bits as their range needs, to send shorter rows.
//!
//! A field with a known least and greatest value is sent as its distance from the least. Several
//! distances share a word, but none crosses words (Modularis §2.4.1.2 packs key and payload into
//! one word if they fit; here the ranges are those of the actual tuples, and any number of fields
//! is packed).

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, TimeUnit};

use tessera_types::{Error, Item, Result, Tuple};
use tessera_vector::physical::Physical;

use super::layout::{FieldLayout, Kind, RowLayout};
use super::memory::Pages;
use super::resolved_columns::{ResolvedColumn, Values};

/// The least and the greatest value of a field.
pub type ValueRange = (i128, i128);

/// The location of a field's distances in a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    pub physical: Physical,
    pub data_type: DataType,
    /// The least value.
    base: i128,
    shift: u32,
    /// A mask with as many ones as a distance has bits.
    mask: u64,
}

/// Returns whether distances between values of an item are small numbers: signed integers,
/// decimals, dates and times.
pub fn packs(item: &Item) -> bool {
    let Item::Atom(atom) = item else { return false };
    matches!(
        atom.arrow(),
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
    )
}

/// The least and the greatest value of a column, if 64 bits hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Greater than `greatest` while there is no value.
    pub least: i64,
    /// Less than `least` while there is no value.
    pub greatest: i64,
}

impl Bounds {
    /// The bounds of no values.
    pub const NONE: Bounds = Bounds { least: i64::MAX, greatest: i64::MIN };
    /// The bounds of values that do not fit in 64 bits.
    const UNBOUNDED: Bounds = Bounds { least: i64::MIN, greatest: i64::MAX };

    /// Returns the bounds of the values of both.
    pub fn and(self, other: Bounds) -> Bounds {
        Bounds { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    /// Returns the bounds of a column's values at some positions; [`packs`] must hold for its item.
    pub(super) fn of(column: &ResolvedColumn, rows: usize, selection: Option<&[u32]>) -> Bounds {
        macro_rules! bounds {
            ($values:expr, $signed:ty) => {
                bounds_by(column, rows, selection, |at| {
                    $values.get(at).map(|value| i64::from(*value as $signed))
                })
            };
        }
        match &column.values {
            Values::Bits8(values) => bounds!(values, i8),
            Values::Bits16(values) => bounds!(values, i16),
            Values::Bits32(values) => bounds!(values, i32),
            Values::Bits64(values) => bounds!(values, i64),
            Values::Bits128(values) => {
                let mut fits = true;
                let bounds = bounds_by(column, rows, selection, |at| {
                    let value = i64::try_from(*values.get(at)?);
                    fits &= value.is_ok();
                    value.ok()
                });
                if fits { bounds } else { Bounds::UNBOUNDED }
            }
            Values::Null => Bounds::NONE,
            _ => Bounds::UNBOUNDED,
        }
    }
}

#[inline(always)]
fn bounds_by(
    column: &ResolvedColumn,
    rows: usize,
    selection: Option<&[u32]>,
    mut value: impl FnMut(usize) -> Option<i64>,
) -> Bounds {
    let mut bounds = Bounds::NONE;
    let mut add = |position: usize| {
        if let Some(value) = value(column.at(position)) {
            bounds = bounds.and(Bounds { least: value, greatest: value });
        }
    };
    match (selection, &column.nulls) {
        (None, None) => (0..rows).for_each(add),
        (None, Some(_)) => (0..rows).filter(|row| !column.is_null(*row)).for_each(add),
        (Some(selection), _) => {
            let positions = selection.iter().map(|position| *position as usize);
            positions.filter(|position| !column.is_null(*position)).for_each(&mut add);
        }
    }
    bounds
}

/// Returns the range of a histogram's least and greatest value; `None` if they are unknown.
pub fn range_of(least: i64, greatest: i64) -> Option<ValueRange> {
    match (Bounds { least, greatest }) {
        Bounds::UNBOUNDED => None,
        // Without values nothing has to be distinguished.
        Bounds { least, greatest } if least > greatest => Some((0, 0)),
        _ => Some((i128::from(least), i128::from(greatest))),
    }
}

/// The number of bits of the distances in a range.
fn bits_of((least, greatest): ValueRange) -> Option<u32> {
    let distance = u128::try_from(greatest.checked_sub(least)?).ok()?;
    let bits = u128::BITS - distance.leading_zeros();
    (bits <= u64::BITS).then_some(bits)
}

impl RowLayout {
    /// Returns the bare layout of `tuple` with packed fields, if that makes rows shorter; else the
    /// bare layout itself.
    ///
    /// # Errors
    /// As [`RowLayout::bare`].
    pub fn packed(tuple: &Tuple, ranges: &[Option<ValueRange>]) -> Result<Arc<RowLayout>> {
        let plain = RowLayout::bare(tuple)?;
        let mut fields = plain.fields.clone();
        let mut wanted: Vec<(usize, ValueRange, u32)> = Vec::new();
        for (index, (field, range)) in tuple.fields().iter().zip(ranges).enumerate() {
            if let Some((range, bits)) = range.and_then(|range| Some((range, bits_of(range)?)))
                && packs(&field.item)
            {
                wanted.push((index, range, bits));
            }
        }
        // First fit, widest first. The validity bits begin the first word.
        wanted.sort_by_key(|(_, _, bits)| std::cmp::Reverse(*bits));
        let validity = plain.validity_offset().map_or(0, |_| fields.len().div_ceil(8) as u32 * 8);
        let mut used: Vec<u32> = Vec::new();
        for bits in (0..validity).step_by(64) {
            used.push((validity - bits).min(64));
        }
        for (index, (base, _), bits) in &wanted {
            let word = used.iter().position(|used| used + bits <= 64).unwrap_or(used.len());
            if word == used.len() {
                used.push(0);
            }
            let Kind::Value(physical, data_type) = &fields[*index].kind else { continue };
            let packed = Packed {
                physical: *physical,
                data_type: data_type.clone(),
                base: *base,
                // A shift by 64 would be undefined; such a field has no bits.
                shift: used[word].min(63),
                mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0),
            };
            used[word] += bits;
            fields[*index] = FieldLayout { kind: Kind::Packed(packed), offset: word * 8 };
        }
        let mut end = used.len() * 8;
        for width in [0, 1, 2, 4, 8, 16] {
            for field in &mut fields {
                if matches!(field.kind, Kind::Packed(_)) || field.width_bytes() != width {
                    continue;
                }
                end = end.next_multiple_of(width.clamp(1, 8));
                field.offset = end;
                end += width;
            }
        }
        let stride_bytes = end.next_multiple_of(8).max(8);
        if wanted.is_empty() || stride_bytes >= plain.stride_bytes() {
            return Ok(plain);
        }
        Ok(Arc::new(plain.with_fields(fields, stride_bytes)))
    }
}

impl Packed {
    /// Adds the distances of values to the words of rows, which are zero there. `value(row)` is the
    /// position of a row's value.
    ///
    /// # Errors
    /// A value outside the range: an internal error of the code that computed the range.
    pub(super) fn add(
        &self,
        pages: &mut Pages,
        place: (usize, usize, usize),
        column: &ResolvedColumn,
        position: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let base = self.base as u64;
        macro_rules! distances {
            ($values:expr, $signed:ty) => {{
                let value = |at: usize| $values.get(at).copied().unwrap_or_default() as $signed;
                self.add_distances(pages, place, column, position, |at| {
                    Some((value(at) as u64).wrapping_sub(base))
                })
            }};
        }
        let inside = match &column.values {
            Values::Null => true,
            Values::Bits8(values) => distances!(values, i8),
            Values::Bits16(values) => distances!(values, i16),
            Values::Bits32(values) => distances!(values, i32),
            Values::Bits64(values) => distances!(values, i64),
            Values::Bits128(values) => self.add_distances(pages, place, column, position, |at| {
                let value = values.get(at).copied().unwrap_or_default();
                u64::try_from(value.wrapping_sub(self.base)).ok()
            }),
            _ => return Err(Error::internal("a column that cannot be packed")),
        };
        if inside { Ok(()) } else { Err(Error::internal("a value outside its computed range")) }
    }

    /// Returns whether all distances are in the range; a distance of more than 64 bits is not.
    #[inline(always)]
    fn add_distances(
        &self,
        pages: &mut Pages,
        (start, len, offset): (usize, usize, usize),
        column: &ResolvedColumn,
        position: impl Fn(usize) -> usize,
        distance: impl Fn(usize) -> Option<u64>,
    ) -> bool {
        let mut inside = true;
        let words = (0..len).map(|row| {
            let position = position(row);
            let distance =
                if column.is_null(position) { Some(0) } else { distance(column.at(position)) };
            inside &= distance.is_some_and(|distance| distance & !self.mask == 0);
            (distance.unwrap_or(0) & self.mask) << self.shift
        });
        pages.or_run(start, len, offset, words);
        inside
    }

    /// Decodes the values in words.
    ///
    /// # Errors
    /// Those of Arrow.
    pub(super) fn array(&self, words: &[u64], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let distance = |word: &u64| (word >> self.shift) & self.mask;
        let base = self.base as u64;
        macro_rules! values {
            ($type:ty) => {
                self.of_values(
                    words.iter().map(|word| base.wrapping_add(distance(word)) as $type).collect(),
                    nulls,
                )
            };
        }
        match self.physical {
            Physical::Bits8 => values!(u8),
            Physical::Bits16 => values!(u16),
            Physical::Bits32 => values!(u32),
            Physical::Bits64 => values!(u64),
            _ => {
                let value = |word: &u64| self.base.wrapping_add(i128::from(distance(word)));
                self.of_values(words.iter().map(value).collect(), nulls)
            }
        }
    }

    fn of_values<T: ArrowNativeType>(
        &self,
        values: Vec<T>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let data = ArrayData::builder(self.data_type.clone()).len(values.len());
        Ok(make_array(data.add_buffer(Buffer::from_vec(values)).nulls(nulls).build()?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;

    use tessera_context::testing::{TestContext, batch, rows};
    use tessera_context::{Context, Reservation};
    use tessera_vector::Chunk;

    use super::*;
    use crate::{ResolvedColumns, RowsBuilder};

    /// Packs and unpacks a batch; returns the bytes of a row.
    fn there_and_back(tuple: &str, text: &str, ranges: &[Option<ValueRange>]) -> Result<usize> {
        let tuple_type: Tuple = tuple.parse().unwrap();
        let layout = RowLayout::packed(&tuple_type, ranges)?;
        let given = batch(tuple, text);
        let chunk = Chunk::from_arrays(given.columns().to_vec());
        let context: Arc<dyn Context> = TestContext::new(2048, 1);
        let mut builder = RowsBuilder::new(layout.clone(), Reservation::new(context));
        for _ in 0..2 {
            // Data from an earlier use of the memory must not show.
            builder.append(&ResolvedColumns::of_chunk(&chunk)?, None, None)?;
            if builder.len() == given.num_rows() {
                builder.clear_rows();
            }
        }
        builder.append(&ResolvedColumns::of_chunk(&chunk)?, None, None)?;
        let found = builder.seal().chunk(0..given.num_rows() as u64)?;
        let columns =
            (0..given.num_columns()).map(|field| found.column(field).unwrap().plain().unwrap());
        let found = RecordBatch::try_new(given.schema(), columns.collect()).unwrap();
        assert_eq!(rows(&found), rows(&given));
        Ok(layout.stride_bytes())
    }

    #[test]
    fn fields_share_words() {
        let two = "5 -3|1000 -1|7 12";
        assert_eq!(
            there_and_back("<k: int64, p: int64>", two, &[Some((5, 1000)), Some((-3, 12))])
                .unwrap(),
            8
        );
        let all = Some((i128::from(i64::MIN), i128::from(i64::MAX)));
        let ends = "-9223372036854775808 1|9223372036854775807 3";
        assert_eq!(there_and_back("<k: int64, p: int64>", ends, &[all, Some((1, 3))]).unwrap(), 16);
        let nulls = "NULL 1 a|-4 NULL b|6 3 NULL";
        let tuple = "<k: int64?, d: decimal(18,2)?, s: string?>";
        assert_eq!(
            there_and_back(tuple, nulls, &[Some((-4, 6)), Some((100, 300)), None]).unwrap(),
            24
        );
        assert_eq!(
            there_and_back("<k: int64, d: date>", "3 1970-01-05", &[Some((3, 3)), Some((4, 4))])
                .unwrap(),
            8
        );
        let wide = "100000000000000000.25|-100000000000000000.25";
        let range = Some((-10_000_000_000_000_000_025, 10_000_000_000_000_000_025));
        assert_eq!(
            there_and_back("<d: decimal(30,2)>", wide, &[range]).unwrap(),
            16,
            "65 bits do not fit"
        );
    }

    #[test]
    fn bounds_of_columns() {
        let bounds = |tuple: &str, text: &str, selection: Option<&[u32]>| {
            let chunk = Chunk::from_arrays(batch(tuple, text).columns().to_vec());
            let incoming = ResolvedColumns::of_chunk(&chunk).unwrap();
            let found = Bounds::of(&incoming.columns()[0], chunk.rows_stored(), selection);
            range_of(found.least, found.greatest)
        };
        assert_eq!(bounds("<k: int64>", "4|-7|9", None), Some((-7, 9)));
        assert_eq!(bounds("<k: int32>", "4|-7|9", Some(&[0, 2])), Some((4, 9)));
        assert_eq!(bounds("<k: int64?>", "NULL|3|NULL", None), Some((3, 3)));
        assert_eq!(bounds("<k: int64?>", "NULL|3|NULL", Some(&[0])), Some((0, 0)));
        assert_eq!(bounds("<k: decimal(30,1)>", "0.5|-2.0", None), Some((-20, 5)));
        assert_eq!(bounds("<k: decimal(30,0)>", "1|9000000000000000000000", None), None);
    }

    #[test]
    fn a_value_outside_is_an_error() {
        for (tuple, text) in [
            ("<k: int64, p: int64>", "5 1|1100 2"),
            ("<k: int64, p: int64>", "4 1"),
            ("<k: decimal(30,0), p: int64>", "9000000000000000000000 1"),
        ] {
            let error = there_and_back(tuple, text, &[Some((5, 1000)), Some((1, 2))]).unwrap_err();
            assert!(error.message().contains("outside its computed range"), "{error}");
        }
    }
}
