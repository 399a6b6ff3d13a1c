//! The memory of rows: pages of fixed-width rows, and the unsafe code that reads and writes them.
//!
//! # Invariants
//! * `reserved` rows have memory: row `r` is in page `r >> shift` at `(r & mask) * stride`, and its
//!   `stride` bytes are inside that page. The first `allocated` of them, which are whole words of
//!   their pages' vectors, are initialized: with zeros, or by the caller of
//!   [`Pages::assume_written`]. Every bit pattern is a valid value of every [`Fixed`] type, so any
//!   read of them is defined. Every access checks `row < allocated` and `offset + width <= stride`
//!   once, before its loop.
//! * Reads and writes are unaligned: no code relies on alignment.
//! * A [`WordBuffer`] refers to memory that stays unchanged for as long as its owner lives; a page
//!   over one is never written to.
//! * [`SharedPages`] hands out writers for disjoint row ranges, and its pages only after the last
//!   writer is dropped.

mod field_reader;
mod page;
mod shared;
mod word_buffer;

use std::ops::Range;

use tessera_types::{Error, Result};
use tessera_vector::prefetch;

use page::Page;

use field_reader::FieldReader;
pub use shared::{SharedPages, SharedWriter};
pub use word_buffer::WordBuffer;

/// How many rows ahead their cache lines are prefetched before they are written.
pub const PREFETCHED_ROWS: usize = 64;
/// Rows of the first allocation of a page that grows.
const FIRST_ROWS: usize = 16;

/// Types whose every bit pattern is a value, without padding.
///
/// # Safety
/// Implementers have no padding bytes, no invalid bit patterns, and no drop code.
pub unsafe trait Fixed: Copy + Default + Send + Sync + 'static {}

macro_rules! fixed {
    ($($type:ty),*) => { $(
        // SAFETY: a primitive number: no padding, every bit pattern valid.
        unsafe impl Fixed for $type {}
    )* };
}
fixed!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

/// Pages of rows.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Page>,
    /// Rows of a full page, as a power of two.
    shift: u32,
    /// 64-bit words per row.
    stride: usize,
    /// Rows that have memory.
    reserved: usize,
    /// Rows that are initialized.
    allocated: usize,
}

impl Pages {
    /// Creates no rows; a page will have 2^`shift` of `stride_bytes` (a multiple of 8).
    pub fn new(stride_bytes: usize, shift: u32) -> Pages {
        debug_assert_eq!(stride_bytes % 8, 0);
        Pages { pages: Vec::new(), shift, stride: stride_bytes / 8, reserved: 0, allocated: 0 }
    }

    /// Creates one page of exactly `rows` zeroed rows.
    pub fn contiguous(stride_bytes: usize, rows: usize) -> Pages {
        let stride = stride_bytes / 8;
        Pages {
            pages: vec![Page::Own(vec![0; rows * stride])],
            shift: usize::BITS - 1,
            stride,
            reserved: rows,
            allocated: rows,
        }
    }

    /// Creates one page of all whole rows in a buffer.
    pub fn foreign(stride_bytes: usize, buffer: WordBuffer) -> Pages {
        let stride = stride_bytes / 8;
        let rows = buffer.words() / stride.max(1);
        let pages = vec![Page::Foreign(buffer)];
        Pages { pages, shift: usize::BITS - 1, stride, reserved: rows, allocated: rows }
    }

    /// The bytes that [`Pages::reserve`] would allocate for `rows` rows in total.
    pub fn bytes_to_reserve(&self, rows: usize) -> usize {
        self.target(rows).saturating_sub(self.reserved) * self.stride * 8
    }

    fn target(&self, rows: usize) -> usize {
        let page = 1usize << self.shift;
        if rows <= self.reserved {
            self.reserved
        } else if rows <= page {
            rows.max(self.reserved * 2).max(FIRST_ROWS).min(page)
        } else {
            rows.next_multiple_of(page)
        }
    }

    /// Allocates memory for at least `rows` rows in total. Only the first page grows; later ones
    /// are allocated whole.
    pub fn reserve(&mut self, rows: usize) {
        let target = self.target(rows);
        if target == self.reserved {
            return;
        }
        let page = 1usize << self.shift;
        let first_words = target.min(page) * self.stride;
        match self.pages.first_mut() {
            Some(first) => {
                let words = first.own();
                words.reserve_exact(first_words - words.len());
            }
            None => self.pages.push(Page::Own(Vec::with_capacity(first_words))),
        }
        while self.pages.len() * page < target {
            self.pages.push(Page::Own(Vec::with_capacity(page * self.stride)));
        }
        self.reserved = target;
    }

