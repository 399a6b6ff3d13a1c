//! Tuples in the order of one key.

use std::cmp::Ordering;

use arrow::row::Rows;

use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::data::sort::prefix;
use crate::data::sort_keys::KeyEncoder;

/// A validity byte precedes each encoded value.
const VALIDITY_BYTES: usize = 1;

/// The bytes of a key, which compare like the key.
pub(super) type KeyBytes = Box<[u8]>;

/// The tuples of a chunk without NULL keys, ascending by one of their keys.
#[derive(Debug)]
pub(super) struct KeyOrder {
    /// Their numbers in the chunk.
    pub(super) rows: Vec<u32>,
    keys: Keys,
}

/// Keys as values that compare alike.
#[derive(Debug)]
enum Keys {
    /// In the order of the tuples.
    Short(Vec<u64>),
    /// In the order of the tuples.
    Long(Vec<[u64; 2]>),
    /// In the order of the chunk.
    Bytes(Rows),
}

impl KeyOrder {
    /// Sorts the tuples `rows` of a chunk by a key.
    pub(super) fn new(encoder: &KeyEncoder, chunk: &Chunk, rows: &[u32]) -> Result<KeyOrder> {
        let encoded = encoder.encode(chunk)?;
        let bytes = |row: u32| &encoded.row(row as usize).data()[VALIDITY_BYTES..];
        let width = encoder.fixed_bytes().map(|bytes| bytes - VALIDITY_BYTES);
        Ok(match width {
            Some(..=8) => {
                let (rows, keys) = sorted(rows, |row| {
                    let [key] = prefix(bytes(row));
                    key
                });
                KeyOrder { rows, keys: Keys::Short(keys) }
            }
            Some(..=16) => {
                let (rows, keys) = sorted(rows, |row| prefix(bytes(row)));
                KeyOrder { rows, keys: Keys::Long(keys) }
            }
            _ => {
                let mut rows = rows.to_vec();
                rows.sort_by(|a, b| bytes(*a).cmp(bytes(*b)));
                KeyOrder { rows, keys: Keys::Bytes(encoded) }
            }
        })
    }

    /// The number of tuples.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Short(keys) => size_of_val(&**keys),
            Keys::Long(keys) => size_of_val(&**keys),
            Keys::Bytes(keys) => keys.size(),
        };
        size_of_val(&*self.rows) + keys
    }

    /// The smallest and the largest key; `None` without tuples.
    pub(super) fn bounds(&self) -> Option<(KeyBytes, KeyBytes)> {
        let key = |position: usize| -> KeyBytes {
            match &self.keys {
                Keys::Short(keys) => keys[position].to_be_bytes().into(),
                Keys::Long(keys) => keys[position].map(u64::to_be_bytes).concat().into(),
                Keys::Bytes(keys) => keys.row(self.rows[position] as usize).data().into(),
            }
        };
        let last = self.len().checked_sub(1)?;
        Some((key(0), key(last)))
    }

    /// Returns, for each tuple of `other` in its order, how many tuples of this order have a
    /// smaller key; with `or_equal`, an equal one counts, too.
    pub(super) fn count_below(&self, other: &KeyOrder, or_equal: bool) -> Result<Vec<u32>> {
        let (len, count) = (self.len(), other.len());
        Ok(match (&self.keys, &other.keys) {
            (Keys::Short(a), Keys::Short(b)) => {
                merged(len, count, or_equal, |i, j| a[i].cmp(&b[j]))
            }
            (Keys::Long(a), Keys::Long(b)) => merged(len, count, or_equal, |i, j| a[i].cmp(&b[j])),
            (Keys::Bytes(a), Keys::Bytes(b)) => merged(len, count, or_equal, |i, j| {
                a.row(self.rows[i] as usize).cmp(&b.row(other.rows[j] as usize))
            }),
            _ => return Err(Error::internal("keys of different types are compared")),
        })
    }
}

fn sorted<K: Ord + Copy>(rows: &[u32], key: impl Fn(u32) -> K) -> (Vec<u32>, Vec<K>) {
    let mut pairs: Vec<(K, u32)> = rows.iter().map(|row| (key(*row), *row)).collect();
    pairs.sort_by_key(|(key, _)| *key);
    pairs.into_iter().map(|(key, row)| (row, key)).unzip()
}

/// Merges two sorted lists: for each of `count` keys, the number of the `len` others before it.
fn merged(
    len: usize,
    count: usize,
    or_equal: bool,
    compare: impl Fn(usize, usize) -> Ordering,
) -> Vec<u32> {
    let mut at = 0;
    let mut below = Vec::with_capacity(count);
    for key in 0..count {
        at = first_after(at, len, |position| match compare(position, key) {
            Ordering::Less => true,
            Ordering::Equal => or_equal,
            Ordering::Greater => false,
        });
        below.push(at as u32);
    }
    below
}

/// Returns the first position from `from` on for which `is_before` is false. The steps double, so
/// that few keys skip many others cheaply.
fn first_after(from: usize, len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high, mut step) = (from, from, 1);
    while high < len && is_before(high) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = high.min(len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
