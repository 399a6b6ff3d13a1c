//! LocalExchange: workers of one process share their memory, so what belongs together is in one place already.

use std::sync::Arc;

use tessera_encodings::Chunk;
use tessera_ops::orchestration::exchange;
use tessera_ops::{Collected, Lowering, Operator, Run, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;

/// Passes its input on; only the locality of the edge changes.
#[derive(Debug, Clone, Copy)]
pub struct LocalExchange;

impl Descriptor for LocalExchange {
    fn name(&self) -> &'static str {
        "exchange"
    }

    fn summary(&self) -> &'static str {
        "Brings tuples together that belong together: nothing to do where workers share their memory."
    }

    fn parameters(&self) -> &'static [&'static str] {
        exchange::PARAMETERS
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        exchange::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for LocalExchange {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Stream(Arc::new(LocalExchange)))
    }
}

impl Stream for LocalExchange {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(LocalExchange))
    }
}

impl StreamRun for LocalExchange {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(Pass { chunk: None }))
    }
}

struct Pass {
    chunk: Option<Chunk>,
}

impl StreamWorker for Pass {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.chunk = Some(chunk);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.chunk.take().map_or(Step::NeedInput, Step::HasOutput))
    }
}
