//! A chunk queue between two pipelines that run at the same time, or from a pipeline to the reader
//! of a result.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Token, lock};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::Step;

/// A queue of chunks, bounded in bytes, with any number of producers and consumers.
///
/// Calls never block: if the queue is full or empty, the caller gets a token to wait for. The
/// reservation that comes with a chunk counts it against the query's memory budget.
///
/// ```
/// use tessera_vector::Chunk;
/// use tessera_operator::{ByteQueue, Step};
///
/// let queue = ByteQueue::new(0);
/// let full = queue.try_push(Chunk::unit(), None).unwrap();
/// assert!(matches!(queue.pop().unwrap(), Step::HasOutput(_)));
/// assert!(full.is_ready());
/// queue.close();
/// assert!(matches!(queue.pop().unwrap(), Step::Done));
/// ```
#[derive(Debug, Clone)]
pub struct ByteQueue {
    capacity_bytes: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Chunks with their sizes.
    chunks: VecDeque<(Chunk, usize, Option<Reservation>)>,
    bytes: usize,
    /// Producers have finished.
    is_closed: bool,
    /// Consumers need no more chunks.
    is_stopped: bool,
    failure: Option<Error>,
    /// Producers that wait for space, and consumers that wait for a chunk.
    producers: Vec<Token>,
    consumers: Vec<Token>,
}

impl ByteQueue {
    /// Creates an empty queue that is full once it holds `capacity_bytes`.
    pub fn new(capacity_bytes: usize) -> Self {
        ByteQueue { capacity_bytes, state: Arc::default() }
    }

    /// Adds a chunk. If the queue is full afterward, returns a token that is ready when there is
    /// space. A full queue still accepts chunks, so each producer can exceed the capacity by one
    /// chunk. A stopped or failed queue drops the chunk.
    pub fn try_push(&self, chunk: Chunk, memory: Option<Reservation>) -> Option<Token> {
        let mut state = lock(&self.state);
        if state.is_stopped || state.failure.is_some() {
            return None;
        }
        let bytes = chunk.value_bytes();
        state.bytes += bytes;
        state.chunks.push_back((chunk, bytes, memory));
        wake(&mut state.consumers);
        self.room(&mut state)
    }

    /// Returns a token that is ready when there is space, if the queue is full.
    pub fn full(&self) -> Option<Token> {
        self.room(&mut lock(&self.state))
    }

    fn room(&self, state: &mut State) -> Option<Token> {
        let full = !state.chunks.is_empty() && state.bytes >= self.capacity_bytes;
        full.then(|| wait(&mut state.producers))
    }

    /// Returns the next chunk, `Blocked` if the queue is empty, or `Done` after the last one of a
    /// closed queue.
    ///
    /// # Errors
    /// A producer has failed.
    pub fn pop(&self) -> Result<Step> {
        let mut state = lock(&self.state);
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if let Some((chunk, bytes, memory)) = state.chunks.pop_front() {
            state.bytes -= bytes;
            if state.chunks.is_empty() || state.bytes < self.capacity_bytes {
                wake(&mut state.producers);
            }
            drop((state, memory));
            return Ok(Step::HasOutput(chunk));
        }
        if state.is_closed || state.is_stopped {
            return Ok(Step::Done);
        }
        Ok(Step::Blocked(wait(&mut state.consumers)))
    }

    /// Closes the queue: producers have finished.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        wake(&mut state.consumers);
    }

    /// Fails the queue: every later [`ByteQueue::pop`] returns the first error.
    pub fn fail(&self, error: Error) {
        let mut state = lock(&self.state);
        state.failure.get_or_insert(error);
        state.clear();
    }

    /// Stops the queue: drops all chunks, present and future, because no consumer needs them.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopped = true;
        state.clear();
    }

    /// Whether the queue was stopped.
    pub fn is_stopped(&self) -> bool {
        lock(&self.state).is_stopped
    }
}

impl State {
    fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
        wake(&mut self.producers);
        wake(&mut self.consumers);
    }
}

fn wait(waiting: &mut Vec<Token>) -> Token {
    let token = Token::new();
    // A producer or consumer that waits again has dropped its previous token.
    waiting.retain(|token| !token.is_last_reference());
    waiting.push(token.clone());
    token
}

fn wake(waiting: &mut Vec<Token>) {
    waiting.drain(..).for_each(|token| token.set_ready());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use tessera_context::Context;
    use tessera_context::testing::TestContext;

    use super::*;

    fn chunk(rows: usize) -> Chunk {
        Chunk::from_arrays(vec![Arc::new(Int64Array::from(vec![1; rows]))])
    }

    fn popped(queue: &ByteQueue) -> Option<usize> {
        match queue.pop().unwrap() {
            Step::HasOutput(chunk) => Some(chunk.rows()),
            _ => None,
        }
    }

    #[test]
    fn it_is_full_by_bytes_and_admits_one_chunk_always() {
        let queue = ByteQueue::new(80);
        assert!(queue.try_push(chunk(5), None).is_none());
        let full = queue.try_push(chunk(6), None).unwrap();
        assert!(queue.full().is_some());
        assert_eq!((popped(&queue), full.is_ready()), (Some(5), true));
        assert!(queue.try_push(chunk(1_000), None).is_some());
        assert_eq!(popped(&queue), Some(6));
        let large = queue.full().unwrap();
        assert_eq!((popped(&queue), large.is_ready()), (Some(1_000), true));
        assert!(queue.full().is_none());
        let Step::Blocked(token) = queue.pop().unwrap() else { panic!("it is empty") };
        queue.try_push(chunk(1), None);
        assert!(token.is_ready());
        queue.close();
        assert_eq!(popped(&queue), Some(1));
        assert!(matches!(queue.pop().unwrap(), Step::Done));
    }

    #[test]
    fn waiting_ends_when_the_queue_does() {
        let queue = ByteQueue::new(0);
        let Step::Blocked(empty) = queue.pop().unwrap() else { panic!("it is empty") };
        queue.fail(Error::data("first"));
        queue.fail(Error::data("second"));
        assert!(empty.is_ready());
        assert_eq!(queue.pop().unwrap_err().message(), "first");
        assert!(queue.try_push(chunk(1), None).is_none());
        let queue = ByteQueue::new(0);
        let full = queue.try_push(chunk(1), None).unwrap();
        queue.stop();
        assert!(full.is_ready() && queue.is_stopped());
        assert!(queue.try_push(chunk(1), None).is_none());
        assert!(matches!(queue.pop().unwrap(), Step::Done));
    }

    #[test]
    fn a_chunk_is_counted_until_it_is_taken() {
        let test = TestContext::new(100, 1);
        let context: Arc<dyn Context> = test.clone();
        let queue = ByteQueue::new(1 << 20);
        for rows in [1, 2] {
            let mut memory = Reservation::new(context.clone());
            memory.grow(rows * 8).unwrap();
            queue.try_push(chunk(rows), Some(memory));
        }
        assert_eq!(test.used(), 24);
        assert_eq!((popped(&queue), test.used()), (Some(1), 16));
        queue.stop();
        assert_eq!(test.used(), 0);
    }
}
