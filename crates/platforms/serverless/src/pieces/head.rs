//! The head of a sender's parts.
//!
//! The format: a magic word, the number of the attempt, the numbers of parts and groups, then three
//! words per part and group as in an index. Words are little-endian.

use tessera_types::{Error, Result};

use crate::object::{GroupSummary, Index};

const MAGIC: u64 = u64::from_le_bytes(*b"tessera+");
const START_WORDS: usize = 4;

/// A decoded head.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) attempt: u64,
    /// The row groups of each part.
    pub(crate) parts: Vec<Index>,
}

pub(crate) fn bytes<'a>(
    attempt: u64,
    groups: usize,
    parts: impl ExactSizeIterator<Item = &'a Index>,
) -> Vec<u8> {
    let start = [MAGIC, attempt, parts.len() as u64, groups as u64];
    start.into_iter().chain(parts.flat_map(Index::words)).flat_map(u64::to_le_bytes).collect()
}

impl Head {
    /// Reads a head of `size` bytes with this many groups per part from its first bytes; `None` if
    /// these are not all of it.
    ///
    /// # Errors
    /// The bytes are not the beginning of a valid head.
    pub(crate) fn read(bytes: &[u8], size: u64, groups: usize) -> Result<Option<Head>> {
        let damaged = || Error::data("damaged exchange object: invalid head");
        let words = bytes.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let (Some(MAGIC), Some(attempt), Some(parts), Some(found)) =
            (word(0), word(1), word(2), word(3))
        else {
            return Err(damaged());
        };
        let of_part = groups * GroupSummary::WORDS;
        let wanted = parts.checked_mul(of_part as u64 * 8);
        let wanted = wanted.and_then(|len| len.checked_add(START_WORDS as u64 * 8));
        if found != groups as u64 || wanted != Some(size) {
            return Err(damaged());
        }
        if (bytes.len() as u64) < size {
            return Ok(None);
        }
        let words: Vec<u64> =
            words.iter().skip(START_WORDS).map(|word| u64::from_le_bytes(*word)).collect();
        Ok(Some(Head {
            attempt,
            parts: words.chunks_exact(of_part).map(Index::of_words).collect(),
        }))
    }
}
