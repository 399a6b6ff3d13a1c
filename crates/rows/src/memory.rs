//! The memory of rows: pages of fixed-width rows, and the only unsafe code of this layout.
//!
//! # Invariants
//! * `reserved` rows have memory: row `r` lies in page `r >> shift` at `(r & mask) * stride`, and
//!   its `stride` bytes are inside that page. The first `allocated` of them, which are whole words
//!   of their pages' vectors, are initialised: with zeros, or by who said so
//!   ([`Pages::assume_written`]); every bit pattern is a valid value of every [`Fixed`] type, so
//!   any read of them is defined. Every access checks `row < allocated` and `offset + width <=
//!   stride` once, before its loop.
//! * Reads and writes are unaligned ones: nothing relies on alignment.
//! * A [`Region`] is memory of somebody else that stays as it is for as long as its owner lives; a
//!   page over one is never written to.
//! * [`SharedPages`] hands out writers for disjoint row ranges, and its pages only after the last
//!   writer is gone.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::alloc::Allocation;
use arrow::buffer::Buffer;
use tessera_context::lock;
use tessera_types::{Error, Result};
use tessera_vector::prefetch;

/// Rows whose places are asked for before they are written.
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

/// Memory that something else owns (a window of a network, a mapped file), aligned to words, no
/// longer written to.
#[derive(Clone)]
pub struct Region {
    start: *const u64,
    words: usize,
    owner: Arc<dyn Allocation>,
}

// SAFETY: nobody writes to the memory while a region exists, and its owner may be sent and shared.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").field("words", &self.words).finish_non_exhaustive()
    }
}

impl Region {
    /// The `words` words from `start`.
    ///
    /// # Safety
    /// They are initialised, aligned to 8 bytes, and neither written to nor freed until `owner` is
    /// dropped.
    pub unsafe fn new(start: *const u64, words: usize, owner: Arc<dyn Allocation>) -> Region {
        Region { start, words, owner }
    }

    /// Memory of our own.
    pub fn owned(words: Vec<u64>) -> Region {
        let owner = Arc::new(words);
        let (start, words) = (owner.as_ptr(), owner.len());
        Region { start, words, owner }
    }

    /// A copy of bytes, filled up to whole words with zeros.
    pub fn of_bytes(bytes: &[u8]) -> Region {
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        };
        Region::owned(bytes.chunks(8).map(word).collect())
    }

    /// How many words there are.
    pub fn words(&self) -> usize {
        self.words
    }

    /// A part of it.
    ///
    /// # Panics
    /// There are not so many words.
    pub fn slice(&self, first: usize, words: usize) -> Region {
        assert!(first <= self.words && words <= self.words - first, "a slice outside its region");
        Region { start: self.start.wrapping_add(first), words, owner: self.owner.clone() }
    }

    fn as_slice(&self) -> &[u64] {
        // SAFETY: by the contract of `new`, or as a part of such memory, which `slice` checked.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }

    /// As an Arrow buffer of the first `bytes` bytes.
    ///
    /// # Panics
    /// There are not so many.
    pub fn buffer(&self, first_byte: usize, bytes: usize) -> Buffer {
        assert!(first_byte.saturating_add(bytes) <= self.words * 8, "a buffer outside its region");
        let start = self.start.cast::<u8>().cast_mut().wrapping_add(first_byte);
        let Some(start) = std::ptr::NonNull::new(start) else {
            return Buffer::from_vec(Vec::<u8>::new());
        };
        // SAFETY: the bytes are inside the region, initialised, and live and unchanged for as long
        // as its owner, of which the buffer holds a reference.
        unsafe { Buffer::from_custom_allocation(start, bytes, self.owner.clone()) }
    }
}

/// One run of rows' words.
#[derive(Debug)]
enum Page {
    Own(Vec<u64>),
    Foreign(Region),
}

impl std::ops::Deref for Page {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        match self {
            Page::Own(words) => words,
            Page::Foreign(region) => region.as_slice(),
        }
    }
}

impl Page {
    fn own(&mut self) -> &mut Vec<u64> {
        match self {
            Page::Own(words) => words,
            Page::Foreign(_) => unreachable!("a page that somebody else owns was written to"),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Page::Own(words) => words.capacity() * 8,
            Page::Foreign(region) => region.words * 8,
        }
    }
}

/// Pages of rows.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Page>,
    /// Rows of a full page, as a power of two.
    shift: u32,
    /// 64-bit words of a row.
    stride: usize,
    /// Rows that have memory.
    reserved: usize,
    /// Rows that were initialised.
    allocated: usize,
}

