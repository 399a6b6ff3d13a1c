//! Reads the levels and values of a data page in sequence.

use arrow::array::make_view;
use arrow::buffer::Buffer;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::page_index::offset_index::PageLocation;

use tessera_types::Atom;

use super::super::hybrid::Hybrid;
use super::dictionary::Dictionary;
use super::values::{Values, Width, block_of};

/// The required pages of a chunk, from the page index.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    /// The locations of the pages.
    pub(crate) locations: Vec<PageLocation>,
    /// The row after the last of them.
    pub(crate) end: usize,
    /// Whether the chunk has a dictionary before its first page.
    pub(crate) dictionary: bool,
}

impl Pages {
    /// Returns the pages that contain rows `first..end` of a chunk of `rows` rows that starts at
    /// byte `start`.
    pub(crate) fn of_rows(
        locations: &[PageLocation],
        start: u64,
        (first, end): (usize, usize),
        rows: usize,
    ) -> Pages {
        let from = locations
            .partition_point(|page| page.first_row_index <= first as i64)
            .saturating_sub(1);
        let to = locations.partition_point(|page| page.first_row_index < end as i64).max(from);
        Pages {
            locations: locations[from..to].to_vec(),
            end: locations.get(to).map_or(rows, |page| page.first_row_index.max(0) as usize),
            dictionary: locations.first().is_some_and(|page| page.offset.max(0) as u64 > start),
        }
    }
}

/// An open page.
pub(super) struct PageState {
    pub(super) rows_left: usize,
    levels: Option<Hybrid>,
    pub(super) values: PageValues,
    /// The decompressed size.
    pub(super) bytes: usize,
}

/// The remaining values of a page.
pub(super) enum PageValues {
    Fixed { bytes: Bytes, offset: usize },
    Strings { buffer: Buffer, offset: usize, valid: bool },
    Codes(Hybrid),
    None,
}

impl PageState {
    /// Opens a data page of a column of type `atom`, which is nullable if `optional`.
    pub(super) fn open(
        page: Page,
        optional: bool,
        width: Width,
        atom: &Atom,
    ) -> Result<PageState, String> {
        let short = || "a page is shorter than its header says".to_string();
        let bytes = page.buffer().len();
        let (levels, mut values, encoding, rows) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                if !optional {
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
                    return Err(format!(
                        "unsupported definition levels in encoding {def_level_encoding}"
                    ));
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (start, end) = (
                    rep_levels_byte_len as usize,
                    rep_levels_byte_len as usize + def_levels_byte_len as usize,
                );
                if buf.len() < end {
                    return Err(short());
                }
                (optional.then(|| buf.slice(start..end)), buf.slice(end..), encoding, num_values)
            }
            Page::DictionaryPage { .. } => return Err("unexpected second dictionary".to_string()),
        };
        let values = match (encoding, width) {
            (Encoding::PLAIN, Width::View) => {
                // The bytes of lengths below 128 are ASCII, too, so an all-ASCII page has only
                // valid strings.
                let valid = *atom == Atom::Bytes || values.is_ascii();
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
            _ => {
                return Err(format!(
                    "unexpected values in encoding {encoding}, which the footer does not list"
                ));
            }
        };
        let levels = levels.map(|levels| Hybrid::new(levels, 1)).transpose()?;
        Ok(PageState { rows_left: rows as usize, levels, values, bytes })
    }

    /// Returns the definition levels of the next rows; `None` if no value is NULL.
    pub(super) fn take_levels<'a>(
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

    pub(super) fn skip(&mut self, count: usize, scratch: &mut Vec<u32>) -> Result<(), String> {
        let present = self
            .take_levels(count, scratch)?
            .map_or(count, |l| l.iter().filter(|l| **l != 0).count());
        match &mut self.values {
            PageValues::Codes(codes) => codes.skip(present)?,
            // The width is checked when values are read, which also detects a skip beyond the end.
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

impl PageValues {
    fn skip_fixed(&mut self, count: usize) {
        if let PageValues::Fixed { offset, .. } = self {
            *offset += count;
        }
    }

    pub(super) fn read_into(
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
                    let range = offset.checked_mul(width)?
                        ..offset.checked_add(count)?.checked_mul(width)?;
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
                    Values::Views(..) => {
                        return Err(
                            "unexpected fixed-width values in a column of strings".to_string()
                        );
                    }
                }
            }
            PageValues::Strings { buffer, offset, valid } => {
                let Values::Views(views, buffers) = out else {
                    return Err("unexpected strings in a column of numbers".to_string());
                };
                let block = block_of(buffers, buffer);
                for _ in 0..count {
                    let len = string_len(buffer, *offset)?;
                    let value = &buffer[*offset + 4..*offset + 4 + len];
                    if !*valid && std::str::from_utf8(value).is_err() {
                        return Err(format!(
                            "{:?} is not valid UTF-8",
                            String::from_utf8_lossy(value)
                        ));
                    }
                    views.push(make_view(value, block, *offset as u32 + 4));
                    *offset += 4 + len;
                }
            }
            PageValues::Codes(codes) => {
                let dictionary = dictionary.ok_or("the page has codes but no dictionary")?;
                let mut read = Vec::new();
                read_codes(codes, &mut read, count)?;
                dictionary.check_codes(&read)?;
                out.gather(&read, dictionary, false)?;
            }
            PageValues::None if count == 0 => {}
            PageValues::None => return Err(short()),
        }
        Ok(())
    }
}

pub(super) fn read_codes(
    codes: &mut Hybrid,
    out: &mut Vec<u32>,
    count: usize,
) -> Result<(), String> {
    let start = out.len();
    out.resize(start + count, 0);
    codes.read(&mut out[start..])
}

fn string_len(buffer: &[u8], offset: usize) -> Result<usize, String> {
    let len = buffer.get(offset..).and_then(|tail| tail.first_chunk::<4>());
    let len = len
        .map(|len| u32::from_le_bytes(*len) as usize)
        .filter(|len| buffer.len() - offset - 4 >= *len);
    len.ok_or_else(|| "a page ends in the middle of a string".to_string())
}

/// Moves the last `present` values to the positions whose level is not 0.
pub(super) fn spread<T: Copy + Default>(values: &mut Vec<T>, levels: &[u32], present: usize) {
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
