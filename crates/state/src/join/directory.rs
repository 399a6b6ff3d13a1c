//! The directory of a join table: where each slot's rows end, with Bloom bits.

use std::sync::atomic::{AtomicU64, Ordering};

use tessera_codegen::RawTable;
use tessera_vector::prefetch;

/// Ways to choose 4 of 16 bits.
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
    // The rest, of 2,048, starts again from the first.
    while found < 2_048 {
        out[found] = out[found - TAGS];
        found += 1;
    }
    out
}

/// The 4 of 16 Bloom bits of a hash.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    TAG_OF[(hash & 2_047) as usize] as u64
}

/// 2^bits slots. Relaxed loads and stores suffice: each slot is written by one task, and the
/// executor orders tasks before whatever reads their output.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<AtomicU64>,
    shift: u32,
}

impl Directory {
    /// The bits a directory for this many rows takes: at least 1, so that a shift by 64 never
    /// happens. Up to an eighth more rows than slots: the parts of what was partitioned have about
    /// a power of two, as often a few more as a few less.
    pub(crate) fn bits_for(rows: usize) -> u32 {
        (rows - rows / 9).next_power_of_two().ilog2().max(1)
    }

    /// Bytes of a directory.
    pub(crate) fn bytes(bits: u32) -> usize {
        ((1usize << bits) + 1) * 8
    }

    pub(crate) fn new(bits: u32) -> Directory {
        // In place: pages of zeros that become memory when, and by whom, they are first written.
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

    /// While building: one more row in the hash's slot.
    #[inline(always)]
    pub(crate) fn count(&self, hash: u64) {
        let entry = &self.entries[self.slot(hash) + 1];
        let value = entry.load(Ordering::Relaxed);
        entry.store((value + (1 << 16)) | tag(hash), Ordering::Relaxed);
    }

    /// While building: turns the counts of some slots into the first row of each; gives the row
    /// behind the last.
    pub(crate) fn sum_up(&self, slots: std::ops::Range<usize>, first_row: u64) -> u64 {
        let mut row = first_row;
        for entry in &self.entries[slots.start + 1..slots.end + 1] {
            let value = entry.load(Ordering::Relaxed);
            entry.store(row << 16 | (value & 0xffff), Ordering::Relaxed);
            row += value >> 16;
        }
        row
    }

    /// While building: the place of the next row of the hash's slot. After the last, the entry is
    /// the slot's end.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> u64 {
        let entry = &self.entries[self.slot(hash) + 1];
        let value = entry.load(Ordering::Relaxed);
        entry.store(value + (1 << 16), Ordering::Relaxed);
        value >> 16
    }

    /// Asks the processor for the entries of a hash.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.entries.as_ptr().wrapping_add(self.slot(hash)));
    }

    /// The table as compiled code reads it, whose first row is there.
    pub(crate) fn raw(&self, rows: *const u8, room: usize) -> RawTable {
        RawTable {
            entries: self.entries.as_ptr().cast(),
            shift: self.shift.into(),
            tags: TAG_OF.as_ptr(),
            rows,
            room: room as u64,
        }
    }

    /// The rows whose hash may be this one: first, and behind the last. Equal when the tag rules
    /// all out.
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
