//! Spilled groups: written by partition, merged when they are read, subdivided if a partition does
//! not fit into memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Reader, Step};
use tessera_rows::spill::{
    DEPTH_MAX, PARTITION_BITS, PARTITIONS, SpillBlock, SpillFile, TupleBlock, spillable,
};
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::cache_table::CacheTable;
use super::grouping::Spec;
use super::partitions::merge_into;
use super::raw::RawTuples;
use super::store::Store;
use super::table::Table;

/// Groups of a part that is being subdivided are written at this many bytes.
const PIECE_BYTES: usize = 32 << 10;

/// Memory to merge a partition, in multiples of its spilled bytes: the table with its slots, the
/// next block, and room to grow.
const MERGE_MEMORY: usize = 4;

/// Fewer groups than this are not subdivided, whatever the budget.
const CUT_GROUPS_MIN: usize = 1_024;

/// Spilled groups of all workers, by partition; the keys of a partition need not be distinct.
#[derive(Debug)]
pub(super) struct SpilledGroups {
    file: Arc<SpillFile>,
    parts: Vec<Mutex<Vec<SpillBlock>>>,
    /// Spilled tuples, instead of groups whose states cannot be written.
    pub(super) raw: Option<RawTuples>,
    has_raw: AtomicBool,
    /// Bytes held by all workers.
    held_bytes: AtomicUsize,
    /// Memory reserved for merging: otherwise the groups of partitions in memory would use it
    /// first.
    merge_memory: Mutex<MergeMemory>,
    run: Run,
}

/// Memory for merging that no worker has taken yet.
#[derive(Debug)]
struct MergeMemory {
    left: Reservation,
    of_worker: usize,
}

impl SpilledGroups {
    pub(super) fn new(run: &Run, spec: &Spec) -> Result<SpilledGroups> {
        let writes_tuples = !spec.program.is_flat() && spillable(&spec.tuple);
        Ok(SpilledGroups {
            file: SpillFile::new(run),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            raw: writes_tuples.then(|| RawTuples::new(&spec.tuple, run)).transpose()?,
            has_raw: AtomicBool::new(false),
            held_bytes: AtomicUsize::new(0),
            merge_memory: Mutex::new(MergeMemory {
                left: Reservation::new(run.context.clone()),
                of_worker: 0,
            }),
            run: run.clone(),
        })
    }

    /// Starts spilling ungrouped tuples.
    pub(super) fn begin_raw(&self) {
        self.has_raw.store(true, Ordering::Relaxed);
    }

    /// Returns whether ungrouped tuples are spilled.
    pub(super) fn has_raw(&self) -> bool {
        self.has_raw.load(Ordering::Relaxed)
    }

