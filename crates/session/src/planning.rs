//! The context of planning: a cancelled statement stops planning, and the memory that planning
//! allocates counts for the budget of the statement.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use tessera_context::interrupt::within;
use tessera_context::{Context, Interrupt, Place, RangeReader};
use tessera_engine::Governor;
use tessera_types::{Error, Result};
use tessera_vector::CHUNK_ROWS;

/// The context of a statement while it is planned.
#[derive(Debug)]
struct PlanningContext {
    interrupt: Arc<Interrupt>,
    governor: Arc<Governor>,
}

impl Context for PlanningContext {
    fn grow(&self, place: Place, bytes: usize) -> Result<()> {
        match place {
            Place::Host => self.governor.grow(bytes),
            Place::Device => Ok(()),
        }
    }

    fn shrink(&self, place: Place, bytes: usize) {
        if place == Place::Host {
            self.governor.shrink(bytes);
        }
    }

    fn check(&self) -> Result<()> {
        self.interrupt.check()
    }

    fn chunk_rows(&self) -> usize {
        CHUNK_ROWS
    }

    fn workers(&self) -> usize {
        1
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        Err(Error::unsupported(format!("reading {path} while planning")))
    }
}

/// Runs a planning job with a memory budget. `interrupt` cancels it.
///
/// # Errors
/// The error of the job, its cancellation, or the memory limit.
pub(crate) fn run_interruptible<T>(
    interrupt: &Arc<Interrupt>,
    memory_bytes: usize,
    job: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let (interrupt, governor) = (interrupt.clone(), Governor::new(memory_bytes));
    let context: Arc<dyn Context> = Arc::new(PlanningContext { interrupt, governor });
    match catch_unwind(AssertUnwindSafe(|| within(&context, job))) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<Error>() {
            Ok(error) => Err(*error),
            Err(payload) => resume_unwind(payload),
        },
    }
}
