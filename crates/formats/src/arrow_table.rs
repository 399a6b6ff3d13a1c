//! The `arrow` format: tuples as somebody else's Arrow, before they are the engine's.

use std::sync::Mutex;

use arrow::array::RecordBatch;

use tessera_context::{Reservation, lock};

/// Tuples that came from outside as an Arrow table.
#[derive(Debug)]
pub struct ArrowTable {
    batch: RecordBatch,
    /// Held for as long as the tuples are, by whoever has them.
    memory: Mutex<Option<Reservation>>,
}

impl ArrowTable {
    /// A table of these tuples, whose memory is counted by `memory`.
    pub fn new(batch: RecordBatch, memory: Reservation) -> Self {
        ArrowTable { batch, memory: Mutex::new(Some(memory)) }
    }

    /// The tuples.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// What counts their memory, for the first who asks.
    pub(crate) fn take_memory(&self) -> Option<Reservation> {
        lock(&self.memory).take()
    }
}
