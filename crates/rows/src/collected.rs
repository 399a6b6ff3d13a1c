//! The complete output of a node: chunks in memory and spilled chunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_context::{Reservation, Run};
use tessera_types::{Error, Result};
use tessera_vector::{CHUNK_ROWS, Chunk, Column, concat_chunks};

use crate::spill::{SpillFile, TupleBlock, read_tuples, write_tuples};

/// Chunks are concatenated into a block of about this many bytes, or of a chunk's number of tuples.
const BLOCK_BYTES: usize = 256 << 10;

/// A chunk in memory or in a scratch file.
#[derive(Debug, Clone)]
pub struct SpillableChunk(Place);

#[derive(Debug, Clone)]
enum Place {
    Memory(Chunk),
    File(Arc<SpillFile>, TupleBlock),
}

impl From<Chunk> for SpillableChunk {
    fn from(chunk: Chunk) -> Self {
        SpillableChunk(Place::Memory(chunk))
    }
}

impl SpillableChunk {
    /// Refers to tuples in a scratch file.
    pub fn in_file(file: &Arc<SpillFile>, block: TupleBlock) -> Self {
        SpillableChunk(Place::File(file.clone(), block))
    }

    /// The number of tuples.
    pub fn rows(&self) -> usize {
        match &self.0 {
            Place::Memory(chunk) => chunk.rows(),
            Place::File(_, block) => block.rows,
        }
    }

    /// Returns whether there are no tuples.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Returns the chunk; a spilled chunk is read on each call.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn chunk(&self) -> Result<Chunk> {
        match &self.0 {
            Place::Memory(chunk) => Ok(chunk.clone()),
            Place::File(file, block) => read_tuples(file, block),
        }
    }

    /// Returns the same tuples without a selection vector.
    ///
    /// # Errors
    /// As [`Chunk::compact`].
    pub fn compact(&self) -> Result<SpillableChunk> {
        match &self.0 {
            Place::Memory(chunk) => Ok(chunk.clone().compact()?.into()),
            Place::File(..) => Ok(self.clone()),
        }
    }

    /// Returns the chunk if it is in memory.
    pub fn in_memory(&self) -> Option<&Chunk> {
        match &self.0 {
            Place::Memory(chunk) => Some(chunk),
            Place::File(..) => None,
        }
    }
}

/// The complete output of a node, in order.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    chunks: Vec<SpillableChunk>,
}

impl Collected {
    /// Collects these chunks.
    pub fn new(chunks: impl IntoIterator<Item = impl Into<SpillableChunk>>) -> Self {
        Collected { chunks: chunks.into_iter().map(Into::into).collect() }
    }

    /// The number of tuples.
    pub fn rows(&self) -> usize {
        self.chunks.iter().map(SpillableChunk::rows).sum()
    }

    /// Returns all chunks, in memory or spilled.
    pub fn spillable_chunks(&self) -> &[SpillableChunk] {
        &self.chunks
    }

    /// Iterates over all chunks; reads those that are spilled.
    pub fn chunks(&self) -> impl Iterator<Item = Result<Chunk>> + '_ {
        self.chunks.iter().map(SpillableChunk::chunk)
    }

    /// Returns the only tuple, as a chunk of one row without a selection.
    ///
    /// # Errors
    /// There is not exactly one tuple.
    pub fn single(&self) -> Result<Chunk> {
        let mut filled = self.chunks.iter().filter(|chunk| !chunk.is_empty());
        match (filled.next(), filled.next()) {
            (Some(chunk), None) if chunk.rows() == 1 => chunk.chunk()?.compact(),
            _ => Err(Error::data(format!("exactly one tuple was expected, not {}", self.rows()))),
        }
    }
}

/// State shared by all workers that collect the output of one node.
#[derive(Debug)]
pub struct OutputCollector {
    file: Arc<SpillFile>,
    run: Run,
    /// Bytes held by all workers.
    held_bytes: AtomicUsize,
}

impl OutputCollector {
    /// Creates an empty collector; spilled bytes are counted for the run's node.
    pub fn new(run: &Run) -> Arc<OutputCollector> {
        Arc::new(OutputCollector {
            file: SpillFile::new(run),
            run: run.clone(),
            held_bytes: AtomicUsize::new(0),
        })
    }

    /// Creates the state of one worker.
    pub fn worker(self: &Arc<Self>) -> OutputCollectorWorker {
        let memory = Reservation::new(self.run.context.clone());
        OutputCollectorWorker { collector: self.clone(), memory, morsels: Vec::new(), written: 0 }
    }
}

/// The chunks that one worker has collected, by morsel; spilled when the query's budget is
/// exhausted.
#[derive(Debug)]
pub struct OutputCollectorWorker {
    collector: Arc<OutputCollector>,
    memory: Reservation,
    morsels: Vec<(u64, Vec<SpillableChunk>)>,
    /// The number of morsels that are spilled.
    written: usize,
}

impl OutputCollectorWorker {
    /// Starts the morsel at this position.
    pub fn begin(&mut self, position: u64) {
        self.morsels.push((position, Vec::new()));
    }

