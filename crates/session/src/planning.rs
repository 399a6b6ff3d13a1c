//! Planning a statement so that what ends the statement also ends what is computed while planning.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use tessera_encodings::CHUNK_ROWS;
use tessera_ops::interrupt::within;
use tessera_ops::{Context, Interrupt, Place, RangeReader};
use tessera_types::{Error, Result};

/// What the constants of a statement are computed in: there are no files, and what they hold is limited by itself.
#[derive(Debug)]
struct Planning {
    interrupt: Arc<Interrupt>,
}

impl Context for Planning {
    fn grow(&self, _place: Place, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _place: Place, _bytes: usize) {}

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

/// Does a job that plans; `interrupt` ends it.
///
/// # Errors
/// That of the job, or that it was ended.
pub(crate) fn interruptible<T>(interrupt: &Arc<Interrupt>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let context: Arc<dyn Context> = Arc::new(Planning { interrupt: interrupt.clone() });
    match catch_unwind(AssertUnwindSafe(|| within(&context, job))) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<Error>() {
            Ok(error) => Err(*error),
            Err(payload) => resume_unwind(payload),
        },
    }
}
