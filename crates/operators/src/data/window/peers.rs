//! Results that are the same for all peers: known only with the last one.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;
use tessera_context::{Reservation, Run};
use tessera_rows::SpillableChunk;
use tessera_rows::spill::SpillFile;
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::waiting::Waiting;

/// Gives all peers the values of the last one in some fields. Tuples wait until the next group of
/// peers begins.
pub(super) struct Peers {
    fields: Vec<usize>,
    /// The last group so far.
    waiting: Waiting,
    /// The values of its last tuple; `None` if it has no tuples.
    last: Option<Arc<[ArrayRef]>>,
    output: VecDeque<Output>,
    output_memory: Reservation,
}

/// Tuples that are complete once their fields have these values; `None` if they have them already.
struct Output {
    chunk: SpillableChunk,
    values: Option<Arc<[ArrayRef]>>,
}

impl Peers {
    pub(super) fn new(fields: &[usize], run: &Run, file: Option<Arc<SpillFile>>) -> Peers {
        Peers {
            fields: fields.to_vec(),
            waiting: Waiting::new(run, file),
            last: None,
            output: VecDeque::new(),
            output_memory: Reservation::new(run.context.clone()),
        }
    }

    /// Adds tuples; `starts` marks the first one of each group.
    pub(super) fn push(&mut self, chunk: Chunk, starts: &BooleanArray) -> Result<()> {
        if self.fields.is_empty() {
            self.output.push_back(Output { chunk: chunk.into(), values: None });
            return Ok(());
        }
        let starts: Vec<u32> = starts.values().set_indices_u32().collect();
        if let (Some(first), Some(border)) = (starts.first(), starts.last()) {
            if *first > 0 {
                self.last = Some(self.values(&chunk, *first as usize - 1)?);
            }
            self.close()?;
            self.complete(&chunk.slice(0, *border as usize), &starts)?;
            let rest = chunk.slice(*border as usize, chunk.rows() - *border as usize);
            return self.wait(rest);
        }
        self.wait(chunk)
    }

    /// Ends the last group.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(last) = self.last.take() else { return Ok(()) };
        let (chunks, bytes) = self.waiting.take()?;
        self.output_memory.grow(bytes)?;
        let with_last = |chunk| Output { chunk, values: Some(last.clone()) };
        self.output.extend(chunks.into_iter().map(with_last));
        Ok(())
    }

    /// Returns the next tuples.
    pub(super) fn pop(&mut self) -> Result<Option<Chunk>> {
        let Some(Output { chunk, values }) = self.output.pop_front() else {
            self.output_memory.resize(0)?;
            return Ok(None);
        };
        let chunk = chunk.chunk()?;
        let Some(values) = values else { return Ok(Some(chunk)) };
        let firsts = UInt32Array::from(vec![0; chunk.rows()]);
        let columns = values.iter().map(|value| Ok(take(value, &firsts, None)?));
        self.replaced(&chunk, columns.collect::<Result<_>>()?).map(Some)
    }

    fn wait(&mut self, chunk: Chunk) -> Result<()> {
        self.last = Some(self.values(&chunk, chunk.rows() - 1)?);
        self.waiting.push(chunk)
    }

    /// Emits tuples whose groups all end among them; `starts` are the groups' first rows, and the
    /// number of tuples.
    fn complete(&mut self, chunk: &Chunk, starts: &[u32]) -> Result<()> {
        if chunk.rows() == 0 {
            return Ok(());
        }
        let mut ends: Vec<u32> = Vec::with_capacity(chunk.rows());
        for start in starts {
            ends.resize(*start as usize, start.saturating_sub(1));
        }
        let ends = UInt32Array::from(ends);
        let of_ends = |field: &usize| Ok(take(&chunk.column(*field)?.plain()?, &ends, None)?);
        let columns = self.fields.iter().map(of_ends).collect::<Result<_>>()?;
        let chunk = self.replaced(chunk, columns)?;
        self.output.push_back(Output { chunk: chunk.into(), values: None });
        Ok(())
    }

    fn replaced(&self, chunk: &Chunk, values: Vec<ArrayRef>) -> Result<Chunk> {
        let mut columns = chunk.stored().to_vec();
        for (field, values) in self.fields.iter().zip(values) {
            columns[*field] = Column::Plain(values);
        }
        Ok(Chunk::new(columns, chunk.rows()))
    }

    /// Copies the values of a row: a slice would keep all of them alive.
    fn values(&self, chunk: &Chunk, row: usize) -> Result<Arc<[ArrayRef]>> {
        let row = UInt32Array::from(vec![row as u32]);
        let value = |field: &usize| Ok(take(&chunk.column(*field)?.plain()?, &row, None)?);
        self.fields.iter().map(value).collect()
    }
}
