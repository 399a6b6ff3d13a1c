//! The pairs of a chunk of the stream and a block of the side, in batches.

use tessera_rows::Candidates;
use tessera_types::{Error, Result};

use super::comparison::Comparison;
use super::side::{BlockOrders, Orders};

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// What a batch needs of the pairs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The most pairs of a batch.
    pub(super) pairs: usize,
    /// Whether one pair of a stream tuple is enough.
    pub(super) once: bool,
    /// Marks the stream tuples without further pairs; empty if there are none.
    pub(super) done: &'a [bool],
}

impl Wanted<'_> {
    fn is_done(&self, row: u32) -> bool {
        self.done.get(row as usize).copied().unwrap_or(false)
    }
}

/// The rest of the pairs.
#[derive(Debug)]
pub(super) enum PairCursor {
    Ranges(RangeCursor),
    Bits(BitCursor),
}

impl PairCursor {
    /// Prepares the pairs that satisfy one or two comparisons.
    pub(super) fn new(
        stream: &Orders,
        side: &BlockOrders,
        comparisons: &[Comparison],
    ) -> Result<PairCursor> {
        let first = comparisons[0];
        let below = side.orders.first.count_below(&stream.first, first.counts_equal())?;
        let (Some(of_stream), Some(of_side), Some(second)) =
            (&stream.second, &side.orders.second, comparisons.get(1))
        else {
            return Ok(PairCursor::Ranges(RangeCursor { below, first, next: 0, taken: 0 }));
        };
        let rows = stream.first.rows.iter().max().map_or(0, |row| *row as usize + 1);
        let mut below_of_row = vec![0; rows];
        for (row, below) in stream.first.rows.iter().zip(&below) {
            below_of_row[*row as usize] = *below;
        }
        let len = of_side.len();
        Ok(PairCursor::Bits(BitCursor {
            first,
            second: *second,
            below_first: of_stream.rows.iter().map(|row| below_of_row[*row as usize]).collect(),
            below_second: of_side.count_below(of_stream, second.counts_equal())?,
            bits: Bits::new(len),
            filled: if second.is_below { len } else { 0 },
            next: 0,
            at: None,
        }))
    }

    /// Appends the next pairs; returns whether all have been returned.
    pub(super) fn next(
        &mut self,
        stream: &Orders,
        side: &BlockOrders,
        wanted: Wanted<'_>,
        pairs: &mut Candidates,
    ) -> Result<bool> {
        match self {
            PairCursor::Ranges(ranges) => Ok(ranges.next(stream, side, wanted, pairs)),
            PairCursor::Bits(bits) => {
                let of_stream = stream.second.as_ref();
                let of_stream = of_stream.ok_or_else(|| Error::internal("a missing second key"))?;
                Ok(bits.next(&of_stream.rows, side, wanted, pairs))
            }
        }
    }
}

/// One comparison: the matches of a stream tuple are a range of the side's order.
#[derive(Debug)]
pub(super) struct RangeCursor {
    first: Comparison,
    /// For each stream tuple in its order: the keys of the side below its own.
    below: Vec<u32>,
    /// The current stream tuple, and how many of its pairs have been returned.
    next: usize,
    taken: usize,
}

impl RangeCursor {
    fn next(
        &mut self,
        stream: &Orders,
        side: &BlockOrders,
        wanted: Wanted<'_>,
        pairs: &mut Candidates,
    ) -> bool {
        let matches = &side.orders.first.rows;
        while let Some(row) = stream.first.rows.get(self.next) {
            let range = self.first.matches(self.below[self.next], matches.len());
            let mut left = &matches[range][self.taken..];
            if wanted.is_done(*row) {
                left = &[];
            } else if wanted.once {
                left = &left[..left.len().min(1)];
            }
            let room = wanted.pairs.saturating_sub(pairs.len()).min(left.len());
            pairs.rows.extend(left[..room].iter().map(|match_row| u64::from(*match_row)));
            pairs.positions.extend(std::iter::repeat_n(*row, room));
            if room < left.len() {
                self.taken += room;
                return false;
            }
            (self.next, self.taken) = (self.next + 1, 0);
        }
        true
    }
}

