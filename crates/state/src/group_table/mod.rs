//! Group tables: which group a tuple belongs to, and the aggregates of each group.
//!
//! A worker groups what it sees in a table of its own that fits into its cache. When the table is
//! full, its groups flow out to 64 partitions, by the top bits of their hash, and it starts afresh;
//! if most tuples make a group of their own, the table is passed by. In the end each partition is
//! merged by itself, when it is read. Groups are partitioned from the start, so that whole
//! partitions can leave memory (`spilled.rs`), or, where states cannot be written, tuples before
//! they are grouped (`raw.rs`). Where parts are grouped before they cross to other workers, what
//! flows out is passed on instead.

mod compiled;
mod direct;
mod filling;
mod grouping;
mod keys;
mod partial;
mod raw;
mod spilled;
mod store;
mod table;

pub use grouping::{Grouping, Limits, needed};
pub use keys::{KeyLayout, Keys, Packed};
pub use partial::PartialGrouping;
pub use table::Table;
