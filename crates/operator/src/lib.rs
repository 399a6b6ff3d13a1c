//! What a sub-operator is, and what all of them share.
//!
//! A sub-operator is a unit struct that implements [`tessera_plan::Descriptor`] (what it means) and
//! [`SubOperator`] (what it does): it is *lowered* once, with its expressions bound, to an
//! [`Operator`], and each run of the plan *starts* that, giving the shared state of the run, which
//! in turn gives each worker its own. No sub-operator blocks a worker: it answers with a [`Step`].
//! [`Registry`] knows all of them by name.
//!
//! [`platform`] has the sub-operators that each platform implements in its own way.

mod byte_queue;
pub mod describe;
mod in_order;
mod operator;
mod ordered_queue;
pub mod partitions;
pub mod platform;
mod registry;
pub mod stream_util;
pub mod testing;

pub use byte_queue::ByteQueue;
pub use in_order::InOrder;
pub use operator::*;
pub use ordered_queue::{OrderedQueue, QueueSource};
pub use registry::Registry;
