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

pub use kind::JoinKind;
pub use table::{JoinTable, Lookup};

pub(crate) use buffers::{BuildBuffers, PendingTable, TableBuild};
pub(crate) use compiled::{AskedLookup, CompiledLookup};
pub(crate) use matched::Matched;
pub(crate) use output::{BuildRest, BuildSide, Residual, null_columns, pairs_chunk, select_positions};
pub(crate) use pairs::Pairs;
pub(crate) use spilled::{Away, SpilledBuild};

#[cfg(test)]
mod tests;
