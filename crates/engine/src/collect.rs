//! The end of a pipeline that others read: its chunks, collected in order.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::collected_source;
use tessera_operator::{Finish, SinkRun, SinkWorker, downcast_workers};
use tessera_rows::{Collected, OutputCollector, OutputCollectorWorker};
use tessera_types::Result;
use tessera_vector::Chunk;

/// Collects the output of a pipeline. Its chunks leave memory when the budget is short.
#[derive(Debug)]
pub(crate) struct Collect {
    collector: Arc<OutputCollector>,
    chunk_rows: usize,
    collected: Mutex<Option<Arc<Collected>>>,
    held: Mutex<Vec<Reservation>>,
}

impl Collect {
    /// Collects for the node of `run`.
    pub(crate) fn new(run: &Run) -> Self {
        let (collector, chunk_rows) = (OutputCollector::new(run), run.context.chunk_rows());
        Collect { collector, chunk_rows, collected: Mutex::new(None), held: Mutex::new(Vec::new()) }
    }

    pub(crate) fn collected(&self) -> Option<Arc<Collected>> {
        lock(&self.collected).clone()
    }
}

struct CollectWorker {
    local: OutputCollectorWorker,
}

impl SinkRun for Collect {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(CollectWorker { local: self.collector.worker() }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<CollectWorker>(workers)?;
        let (collected, held) = OutputCollectorWorker::collect(
            workers.into_iter().map(|worker| worker.local).collect(),
        );
        let collected = Arc::new(collected);
        *lock(&self.collected) = Some(collected.clone());
        *lock(&self.held) = held;
        Ok(Finish { tasks: Vec::new(), output: collected_source(&collected, self.chunk_rows) })
    }
}

impl SinkWorker for CollectWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.local.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.local.push(chunk)
    }
}
