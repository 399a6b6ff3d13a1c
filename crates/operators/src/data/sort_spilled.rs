//! Spilled sorted runs, and their merge.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{Array, BinaryArray, BinaryBuilder};

use tessera_context::{Context, Reservation, Run, lock};
use tessera_operator::{Reader, SourceRun, Step};
use tessera_rows::spill::{SpillFile, TupleBlock, read_tuples, write_tuples};
use tessera_state::loser_tree::LoserTree;
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column, interleave_columns};

use super::sort::{PartitionKeys, Parts, SortedRuns};

/// Approximate bytes of a block; a merge has one block of each run in memory.
const BLOCK_BYTES: usize = 128 << 10;
/// The fewest tuples of a block.
const BLOCK_ROWS_MIN: usize = 16;
const BLOCK_ROWS_MAX: usize = 8_192;
/// Blocks that make an output chunk if a whole chunk would be too long.
const OUTPUT_BLOCKS: usize = 8;
/// The most runs merged at once.
const RUNS_MAX: usize = 64;
/// Bytes of a key that are held in memory per block: keys can be as long as tuples.
const BORDER_BYTES: usize = 64;

/// The spilled sorted runs of one sort.
#[derive(Debug)]
pub(super) struct SpilledRuns {
    file: Arc<SpillFile>,
    context: Arc<dyn Context>,
    runs: Mutex<Vec<SpilledRun>>,
    /// Bytes held by all workers.
    held_bytes: AtomicUsize,
}

/// A sorted run: blocks in order.
#[derive(Debug, Clone, Default)]
struct SpilledRun {
    blocks: Vec<SortedBlock>,
}

/// A block of sorted tuples, with their keys as the last column.
#[derive(Debug, Clone)]
struct SortedBlock {
    tuples: TupleBlock,
    /// The first bytes of the first key. Borders are truncated the same way, so that they compare
    /// with blocks as whole keys do.
    first_key: Box<[u8]>,
}

impl SpilledRuns {
    pub(super) fn new(run: &Run) -> Arc<SpilledRuns> {
        Arc::new(SpilledRuns {
            file: SpillFile::new(run),
            context: run.context.clone(),
            runs: Mutex::default(),
            held_bytes: AtomicUsize::new(0),
        })
    }

    /// Bytes held by all workers.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Adds to the bytes held.
    pub(super) fn grow(&self, bytes: usize) {
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts from the bytes held.
    pub(super) fn shrink(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes.min(self.held_bytes()), Ordering::Relaxed);
    }

    /// Returns whether no run has been spilled.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SpilledRun>> {
        lock(&self.runs)
    }

    /// Merges runs and spills the result as one run.
    pub(super) fn write<const W: usize>(&self, sorted: SortedRuns<W>) -> Result<()> {
        let (rows, bytes) = (sorted.rows(), sorted.bytes());
        let block_rows = (BLOCK_BYTES * rows / bytes.max(1)).clamp(BLOCK_ROWS_MIN, BLOCK_ROWS_MAX);
        let parts = Parts::new(sorted, None)?;
        let mut run = SpilledRun::default();
        for part in 0..parts.len() {
            for entries in parts.entries(part)?.chunks(block_rows) {
                let mut keys = BinaryBuilder::new();
                entries.iter().for_each(|entry| keys.append_value(parts.runs.whole_key(entry)));
                run.push(&self.file, &with_keys(parts.runs.gather(entries)?, keys.finish()))?;
            }
        }
        self.lock().push(run);
        self.shrink(bytes);
        Ok(())
    }

    /// Merges runs until few enough remain for the final merge; splits that between `parts`
    /// readers, so that each reads partitions whole.
    fn prepare(&self, parts: usize, partition: Option<&PartitionKeys>) -> Result<MergePlan> {
        let mut runs = std::mem::take(&mut *self.lock());
        while runs.len() > RUNS_MAX {
            let rest = runs.split_off(RUNS_MAX);
            let mut merged = SpilledRun::default();
            let mut merge = Merge::new(&self.file, &self.context, &runs, None, None)?;
            while let Some(chunk) = merge.next(BLOCK_ROWS_MAX.min(runs[0].block_rows()))? {
                merged.push(&self.file, &chunk)?;
            }
            runs = rest;
            runs.push(merged);
        }
        let mut blocks: Vec<&SortedBlock> = runs.iter().flat_map(|run| &run.blocks).collect();
        blocks.sort_unstable_by(|a, b| a.first_key.cmp(&b.first_key));
        let mut borders: Vec<Box<[u8]>> = (1..parts)
            .filter_map(|part| blocks.get(part * blocks.len() / parts))
            .map(|block| self.border(block, partition))
            .collect::<Result<_>>()?;
        borders.dedup();
        Ok(MergePlan { runs, borders })
    }

    /// Returns the first key of a block, or the key of its partition, both truncated.
    fn border(&self, block: &SortedBlock, partition: Option<&PartitionKeys>) -> Result<Box<[u8]>> {
        let Some(partition) = partition else { return Ok(block.first_key.clone()) };
        let key = partition.key(&read_tuples(&self.file, &block.tuples)?)?;
        Ok(key[..key.len().min(BORDER_BYTES)].into())
    }
}

