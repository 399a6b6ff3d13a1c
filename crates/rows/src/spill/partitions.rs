//! Spills tuples in partitions by the hash of their keys.

use std::sync::{Arc, Mutex};

use tessera_context::{Context, Reservation, lock};
use tessera_types::Result;

use super::file::SpillFile;
use super::tuples::{TupleBlock, write_rows};
use crate::{ResolvedColumns, RowLayout, Rows, RowsBuilder};

/// The number of bits at the top of a hash that select a partition.
pub const PARTITION_BITS: u32 = 6;
/// The number of partitions.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// The write buffers of all partitions together take at most this fraction of the memory budget.
const WAITING_SHARE: usize = 32;
const WAITING_BYTES_MIN: usize = 1 << 10;
const WAITING_BYTES_MAX: usize = 256 << 10;

/// Returns the partition of a hash.
#[inline(always)]
pub fn partition_of(hash: u64) -> usize {
    (hash >> (64 - PARTITION_BITS)) as usize
}

/// Partitions of tuples in a scratch file, filled by several workers.
#[derive(Debug)]
pub struct SpilledPartitions {
    file: Arc<SpillFile>,
    layout: Arc<RowLayout>,
    context: Arc<dyn Context>,
    waiting_bytes: usize,
    parts: Vec<Mutex<Part>>,
}

#[derive(Debug, Default)]
struct Part {
    waiting: Option<RowsBuilder>,
    blocks: Vec<TupleBlock>,
}

impl SpilledPartitions {
    /// Creates empty partitions.
    pub fn new(
        file: Arc<SpillFile>,
        layout: Arc<RowLayout>,
        context: Arc<dyn Context>,
    ) -> SpilledPartitions {
        let waiting = context.memory_bytes() / WAITING_SHARE / PARTITIONS;
        SpilledPartitions {
            file,
            layout,
            context,
            waiting_bytes: waiting.clamp(WAITING_BYTES_MIN, WAITING_BYTES_MAX),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
        }
    }

    /// The bytes that a partition buffers before a block is written.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Appends tuples to a partition, by their positions in `incoming`.
    ///
    /// # Errors
    /// The memory budget or the scratch directory is exhausted.
    pub fn append(
        &self,
        partition: usize,
        incoming: &ResolvedColumns,
        positions: &[u32],
    ) -> Result<()> {
        let mut part = lock(&self.parts[partition]);
        let new = || RowsBuilder::new(self.layout.clone(), Reservation::new(self.context.clone()));
        let waiting = part.waiting.get_or_insert_with(new);
        waiting.append(incoming, None, Some(positions))?;
        if waiting.memory_bytes() >= self.waiting_bytes {
            self.write_waiting(&mut part)?;
        }
        Ok(())
    }

    /// Writes tuples of a partition.
    ///
    /// # Errors
    /// The scratch directory is full.
    pub fn write(&self, partition: usize, rows: &Rows) -> Result<()> {
        let mut blocks = Vec::new();
        write_rows(&self.file, rows, &mut blocks)?;
        let mut part = lock(&self.parts[partition]);
        part.blocks.extend(blocks);
        Ok(())
    }

    fn write_waiting(&self, part: &mut Part) -> Result<()> {
        match part.waiting.take() {
            Some(waiting) => write_rows(&self.file, &waiting.seal(), &mut part.blocks),
            None => Ok(()),
        }
    }

    /// Returns the blocks of a partition; nothing may be appended afterwards.
    ///
    /// # Errors
    /// The scratch directory is full.
    pub fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        let mut part = lock(&self.parts[partition]);
        self.write_waiting(&mut part)?;
        Ok(part.blocks.clone())
    }

    /// The file that contains the blocks.
    pub fn file(&self) -> &Arc<SpillFile> {
        &self.file
    }
}