    /// Appends a chunk.
    ///
    /// # Errors
    /// The budget is exhausted and the chunk cannot be spilled, or the scratch directory is full.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let context = &self.collector.run.context;
        let chunk = chunk.compact_if_sparse(context.chunk_rows())?;
        let bytes = chunk.value_bytes();
        let held = &self.collector.held_bytes;
        let spills = if can_spill(&chunk) {
            !context.may_hold(held.load(Ordering::Relaxed), bytes)
                || self.memory.grow(bytes).is_err()
        } else {
            self.memory.grow(bytes)?;
            false
        };
        if !spills {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        if self.morsels.is_empty() {
            self.begin(0);
        }
        if let Some((_, chunks)) = self.morsels.last_mut() {
            chunks.push(chunk.into());
        }
        if spills { self.write() } else { Ok(()) }
    }

    /// Spills all chunks.
    fn write(&mut self) -> Result<()> {
        let file = &self.collector.file;
        for (_, chunks) in &mut self.morsels[self.written..] {
            let first = chunks.iter().position(|chunk| chunk.in_memory().is_some());
            let mut waiting: Vec<Chunk> = Vec::new();
            let (mut rows, mut bytes) = (0, 0);
            for chunk in first.map(|first| chunks.split_off(first)).unwrap_or_default() {
                let chunk = chunk.chunk()?;
                let (more_rows, more_bytes) = (chunk.rows(), chunk.value_bytes());
                if rows + more_rows > CHUNK_ROWS || bytes + more_bytes > BLOCK_BYTES {
                    chunks.extend(written(file, &mut waiting)?);
                    (rows, bytes) = (0, 0);
                }
                (rows, bytes) = (rows + more_rows, bytes + more_bytes);
                waiting.push(chunk);
            }
            chunks.extend(written(file, &mut waiting)?);
        }
        // The last morsel may get more chunks.
        self.written = self.morsels.len().saturating_sub(1);
        self.collector.held_bytes.fetch_sub(self.memory.bytes(), Ordering::Relaxed);
        self.memory.resize(0)
    }

    /// Returns the chunks of all workers in order, and the reservations of their memory.
    pub fn collect(workers: Vec<OutputCollectorWorker>) -> (Collected, Vec<Reservation>) {
        let (mut morsels, mut memory) = (Vec::new(), Vec::new());
        for worker in workers {
            morsels.extend(worker.morsels);
            memory.push(worker.memory);
        }
        morsels.sort_by_key(|(position, _)| *position);
        (Collected::new(morsels.into_iter().flat_map(|(_, chunks)| chunks)), memory)
    }
}

/// Returns whether a chunk can be spilled: collections created by sub-operators cannot.
fn can_spill(chunk: &Chunk) -> bool {
    chunk.stored().iter().all(|column| !matches!(column, Column::Handles(_)))
}

/// Concatenates chunks and writes them as one block.
fn written(file: &Arc<SpillFile>, waiting: &mut Vec<Chunk>) -> Result<Option<SpillableChunk>> {
    if waiting.iter().all(Chunk::is_empty) {
        waiting.clear();
        return Ok(None);
    }
    let block = write_tuples(file, &concat_chunks(waiting)?)?;
    waiting.clear();
    Ok(Some(SpillableChunk::in_file(file, block)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int64Type;

    use tessera_context::testing::{TestContext, run_in};

    use super::*;

    fn chunk(numbers: std::ops::Range<i64>) -> Chunk {
        let texts =
            numbers.clone().map(|n| (n % 3 > 0).then(|| format!("a text that is long enough {n}")));
        let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
        Chunk::from_arrays(vec![Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef, texts])
    }

    #[test]
    fn chunks_leave_memory_and_come_back_in_order() {
        for budget in [usize::MAX, 60_000, 2_000] {
            let context = TestContext::with_state_budget(61, 2, budget);
            let collector = OutputCollector::new(&run_in(&context));
            let mut workers = [collector.worker(), collector.worker()];
            for morsel in 0..40 {
                let worker = &mut workers[morsel as usize % 2];
                worker.begin(morsel as u64);
                for piece in 0..3 {
                    let first = morsel * 150 + piece * 50;
                    worker.push(chunk(first..first + 50)).unwrap();
                }
            }
            let (collected, _memory) = OutputCollectorWorker::collect(workers.into());
            let in_memory = collected
                .spillable_chunks()
                .iter()
                .filter(|chunk| chunk.in_memory().is_some())
                .count();
            assert_eq!(in_memory < 120, budget < usize::MAX);
            assert_eq!(collected.rows(), 6_000);
            let mut next = 0;
            for read in collected.chunks() {
                let read = read.unwrap();
                let (numbers, texts) = (read.column(0).unwrap(), read.column(1).unwrap());
                let (numbers, texts) = (numbers.plain().unwrap(), texts.plain().unwrap());
                for row in 0..read.rows() {
                    assert_eq!(numbers.as_primitive::<Int64Type>().value(row), next);
                    let text = texts.as_string_view();
                    match next % 3 {
                        0 => assert!(text.is_null(row)),
                        _ => assert!(text.value(row).ends_with(&format!("enough {next}"))),
                    }
                    next += 1;
                }
            }
            assert_eq!(next, 6_000);
        }
    }
}
