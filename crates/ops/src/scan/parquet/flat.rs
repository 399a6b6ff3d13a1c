//! Decodes a column chunk that is not nested: plain and dictionary pages of fixed-width values and strings.
//!
//! Dictionary codes stay codes as long as possible: a predicate over one column is evaluated once per dictionary, and
//! strings leave the scan as dictionary arrays whose values are shared by all chunks of a row group. Plain
//! strings become views into the decompressed page, without a copy.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, DictionaryArray, Int32Array, StringViewArray, make_array,
    make_view,
};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Int32Type};
use bytes::Bytes;
use parquet::basic::{Encoding, PageType, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use tessera_encodings::Column;
use tessera_types::{Atom, Result};

use super::fetch::Fetched;
use super::hybrid::Hybrid;
use crate::scan::file::to_plain;

/// Strings with larger dictionaries leave the scan as plain views: what consumers keep per dictionary value would
/// cost more than it saves.
const DICTIONARY_VALUES_MAX: usize = 8_192;

/// How values are laid out while they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Four,
    Eight,
    View,
}

/// What the morsels of a row group share: decoded dictionaries, by leaf, and what predicates say of their values.
#[derive(Debug, Default)]
pub(super) struct RowGroupShared {
    dictionaries: Mutex<HashMap<usize, Arc<Dictionary>>>,
    masks: Mutex<HashMap<usize, Option<Arc<Mask>>>>,
}

/// A column chunk's dictionary.
#[derive(Debug)]
pub(super) struct Dictionary {
    values: DictionaryValues,
    /// The values in plain form.
    pub(super) array: ArrayRef,
}

/// What a predicate says of each dictionary value, and of NULL.
#[derive(Debug)]
pub(super) struct Mask {
    pub(super) values: Vec<bool>,
    pub(super) null: bool,
}

#[derive(Debug)]
enum Values {
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Views(Vec<u128>, Vec<Buffer>),
}

/// A dictionary's values as they are stored; they share memory with its array where both look the same.
#[derive(Debug, Clone)]
enum DictionaryValues {
    Four(ScalarBuffer<u32>),
    Eight(ScalarBuffer<u64>),
    Views(ScalarBuffer<u128>, Vec<Buffer>),
}

/// Decoded values of some rows: codes into a dictionary, or the values.
#[derive(Debug)]
pub(super) struct Decoded {
    values: DecodedValues,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum DecodedValues {
    Codes(Vec<u32>, Arc<Dictionary>),
    Values(Values),
}

/// A column chunk being decoded. Errors are texts: the caller names file and column.
pub(super) struct FlatColumn {
    pages: SerializedPageReader<Fetched>,
    /// First row of each page to come, where the page index tells; then the row after the last.
    page_rows: Option<VecDeque<usize>>,
    shared: Arc<RowGroupShared>,
    leaf: usize,
    dictionary: Option<Arc<Dictionary>>,
    page: Option<PageState>,
    /// The next row to decode.
    row: usize,
    optional: bool,
    width: Width,
    atom: Atom,
    scratch: Vec<u32>,
}

struct PageState {
    rows_left: usize,
    levels: Option<Hybrid>,
    values: PageValues,
}

enum PageValues {
    Fixed { bytes: Bytes, offset: usize },
    Strings { buffer: Buffer, offset: usize, valid: bool },
    Codes(Hybrid),
    None,
}

impl RowGroupShared {
    fn dictionary(&self, leaf: usize) -> Option<Arc<Dictionary>> {
        self.dictionaries.lock().unwrap_or_else(PoisonError::into_inner).get(&leaf).cloned()
    }

    fn keep_dictionary(&self, leaf: usize, dictionary: Arc<Dictionary>) -> Arc<Dictionary> {
        let mut dictionaries = self.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
        dictionaries.entry(leaf).or_insert(dictionary).clone()
    }

