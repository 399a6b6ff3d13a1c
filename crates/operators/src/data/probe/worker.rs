//! The worker of a probe: looks up chunks and yields pairs, or tuples with or without a match.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::buffer::{BooleanBuffer, NullBuffer};

use tessera_operator::stream_util::Packer;
use tessera_operator::{Step, StreamWorker};
use tessera_rows::{Candidates, NO_ROW};
use tessera_state::join::{JoinKind, Lookup, Pairs, pairs_chunk, select_positions};
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::Shared;

pub(super) struct ProbeWorker {
    pub(super) shared: Arc<Shared>,
    pub(super) input: Option<Chunk>,
    pub(super) lookup: Lookup,
    pub(super) pairs: Candidates,
    /// Whether each tuple of the input has found a match.
    pub(super) found: Vec<bool>,
    pub(super) first: bool,
    /// Whether pairs are yielded as row numbers, to be materialized later.
    pub(super) lazy: bool,
    pub(super) packer: Packer,
}

impl StreamWorker for ProbeWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let stays = match &self.shared.spilled_stream {
            None => Some(chunk),
            Some(spilled_stream) => spilled_stream.put(chunk)?,
        };
        let Some(chunk) = stays else { return Ok(()) };
        let Shared { table, spec, compiled, .. } = &*self.shared;
        table.lookup(&chunk, &spec.keys, compiled.as_ref(), &mut self.lookup)?;
        self.found.clear();
        self.found.resize(chunk.rows(), false);
        self.first = true;
        self.input = Some(chunk);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.packer.pop() {
            return Ok(Step::HasOutput(chunk));
        }
        let Some(input) = self.input.take() else { return Ok(Step::NeedInput) };
        self.shared.run.context.check()?;
        let more = match self.shared.spec.kind {
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => self.decide(&input)?,
            JoinKind::BuildSemi | JoinKind::BuildAnti => self.mark_build(&input)?,
            _ => self.pair(&input)?,
        };
        self.input = more.then_some(input);
        Ok(self
            .packer
            .pop()
            .map_or(if more { Step::Again } else { Step::NeedInput }, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

impl ProbeWorker {
    fn limit(&self) -> usize {
        self.shared.run.context.chunk_rows()
    }

    fn retain_residual(&mut self, input: &Chunk) -> Result<()> {
        match &self.shared.spec.residual {
            Some(residual) => {
                residual.retain(input, &*self.shared.table, &mut self.pairs, &self.shared.run)
            }
            None => Ok(()),
        }
    }

    /// Joins one batch of pairs; returns whether the input has more.
    fn pair(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        let limit = self.limit();
        shared.table.next_pairs(&mut self.lookup, limit, &mut self.pairs)?;
        self.retain_residual(input)?;
        if shared.spec.kind.marks_build() {
            self.pairs.rows.iter().for_each(|row| shared.matched.set(*row));
        }
        let (first, done) = (std::mem::replace(&mut self.first, false), self.lookup.is_done());
        if !shared.spec.kind.keeps_stream() {
            self.yield_pairs(input)?;
            return Ok(!done);
        }
        let mut repeated = false;
        for position in &self.pairs.positions {
            repeated |= std::mem::replace(&mut self.found[*position as usize], true);
        }
        shared.spec.kind.check_repeated(repeated)?;
        if first && done && !repeated {
            // Every input tuple occurs once in the output: all in order, in one chunk.
            let mut rows = vec![NO_ROW; input.rows()];
            let pairs = self.pairs.positions.iter().zip(&self.pairs.rows);
            pairs.for_each(|(position, row)| rows[*position as usize] = *row);
            self.pairs.rows = rows;
            self.pairs.positions = (0..input.rows() as u32).collect();
            self.yield_pairs(input)?;
            return Ok(false);
        }
        self.yield_pairs(input)?;
        if done {
            self.pairs.clear();
            for (position, _) in self.found.iter().enumerate().filter(|(_, found)| !**found) {
                self.pairs.push(NO_ROW, position as u32);
            }
            self.yield_pairs(input)?;
        }
        Ok(!done)
    }

    fn yield_pairs(&mut self, input: &Chunk) -> Result<()> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let table = &self.shared.table;
        self.packer.push(match self.lazy {
            true => Pairs::chunk(input, table, std::mem::take(&mut self.pairs)),
            false => pairs_chunk(input, &**table, &self.pairs)?,
        })
    }

    /// Marks the build tuples of one batch of pairs; returns whether the input has more.
    fn mark_build(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        let limit = self.limit();
        shared.table.next_pairs(&mut self.lookup, limit, &mut self.pairs)?;
        if shared.spec.residual.is_some() {
            self.pairs.retain(|row, _| !shared.matched.get(row));
            self.retain_residual(input)?;
        }
        self.pairs.rows.iter().for_each(|row| shared.matched.set(*row));
        Ok(!self.lookup.is_done())
    }

    /// Joins one batch of pairs. After the last batch, yields the tuples that have, or lack, a
    /// match.
    fn decide(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        if !self.lookup.is_exhausted() {
            let limit = self.limit();
            let found = &self.found;
            shared.table.next_round(
                &mut self.lookup,
                limit,
                |position| !found[position as usize],
                &mut self.pairs,
            )?;
            self.retain_residual(input)?;
            self.pairs.positions.iter().for_each(|position| self.found[*position as usize] = true);
            if !self.lookup.is_exhausted() {
                return Ok(true);
            }
        }
        let unknown = if shared.spec.null_aware { self.unknown(input)? } else { Vec::new() };
        let is_unknown = |position: usize| unknown.get(position).copied().unwrap_or(false);
        if shared.spec.kind == JoinKind::Mark {
            return self.yield_marks(input, is_unknown).map(|()| false);
        }
        let wanted = shared.spec.kind == JoinKind::Semi;
        let positions: Vec<u32> = (0..input.rows())
            .filter(|position| self.found[*position] == wanted && !is_unknown(*position))
            .map(|position| position as u32)
            .collect();
        if !positions.is_empty() {
            self.packer.push(select_positions(input, &positions))?;
        }
        Ok(false)
    }

    fn yield_marks(&mut self, input: &Chunk, is_unknown: impl Fn(usize) -> bool) -> Result<()> {
        let mut marks = vec![(false, true); input.rows_stored()];
        for (position, found) in self.found.iter().enumerate() {
            let place = match input.selection() {
                None => position,
                Some(selection) => selection.value(position) as usize,
            };
            marks[place] = (*found, *found || !is_unknown(position));
        }
        let bits = BooleanBuffer::collect_bool(marks.len(), |place| marks[place].0);
        let nulls =
            NullBuffer::new(BooleanBuffer::collect_bool(marks.len(), |place| marks[place].1));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let mut columns = input.stored().to_vec();
        columns.push(Column::Plain(Arc::new(BooleanArray::new(bits, nulls))));
        self.packer.push(input.with_stored(columns))
    }

    /// Returns, for each tuple without a match, whether a NULL makes that unknown: a build tuple
    /// satisfies the residual, and its keys equal the tuple's when NULL is taken to equal anything.
    fn unknown(&mut self, input: &Chunk) -> Result<Vec<bool>> {
        let shared = self.shared.clone();
        let table = &shared.table;
        let (single, limit) = (shared.spec.decides_by_counts(), self.limit());
        let null_rows = if single { &[] } else { table.rows_with_null_keys()? };
        let mut unknown = vec![false; input.rows()];
        self.pairs.clear();
        for position in 0..input.rows() {
            if self.found[position] {
                continue;
            }
            let null_key = self.lookup.has_null_key(position as u32);
            if single {
                unknown[position] =
                    if null_key { shared.all.rows } else { shared.all.null_keys } > 0;
                continue;
            }
            let candidates = if null_key { table.len() } else { null_rows.len() };
            for row in (0..candidates).map(|i| if null_key { i as u64 } else { null_rows[i] }) {
                self.pairs.push(row, position as u32);
                if self.pairs.len() == limit {
                    self.settle(input, &mut unknown)?;
                    if unknown[position] {
                        break;
                    }
                }
            }
        }
        self.settle(input, &mut unknown)?;
        Ok(unknown)
    }

    /// Evaluates the pairs gathered so far for [`ProbeWorker::unknown`].
    fn settle(&mut self, input: &Chunk, unknown: &mut [bool]) -> Result<()> {
        self.shared.run.context.check()?;
        let table = self.shared.table.clone();
        table.retain_not_unequal(&self.lookup, &mut self.pairs)?;
        self.retain_residual(input)?;
        self.pairs.positions.iter().for_each(|position| unknown[*position as usize] = true);
        self.pairs.clear();
        Ok(())
    }
}
