//! Group keys as words of a record, and their conversion to columns.
//!
//! A record starts `[hash][validity][fixed keys][views]`: a word of hash, a bit per key that is set
//! when it is NULL, a word per key of up to 64 bits (two for 128), and two words per string:
//! Arrow's view, whose offset, for more than 12 bytes, is that into the table's heap. Two groups
//! are equal when all these words are, and the bytes of long strings. Intervals are compared by
//! length; their months, days and nanoseconds follow the views. Lists, structs and maps are stored
//! like strings, in Arrow's row format.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, BooleanArray, StringViewArray,
    make_array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use arrow::row::RowConverter;
use tessera_rows::{converter, decode};
use tessera_types::{Error, Result};
use tessera_vector::Column;
use tessera_vector::hash::hash_columns;
use tessera_vector::physical::{
    Physical, canonical32, canonical64, interval_length, interval_to_bits, interval_values,
    raw_values,
};

use crate::aggregate::Area;

/// Strings up to this length are stored in their view.
const INLINE_BYTES: u32 = 12;

/// One key of a record.
#[derive(Debug)]
struct Key {
    physical: Physical,
    data_type: DataType,
    offset: usize,
    /// Its number among the view keys.
    view: usize,
    codec: Option<RowConverter>,
}

/// The layout of keys in a record.
#[derive(Debug)]
pub struct KeyLayout {
    keys: Vec<Key>,
    views_start: usize,
    views_end: usize,
    words: usize,
    hash_mask: u64,
}

/// Keys by row: of a chunk, or of another table.
pub trait Keys {
    /// The record, at least up to the states.
    fn record(&self, row: usize) -> &[u64];
    /// The bytes of a string of more than 12 bytes.
    fn text(&self, view: usize, row: usize) -> &[u8];
}

/// The keys of one chunk.
#[derive(Debug, Default)]
pub struct Packed {
    words: Vec<u64>,
    stride: usize,
    texts: Vec<ArrayRef>,
    hashes: Vec<u64>,
}

impl KeyLayout {
    /// Returns the layout for keys of these plain types.
    ///
    /// # Errors
    /// Values of a type cannot be grouped by.
    pub fn new(types: &[DataType], hash_mask: u64) -> Result<KeyLayout> {
        let mut keys = Vec::with_capacity(types.len());
        for data_type in types {
            let physical = Physical::of(data_type)?;
            let codec = match physical {
                Physical::Nested => Some(converter(data_type)?),
                _ => None,
            };
            keys.push(Key { physical, data_type: data_type.clone(), offset: 0, view: 0, codec });
        }
        let mut end = 1 + types.len().div_ceil(64);
        let is_view = |key: &Key| matches!(key.physical, Physical::View | Physical::Nested);
        for key in keys.iter_mut().filter(|key| !is_view(key)) {
            key.offset = end;
            end += match key.physical {
                Physical::Null => 0,
                Physical::Bits128 | Physical::Interval => 2,
                _ => 1,
            };
        }
        let views_start = end;
        for (view, key) in keys.iter_mut().filter(|key| is_view(key)).enumerate() {
            (key.offset, key.view) = (end, view);
            end += 2;
        }
        let views_end = end;
        let intervals = keys.iter().filter(|key| key.physical == Physical::Interval).count();
        Ok(KeyLayout { keys, views_start, views_end, words: end + 2 * intervals, hash_mask })
    }