    /// Initializes at least `rows` rows in total; new ones are zeroed.
    pub fn allocate(&mut self, rows: usize) {
        self.reserve(rows);
        self.grow(rows, |words, length| words.resize(length, 0));
    }

    /// Extends the pages to `rows` rows in total; `give` sets the new length of a page in words.
    fn grow(&mut self, rows: usize, give: impl Fn(&mut Vec<u64>, usize)) {
        if rows <= self.allocated {
            return;
        }
        let page = 1usize << self.shift;
        for number in self.allocated >> self.shift..=(rows - 1) >> self.shift {
            give(self.pages[number].own(), (rows - (number << self.shift)).min(page) * self.stride);
        }
        self.allocated = rows;
    }

    /// Marks at least `rows` rows in total as initialized, with the current content of their
    /// memory.
    ///
    /// # Safety
    /// There is memory for them, and every word of the new rows was written, at
    /// [`Pages::place_mut`].
    pub unsafe fn assume_written(&mut self, rows: usize) {
        // SAFETY: by the contract; the lengths are within the reserved memory.
        self.grow(rows, |words, length| unsafe { words.set_len(length) });
    }

    /// Returns the words of the first `rows` rows.
    ///
    /// # Panics
    /// There are fewer rows.
    pub fn into_words(self, rows: usize) -> Vec<u64> {
        assert!(rows <= self.allocated, "more rows than there are");
        let wanted = rows * self.stride;
        let mut all = Vec::new();
        for page in self.pages {
            match page {
                Page::Own(words) if all.is_empty() => all = words,
                page => all.extend_from_slice(&page),
            }
            if all.len() >= wanted {
                break;
            }
        }
        all.truncate(wanted);
        all
    }