    /// What the conjunct at `position` says of its column's dictionary, computed once.
    pub(super) fn mask(&self, position: usize, make: impl FnOnce() -> Option<Mask>) -> Option<Arc<Mask>> {
        let mut masks = self.masks.lock().unwrap_or_else(PoisonError::into_inner);
        masks.entry(position).or_insert_with(|| make().map(Arc::new)).clone()
    }
}

/// Whether all data pages of a chunk are known to use its dictionary.
pub(super) fn is_all_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    if chunk.dictionary_page_offset().is_none() {
        return false;
    }
    let is_dictionary = |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
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

/// Whether a chunk of `atom`, which the file holds as Arrow type `arrow`, can be decoded here.
pub(super) fn is_supported(chunk: &ColumnChunkMetaData, arrow: &DataType, atom: &Atom) -> bool {
    let known = |encoding| {
        matches!(
            encoding,
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        )
    };
    chunk.encodings().all(known) && width_of(chunk.column_type(), arrow, atom).is_some()
}

fn width_of(physical: Type, arrow: &DataType, atom: &Atom) -> Option<Width> {
    let arrow = match arrow {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    match (physical, atom) {
        (Type::INT32, Atom::Decimal(precision, _)) if *precision <= 9 => Some(Width::Four),
        (Type::INT64, Atom::Decimal(precision, _)) if *precision <= 18 => Some(Width::Eight),
        (Type::BYTE_ARRAY, Atom::String | Atom::Bytes) => Some(Width::View),
        (Type::INT32, _) if *arrow == atom.arrow() => match atom {
            _ if atom.is_integer() => Some(Width::Four),
            Atom::Date | Atom::Time(_) => Some(Width::Four),
            _ => None,
        },
        (Type::INT64, Atom::Int64 | Atom::UInt64 | Atom::Timestamp(..) | Atom::Time(_))
            if *arrow == atom.arrow() =>
        {
            Some(Width::Eight)
        }
        (Type::FLOAT, Atom::Float32) => Some(Width::Four),
        (Type::DOUBLE, Atom::Float64) => Some(Width::Eight),
        _ => None,
    }
}

/// The pages of a chunk that will be needed, as the page index tells.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// Where they lie.
    pub(super) locations: Vec<PageLocation>,
    /// The row after the last of them.
    pub(super) end: usize,
    /// Whether a dictionary stands before the first page of the chunk.
    pub(super) dictionary: bool,
}

impl Pages {
    /// The pages that hold rows `first..end` of a chunk of `rows` rows that starts at byte `start`.
    pub(super) fn of_rows(
        locations: &[PageLocation],
        start: u64,
        (first, end): (usize, usize),
        rows: usize,
    ) -> Pages {
        let from = locations.partition_point(|page| page.first_row_index <= first as i64).saturating_sub(1);
        let to = locations.partition_point(|page| page.first_row_index < end as i64).max(from);
        Pages {
            locations: locations[from..to].to_vec(),
            end: locations.get(to).map_or(rows, |page| page.first_row_index.max(0) as usize),
            dictionary: locations.first().is_some_and(|page| page.offset.max(0) as u64 > start),
        }
    }
}

impl FlatColumn {
    /// Begins to decode a chunk. With `pages`, only those hold rows that will be asked for; `end` is the row after them.
    pub(super) fn new(
        fetched: Arc<Fetched>,
        chunk: &ColumnChunkMetaData,
        pages: Option<Pages>,
        rows: usize,
        (leaf, shared): (usize, Arc<RowGroupShared>),
        (arrow, atom): (&DataType, &Atom),
    ) -> Result<FlatColumn, String> {
        let width = width_of(chunk.column_type(), arrow, atom).ok_or("a column of another type")?;
        let mut dictionary = shared.dictionary(leaf);
        let locations = pages.as_ref().map(|pages| pages.locations.clone());
        let mut reader = SerializedPageReader::new(fetched.clone(), chunk, rows, locations).map_err(text)?;
        let mut page_rows = None;
        if let Some(pages) = pages {
            let starts = pages.locations.iter().map(|page| page.first_row_index.max(0) as usize);
            page_rows = Some(starts.chain([pages.end]).collect());
            // What the reader takes for a dictionary page may span pages that were skipped: pass over it, and read the
            // dictionary by itself.
            if reader.peek_next_page().map_err(text)?.is_some_and(|page| page.is_dict) {
                reader.skip_next_page().map_err(text)?;
            }
            if dictionary.is_none() && pages.dictionary {
                let mut first = SerializedPageReader::new(fetched, chunk, rows, None).map_err(text)?;
                if let Some(page @ Page::DictionaryPage { .. }) = first.get_next_page().map_err(text)? {
                    dictionary = Some(shared.keep_dictionary(leaf, Dictionary::decode(&page, width, atom)?));
                }
            }
        }
        Ok(FlatColumn {
            pages: reader,
            row: page_rows.as_ref().and_then(|rows: &VecDeque<usize>| rows.front().copied()).unwrap_or(0),
            page_rows,
            shared,
            leaf,
            dictionary,
            page: None,
            optional: chunk.column_descr().max_def_level() > 0,
            width,
            atom: atom.clone(),
            scratch: Vec::new(),
        })
    }