    /// Returns the offset of each key's words, if all keys can be compiled.
    pub(super) fn coded_offsets(&self) -> Option<Vec<usize>> {
        let offset = |key: &Key| key.physical.is_coded().then_some(key.offset);
        self.keys.iter().map(offset).collect::<Option<_>>().filter(|_| self.hash_mask == u64::MAX)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words of a record before its states.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the two words of a view key.
    #[inline(always)]
    pub fn view(&self, record: &[u64], view: usize) -> (u64, u64) {
        let at = self.views_start + 2 * view;
        (record[at], record[at + 1])
    }

    /// Returns whether two records have equal hashes and keys.
    #[inline(always)]
    pub fn equal<A: Keys, B: Keys>(&self, a: &A, a_row: usize, b: &B, b_row: usize) -> bool {
        let (left, right) = (a.record(a_row), b.record(b_row));
        let (left, right) = (&left[..self.views_end], &right[..self.views_end]);
        let mut differs = 0;
        for i in 0..self.views_start {
            differs |= left[i] ^ right[i];
        }
        if differs != 0 {
            return false;
        }
        let mut at = self.views_start;
        while at < self.views_end {
            if left[at] != right[at] {
                return false;
            }
            if left[at] as u32 <= INLINE_BYTES {
                if left[at + 1] != right[at + 1] {
                    return false;
                }
            } else {
                let view = (at - self.views_start) / 2;
                if a.text(view, a_row) != b.text(view, b_row) {
                    return false;
                }
            }
            at += 2;
        }
        true
    }

    /// Moves the long strings of the last record of `record` into `heap`.
    #[inline(always)]
    pub fn adopt<K: Keys>(&self, record: &mut [u64], heap: &mut Vec<u8>, keys: &K, row: usize) {
        let mut at = self.views_start;
        while at < self.views_end {
            if record[at] as u32 > INLINE_BYTES {
                let text = keys.text((at - self.views_start) / 2, row);
                record[at + 1] = heap.len() as u64;
                heap.extend_from_slice(text);
            }
            at += 2;
        }
    }

    /// Packs the keys of `rows` tuples.
    pub fn pack(&self, columns: &[Column], rows: usize, packed: &mut Packed) -> Result<()> {
        packed.stride = self.words;
        packed.words.clear();
        packed.words.resize(rows * self.words, 0);
        packed.texts.clear();
        hash_columns(columns, rows, &mut packed.hashes)?;
        let words = &mut packed.words[..];
        for (record, hash) in words.chunks_exact_mut(self.words).zip(&packed.hashes) {
            record[0] = *hash & self.hash_mask;
        }
        let mut intervals = self.views_end;
        for (number, (key, column)) in self.keys.iter().zip(columns).enumerate() {
            let mut array = column.plain()?;
            if array.data_type() != &key.data_type {
                return Err(Error::internal(format!(
                    "a key of type {} has the values of {}",
                    key.data_type,
                    array.data_type()
                )));
            }
            let nulls = array.logical_nulls();
            if let Some(codec) = &key.codec {
                let rows = codec.convert_columns(std::slice::from_ref(&array))?;
                array = Arc::new(BinaryViewArray::from_iter_values(rows.iter()));
            }
            // A nested NULL has an encoding.
            let zeroed = nulls.as_ref().filter(|_| key.physical != Physical::Nested);
            let mut put =
                KeyWriter { words, stride: self.words, offset: key.offset, nulls: zeroed };
            match key.physical {
                Physical::Null => {}
                Physical::Boolean => {
                    let values = array.as_boolean().values();
                    put.all(values.iter().map(u64::from));
                }
                Physical::Bits8 => put.all(raw_values::<u8>(&array).iter().map(|v| u64::from(*v))),
                Physical::Bits16 => {
                    put.all(raw_values::<u16>(&array).iter().map(|v| u64::from(*v)))
                }
                Physical::Bits32 => {
                    put.all(raw_values::<u32>(&array).iter().map(|v| u64::from(*v)))
                }
                Physical::Bits64 => put.all(raw_values::<u64>(&array).iter().copied()),
                Physical::Float32 => {
                    put.all(raw_values::<u32>(&array).iter().map(|v| u64::from(canonical32(*v))));
                }
                Physical::Float64 => {
                    put.all(raw_values::<u64>(&array).iter().map(|v| canonical64(*v)))
                }
                Physical::Bits128 => {
                    put.wide(raw_values::<i128>(&array).iter().map(|v| *v as u128))
                }
                Physical::Interval => {
                    let values = interval_values(&array)?;
                    put.wide(values.iter().map(|v| interval_length(*v) as u128));
                    put.offset = intervals;
                    put.wide(values.iter().map(|v| interval_to_bits(*v)));
                    intervals += 2;
                }
                Physical::View | Physical::Nested => {
                    // The second word of a long string's view refers to its array; it is not
                    // compared.
                    put.wide(raw_values::<u128>(&array).iter().copied());
                    packed.texts.push(array);
                }
            }
            if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
                let (word, bit) = (1 + number / 64, 1u64 << (number % 64));
                for (record, valid) in words.chunks_exact_mut(self.words).zip(nulls.iter()) {
                    record[word] |= if valid { 0 } else { bit };
                }
            }
        }
        Ok(())
    }

    /// Returns the keys of all groups as columns.
    pub fn unpack(&self, area: &Area, heap: Vec<u8>) -> Result<Vec<ArrayRef>> {
        let heap = Buffer::from_vec(heap);
        let mut intervals = self.views_end;
        let mut columns = Vec::with_capacity(self.keys.len());
        for (number, key) in self.keys.iter().enumerate() {
            let get = KeyReader { area, offset: key.offset };
            let nulls = get.nulls(number);
            columns.push(match key.physical {
                Physical::Null => new_null_array(&DataType::Null, area.groups()),
                Physical::Boolean => {
                    let bits =
                        BooleanBuffer::collect_bool(area.groups(), |group| get.word(group, 0) != 0);
                    Arc::new(BooleanArray::new(bits, nulls))
                }
                Physical::Bits8 => get.primitive::<u8>(&key.data_type, nulls, |word| word as u8)?,
                Physical::Bits16 => {
                    get.primitive::<u16>(&key.data_type, nulls, |word| word as u16)?
                }
                Physical::Bits32 | Physical::Float32 => {
                    get.primitive::<u32>(&key.data_type, nulls, |word| word as u32)?
                }
                Physical::Bits64 | Physical::Float64 => {
                    get.primitive::<u64>(&key.data_type, nulls, |word| word)?
                }
                Physical::Bits128 => get.wide(&key.data_type, nulls)?,
                Physical::Interval => {
                    intervals += 2;
                    KeyReader { area, offset: intervals - 2 }.wide(&key.data_type, nulls)?
                }
                Physical::View => get.views(&key.data_type, nulls, &heap)?,
                Physical::Nested => {
                    let codec =
                        key.codec.as_ref().ok_or_else(|| Error::internal("a key without codec"))?;
                    let rows = get.views(&DataType::BinaryView, None, &heap)?;
                    decode(codec, &key.data_type, rows.as_binary_view().iter())?
                }
            });
        }
        Ok(columns)
    }
}

