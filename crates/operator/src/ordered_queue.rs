//! A queue that returns chunks in the order of their source, regardless of which worker produced
//! them.

use std::sync::{Arc, Mutex};

use tessera_context::{Context, Reservation, Token, lock};
use tessera_types::Result;
use tessera_vector::Chunk;

use crate::ByteQueue;
use crate::ReorderBuffer;
use crate::stream_util::chunks_source;
use crate::{Finish, Reader, SinkWorker, SourceRun, Step};

/// The most bytes that wait for the reader, for any memory budget.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// The divisor of the memory budget for bytes that wait for the reader, and again for bytes that
/// wait for earlier chunks.
const WAITING_SHARE: usize = 16;

/// Forwards chunks in the order of their morsels. Chunks of the first incomplete morsel go to the
/// reader's queue at once; chunks of later morsels wait.
#[derive(Debug)]
pub struct OrderedQueue {
    context: Arc<dyn Context>,
    queue: ByteQueue,
    ahead: ReorderBuffer<(Chunk, Reservation)>,
    window: Mutex<Window>,
}

/// The tuples that are still to be skipped and to be forwarded.
#[derive(Debug)]
struct Window {
    skip: usize,
    take: usize,
}

impl OrderedQueue {
    /// Creates the reader's queue, with a capacity that depends on the query's memory budget.
    pub fn queue_for(context: &dyn Context) -> ByteQueue {
        ByteQueue::new((context.memory_bytes() / WAITING_SHARE).min(WAITING_BYTES_MAX))
    }

    /// Forwards all tuples to `queue`.
    pub fn new(context: Arc<dyn Context>, queue: ByteQueue) -> Self {
        OrderedQueue::of_window(context, queue, 0, usize::MAX)
    }

    /// Skips `offset` tuples, forwards the next `limit` tuples, and then closes the queue.
    pub fn of_window(
        context: Arc<dyn Context>,
        queue: ByteQueue,
        offset: usize,
        limit: usize,
    ) -> Self {
        let window = Mutex::new(Window { skip: offset, take: limit });
        OrderedQueue { context, queue, ahead: ReorderBuffer::default(), window }
    }

    /// The reader's queue.
    pub fn queue(&self) -> &ByteQueue {
        &self.queue
    }

    /// Adds a chunk of the morsel at `position`.
    ///
    /// # Errors
    /// The chunk exceeds the memory budget.
    pub fn push(&self, position: u64, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact_if_sparse(0)?;
        let mut memory = Reservation::new(self.context.clone());
        memory.grow(chunk.value_bytes())?;
        let bytes = memory.bytes();
        self.ahead.put(position, (chunk, memory), bytes);
        self.pass_on();
        Ok(())
    }

    /// Marks the morsel at `position` as complete.
    pub fn end(&self, position: u64) {
        self.ahead.end(position);
        self.pass_on();
    }

    /// A token to wait for before the next chunk of the morsel at `position`, if it must wait.
    pub fn blocked(&self, position: u64) -> Option<Token> {
        let ahead_bytes_max = self.context.memory_bytes() / WAITING_SHARE;
        self.ahead.blocked(position, ahead_bytes_max).or_else(|| self.queue.full())
    }

    /// Creates a worker of a sink that forwards its morsels to this queue.
    pub fn worker(self: &Arc<Self>) -> Box<dyn SinkWorker> {
        Box::new(OrderedWorker { passed: self.clone(), position: 0 })
    }

    /// Finishes a sink that uses this queue: its output is what the reader of the queue has
    /// received.
    pub fn finish(&self) -> Finish {
        self.queue.close();
        Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), self.context.chunk_rows()) }
    }

    /// Whether no more chunks are needed. If so, workers that wait for earlier morsels are
    /// released.
    pub fn is_satisfied(&self) -> bool {
        let satisfied = self.queue.is_stopped() || lock(&self.window).take == 0;
        if satisfied {
            self.ahead.release();
        }
        satisfied
    }

    fn pass_on(&self) {
        while self
            .ahead
            .next(|chunks| chunks.into_iter().for_each(|next| self.pass(next)))
            .is_some()
        {}
    }

    /// Forwards the part of a chunk that lies in the window.
    fn pass(&self, (chunk, memory): (Chunk, Reservation)) {
        let mut window = lock(&self.window);
        let skipped = window.skip.min(chunk.rows());
        let taken = window.take.min(chunk.rows() - skipped);
        window.skip -= skipped;
        if window.take < usize::MAX {
            window.take -= taken;
        }
        let is_last = window.take == 0;
        drop(window);
        if taken > 0 {
            drop(self.queue.try_push(chunk.slice(skipped, taken), Some(memory)));
        }
        if is_last {
            self.queue.close();
        }
    }
}

/// A worker of a sink that forwards to an [`OrderedQueue`].
struct OrderedWorker {
    passed: Arc<OrderedQueue>,
    position: u64,
}

impl SinkWorker for OrderedWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.passed.push(self.position, chunk)
    }

    fn blocked(&self) -> Option<Token> {
        self.passed.blocked(self.position)
    }

    fn end(&mut self) -> Result<()> {
        self.passed.end(self.position);
        Ok(())
    }
}

/// A source of one morsel that reads a queue. Dropping it stops the queue.
#[derive(Debug)]
pub struct QueueSource(Arc<StopOnDrop>);

/// Stops its queue when dropped.
#[derive(Debug)]
struct StopOnDrop(ByteQueue);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl QueueSource {
    /// Creates a source that reads `queue`.
    pub fn of(queue: ByteQueue) -> Arc<dyn SourceRun> {
        Arc::new(QueueSource(Arc::new(StopOnDrop(queue))))
    }
}

impl SourceRun for QueueSource {
    fn morsels(&self) -> usize {
        1
    }

    fn open(&self, _morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(QueueReader(self.0.clone())))
    }
}

struct QueueReader(Arc<StopOnDrop>);

impl Reader for QueueReader {
    fn step(&mut self) -> Result<Step> {
        self.0.0.pop()
    }
}
