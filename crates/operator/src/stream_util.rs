//! Helpers for streams and sources: one-chunk transforms, sources over chunks, packing of small
//! chunks.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_rows::{Collected, SpillableChunk};
use tessera_types::Result;
use tessera_vector::{CHUNK_ROWS, CHUNK_ROWS_MAX, Chunk, Column, repeat_value};

use crate::{Reader, SourceRun, Step};

mod deferred;
mod transform;

pub use deferred::{DeferredSource, PendingSource};
pub use transform::{Packer, Transform, packed_transform_run, transform_run};

/// Chunks of a finished collection per morsel: enough work to pay for the scheduler, few enough to
/// balance the load.
pub const MORSEL_CHUNKS: usize = 16;

/// The most morsels of tuples that hold collections. Such a tuple may be the input of a whole
/// nested plan, so tuples are distributed one by one if there are few.
const HANDLE_MORSELS_MAX: usize = 256;

/// A source over chunks in memory: several chunks per morsel, in order. Chunks larger than
/// `chunk_rows` are sliced.
pub fn chunks_source(chunks: impl Into<Arc<[Chunk]>>, chunk_rows: usize) -> Arc<dyn SourceRun> {
    let chunks = chunks.into();
    let holds_handles =
        |chunk: &Chunk| chunk.stored().iter().any(|c| matches!(c, Column::Handles(_)));
    if !chunks.first().is_some_and(holds_handles) {
        let chunks = chunks.iter().cloned().map(SpillableChunk::from).collect();
        return Arc::new(ChunksRun { chunks, chunk_rows, morsel_chunks: MORSEL_CHUNKS });
    }
    let rows: usize = chunks.iter().map(Chunk::rows).sum();
    let piece = rows.div_ceil(HANDLE_MORSELS_MAX).clamp(1, chunk_rows.max(1));
    let pieces = |chunk: &Chunk| {
        let chunk = chunk.clone();
        let starts = (0..chunk.rows()).step_by(piece);
        starts
            .map(move |start| chunk.slice(start, piece.min(chunk.rows() - start)))
            .collect::<Vec<_>>()
    };
    let chunks: Vec<SpillableChunk> =
        chunks.iter().flat_map(pieces).map(SpillableChunk::from).collect();
    let morsel_chunks = chunks.len().div_ceil(HANDLE_MORSELS_MAX).max(1);
    Arc::new(ChunksRun { chunks: chunks.into(), chunk_rows, morsel_chunks })
}

/// A source of one morsel, which `open` opens.
pub fn one_morsel(
    open: impl Fn() -> Result<Box<dyn Reader>> + Send + Sync + 'static,
) -> Arc<dyn SourceRun> {
    Arc::new(OneMorsel { open: Box::new(open) })
}

struct OneMorsel {
    open: Box<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>,
}

impl Debug for OneMorsel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneMorsel").finish_non_exhaustive()
    }
}

impl SourceRun for OneMorsel {
    fn morsels(&self) -> usize {
        1
    }

    fn open(&self, _morsel: usize) -> Result<Box<dyn Reader>> {
        (self.open)()
    }
}

/// The most tuples of a chunk for consumers of long chunks. A setting below the default chunk size
/// wins.
pub fn long_chunk_rows(chunk_rows: usize) -> usize {
    if chunk_rows < CHUNK_ROWS { chunk_rows } else { CHUNK_ROWS_MAX }
}

/// A source over a complete input.
pub fn collected_source(collected: &Collected, chunk_rows: usize) -> Arc<dyn SourceRun> {
    if let Some(chunks) = collected
        .spillable_chunks()
        .iter()
        .map(|kept| kept.in_memory().cloned())
        .collect::<Option<Vec<_>>>()
    {
        return chunks_source(chunks, chunk_rows);
    }
    Arc::new(ChunksRun {
        chunks: collected.spillable_chunks().into(),
        chunk_rows,
        morsel_chunks: MORSEL_CHUNKS,
    })
}

#[derive(Debug)]
struct ChunksRun {
    chunks: Arc<[SpillableChunk]>,
    chunk_rows: usize,
    morsel_chunks: usize,
}

impl SourceRun for ChunksRun {
    fn morsels(&self) -> usize {
        self.chunks.len().div_ceil(self.morsel_chunks)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, self.chunk_rows)))
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, long_chunk_rows(self.chunk_rows))))
    }
}

impl ChunksRun {
    fn reader(&self, morsel: usize, chunk_rows: usize) -> ChunksReader {
        let first = (morsel * self.morsel_chunks).min(self.chunks.len());
        let last = (first + self.morsel_chunks).min(self.chunks.len());
        ChunksReader::from_spillable(self.chunks[first..last].to_vec(), chunk_rows)
    }
}

/// Combines row `row` of one chunk with all rows of the other, with the fields of `left` first.
/// Neither chunk may have a selection.
///
/// # Errors
/// The row does not exist.
pub fn pairs_with_row(left: &Chunk, right: &Chunk, repeat_left: bool, row: usize) -> Result<Chunk> {
    let (short, long) = if repeat_left { (left, right) } else { (right, left) };
    let repeated = short.stored().iter().map(|column| repeat_value(column, row, long.rows()));
    let repeated = repeated.collect::<Result<Vec<Column>>>()?;
    let (mut columns, behind) = match repeat_left {
        true => (repeated, long.stored().to_vec()),
        false => (long.stored().to_vec(), repeated),
    };
    columns.extend(behind);
    Ok(Chunk::new(columns, long.rows()))
}