    /// Makes `row` the next one to decode.
    pub(super) fn seek(&mut self, row: usize) -> Result<(), String> {
        while self.row < row {
            match &mut self.page {
                Some(page) if page.rows_left > 0 => {
                    let passed = page.rows_left.min(row - self.row);
                    page.skip(passed, &mut self.scratch)?;
                    self.row += passed;
                }
                _ => self.skip_pages(row)?,
            }
        }
        Ok(())
    }

    /// Passes over whole pages that end at or before `row`, then opens the next one.
    fn skip_pages(&mut self, row: usize) -> Result<(), String> {
        loop {
            let rows = match &self.page_rows {
                Some(rows) => match (rows.front(), rows.get(1)) {
                    (Some(start), Some(end)) => Some(end.saturating_sub(*start)),
                    _ => None,
                },
                None => match self.pages.peek_next_page().map_err(text)? {
                    Some(page) if !page.is_dict => page.num_rows.or(page.num_levels),
                    _ => None,
                },
            };
            match rows {
                Some(rows) if self.row + rows <= row => {
                    self.pages.skip_next_page().map_err(text)?;
                    self.page_rows.as_mut().map(VecDeque::pop_front);
                    self.row += rows;
                }
                _ => break,
            }
        }
        if self.row < row { self.next_page() } else { Ok(()) }
    }

    /// Opens the next data page.
    fn next_page(&mut self) -> Result<(), String> {
        loop {
            let page = self.pages.get_next_page().map_err(text)?;
            let page = page.ok_or_else(|| format!("the column ends after {} rows", self.row))?;
            if let Page::DictionaryPage { .. } = page {
                if self.dictionary.is_none() {
                    let dictionary = Dictionary::decode(&page, self.width, &self.atom)?;
                    self.dictionary = Some(self.shared.keep_dictionary(self.leaf, dictionary));
                }
                continue;
            }
            if let Some(rows) = &mut self.page_rows {
                let start = rows.pop_front();
                let expected = start.zip(rows.front().copied()).map(|(start, end)| end.saturating_sub(start));
                if expected.is_some_and(|expected| expected != page.num_values() as usize) {
                    return Err("a page holds other rows than the page index says".to_string());
                }
            }
            let state = self.open_page(page)?;
            let empty = state.rows_left == 0;
            self.page = Some(state);
            if !empty {
                return Ok(());
            }
        }
    }

