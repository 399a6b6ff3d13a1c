//! The leading sort keys that identify a partition.

use tessera_plan::Node;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

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
