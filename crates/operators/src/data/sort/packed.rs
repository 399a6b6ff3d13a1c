//! Sorting by the bits in which prefixes differ.

use tessera_context::interrupt::Every;

/// Bits of a row number in a packed prefix.
const ROW_BITS: u32 = u32::BITS;
/// As many equal bits in a row are left out of a packed prefix.
const GAP_BITS: u32 = 8;
/// More tuples than this are sorted with checks for an interrupt.
const ROWS_UNCHECKED: usize = 1 << 21;

/// Packs prefixes with their row numbers into one number each, in the same order: the bits that all
/// have in common are left out. In keys of several columns most bits are.
#[derive(Debug, Default)]
pub(super) struct Packed {
    numbers: Vec<u128>,
}

/// Bits of a word that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    word: usize,
    shift: u32,
    bits: u32,
}

impl Segment {
    #[inline(always)]
    fn of<const W: usize>(self, prefix: &[u64; W]) -> u64 {
        prefix[self.word] >> self.shift & (u64::MAX >> (u64::BITS - self.bits))
    }
}

impl Packed {
    /// The bytes of memory that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<u128>()
    }

    /// Returns the positions of prefixes in their order, equal ones in the order of the source;
    /// `None` if too many bits differ. `in_runs` says that they consist of a few sorted runs.
    pub(super) fn order<'p, const W: usize>(
        &mut self,
        prefixes: impl Iterator<Item = &'p [u64; W]> + Clone,
        in_runs: bool,
    ) -> Option<impl Iterator<Item = u32> + '_> {
        let segments = segments(&differences(prefixes.clone()));
        let bits: u32 = segments.iter().map(|segment| segment.bits).sum();
        if bits + ROW_BITS > u128::BITS {
            return None;
        }
        self.numbers.clear();
        let every = Every::default();
        self.numbers.extend(prefixes.enumerate().map(|(row, prefix)| {
            every.pass();
            let key =
                |key: u128, segment: &Segment| key << segment.bits | u128::from(segment.of(prefix));
            segments.iter().fold(0, key) << ROW_BITS | row as u128
        }));
        if self.numbers.len() > ROWS_UNCHECKED {
            self.numbers.sort_unstable_by(|a, b| {
                every.pass();
                a.cmp(b)
            });
        } else if in_runs {
            // The stable sort merges runs.
            self.numbers.sort();
        } else {
            self.numbers.sort_unstable();
        }
        Some(self.numbers.iter().map(|number| *number as u32))
    }
}

/// The bits in which prefixes differ.
fn differences<'p, const W: usize>(mut prefixes: impl Iterator<Item = &'p [u64; W]>) -> [u64; W] {
    let Some(first) = prefixes.next() else { return [0; W] };
    prefixes.fold([0; W], |differences, prefix| {
        std::array::from_fn(|word| differences[word] | (prefix[word] ^ first[word]))
    })
}

/// Covers these bits, the first ones first.
fn segments(bits: &[u64]) -> Vec<Segment> {
    let mut segments = Vec::new();
    for (word, mut left) in bits.iter().copied().enumerate() {
        while left != 0 {
            let end = u64::BITS - left.leading_zeros();
            let mut shift = end;
            // The next set bit, unless it is far.
            while let Some(next) = (0..shift).rev().find(|bit| left >> bit & 1 == 1)
                && (shift == end || shift - next <= GAP_BITS)
            {
                shift = next;
            }
            segments.push(Segment { word, shift, bits: end - shift });
            left &= (1 << shift) - 1;
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_the_bits_that_differ() {
        let segment = |word, shift, bits| Segment { word, shift, bits };
        assert_eq!(segments(&[0, 0]), []);
        assert_eq!(segments(&[u64::MAX, 1]), [segment(0, 0, 64), segment(1, 0, 1)]);
        assert_eq!(segments(&[0b1000_0000_1001]), [segment(0, 0, 12)]);
        let far = 1 << 63 | 1 << 62 | 1 << 50 | 1 << 48;
        assert_eq!(segments(&[0, far]), [segment(1, 62, 2), segment(1, 48, 3)]);
    }

    #[test]
    fn the_order_is_that_of_prefixes_and_stable() {
        let mut numbers = tessera_context::testing::Numbers::new(3);
        for (limits, fits) in
            [([9, 1, 500], true), ([2, 3, 1], true), ([1 << 40, 7, 1 << 60], false)]
        {
            let prefixes: Vec<[u64; 3]> = (0..2_000)
                .map(|_| limits.map(|limit| numbers.below(limit) << 2 | 1 << 63))
                .collect();
            let mut expected: Vec<u32> = (0..2_000).collect();
            expected.sort_by_key(|row| prefixes[*row as usize]);
            for in_runs in [false, true] {
                let mut packed = Packed::default();
                let found = packed.order(prefixes.iter(), in_runs).map(Iterator::collect::<Vec<_>>);
                assert_eq!(found, fits.then(|| expected.clone()), "{limits:?}");
            }
        }
    }
}