impl Pages {
    /// No rows yet; a page will have 2^`shift` of `stride_bytes` (a multiple of 8).
    pub fn new(stride_bytes: usize, shift: u32) -> Pages {
        debug_assert_eq!(stride_bytes % 8, 0);
        Pages { pages: Vec::new(), shift, stride: stride_bytes / 8, reserved: 0, allocated: 0 }
    }

    /// One page of exactly `rows` zeroed rows.
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

    /// One page of all whole rows in memory that somebody else owns.
    pub fn foreign(stride_bytes: usize, region: Region) -> Pages {
        let stride = stride_bytes / 8;
        let rows = region.words / stride.max(1);
        let pages = vec![Page::Foreign(region)];
        Pages { pages, shift: usize::BITS - 1, stride, reserved: rows, allocated: rows }
    }

    /// Bytes that [`Pages::reserve`] would take to have memory for at least `rows` rows.
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

    /// Makes memory for at least `rows` rows in all. Only the first page grows; later ones are made
    /// whole.
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

    /// Makes at least `rows` rows in all; new ones are of zeros.
    pub fn allocate(&mut self, rows: usize) {
        self.reserve(rows);
        self.grow(rows, |words, length| words.resize(length, 0));
    }

    /// Makes those rows that `rows` are more than there were, by giving pages their new lengths in
    /// words.
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

    /// Makes at least `rows` rows in all, of what their memory holds.
    ///
    /// # Safety
    /// There is memory for them, and every word of those that were not there was written to, at
    /// [`Pages::place_mut`].
    pub unsafe fn assume_written(&mut self, rows: usize) {
        // SAFETY: by the contract; the lengths are within what was reserved.
        self.grow(rows, |words, length| unsafe { words.set_len(length) });
    }

    /// The words of the first `rows` rows.
    ///
    /// # Panics
    /// There are not so many.
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

    /// How many rows there are.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.allocated
    }

    /// The bytes of memory that they take.
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

    /// The words of some rows of contiguous pages; none where there are not so many rows.
    pub fn words_mut(&mut self, row: usize, rows: usize) -> Option<&mut [u64]> {
        self.pages.first_mut()?.own().get_mut(row * self.stride..(row + rows) * self.stride)
    }

    /// Where there is memory for a row, initialised or not, and how many of the `rows` from it on
    /// (at least one) lie there one behind the other.
    ///
    /// # Panics
    /// There is not so much.
    pub fn place_mut(&mut self, row: usize, rows: usize) -> (*mut u8, usize) {
        assert!(row + rows.max(1) <= self.reserved, "a row outside its pages");
        let page_end = ((row >> self.shift) + 1) << self.shift;
        // SAFETY: the row was checked.
        (unsafe { self.row_unchecked_mut(row) }, rows.min(page_end - row))
    }

    /// The value at `offset` of a row.
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

    /// Zeros in all words of consecutive rows.
    pub fn clear(&mut self, start: usize, len: usize) {
        for offset in (0..self.stride * 8).step_by(8) {
            self.write_run(start, len, offset, std::iter::repeat_n(0u64, len));
        }
    }

    /// The bytes of a row.
    pub fn row(&self, row: usize) -> &[u8] {
        self.check(row.saturating_add(1), 0, 0);
        // SAFETY: checked; a row's bytes are initialised and inside its page.
        unsafe { std::slice::from_raw_parts(self.row_unchecked(row), self.stride * 8) }
    }

    /// Clears the bit `mask` of the byte at `offset` of a row.
    #[inline(always)]
    pub fn clear_bit(&mut self, row: usize, offset: usize, mask: u8) {
        let byte: u8 = self.read(row, offset);
        self.write(row, offset, byte & !mask);
    }

    /// The values at `offset` of these rows; a default for a row that is `u64::MAX`.
    ///
    /// # Errors
    /// Another row is outside: Tessera's own mistake.
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

    /// The values at `offset` of consecutive rows.
    ///
    /// # Panics
    /// There are not so many.
    pub fn gather_range<T: Fixed>(&self, offset: usize, rows: Range<usize>) -> Vec<T> {
        let mut out = Vec::with_capacity(rows.len());
        self.value_runs::<T>(offset, rows).for_each(|run| out.extend(run));
        out
    }

    /// The values at `offset` of consecutive rows, page by page.
    ///
    /// # Panics
    /// There are not so many.
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

    /// Where consecutive rows lie in memory; none where they are on several pages.
    ///
    /// # Panics
    /// There are not so many.
    pub fn address(&self, first: usize, rows: usize) -> Option<*const u8> {
        self.check(first + rows, 0, 0);
        let last = first + rows.max(1) - 1;
        // SAFETY: the rows were checked.
        (rows > 0 && first >> self.shift == last >> self.shift)
            .then(|| unsafe { self.row_unchecked(first) })
    }

    /// Copies rows of other pages, from their byte `theirs` on, to consecutive rows from `start`,
    /// from byte `own` on, each to its end.
    ///
    /// # Panics
    /// There are not so many rows, or rows do not end alike.
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

    /// The words of the first `rows` rows, page by page.
    ///
    /// # Panics
    /// There are not so many.
    pub fn runs(&self, rows: usize) -> impl Iterator<Item = &[u64]> {
        assert!(rows <= self.allocated, "more rows than there are");
        let (shift, stride) = (self.shift, self.stride);
        let pages = self.pages.iter().enumerate().map(move |(index, page)| (index << shift, page));
        let pages = pages.take_while(move |(first, _)| *first < rows);
        pages.map(move |(first, page)| &page[..(rows - first).min(1 << shift) * stride])
    }

    /// As [`Pages::runs`], to be changed.
    pub fn runs_mut(&mut self, rows: usize) -> impl Iterator<Item = &mut [u64]> {
        assert!(rows <= self.allocated, "more rows than there are");
        let (shift, stride) = (self.shift, self.stride);
        let pages =
            self.pages.iter_mut().enumerate().map(move |(index, page)| (index << shift, page));
        let pages = pages.take_while(move |(first, _)| *first < rows);
        pages.map(move |(first, page)| &mut page.own()[..(rows - first).min(1 << shift) * stride])
    }

    /// A reader of the value at `offset`, checked once; each read checks its row.
    #[inline(always)]
    pub fn field<T: Fixed>(&self, offset: usize) -> FieldReader<'_, T> {
        self.check(0, offset, size_of::<T>());
        FieldReader { pages: self, offset, phantom: std::marker::PhantomData }
    }

    /// Asks the processor to bring a row into its cache.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        if row < self.allocated {
            // SAFETY: checked.
            prefetch(unsafe { self.row_unchecked(row) });
        }
    }
}

