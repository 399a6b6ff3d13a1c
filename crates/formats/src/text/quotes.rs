//! The effect of each block of a text file on the tokenizer state, computed once per block.
//!
//! The state at the start of a block, such as inside quotes, follows from all earlier blocks. A
//! reader claims the blocks that it will count, so that other readers wait for the count instead of
//! fetching the block again, which is expensive for remote objects. A reader waits only for blocks
//! before those it has claimed, and counts its own blocks as soon as their bytes arrive. So readers
//! never wait for each other in a cycle.

use std::sync::{Arc, Mutex, MutexGuard};

use tessera_context::{Token, lock};

/// The most states of a format.
pub(crate) const STATES: usize = 5;

/// For each state before some bytes, the state after them. A file begins in state 0.
pub(crate) type Transition = [u8; STATES];

/// The counting state of one block.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// Not counted, and not claimed.
    Uncounted,
    /// Claimed by a reader; the token is ready when it has counted or has given up.
    Claimed(Token),
    /// Counted: the effect on the state.
    Counted(Transition),
}

/// The counting states of the blocks of one file.
#[derive(Debug)]
pub(crate) struct Quotes(Mutex<Vec<Block>>);

impl Quotes {
    pub(crate) fn new(blocks: usize) -> Arc<Quotes> {
        Arc::new(Quotes(Mutex::new(vec![Block::Uncounted; blocks])))
    }

    pub(crate) fn block(&self, block: usize) -> Block {
        self.lock()[block].clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Block>> {
        lock(&self.0)
    }
}

/// The blocks that one reader has claimed. Dropping it releases the blocks that are not counted.
#[derive(Debug)]
pub(crate) struct BlockClaims {
    quotes: Arc<Quotes>,
    claimed: Vec<usize>,
}

impl BlockClaims {
    pub(crate) fn new(quotes: Arc<Quotes>) -> BlockClaims {
        BlockClaims { quotes, claimed: Vec::new() }
    }

    /// Claims a block if it is not counted or claimed. Returns whether this reader has the claim.
    pub(crate) fn claim(&mut self, block: usize) -> bool {
        if self.claimed.contains(&block) {
            return true;
        }
        let mut blocks = self.quotes.lock();
        if !matches!(blocks[block], Block::Uncounted) {
            return false;
        }
        blocks[block] = Block::Claimed(Token::new());
        self.claimed.push(block);
        true
    }

    /// Whether this reader has claimed the block and not counted it yet.
    pub(crate) fn has_claim(&self, block: usize) -> bool {
        self.claimed.contains(&block)
    }

    /// Stores the effect of a block.
    pub(crate) fn store(&mut self, block: usize, transition: Transition) {
        self.claimed.retain(|other| *other != block);
        let before = std::mem::replace(&mut self.quotes.lock()[block], Block::Counted(transition));
        if let Block::Claimed(token) = before {
            token.set_ready();
        }
    }
}

impl Drop for BlockClaims {
    fn drop(&mut self) {
        let mut blocks = self.quotes.lock();
        for block in &self.claimed {
            // Another reader may have counted the block meanwhile.
            if let Block::Claimed(token) = &blocks[*block] {
                let token = token.clone();
                blocks[*block] = Block::Uncounted;
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
            (BlockClaims::new(quotes.clone()), BlockClaims::new(quotes.clone()));
        assert!(first.claim(0) && first.claim(0) && !second.claim(0) && second.claim(1));
        let Block::Claimed(token) = quotes.block(0) else { panic!("the block is not claimed") };
        first.store(0, [2; STATES]);
        assert!(token.is_ready() && !first.has_claim(0) && !first.claim(0));
        assert!(matches!(quotes.block(0), Block::Counted([2, ..])));
    }

    #[test]
    fn what_a_reader_leaves_is_left_to_others() {
        let quotes = Quotes::new(2);
        let (mut first, mut second) =
            (BlockClaims::new(quotes.clone()), BlockClaims::new(quotes.clone()));
        assert!(first.claim(0) && first.claim(1));
        // A reader without a claim may also store a count.
        second.store(1, [0; STATES]);
        let Block::Claimed(token) = quotes.block(0) else { panic!("the block is not claimed") };
        drop(first);
        assert!(token.is_ready() && second.claim(0));
        assert!(matches!(quotes.block(1), Block::Counted([0, ..])));
    }
}
