//! Decodes a column chunk that is not nested: plain and dictionary pages of fixed-width values and
//! strings.
//!
//! Dictionary codes are decoded as late as possible: a predicate over one column is evaluated once
//! per dictionary value, and strings leave the scan as dictionary arrays whose values are shared by
//! all chunks of a row group. Plain strings become views into the decompressed page, without a
//! copy.
//!
//! Modules: `page` reads a data page, `dictionary` a chunk's dictionary and masks over it, `values`
//! builds arrays from values, `decoded` is the result of decoding.

mod decoded;
mod dictionary;
mod page;
mod values;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use tessera_types::{Atom, Result};
use tessera_vector::Column;

use super::fetch::FetchedRanges;
use decoded::DecodedValues;
use dictionary::Dictionary;
use page::{PageState, PageValues, read_codes, spread};
use values::{Values, Width};

pub(super) use decoded::Decoded;
pub(super) use dictionary::{Mask, MaskOf, RowGroupState, is_all_dictionary};
pub(super) use page::Pages;

/// A column chunk being decoded. Errors are texts; the caller adds file and column.
pub(super) struct FlatColumn {
    pages: SerializedPageReader<FetchedRanges>,
    /// The first row of each remaining page, if there is a page index; then the row after the last.
    page_rows: Option<VecDeque<usize>>,
    shared: Arc<RowGroupState>,
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

/// Whether this decoder supports a chunk of `atom` with Arrow type `arrow`.
pub(super) fn is_supported(chunk: &ColumnChunkMetaData, arrow: &DataType, atom: &Atom) -> bool {
    let known = |encoding| {
        matches!(
            encoding,
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        )
    };
    chunk.encodings().all(known) && Width::of(chunk.column_type(), arrow, atom).is_some()
}

impl FlatColumn {
    /// Creates a decoder of a chunk. With `pages`, only those contain required rows, and `end` is
    /// the row after them.
    pub(super) fn new(
        fetched: Arc<FetchedRanges>,
        chunk: &ColumnChunkMetaData,
        pages: Option<Pages>,
        rows: usize,
        (leaf, shared): (usize, Arc<RowGroupState>),
        (arrow, atom): (&DataType, &Atom),
    ) -> Result<FlatColumn, String> {
        let width = Width::of(chunk.column_type(), arrow, atom)
            .ok_or("the column has an unexpected type")?;
        let mut dictionary = shared.dictionary(leaf);
        let locations = pages.as_ref().map(|pages| pages.locations.clone());
        let mut reader =
            SerializedPageReader::new(fetched.clone(), chunk, rows, locations).map_err(text)?;
        let mut page_rows = None;
        if let Some(pages) = pages {
            let starts = pages.locations.iter().map(|page| page.first_row_index.max(0) as usize);
            page_rows = Some(starts.chain([pages.end]).collect());
            // The reader's dictionary page may span skipped pages: skip it, and read the dictionary
            // separately.
            if reader.peek_next_page().map_err(text)?.is_some_and(|page| page.is_dict) {
                reader.skip_next_page().map_err(text)?;
            }
            if dictionary.is_none() && pages.dictionary {
                let mut first =
                    SerializedPageReader::new(fetched, chunk, rows, None).map_err(text)?;
                if let Some(page @ Page::DictionaryPage { .. }) =
                    first.get_next_page().map_err(text)?
                {
                    dictionary = Some(
                        shared.cache_dictionary(leaf, Dictionary::decode(&page, width, atom)?),
                    );
                }
            }
        }
        Ok(FlatColumn {
            pages: reader,
            row: page_rows
                .as_ref()
                .and_then(|rows: &VecDeque<usize>| rows.front().copied())
                .unwrap_or(0),
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

    /// Moves to `row`.
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

    /// Skips whole pages that end at or before `row`, then opens the next one.
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
                    self.dictionary = Some(self.shared.cache_dictionary(self.leaf, dictionary));
                }
                continue;
            }
            if let Some(rows) = &mut self.page_rows {
                let start = rows.pop_front();
                let expected =
                    start.zip(rows.front().copied()).map(|(start, end)| end.saturating_sub(start));
                if expected.is_some_and(|expected| expected != page.num_values() as usize) {
                    return Err("a page holds other rows than the page index says".to_string());
                }
            }
            let state = PageState::open(page, self.optional, self.width, &self.atom)?;
            let empty = state.rows_left == 0;
            self.page = Some(state);
            if !empty {
                return Ok(());
            }
        }
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
            let present =
                levels.map_or(count, |levels| levels.iter().filter(|level| **level != 0).count());
            let start = done;
            match (&mut page.values, &mut values) {
                (PageValues::Codes(codes), Some(DecodedValues::Codes(out, _))) => {
                    read_codes(codes, out, present)?
                }
                (PageValues::Codes(codes), None) => {
                    let dictionary =
                        self.dictionary.clone().ok_or("the page has codes but no dictionary")?;
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
                    Some(DecodedValues::Values(Values::Views(out, _))) => {
                        spread(out, levels, present)
                    }
                    None => {}
                }
            } else if let Some(all) = &mut validity {
                all.resize(start + count, true);
            }
            page.rows_left -= count;
            done += count;
            self.row += count;
        }
        if let Some(DecodedValues::Codes(codes, dictionary)) = &values {
            dictionary.check_codes(codes)?;
        }
        let values =
            values.unwrap_or_else(|| DecodedValues::Values(Values::with_capacity(self.width, 0)));
        Ok(Decoded { values, nulls: validity.map(NullBuffer::from) })
    }

    /// The bytes of the open page and of the dictionary.
    pub(super) fn open_bytes(&self) -> usize {
        let page = self.page.as_ref().map_or(0, |page| page.bytes);
        page + self.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes)
    }

    /// Removes the dictionary from the state shared by the morsels of the row group.
    pub(super) fn drop_dictionary(&self) {
        self.shared.drop_dictionary(self.leaf);
    }

    /// Converts decoded values to a column.
    pub(super) fn finish(&self, decoded: Decoded) -> Result<Column, String> {
        decoded.into_column(self.width, &self.atom)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
