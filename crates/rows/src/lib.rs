//! The row format of stored tuples: hash tables, group tables, partitions, spilled state.
//!
//! `docs/reference/layout.md` specifies it byte by byte. A tuple is a fixed-width row: its hash,
//! one validity bit per field if some can be NULL, the fields at aligned offsets (strings as
//! 16-byte Arrow views into heap pages that the collection owns), then optional state fields. Rows
//! use offsets instead of pointers, so that they can be moved, spilled, sent and read by compiled
//! code.
//!
//! # How to use it
//!
//! * Choose a layout: [`RowLayout::new`] for tuples, [`RowLayout::with_states`] for tuples followed
//!   by zeroed state fields.
//! * Fill: [`RowsBuilder::new`], then per chunk either [`RowsBuilder::append_chunk`], or
//!   [`ResolvedColumns::new`] (resolves encodings once) and [`RowsBuilder::append`] with an
//!   optional selection, once per partition. `append` returns the numbers of the new rows. Memory
//!   is counted as it is allocated.
//! * While filling (group tables): [`RowsBuilder::retain_equal`] finds which candidate pairs (row,
//!   position in an `ResolvedColumns`) have equal keys; [`RowsBuilder::state`] /
//!   [`RowsBuilder::set_state`] / [`RowsBuilder::update_state`] read and write state fields;
//!   [`RowsBuilder::push_bytes`] and [`RowsBuilder::bytes`] store strings in states.
//! * Seal: [`RowsBuilder::seal`] makes an immutable [`Rows`]: [`Rows::gather`] returns columns of
//!   given rows ([`NO_ROW`] gives NULL), [`Rows::chunk`] a range as a chunk, [`Rows::hashes`] and
//!   [`Rows::states`] their hashes and states. [`Rows::concat`] joins several without copying rows.
//!
//! # Unsafe code
//!
//! The `memory` module holds the rows and states its invariants. `compiled` calls compiled code,
//! and `gather` builds Arrow views from rows without checking them again.

mod builder;
mod collected;
mod combine;
mod compare;
mod compiled;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gather;
pub mod ipc;
mod layout;
mod memory;
mod nested;
mod packing;
mod range;
mod resolved_columns;
mod rows_collector;
mod scatter;
mod sealed;
pub mod spill;
mod wire;

pub use builder::RowsBuilder;
pub use collected::{Collected, OutputCollector, OutputCollectorWorker, SpillableChunk};
pub use compare::{Candidates, NullKeys};
pub use compiled::{RowWriter, WriteRequestCell};
pub use gather::RowSelection;
pub use layout::Kind;
pub use layout::{HASH_OFFSET, RowLayout};
pub use memory::{Fixed, WordBuffer};
pub use memory::{PREFETCHED_ROWS, Pages, SharedPages, SharedWriter};
pub use nested::{converter, decode};
pub use packing::Bounds;
pub use packing::{ValueRange, packs, range_of};
pub use range::RowRange;
pub use resolved_columns::ResolvedColumns;
pub use resolved_columns::Values;
pub use rows_collector::{RowsCollector, RowsCollectorWorker};
pub use scatter::{Scatter, Scatterer, partition_of};
pub use sealed::Rows;
pub use sealed::{Part, RowsPlace, Side};
pub use wire::{WireBatch, WirePartitioner, heap_words};

/// Stands for a missing row in a list of row numbers; gathers as NULL.
pub const NO_ROW: u64 = u64::MAX;

#[cfg(test)]
mod tests;
