//! The end of a run whose result is read while it comes: chunks in the source's order, in a queue of bounded bytes.

use std::sync::Arc;

use tessera_encodings::Chunk;
use tessera_ops::operator::downcast_workers;
use tessera_ops::stream_util::chunks_source;
use tessera_ops::{ByteQueue, Context, Finish, InOrder, Reservation, SinkRun, SinkWorker, Token};
use tessera_types::Result;

/// The most bytes that wait for the reader of a result, however large the budget is.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// Of the budget, one part in so many may wait for the reader, and one may wait for chunks before it.
const WAITING_SHARE: usize = 16;

/// A queue for the result of a query with this budget.
pub(crate) fn result_queue(context: &dyn Context) -> ByteQueue {
    ByteQueue::new((context.memory_bytes() / WAITING_SHARE).min(WAITING_BYTES_MAX))
}

/// Passes a pipeline's output on to the reader of the result.
#[derive(Debug)]
pub(crate) struct Results {
    context: Arc<dyn Context>,
    queue: ByteQueue,
    /// Chunks that others come before.
    ahead: InOrder<(Chunk, Reservation)>,
    ahead_bytes_max: usize,
}

impl Results {
    pub(crate) fn new(context: Arc<dyn Context>, queue: ByteQueue) -> Self {
        let ahead_bytes_max = context.memory_bytes() / WAITING_SHARE;
        Results { context, queue, ahead: InOrder::default(), ahead_bytes_max }
    }

    /// Gives the reader what is next.
    fn pass_on(&self) {
        let push = |(chunk, memory)| drop(self.queue.try_push(chunk, Some(memory)));
        while self.ahead.next(|chunks| chunks.into_iter().for_each(push)).is_some() {}
    }
}

struct ResultsWorker {
    results: Arc<Results>,
    position: u64,
}

/// The sink of a run, which its workers know as a whole.
#[derive(Debug)]
pub(crate) struct ResultSink(pub(crate) Arc<Results>);

impl SinkRun for ResultSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(ResultsWorker { results: self.0.clone(), position: 0 }))
    }

    fn satisfied(&self) -> bool {
        self.0.queue.is_stopped()
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(downcast_workers::<ResultsWorker>(workers)?);
        self.0.queue.close();
        Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), self.0.context.chunk_rows()) })
    }
}

impl SinkWorker for ResultsWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let results = &self.results;
        // Few of the tuples that are stored would keep the buffers of all of them alive.
        let few = chunk.rows() < chunk.rows_stored() / 2;
        let chunk = if few { chunk.compact()?.with_own_strings() } else { chunk };
        let mut memory = Reservation::new(results.context.clone());
        memory.grow(chunk.value_bytes())?;
        let bytes = memory.bytes();
        results.ahead.put(self.position, (chunk, memory), bytes);
        results.pass_on();
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        let Results { ahead, ahead_bytes_max, queue, .. } = &*self.results;
        ahead.blocked(self.position, *ahead_bytes_max).or_else(|| queue.full())
    }

    fn end(&mut self) -> Result<()> {
        self.results.ahead.end(self.position);
        self.results.pass_on();
        Ok(())
    }
}