impl SpilledRun {
    fn push(&mut self, file: &SpillFile, chunk: &Chunk) -> Result<()> {
        let keys = keys_of(chunk)?;
        if !keys.is_empty() {
            let first = keys.value(0);
            let first_key = first[..first.len().min(BORDER_BYTES)].into();
            self.blocks.push(SortedBlock { tuples: write_tuples(file, chunk)?, first_key });
        }
        Ok(())
    }

    fn block_rows(&self) -> usize {
        self.blocks.first().map_or(1, |block| block.tuples.rows)
    }
}

fn with_keys(chunk: Chunk, keys: BinaryArray) -> Chunk {
    let mut columns = chunk.stored().to_vec();
    columns.push(Column::Plain(Arc::new(keys)));
    chunk.with_stored(columns)
}

/// Returns the keys of tuples: the last column.
fn keys_of(chunk: &Chunk) -> Result<BinaryArray> {
    let last = chunk.stored().last().ok_or_else(|| Error::internal("tuples without their keys"))?;
    let keys = last.plain()?;
    let keys = keys.as_any().downcast_ref::<BinaryArray>();
    Ok(keys.ok_or_else(|| Error::internal("sort keys that are not bytes"))?.clone())
}

#[derive(Debug)]
struct MergePlan {
    runs: Vec<SpilledRun>,
    borders: Vec<Box<[u8]>>,
}

/// All tuples in order: one morsel for each range of keys.
#[derive(Debug)]
pub(super) struct SpilledOutput {
    spilled: Arc<SpilledRuns>,
    partition: Option<Arc<PartitionKeys>>,
    prepared: OnceLock<MergePlan>,
}

impl SpilledOutput {
    pub(super) fn new(
        spilled: Arc<SpilledRuns>,
        partition: Option<Arc<PartitionKeys>>,
    ) -> Arc<SpilledOutput> {
        Arc::new(SpilledOutput { spilled, partition, prepared: OnceLock::new() })
    }

    /// Spills the last runs and prepares all for reading; called once.
    pub(super) fn prepare<const W: usize>(&self, last: SortedRuns<W>) -> Result<()> {
        if last.rows() > 0 {
            self.spilled.write(last)?;
        }
        let workers = self.spilled.context.workers();
        let prepared = self.spilled.prepare(workers, self.partition.as_deref())?;
        let _ = self.prepared.set(prepared);
        Ok(())
    }
}

impl SourceRun for SpilledOutput {
    fn morsels(&self) -> usize {
        self.prepared.get().map_or(0, |prepared| prepared.borders.len() + 1)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let prepared = self
            .prepared
            .get()
            .ok_or_else(|| Error::internal("sorted runs read before they are ready"))?;
        let border = |at: Option<usize>| at.and_then(|at| prepared.borders.get(at).cloned());
        let (from, upto) = (border(morsel.checked_sub(1)), border(Some(morsel)));
        let SpilledRuns { file, context, .. } = &*self.spilled;
        let merge = Merge::new(file, context, &prepared.runs, from, upto)?;
        // Long tuples are read in chunks of a few blocks.
        let block_rows = prepared.runs.iter().map(SpilledRun::block_rows).min().unwrap_or(1);
        let chunk_rows = context.chunk_rows().min(block_rows * OUTPUT_BLOCKS);
        Ok(Box::new(MergeReader { merge, chunk_rows }))
    }
}

struct MergeReader {
    merge: Merge,
    chunk_rows: usize,
}

impl Reader for MergeReader {
    fn step(&mut self) -> Result<Step> {
        let Some(chunk) = self.merge.next(self.chunk_rows)? else { return Ok(Step::Done) };
        let columns = &chunk.stored()[..chunk.width() - 1];
        Ok(Step::HasOutput(Chunk::new(columns.to_vec(), chunk.rows()).with_compact_strings()))
    }
}