/// Writes one key of all records of a chunk.
struct KeyWriter<'a> {
    words: &'a mut [u64],
    stride: usize,
    offset: usize,
    nulls: Option<&'a NullBuffer>,
}

impl KeyWriter<'_> {
    #[inline(always)]
    fn each<V>(&mut self, values: impl Iterator<Item = V>, store: impl Fn(&mut [u64], V)) {
        let records = self.words.chunks_exact_mut(self.stride);
        match self.nulls.filter(|nulls| nulls.null_count() > 0) {
            None => records
                .zip(values)
                .for_each(|(record, value)| store(&mut record[self.offset..], value)),
            // A NULL leaves zeros.
            Some(nulls) => {
                records.zip(values).zip(nulls.iter()).for_each(|((record, value), valid)| {
                    if valid {
                        store(&mut record[self.offset..], value);
                    }
                })
            }
        }
    }

    #[inline(always)]
    fn all(&mut self, values: impl Iterator<Item = u64>) {
        self.each(values, |target, value| target[0] = value);
    }

    #[inline(always)]
    fn wide(&mut self, values: impl Iterator<Item = u128>) {
        self.each(values, |target, value| {
            target[0] = value as u64;
            target[1] = (value >> 64) as u64;
        });
    }
}

/// Reads one key of all groups.
struct KeyReader<'a> {
    area: &'a Area,
    offset: usize,
}

impl KeyReader<'_> {
    #[inline(always)]
    fn word(&self, group: usize, plus: usize) -> u64 {
        self.area.record(group)[self.offset + plus]
    }

    fn nulls(&self, number: usize) -> Option<NullBuffer> {
        let (word, bit) = (1 + number / 64, 1u64 << (number % 64));
        let valid = |group: usize| self.area.record(group)[word] & bit == 0;
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(self.area.groups(), valid));
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn primitive<T: ArrowNativeType>(
        &self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        value: impl Fn(u64) -> T,
    ) -> Result<ArrayRef> {
        let values: Vec<T> =
            (0..self.area.groups()).map(|group| value(self.word(group, 0))).collect();
        array(data_type, Buffer::from_vec(values), self.area.groups(), nulls)
    }

    fn wide(&self, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let value = |group| {
            (u128::from(self.word(group, 1)) << 64 | u128::from(self.word(group, 0))) as i128
        };
        let values: Vec<i128> = (0..self.area.groups()).map(value).collect();
        array(data_type, Buffer::from_vec(values), self.area.groups(), nulls)
    }

    fn views(
        &self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        heap: &Buffer,
    ) -> Result<ArrayRef> {
        // A view's offset has 32 bits: a larger heap becomes several overlapping buffers.
        const WINDOW: usize = 1 << 31;
        let windows = heap.len().div_ceil(WINDOW).max(1);
        let buffers: Vec<Buffer> = (0..windows).map(|w| heap.slice(w * WINDOW)).collect();
        let view = |group| {
            let (first, second) = (self.word(group, 0), self.word(group, 1));
            if first as u32 <= INLINE_BYTES {
                return u128::from(second) << 64 | u128::from(first);
            }
            let (window, offset) = (second as usize / WINDOW, second as usize % WINDOW);
            u128::from((offset as u64) << 32 | window as u64) << 64 | u128::from(first)
        };
        let views: ScalarBuffer<u128> =
            (0..self.area.groups()).map(view).collect::<Vec<_>>().into();
        Ok(match data_type {
            DataType::Utf8View => Arc::new(StringViewArray::try_new(views, buffers, nulls)?),
            _ => Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?),
        })
    }
}

fn array(
    data_type: &DataType,
    values: Buffer,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data =
        ArrayData::builder(data_type.clone()).len(len).add_buffer(values).nulls(nulls).build()?;
    Ok(make_array(data))
}

impl Keys for Packed {
    #[inline(always)]
    fn record(&self, row: usize) -> &[u64] {
        &self.words[row * self.stride..(row + 1) * self.stride]
    }

    #[inline]
    fn text(&self, view: usize, row: usize) -> &[u8] {
        let Some(array) = self.texts.get(view) else { return &[] };
        match array.as_string_view_opt() {
            Some(strings) => strings.value(row).as_bytes(),
            None => array.as_binary_view().value(row),
        }
    }
}

impl Packed {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        (self.words.capacity() + self.hashes.capacity()) * 8
    }
}
