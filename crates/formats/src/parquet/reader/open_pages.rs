//! Limits the decompressed pages that a reader holds. Each column has an open page; with a thousand
//! columns they may exceed the memory budget. Pages that do not fit are closed after each batch and
//! decompressed again for the next one.

use std::sync::Arc;

use tessera_context::{Context, Reservation};

/// The uncounted bytes of all workers together, a minimum that any query needs.
const FREE_BYTES: usize = 32 << 20;
/// The least uncounted bytes of one worker.
const FREE_BYTES_MIN: usize = 2 << 20;
/// The divisor of the memory budget for the pages of all workers.
const BUDGET_SHARE: usize = 8;

/// The open pages of a reader.
#[derive(Debug)]
pub(super) struct OpenPages {
    free_bytes: usize,
    counted_bytes_max: usize,
    reservation: Reservation,
    /// The bytes of each column.
    bytes: Vec<usize>,
    total_bytes: usize,
}

impl OpenPages {
    /// Creates the state for `columns` columns without open pages.
    pub(super) fn new(context: Arc<dyn Context>, columns: usize) -> Self {
        let workers = context.workers().max(1);
        OpenPages {
            free_bytes: (FREE_BYTES / workers).max(FREE_BYTES_MIN),
            counted_bytes_max: context.memory_bytes() / BUDGET_SHARE / workers,
            reservation: Reservation::new(context),
            bytes: vec![0; columns],
            total_bytes: 0,
        }
    }

    /// Whether a column may keep `bytes` open. If not, the caller closes it.
    pub(super) fn keep(&mut self, column: usize, bytes: usize) -> bool {
        let others = self.total_bytes - self.bytes[column];
        let counted = (others + bytes).saturating_sub(self.free_bytes);
        let fits = counted <= self.reservation.bytes()
            || counted <= self.counted_bytes_max && self.reservation.resize(counted).is_ok();
        self.bytes[column] = if fits { bytes } else { 0 };
        self.total_bytes = others + self.bytes[column];
        fits
    }
}
