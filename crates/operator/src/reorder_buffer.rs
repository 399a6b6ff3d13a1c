//! A buffer that takes pieces in any order and returns them in the order of their positions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use tessera_context::{Token, lock};

/// A reorder buffer for the parts of pieces at positions 0, 1, 2, … Each part is returned once,
/// after all parts before it.
#[derive(Debug)]
pub struct ReorderBuffer<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// The first piece that is not complete and returned.
    next: u64,
    pieces: BTreeMap<u64, Piece<T>>,
    /// The bytes of all parts in the buffer.
    bytes: usize,
    /// Whether a caller is processing parts that it took.
    is_taken: bool,
    /// Tokens of workers that wait with parts of a later piece, and its position.
    blocked: Vec<(u64, Token)>,
    /// The buffer has ended; new parts are dropped.
    is_released: bool,
}

#[derive(Debug)]
struct Piece<T> {
    parts: Vec<T>,
    bytes: usize,
    is_whole: bool,
}

impl<T> Default for ReorderBuffer<T> {
    fn default() -> Self {
        ReorderBuffer {
            state: Mutex::new(State {
                next: 0,
                pieces: BTreeMap::new(),
                bytes: 0,
                is_taken: false,
                blocked: Vec::new(),
                is_released: false,
            }),
        }
    }
}

impl<T> ReorderBuffer<T> {
    /// Adds a part of the piece at `position`; `bytes` is its size.
    pub fn put(&self, position: u64, part: T, bytes: usize) {
        let mut state = self.lock();
        if state.is_released {
            return;
        }
        state.bytes += bytes;
        let piece = state.piece(position);
        piece.parts.push(part);
        piece.bytes += bytes;
    }

    /// Marks the piece as complete.
    pub fn end(&self, position: u64) {
        let mut state = self.lock();
        if !state.is_released {
            state.piece(position).is_whole = true;
        }
    }

    /// Calls `process` with all parts that are next. Returns `None` if there are none, or while
    /// another call processes earlier parts. The caller repeats this until `None`.
    pub fn next<R>(&self, process: impl FnOnce(Vec<T>) -> R) -> Option<R> {
        let processed = process(self.take()?);
        self.done();
        Some(processed)
    }

    /// Takes the parts that are next. The caller calls [`ReorderBuffer::done`] after processing
    /// them.
    fn take(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        if state.is_taken {
            return None;
        }
        let mut taken = Vec::new();
        loop {
            let next = state.next;
            let Some(piece) = state.pieces.get_mut(&next) else { break };
            taken.append(&mut piece.parts);
            let (bytes, is_whole) = (std::mem::take(&mut piece.bytes), piece.is_whole);
            state.bytes -= bytes;
            if !is_whole {
                break;
            }
            state.pieces.remove(&next);
            state.next += 1;
        }
        state.wake();
        state.is_taken = !taken.is_empty();
        state.is_taken.then_some(taken)
    }

    /// Marks the taken parts as processed.
    fn done(&self) {
        let mut state = self.lock();
        state.is_taken = false;
        state.wake();
    }

    /// Ends the buffer: drops all parts, present and future, and wakes all waiting workers.
    pub fn release(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_released, true) {
            state.bytes = 0;
            let pieces = std::mem::take(&mut state.pieces);
            state.blocked.drain(..).for_each(|(_, token)| token.set_ready());
            drop(state);
            drop(pieces);
        }
    }

    /// Whether the buffer holds no pieces.
    pub fn is_empty(&self) -> bool {
        self.lock().pieces.is_empty()
    }

    /// A token to wait for before another part of this piece is added, if the buffer holds more
    /// than `bytes_max`. It is ready when the piece is next and the taken parts are processed.
    pub fn blocked(&self, position: u64, bytes_max: usize) -> Option<Token> {
        let mut state = self.lock();
        let is_next = position <= state.next && !state.is_taken;
        if state.is_released || is_next || state.bytes <= bytes_max {
            return None;
        }
        let token = Token::new();
        state.blocked.push((position, token.clone()));
        Some(token)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

impl<T> State<T> {
    fn wake(&mut self) {
        let next = self.next;
        let (ready, blocked) = self.blocked.drain(..).partition(|(position, _)| *position <= next);
        self.blocked = blocked;
        ready.iter().for_each(|(_, token): &(u64, Token)| token.set_ready());
    }

    fn piece(&mut self, position: u64) -> &mut Piece<T> {
        let new = || Piece { parts: Vec::new(), bytes: 0, is_whole: false };
        self.pieces.entry(position).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_in_order_by_one_at_a_time() {
        let pieces = ReorderBuffer::default();
        pieces.put(1, "c", 10);
        pieces.end(1);
        pieces.put(2, "d", 10);
        assert_eq!(pieces.take(), None);
        pieces.put(0, "a", 10);
        assert_eq!(pieces.take(), Some(vec!["a"]));
        pieces.put(0, "b", 10);
        pieces.end(0);
        assert_eq!(pieces.take(), None, "earlier parts are being processed");
        pieces.done();
        assert_eq!(pieces.take(), Some(vec!["b", "c", "d"]));
        pieces.done();
        assert_eq!(pieces.take(), None);
        assert!(!pieces.is_empty());
        pieces.end(2);
        assert_eq!(pieces.take(), None);
        assert!(pieces.is_empty());
    }

    #[test]
    fn no_worker_waits_after_the_end() {
        let pieces = ReorderBuffer::default();
        pieces.put(1, 'b', 60);
        let token = pieces.blocked(1, 0).unwrap();
        pieces.release();
        assert!(token.is_ready());
        pieces.put(0, 'a', 60);
        pieces.end(0);
        assert!(pieces.blocked(2, 0).is_none() && pieces.take().is_none() && pieces.is_empty());
    }

    #[test]
    fn who_is_too_far_ahead_waits_for_its_turn() {
        let pieces = ReorderBuffer::default();
        pieces.put(1, 'b', 60);
        assert!(pieces.blocked(1, 60).is_none() && pieces.blocked(0, 0).is_none());
        let token = pieces.blocked(1, 59).unwrap();
        pieces.put(0, 'a', 1);
        assert_eq!(pieces.take(), Some(vec!['a']));
        assert!(!token.is_ready());
        let behind = pieces.blocked(0, 0).unwrap();
        pieces.done();
        assert!(behind.is_ready());
        pieces.end(0);
        assert_eq!(pieces.take(), Some(vec!['b']));
        assert!(token.is_ready());
    }
}
