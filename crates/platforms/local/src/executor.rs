//! `LocalExecutor`: runs its nested plan with all workers of the engine.

use std::sync::Arc;

use tessera_context::{Context, Run};
use tessera_operator::platform::Runtime;
use tessera_operator::{Lowering, NestedPlan, Operator, Reader, Source, SourceRun, nested_plan};
use tessera_plan::Node;
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

/// Runs `executor`: runs its nested plan once per input tuple (once, for the empty tuple, without
/// an input), each time with all workers.
#[derive(Debug, Clone, Copy)]
pub struct LocalExecutor;

impl Runtime for LocalExecutor {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let platform = node.params.choice("platform", &[crate::NAME]).map_err(|_| {
            Error::unsupported(
                "unsupported platform in this session: its executor runs plans of platform local only; use EXPLAIN for plans of other platforms",
            )
        })?;
        debug_assert_eq!(platform, crate::NAME);
        Ok(Operator::Source(Arc::new(LocalExecutor)))
    }
}

impl Source for LocalExecutor {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut tuples = Vec::new();
        match sides.first() {
            None => tuples.push(run.parameters.clone()),
            Some(side) => {
                for chunk in side.chunks() {
                    let chunk = chunk?;
                    tuples.extend((0..chunk.rows()).map(|row| chunk.slice(row, 1)));
                }
            }
        }
        Ok(Arc::new(LocalRun { nested: nested_plan(run)?, tuples, context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct LocalRun {
    nested: Arc<dyn NestedPlan>,
    tuples: Vec<Chunk>,
    context: Arc<dyn Context>,
}

impl SourceRun for LocalRun {
    fn morsels(&self) -> usize {
        self.tuples.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let tuple = self.tuples[morsel].clone().compact()?;
        self.nested.stream(tuple, &self.context)
    }
}