    /// Changes the memory of a worker from `before` to `after` bytes.
    pub(super) fn holds(&self, before: usize, after: usize) {
        self.held_bytes.fetch_add(after, Ordering::Relaxed);
        self.held_bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Bytes held by all workers.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether a partition has spilled groups.
    pub(super) fn has(&self, partition: usize) -> bool {
        !lock(&self.parts[partition]).is_empty()
    }

    /// Returns whether any partition has spilled groups.
    pub(super) fn has_any(&self) -> bool {
        (0..PARTITIONS).any(|partition| self.has(partition))
    }

    /// Bytes that all workers need to merge spilled partitions.
    pub(super) fn merging_bytes(&self) -> usize {
        let bytes = |part: &Mutex<Vec<SpillBlock>>| lock(part).iter().map(SpillBlock::bytes).sum();
        let largest: usize = self.parts.iter().map(bytes).max().unwrap_or(0);
        MERGE_MEMORY * self.run.context.workers() * largest
    }

    /// Reserves memory for merging, as far as available.
    pub(super) fn reserve_merge_memory(&self) {
        let bytes = self.merging_bytes();
        let mut merge_memory = lock(&self.merge_memory);
        if self.run.context.may_hold(0, bytes) && merge_memory.left.resize(bytes).is_ok() {
            merge_memory.of_worker = bytes / self.run.context.workers();
        }
    }

    /// Takes one worker's share of the reserved memory, until it is returned.
    fn take_merge_memory(&self) -> Result<usize> {
        let mut merge_memory = lock(&self.merge_memory);
        let left = merge_memory.left.bytes();
        let part = merge_memory.of_worker.min(left);
        merge_memory.left.resize(left - part).map(|()| part)
    }

    /// Returns a share, unless the memory has been allocated otherwise.
    fn return_merge_memory(&self, bytes: usize) {
        drop(lock(&self.merge_memory).left.grow(bytes));
    }

    /// Writes groups of a partition.
    pub(super) fn write(&self, partition: usize, stores: &[Store]) -> Result<()> {
        let blocks = stores
            .iter()
            .map(|store| self.file.write(&store.encode()))
            .collect::<Result<Vec<_>>>()?;
        lock(&self.parts[partition]).extend(blocks);
        Ok(())
    }

    /// Returns the spilled groups and tuples of a partition; called once. Empty if nothing was
    /// partitioned.
    pub(super) fn take(&self, partition: usize) -> Result<(Vec<SpillBlock>, Vec<TupleBlock>)> {
        let blocks = std::mem::take(&mut *lock(&self.parts[partition]));
        let raw = self.raw.as_ref().filter(|_| self.has_raw()).map(|raw| raw.blocks(partition));
        Ok((blocks, raw.transpose()?.unwrap_or_default()))
    }
}

/// Groups of one partition.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) stores: Vec<Store>,
    pub(super) blocks: Vec<SpillBlock>,
    /// Tuples that are not grouped yet.
    pub(super) raw: Vec<TupleBlock>,
    /// How often it was subdivided.
    pub(super) depth: u32,
}

/// Merges a partition, or the parts of a subdivided one, one after the other.
pub(super) struct SpilledReader {
    spec: Arc<Spec>,
    run: Run,
    spilled: Arc<SpilledGroups>,
    left: Vec<Part>,
    chunks: ChunksReader,
    reservation: Reservation,
    /// Bytes that it may always use.
    merge_memory: usize,
}

impl Drop for SpilledReader {
    fn drop(&mut self) {
        drop(self.reservation.resize(0));
        self.spilled.return_merge_memory(self.merge_memory);
    }
}

impl SpilledReader {
    pub(super) fn new(
        spec: Arc<Spec>,
        spilled: Arc<SpilledGroups>,
        part: Part,
    ) -> Result<SpilledReader> {
        let run = spilled.run.clone();
        let chunks = ChunksReader::new(Vec::new(), run.context.chunk_rows());
        let reservation = Reservation::new(run.context.clone());
        let merge_memory = spilled.take_merge_memory()?;
        Ok(SpilledReader {
            spec,
            run,
            spilled,
            left: vec![part],
            chunks,
            reservation,
            merge_memory,
        })
    }

    /// Merges all groups of a part; returns `None` if it was subdivided instead.
    fn merge(&mut self, part: Part) -> Result<Option<Chunk>> {
        let Part { stores, blocks, raw, depth } = part;
        let mut table = Table::of_cut(self.spec.layout.clone(), self.spec.program.clone(), depth)?;
        let (mut stores, mut blocks) = (stores.into_iter(), blocks.into_iter());
        while let Some(mut store) =
            stores.next().map(Ok).or_else(|| Some(self.read(&blocks.next()?))).transpose()?
        {
            self.run.context.check()?;
            // Growing copies the table.
            let more = table.memory() + 2 * store.memory();
            // All workers read partitions at once.
            let at_once = self.run.context.workers();
            let fits = self.reservation.bytes() + more <= self.merge_memory
                || self.run.context.may_hold(self.reservation.bytes() * at_once, more * at_once);
            let flat = self.spec.program.is_flat();
            if !fits && flat && depth < DEPTH_MAX && table.store.groups() >= CUT_GROUPS_MIN {
                let stores = [table.store, store].into_iter().chain(stores);
                self.cut(stores, blocks, depth + 1)?;
                self.reservation.resize(0)?;
                return Ok(None);
            }
            merge_into(&self.spec, &mut table, &mut store)?;
            self.hold(&mut table, store.memory())?;
        }
        let mut table = self.group(table, raw)?;
        let chunk = table.store.finish()?;
        self.reservation.resize(chunk.stored().iter().map(Column::memory_bytes).sum())?;
        Ok(Some(chunk))
    }

