//! What the sinks of collective steps have in common: small inputs in order, and outputs that come
//! when a step has been taken.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::stream_util::Later;
use tessera_operator::{SinkWorker, SourceRun, downcast_workers};
use tessera_types::Result;
use tessera_vector::Chunk;

use crate::link::{Outcome, Reply};

/// A worker that keeps the chunks of a small input, with the positions of their morsels.
#[derive(Default)]
pub(crate) struct Held {
    position: u64,
    chunks: Vec<(u64, Chunk)>,
}

impl SinkWorker for Held {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.chunks.push((self.position, chunk.compact()?));
        Ok(())
    }
}

/// All that the workers keep, in the order of the source.
pub(crate) fn in_order(workers: Vec<Box<dyn SinkWorker>>) -> Result<Vec<Chunk>> {
    let mut chunks: Vec<_> =
        downcast_workers::<Held>(workers)?.into_iter().flat_map(|worker| worker.chunks).collect();
    // Stable: those of one morsel are in order.
    chunks.sort_by_key(|(position, _)| *position);
    Ok(chunks.into_iter().map(|(_, chunk)| chunk).collect())
}

/// The output of a collective step: ready when the communication worker has answered.
pub(crate) fn answer(
    reply: Arc<Reply>,
    run: &Run,
    make: impl FnOnce(Outcome) -> Result<Vec<Chunk>> + Send + 'static,
) -> Arc<dyn SourceRun> {
    let counters = run.counters.clone();
    Later::source(reply.token(), run.context.chunk_rows(), move || {
        let outcome = reply.take()?;
        counters.add("collective_wait_nanoseconds", reply.waited().as_nanos() as u64);
        make(outcome)
    })
}
