//! The end of a run whose result is a stream: chunks in the source's order, in a queue bounded in
//! bytes.

use std::sync::Arc;

use tessera_context::Context;
use tessera_operator::{ByteQueue, Finish, OrderedQueue, SinkRun, SinkWorker};
use tessera_types::Result;

/// The sink that passes the output of a pipeline to the reader of the result.
#[derive(Debug)]
pub(crate) struct ResultSink {
    results: Arc<OrderedQueue>,
}

impl ResultSink {
    pub(crate) fn new(context: Arc<dyn Context>, queue: ByteQueue) -> Self {
        ResultSink { results: Arc::new(OrderedQueue::new(context, queue)) }
    }
}

impl SinkRun for ResultSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(self.results.worker())
    }

    fn satisfied(&self) -> bool {
        self.results.is_satisfied()
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(workers);
        Ok(self.results.finish())
    }
}