/// Reads one field of any row.
#[derive(Debug, Clone, Copy)]
pub struct FieldReader<'a, T> {
    pages: &'a Pages,
    offset: usize,
    phantom: std::marker::PhantomData<T>,
}

impl<T: Fixed> FieldReader<'_, T> {
    /// The value of a row.
    #[inline(always)]
    pub fn get(&self, row: u64) -> T {
        let row = row as usize;
        assert!(row < self.pages.allocated, "a row outside its pages");
        // SAFETY: the row was checked here, the offset when the reader was made.
        unsafe { self.pages.row_unchecked(row).add(self.offset).cast::<T>().read_unaligned() }
    }
}

/// Copies a row: of short ones the copy is a few moves, not a call.
///
/// # Safety
/// As of `copy_from_nonoverlapping`.
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

/// Pages that several tasks fill at once, each its own range of rows.
#[derive(Debug)]
pub struct SharedPages {
    pages: Mutex<Option<Pages>>,
    writers: AtomicUsize,
}

/// Writes one range of rows of [`SharedPages`].
#[derive(Debug)]
pub struct SharedWriter {
    owner: Arc<SharedPages>,
    /// The first byte of the range.
    base: *mut u8,
    stride_bytes: usize,
    rows: usize,
}

// SAFETY: the range behind `base` belongs to this writer alone, and its memory lives as long as
// `owner` keeps the pages, which it does until the last writer is dropped.
unsafe impl Send for SharedWriter {}

impl SharedPages {
    /// Contiguous pages, cut into ranges of these many rows, one after the other.
    pub fn split(stride_bytes: usize, ranges: &[usize]) -> (Arc<SharedPages>, Vec<SharedWriter>) {
        let rows: usize = ranges.iter().sum();
        let mut pages = Pages::contiguous(stride_bytes, rows);
        let base: *mut u8 = pages.pages[0].own().as_mut_ptr().cast();
        let owner = Arc::new(SharedPages {
            pages: Mutex::new(Some(pages)),
            writers: AtomicUsize::new(ranges.len()),
        });
        let mut start = 0;
        let writers = ranges
            .iter()
            .map(|rows| {
                let base = base.wrapping_add(start * stride_bytes);
                start += rows;
                SharedWriter { owner: owner.clone(), base, stride_bytes, rows: *rows }
            })
            .collect();
        (owner, writers)
    }

    /// The pages; none while a writer is left, or when they were taken already.
    pub fn take(&self) -> Option<Pages> {
        if self.writers.load(Ordering::Acquire) != 0 {
            return None;
        }
        lock(&self.pages).take()
    }
}

impl SharedWriter {
    /// Asks the processor for a place of the range.
    #[inline(always)]
    pub fn prefetch(&self, place: usize) {
        prefetch(self.base.wrapping_add(place.wrapping_mul(self.stride_bytes)));
    }

