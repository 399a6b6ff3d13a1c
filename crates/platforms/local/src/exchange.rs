//! LocalExchange: workers of one process share their memory, so what belongs together is in one place already.

use std::sync::Arc;

use tessera_encodings::Chunk;
use tessera_ops::{Collected, Lowering, Operator, Run, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;

/// Passes its input on; only the locality of the edge changes.
#[derive(Debug, Clone, Copy)]
pub struct LocalExchange;

impl Descriptor for LocalExchange {
    fn name(&self) -> &'static str {
        tessera_ops::orchestration::Exchange.name()
    }

    fn summary(&self) -> &'static str {
        tessera_ops::orchestration::Exchange.summary()
    }

    fn parameters(&self) -> &'static [&'static str] {
        tessera_ops::orchestration::Exchange.parameters()
    }

    fn arity(&self) -> (usize, usize) {
        tessera_ops::orchestration::Exchange.arity()
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        tessera_ops::orchestration::Exchange.derive(node, inputs)
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
