//! Group tables: find the group of each tuple, and aggregate each group.
//!
//! A worker groups its tuples in its own table, which fits into its cache. When the table is full,
//! its groups move to 64 partitions, by the top bits of their hash, and the table is cleared. If
//! most tuples form a group of their own, the table is bypassed. In the end each partition is
//! merged by itself, when it is read. Groups are partitioned from the start, so that whole
//! partitions can be spilled (`spilled.rs`), or, if states cannot be written, ungrouped tuples
//! (`raw.rs`). In a partial grouping before an exchange, the groups of a full table are emitted
//! instead.

mod cache_table;
mod compiled;
mod dictionary_groups;
mod grouping;
mod keys;
mod partial;
mod partitions;
mod raw;
mod spilled;
mod store;
mod table;

pub use grouping::{Grouping, Limits, needed};
pub use keys::{KeyLayout, Keys, Packed};
pub use partial::PartialGrouping;
pub use table::Table;
