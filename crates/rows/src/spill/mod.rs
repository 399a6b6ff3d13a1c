//! State that has left memory: blocks in a scratch file, and tuples in blocks.
//!
//! Builds, groupings and sorts hold their state by partitions (of hashes, or of time: runs). Each
//! asks [`tessera_context::Context::may_hold`] before it takes more; where that says no, partitions
//! leave through a [`SpillFile`], compressed and checksummed, and are read back one by one when the
//! rest is done, by the same code with the next bits of the hash. Nothing outside this process
//! reads these blocks, so that their form has no version.

mod file;
mod partitions;
mod tuples;

pub use file::{Block, SpillFile};
pub use partitions::{PARTITION_BITS, PARTITIONS, SpilledPartitions, partition_of};
pub use tuples::{TupleBlock, read_tuples, spillable, write_rows, write_tuples};

/// How often a partition can be cut once more: all hashes of 64 bits are used up then.
pub const DEPTH_MAX: u32 = 64 / PARTITION_BITS - 1;
