//! The `batch` format: tuples as Arrow batches.

use arrow::array::RecordBatch;

use tessera_context::Reservation;

/// A collection of tuples as Arrow batches in plain forms.
#[derive(Debug)]
pub struct Batch {
    batches: Vec<RecordBatch>,
    /// Held as long as the tuples.
    _memory: Vec<Reservation>,
}

impl Batch {
    /// Creates a collection of these batches; `memory` accounts for them.
    pub fn new(batches: Vec<RecordBatch>, memory: Vec<Reservation>) -> Self {
        Batch { batches, _memory: memory }
    }

    /// The batches, in order.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }
}