    /// Groups tuples that were spilled ungrouped.
    fn group(&mut self, table: Table, raw: Vec<TupleBlock>) -> Result<Table> {
        let spilled = self.spilled.clone();
        let Some(tuples) = spilled.raw.as_ref().filter(|_| !raw.is_empty()) else {
            return Ok(table);
        };
        let mut cache_table = CacheTable::new(&self.spec, &self.run)?;
        cache_table.table = table;
        for block in raw {
            for (position, chunk) in tuples.read(&block)? {
                cache_table.take_at(position, &chunk)?;
            }
            let beside = cache_table.memory() - cache_table.table.memory();
            self.hold(&mut cache_table.table, beside)?;
        }
        Ok(cache_table.table)
    }

    /// Accounts for a table and `beside` further bytes; spills the values of its states if they
    /// exceed the budget.
    fn hold(&mut self, table: &mut Table, beside: usize) -> Result<()> {
        let (before, after) = (self.reservation.bytes(), table.memory() + beside);
        let at_once = self.run.context.workers();
        let fits = after <= before.max(self.merge_memory)
            || self.run.context.may_hold(before * at_once, (after - before) * at_once);
        if self.spec.program.is_flat() || (fits && self.reservation.resize(after).is_ok()) {
            return self.reservation.resize(after);
        }
        table.store.states.iter_mut().try_for_each(|state| state.spill(&self.spilled.file))?;
        self.reservation.resize(table.memory() + beside)
    }

    fn read(&self, block: &SpillBlock) -> Result<Store> {
        let bytes = self.spilled.file.read(block)?;
        Store::decode(self.spec.layout.clone(), self.spec.program.clone(), &bytes)
    }

    /// Subdivides groups by the next bits of their hashes, into parts that are read later.
    fn cut(
        &mut self,
        stores: impl Iterator<Item = Store>,
        blocks: impl Iterator<Item = SpillBlock>,
        depth: u32,
    ) -> Result<()> {
        let new = || Store::new(self.spec.layout.clone(), self.spec.program.clone());
        let mut pieces = (0..PARTITIONS).map(|_| new()).collect::<Result<Vec<_>>>()?;
        let mut parts: Vec<Vec<SpillBlock>> = vec![Vec::new(); PARTITIONS];
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        let blocks = blocks.map(|block| self.read(&block));
        for store in stores.map(Ok).chain(blocks) {
            let mut store = store?;
            self.run.context.check()?;
            rows.iter_mut().for_each(Vec::clear);
            for group in 0..store.groups() {
                let hash = store.area.record(group)[0] << (depth * PARTITION_BITS);
                rows[(hash >> (64 - PARTITION_BITS)) as usize].push(group as u32);
            }
            for ((piece, blocks), rows) in pieces.iter_mut().zip(&mut parts).zip(&rows) {
                piece.append(&mut store, rows)?;
                if piece.record_bytes() >= PIECE_BYTES {
                    blocks
                        .push(self.spilled.file.write(&std::mem::replace(piece, new()?).encode())?);
                }
            }
        }
        for (piece, mut blocks) in pieces.into_iter().zip(parts) {
            if piece.groups() > 0 {
                blocks.push(self.spilled.file.write(&piece.encode())?);
            }
            if !blocks.is_empty() {
                self.left.push(Part { blocks, depth, ..Part::default() });
            }
        }
        self.run.counters.add("partitions_cut_again", 1);
        Ok(())
    }
}

impl Reader for SpilledReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match self.chunks.step()? {
                Step::Done => {}
                step => return Ok(step),
            }
            let Some(part) = self.left.pop() else { return Ok(Step::Done) };
            self.reservation.resize(0)?;
            let chunk = self.merge(part)?;
            self.chunks =
                ChunksReader::new(chunk.into_iter().collect(), self.run.context.chunk_rows());
        }
    }
}
