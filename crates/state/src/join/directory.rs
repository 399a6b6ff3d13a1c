//! The directory of a join table: the end of each slot's rows, with Bloom bits.

use std::sync::atomic::{AtomicU64, Ordering};

use tessera_codegen::RawTable;
use tessera_vector::prefetch;

/// The number of ways to choose 4 of 16 bits.
const TAGS: usize = 1_820;

/// The tag of each value of the lowest 11 bits of a hash: 4 of 16 bits set.
static TAG_OF: [u16; 2_048] = tags();

const fn tags() -> [u16; 2_048] {
    let mut out = [0u16; 2_048];
    let (mut found, mut bits) = (0, 0u32);
    while bits < 1 << 16 {
        if bits.count_ones() == 4 {
            out[found] = bits as u16;
            found += 1;
        }
        bits += 1;
    }
    // The remaining ones of 2,048 repeat from the first.
    while found < 2_048 {
        out[found] = out[found - TAGS];
        found += 1;
    }
    out
}

/// Returns the 4 of 16 Bloom bits of a hash.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    TAG_OF[(hash & 2_047) as usize] as u64
}

/// 2^bits slots. Relaxed loads and stores suffice: each slot is written by one task, and the
/// executor orders tasks before readers of their output.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<AtomicU64>,
    shift: u32,
}

impl Directory {
    /// Returns the bits of a directory for this many rows: at least 1, so that a shift by 64 never
    /// happens. Allows an eighth more rows than slots: the sizes of partitions vary around a power
    /// of two.
    pub(crate) fn bits_for(rows: usize) -> u32 {
        (rows - rows / 9).next_power_of_two().ilog2().max(1)
    }

    /// Bytes of a directory.
    pub(crate) fn bytes(bits: u32) -> usize {
        ((1usize << bits) + 1) * 8
    }

    pub(crate) fn new(bits: u32) -> Directory {
        // Converted in place: a zeroed page becomes resident when a worker first writes it, near
        // that worker.
        let entries = vec![0; (1 << bits) + 1].into_iter().map(AtomicU64::new).collect();
        Directory { entries, shift: 64 - bits }
    }

    pub(crate) fn slots(&self) -> usize {
        self.entries.len() - 1
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.len() * 8
    }

    #[inline(always)]
    pub(crate) fn slot(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// While building: adds a row to the hash's slot.
    #[inline(always)]
    pub(crate) fn count(&self, hash: u64) {
        let entry = &self.entries[self.slot(hash) + 1];
        let value = entry.load(Ordering::Relaxed);
        entry.store((value + (1 << 16)) | tag(hash), Ordering::Relaxed);
    }

    /// While building: turns the counts of some slots into the first row of each; returns the row
    /// after the last.
    pub(crate) fn sum_up(&self, slots: std::ops::Range<usize>, first_row: u64) -> u64 {
        let mut row = first_row;
        for entry in &self.entries[slots.start + 1..slots.end + 1] {
            let value = entry.load(Ordering::Relaxed);
            entry.store(row << 16 | (value & 0xffff), Ordering::Relaxed);
            row += value >> 16;
        }
        row
    }

    /// While building: returns the place of the next row of the hash's slot. After the last row,
    /// the entry is the slot's end.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> u64 {
        let entry = &self.entries[self.slot(hash) + 1];
        let value = entry.load(Ordering::Relaxed);
        entry.store(value + (1 << 16), Ordering::Relaxed);
        value >> 16
    }

    /// Prefetches the entries of a hash.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.entries.as_ptr().wrapping_add(self.slot(hash)));
    }

    /// The table for compiled code, with its first row at `rows`.
    pub(crate) fn raw(&self, rows: *const u8, room: usize) -> RawTable {
        RawTable {
            entries: self.entries.as_ptr().cast(),
            shift: self.shift.into(),
            tags: TAG_OF.as_ptr(),
            rows,
            room: room as u64,
        }
    }

    /// Returns the range of rows that may have this hash: the first, and the one after the last.
    /// Empty if the tag excludes all.
    #[inline(always)]
    pub(crate) fn range(&self, hash: u64) -> (u64, u64) {
        let slot = self.slot(hash);
        let (before, entry) = match self.entries.get(slot..slot + 2) {
            Some(pair) => (pair[0].load(Ordering::Relaxed), pair[1].load(Ordering::Relaxed)),
            None => (0, 0),
        };
        let begin = before >> 16;
        (begin, if tag(hash) & !entry == 0 { entry >> 16 } else { begin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_four_bits_and_differ() {
        assert!(TAG_OF.iter().all(|tag| tag.count_ones() == 4));
        let mut distinct = TAG_OF.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), TAGS);
    }
}
