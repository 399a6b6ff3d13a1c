//! Rows being filled.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;

use tessera_context::Reservation;
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;
use tessera_vector::hash::hash_fields;
use tessera_vector::physical::interval_to_bits;

use super::compare::{Candidates, Heap, NullKeys, RowsRef};
use super::compiled::Tuples;
use super::incoming::{Incoming, Resolved, Values, long_bytes, view_buffers};
use super::layout::{HASH_OFFSET, Kind, RowLayout};
use super::memory::{Fixed, Pages};
use super::packing::Packed;
use super::range::RowRange;
use super::sealed::{Part, Rows, Side};

/// Bytes of a full page of rows, roughly.
const PAGE_BYTES: usize = 1 << 18;
/// Bytes of the first heap page; each later one is twice as long as the one before it, up to the
/// most.
const HEAP_PAGE_BYTES_FIRST: usize = 1 << 12;
const HEAP_PAGE_BYTES_MOST: usize = 1 << 22;
/// The longest string a view can describe.
const VIEW_BYTES_MAX: usize = i32::MAX as usize;
/// Dictionaries of at most this many values keep a translation of their views, so that each string
/// is copied once.
const TRANSLATED_VALUES_MOST: usize = 4_096;

/// Rows being filled: append tuples, change states, compare keys; then [`RowsBuilder::seal`].
#[derive(Debug)]
pub struct RowsBuilder {
    layout: Arc<RowLayout>,
    pages: Pages,
    rows: usize,
    heap: Vec<Vec<u8>>,
    sides: Vec<Side>,
    has_nulls: Vec<bool>,
    /// By field; none for a builder that copies every string.
    translations: Vec<Option<Translation>>,
    translates: bool,
    heap_page_bytes_most: usize,
    reservation: Reservation,
}

/// Views of a dictionary's strings in our heap; 0 for one that was not needed yet.
#[derive(Debug)]
struct Translation {
    values: ArrayRef,
    views: Vec<u128>,
}

impl RowsBuilder {
    /// No rows yet. Memory is counted on `reservation`, which goes to the sealed rows.
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

    /// As [`RowsBuilder::new`], in pages of about this many bytes: for one of many builders that
    /// grow alike, so that they do not take much memory all at once.
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

    /// As [`RowsBuilder::new`], for about this many rows, of which each has its strings to itself.
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

    /// The words of all rows, and the pages of the heap.
    pub fn into_words(self) -> (Vec<u64>, Vec<Vec<u8>>) {
        (self.pages.into_words(self.rows), self.heap)
    }

    /// The words of all rows, page by page.
    pub fn runs(&self) -> impl Iterator<Item = &[u64]> {
        self.pages.runs(self.rows)
    }

