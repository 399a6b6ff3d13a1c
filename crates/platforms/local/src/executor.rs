//! LocalExecutor: runs its nested plan with all workers of the engine.

use std::sync::Arc;

use tessera_encodings::Chunk;
use tessera_ops::orchestration::executor;
use tessera_ops::stream_util::ChunksReader;
use tessera_ops::{
    Collected, Context, Lowering, NestedPlan, Operator, Reader, Run, Source, SourceRun, SubOperator,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result};

/// Runs its nested plan once per input tuple (once, for the empty tuple, without an input), each time with all workers.
#[derive(Debug, Clone, Copy)]
pub struct LocalExecutor;

impl Descriptor for LocalExecutor {
    fn name(&self) -> &'static str {
        "executor"
    }

    fn summary(&self) -> &'static str {
        "Runs its nested plan on all workers."
    }

    fn parameters(&self) -> &'static [&'static str] {
        executor::PARAMETERS
    }

    fn arity(&self) -> (usize, usize) {
        (0, 1)
    }

    fn nested(&self) -> usize {
        1
    }

    fn nested_input(&self, node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        executor::nested_input(node, inputs)
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        executor::derive(inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for LocalExecutor {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let platform = node.params.choice("platform", &[crate::NAME]).map_err(|_| {
            Error::unsupported(
                "this executor runs plans of platform local only; EXPLAIN shows those of others",
            )
        })?;
        debug_assert_eq!(platform, crate::NAME);
        let nested =
            lowering.nested.first().cloned().ok_or_else(|| Error::internal("an executor without a plan"))?;
        Ok(Operator::Source(Arc::new(Lowered { nested })))
    }
}

#[derive(Debug)]
struct Lowered {
    nested: Arc<dyn NestedPlan>,
}

impl Source for Lowered {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut tuples = Vec::new();
        match sides.first() {
            None => tuples.push(run.parameters.clone()),
            Some(side) => {
                for chunk in &side.chunks {
                    tuples.extend((0..chunk.rows()).map(|row| chunk.slice(row, 1)));
                }
            }
        }
        Ok(Arc::new(LocalRun { nested: self.nested.clone(), tuples, context: run.context.clone() }))
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
        let collected = self.nested.run_parallel(tuple, &self.context)?;
        Ok(Box::new(ChunksReader::new(collected.chunks, self.context.chunk_rows())))
    }
}
