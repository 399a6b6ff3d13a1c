//! Builds a join table: worker-local buffers partitioned by hash, then one task per partition.

use std::sync::Arc;

use tessera_context::{Context, Reservation};
use tessera_functions::key_hash::KeyHasher;
use tessera_rows::spill::{PARTITION_BITS, PARTITIONS, partition_of};
use tessera_rows::{ResolvedColumns, RowLayout, RowRange, RowWriter, RowsBuilder};
use tessera_types::Result;
use tessera_vector::hash::hash_columns;
use tessera_vector::{Chunk, Column};

use super::spilled::{BuildMemory, SpilledBuild};

/// A buffer with more rows than this partitions the following rows.
const UNPARTITIONED_ROWS_MOST: usize = 65_536;
/// Rows between two checks for cancellation.
pub(super) const CHECK_ROWS: usize = 65_536;
/// Rows that are partitioned at a time when an unpartitioned buffer is spilled.
const REPARTITIONED_ROWS: u64 = 8_192;
/// The page size of a partition, as a fraction of the memory budget.
const PAGE_SHARE: usize = 8_192;
const PAGE_BYTES_MIN: usize = 8 << 10;
const PAGE_BYTES_MAX: usize = 4 << 20;
/// The page size of an unpartitioned buffer, as a multiple.
const TOGETHER_PAGES: usize = 16;
/// Bytes of a hash.
const HASH_BYTES: usize = 8;
/// The most bytes of the directory per row.
const DIRECTORY_BYTES: usize = 16;

/// The parameters of a table, known before the first row.
#[derive(Debug)]
pub struct TableBuild {
    /// The layout of its rows.
    pub layout: Arc<RowLayout>,
    /// The positions of the keys.
    pub keys: Vec<usize>,
    /// Hashes the keys of a chunk.
    pub hasher: KeyHasher,
    /// Writes tuples into rows.
    pub writer: RowWriter,
    /// Whether NULL equals NULL.
    pub null_equal: bool,
    /// The bits of the hash that are used; tests mask some to make hashes collide.
    pub hash_mask: u64,
    /// How many times partitions have been subdivided: the hash is rotated past the bits they
    /// share.
    pub depth: u32,
    /// The spilled partitions; `None` if all must stay in memory.
    pub spilled: Option<Arc<SpilledBuild>>,
    /// Counts its memory.
    pub context: Arc<dyn Context>,
}

impl TableBuild {
    /// Returns the same parameters, with all tuples in memory.
    pub fn in_memory(&self) -> TableBuild {
        TableBuild {
            layout: self.layout.clone(),
            keys: self.keys.clone(),
            hasher: self.hasher.clone(),
            writer: self.writer.clone(),
            null_equal: self.null_equal,
            hash_mask: self.hash_mask,
            depth: self.depth,
            spilled: None,
            context: self.context.clone(),
        }
    }

    /// The page size of a partition: small with little memory, since all partitions need their next
    /// page at about the same time.
    fn page_bytes(&self) -> usize {
        (self.context.memory_bytes() / PAGE_SHARE).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
    }

    /// Hashes key columns.
    pub fn hash(&self, keys: &[Column], rows: usize, out: &mut Vec<u64>) -> Result<()> {
        hash_columns(keys, rows, out)?;
        self.adapt(out);
        Ok(())
    }

    /// Applies the mask and the rotation of the table to hashes.
    fn adapt(&self, out: &mut [u64]) {
        if self.hash_mask != u64::MAX {
            out.iter_mut().for_each(|hash| *hash &= self.hash_mask);
        }
        if self.depth > 0 {
            out.iter_mut().for_each(|hash| *hash = hash.rotate_left(self.depth * PARTITION_BITS));
        }
    }
}

/// The rows of one worker: together while few, then by the top bits of their hash.
#[derive(Debug)]
pub struct BuildBuffers {
    build: Arc<TableBuild>,
    /// Chunks stored as rows that are copied only once, directly into the table; used only while
    /// there are no other rows.
    pub(super) in_place: Vec<InPlaceChunk>,
    pub(super) together: RowsBuilder,
    pub(super) partitions: Vec<RowsBuilder>,
    hashes: Vec<u64>,
    selections: Vec<Vec<u32>>,
    /// The memory last reported to the other workers.
    memory: BuildMemory,
}

