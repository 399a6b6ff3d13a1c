//! The contract between sub-operators and the executor, and the parts that sub-operators share.
//!
//! A sub-operator is a unit struct that implements [`tessera_plan::Descriptor`] (types and traits)
//! and [`SubOperator`] (execution). It is *lowered* once, with its expressions bound, to an
//! [`Operator`]. Each run of the plan *starts* the operator, which creates the state shared by all
//! workers of the run; this state creates the state of each worker. No sub-operator blocks a
//! worker: it returns a [`Step`]. [`Registry`] finds sub-operators and file formats by name
//! ([`mod@format`]).
//!
//! [`platform`] has the sub-operators that each platform implements itself.

#![forbid(unsafe_code)]

mod byte_queue;
pub mod describe;
pub mod format;
mod operator;
mod ordered_queue;
pub mod partitions;
pub mod platform;
mod registry;
mod reorder_buffer;
pub mod stream_util;
pub mod testing;

pub use byte_queue::ByteQueue;
pub use operator::*;
pub use ordered_queue::{OrderedQueue, QueueSource};
pub use registry::Registry;
pub use reorder_buffer::ReorderBuffer;
