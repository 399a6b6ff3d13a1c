//! A Bloom filter of hashes with blocks of one register: a test is one memory access and one
//! comparison.
//!
//! Source: Lang, Neumann, Kemper, Boncz, *Performance-optimal filtering: Bloom overtakes Cuckoo at
//! high throughput*, VLDB 2019 (register-blocked Bloom filters). A block is 64 bits; the top bits
//! of the hash are its number, the lowest 24 bits the places of 4 bits in it. With 8 to 16 bits per
//! key, 1 to 4 % of other keys pass.

use tessera_types::{Error, Result};

use super::passing;

/// The fewest bits per key.
const BITS_OF_KEY: usize = 8;
/// The most blocks: the number of a block and the places in it must use different bits of the hash,
/// and filters of gigabytes are useless.
const BLOCKS_MAX: usize = 1 << 27;

/// A register-blocked Bloom filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bloom {
    /// 2^n blocks, at least 2, so that no shift is by 64 bits.
    blocks: Vec<u64>,
    shift: u32,
}

#[inline(always)]
fn places(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

impl Bloom {
    /// Returns the number of blocks of a filter for this many keys.
    pub fn blocks_for(keys: usize) -> usize {
        let blocks = keys.min(BLOCKS_MAX * 64 / BITS_OF_KEY).div_ceil(64 / BITS_OF_KEY);
        blocks.next_power_of_two().max(2)
    }

    /// Returns the largest number of blocks of a filter of at most this many bytes.
    pub fn blocks_within(bytes: usize) -> usize {
        let blocks = (bytes / 8).clamp(2, BLOCKS_MAX);
        1 << blocks.ilog2()
    }

    /// Creates a filter that no key passes.
    pub fn new(blocks: usize) -> Bloom {
        Bloom::of(vec![0; blocks.next_power_of_two().max(2)])
    }

    fn of(blocks: Vec<u64>) -> Bloom {
        let shift = 64 - blocks.len().ilog2();
        Bloom { blocks, shift }
    }

    /// Adds a key.
    #[inline(always)]
    pub fn add(&mut self, hash: u64) {
        let block = (hash >> self.shift) as usize;
        if let Some(block) = self.blocks.get_mut(block) {
            *block |= places(hash);
        }
    }

    /// Returns whether a key may have been added.
    #[inline(always)]
    pub fn may_contain(&self, hash: u64) -> bool {
        let places = places(hash);
        self.blocks.get((hash >> self.shift) as usize).is_some_and(|block| block & places == places)
    }

    /// Returns the positions of hashes whose key may have been added, ascending.
    pub fn select(&self, hashes: &[u64]) -> Vec<u32> {
        #[cfg(target_arch = "x86_64")]
        if let Some(positions) = super::avx512::passing(&self.blocks, self.shift, hashes) {
            return positions;
        }
        passing(hashes.len(), hashes.iter().map(|hash| self.may_contain(*hash)))
    }

    /// Bytes of a filter of this many blocks.
    pub fn bytes_of(blocks: usize) -> usize {
        blocks * 8
    }

    /// Returns whether no key has been added.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| *block == 0)
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        Bloom::bytes_of(self.blocks.len())
    }

    /// Adds all keys of another filter. Each block of the smaller one maps to several of the larger
    /// one.
    pub fn merge(&mut self, other: &Bloom) {
        if other.blocks.len() > self.blocks.len() {
            let smaller = std::mem::replace(self, other.clone());
            return self.merge(&smaller);
        }
        let times = self.blocks.len() / other.blocks.len();
        for (block, added) in self.blocks.chunks_mut(times).zip(&other.blocks) {
            block.iter_mut().for_each(|block| *block |= added);
        }
    }

    /// Encodes the blocks, low byte first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.blocks.iter().flat_map(|block| block.to_le_bytes()).collect()
    }

    /// Decodes the bytes of [`Bloom::to_bytes`].
    ///
    /// # Errors
    /// The bytes do not encode a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bloom> {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() < 2
            || !words.len().is_power_of_two()
            || words.len() > BLOCKS_MAX
            || !rest.is_empty()
        {
            return Err(Error::data(format!(
                "{} bytes do not encode a key filter; use the output of a key_filter",
                bytes.len()
            )));
        }
        Ok(Bloom::of(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use tessera_vector::hash::{SEED, combine};

    use super::*;

    fn hashes(range: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        range.map(|key| combine(SEED, key))
    }

    fn filter(range: std::ops::Range<u64>) -> Bloom {
        let mut bloom = Bloom::new(Bloom::blocks_for((range.end - range.start) as usize));
        hashes(range).for_each(|hash| bloom.add(hash));
        bloom
    }

    #[test]
    fn those_that_may_be_there_are_selected() {
        for (keys, len) in [(0, 9), (3, 0), (3, 1), (40, 7), (100, 8), (100, 65), (5_000, 10_001)] {
            let bloom = filter(0..keys);
            let hashes: Vec<u64> = hashes(0..len).collect();
            let expected =
                passing(hashes.len(), hashes.iter().map(|hash| bloom.may_contain(*hash)));
            assert!(expected.len() as u64 >= keys.min(len));
            assert_eq!(bloom.select(&hashes), expected, "{keys} keys, {len} hashes");
        }
    }

    #[test]
    fn what_was_added_passes_and_little_else() {
        for keys in [0, 1, 7, 100, 5_000, 65_536, 100_000] {
            let bloom = filter(0..keys);
            assert!(hashes(0..keys).all(|hash| bloom.may_contain(hash)), "{keys} keys");
            assert_eq!(bloom.is_empty(), keys == 0);
            let others =
                hashes(1_000_000..1_100_000).filter(|hash| bloom.may_contain(*hash)).count();
            assert!(others < 6_000, "{others} of 100,000 others pass a filter of {keys} keys");
        }
    }

    #[test]
    fn filters_of_any_size_merge() {
        for (a, b) in [(0..10, 10..5_000), (10..5_000, 0..10), (0..0, 3..9), (0..900, 500..1_000)] {
            let mut both = filter(a.clone());
            both.merge(&filter(b.clone()));
            assert!(hashes(a).chain(hashes(b)).all(|hash| both.may_contain(hash)));
        }
    }

    #[test]
    fn they_cross_as_bytes() {
        let bloom = filter(0..1_000);
        assert_eq!(Bloom::from_bytes(&bloom.to_bytes()).unwrap(), bloom);
        for len in [0, 8, 15, 24, 17] {
            assert!(Bloom::from_bytes(&vec![1; len]).is_err(), "{len} bytes");
        }
    }
}
