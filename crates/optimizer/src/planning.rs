//! The run that evaluates expressions during planning.

use std::sync::Arc;

use tessera_context::interrupt::check_here;
use tessera_context::{Context, Place, RangeReader, Run};
use tessera_types::{Error, Result};

/// Returns a run that evaluates expressions during planning.
pub(crate) fn planning() -> Run {
    Run::new(Arc::new(PlanningContext))
}

/// A context for evaluating samples during planning: no files, no memory budget.
#[derive(Debug)]
struct PlanningContext;

impl Context for PlanningContext {
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
        Err(Error::unsupported(format!("file '{path}' cannot be read during planning")))
    }
}
