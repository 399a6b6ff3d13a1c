//! Dictionaries, and the results of predicates on their values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::compute::concat;
use arrow::datatypes::ArrowNativeType;
use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;

use tessera_context::lock;
use tessera_types::Atom;

use super::page::PageValues;
use super::values::{Values, Width, fixed_array, four_array, string_array};

/// The state shared by the morsels of a row group: decoded dictionaries, by leaf, and masks of
/// predicates.
#[derive(Debug, Default)]
pub(crate) struct RowGroupState {
    dictionaries: Mutex<HashMap<usize, Arc<Dictionary>>>,
    masks: Mutex<HashMap<MaskOf, Option<Arc<Mask>>>>,
}

/// What a mask has the results of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum MaskOf {
    /// The conjunct of the scan's predicate at this position.
    Conjunct(usize),
    /// The key filter of this name.
    Filter(Arc<str>),
}

/// The dictionary of a column chunk.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(super) values: DictionaryValues,
    /// The values in plain form.
    pub(crate) array: ArrayRef,
    /// The size of the page it was decoded from.
    pub(super) bytes: usize,
}

/// The stored values of a dictionary. They share memory with its array if both have the same
/// layout.
#[derive(Debug, Clone)]
pub(super) enum DictionaryValues {
    Four(ScalarBuffer<u32>),
    Eight(ScalarBuffer<u64>),
    Views(ScalarBuffer<u128>, Vec<Buffer>),
}

/// The result of a predicate for each dictionary value, and for NULL.
#[derive(Debug)]
pub(crate) struct Mask {
    pub(crate) values: Vec<bool>,
    pub(crate) null: bool,
}

impl RowGroupState {
    pub(super) fn dictionary(&self, leaf: usize) -> Option<Arc<Dictionary>> {
        lock(&self.dictionaries).get(&leaf).cloned()
    }

    pub(super) fn cache_dictionary(
        &self,
        leaf: usize,
        dictionary: Arc<Dictionary>,
    ) -> Arc<Dictionary> {
        let mut dictionaries = lock(&self.dictionaries);
        dictionaries.entry(leaf).or_insert(dictionary).clone()
    }

    pub(super) fn drop_dictionary(&self, leaf: usize) {
        lock(&self.dictionaries).remove(&leaf);
    }

    /// Returns a mask, computed once.
    pub(crate) fn mask(
        &self,
        of: MaskOf,
        make: impl FnOnce() -> Option<Mask>,
    ) -> Option<Arc<Mask>> {
        let mut masks = lock(&self.masks);
        masks.entry(of).or_insert_with(|| make().map(Arc::new)).clone()
    }
}

/// Whether all data pages of a chunk are known to use its dictionary.
pub(crate) fn is_all_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    if chunk.dictionary_page_offset().is_none() {
        return false;
    }
    let is_dictionary =
        |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    if let Some(mask) = chunk.page_encoding_stats_mask() {
        return mask.encodings().all(is_dictionary);
    }
    match chunk.page_encoding_stats() {
        Some(statistics) => statistics
            .iter()
            .filter(|s| s.page_type != PageType::DICTIONARY_PAGE)
            .all(|s| is_dictionary(s.encoding)),
        None => false,
    }
}

impl Dictionary {
    /// Decodes a dictionary page.
    pub(super) fn decode(
        page: &Page,
        width: Width,
        atom: &Atom,
    ) -> Result<Arc<Dictionary>, String> {
        let Page::DictionaryPage { buf, num_values, encoding, .. } = page else {
            return Err("expected a dictionary page".to_string());
        };
        if !matches!(
            encoding,
            Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY
        ) {
            return Err(format!("unsupported dictionary encoding {encoding}"));
        }
        let short = || "a dictionary is shorter than its header says".to_string();
        let count = *num_values as usize;
        // A value takes at least a byte (a string four), so a wrong count cannot allocate much
        // memory.
        if count > buf.len() {
            return Err(short());
        }
        let values = match width {
            Width::View => {
                let valid = *atom == Atom::Bytes || buf.is_ascii();
                let mut source =
                    PageValues::Strings { buffer: Buffer::from(buf.clone()), offset: 0, valid };
                let mut values = Values::with_capacity(width, count);
                source.read_into(&mut values, count, None)?;
                let Values::Views(views, buffers) = values else { return Err(short()) };
                DictionaryValues::Views(views.into(), buffers)
            }
            Width::Four => DictionaryValues::Four(aligned(buf, count).ok_or_else(short)?),
            Width::Eight => DictionaryValues::Eight(aligned(buf, count).ok_or_else(short)?),
        };
        let array = match values.clone() {
            DictionaryValues::Views(views, buffers) => string_array(views, buffers, None, atom),
            DictionaryValues::Four(values) => four_array(values, atom, None)?,
            DictionaryValues::Eight(values) => {
                fixed_array(values.into_inner(), atom.arrow(), None)?
            }
        };
        Ok(Arc::new(Dictionary { array, values, bytes: buf.len() }))
    }

    /// Returns the values, and NULL after them.
    pub(crate) fn with_null(&self) -> Option<ArrayRef> {
        let null = new_null_array(self.array.data_type(), 1);
        concat(&[self.array.as_ref(), null.as_ref()]).ok()
    }

    /// Rejects codes without a value.
    pub(super) fn check_codes(&self, codes: &[u32]) -> Result<(), String> {
        let len = self.array.len();
        let largest = codes.iter().fold(0, |largest, code| largest.max(*code)) as usize;
        // A NULL has code 0, even if the dictionary is empty.
        if largest >= len && !(largest == 0 && len == 0) {
            return Err(format!("code {largest} is outside a dictionary of {len} values"));
        }
        Ok(())
    }
}

/// Returns the first `count` little-endian values of a page without a copy, if it is aligned.
fn aligned<T: ArrowNativeType>(bytes: &Bytes, count: usize) -> Option<ScalarBuffer<T>> {
    let len = count.checked_mul(size_of::<T>())?;
    let bytes = bytes.get(..len).map(|_| bytes.slice(..len))?;
    let in_place =
        cfg!(target_endian = "little") && bytes.as_ptr().align_offset(align_of::<T>()) == 0;
    let buffer = if in_place { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes) };
    Some(ScalarBuffer::new(buffer, 0, count))
}

impl Mask {
    /// Creates a mask from the results for each dictionary value and, last, for NULL.
    pub(crate) fn new(mut answers: Vec<bool>) -> Mask {
        let null = answers.pop().unwrap_or(false);
        Mask { values: answers, null }
    }
}
