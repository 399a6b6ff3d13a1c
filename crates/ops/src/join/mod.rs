//! What joins share: the hash table and its building, pairs of matches and the chunks made of them.

mod buffers;
mod directory;
mod kind;
mod matched;
mod table;

pub use kind::JoinKind;
pub use table::{JoinTable, Lookup};

pub(crate) use buffers::{BuildBuffers, TableBuild};
pub(crate) use matched::Matched;

#[cfg(test)]
mod tests;
