//! The end of a pipeline that is read by others: its chunks, collected in order.

use std::sync::{Arc, Mutex};

use tessera_encodings::Chunk;
use tessera_ops::operator::downcast_workers;
use tessera_ops::stream_util::collected_source;
use tessera_ops::{Collected, Context, Finish, Reservation, SinkRun, SinkWorker, lock};
use tessera_types::Result;

/// Collects a pipeline's output.
#[derive(Debug)]
pub(crate) struct Collect {
    context: Arc<dyn Context>,
    collected: Mutex<Option<Arc<Collected>>>,
    held: Mutex<Vec<Reservation>>,
}

impl Collect {
    pub(crate) fn new(context: Arc<dyn Context>) -> Self {
        Collect { context, collected: Mutex::new(None), held: Mutex::new(Vec::new()) }
    }

    pub(crate) fn collected(&self) -> Option<Arc<Collected>> {
        lock(&self.collected).clone()
    }
}

struct CollectWorker {
    held: Reservation,
    chunk_rows: usize,
    morsels: Vec<(u64, Vec<Chunk>)>,
}

impl SinkRun for Collect {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (held, chunk_rows) = (Reservation::new(self.context.clone()), self.context.chunk_rows());
        Ok(Box::new(CollectWorker { held, chunk_rows, morsels: Vec::new() }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut morsels = Vec::new();
        let mut held = Vec::new();
        for worker in downcast_workers::<CollectWorker>(workers)? {
            morsels.extend(worker.morsels);
            held.push(worker.held);
        }
        morsels.sort_by_key(|(position, _)| *position);
        let chunks = morsels.into_iter().flat_map(|(_, chunks)| chunks).collect();
        let collected = Arc::new(Collected { chunks });
        *lock(&self.collected) = Some(collected.clone());
        *lock(&self.held) = held;
        let output = collected_source(&collected, self.context.chunk_rows());
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl SinkWorker for CollectWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.morsels.push((position, Vec::new()));
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.without_much_else(self.chunk_rows)?;
        self.held.grow(chunk.value_bytes())?;
        if self.morsels.is_empty() {
            self.morsels.push((0, Vec::new()));
        }
        if let Some((_, chunks)) = self.morsels.last_mut() {
            chunks.push(chunk);
        }
        Ok(())
    }
}
