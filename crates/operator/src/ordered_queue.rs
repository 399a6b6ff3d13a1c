//! A queue whose chunks come in the order of their source, whichever worker has made them.

use std::sync::{Arc, Mutex};

use tessera_context::{Context, Reservation, Token, lock};
use tessera_types::Result;
use tessera_vector::Chunk;

use crate::ByteQueue;
use crate::InOrder;
use crate::stream_util::chunks_source;
use crate::{Finish, Reader, SinkWorker, SourceRun, Step};

/// The most bytes that wait for a reader, however large the budget is.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// Of the budget, one part in so many may wait for the reader, and one may wait for chunks before
/// it.
const WAITING_SHARE: usize = 16;

/// Passes chunks on in the order of their morsels. Chunks of the first morsel that is not complete
/// go to the reader's queue at once; those of later ones wait.
#[derive(Debug)]
pub struct OrderedQueue {
    context: Arc<dyn Context>,
    queue: ByteQueue,
    ahead: InOrder<(Chunk, Reservation)>,
    window: Mutex<Window>,
}

/// Which tuples are passed on.
#[derive(Debug)]
struct Window {
    skip: usize,
    take: usize,
}

impl OrderedQueue {
    /// A queue for a query with this budget.
    pub fn queue_for(context: &dyn Context) -> ByteQueue {
        ByteQueue::new((context.memory_bytes() / WAITING_SHARE).min(WAITING_BYTES_MAX))
    }

    /// Passes all tuples on to a queue.
    pub fn new(context: Arc<dyn Context>, queue: ByteQueue) -> Self {
        OrderedQueue::of_window(context, queue, 0, usize::MAX)
    }

    /// Skips `offset` tuples, passes the next `limit` on, and closes the queue then.
    pub fn of_window(
        context: Arc<dyn Context>,
        queue: ByteQueue,
        offset: usize,
        limit: usize,
    ) -> Self {
        let window = Mutex::new(Window { skip: offset, take: limit });
        OrderedQueue { context, queue, ahead: InOrder::default(), window }
    }

    /// The queue of the reader.
    pub fn queue(&self) -> &ByteQueue {
        &self.queue
    }

    /// Another chunk of the morsel at this position.
    ///
    /// # Errors
    /// The budget has no room for it.
    pub fn push(&self, position: u64, chunk: Chunk) -> Result<()> {
        let chunk = chunk.without_much_else(0)?;
        let mut memory = Reservation::new(self.context.clone());
        memory.grow(chunk.value_bytes())?;
        let bytes = memory.bytes();
        self.ahead.put(position, (chunk, memory), bytes);
        self.pass_on();
        Ok(())
    }

    /// The morsel at this position is complete.
    pub fn end(&self, position: u64) {
        self.ahead.end(position);
        self.pass_on();
    }

    /// The token that the morsel at this position waits for before its next chunk, if it must wait.
    pub fn blocked(&self, position: u64) -> Option<Token> {
        let ahead_bytes_max = self.context.memory_bytes() / WAITING_SHARE;
        self.ahead.blocked(position, ahead_bytes_max).or_else(|| self.queue.full())
    }

    /// A worker of a sink that passes its morsels on to this queue.
    pub fn worker(self: &Arc<Self>) -> Box<dyn SinkWorker> {
        Box::new(OrderedWorker { passed: self.clone(), position: 0 })
    }

    /// Ends a sink whose workers passed everything on: the reader of the queue has its output.
    pub fn finish(&self) -> Finish {
        self.queue.close();
        Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), self.context.chunk_rows()) }
    }

    /// Whether no more chunks are wanted. If so, morsels that wait for their turn go on.
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

    /// Passes the part of a chunk on that is in the window.
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

/// A worker of a sink over an [`OrderedQueue`].
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

/// Reads a queue, as a source of one morsel. When it is dropped, nothing more is wanted.
#[derive(Debug)]
pub struct QueueSource(Arc<Stopped>);

/// Stops its queue.
#[derive(Debug)]
struct Stopped(ByteQueue);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl QueueSource {
    /// A source of what comes through a queue.
    pub fn of(queue: ByteQueue) -> Arc<dyn SourceRun> {
        Arc::new(QueueSource(Arc::new(Stopped(queue))))
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

struct QueueReader(Arc<Stopped>);

impl Reader for QueueReader {
    fn step(&mut self) -> Result<Step> {
        self.0.0.pop()
    }
}
