//! The `arrow` format: Arrow tables from outside, before they are converted to engine collections.

use std::sync::Mutex;

use arrow::array::RecordBatch;

use tessera_context::{Reservation, lock};

/// Tuples from outside as an Arrow table.
#[derive(Debug)]
pub struct ArrowTable {
    batch: RecordBatch,
    /// The reservation of the tuples' memory, until a collection takes it over.
    memory: Mutex<Option<Reservation>>,
}

impl ArrowTable {
    /// Creates a table of these tuples; `memory` accounts for them.
    pub fn new(batch: RecordBatch, memory: Reservation) -> Self {
        ArrowTable { batch, memory: Mutex::new(Some(memory)) }
    }

    /// The tuples.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Takes the reservation of the table's memory; only the first call returns it.
    pub(crate) fn take_memory(&self) -> Option<Reservation> {
        lock(&self.memory).take()
    }
}
