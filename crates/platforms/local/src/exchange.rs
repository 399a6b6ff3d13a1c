//! `LocalExchange`: passes its input on, since the workers of a process share memory.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::platform::Runtime;
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker};
use tessera_plan::Node;
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

/// Runs `exchange`: passes its input on; only the locality of the edge changes.
#[derive(Debug, Clone, Copy)]
pub struct LocalExchange;

impl Runtime for LocalExchange {
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
        Ok(Box::new(LocalExchangeWorker { chunk: None }))
    }
}

struct LocalExchangeWorker {
    chunk: Option<Chunk>,
}

impl StreamWorker for LocalExchangeWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.chunk = Some(chunk);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.chunk.take().map_or(Step::NeedInput, Step::HasOutput))
    }
}
