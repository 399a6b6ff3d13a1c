//! Shared parts of the sinks of collective steps: buffered small inputs, and a source that waits
//! for the reply of a step.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::stream_util::PendingSource;
use tessera_operator::{SinkWorker, SourceRun, downcast_workers};
use tessera_types::Result;
use tessera_vector::Chunk;

use crate::link::{Outcome, Reply};

/// A sink worker that buffers the chunks of a small input with the positions of their morsels.
#[derive(Default)]
pub(crate) struct ChunkBuffer {
    position: u64,
    chunks: Vec<(u64, Chunk)>,
}

impl SinkWorker for ChunkBuffer {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.chunks.push((self.position, chunk.compact()?));
        Ok(())
    }
}

/// Returns the buffered chunks of all workers in the order of the source.
pub(crate) fn chunks_in_order(workers: Vec<Box<dyn SinkWorker>>) -> Result<Vec<Chunk>> {
    let mut chunks: Vec<_> = downcast_workers::<ChunkBuffer>(workers)?
        .into_iter()
        .flat_map(|worker| worker.chunks)
        .collect();
    // The sort is stable, so chunks of one morsel keep their order.
    chunks.sort_by_key(|(position, _)| *position);
    Ok(chunks.into_iter().map(|(_, chunk)| chunk).collect())
}

/// Returns the output of a collective step, ready once the communication worker has replied.
pub(crate) fn reply_source(
    reply: Arc<Reply>,
    run: &Run,
    make: impl FnOnce(Outcome) -> Result<Vec<Chunk>> + Send + 'static,
) -> Arc<dyn SourceRun> {
    let counters = run.counters.clone();
    PendingSource::source(reply.token(), run.context.chunk_rows(), move || {
        let outcome = reply.take()?;
        counters.add("collective_wait_nanoseconds", reply.waited().as_nanos() as u64);
        make(outcome)
    })
}