    /// No rows again, in the same memory; for rows that refer to nothing.
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

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.reservation.bytes()
    }

    /// Appends the tuples of a chunk that count; hashes are those of the `keys`, zero when there
    /// are none.
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

    /// Appends tuples: all of `incoming`, or those at the positions of `selection`. Hashes are by
    /// position too. Gives the numbers of the new rows.
    ///
    /// # Errors
    /// The memory budget is exhausted, a string is longer than 2 GiB, or a column does not fit its
    /// field.
    pub fn append(
        &mut self,
        incoming: &Incoming,
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
    ) -> Result<Range<u64>> {
        let (start, len) = self.begin_append(incoming.rows, selection)?;
        self.append_all(incoming, (start, len), hashes, selection)?;
        Ok(self.end_append(len))
    }

    /// As [`RowsBuilder::append`], of the tuples of a chunk.
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

    /// Makes memory for tuples; gives the first row, and how many there will be.
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

    /// All fields of rows that there is memory for.
    fn append_all(
        &mut self,
        incoming: &Incoming,
        (start, len): (usize, usize),
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        self.pages.allocate(start + len);
        if let Some(hashes) = hashes.filter(|_| self.layout.is_hashed()) {
            let hash = |p: usize| hashes.get(p).copied().unwrap_or_default();
            put(&mut self.pages, start, len, HASH_OFFSET, selection, hash);
        }
        let alike =
            |range: &RowRange| self.layout.alike(&range.layout).filter(|_| range.is_whole());
        if let Some((range, (own, theirs))) =
            incoming.range().and_then(|range| Some((range, alike(range)?)))
        {
            let from = (&range.part.pages, theirs);
            match selection {
                None => self.pages.copy_rows(start, own, from, range.first..range.first + len),
                Some(selection) => {
                    let rows = selection.iter().map(|position| range.first + *position as usize);
                    self.pages.copy_rows(start, own, from, rows);
                }
            }
            self.has_nulls
                .iter_mut()
                .zip(&range.part.has_nulls)
                .for_each(|(any, more)| *any |= more);
            return Ok(());
        }
        if incoming.columns().len() != self.layout.fields.len() {
            return Err(Error::internal("a tuple of another width was packed into rows"));
        }
        if self.layout.has_packed() {
            self.pages.clear(start, len);
        }
        if let Some(validity) = self.layout.validity_offset() {
            for byte in 0..self.layout.fields.len().div_ceil(8) {
                put(&mut self.pages, start, len, validity + byte, selection, |_| u8::MAX);
            }
        }
        for (field, column) in incoming.columns().iter().enumerate() {
            self.append_field(field, column, start, len, selection)?;
        }
        Ok(())
    }

    fn append_field(
        &mut self,
        field: usize,
        column: &Resolved,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        let place = &self.layout.fields[field];
        let offset = place.offset;
        let fits = match (&column.values, &place.kind) {
            (Values::Handles(_), kind) => *kind == Kind::Handle,
            (_, Kind::Handle) => false,
            (values, Kind::Encoded(_)) => matches!(values, Values::View(..) | Values::Null),
            (_, Kind::Value(physical, _) | Kind::Packed(Packed { physical, .. })) => {
                column.values.width_bytes() == physical.width_bytes()
                    || matches!(column.values, Values::Null)
            }
        };
        if !fits {
            return Err(Error::internal(format!(
                "a column does not fit field {field} of its rows"
            )));
        }
        if let Kind::Packed(packed) = &place.kind {
            let position = |row: usize| selection.map_or(row, |selection| selection[row] as usize);
            packed.add(&mut self.pages, (start, len, offset), column, position)?;
            return self.mark_nulls(field, column, start, len, selection);
        }
        macro_rules! values {
            ($values:expr) => {{
                let value = |p: usize| $values.get(column.at(p)).copied().unwrap_or_default();
                put(&mut self.pages, start, len, offset, selection, value);
            }};
        }
        match &column.values {
            Values::Null => {}
            Values::Boolean(bits) => {
                let value = |p: usize| {
                    let at = column.at(p);
                    u8::from(at < bits.len() && bits.value(at))
                };
                put(&mut self.pages, start, len, offset, selection, value);
            }
            Values::Bits8(values) => values!(values),
            Values::Bits16(values) => values!(values),
            Values::Bits32(values) => values!(values),
            Values::Bits64(values) => values!(values),
            Values::Bits128(values) => values!(values),
            Values::Interval(values) => {
                let value = |p: usize| values.get(column.at(p)).map_or(0, |v| interval_to_bits(*v));
                put(&mut self.pages, start, len, offset, selection, value);
            }
            Values::View(views, array) => {
                self.append_views(field, column, views, array, start, len, selection)?;
            }
            Values::Nested(array) => {
                // The values of a constant or a dictionary are fewer than its rows.
                let positions = match (selection, &column.index) {
                    (None, None) => None,
                    (Some(selection), None) => Some(selection.to_vec()),
                    (None, Some(index)) => Some(index.to_vec()),
                    (Some(selection), Some(index)) => {
                        Some(selection.iter().map(|position| index[*position as usize]).collect())
                    }
                };
                self.sides.push(Side::Array(match positions {
                    None => array.clone(),
                    Some(positions) => arrow::compute::take(
                        array,
                        &arrow::array::UInt32Array::from(positions),
                        None,
                    )?,
                }));
                self.append_references(offset, start, len)?;
            }
            Values::Handles(handles) => {
                self.sides.push(Side::Handles(match selection {
                    None => handles.clone(),
                    Some(selection) => {
                        selection.iter().map(|p| handles[*p as usize].clone()).collect()
                    }
                }));
                self.append_references(offset, start, len)?;
            }
        }
        self.mark_nulls(field, column, start, len, selection)
    }

    fn mark_nulls(
        &mut self,
        field: usize,
        column: &Resolved,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        if let Some(nulls) = &column.nulls {
            let validity = self.layout.validity_offset();
            let validity =
                validity.ok_or_else(|| Error::internal("a field that is never NULL may be"))?;
            let (byte, mask) = (validity + field / 8, 1u8 << (field % 8));
            for row in 0..len {
                let position = selection.map_or(row, |selection| selection[row] as usize);
                if nulls.is_null(position) {
                    self.pages.clear_bit(start + row, byte, mask);
                    self.has_nulls[field] = true;
                }
            }
        }
        Ok(())
    }

    /// References to the last side, one per row.
    fn append_references(&mut self, offset: usize, start: usize, len: usize) -> Result<()> {
        let side = self.sides.last().map_or(0, Side::memory_bytes);
        self.reservation.grow(side)?;
        let index = self.sides.len() as u64 - 1;
        self.pages.write_run(start, len, offset, (0..len as u64).map(|row| index | row << 32));
        Ok(())
    }

    #[expect(clippy::too_many_arguments)]
    fn append_views(
        &mut self,
        field: usize,
        column: &Resolved,
        views: &[u128],
        array: &ArrayRef,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        let offset = self.layout.fields[field].offset;
        let buffers = view_buffers(array);
        let view_at = |p: usize| {
            if column.is_null(p) { 0 } else { views.get(column.at(p)).copied().unwrap_or_default() }
        };
        if buffers.is_empty() {
            put(&mut self.pages, start, len, offset, selection, view_at);
            return Ok(());
        }
        let translated =
            self.translates && column.index.is_some() && views.len() <= TRANSLATED_VALUES_MOST;
        let mut translation = self.translations[field].take().filter(|t| {
            translated && std::ptr::addr_eq(Arc::as_ptr(&t.values), Arc::as_ptr(array))
        });
        if translated && translation.is_none() {
            translation = Some(Translation { values: array.clone(), views: vec![0; views.len()] });
        }
        for row in 0..len {
            let position = selection.map_or(row, |selection| selection[row] as usize);
            let mut view = view_at(position);
            if view as u32 > 12 {
                let known = translation.as_mut().and_then(|t| t.views.get_mut(column.at(position)));
                view = match known {
                    Some(known) if *known != 0 => *known,
                    known => {
                        let bytes = long_bytes(view, buffers).ok_or_else(|| {
                            Error::internal("a string view points outside its buffers")
                        })?;
                        let most = self.heap_page_bytes_most;
                        let view = push_bytes(&mut self.heap, most, &mut self.reservation, bytes)?;
                        if let Some(known) = known {
                            *known = view;
                        }
                        view
                    }
                };
            }
            self.pages.write(start + row, offset, view);
        }
        self.translations[field] = translation;
        Ok(())
    }

    /// The hash of a row.
    pub fn hash(&self, row: u64) -> u64 {
        self.pages.read(row as usize, HASH_OFFSET)
    }

    /// The value of a state field of a row.
    #[inline(always)]
    pub fn state<T: Fixed>(&self, row: u64, state: usize) -> T {
        self.pages.read(row as usize, self.layout.state_offset(state))
    }

    /// Sets a state field of a row.
    #[inline(always)]
    pub fn set_state<T: Fixed>(&mut self, row: u64, state: usize, value: T) {
        self.pages.write(row as usize, self.layout.state_offset(state), value);
    }

    /// Replaces the state of each row by `update(old, position in rows)`, in order. A row may stand
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

    /// Keeps bytes in the heap and gives their 16-byte view (at most 12 bytes lie in the view
    /// itself).
    ///
    /// # Errors
    /// The memory budget is exhausted, or there are more than 2 GiB.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<u128> {
        push_bytes(&mut self.heap, self.heap_page_bytes_most, &mut self.reservation, bytes)
    }

    /// The bytes of a view that [`RowsBuilder::push_bytes`] gave; `view` is borrowed because short
    /// ones lie in it.
    pub fn bytes<'a>(&'a self, view: &'a [u8; 16]) -> &'a [u8] {
        let bits = u128::from_le_bytes(*view);
        let len = bits as u32 as usize;
        if len <= 12 { &view[4..4 + len] } else { long_bytes(bits, &self.heap).unwrap_or_default() }
    }

    /// Keeps the candidates whose row has keys equal to those at their position: field `fields[i]`
    /// is compared with column `i` of `keys`.
    ///
    /// # Errors
    /// A column does not fit its field.
    pub fn retain_equal(
        &self,
        fields: &[usize],
        keys: &Incoming,
        nulls: NullKeys,
        candidates: &mut Candidates,
    ) -> Result<()> {
        let view = RowsRef {
            layout: &self.layout,
            pages: &self.pages,
            heap: Heap::Filling(&self.heap),
            sides: &self.sides,
            has_nulls: &self.has_nulls,
        };
        view.retain_equal(fields, keys, nulls, candidates)
    }

    /// The rows as they are from now on.
    pub fn seal(self) -> Rows {
        let layout = self.layout.clone();
        Rows::new(layout, vec![Arc::new(self.seal_part())])
    }

    /// The rows as one part.
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