    fn open_page(&self, page: Page) -> Result<PageState, String> {
        let short = || "a page is shorter than its header says".to_string();
        let (levels, mut values, encoding, rows) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                if !self.optional {
                    (None, buf, encoding, num_values)
                } else if def_level_encoding == Encoding::RLE {
                    let len = buf
                        .first_chunk::<4>()
                        .map(|len| u32::from_le_bytes(*len) as usize)
                        .ok_or_else(short)?;
                    if buf.len() - 4 < len {
                        return Err(short());
                    }
                    (Some(buf.slice(4..4 + len)), buf.slice(4 + len..), encoding, num_values)
                } else {
                    return Err(format!("definition levels in encoding {def_level_encoding}"));
                }
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let (start, end) = (
                    rep_levels_byte_len as usize,
                    rep_levels_byte_len as usize + def_levels_byte_len as usize,
                );
                if buf.len() < end {
                    return Err(short());
                }
                (self.optional.then(|| buf.slice(start..end)), buf.slice(end..), encoding, num_values)
            }
            Page::DictionaryPage { .. } => return Err("a second dictionary".to_string()),
        };
        let values = match (encoding, self.width) {
            (Encoding::PLAIN, Width::View) => {
                // Bytes of lengths below 128 are ASCII too, so an all-ASCII page holds only valid strings.
                let valid = self.atom == Atom::Bytes || values.is_ascii();
                PageValues::Strings { buffer: Buffer::from(values), offset: 0, valid }
            }
            (Encoding::PLAIN, _) => PageValues::Fixed { bytes: values, offset: 0 },
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                if values.is_empty() {
                    PageValues::None
                } else {
                    let width = values.split_to(1)[0];
                    PageValues::Codes(Hybrid::new(values, width)?)
                }
            }
            _ => return Err(format!("values in encoding {encoding}, which the footer does not mention")),
        };
        let levels = levels.map(|levels| Hybrid::new(levels, 1)).transpose()?;
        Ok(PageState { rows_left: rows as usize, levels, values })
    }

    /// Decodes the next `rows` rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<Decoded, String> {
        let mut values: Option<DecodedValues> = None;
        let mut validity: Option<Vec<bool>> = None;
        let mut done = 0;
        while done < rows {
            if self.page.as_ref().is_none_or(|page| page.rows_left == 0) {
                self.next_page()?;
            }
            let Some(page) = &mut self.page else { continue };
            let count = page.rows_left.min(rows - done);
            let levels = page.take_levels(count, &mut self.scratch)?;
            let present = levels.map_or(count, |levels| levels.iter().filter(|level| **level != 0).count());
            let start = done;
            match (&mut page.values, &mut values) {
                (PageValues::Codes(codes), Some(DecodedValues::Codes(out, _))) => {
                    read_codes(codes, out, present)?
                }
                (PageValues::Codes(codes), None) => {
                    let dictionary = self.dictionary.clone().ok_or("codes without a dictionary")?;
                    let mut out = Vec::with_capacity(rows);
                    read_codes(codes, &mut out, present)?;
                    values = Some(DecodedValues::Codes(out, dictionary));
                }
                (source, values) => {
                    let mut out = match values.take() {
                        Some(DecodedValues::Values(out)) => out,
                        Some(DecodedValues::Codes(codes, dictionary)) => {
                            let mut out = Values::with_capacity(self.width, rows);
                            out.gather(&codes, &dictionary, true)?;
                            out
                        }
                        None => Values::with_capacity(self.width, rows),
                    };
                    source.read_into(&mut out, present, self.dictionary.as_deref())?;
                    *values = Some(DecodedValues::Values(out));
                }
            }
            if let Some(levels) = levels {
                let all = validity.get_or_insert_with(|| vec![true; start]);
                all.extend(levels.iter().map(|level| *level != 0));
                match &mut values {
                    Some(DecodedValues::Codes(out, _)) => spread(out, levels, present),
                    Some(DecodedValues::Values(Values::Four(out))) => spread(out, levels, present),
                    Some(DecodedValues::Values(Values::Eight(out))) => spread(out, levels, present),
                    Some(DecodedValues::Values(Values::Views(out, _))) => spread(out, levels, present),
                    None => {}
                }
            } else if let Some(all) = &mut validity {
                all.resize(start + count, true);
            }
            page.rows_left -= count;
            done += count;
            self.row += count;
        }
        if let (Some(DecodedValues::Codes(codes, dictionary)), _) = (&values, ()) {
            check_codes(codes, dictionary)?;
        }
        let values = values.unwrap_or_else(|| DecodedValues::Values(Values::with_capacity(self.width, 0)));
        Ok(Decoded { values, nulls: validity.map(NullBuffer::from) })
    }

    /// The column that decoded values stand for.
    pub(super) fn finish(&self, decoded: Decoded) -> Result<Column, String> {
        let nulls = decoded.nulls;
        let values = match decoded.values {
            DecodedValues::Codes(codes, dictionary)
                if self.width == Width::View && dictionary.array.len() <= DICTIONARY_VALUES_MAX =>
            {
                let keys = Int32Array::new(ScalarBuffer::from(Buffer::from(codes)), nulls);
                let array =
                    DictionaryArray::<Int32Type>::try_new(keys, dictionary.array.clone()).map_err(text)?;
                return Ok(Column::Dictionary(Arc::new(array)));
            }
            DecodedValues::Codes(codes, dictionary) => {
                let mut out = Values::with_capacity(self.width, codes.len());
                out.gather(&codes, &dictionary, nulls.is_some())?;
                out
            }
            DecodedValues::Values(values) => values,
        };
        values.into_array(&self.atom, nulls).map(Column::Plain)
    }
}

