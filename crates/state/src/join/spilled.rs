//! Spilled partitions of a build, and the stream tuples that wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow::array::Array;

use tessera_context::{Reservation, Run};
use tessera_rows::spill::{
    PARTITIONS, SpillFile, SpilledPartitions, TupleBlock, partition_of, read_tuples,
};
use tessera_rows::{ResolvedColumns, RowLayout, Rows};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::buffers::TableBuild;
use super::kind::JoinKind;
use super::output::{select_positions, stored_positions};
use crate::sideways::Bloom;

/// The largest filter of spilled keys, as a fraction of the memory budget.
const FILTER_SHARE: usize = 16;
/// The fewest bits per key of a useful filter: with 4, about one in six other keys passes.
const FILTER_BITS_MIN: usize = 4;

/// Memory of a build that is being filled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BuildMemory {
    /// Already allocated.
    pub(super) now_bytes: usize,
    /// Needed to finish the build.
    pub(super) later_bytes: usize,
}

/// The spilled part of a build, by partition; shared by its workers, and by the probes of its
/// table.
#[derive(Debug)]
pub struct SpilledBuild {
    partitions: SpilledPartitions,
    key: usize,
    /// A bit for each spilled partition.
    spilled_mask: AtomicU64,
    /// Bytes held by all workers.
    now_bytes: AtomicUsize,
    later_bytes: AtomicUsize,
    rows: AtomicU64,
    /// The number of NULLs in the first key.
    null_key_rows: AtomicU64,
    /// Whether a filter further up the stream already tests the keys.
    filtered: AtomicBool,
}

impl SpilledBuild {
    /// Creates an empty one for rows of this layout with keys at these positions.
    pub fn new(run: &Run, layout: &Arc<RowLayout>, keys: &[usize]) -> Arc<SpilledBuild> {
        let partitions =
            SpilledPartitions::new(SpillFile::new(run), layout.clone(), run.context.clone());
        Arc::new(SpilledBuild {
            partitions,
            key: keys.first().copied().unwrap_or(0),
            spilled_mask: AtomicU64::new(0),
            now_bytes: AtomicUsize::new(0),
            later_bytes: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            null_key_rows: AtomicU64::new(0),
            filtered: AtomicBool::new(false),
        })
    }

    /// Returns a bit for each spilled partition.
    pub fn spilled_mask(&self) -> u64 {
        self.spilled_mask.load(Ordering::Relaxed)
    }

    /// Marks a partition as spilled.
    pub(super) fn mark_spilled(&self, partition: usize) {
        self.spilled_mask.fetch_or(1 << partition, Ordering::Relaxed);
    }

    /// Changes the memory of a worker from `before` to `after`.
    pub(super) fn change_memory(&self, before: BuildMemory, after: BuildMemory) {
        self.now_bytes.fetch_add(after.now_bytes, Ordering::Relaxed);
        self.now_bytes.fetch_sub(before.now_bytes, Ordering::Relaxed);
        self.later_bytes.fetch_add(after.later_bytes, Ordering::Relaxed);
        self.later_bytes.fetch_sub(before.later_bytes, Ordering::Relaxed);
    }

    /// The memory of all workers.
    pub(super) fn memory(&self) -> BuildMemory {
        let load = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed);
        BuildMemory { now_bytes: load(&self.now_bytes), later_bytes: load(&self.later_bytes) }
    }

    /// The smallest number of bytes of a spilled partition worth a block.
    pub(super) fn block_bytes(&self) -> usize {
        self.partitions.waiting_bytes()
    }

    /// Writes tuples of a spilled partition.
    pub(super) fn write(&self, partition: usize, rows: &Rows) -> Result<()> {
        let all: Vec<u64> = (0..rows.len() as u64).collect();
        let nulls = rows.gather(self.key, &all)?.plain()?.logical_null_count();
        self.null_key_rows.fetch_add(nulls as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.partitions.write(partition, rows)
    }

    /// The number of spilled tuples.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The number of spilled tuples with NULL as their first key.
    pub fn null_key_rows(&self) -> u64 {
        self.null_key_rows.load(Ordering::Relaxed)
    }

    /// Returns the blocks of a partition.
    pub fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// Calls `see` with the keys of all spilled tuples, block by block: their columns and hashes.
    /// `build` has the parameters of the table.
    ///
    /// # Errors
    /// The scratch directory is full; or those of `see`.
    pub fn see_keys(
        &self,
        build: &TableBuild,
        mut see: impl FnMut(&[Column], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut hashes = Vec::new();
        for partition in 0..PARTITIONS {
            for block in self.blocks(partition)? {
                let chunk = read_tuples(self.file(), &block)?;
                let keys =
                    build.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<_>>>()?;
                build.hash(&keys, chunk.rows(), &mut hashes)?;
                see(&keys, &hashes)?;
            }
        }
        Ok(())
    }

    /// Records that a filter further up the stream drops tuples with other keys.
    pub fn set_filtered(&self) {
        self.filtered.store(true, Ordering::Relaxed);
    }

    /// The file that contains the blocks.
    pub fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }
}