impl Values {
    fn width_bytes(&self) -> usize {
        match self {
            Values::Null => 0,
            Values::Boolean(_) | Values::Bits8(_) => 1,
            Values::Bits16(_) => 2,
            Values::Bits32(_) => 4,
            Values::Bits64(_) | Values::Nested(_) | Values::Handles(_) => 8,
            Values::Bits128(_) | Values::Interval(_) | Values::View(..) => 16,
        }
    }
}

#[inline(always)]
fn put<T: Fixed>(
    pages: &mut Pages,
    start: usize,
    len: usize,
    offset: usize,
    selection: Option<&[u32]>,
    value: impl Fn(usize) -> T,
) {
    match selection {
        None => pages.write_run(start, len, offset, (0..len).map(value)),
        Some(selection) => {
            pages.write_run(
                start,
                len,
                offset,
                selection.iter().map(|position| value(*position as usize)),
            );
        }
    }
}

fn push_bytes(
    heap: &mut Vec<Vec<u8>>,
    page_bytes_most: usize,
    reservation: &mut Reservation,
    bytes: &[u8],
) -> Result<u128> {
    let len = bytes.len();
    if len <= 12 {
        let mut view = [0u8; 16];
        view[..4].copy_from_slice(&(len as u32).to_le_bytes());
        view[4..4 + len].copy_from_slice(bytes);
        return Ok(u128::from_le_bytes(view));
    }
    if len > VIEW_BYTES_MAX {
        return Err(Error::new(
            Code::Limit,
            format!("a string of {len} bytes; the most is {VIEW_BYTES_MAX}"),
        ));
    }
    let room = heap.last().map_or(0, |page| page.capacity() - page.len());
    if room < len {
        let next = HEAP_PAGE_BYTES_FIRST << heap.len().min(16);
        let capacity = next.min(page_bytes_most).max(len);
        reservation.grow(capacity)?;
        heap.push(Vec::with_capacity(capacity));
    }
    let index = heap.len() - 1;
    let page = &mut heap[index];
    let offset = page.len();
    page.extend_from_slice(bytes);
    let prefix = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok(len as u128 | u128::from(prefix) << 32 | (index as u128) << 64 | (offset as u128) << 96)
}