    /// Copies a row to a place of the range, and gives the copy for patching.
    #[inline(always)]
    pub fn copy_row(&mut self, place: usize, bytes: &[u8]) -> &mut [u8] {
        assert!(place < self.rows && bytes.len() == self.stride_bytes, "a row outside its range");
        // SAFETY: `place` is inside the range, which is this writer's alone; `bytes` cannot overlap
        // with it, because the pages are not readable while a writer is left.
        unsafe {
            let target = self.base.add(place * self.stride_bytes);
            copy_short(target, bytes.as_ptr(), bytes.len());
            std::slice::from_raw_parts_mut(target, self.stride_bytes)
        }
    }

    /// Copies consecutive rows, from their byte `theirs` on, each behind its word and to the place
    /// of that.
    pub fn copy_behind(
        &mut self,
        (pages, theirs): (&Pages, usize),
        rows: Range<usize>,
        words: &[u64],
        place: impl Fn(u64) -> usize,
    ) {
        let bytes = pages.stride * 8 - theirs;
        assert!(
            rows.end <= pages.allocated && bytes + 8 == self.stride_bytes,
            "rows that do not fit"
        );
        let (base, stride_bytes, count) = (self.base, self.stride_bytes, self.rows);
        let mut places = [0; PREFETCHED_ROWS];
        let blocks = words.chunks(PREFETCHED_ROWS).zip(rows.step_by(PREFETCHED_ROWS));
        for (words, first) in blocks {
            for (slot, word) in places.iter_mut().zip(words) {
                *slot = place(*word);
                self.prefetch(*slot);
            }
            for ((place, word), row) in places.iter().zip(words).zip(first..) {
                assert!(*place < count && row < pages.allocated, "a row outside its range");
                // SAFETY: the row was checked; for the place as in `copy_row`.
                unsafe {
                    let target = base.add(place * stride_bytes);
                    target.cast::<u64>().write_unaligned(*word);
                    copy_short(target.add(8), pages.row_unchecked(row).add(theirs), bytes);
                }
            }
        }
    }
}

impl Drop for SharedWriter {
    fn drop(&mut self) {
        self.owner.writers.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_and_keep_values() {
        let mut pages = Pages::new(16, 5);
        for row in 0..100usize {
            pages.allocate(row + 1);
            pages.write::<u64>(row, 8, row as u64 * 3);
        }
        assert_eq!(
            pages.gather::<u64>(8, &[0, 31, 32, 99, u64::MAX]).unwrap(),
            vec![0, 93, 96, 297, 0]
        );
        assert!(pages.gather::<u64>(8, &[1 << 40]).is_err());
        pages.write_run(30, 40, 8, (0..40u64).map(|v| v + 1000));
        assert_eq!(pages.read::<u64>(29, 8), 87);
        assert_eq!(pages.read::<u64>(30, 8), 1000);
        assert_eq!(pages.read::<u64>(69, 8), 1039);
        assert_eq!(pages.read::<u64>(70, 8), 210);
    }

    #[test]
    fn rows_that_others_write_are_there_when_they_say_so() {
        let mut pages = Pages::new(16, 5);
        pages.allocate(3);
        pages.reserve(70);
        assert_eq!(pages.allocated(), 3);
        let mut row = 3;
        while row < 66 {
            let (place, rows) = pages.place_mut(row, 66 - row);
            for word in 0..rows * 2 {
                // SAFETY: there is memory for so many rows of two words.
                unsafe { place.cast::<u64>().add(word).write_unaligned((row * 2 + word) as u64) };
            }
            row += rows;
        }
        // SAFETY: the rows from the third on were written to just now.
        unsafe { pages.assume_written(66) };
        pages.allocate(68);
        let found = pages.gather::<u64>(8, &[2, 3, 31, 32, 65, 66, 67]).unwrap();
        assert_eq!(found, vec![0, 7, 63, 65, 131, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn reads_outside_are_caught() {
        let mut pages = Pages::new(16, 5);
        pages.allocate(1);
        pages.read::<u64>(pages.allocated(), 8);
    }

    #[test]
    fn writers_fill_disjoint_ranges_at_once() {
        let (shared, writers) = SharedPages::split(16, &[3, 0, 5]);
        assert!(shared.take().is_none());
        let threads: Vec<_> = writers
            .into_iter()
            .enumerate()
            .map(|(index, mut writer)| {
                std::thread::spawn(move || {
                    for place in 0..writer.rows {
                        let row = writer.copy_row(place, &[index as u8; 16]);
                        row[0] = place as u8;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let pages = shared.take().unwrap();
        assert_eq!(pages.gather::<u8>(0, &[0, 1, 2, 3, 7]).unwrap(), vec![0, 1, 2, 0, 4]);
        assert_eq!(pages.gather::<u8>(15, &[0, 2, 3, 7]).unwrap(), vec![0, 0, 2, 2]);
        assert!(shared.take().is_none());
    }
}