/// Merges runs from one key up to, not including, another.
struct Merge {
    file: Arc<SpillFile>,
    context: Arc<dyn Context>,
    cursors: Vec<Cursor>,
    upto: Option<Box<[u8]>>,
    tree: Option<LoserTree>,
    memory: Reservation,
}

/// The rest of a run.
struct Cursor {
    blocks: std::vec::IntoIter<SortedBlock>,
    chunk: Chunk,
    keys: BinaryArray,
    row: usize,
    /// The current block's number among the blocks of the next output chunk.
    slot: Option<usize>,
}

impl Cursor {
    fn key(&self) -> Option<&[u8]> {
        (self.row < self.keys.len()).then(|| self.keys.value(self.row))
    }

    /// Moves to the next tuple, reading the next block if needed.
    fn advance(&mut self, file: &SpillFile) -> Result<()> {
        self.row += 1;
        if self.row < self.keys.len() {
            return Ok(());
        }
        let Some(block) = self.blocks.next() else { return Ok(()) };
        self.chunk = read_tuples(file, &block.tuples)?;
        (self.keys, self.row, self.slot) = (keys_of(&self.chunk)?, 0, None);
        Ok(())
    }
}

/// Finished runs come last. Keys differ, since each ends with the tuple's place.
fn is_first(cursors: &[Cursor], a: usize, b: usize) -> bool {
    match (cursors[a].key(), cursors[b].key()) {
        (Some(x), Some(y)) => x < y,
        (x, _) => x.is_some(),
    }
}

impl Merge {
    fn new(
        file: &Arc<SpillFile>,
        context: &Arc<dyn Context>,
        runs: &[SpilledRun],
        from: Option<Box<[u8]>>,
        upto: Option<Box<[u8]>>,
    ) -> Result<Merge> {
        let mut memory = Reservation::new(context.clone());
        let mut cursors = Vec::new();
        for run in runs {
            // The block before the first one that begins at or after the border may extend beyond
            // it.
            let first = from.as_ref().map_or(0, |from| {
                run.blocks.partition_point(|block| block.first_key < *from).saturating_sub(1)
            });
            let blocks = run.blocks[first..].to_vec();
            memory
                .grow(blocks.iter().map(|block| block.tuples.block.bytes()).max().unwrap_or(0))?;
            let mut cursor = Cursor {
                blocks: blocks.into_iter(),
                chunk: Chunk::unit(),
                keys: BinaryArray::from_iter_values(std::iter::empty::<&[u8]>()),
                row: 0,
                slot: None,
            };
            cursor.advance(file)?;
            while cursor.key().zip(from.as_deref()).is_some_and(|(key, from)| key < from) {
                cursor.advance(file)?;
            }
            cursors.push(cursor);
        }
        let tree = (!cursors.is_empty())
            .then(|| LoserTree::new(cursors.len(), |a, b| is_first(&cursors, a, b)));
        Ok(Merge { file: file.clone(), context: context.clone(), cursors, upto, tree, memory })
    }

    /// Returns the next tuples with their keys, at most `rows`.
    fn next(&mut self, rows: usize) -> Result<Option<Chunk>> {
        self.context.check()?;
        let mut blocks: Vec<Chunk> = Vec::new();
        let mut places = Vec::with_capacity(rows);
        let Some(tree) = &mut self.tree else { return Ok(None) };
        while places.len() < rows {
            let cursor = &mut self.cursors[tree.winner()];
            let Some(key) = cursor.key() else { break };
            if self.upto.as_deref().is_some_and(|upto| key >= upto) {
                break;
            }
            let slot = *cursor.slot.get_or_insert_with(|| {
                blocks.push(cursor.chunk.clone());
                blocks.len() - 1
            });
            places.push((slot, cursor.row));
            cursor.advance(&self.file)?;
            tree.replay(|a, b| is_first(&self.cursors, a, b));
        }
        self.cursors.iter_mut().for_each(|cursor| cursor.slot = None);
        if places.is_empty() {
            self.memory.resize(0)?;
            return Ok(None);
        }
        let column = |index: usize| {
            let parts: Vec<Column> =
                blocks.iter().map(|block| block.stored()[index].clone()).collect();
            interleave_columns(&parts, &places)
        };
        let columns = (0..blocks[0].width()).map(column).collect::<Result<_>>()?;
        Ok(Some(Chunk::new(columns, places.len())))
    }
}
