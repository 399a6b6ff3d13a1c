//! Sub-operators: what each one does, one file each; and what they share: expressions, the `Rows` layout, hash
//! tables, aggregate states.
//!
//! A sub-operator here is a unit struct that implements [`tessera_plan::Descriptor`] (what it means) and
//! [`SubOperator`] (what it does): it is *lowered* once, with its expressions bound, to an [`Operator`], and each run of the
//! plan *starts* that, giving the shared state of the run, which in turn gives each worker its own.
//! No sub-operator blocks a worker: it answers with a [`Step`].

mod aggregate;
mod byte_queue;
mod collected;
pub mod data;
pub mod describe;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod group_table;
mod in_order;
pub mod ipc;
pub mod join;
mod loser_tree;
pub mod operator;
pub mod orchestration;
mod ordered_queue;
pub mod registry;
pub mod rows;
pub mod scan;
mod sideways;
mod spill;
pub mod stream_util;
#[cfg(test)]
mod testing;

pub use byte_queue::ByteQueue;
pub use collected::{Keeper, Keeping, KeptChunk};
pub use in_order::InOrder;
pub use operator::{
    Collected, Finish, Lowering, NestedPlan, Operator, Reader, Sink, SinkRun, SinkWorker, Source, SourceRun,
    Step, Stream, StreamRun, StreamWorker, SubOperator, Task,
};
pub use ordered_queue::{OrderedQueue, QueueSource};
pub use registry::Registry;
pub use scan::{RecordDecoder, RecordFormat};
pub use tessera_codegen as code;
pub use tessera_context as context;
pub use tessera_context::{
    Board, Context, Counters, Interrupt, Output, Place, RangeReader, Read, ReadBuffer, Reservation, Run,
    Scratch, Share, Token, Traffic, file_changed, guard, interrupt, lock, read_buffer,
};
pub use tessera_encodings::hash;
pub(crate) use tessera_encodings::physical;
pub use tessera_functions as expression;

/// A registry with every sub-operator of this room and the whole function library.
pub fn standard_registry() -> Registry {
    let mut registry = Registry::new(std::sync::Arc::new(expression::Library::default()));
    orchestration::register(&mut registry);
    data::register(&mut registry);
    scan::register(&mut registry);
    registry
}