/// Cuts chunks into pieces.
#[derive(Debug, Default)]
pub struct Cutter {
    /// The current chunk and its first row that has not been returned.
    rest: Option<(Chunk, usize)>,
}

impl Cutter {
    /// Takes a chunk. The previous one must have been consumed.
    pub fn put(&mut self, chunk: Chunk) {
        debug_assert!(self.rest.is_none());
        self.rest = Some((chunk, 0));
    }

    /// Returns the next piece, of at most `rows_max` tuples; takes what `packer` has ready.
    pub fn pop_packed(&mut self, packer: &mut Packer, rows_max: usize) -> Option<Chunk> {
        if self.rest.is_none() {
            self.put(packer.pop()?);
        }
        self.pop(rows_max)
    }

    /// Returns the next piece, of at most `rows_max` tuples.
    pub fn pop(&mut self, rows_max: usize) -> Option<Chunk> {
        let (chunk, start) = self.rest.take()?;
        let len = rows_max.max(1).min(chunk.rows() - start);
        if len == chunk.rows() {
            return Some(chunk);
        }
        let piece = chunk.slice(start, len);
        if start + len < chunk.rows() {
            self.rest = Some((chunk, start + len));
        }
        Some(piece)
    }
}

/// Reads chunks, sliced to at most `chunk_rows` tuples.
#[derive(Debug)]
pub struct ChunksReader {
    chunks: std::vec::IntoIter<SpillableChunk>,
    cutter: Cutter,
    chunk_rows: usize,
}

impl ChunksReader {
    /// Creates a reader over chunks in memory.
    pub fn new(chunks: Vec<Chunk>, chunk_rows: usize) -> Self {
        ChunksReader::from_spillable(
            chunks.into_iter().map(SpillableChunk::from).collect(),
            chunk_rows,
        )
    }

    /// Creates a reader over chunks that may have been spilled.
    pub fn from_spillable(chunks: Vec<SpillableChunk>, chunk_rows: usize) -> Self {
        ChunksReader { chunks: chunks.into_iter(), cutter: Cutter::default(), chunk_rows }
    }
}

impl Reader for ChunksReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(piece) = self.cutter.pop(self.chunk_rows) {
                return Ok(Step::HasOutput(piece));
            }
            match self.chunks.next() {
                None => return Ok(Step::Done),
                Some(chunk) if chunk.is_empty() => {}
                Some(kept) => self.cutter.put(kept.chunk()?),
            }
        }
    }
}

/// Numbers the tuples of a stream in the order of its source, where each of `n` processes reads
/// every n-th morsel.
#[derive(Debug)]
pub struct SourcePositions {
    process: u64,
    processes: u64,
    morsel: u64,
    rows: u64,
}

impl SourcePositions {
    /// The low bits of a position, which number the tuples of a morsel. The bits above number the
    /// morsels of all processes.
    pub const ROW_BITS: u32 = 36;

    /// Creates the positions of one process among `processes`.
    pub fn new(process: usize, processes: usize) -> Self {
        SourcePositions { process: process as u64, processes: processes as u64, morsel: 0, rows: 0 }
    }

    /// Begins a morsel of this process.
    pub fn begin(&mut self, position: u64) {
        (self.morsel, self.rows) = (position * self.processes + self.process, 0);
    }

    /// Adds the positions of the tuples to a chunk of the morsel, as its first field.
    ///
    /// # Errors
    /// Those of [`Chunk::compact`].
    pub fn before(&mut self, chunk: Chunk) -> Result<Chunk> {
        let chunk = chunk.compact()?;
        let rows = chunk.rows();
        let first = (self.morsel << Self::ROW_BITS | self.rows) as i64;
        self.rows += rows as u64;
        let positions: ArrayRef =
            Arc::new(Int64Array::from_iter_values(first..first + rows as i64));
        let columns = [Column::Plain(positions)].into_iter().chain(chunk.stored().iter().cloned());
        Ok(Chunk::new(columns.collect(), rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_long_for_who_takes_such_unless_all_are_to_be_short() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let first = |chunk_rows: usize, open: fn(&dyn SourceRun) -> Result<Box<dyn Reader>>| {
            let source = chunks_source(vec![Chunk::from_arrays(vec![numbers.clone()])], chunk_rows);
            let step = open(&*source).and_then(|mut reader| reader.step());
            match step.unwrap() {
                Step::HasOutput(chunk) => chunk.rows(),
                _ => 0,
            }
        };
        assert_eq!(first(CHUNK_ROWS, |source| source.open(0)), CHUNK_ROWS);
        assert_eq!(first(CHUNK_ROWS, |source| source.open_long(0)), CHUNK_ROWS_MAX);
        assert_eq!(first(61, |source| source.open_long(0)), 61);
    }
}
