//! The leading sort keys that identify a partition.

use std::sync::Arc;

use tessera_plan::Node;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use super::runs::{Entry, is_whole};
use crate::data::sort_keys::KeyEncoder;

/// Encodes the leading sort keys. The result is a prefix of the encoded sort key, because the
/// encoding of several keys is that of each, one after the other.
#[derive(Debug)]
pub(in crate::data) struct PartitionKeys {
    /// `None` if all tuples are one partition.
    encoder: Option<KeyEncoder>,
}

impl PartitionKeys {
    /// Takes the first `keys` sort keys of a node.
    pub(super) fn new(node: &Node, tuple: &Tuple, keys: usize) -> Result<PartitionKeys> {
        let encoder = match keys {
            0 => None,
            keys => Some(KeyEncoder::leading(node, tuple, keys)?),
        };
        Ok(PartitionKeys { encoder })
    }

    /// Returns the encoded keys of the first tuple.
    pub(in crate::data) fn key(&self, chunk: &Chunk) -> Result<Box<[u8]>> {
        match &self.encoder {
            None => Ok(Box::default()),
            Some(encoder) => Ok(encoder.encode(&chunk.slice(0, 1))?.row(0).data().into()),
        }
    }
}

/// Drops tuples beyond the first ones of each partition.
#[derive(Debug)]
pub(super) struct PartitionLimit {
    keys: Arc<PartitionKeys>,
    limit: usize,
}

impl PartitionLimit {
    pub(super) fn new(keys: &Arc<PartitionKeys>, limit: usize) -> PartitionLimit {
        PartitionLimit { keys: keys.clone(), limit }
    }

    /// The length of the encoded keys, if all have the same.
    fn key_bytes(&self) -> Option<usize> {
        self.keys.encoder.as_ref().map_or(Some(0), KeyEncoder::fixed_bytes)
    }

    /// Drops sorted entries of tuples.
    pub(super) fn retain<const W: usize>(
        &self,
        entries: &mut Vec<Entry<W>>,
        tuples: &Chunk,
    ) -> Result<()> {
        match &self.keys.encoder {
            Some(encoder) if !is_whole(self.key_bytes(), W) => {
                let keys = encoder.encode(tuples)?;
                let is_same = |a: &Entry<W>, b: &Entry<W>| {
                    keys.row(a.row as usize) == keys.row(b.row as usize)
                };
                retain_first(entries, self.limit, is_same);
            }
            _ => self.retain_of_prefixes(entries),
        }
        Ok(())
    }

    /// Drops sorted entries if their prefixes tell partitions apart.
    pub(super) fn retain_of_prefixes<const W: usize>(&self, entries: &mut Vec<Entry<W>>) {
        let bytes = self.key_bytes();
        if let Some(bytes) = bytes.filter(|_| is_whole(bytes, W)) {
            let mask: [u64; W] = std::array::from_fn(|word| {
                let inside = bytes.saturating_sub(word * size_of::<u64>()).min(size_of::<u64>());
                u64::MAX.checked_shl(64 - 8 * inside as u32).unwrap_or(0)
            });
            let is_same = |a: &Entry<W>, b: &Entry<W>| {
                (0..W).all(|word| (a.prefix[word] ^ b.prefix[word]) & mask[word] == 0)
            };
            retain_first(entries, self.limit, is_same);
        }
    }
}

/// Retains the first entries of each run of entries that are the same.
fn retain_first<const W: usize>(
    entries: &mut Vec<Entry<W>>,
    limit: usize,
    is_same: impl Fn(&Entry<W>, &Entry<W>) -> bool,
) {
    let (mut last, mut count): (Option<Entry<W>>, usize) = (None, 0);
    entries.retain(|entry| {
        count = if last.is_some_and(|last| is_same(&last, entry)) { count + 1 } else { 1 };
        last = Some(*entry);
        count <= limit
    });
}
