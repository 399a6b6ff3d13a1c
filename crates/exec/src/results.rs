//! The end of a run whose result is read while it comes: chunks in the source's order, in a queue of bounded bytes.

use std::sync::Arc;

use tessera_encodings::Chunk;
use tessera_ops::operator::downcast_workers;
use tessera_ops::stream_util::chunks_source;
use tessera_ops::{ByteQueue, Context, Finish, OrderedQueue, SinkRun, SinkWorker, Token};
use tessera_types::Result;

/// Passes a pipeline's output on to the reader of the result.
#[derive(Debug)]
pub(crate) struct ResultSink {
    results: Arc<OrderedQueue>,
    chunk_rows: usize,
}

impl ResultSink {
    pub(crate) fn new(context: Arc<dyn Context>, queue: ByteQueue) -> Self {
        let chunk_rows = context.chunk_rows();
        ResultSink { results: Arc::new(OrderedQueue::new(context, queue)), chunk_rows }
    }
}

struct ResultsWorker {
    results: Arc<OrderedQueue>,
    position: u64,
}

impl SinkRun for ResultSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(ResultsWorker { results: self.results.clone(), position: 0 }))
    }

    fn satisfied(&self) -> bool {
        self.results.is_satisfied()
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(downcast_workers::<ResultsWorker>(workers)?);
        self.results.queue().close();
        Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), self.chunk_rows) })
    }
}

impl SinkWorker for ResultsWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.results.push(self.position, chunk)
    }

    fn blocked(&self) -> Option<Token> {
        self.results.blocked(self.position)
    }

    fn end(&mut self) -> Result<()> {
        self.results.end(self.position);
        Ok(())
    }
}
