//! An exact filter: a bit for each number between the least and the greatest key. A test is a
//! subtraction and one bit test.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use tessera_types::{Error, Result};
use tessera_vector::hash::{SEED, combine};
use tessera_vector::physical::{Physical, raw_values};

use super::bloom::Bloom;
use super::passing;

/// The largest filter, as a multiple of the bytes of a Bloom filter of the same keys.
const TIMES_BLOOM_MAX: usize = 8;
/// A filter of at most this many bytes is always allowed: it stays in the cache.
const BYTES_FREE: usize = 64 << 10;
/// The largest filter in any case. Keys of tables that were loaded in order arrive in order, so
/// that the accessed words are in the cache, while a Bloom filter scatters them.
const BYTES_MAX: usize = 16 << 20;

/// Bytes before the words: a marker of the format, and the least key.
const HEADER_BYTES: usize = 9;
const MARK: u8 = 1;

/// A set of integer keys of 32 or 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    least: i64,
    /// The last word is 0: it stands for all numbers beyond the greatest key.
    words: Vec<u64>,
}

/// Calls a function with the numbers of an array of such keys; `None` for another type.
macro_rules! each_number {
    ($array:expr, $values:ident => $body:expr) => {
        match width($array.data_type()) {
            Some(Physical::Bits64) => {
                let values = raw_values::<i64>($array);
                let $values = values.iter().copied();
                Some($body)
            }
            Some(_) => {
                let values = raw_values::<i32>($array);
                let $values = values.iter().map(|value| i64::from(*value));
                Some($body)
            }
            None => None,
        }
    };
}

fn width(data_type: &DataType) -> Option<Physical> {
    if matches!(data_type, DataType::UInt32 | DataType::UInt64) {
        return None;
    }
    Physical::of(data_type).ok().filter(|of| matches!(of, Physical::Bits32 | Physical::Bits64))
}

impl Exact {
    /// Creates an empty filter for keys between two one-element arrays, for which a Bloom filter
    /// would take `bloom_bytes`; `None` if they are not such numbers, or it would be too large.
    pub fn between(least: &ArrayRef, greatest: &ArrayRef, bloom_bytes: usize) -> Option<Exact> {
        if least.is_empty() || greatest.is_empty() || least.is_null(0) || greatest.is_null(0) {
            return None;
        }
        let least = each_number!(least, values => values.min())??;
        let greatest = each_number!(greatest, values => values.max())??;
        let bytes_max = (bloom_bytes * TIMES_BLOOM_MAX).clamp(BYTES_FREE, BYTES_MAX);
        Exact::of_range(least, greatest, bytes_max)
    }

    fn of_range(least: i64, greatest: i64, bytes_max: usize) -> Option<Exact> {
        let words = usize::try_from(greatest.checked_sub(least)?).ok()? / 64 + 2;
        (words * 8 <= bytes_max).then(|| Exact { least, words: vec![0; words] })
    }

    /// Adds the values of an array without NULLs; ignores values outside the bounds.
    pub fn add(&mut self, array: &ArrayRef) {
        let _ = each_number!(array, values => values.for_each(|value| self.set(value)));
    }

    fn set(&mut self, value: i64) {
        let place = value.wrapping_sub(self.least) as u64;
        let last = self.words.len() - 1;
        if let Some(word) = self.words[..last].get_mut((place / 64) as usize) {
            *word |= 1 << (place % 64);
        }
    }

    /// Returns the positions of the values of an array that are keys, ascending; `None` for another
    /// type.
    pub fn select(&self, array: &ArrayRef) -> Option<Vec<u32>> {
        let (words, last) = (&self.words[..], self.words.len() - 1);
        let is_key = |value: i64| {
            let place = value.wrapping_sub(self.least) as u64;
            words[((place / 64) as usize).min(last)] >> (place % 64) & 1 == 1
        };
        let mut positions =
            each_number!(array, values => passing(array.len(), values.map(is_key)))?;
        if let Some(nulls) = array.nulls() {
            positions.retain(|position| nulls.is_valid(*position as usize));
        }
        Some(positions)
    }

    fn keys(&self) -> impl Iterator<Item = i64> {
        let of_word = |(at, word): (usize, &u64)| {
            let (word, first) = (*word, self.least.wrapping_add(at as i64 * 64));
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        };
        self.words.iter().enumerate().flat_map(of_word)
    }

    fn greatest(&self) -> i64 {
        self.least.saturating_add((self.words.len() as i64 - 1) * 64 - 1)
    }

    /// Returns the keys of both; `None` if that would be too large.
    pub fn merged(&self, other: &Exact) -> Option<Exact> {
        let (least, greatest) =
            (self.least.min(other.least), self.greatest().max(other.greatest()));
        let mut both = Exact::of_range(least, greatest, BYTES_MAX)?;
        self.keys().chain(other.keys()).for_each(|key| both.set(key));
        Some(both)
    }

