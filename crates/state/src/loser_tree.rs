//! A tree of losers: finds which of several sorted inputs has the next tuple (Knuth, *The Art of
//! Computer Programming* 3, §5.4.1).

/// Inputs by number; each inner node stores the loser of its match, so that one path is replayed
/// per tuple.
#[derive(Debug)]
pub struct LoserTree {
    losers: Vec<usize>,
    winner: usize,
}

impl LoserTree {
    /// Creates a tree of `count` inputs, at least one. `is_first(a, b)` returns whether the next
    /// tuple of `a` precedes that of `b`; finished inputs come last.
    pub fn new(count: usize, is_first: impl Fn(usize, usize) -> bool) -> LoserTree {
        // Leaf `i` is node `count + i`; node 1 is the root; `losers` has the loser of each inner
        // node.
        let mut losers = vec![0; count];
        let mut winners: Vec<usize> = vec![0; 2 * count];
        for (leaf, node) in (count..2 * count).enumerate() {
            winners[node] = leaf;
        }
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_first = is_first(left, right);
            (winners[node], losers[node]) = if left_first { (left, right) } else { (right, left) };
        }
        LoserTree { losers, winner: winners[1] }
    }

    /// The input whose tuple is next.
    #[inline(always)]
    pub fn winner(&self) -> usize {
        self.winner
    }

    /// Replays the path of the winner after it has moved to its next tuple.
    #[inline(always)]
    pub fn replay(&mut self, is_first: impl Fn(usize, usize) -> bool) {
        let mut node = (self.winner + self.losers.len()) / 2;
        while node > 0 {
            if is_first(self.losers[node], self.winner) {
                std::mem::swap(&mut self.losers[node], &mut self.winner);
            }
            node /= 2;
        }
    }
}
