//! The output of a node, complete: chunks in memory, and chunks that have left it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_context::{Reservation, Run};
use tessera_types::{Error, Result};
use tessera_vector::{CHUNK_ROWS, Chunk, Column, concat_chunks};

use crate::spill::{SpillFile, TupleBlock, read_tuples, write_tuples};

/// Chunks are put together until a block has so many bytes, about, or as many tuples as a chunk.
const BLOCK_BYTES: usize = 256 << 10;

/// A chunk in memory, or in a scratch file.
#[derive(Debug, Clone)]
pub struct KeptChunk(Place);

#[derive(Debug, Clone)]
enum Place {
    Memory(Chunk),
    File(Arc<SpillFile>, TupleBlock),
}

impl From<Chunk> for KeptChunk {
    fn from(chunk: Chunk) -> Self {
        KeptChunk(Place::Memory(chunk))
    }
}

impl KeptChunk {
    /// What was written to a scratch file.
    pub fn in_file(file: &Arc<SpillFile>, block: TupleBlock) -> Self {
        KeptChunk(Place::File(file.clone(), block))
    }

    /// How many tuples it has.
    pub fn rows(&self) -> usize {
        match &self.0 {
            Place::Memory(chunk) => chunk.rows(),
            Place::File(_, block) => block.rows,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// The chunk; read each time where it has left memory.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn chunk(&self) -> Result<Chunk> {
        match &self.0 {
            Place::Memory(chunk) => Ok(chunk.clone()),
            Place::File(file, block) => read_tuples(file, block),
        }
    }

    /// The same tuples without a selection vector.
    ///
    /// # Errors
    /// As [`Chunk::compact`].
    pub fn compact(&self) -> Result<KeptChunk> {
        match &self.0 {
            Place::Memory(chunk) => Ok(chunk.clone().compact()?.into()),
            Place::File(..) => Ok(self.clone()),
        }
    }

    /// The chunk, if it is in memory.
    pub fn in_memory(&self) -> Option<&Chunk> {
        match &self.0 {
            Place::Memory(chunk) => Some(chunk),
            Place::File(..) => None,
        }
    }
}

/// The output of a node, complete, in order.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    chunks: Vec<KeptChunk>,
}

impl Collected {
    /// Of these chunks.
    pub fn new(chunks: impl IntoIterator<Item = impl Into<KeptChunk>>) -> Self {
        Collected { chunks: chunks.into_iter().map(Into::into).collect() }
    }

    /// How many tuples there are.
    pub fn rows(&self) -> usize {
        self.chunks.iter().map(KeptChunk::rows).sum()
    }

    /// All chunks, wherever they are.
    pub fn kept(&self) -> &[KeptChunk] {
        &self.chunks
    }

    /// All chunks, one after the other; those that have left memory are read.
    pub fn chunks(&self) -> impl Iterator<Item = Result<Chunk>> + '_ {
        self.chunks.iter().map(KeptChunk::chunk)
    }

    /// The only tuple, as a chunk of one row without a selection.
    ///
    /// # Errors
    /// There are more or fewer.
    pub fn single(&self) -> Result<Chunk> {
        let mut filled = self.chunks.iter().filter(|chunk| !chunk.is_empty());
        match (filled.next(), filled.next()) {
            (Some(kept), None) if kept.rows() == 1 => kept.chunk()?.compact(),
            _ => Err(Error::data(format!("exactly one tuple was expected, not {}", self.rows()))),
        }
    }
}

/// What all workers that keep the output of one node have in common.
#[derive(Debug)]
pub struct Keeping {
    file: Arc<SpillFile>,
    run: Run,
    /// Bytes that all workers hold.
    held_bytes: AtomicUsize,
}

impl Keeping {
    /// Nothing is kept yet; what leaves memory counts for the run's node.
    pub fn new(run: &Run) -> Arc<Keeping> {
        Arc::new(Keeping {
            file: SpillFile::new(run),
            run: run.clone(),
            held_bytes: AtomicUsize::new(0),
        })
    }

