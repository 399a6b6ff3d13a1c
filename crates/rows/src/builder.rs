//! Rows under construction.

mod fields;
mod strings;

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::Buffer;

use tessera_context::Reservation;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;
use tessera_vector::hash::hash_fields;

use super::compare::{Candidates, Heap, NullKeys, RowsRef};
use super::compiled::Tuples;
use super::layout::{HASH_OFFSET, RowLayout};
use super::memory::{Fixed, Pages};
use super::resolved_columns::{ResolvedColumns, long_bytes};
use super::sealed::{Part, Rows, Side};
use strings::{HEAP_PAGE_BYTES_FIRST, HEAP_PAGE_BYTES_MOST, Translation, push_bytes};

/// Approximate bytes of a full page of rows.
const PAGE_BYTES: usize = 1 << 18;

/// Rows under construction: append tuples, change states, compare keys; then [`RowsBuilder::seal`].
#[derive(Debug)]
pub struct RowsBuilder {
    layout: Arc<RowLayout>,
    pages: Pages,
    rows: usize,
    heap: Vec<Vec<u8>>,
    sides: Vec<Side>,
    has_nulls: Vec<bool>,
    /// Cached dictionary translations by field; empty for a builder that copies every string.
    translations: Vec<Option<Translation>>,
    translates: bool,
    heap_page_bytes_most: usize,
    reservation: Reservation,
}

impl RowsBuilder {
    /// Creates an empty builder. `reservation` counts its memory and passes to the sealed rows.
    pub fn new(layout: Arc<RowLayout>, reservation: Reservation) -> RowsBuilder {
        let shift = (PAGE_BYTES / layout.stride_bytes()).max(16).ilog2();
        RowsBuilder {
            pages: Pages::new(layout.stride_bytes(), shift),
            rows: 0,
            heap: Vec::new(),
            sides: Vec::new(),
            has_nulls: vec![false; layout.fields.len()],
            translations: layout.fields.iter().map(|_| None).collect(),
            translates: true,
            heap_page_bytes_most: HEAP_PAGE_BYTES_MOST,
            layout,
            reservation,
        }
    }

    /// Like [`RowsBuilder::new`], with pages of about this many bytes: for builders that grow in
    /// parallel, so that they do not all allocate large pages at once.
    pub fn in_pages(
        layout: Arc<RowLayout>,
        page_bytes: usize,
        reservation: Reservation,
    ) -> RowsBuilder {
        let shift = (page_bytes.min(PAGE_BYTES) / layout.stride_bytes()).max(16).ilog2();
        RowsBuilder {
            pages: Pages::new(layout.stride_bytes(), shift),
            heap_page_bytes_most: page_bytes.clamp(HEAP_PAGE_BYTES_FIRST, HEAP_PAGE_BYTES_MOST),
            ..RowsBuilder::new(layout, reservation)
        }
    }