impl Decoded {
    /// Only the rows at these positions, all of which exist.
    pub(super) fn keep(self, positions: &[u32]) -> Decoded {
        fn take<T: Copy>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|position| values[*position as usize]).collect()
        }
        let values = match self.values {
            DecodedValues::Codes(codes, dictionary) => {
                DecodedValues::Codes(take(&codes, positions), dictionary)
            }
            DecodedValues::Values(Values::Four(values)) => {
                DecodedValues::Values(Values::Four(take(&values, positions)))
            }
            DecodedValues::Values(Values::Eight(values)) => {
                DecodedValues::Values(Values::Eight(take(&values, positions)))
            }
            DecodedValues::Values(Values::Views(views, buffers)) => {
                DecodedValues::Values(Values::Views(take(&views, positions), buffers))
            }
        };
        let valid = |nulls: NullBuffer| {
            positions.iter().map(|position| nulls.is_valid(*position as usize)).collect::<NullBuffer>()
        };
        Decoded { values, nulls: self.nulls.map(valid) }
    }

    /// Whether a value is NULL.
    pub(super) fn has_nulls(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0)
    }

    /// The dictionary, where the values are codes into one.
    pub(super) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match &self.values {
            DecodedValues::Codes(_, dictionary) => Some(dictionary),
            DecodedValues::Values(_) => None,
        }
    }

    /// Of `candidates` (or all rows), those whose value the mask lets pass.
    pub(super) fn select(&self, mask: &Mask, candidates: Option<&[u32]>) -> Vec<u32> {
        let DecodedValues::Codes(codes, _) = &self.values else { return Vec::new() };
        // Codes were checked against the dictionary, which the mask is as long as; NULL's code may be beyond an empty one.
        let test = |row: usize| mask.values.get(codes[row] as usize).copied().unwrap_or(false);
        let passes = |row: usize| match &self.nulls {
            Some(nulls) if nulls.is_null(row) => mask.null,
            _ => test(row),
        };
        let mut out = vec![0; candidates.map_or(codes.len(), <[u32]>::len)];
        let mut len = 0;
        // Written always, kept by advancing: no branch depends on the data.
        match (candidates, &self.nulls) {
            (None, None) => {
                for row in 0..codes.len() {
                    out[len] = row as u32;
                    len += usize::from(test(row));
                }
            }
            (None, Some(_)) => {
                for row in 0..codes.len() {
                    out[len] = row as u32;
                    len += usize::from(passes(row));
                }
            }
            (Some(candidates), _) => {
                for &row in candidates {
                    out[len] = row;
                    len += usize::from(passes(row as usize));
                }
            }
        }
        out.truncate(len);
        out
    }
}

