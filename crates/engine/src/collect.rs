//! The end of a pipeline that is read by others: its chunks, collected in order.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::collected_source;
use tessera_operator::{Finish, SinkRun, SinkWorker, downcast_workers};
use tessera_rows::{Collected, Keeper, Keeping};
use tessera_types::Result;
use tessera_vector::Chunk;

/// Collects a pipeline's output; its chunks leave memory when the budget is spoken for.
#[derive(Debug)]
pub(crate) struct Collect {
    keeping: Arc<Keeping>,
    chunk_rows: usize,
    collected: Mutex<Option<Arc<Collected>>>,
    held: Mutex<Vec<Reservation>>,
}

impl Collect {
    /// Of the node that `run` is of.
    pub(crate) fn new(run: &Run) -> Self {
        let (keeping, chunk_rows) = (Keeping::new(run), run.context.chunk_rows());
        Collect { keeping, chunk_rows, collected: Mutex::new(None), held: Mutex::new(Vec::new()) }
    }

    pub(crate) fn collected(&self) -> Option<Arc<Collected>> {
        lock(&self.collected).clone()
    }
}

struct CollectWorker {
    keeper: Keeper,
}

impl SinkRun for Collect {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(CollectWorker { keeper: self.keeping.keeper() }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<CollectWorker>(workers)?;
        let (collected, held) =
            Keeper::collect(workers.into_iter().map(|worker| worker.keeper).collect());
        let collected = Arc::new(collected);
        *lock(&self.collected) = Some(collected.clone());
        *lock(&self.held) = held;
        Ok(Finish { tasks: Vec::new(), output: collected_source(&collected, self.chunk_rows) })
    }
}

impl SinkWorker for CollectWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.keeper.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.keeper.push(chunk)
    }
}