/// Stream tuples whose partitions of the build are spilled: they are spilled too, and joined later.
#[derive(Debug)]
pub struct SpilledStream {
    build: Arc<TableBuild>,
    keys: Vec<usize>,
    spilled_mask: u64,
    partitions: SpilledPartitions,
    /// Tuples that do not pass this filter of the spilled keys need not be spilled.
    filter: Option<Bloom>,
    /// Whether such a tuple is passed on without a match, instead of dropped.
    keeps_unmatched: bool,
    _memory: Reservation,
}

impl SpilledStream {
    /// Creates an empty one for the stream of a probe of this partially spilled build, by a join of
    /// this kind.
    ///
    /// # Errors
    /// The stream has collections; the scratch directory is full.
    pub fn new(
        build: &Arc<TableBuild>,
        spilled: &SpilledBuild,
        (stream, keys, kind): (&Tuple, &[usize], JoinKind),
        run: &Run,
    ) -> Result<SpilledStream> {
        if !tessera_rows::spill::spillable(stream) {
            return Err(Error::unsupported(
                "a join of tuples with collections does not fit into memory; raise --memory SIZE (or SET memory)",
            ));
        }
        let layout = RowLayout::new(stream)?;
        let partitions = SpilledPartitions::new(SpillFile::new(run), layout, run.context.clone());
        let mut memory = Reservation::new(run.context.clone());
        let filter = filter(build, spilled, &mut memory, run)?;
        Ok(SpilledStream {
            build: build.clone(),
            keys: keys.to_vec(),
            spilled_mask: spilled.spilled_mask(),
            partitions,
            filter,
            keeps_unmatched: kind.keeps_unmatched(),
            _memory: memory,
        })
    }

    /// Spills the tuples of spilled partitions; returns the others, if any.
    pub fn put(&self, chunk: Chunk) -> Result<Option<Chunk>> {
        let columns =
            self.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<Column>>>()?;
        let mut hashes = Vec::new();
        self.build.hash(&columns, chunk.rows(), &mut hashes)?;
        let (mut kept, mut spilled) = (vec![0; hashes.len()], vec![0; hashes.len()]);
        let (mut kept_len, mut spilled_len) = (0, 0);
        for (position, hash) in hashes.iter().enumerate() {
            let is_here = self.spilled_mask >> partition_of(*hash) & 1 == 0;
            let may_match = self.filter.as_ref().is_none_or(|filter| filter.may_contain(*hash));
            // Branch-free: always written, but counted only if it stays.
            kept[kept_len] = position as u32;
            kept_len += usize::from(is_here | (!may_match & self.keeps_unmatched));
            spilled[spilled_len] = position as u32;
            spilled_len += usize::from(!is_here & may_match);
        }
        if kept_len == chunk.rows() {
            return Ok(Some(chunk));
        }
        self.append(&chunk, &hashes, &spilled[..spilled_len])?;
        Ok((kept_len > 0).then(|| select_positions(&chunk, &kept[..kept_len])))
    }

    /// Spills tuples.
    fn append(&self, chunk: &Chunk, hashes: &[u64], spilled: &[u32]) -> Result<()> {
        if spilled.is_empty() {
            return Ok(());
        }
        let mut partitions: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        spilled.iter().for_each(|position| {
            partitions[partition_of(hashes[*position as usize])].push(*position)
        });
        let incoming = ResolvedColumns::of_chunk(chunk)?;
        for (partition, positions) in
            partitions.iter().enumerate().filter(|(_, list)| !list.is_empty())
        {
            self.partitions.append(
                partition,
                &incoming,
                stored_positions(chunk, positions).values(),
            )?;
        }
        Ok(())
    }

    /// Iterates over the spilled partitions.
    pub fn partitions(&self) -> impl Iterator<Item = usize> {
        let spilled_mask = self.spilled_mask;
        (0..PARTITIONS).filter(move |partition| spilled_mask >> partition & 1 == 1)
    }

    /// Returns the blocks of a partition; nothing may be added afterwards.
    pub fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// The file that contains the blocks.
    pub fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }

    /// The build whose partitions the tuples wait for.
    pub fn build(&self) -> &Arc<TableBuild> {
        &self.build
    }
}

/// Creates a filter of the spilled keys; `None` if a filter further up the stream tests them, if
/// the keys passed such a filter themselves, or if it would take too much memory.
fn filter(
    build: &TableBuild,
    spilled: &SpilledBuild,
    memory: &mut Reservation,
    run: &Run,
) -> Result<Option<Bloom>> {
    // The same hash bits select a block and a partition: blocks of partitions in memory stay empty.
    let keys = spilled.rows() as usize * PARTITIONS
        / (spilled.spilled_mask().count_ones() as usize).max(1);
    let most = Bloom::blocks_within(run.context.memory_bytes() / FILTER_SHARE);
    let blocks = Bloom::blocks_for(keys).min(most);
    let is_known = spilled.filtered.load(Ordering::Relaxed) || build.depth > 0;
    let is_sparse = blocks * 64 / FILTER_BITS_MIN < keys;
    if is_known || is_sparse || memory.grow(Bloom::bytes_of(blocks)).is_err() {
        return Ok(None);
    }
    let mut bloom = Bloom::new(blocks);
    spilled.see_keys(build, |_, hashes| {
        hashes.iter().for_each(|hash| bloom.add(*hash));
        Ok(())
    })?;
    run.counters.add("filter_bytes", bloom.memory_bytes() as u64);
    Ok(Some(bloom))
}