impl PageState {
    /// Definition levels of the next rows; none when no value is NULL.
    fn take_levels<'a>(
        &mut self,
        count: usize,
        scratch: &'a mut Vec<u32>,
    ) -> Result<Option<&'a [u32]>, String> {
        let Some(levels) = &mut self.levels else { return Ok(None) };
        if levels.take_repeated(1, count)? {
            return Ok(None);
        }
        scratch.resize(count, 0);
        levels.read(scratch)?;
        Ok(Some(scratch))
    }

    fn skip(&mut self, count: usize, scratch: &mut Vec<u32>) -> Result<(), String> {
        let present =
            self.take_levels(count, scratch)?.map_or(count, |l| l.iter().filter(|l| **l != 0).count());
        match &mut self.values {
            PageValues::Codes(codes) => codes.skip(present)?,
            // The width is checked when values are read; a skip beyond the end shows then.
            PageValues::Fixed { .. } | PageValues::None => self.values.skip_fixed(present),
            PageValues::Strings { buffer, offset, .. } => {
                for _ in 0..present {
                    *offset += 4 + string_len(buffer, *offset)?;
                }
            }
        }
        self.rows_left -= count;
        Ok(())
    }
}

fn string_len(buffer: &[u8], offset: usize) -> Result<usize, String> {
    let len = buffer.get(offset..).and_then(|tail| tail.first_chunk::<4>());
    let len =
        len.map(|len| u32::from_le_bytes(*len) as usize).filter(|len| buffer.len() - offset - 4 >= *len);
    len.ok_or_else(|| "a page ends in the middle of a string".to_string())
}

fn read_codes(codes: &mut Hybrid, out: &mut Vec<u32>, count: usize) -> Result<(), String> {
    let start = out.len();
    out.resize(start + count, 0);
    codes.read(&mut out[start..])
}

fn check_codes(codes: &[u32], dictionary: &Dictionary) -> Result<(), String> {
    let len = dictionary.array.len();
    let largest = codes.iter().fold(0, |largest, code| largest.max(*code)) as usize;
    // A NULL has code 0, also where the dictionary is empty.
    if largest >= len && !(largest == 0 && len == 0) {
        return Err(format!("code {largest} is outside a dictionary of {len} values"));
    }
    Ok(())
}