    /// Returns a Bloom filter of the same keys, which are of this type.
    pub fn to_bloom(&self, data_type: &DataType) -> Bloom {
        let is_short = matches!(width(data_type), Some(Physical::Bits32));
        let count: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        let mut bloom = Bloom::new(Bloom::blocks_for(count as usize));
        for key in self.keys() {
            let word = if is_short { u64::from(key as u32) } else { key as u64 };
            bloom.add(combine(SEED, word));
        }
        bloom
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Encodes the filter, in a number of bytes that no [`Bloom`] has.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![MARK];
        bytes.extend(self.least.to_le_bytes());
        bytes.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    /// Decodes the bytes of [`Exact::to_bytes`]; returns `None` for those of a Bloom filter.
    ///
    /// # Errors
    /// The bytes encode neither such a filter nor a Bloom filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Exact>> {
        let Some((header, words)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let (words, rest) = words.as_chunks::<8>();
        let [MARK, least @ ..] = header else { return Ok(None) };
        if !rest.is_empty() {
            return Ok(None);
        }
        let mut words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        match words.last_mut() {
            Some(last) if words_fit(bytes) => *last = 0,
            _ => {
                return Err(Error::data(format!(
                    "{} bytes do not encode a key filter",
                    bytes.len()
                )));
            }
        }
        Ok(Some(Exact { least: i64::from_le_bytes(*least), words }))
    }
}

fn words_fit(bytes: &[u8]) -> bool {
    bytes.len() - HEADER_BYTES <= BYTES_MAX
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array};

    use tessera_vector::hash::hash_columns;

    use super::*;

    fn long(values: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values))
    }

    fn exact(keys: &[i64]) -> Option<Exact> {
        let ends = [keys.iter().min()?, keys.iter().max()?].map(|end| long([*end]));
        let mut exact = Exact::between(&ends[0], &ends[1], 0)?;
        exact.add(&long(keys.iter().copied()));
        Some(exact)
    }

    #[test]
    fn keys_pass_and_nothing_else() {
        for keys in [
            &[5][..],
            &[0, 63, 64, 65],
            &[-3, 200, 100_000],
            &[i64::MIN, i64::MIN + 64],
            &[i64::MAX],
        ] {
            let filter = exact(keys).unwrap();
            let near = keys
                .iter()
                .flat_map(|key| [*key, key.wrapping_add(1), key.wrapping_sub(1), key ^ 64]);
            let mut all: Vec<i64> = near.chain([i64::MIN, i64::MAX, 0]).collect();
            all.sort_unstable();
            let passed = filter.select(&long(all.iter().copied())).unwrap();
            let wanted = (0..all.len() as u32).filter(|at| keys.contains(&all[*at as usize]));
            assert_eq!(passed, wanted.collect::<Vec<_>>(), "{keys:?}");
            assert_eq!(Exact::from_bytes(&filter.to_bytes()).unwrap(), Some(filter));
        }
        assert_eq!(exact(&[0, 1 << 40]), None);
        assert_eq!(exact(&[i64::MIN, i64::MAX]), None);
    }

    #[test]
    fn null_is_no_key() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(5), Some(0)]));
        assert_eq!(exact(&[0, 5]).unwrap().select(&array).unwrap(), [1, 2]);
    }

    #[test]
    fn short_numbers_are_keys_too() {
        let values = (0..20).map(|at| [i32::MIN, -71, -70, 4, i32::MAX][at % 5]);
        let array: ArrayRef = Arc::new(Date32Array::from_iter_values(values));
        let wanted: Vec<u32> = (0..20).filter(|at| matches!(at % 5, 2 | 3)).collect();
        assert_eq!(exact(&[-70, 4]).unwrap().select(&array).unwrap(), wanted);
    }

    #[test]
    fn parts_merge_and_become_bloom_filters() {
        let (a, b) = (exact(&[-70, 4]).unwrap(), exact(&[4, 900]).unwrap());
        assert_eq!(a.merged(&b).unwrap().keys().collect::<Vec<_>>(), [-70, 4, 900]);
        assert_eq!(a.merged(&exact(&[1 << 50]).unwrap()), None);
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![-70, 4]));
        for array in [long([-70, 4]), dates] {
            let bloom = a.to_bloom(array.data_type());
            let mut hashes = Vec::new();
            hash_columns(&[array.into()], 2, &mut hashes).unwrap();
            assert!(hashes.iter().all(|hash| bloom.may_contain(*hash)));
        }
    }

    #[test]
    fn other_bytes_are_none() {
        let bloom = Bloom::new(4);
        assert_eq!(Exact::from_bytes(&bloom.to_bytes()).unwrap(), None);
        assert!(Exact::from_bytes(&[MARK, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
