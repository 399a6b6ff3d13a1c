//! The building blocks of joins: the hash table and its construction, pairs of matches, and their
//! chunks.

mod buffers;
mod compiled;
mod directory;
mod heap;
mod kind;
mod matched;
mod output;
mod pairs;
mod pending_table;
mod spilled;
mod table;

pub use kind::{JoinKind, KINDS};
pub use table::{JoinTable, Lookup};

pub use buffers::{BuildBuffers, TableBuild};
pub use compiled::{CompiledLookup, LookupRequest};
pub use matched::MatchBitmap;
pub use output::{BuildRest, BuildSide, Residual, null_columns, pairs_chunk, select_positions};
pub use pairs::Pairs;
pub use pending_table::PendingTable;
pub use spilled::{SpilledBuild, SpilledStream};

#[cfg(test)]
mod tests;