/// Moves the last `present` values to the places whose level is not 0.
fn spread<T: Copy + Default>(values: &mut Vec<T>, levels: &[u32], present: usize) {
    let start = values.len() - present;
    values.resize(start + levels.len(), T::default());
    let mut source = start + present;
    for (position, level) in levels.iter().enumerate().rev() {
        if *level != 0 {
            source -= 1;
            values[start + position] = values[source];
        } else {
            values[start + position] = T::default();
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl PageValues {
    fn skip_fixed(&mut self, count: usize) {
        if let PageValues::Fixed { offset, .. } = self {
            *offset += count;
        }
    }

    fn read_into(
        &mut self,
        out: &mut Values,
        count: usize,
        dictionary: Option<&Dictionary>,
    ) -> Result<(), String> {
        let short = || "a page ends in the middle of its values".to_string();
        match self {
            PageValues::Fixed { bytes, offset } => {
                fn take<'a>(
                    bytes: &'a Bytes,
                    offset: &mut usize,
                    count: usize,
                    width: usize,
                ) -> Option<&'a [u8]> {
                    let range = offset.checked_mul(width)?..offset.checked_add(count)?.checked_mul(width)?;
                    *offset += count;
                    bytes.get(range)
                }
                match out {
                    Values::Four(out) => {
                        let slice = take(bytes, offset, count, 4).ok_or_else(short)?;
                        out.extend(slice.as_chunks::<4>().0.iter().map(|v| u32::from_le_bytes(*v)));
                    }
                    Values::Eight(out) => {
                        let slice = take(bytes, offset, count, 8).ok_or_else(short)?;
                        out.extend(slice.as_chunks::<8>().0.iter().map(|v| u64::from_le_bytes(*v)));
                    }
                    Values::Views(..) => return Err("fixed-width values in a column of strings".to_string()),
                }
            }
            PageValues::Strings { buffer, offset, valid } => {
                let Values::Views(views, buffers) = out else {
                    return Err("strings in a column of numbers".to_string());
                };
                let block = block_of(buffers, buffer);
                for _ in 0..count {
                    let len = string_len(buffer, *offset)?;
                    let value = &buffer[*offset + 4..*offset + 4 + len];
                    if !*valid && std::str::from_utf8(value).is_err() {
                        return Err(format!("{:?} is not valid UTF-8", String::from_utf8_lossy(value)));
                    }
                    views.push(make_view(value, block, *offset as u32 + 4));
                    *offset += 4 + len;
                }
            }
            PageValues::Codes(codes) => {
                let dictionary = dictionary.ok_or("codes without a dictionary")?;
                let mut read = Vec::new();
                read_codes(codes, &mut read, count)?;
                check_codes(&read, dictionary)?;
                out.gather(&read, dictionary, false)?;
            }
            PageValues::None if count == 0 => {}
            PageValues::None => return Err(short()),
        }
        Ok(())
    }
}

/// The number of a buffer in a list, added where it is not the last.
fn block_of(buffers: &mut Vec<Buffer>, buffer: &Buffer) -> u32 {
    if buffers.last().is_none_or(|last| last.as_ptr() != buffer.as_ptr()) {
        buffers.push(buffer.clone());
    }
    buffers.len() as u32 - 1
}

impl Values {
    fn with_capacity(width: Width, rows: usize) -> Values {
        match width {
            Width::Four => Values::Four(Vec::with_capacity(rows)),
            Width::Eight => Values::Eight(Vec::with_capacity(rows)),
            Width::View => Values::Views(Vec::with_capacity(rows), Vec::new()),
        }
    }

    /// Adds the dictionary's values under `codes`, which are checked already; with `nulls`, the dictionary may be empty.
    fn gather(&mut self, codes: &[u32], dictionary: &Dictionary, nulls: bool) -> Result<(), String> {
        fn add<T: Copy + Default>(out: &mut Vec<T>, codes: &[u32], values: &[T]) {
            match values {
                [] => out.resize(out.len() + codes.len(), T::default()),
                _ => out.extend(codes.iter().map(|code| values[*code as usize])),
            }
        }
        if dictionary.array.is_empty() && !nulls && !codes.is_empty() {
            return Err("codes into an empty dictionary".to_string());
        }
        match (self, &dictionary.values) {
            (Values::Four(out), DictionaryValues::Four(values)) => add(out, codes, values),
            (Values::Eight(out), DictionaryValues::Eight(values)) => add(out, codes, values),
            (Values::Views(out, buffers), DictionaryValues::Views(values, own)) => {
                let start = out.len();
                add(out, codes, values);
                let block = own.first().map_or(0, |buffer| block_of(buffers, buffer));
                if block > 0 {
                    // Bits 64 to 95 of the view of a string longer than 12 bytes number its buffer.
                    for view in &mut out[start..] {
                        if *view as u32 > 12 {
                            *view += u128::from(block) << 64;
                        }
                    }
                }
            }
            _ => return Err("a dictionary of another type".to_string()),
        }
        Ok(())
    }

    fn into_array(self, atom: &Atom, nulls: Option<NullBuffer>) -> Result<ArrayRef, String> {
        match self {
            Values::Views(views, buffers) => Ok(string_array(views.into(), buffers, nulls, atom)),
            Values::Four(values) => four_array(values.into(), atom, nulls),
            Values::Eight(values) => fixed_array(Buffer::from(values), atom.arrow(), nulls),
        }
    }
}

/// Values that the file keeps in four bytes, in the width that their type has in memory.
fn four_array(values: ScalarBuffer<u32>, atom: &Atom, nulls: Option<NullBuffer>) -> Result<ArrayRef, String> {
    match atom {
        Atom::Decimal(..) => {
            let wide: Vec<i64> = values.iter().map(|value| (*value as i32).into()).collect();
            fixed_array(Buffer::from(wide), atom.arrow(), nulls)
        }
        Atom::Int8 | Atom::Int16 => {
            let wide = fixed_array(values.into_inner(), DataType::Int32, nulls)?;
            to_plain(wide, atom).map_err(text)
        }
        Atom::UInt8 | Atom::UInt16 => {
            let wide = fixed_array(values.into_inner(), DataType::UInt32, nulls)?;
            to_plain(wide, atom).map_err(text)
        }
        _ => fixed_array(values.into_inner(), atom.arrow(), nulls),
    }
}

fn fixed_array(values: Buffer, arrow: DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, String> {
    let width = arrow.primitive_width().ok_or("a type without a width")?;
    let data =
        arrow::array::ArrayData::builder(arrow).len(values.len() / width).add_buffer(values).nulls(nulls);
    data.build().map(make_array).map_err(text)
}

/// Views and the buffers they point into, as an array.
fn string_array(
    views: ScalarBuffer<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
    atom: &Atom,
) -> ArrayRef {
    // SAFETY: each view was made by `make_view` from bytes of one of `buffers`, which outlive it, at the offset it
    // names, or is zero (the empty string); `gather` renumbers the buffer where it stands at another position. Bytes of
    // strings were checked to be UTF-8: the whole page as ASCII, or each value by itself.
    unsafe {
        match atom {
            Atom::Bytes => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            _ => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
        }
    }
}

impl Dictionary {
    fn decode(page: &Page, width: Width, atom: &Atom) -> Result<Arc<Dictionary>, String> {
        let Page::DictionaryPage { buf, num_values, encoding, .. } = page else {
            return Err("a dictionary page was expected".to_string());
        };
        if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) {
            return Err(format!("a dictionary in encoding {encoding}"));
        }
        let count = *num_values as usize;
        // A value takes at least a byte (a string four), so that a wrong count cannot ask for much memory.
        if count > buf.len() {
            return Err("a dictionary is shorter than its header says".to_string());
        }
        let short = || "a dictionary is shorter than its header says".to_string();
        let values = match width {
            Width::View => {
                let valid = *atom == Atom::Bytes || buf.is_ascii();
                let mut source = PageValues::Strings { buffer: Buffer::from(buf.clone()), offset: 0, valid };
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
            DictionaryValues::Eight(values) => fixed_array(values.into_inner(), atom.arrow(), None)?,
        };
        Ok(Arc::new(Dictionary { array, values }))
    }
}

/// The first `count` little-endian values of a page: the page itself, where it is aligned.
fn aligned<T: ArrowNativeType>(bytes: &Bytes, count: usize) -> Option<ScalarBuffer<T>> {
    let len = count.checked_mul(size_of::<T>())?;
    let bytes = bytes.get(..len).map(|_| bytes.slice(..len))?;
    let in_place = cfg!(target_endian = "little") && bytes.as_ptr().align_offset(align_of::<T>()) == 0;
    let buffer = if in_place { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes) };
    Some(ScalarBuffer::new(buffer, 0, count))
}

impl Mask {
    /// The mask of a predicate's answers for each dictionary value and, last, for NULL.
    pub(super) fn new(answers: &BooleanArray) -> Mask {
        let passes = |i: usize| answers.is_valid(i) && answers.value(i);
        let values = answers.len().saturating_sub(1);
        Mask { values: (0..values).map(passes).collect(), null: answers.len() > values && passes(values) }
    }
}
