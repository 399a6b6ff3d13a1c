//! Tracks which build rows have found a match.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bit per row; set concurrently by all workers.
#[derive(Debug)]
pub struct MatchBitmap {
    words: Vec<AtomicU64>,
}

impl MatchBitmap {
    /// Creates a bitmap for this many rows, without matches.
    pub fn new(rows: usize) -> MatchBitmap {
        MatchBitmap {
            words: std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(64)).collect(),
        }
    }

    /// Bytes of a bitmap for this many rows.
    pub fn bytes(rows: usize) -> usize {
        rows.div_ceil(64) * 8
    }

    /// Records a match of a row.
    #[inline(always)]
    pub fn set(&self, row: u64) {
        let (word, bit) = (&self.words[row as usize / 64], 1 << (row % 64));
        // Most rows are matched more than once or never: reading first keeps the cache line shared.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Returns whether a row has a match.
    #[inline(always)]
    pub fn get(&self, row: u64) -> bool {
        self.words[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1
    }
}