/// Two comparisons: IEJoin (Khayyat et al., PVLDB 8(13), 2015). Stream tuples are visited in the
/// order of their second key. The bits of the side's tuples that satisfy the second comparison are
/// then only ever set, and those set within the range of the first comparison are the matches.
#[derive(Debug)]
pub(super) struct BitCursor {
    first: Comparison,
    second: Comparison,
    /// For each stream tuple in its second order: the first keys of the side below its own.
    below_first: Vec<u32>,
    /// The same for second keys.
    below_second: Vec<u32>,
    /// One bit for each tuple of the side, in its first order.
    bits: Bits,
    /// The position in the side's second order up to which, or from which on, bits are set.
    filled: usize,
    /// The current stream tuple, counted in the direction of the visits.
    next: usize,
    /// Where the search for its matches goes on; `None` before it has begun.
    at: Option<usize>,
}

impl BitCursor {
    fn next(
        &mut self,
        rows: &[u32],
        side: &BlockOrders,
        wanted: Wanted<'_>,
        pairs: &mut Candidates,
    ) -> bool {
        let matches = &side.orders.first.rows;
        while self.next < rows.len() {
            // The matches of a smaller key of the stream include those of a larger one.
            let tuple = if self.second.is_below { rows.len() - 1 - self.next } else { self.next };
            self.fill(self.below_second[tuple] as usize, &side.places);
            let (row, range) =
                (rows[tuple], self.first.matches(self.below_first[tuple], matches.len()));
            let mut at = self.at.unwrap_or(range.start);
            if wanted.is_done(row) {
                at = range.end;
            }
            while let Some(place) = self.bits.next_set(at, range.end) {
                if pairs.len() >= wanted.pairs {
                    self.at = Some(place);
                    return false;
                }
                pairs.push(u64::from(matches[place]), row);
                at = if wanted.once { range.end } else { place + 1 };
            }
            (self.next, self.at) = (self.next + 1, None);
        }
        true
    }

    /// Sets the bits of the tuples that satisfy the second comparison with the current key.
    fn fill(&mut self, below: usize, places: &[u32]) {
        let more = match self.second.is_below {
            true => below.min(self.filled)..self.filled,
            false => self.filled..below.max(self.filled),
        };
        self.filled = if self.second.is_below { more.start } else { more.end };
        places[more].iter().for_each(|place| self.bits.set(*place as usize));
    }
}

/// A bitmap, and a coarser one whose bits say which of its words are not zero.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    coarse: Vec<u64>,
}

impl Bits {
    fn new(len: usize) -> Bits {
        let words = len.div_ceil(WORD);
        Bits { words: vec![0; words], coarse: vec![0; words.div_ceil(WORD)] }
    }

    #[inline(always)]
    fn set(&mut self, bit: usize) {
        let word = bit / WORD;
        self.words[word] |= 1 << (bit % WORD);
        self.coarse[word / WORD] |= 1 << (word % WORD);
    }

    /// Returns the first bit that is set from `from` up to, not including, `end`.
    #[inline(always)]
    fn next_set(&self, from: usize, end: usize) -> Option<usize> {
        if from >= end {
            return None;
        }
        let word = from / WORD;
        let rest = self.words[word] >> (from % WORD);
        let found = match rest {
            0 => {
                let word = next_set_in(&self.coarse, word + 1)?;
                word * WORD + self.words[word].trailing_zeros() as usize
            }
            rest => from + rest.trailing_zeros() as usize,
        };
        Some(found).filter(|found| *found < end)
    }
}

/// Returns the first bit that is set in some words from `from` on.
fn next_set_in(words: &[u64], from: usize) -> Option<usize> {
    let word = from / WORD;
    let rest = words.get(word)? >> (from % WORD);
    if rest != 0 {
        return Some(from + rest.trailing_zeros() as usize);
    }
    let after = words.iter().enumerate().skip(word + 1);
    let (word, bits) = after.into_iter().find(|(_, bits)| **bits != 0)?;
    Some(word * WORD + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn bits_are_found_across_empty_words() {
        let len = 10_000;
        let set = [0, 63, 64, 191, 192, 4_095, 4_096, 9_000, 9_999];
        let mut bits = Bits::new(len);
        set.iter().for_each(|bit| bits.set(*bit));
        for from in 0..=len {
            for end in [64, 4_096, 9_001, len] {
                let expected = set.iter().copied().find(|bit| (from..end).contains(bit));
                assert_eq!(bits.next_set(from, end), expected, "from {from} to {end}");
            }
        }
    }
}
