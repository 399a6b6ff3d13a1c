//! Which build rows have found a match.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bit per row; set by all workers at once.
#[derive(Debug)]
pub struct Matched {
    words: Vec<AtomicU64>,
}

impl Matched {
    /// No match yet, for this many rows.
    pub fn new(rows: usize) -> Matched {
        Matched {
            words: std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(64)).collect(),
        }
    }

    /// Bytes a bitmap for this many rows takes.
    pub fn bytes(rows: usize) -> usize {
        rows.div_ceil(64) * 8
    }

    /// A row has found a match.
    #[inline(always)]
    pub fn set(&self, row: u64) {
        let (word, bit) = (&self.words[row as usize / 64], 1 << (row % 64));
        // Most rows are matched more than once or never: reading first keeps the line shared.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a row has.
    #[inline(always)]
    pub fn get(&self, row: u64) -> bool {
        self.words[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1
    }
}
