//! What the blocks of a text file do to the state that records are read in, found out once each.
//!
//! The state that a block begins in (inside quotes, say) follows from all blocks before it. A
//! reader says which blocks it is about to count, so that others wait for the count instead of
//! fetching the block again: of an object, that is dear. It waits only for blocks before those that
//! it has said itself, and counts its own as soon as its bytes have come; so no two readers wait
//! for each other.

use std::sync::{Arc, Mutex, MutexGuard};

use tessera_context::{Token, lock};

/// The most states of a format.
pub(crate) const STATES: usize = 5;

/// For each state before some bytes, the state behind them. A file begins in the first.
pub(crate) type Transition = [u8; STATES];

/// What is known of one block.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// Nothing, and nobody counts.
    Unknown,
    /// A reader counts; the token is ready when it has, or has given up.
    Counting(Token),
    /// What it does to the state.
    Counted(Transition),
}

/// What is known of the blocks of one file.
#[derive(Debug)]
pub(crate) struct Quotes(Mutex<Vec<Block>>);

impl Quotes {
    pub(crate) fn new(blocks: usize) -> Arc<Quotes> {
        Arc::new(Quotes(Mutex::new(vec![Block::Unknown; blocks])))
    }

    pub(crate) fn block(&self, block: usize) -> Block {
        self.lock()[block].clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Block>> {
        lock(&self.0)
    }
}

/// The blocks that one reader counts; dropped, it leaves those that it has not counted to others.
#[derive(Debug)]
pub(crate) struct Counting {
    quotes: Arc<Quotes>,
    claimed: Vec<usize>,
}

impl Counting {
    pub(crate) fn new(quotes: Arc<Quotes>) -> Counting {
        Counting { quotes, claimed: Vec::new() }
    }

    /// Says that this reader counts a block, where nobody does yet; whether it does.
    pub(crate) fn claim(&mut self, block: usize) -> bool {
        if self.claimed.contains(&block) {
            return true;
        }
        let mut blocks = self.quotes.lock();
        if !matches!(blocks[block], Block::Unknown) {
            return false;
        }
        blocks[block] = Block::Counting(Token::new());
        self.claimed.push(block);
        true
    }

    /// Whether this reader has said that it counts a block, and has not yet.
    pub(crate) fn counts(&self, block: usize) -> bool {
        self.claimed.contains(&block)
    }

    /// The block does this to the state.
    pub(crate) fn counted(&mut self, block: usize, transition: Transition) {
        self.claimed.retain(|other| *other != block);
        let before = std::mem::replace(&mut self.quotes.lock()[block], Block::Counted(transition));
        if let Block::Counting(token) = before {
            token.set_ready();
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let mut blocks = self.quotes.lock();
        for block in &self.claimed {
            // Somebody else may have had its bytes, too.
            if let Block::Counting(token) = &blocks[*block] {
                let token = token.clone();
                blocks[*block] = Block::Unknown;
                token.set_ready();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_counted_by_one_reader() {
        let quotes = Quotes::new(3);
        let (mut first, mut second) =
            (Counting::new(quotes.clone()), Counting::new(quotes.clone()));
        assert!(first.claim(0) && first.claim(0) && !second.claim(0) && second.claim(1));
        let Block::Counting(token) = quotes.block(0) else { panic!("nobody counts") };
        first.counted(0, [2; STATES]);
        assert!(token.is_ready() && !first.counts(0) && !first.claim(0));
        assert!(matches!(quotes.block(0), Block::Counted([2, ..])));
    }

    #[test]
    fn what_a_reader_leaves_is_left_to_others() {
        let quotes = Quotes::new(2);
        let (mut first, mut second) =
            (Counting::new(quotes.clone()), Counting::new(quotes.clone()));
        assert!(first.claim(0) && first.claim(1));
        // Who had the bytes anyway has counted them.
        second.counted(1, [0; STATES]);
        let Block::Counting(token) = quotes.block(0) else { panic!("nobody counts") };
        drop(first);
        assert!(token.is_ready() && second.claim(0));
        assert!(matches!(quotes.block(1), Block::Counted([0, ..])));
    }
}
