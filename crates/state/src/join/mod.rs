//! What joins share: the hash table and its building, pairs of matches and the chunks made of them.

mod buffers;
mod compiled;
mod directory;
mod heap;
mod kind;
mod matched;
mod output;
mod pairs;
mod spilled;
mod table;

pub use kind::{JoinKind, KINDS};
pub use table::{JoinTable, Lookup};

pub use buffers::{BuildBuffers, PendingTable, TableBuild};
pub use compiled::{AskedLookup, CompiledLookup};
pub use matched::Matched;
pub use output::{BuildRest, BuildSide, Residual, null_columns, pairs_chunk, select_positions};
pub use pairs::Pairs;
pub use spilled::{Away, SpilledBuild};

#[cfg(test)]
mod tests;