    /// Like [`RowsBuilder::new`], with capacity for about this many rows, whose strings are not
    /// shared between rows.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    pub fn unshared(
        layout: Arc<RowLayout>,
        rows: usize,
        mut reservation: Reservation,
    ) -> Result<RowsBuilder> {
        reservation.grow(layout.stride_bytes() * rows)?;
        let mut builder =
            RowsBuilder { translates: false, ..RowsBuilder::new(layout, reservation) };
        builder.pages.reserve(rows);
        Ok(builder)
    }

    /// Bytes of strings.
    pub fn heap_bytes(&self) -> usize {
        self.heap.iter().map(Vec::len).sum()
    }

    /// Returns the words of all rows, and the pages of the heap.
    pub fn into_words(self) -> (Vec<u64>, Vec<Vec<u8>>) {
        (self.pages.into_words(self.rows), self.heap)
    }

    /// Returns the words of all rows, page by page.
    pub fn runs(&self) -> impl Iterator<Item = &[u64]> {
        self.pages.runs(self.rows)
    }

    /// Removes all rows but keeps the memory; only for rows without heap or side references.
    pub fn clear_rows(&mut self) {
        debug_assert!(
            self.heap.is_empty()
                && self.sides.is_empty()
                && self.layout.states_start() == self.layout.stride_bytes()
        );
        self.rows = 0;
    }

    /// The layout.
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.reservation.bytes()
    }

    /// Appends the selected tuples of a chunk; their hashes are those of `keys`, or zero without
    /// keys.
    ///
    /// # Errors
    /// As [`RowsBuilder::append`].
    pub fn append_chunk(&mut self, chunk: &Chunk, keys: &[usize]) -> Result<Range<u64>> {
        let mut hashes = Vec::new();
        if !keys.is_empty() {
            hash_fields(chunk, keys, &mut hashes)?;
        }
        let hashes = (!keys.is_empty()).then_some(&hashes[..]);
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        self.append_tuples(&Tuples::of(chunk), hashes, selection)
    }

    /// Appends the tuples of `incoming`, or those at the positions of `selection`; hashes are by
    /// position too. Returns the numbers of the new rows.
    ///
    /// # Errors
    /// The memory budget is exhausted, a string is longer than 2 GiB, or a column does not fit its
    /// field.
    pub fn append(
        &mut self,
        incoming: &ResolvedColumns,
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
    ) -> Result<Range<u64>> {
        let (start, len) = self.begin_append(incoming.rows, selection)?;
        self.append_all(incoming, (start, len), hashes, selection)?;
        Ok(self.end_append(len))
    }

    /// Like [`RowsBuilder::append`], for the tuples of a chunk.
    ///
    /// # Errors
    /// As [`RowsBuilder::append`], and those of compiling.
    pub fn append_tuples(
        &mut self,
        tuples: &Tuples<'_>,
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
    ) -> Result<Range<u64>> {
        let (start, len) = self.begin_append(tuples.chunk.rows_stored(), selection)?;
        let place = (&mut self.pages, start, len);
        match tuples.write(place, hashes, selection, &mut self.has_nulls)? {
            None => self.append_all(tuples.incoming()?, (start, len), hashes, selection)?,
            Some(others) => {
                for (at, &field) in others.iter().enumerate() {
                    let column = &tuples.others(others)?.columns()[at];
                    self.append_field(field, column, start, len, selection)?;
                }
            }
        }
        Ok(self.end_append(len))
    }

    /// Reserves memory for tuples; returns the number of the first new row, and how many there are.
    fn begin_append(&mut self, rows: usize, selection: Option<&[u32]>) -> Result<(usize, usize)> {
        if selection.is_some_and(|selection| selection.iter().any(|p| *p as usize >= rows)) {
            return Err(Error::internal("a selection beyond its columns"));
        }
        let (start, len) = (self.rows, selection.map_or(rows, <[u32]>::len));
        self.reservation.grow(self.pages.bytes_to_reserve(start + len))?;
        self.pages.reserve(start + len);
        Ok((start, len))
    }

    fn end_append(&mut self, len: usize) -> Range<u64> {
        let start = self.rows as u64;
        self.rows += len;
        start..start + len as u64
    }

    /// Returns the hash of a row.
    pub fn hash(&self, row: u64) -> u64 {
        self.pages.read(row as usize, HASH_OFFSET)
    }

    /// Returns the value of a state field of a row.
    #[inline(always)]
    pub fn state<T: Fixed>(&self, row: u64, state: usize) -> T {
        self.pages.read(row as usize, self.layout.state_offset(state))
    }

    /// Sets a state field of a row.
    #[inline(always)]
    pub fn set_state<T: Fixed>(&mut self, row: u64, state: usize, value: T) {
        self.pages.write(row as usize, self.layout.state_offset(state), value);
    }

    /// Replaces the state of each row by `update(old, position in rows)`, in order. A row may occur
    /// several times.
    ///
    /// # Errors
    /// Those of `update`.
    #[inline(always)]
    pub fn update_state<T: Fixed>(
        &mut self,
        rows: &[u64],
        state: usize,
        mut update: impl FnMut(T, usize) -> Result<T>,
    ) -> Result<()> {
        let offset = self.layout.state_offset(state);
        for (position, row) in rows.iter().enumerate() {
            let value = update(self.pages.read(*row as usize, offset), position)?;
            self.pages.write(*row as usize, offset, value);
        }
        Ok(())
    }

    /// Copies bytes to the heap and returns their 16-byte view; up to 12 bytes are stored in the
    /// view itself.
    ///
    /// # Errors
    /// The memory budget is exhausted, or there are more than 2 GiB.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<u128> {
        push_bytes(&mut self.heap, self.heap_page_bytes_most, &mut self.reservation, bytes)
    }

    /// Returns the bytes of a view from [`RowsBuilder::push_bytes`]; borrows `view`, which stores
    /// short ones.
    pub fn bytes<'a>(&'a self, view: &'a [u8; 16]) -> &'a [u8] {
        let bits = u128::from_le_bytes(*view);
        let len = bits as u32 as usize;
        if len <= 12 { &view[4..4 + len] } else { long_bytes(bits, &self.heap).unwrap_or_default() }
    }

    /// Retains the candidates whose row and position have equal keys: compares field `fields[i]`
    /// with column `i` of `keys`.
    ///
    /// # Errors
    /// A column does not fit its field.
    pub fn retain_equal(
        &self,
        fields: &[usize],
        keys: &ResolvedColumns,
        nulls: NullKeys,
        candidates: &mut Candidates,
    ) -> Result<()> {
        let view = RowsRef {
            layout: &self.layout,
            pages: &self.pages,
            heap: Heap::Unsealed(&self.heap),
            sides: &self.sides,
            has_nulls: &self.has_nulls,
        };
        view.retain_equal(fields, keys, nulls, candidates)
    }

    /// Makes the rows immutable.
    pub fn seal(self) -> Rows {
        let layout = self.layout.clone();
        Rows::new(layout, vec![Arc::new(self.seal_part())])
    }

    /// Makes the rows immutable, as one part.
    pub fn seal_part(self) -> Part {
        Part {
            pages: self.pages,
            rows: self.rows,
            heap: self.heap.into_iter().map(Buffer::from_vec).collect(),
            sides: self.sides,
            has_nulls: self.has_nulls,
            reservations: vec![self.reservation],
        }
    }
}
