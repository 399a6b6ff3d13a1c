//! Pages that several tasks fill concurrently.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_vector::prefetch;

use super::{PREFETCHED_ROWS, Pages, copy_short};

/// Pages that several tasks fill concurrently, each its own range of rows.
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
    pub(super) rows: usize,
}

// SAFETY: the range at `base` belongs to this writer alone, and its memory lives as long as `owner`
// holds the pages, which it does until the last writer is dropped.
unsafe impl Send for SharedWriter {}

impl SharedPages {
    /// Creates contiguous pages, split into consecutive ranges of these many rows.
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

    /// Returns the pages; `None` while a writer exists, or if they were taken before.
    pub fn take(&self) -> Option<Pages> {
        if self.writers.load(Ordering::Acquire) != 0 {
            return None;
        }
        lock(&self.pages).take()
    }
}

impl SharedWriter {
    /// Prefetches a place of the range.
    #[inline(always)]
    pub fn prefetch(&self, place: usize) {
        prefetch(self.base.wrapping_add(place.wrapping_mul(self.stride_bytes)));
    }

    /// Copies a row to a place of the range, and returns the copy for patching.
    #[inline(always)]
    pub fn copy_row(&mut self, place: usize, bytes: &[u8]) -> &mut [u8] {
        assert!(place < self.rows && bytes.len() == self.stride_bytes, "a row outside its range");
        // SAFETY: `place` is inside the range, which is this writer's alone; `bytes` cannot overlap
        // with it, because the pages are not readable while a writer exists.
        unsafe {
            let target = self.base.add(place * self.stride_bytes);
            copy_short(target, bytes.as_ptr(), bytes.len());
            std::slice::from_raw_parts_mut(target, self.stride_bytes)
        }
    }

    /// Copies consecutive rows from their byte `theirs` on, each after its word from `words`, to
    /// the place that the word maps to.
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