    /// The number of rows.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.allocated
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.pages.iter().map(Page::memory_bytes).sum()
    }

    fn check(&self, end: usize, offset: usize, width: usize) {
        assert!(
            end <= self.allocated && offset + width <= self.stride * 8,
            "a row outside its pages"
        );
    }

    /// # Safety
    /// `row < self.allocated`.
    #[inline(always)]
    unsafe fn row_unchecked(&self, row: usize) -> *const u8 {
        // SAFETY: by the invariant of `allocated`.
        unsafe {
            let page = self.pages.get_unchecked(row >> self.shift);
            let inner = row & ((1usize << self.shift) - 1);
            page.as_ptr().add(inner * self.stride).cast()
        }
    }

    /// # Safety
    /// `row < self.reserved`.
    #[inline(always)]
    unsafe fn row_unchecked_mut(&mut self, row: usize) -> *mut u8 {
        // SAFETY: by the invariant of `reserved`.
        unsafe {
            let page = self.pages.get_unchecked_mut(row >> self.shift);
            let inner = row & ((1usize << self.shift) - 1);
            page.own().as_mut_ptr().add(inner * self.stride).cast()
        }
    }

    /// Returns the words of some rows of contiguous pages; `None` if there are fewer rows.
    pub fn words_mut(&mut self, row: usize, rows: usize) -> Option<&mut [u64]> {
        self.pages.first_mut()?.own().get_mut(row * self.stride..(row + rows) * self.stride)
    }

    /// Returns the address of a row, initialized or not, and how many of the `rows` from it on (at
    /// least one) are consecutive there.
    ///
    /// # Panics
    /// The memory of the rows is not reserved.
    pub fn place_mut(&mut self, row: usize, rows: usize) -> (*mut u8, usize) {
        assert!(row + rows.max(1) <= self.reserved, "a row outside its pages");
        let page_end = ((row >> self.shift) + 1) << self.shift;
        // SAFETY: the row was checked.
        (unsafe { self.row_unchecked_mut(row) }, rows.min(page_end - row))
    }

    /// Returns the value at `offset` of a row.
    #[inline(always)]
    pub fn read<T: Fixed>(&self, row: usize, offset: usize) -> T {
        self.check(row.saturating_add(1), offset, size_of::<T>());
        // SAFETY: checked.
        unsafe { self.row_unchecked(row).add(offset).cast::<T>().read_unaligned() }
    }

    /// Sets the value at `offset` of a row.
    #[inline(always)]
    pub fn write<T: Fixed>(&mut self, row: usize, offset: usize, value: T) {
        self.check(row.saturating_add(1), offset, size_of::<T>());
        // SAFETY: checked.
        unsafe { self.row_unchecked_mut(row).add(offset).cast::<T>().write_unaligned(value) }
    }

    /// Sets the value at `offset` of the consecutive rows from `start`, one for each value (`len`
    /// at most).
    #[inline(always)]
    pub fn write_run<T: Fixed>(
        &mut self,
        start: usize,
        len: usize,
        offset: usize,
        values: impl Iterator<Item = T>,
    ) {
        self.check(start + len, offset, size_of::<T>());
        let mut values = values.take(len);
        let (mut row, end) = (start, start + len);
        while row < end {
            let page_end = ((row >> self.shift) + 1) << self.shift;
            let run = page_end.min(end) - row;
            // SAFETY: the rows `row..row + run` are below `end`, checked above, and in one page.
            unsafe {
                let mut target = self.row_unchecked_mut(row).add(offset);
                for value in values.by_ref().take(run) {
                    target.cast::<T>().write_unaligned(value);
                    target = target.wrapping_add(self.stride * 8);
                }
            }
            row += run;
        }
    }

    /// Adds bits to the word at `offset` of the consecutive rows from `start`, one for each value
    /// (`len` at most).
    pub fn or_run(
        &mut self,
        start: usize,
        len: usize,
        offset: usize,
        values: impl Iterator<Item = u64>,
    ) {
        self.check(start + len, offset, 8);
        for (row, value) in (start..start + len).zip(values) {
            // SAFETY: the rows are below `start + len`, checked above with the offset.
            unsafe {
                let word = self.row_unchecked_mut(row).add(offset).cast::<u64>();
                word.write_unaligned(word.read_unaligned() | value);
            }
        }
    }

    /// Clears all words of consecutive rows.
    pub fn clear(&mut self, start: usize, len: usize) {
        for offset in (0..self.stride * 8).step_by(8) {
            self.write_run(start, len, offset, std::iter::repeat_n(0u64, len));
        }
    }

    /// The bytes of a row.
    pub fn row(&self, row: usize) -> &[u8] {
        self.check(row.saturating_add(1), 0, 0);
        // SAFETY: checked; a row's bytes are initialized and inside its page.
        unsafe { std::slice::from_raw_parts(self.row_unchecked(row), self.stride * 8) }
    }

    /// Clears the bit `mask` of the byte at `offset` of a row.
    #[inline(always)]
    pub fn clear_bit(&mut self, row: usize, offset: usize, mask: u8) {
        let byte: u8 = self.read(row, offset);
        self.write(row, offset, byte & !mask);
    }

    /// Returns the values at `offset` of these rows; a default for row `u64::MAX`.
    ///
    /// # Errors
    /// Another row is out of bounds: an internal error.
    pub fn gather<T: Fixed>(&self, offset: usize, rows: &[u64]) -> Result<Vec<T>> {
        self.check(0, offset, size_of::<T>());
        let allocated = self.allocated as u64;
        let outside = rows.iter().fold(false, |found, row| found | (*row >= allocated));
        let mut out = Vec::with_capacity(rows.len());
        if !outside {
            // SAFETY: every row is below `allocated`, and the offset was checked.
            let read = |row: &u64| unsafe {
                self.row_unchecked(*row as usize).add(offset).cast::<T>().read_unaligned()
            };
            out.extend(rows.iter().map(read));
            return Ok(out);
        }
        for row in rows {
            out.push(match *row {
                u64::MAX => T::default(),
                row if row < allocated => self.read(row as usize, offset),
                row => return Err(Error::internal(format!("row {row} of {allocated} was read"))),
            });
        }
        Ok(out)
    }

    /// Returns the values at `offset` of consecutive rows.
    ///
    /// # Panics
    /// There are fewer rows.
    pub fn gather_range<T: Fixed>(&self, offset: usize, rows: Range<usize>) -> Vec<T> {
        let mut out = Vec::with_capacity(rows.len());
        self.value_runs::<T>(offset, rows).for_each(|run| out.extend(run));
        out
    }

    /// Returns the values at `offset` of consecutive rows, page by page.
    ///
    /// # Panics
    /// There are fewer rows.
    pub fn value_runs<T: Fixed>(
        &self,
        offset: usize,
        rows: Range<usize>,
    ) -> impl Iterator<Item = impl ExactSizeIterator<Item = T>> {
        self.check(rows.end, offset, size_of::<T>());
        let mut row = rows.start;
        std::iter::from_fn(move || {
            let page_end = ((row >> self.shift) + 1) << self.shift;
            let (start, run) = (row, page_end.min(rows.end).saturating_sub(row));
            row += run;
            // SAFETY: the rows `start..start + run` are below `allocated`, checked above, and in
            // one page.
            let value = move |at: usize| unsafe {
                self.row_unchecked(start)
                    .add(offset + at * self.stride * 8)
                    .cast::<T>()
                    .read_unaligned()
            };
            (run > 0).then(|| (0..run).map(value))
        })
    }

    /// Returns the address of consecutive rows; `None` if they are on several pages.
    ///
    /// # Panics
    /// There are fewer rows.
    pub fn address(&self, first: usize, rows: usize) -> Option<*const u8> {
        self.check(first + rows, 0, 0);
        let last = first + rows.max(1) - 1;
        // SAFETY: the rows were checked.
        (rows > 0 && first >> self.shift == last >> self.shift)
            .then(|| unsafe { self.row_unchecked(first) })
    }

    /// Copies rows of other pages, from byte `theirs` of a row to its end, to byte `own` and on of
    /// consecutive rows from `start`.
    ///
    /// # Panics
    /// There are fewer rows, or the two parts of a row differ in length.
    pub fn copy_rows(
        &mut self,
        start: usize,
        own: usize,
        (other, theirs): (&Pages, usize),
        rows: impl ExactSizeIterator<Item = usize>,
    ) {
        let bytes = self.stride * 8 - own;
        assert!(
            start + rows.len() <= self.allocated && other.stride * 8 - theirs == bytes,
            "other rows"
        );
        for (to, from) in (start..).zip(rows) {
            assert!(from < other.allocated, "a row outside its pages");
            // SAFETY: both rows were checked, and both have `bytes` bytes from there to their ends;
            // a page that is written belongs to `self` alone.
            unsafe {
                let (to, from) =
                    (self.row_unchecked_mut(to).add(own), other.row_unchecked(from).add(theirs));
                copy_short(to, from, bytes);
            }
        }
    }

    /// Returns the words of the first `rows` rows, page by page.
    ///
    /// # Panics
    /// There are fewer rows.
    pub fn runs(&self, rows: usize) -> impl Iterator<Item = &[u64]> {
        assert!(rows <= self.allocated, "more rows than there are");
        let (shift, stride) = (self.shift, self.stride);
        let pages = self.pages.iter().enumerate().map(move |(index, page)| (index << shift, page));
        let pages = pages.take_while(move |(first, _)| *first < rows);
        pages.map(move |(first, page)| &page[..(rows - first).min(1 << shift) * stride])
    }

    /// Like [`Pages::runs`], mutable.
    pub fn runs_mut(&mut self, rows: usize) -> impl Iterator<Item = &mut [u64]> {
        assert!(rows <= self.allocated, "more rows than there are");
        let (shift, stride) = (self.shift, self.stride);
        let pages =
            self.pages.iter_mut().enumerate().map(move |(index, page)| (index << shift, page));
        let pages = pages.take_while(move |(first, _)| *first < rows);
        pages.map(move |(first, page)| &mut page.own()[..(rows - first).min(1 << shift) * stride])
    }

    /// Returns a reader of the value at `offset`, which is checked here; each read checks its row.
    #[inline(always)]
    pub fn field<T: Fixed>(&self, offset: usize) -> FieldReader<'_, T> {
        self.check(0, offset, size_of::<T>());
        FieldReader { pages: self, offset, phantom: std::marker::PhantomData }
    }

    /// Prefetches a row into the cache.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        if row < self.allocated {
            // SAFETY: checked.
            prefetch(unsafe { self.row_unchecked(row) });
        }
    }
}

/// Copies a row; a short row compiles to a few moves instead of a call.
///
/// # Safety
/// As for `copy_from_nonoverlapping`.
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: by the contract.
    unsafe {
        match bytes {
            8 => to.copy_from_nonoverlapping(from, 8),
            16 => to.copy_from_nonoverlapping(from, 16),
            24 => to.copy_from_nonoverlapping(from, 24),
            32 => to.copy_from_nonoverlapping(from, 32),
            40 => to.copy_from_nonoverlapping(from, 40),
            48 => to.copy_from_nonoverlapping(from, 48),
            length => to.copy_from_nonoverlapping(from, length),
        }
    }
}

#[cfg(test)]
mod tests;