    /// What one worker keeps.
    pub fn keeper(self: &Arc<Self>) -> Keeper {
        let memory = Reservation::new(self.run.context.clone());
        Keeper { keeping: self.clone(), memory, morsels: Vec::new(), written: 0 }
    }
}

/// The chunks that one worker keeps, by morsel. All leave memory when the query's budget is spoken
/// for.
#[derive(Debug)]
pub struct Keeper {
    keeping: Arc<Keeping>,
    memory: Reservation,
    morsels: Vec<(u64, Vec<KeptChunk>)>,
    /// So many morsels have no chunk in memory.
    written: usize,
}

impl Keeper {
    /// What comes next belongs to the morsel of this position.
    pub fn begin(&mut self, position: u64) {
        self.morsels.push((position, Vec::new()));
    }

    /// Keeps a chunk.
    ///
    /// # Errors
    /// The budget is exhausted and the chunk cannot leave memory, or the scratch directory is full.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let context = &self.keeping.run.context;
        let chunk = chunk.without_much_else(context.chunk_rows())?;
        let bytes = chunk.value_bytes();
        let held = &self.keeping.held_bytes;
        let leaves = if can_leave(&chunk) {
            !context.may_hold(held.load(Ordering::Relaxed), bytes)
                || self.memory.grow(bytes).is_err()
        } else {
            self.memory.grow(bytes)?;
            false
        };
        if !leaves {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        if self.morsels.is_empty() {
            self.begin(0);
        }
        if let Some((_, chunks)) = self.morsels.last_mut() {
            chunks.push(chunk.into());
        }
        if leaves { self.write() } else { Ok(()) }
    }

    /// All chunks leave memory.
    fn write(&mut self) -> Result<()> {
        let file = &self.keeping.file;
        for (_, chunks) in &mut self.morsels[self.written..] {
            let first = chunks.iter().position(|chunk| chunk.in_memory().is_some());
            let mut waiting: Vec<Chunk> = Vec::new();
            let (mut rows, mut bytes) = (0, 0);
            for kept in first.map(|first| chunks.split_off(first)).unwrap_or_default() {
                let chunk = kept.chunk()?;
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
        // The last morsel may go on.
        self.written = self.morsels.len().saturating_sub(1);
        self.keeping.held_bytes.fetch_sub(self.memory.bytes(), Ordering::Relaxed);
        self.memory.resize(0)
    }

    /// What all workers have kept, in order, and the memory that it takes.
    pub fn collect(keepers: Vec<Keeper>) -> (Collected, Vec<Reservation>) {
        let (mut morsels, mut memory) = (Vec::new(), Vec::new());
        for keeper in keepers {
            morsels.extend(keeper.morsels);
            memory.push(keeper.memory);
        }
        morsels.sort_by_key(|(position, _)| *position);
        (Collected::new(morsels.into_iter().flat_map(|(_, chunks)| chunks)), memory)
    }
}

/// Collections that sub-operators made cannot be written.
fn can_leave(chunk: &Chunk) -> bool {
    chunk.stored().iter().all(|column| !matches!(column, Column::Handles(_)))
}

/// Writes chunks as one.
fn written(file: &Arc<SpillFile>, waiting: &mut Vec<Chunk>) -> Result<Option<KeptChunk>> {
    if waiting.iter().all(Chunk::is_empty) {
        waiting.clear();
        return Ok(None);
    }
    let block = write_tuples(file, &concat_chunks(waiting)?)?;
    waiting.clear();
    Ok(Some(KeptChunk::in_file(file, block)))
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
            let keeping = Keeping::new(&run_in(&context));
            let mut keepers = [keeping.keeper(), keeping.keeper()];
            for morsel in 0..40 {
                let keeper = &mut keepers[morsel as usize % 2];
                keeper.begin(morsel as u64);
                for piece in 0..3 {
                    let first = morsel * 150 + piece * 50;
                    keeper.push(chunk(first..first + 50)).unwrap();
                }
            }
            let (collected, _memory) = Keeper::collect(keepers.into());
            let in_memory =
                collected.kept().iter().filter(|kept| kept.in_memory().is_some()).count();
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