/// A chunk whose tuples stay in place, and their hashes.
#[derive(Debug)]
pub(super) struct InPlaceChunk {
    pub(super) chunk: Chunk,
    pub(super) hashes: Vec<u64>,
    _memory: Reservation,
}

/// Creates a builder for rows that are not partitioned.
fn together(build: &TableBuild) -> RowsBuilder {
    let page_bytes = build.page_bytes() * TOGETHER_PAGES;
    RowsBuilder::in_pages(build.layout.clone(), page_bytes, Reservation::new(build.context.clone()))
}

impl BuildBuffers {
    /// Creates the buffers of one worker.
    pub fn new(build: Arc<TableBuild>) -> BuildBuffers {
        BuildBuffers {
            together: together(&build),
            build,
            in_place: Vec::new(),
            partitions: Vec::new(),
            hashes: Vec::new(),
            selections: Vec::new(),
            memory: BuildMemory::default(),
        }
    }

    fn partition(&self) -> RowsBuilder {
        let reservation = Reservation::new(self.build.context.clone());
        RowsBuilder::in_pages(self.build.layout.clone(), self.build.page_bytes(), reservation)
    }

    /// Starts partitioning the following rows.
    fn begin_partitions(&mut self) {
        if self.partitions.is_empty() {
            self.partitions =
                std::iter::repeat_with(|| self.partition()).take(PARTITIONS).collect();
            self.selections = vec![Vec::new(); PARTITIONS];
        }
    }

