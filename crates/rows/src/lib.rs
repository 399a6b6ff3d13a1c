//! `Rows`: the one layout in which tuples are kept: hash tables, group tables, partitions, spilled
//! state.
//!
//! Byte by byte in `docs/layout.md`. A tuple is a fixed-width row: its hash, one validity bit per
//! field where some can be NULL, the fields at aligned offsets (strings as 16-byte Arrow views into
//! heap pages the collection owns), then state fields for whoever asked for some. Offsets instead
//! of pointers: rows can be moved, spilled, sent and read by compiled code.
//!
//! # How to use it
//!
//! * [`RowLayout::new`] for tuples, [`RowLayout::with_states`] for tuples followed by zeroed state
//!   fields.
//! * Fill: [`RowsBuilder::new`], then per chunk either [`RowsBuilder::append_chunk`], or
//!   [`Incoming::new`] (resolves encodings once) and [`RowsBuilder::append`] with an optional
//!   selection, once per partition. `append` gives the numbers of the new rows. Memory is counted
//!   as it is taken.
//! * While filling (group tables): [`RowsBuilder::retain_equal`] finds which candidate pairs (row,
//!   position in an `Incoming`) have equal keys; [`RowsBuilder::state`] /
//!   [`RowsBuilder::set_state`] / [`RowsBuilder::update_state`] read and write state fields;
//!   [`RowsBuilder::push_bytes`] and [`RowsBuilder::bytes`] keep strings in states.
//! * [`RowsBuilder::seal`] makes an immutable [`Rows`]: [`Rows::gather`] columns of given rows
//!   ([`NO_ROW`] gives NULL),
//!   [`Rows::chunk`] a range as a chunk, [`Rows::hashes`], [`Rows::states`].
//!   [`Rows::concat`] joins several without copying rows.

mod builder;
mod collected;
mod combine;
mod compare;
mod compiled;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gather;
mod incoming;
pub mod ipc;
mod keeper;
mod layout;
mod memory;
mod nested;
mod packing;
mod range;
mod scatter;
mod sealed;
pub mod spill;
mod wire;

pub use builder::RowsBuilder;
pub use collected::{Collected, Keeper, Keeping, KeptChunk};
pub use compare::{Candidates, NullKeys};
pub use compiled::{AskedWrite, RowWriter};
pub use gather::Which;
pub use incoming::Incoming;
pub use incoming::Values;
pub use keeper::{KeepingRows, RowsKeeper};
pub use layout::Kind;
pub use layout::{HASH_OFFSET, RowLayout};
pub use memory::{Fixed, Region};
pub use memory::{PREFETCHED_ROWS, Pages, SharedPages, SharedWriter};
pub use nested::{converter, decode};
pub use packing::Bounds;
pub use packing::{ValueRange, packs, range_of};
pub use range::RowRange;
pub use scatter::{Scatter, Scatterer, partition_of};
pub use sealed::Rows;
pub use sealed::{Part, RowsPlace, Side};
pub use wire::{Outgoing, Packet, heap_words};

/// In place of a row number: no row; gathers as NULL.
pub const NO_ROW: u64 = u64::MAX;

#[cfg(test)]
mod tests;
