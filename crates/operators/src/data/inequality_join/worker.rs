//! One worker of a join by inequalities.

use std::sync::Arc;

use tessera_operator::stream_util::Packer;
use tessera_operator::{Step, StreamWorker};
use tessera_rows::Candidates;
use tessera_state::join::{JoinKind, pairs_chunk};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::cursor::{PairCursor, Wanted};
use super::pairs::{BlockTuples, LazyPairs};
use super::side::{Bounds, Orders, ReadBlock, are_apart};
use super::{Shared, Spec};
use crate::data::unkeyed::decided;

/// The most blocks that are skipped in one step.
const SKIPPED_MAX: usize = 4_096;

/// The state of one worker.
pub(super) struct JoinWorker {
    shared: Arc<Shared>,
    /// Whether the consumer reads pairs by number.
    lazy: bool,
    input: Option<Input>,
    /// Marks the tuples of the input with a match.
    found: Vec<bool>,
    pairs: Candidates,
    packer: Packer,
}

/// A chunk of the stream.
struct Input {
    tuples: Chunk,
    orders: Orders,
    bounds: Bounds,
    /// The next block of the side.
    block: usize,
    /// The block whose pairs are being returned.
    current: Option<(ReadBlock, PairCursor)>,
}

impl JoinWorker {
    pub(super) fn new(shared: Arc<Shared>, lazy: bool) -> JoinWorker {
        let packer = Packer::new(shared.run.context.chunk_rows());
        let (found, pairs) = (Vec::new(), Candidates::default());
        JoinWorker { shared, lazy, input: None, found, pairs, packer }
    }
}

impl StreamWorker for JoinWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let tuples = chunk.compact()?;
        self.found.clear();
        self.found.resize(tuples.rows(), false);
        let orders = Orders::new(&self.shared.spec.stream_encoders, &tuples)?;
        let bounds = orders.bounds();
        self.input = Some(Input { tuples, orders, bounds, block: 0, current: None });
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.packer.pop() {
            return Ok(Step::HasOutput(chunk));
        }
        let Some(mut input) = self.input.take() else { return Ok(Step::NeedInput) };
        let shared = self.shared.clone();
        shared.run.context.check()?;
        match input.current.take() {
            Some((block, mut cursor)) => {
                if !self.join(&input, &block, &mut cursor)? {
                    input.current = Some((block, cursor));
                }
                self.input = Some(input);
            }
            None if input.block < shared.side.len() && !self.is_decided() => {
                input.next_block(&shared)?;
                self.input = Some(input);
            }
            None => {
                let Spec { kind, build, .. } = &*shared.spec;
                if let Some(chunk) = decided(*kind, &input.tuples, (&self.found, &[]), build)? {
                    self.packer.push(chunk)?;
                }
            }
        }
        Ok(self.packer.pop().map_or(Step::Again, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

impl Input {
    /// Moves to the next block that may have a match.
    fn next_block(&mut self, shared: &Shared) -> Result<()> {
        let comparisons = &shared.spec.comparisons;
        let limit = shared.side.len().min(self.block + SKIPPED_MAX);
        while self.block < limit && shared.side.is_apart(self.block, &self.bounds, comparisons) {
            self.block += 1;
        }
        if self.block == limit {
            return Ok(());
        }
        let block = shared.side.read(self.block)?;
        self.block += 1;
        let orders = &block.orders.orders;
        if !are_apart(&self.bounds, &orders.bounds(), comparisons) {
            let cursor = PairCursor::new(&self.orders, &block.orders, comparisons)?;
            self.current = Some((block, cursor));
        }
        Ok(())
    }
}

impl JoinWorker {
    /// Whether a match of a stream tuple makes its other pairs unnecessary.
    fn needs_one(&self) -> bool {
        matches!(self.shared.spec.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark)
    }

    /// Whether further pairs cannot change the result.
    fn is_decided(&self) -> bool {
        self.needs_one() && self.found.iter().all(|found| *found)
    }

    /// Joins one batch of pairs; returns whether it was the last one of the block.
    fn join(&mut self, input: &Input, block: &ReadBlock, cursor: &mut PairCursor) -> Result<bool> {
        let shared = self.shared.clone();
        let spec = &shared.spec;
        let needs_one = self.needs_one();
        self.pairs.clear();
        let wanted = Wanted {
            pairs: shared.run.context.chunk_rows().max(1),
            once: needs_one && spec.residual.is_none(),
            done: if needs_one { &self.found } else { &[] },
        };
        let is_last = cursor.next(&input.orders, &block.orders, wanted, &mut self.pairs)?;
        let tuples = BlockTuples(&block.tuples);
        if let Some(residual) = &spec.residual {
            residual.retain(&input.tuples, &tuples, &mut self.pairs, &shared.run)?;
        }
        let mut repeated = false;
        for position in &self.pairs.positions {
            repeated |= std::mem::replace(&mut self.found[*position as usize], true);
        }
        spec.kind.check_repeated(repeated)?;
        if spec.kind.marks_build() {
            self.pairs.rows.iter().for_each(|row| shared.matched.set(block.first_row + row));
        }
        if spec.kind.yields_pairs() && !self.pairs.is_empty() {
            self.packer.push(match self.lazy {
                true => {
                    LazyPairs::chunk(&input.tuples, &block.tuples, std::mem::take(&mut self.pairs))
                }
                false => pairs_chunk(&input.tuples, &tuples, &self.pairs)?,
            })?;
        }
        Ok(is_last)
    }
}