    /// Appends the selected tuples of a chunk. Spills partitions if memory is short.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Some(spilled) = self.build.spilled.clone() else { return self.append(&chunk) };
        self.make_room(&spilled, &chunk)?;
        self.append(&chunk)?;
        self.write_gone(&spilled, spilled.block_bytes())?;
        self.report_memory(&spilled);
        Ok(())
    }

    /// Bytes held, and those that the directory and the copy of unpartitioned rows will need.
    fn memory(&self) -> BuildMemory {
        let builders = || self.partitions.iter().chain([&self.together]);
        let rows: usize = builders().map(RowsBuilder::len).sum();
        let in_place: usize = self.in_place.iter().map(|in_place| in_place.hashes.len()).sum();
        let copied_bytes =
            self.together.memory_bytes() + in_place * self.build.layout.stride_bytes();
        BuildMemory {
            now_bytes: builders().map(RowsBuilder::memory_bytes).sum::<usize>()
                + in_place * HASH_BYTES,
            later_bytes: (rows + in_place) * DIRECTORY_BYTES + copied_bytes,
        }
    }

    /// Reports the memory held to the other workers.
    fn report_memory(&mut self, spilled: &SpilledBuild) {
        let memory = self.memory();
        spilled.change_memory(std::mem::replace(&mut self.memory, memory), memory);
    }

    /// Spills the largest partitions until there is memory for a chunk.
    fn make_room(&mut self, spilled: &SpilledBuild, chunk: &Chunk) -> Result<()> {
        let strings = if self.build.layout.has_heap() { chunk.value_bytes() } else { 0 };
        let more = chunk.rows() * (self.build.layout.stride_bytes() + DIRECTORY_BYTES) + strings;
        let more = more
            + if self.partitions.is_empty() { 0 } else { PARTITIONS * self.build.page_bytes() };
        let context = self.build.context.clone();
        // All workers build subdivided partitions at once.
        let at_once = if self.build.depth > 0 { context.workers() } else { 1 };
        let fits = || {
            let memory = spilled.memory();
            context.may_hold(memory.now_bytes * at_once, (more + memory.later_bytes) * at_once)
        };
        if fits() {
            return Ok(());
        }
        self.partition_together()?;
        while !fits() {
            let worth = self.partitions.iter().map(RowsBuilder::memory_bytes).enumerate();
            let worth = worth.filter(|(_, bytes)| *bytes >= spilled.block_bytes());
            let Some((largest, _)) = worth.max_by_key(|(_, bytes)| *bytes) else { break };
            spilled.mark_spilled(largest);
            self.write(spilled, largest)?;
            self.report_memory(spilled);
        }
        Ok(())
    }

    /// Writes the rows of a partition.
    fn write(&mut self, spilled: &SpilledBuild, partition: usize) -> Result<()> {
        let empty = self.partition();
        let full = std::mem::replace(&mut self.partitions[partition], empty);
        if full.is_empty() { Ok(()) } else { spilled.write(partition, &full.seal()) }
    }

    /// Writes the rows of spilled partitions that take at least this many bytes.
    pub(super) fn write_gone(&mut self, spilled: &SpilledBuild, bytes: usize) -> Result<()> {
        let spilled_mask = spilled.spilled_mask();
        for partition in
            (0..self.partitions.len()).filter(|partition| spilled_mask >> partition & 1 == 1)
        {
            if self.partitions[partition].memory_bytes() >= bytes {
                self.write(spilled, partition)?;
            }
        }
        Ok(())
    }

    /// Partitions the rows of the unpartitioned buffer.
    pub(super) fn partition_together(&mut self) -> Result<()> {
        self.put_together()?;
        self.begin_partitions();
        if self.together.is_empty() {
            return Ok(());
        }
        let rows = std::mem::replace(&mut self.together, together(&self.build)).seal();
        let count = rows.len() as u64;
        for first in (0..count).step_by(REPARTITIONED_ROWS as usize) {
            self.build.context.check()?;
            self.append(&rows.lazy_chunk(first..(first + REPARTITIONED_ROWS).min(count))?)?;
        }
        Ok(())
    }

    /// Returns whether the tuples of a chunk can stay in place.
    fn keeps(&self, chunk: &Chunk) -> bool {
        let in_place: usize = self.in_place.iter().map(|in_place| in_place.hashes.len()).sum();
        let alone =
            self.partitions.is_empty() && self.together.is_empty() && chunk.selection().is_none();
        let range = chunk.lazy_as::<RowRange>().filter(|_| alone);
        in_place + chunk.rows() <= UNPARTITIONED_ROWS_MOST
            && range.is_some_and(|range| {
                range.is_whole() && self.build.layout.alike(&range.layout).is_some()
            })
    }

    /// Appends the chunks that stayed in place.
    pub(super) fn put_together(&mut self) -> Result<()> {
        for InPlaceChunk { chunk, hashes, .. } in std::mem::take(&mut self.in_place) {
            self.together.append(&ResolvedColumns::of_chunk(&chunk)?, Some(&hashes), None)?;
        }
        Ok(())
    }

    fn append(&mut self, chunk: &Chunk) -> Result<()> {
        self.build.hasher.hashes(chunk, &mut self.hashes)?;
        self.build.adapt(&mut self.hashes);
        if self.keeps(chunk) {
            let mut memory = Reservation::new(self.build.context.clone());
            memory.grow(chunk.rows() * HASH_BYTES)?;
            let hashes = std::mem::take(&mut self.hashes);
            self.in_place.push(InPlaceChunk { chunk: chunk.clone(), hashes, _memory: memory });
            return Ok(());
        }
        self.put_together()?;
        let build = self.build.clone();
        let tuples = build.writer.tuples(chunk)?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        if self.partitions.is_empty()
            && self.together.len() + chunk.rows() <= UNPARTITIONED_ROWS_MOST
        {
            self.together.append_tuples(&tuples, Some(&self.hashes), selection)?;
            return Ok(());
        }
        self.begin_partitions();
        self.selections.iter_mut().for_each(Vec::clear);
        match selection {
            None => {
                for (row, hash) in self.hashes.iter().enumerate() {
                    self.selections[partition_of(*hash)].push(row as u32);
                }
            }
            Some(selection) => {
                for row in selection {
                    self.selections[partition_of(self.hashes[*row as usize])].push(*row);
                }
            }
        }
        for (builder, selection) in self.partitions.iter_mut().zip(&self.selections) {
            if !selection.is_empty() {
                builder.append_tuples(&tuples, Some(&self.hashes), Some(selection))?;
            }
        }
        Ok(())
    }
}
