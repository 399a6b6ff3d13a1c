//! Spilled state: blocks in a scratch file, and tuples in blocks.
//!
//! Builds, groupings and sorts hold their state in partitions (of hashes) or runs (of sorted
//! tuples). Before they allocate more, they call [`tessera_context::Context::may_hold`]. If that
//! refuses, partitions are spilled to a [`SpillFile`], compressed and checksummed. They are read
//! back one by one after the rest is done, by the same code with the next bits of the hash. Only
//! this process reads the blocks, so their format has no version.

mod file;
mod partitions;
mod tuples;

pub use file::{SpillBlock, SpillFile};
pub use partitions::{PARTITION_BITS, PARTITIONS, SpilledPartitions, partition_of};
pub use tuples::{TupleBlock, read_tuples, spillable, write_rows, write_tuples};

/// How often a partition can be subdivided: then all 64 bits of the hash are used up.
pub const DEPTH_MAX: u32 = 64 / PARTITION_BITS - 1;
