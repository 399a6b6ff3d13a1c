//! The run in which expressions are evaluated while planning.

use std::sync::Arc;

use tessera_context::interrupt::check_here;
use tessera_context::{Context, Place, RangeReader, Run};
use tessera_types::{Error, Result};

/// A run in which expressions are evaluated while planning.
pub(crate) fn planning() -> Run {
    Run::of(Arc::new(Planning))
}

/// The surroundings of the samples that are looked at while planning: no files, no budget.
#[derive(Debug)]
struct Planning;

impl Context for Planning {
    fn grow(&self, _place: Place, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _place: Place, _bytes: usize) {}

    fn check(&self) -> Result<()> {
        check_here()
    }

    fn chunk_rows(&self) -> usize {
        tessera_vector::CHUNK_ROWS
    }

    fn workers(&self) -> usize {
        1
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        Err(Error::unsupported(format!("reading {path} while planning")))
    }
}
