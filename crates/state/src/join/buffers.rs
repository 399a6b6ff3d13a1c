//! Building a join table: worker-local buffers partitioned by hash, then one task per partition.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Context, Reservation, lock};
use tessera_functions::key_hash::KeyHasher;
use tessera_operator::Task;
use tessera_rows::spill::{PARTITION_BITS, PARTITIONS, partition_of};
use tessera_rows::{
    HASH_OFFSET, Incoming, PREFETCHED_ROWS, Part, RowLayout, RowRange, RowWriter, RowsBuilder,
    SharedPages, SharedWriter, Side,
};
use tessera_types::{Error, Result};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Chunk, Column};

use super::directory::Directory;
use super::heap::{HeapJoiner, Moved};
use super::spilled::{Held, SpilledBuild};
use super::table::JoinTable;

/// A buffer with more rows than this partitions those to come.
const UNPARTITIONED_ROWS_MOST: usize = 65_536;
/// Rows between two questions whether the query was cancelled.
const CHECK_ROWS: usize = 65_536;
/// Rows that are partitioned at once when those together leave.
const REPARTITIONED_ROWS: u64 = 8_192;
/// A page of a partition is this part of the memory budget.
const PAGE_SHARE: usize = 8_192;
const PAGE_BYTES_MIN: usize = 8 << 10;
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Where rows are not partitioned, pages are so many times as long.
const TOGETHER_PAGES: usize = 16;
/// How many slots are asked for before they are counted in.
const COUNTED_AHEAD: usize = 16;
/// Bytes of a hash.
const HASH_BYTES: usize = 8;
/// Bytes of the directory for a row, at most.
const DIRECTORY_BYTES: usize = 16;

/// What the table is made of, known before the first row.
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
    /// Which bits of the hash are used; fewer only in tests, to make hashes collide.
    pub hash_mask: u64,
    /// How many times partitions have been cut before: the hash is rotated past the bits they have
    /// in common.
    pub depth: u32,
    /// Where partitions go that do not fit into memory; none where all must stay.
    pub spilled: Option<Arc<SpilledBuild>>,
    /// Counts its memory.
    pub context: Arc<dyn Context>,
}

impl TableBuild {
    /// The same, with all tuples in memory.
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

    /// Bytes of the pages of a partition: small where there is little memory, since all partitions
    /// want the next at about the same time.
    fn page_bytes(&self) -> usize {
        (self.context.memory_bytes() / PAGE_SHARE).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
    }

    /// Hashes of key columns.
    pub fn hash(&self, keys: &[Column], rows: usize, out: &mut Vec<u64>) -> Result<()> {
        hash_columns(keys, rows, out)?;
        self.adapt(out);
        Ok(())
    }

    /// Hashes as the table has them.
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
    /// Chunks that lie in rows which are copied only once, into the table: as long as there is
    /// nothing else.
    kept: Vec<Kept>,
    together: RowsBuilder,
    partitions: Vec<RowsBuilder>,
    hashes: Vec<u64>,
    selections: Vec<Vec<u32>>,
    /// As the other workers know it.
    held: Held,
}

/// A chunk whose tuples stay where they lie, and their hashes.
#[derive(Debug)]
struct Kept {
    chunk: Chunk,
    hashes: Vec<u64>,
    _memory: Reservation,
}

/// Rows that a task copies.
#[derive(Debug)]
enum Share {
    Part(PartShare),
    Kept(Kept),
}

/// All rows of a part, or those listed.
#[derive(Debug)]
struct PartShare {
    part: Arc<Part>,
    rows: Option<Vec<u32>>,
    /// Where its heap pages have gone in the table's heap.
    moved: Arc<[Moved]>,
    /// What is added to side stores to find them in the table.
    side_base: u32,
}

/// A table whose rows are being copied by tasks.
#[derive(Debug)]
pub struct PendingTable {
    build: Arc<TableBuild>,
    directory: Arc<Directory>,
    pages: Arc<SharedPages>,
    rows: usize,
    heap: Mutex<Option<Arc<[arrow::buffer::Buffer]>>>,
    sides: Vec<Side>,
    has_nulls: Vec<bool>,
    reservations: Mutex<Vec<Reservation>>,
    finished: OnceLock<Arc<JoinTable>>,
}

/// A builder for rows that are not partitioned.
fn together(build: &TableBuild) -> RowsBuilder {
    let page_bytes = build.page_bytes() * TOGETHER_PAGES;
    RowsBuilder::in_pages(build.layout.clone(), page_bytes, Reservation::new(build.context.clone()))
}

impl BuildBuffers {
    /// Those of one worker.
    pub fn new(build: Arc<TableBuild>) -> BuildBuffers {
        BuildBuffers {
            together: together(&build),
            build,
            kept: Vec::new(),
            partitions: Vec::new(),
            hashes: Vec::new(),
            selections: Vec::new(),
            held: Held::default(),
        }
    }

    fn partition(&self) -> RowsBuilder {
        let reservation = Reservation::new(self.build.context.clone());
        RowsBuilder::in_pages(self.build.layout.clone(), self.build.page_bytes(), reservation)
    }

    /// From now on rows are partitioned.
    fn begin_partitions(&mut self) {
        if self.partitions.is_empty() {
            self.partitions =
                std::iter::repeat_with(|| self.partition()).take(PARTITIONS).collect();
            self.selections = vec![Vec::new(); PARTITIONS];
        }
    }

    /// Adds the tuples of a chunk that count. Where memory is short, partitions leave.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Some(spilled) = self.build.spilled.clone() else { return self.append(&chunk) };
        self.make_room(&spilled, &chunk)?;
        self.append(&chunk)?;
        self.write_gone(&spilled, spilled.block_bytes())?;
        self.tell_held(&spilled);
        Ok(())
    }

    /// Bytes held, and those that the directory and the copy of rows that are together will take.
    fn held(&self) -> Held {
        let builders = || self.partitions.iter().chain([&self.together]);
        let rows: usize = builders().map(RowsBuilder::len).sum();
        let kept: usize = self.kept.iter().map(|kept| kept.hashes.len()).sum();
        let copied_bytes = self.together.memory_bytes() + kept * self.build.layout.stride_bytes();
        Held {
            now_bytes: builders().map(RowsBuilder::memory_bytes).sum::<usize>() + kept * HASH_BYTES,
            later_bytes: (rows + kept) * DIRECTORY_BYTES + copied_bytes,
        }
    }

    /// Tells the other workers.
    fn tell_held(&mut self, spilled: &SpilledBuild) {
        let held = self.held();
        spilled.holds(std::mem::replace(&mut self.held, held), held);
    }

    /// The largest partitions leave until there is room for a chunk.
    fn make_room(&mut self, spilled: &SpilledBuild, chunk: &Chunk) -> Result<()> {
        let strings = if self.build.layout.has_heap() { chunk.value_bytes() } else { 0 };
        let more = chunk.rows() * (self.build.layout.stride_bytes() + DIRECTORY_BYTES) + strings;
        let more = more
            + if self.partitions.is_empty() { 0 } else { PARTITIONS * self.build.page_bytes() };
        let context = self.build.context.clone();
        // Partitions of a build that has left are built by all workers at once.
        let at_once = if self.build.depth > 0 { context.workers() } else { 1 };
        let fits = || {
            let held = spilled.held();
            context.may_hold(held.now_bytes * at_once, (more + held.later_bytes) * at_once)
        };
        if fits() {
            return Ok(());
        }
        self.partition_together()?;
        while !fits() {
            let worth = self.partitions.iter().map(RowsBuilder::memory_bytes).enumerate();
            let worth = worth.filter(|(_, bytes)| *bytes >= spilled.block_bytes());
            let Some((largest, _)) = worth.max_by_key(|(_, bytes)| *bytes) else { break };
            spilled.leave(largest);
            self.write(spilled, largest)?;
            self.tell_held(spilled);
        }
        Ok(())
    }

    /// Writes what there is of a partition.
    fn write(&mut self, spilled: &SpilledBuild, partition: usize) -> Result<()> {
        let empty = self.partition();
        let full = std::mem::replace(&mut self.partitions[partition], empty);
        if full.is_empty() { Ok(()) } else { spilled.write(partition, &full.seal()) }
    }

    /// Writes what there is of partitions that have left, where it takes so many bytes.
    fn write_gone(&mut self, spilled: &SpilledBuild, bytes: usize) -> Result<()> {
        let gone = spilled.gone();
        for partition in (0..self.partitions.len()).filter(|partition| gone >> partition & 1 == 1) {
            if self.partitions[partition].memory_bytes() >= bytes {
                self.write(spilled, partition)?;
            }
        }
        Ok(())
    }

    /// Partitions the rows that are together.
    fn partition_together(&mut self) -> Result<()> {
        self.put_together()?;
        self.begin_partitions();
        if self.together.is_empty() {
            return Ok(());
        }
        let rows = std::mem::replace(&mut self.together, together(&self.build)).seal();
        let count = rows.len() as u64;
        for first in (0..count).step_by(REPARTITIONED_ROWS as usize) {
            self.build.context.check()?;
            self.append(&rows.lying(first..(first + REPARTITIONED_ROWS).min(count))?)?;
        }
        Ok(())
    }

    /// Whether the tuples of a chunk can stay where they lie.
    fn keeps(&self, chunk: &Chunk) -> bool {
        let kept: usize = self.kept.iter().map(|kept| kept.hashes.len()).sum();
        let alone =
            self.partitions.is_empty() && self.together.is_empty() && chunk.selection().is_none();
        let range = chunk.elsewhere::<RowRange>().filter(|_| alone);
        kept + chunk.rows() <= UNPARTITIONED_ROWS_MOST
            && range.is_some_and(|range| {
                range.is_whole() && self.build.layout.alike(&range.layout).is_some()
            })
    }

    /// Appends what is kept elsewhere.
    fn put_together(&mut self) -> Result<()> {
        for Kept { chunk, hashes, .. } in std::mem::take(&mut self.kept) {
            self.together.append(&Incoming::of_chunk(&chunk)?, Some(&hashes), None)?;
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
            self.kept.push(Kept { chunk: chunk.clone(), hashes, _memory: memory });
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

impl PendingTable {
    /// Cuts the rows of all workers into tasks. The table is complete when all have run.
    ///
    /// # Errors
    /// The memory budget or the scratch directory is exhausted.
    pub fn new(
        build: Arc<TableBuild>,
        mut buffers: Vec<BuildBuffers>,
    ) -> Result<(Arc<PendingTable>, Vec<Task>)> {
        if let Some(spilled) = build.spilled.as_ref().filter(|spilled| spilled.gone() != 0) {
            for buffer in &mut buffers {
                buffer.partition_together()?;
                buffer.write_gone(spilled, 0)?;
            }
        }
        let partitioned = buffers.iter().any(|buffer| !buffer.partitions.is_empty());
        if partitioned {
            buffers.iter_mut().try_for_each(BuildBuffers::put_together)?;
        }
        let partition_bits = if partitioned { PARTITION_BITS } else { 0 };
        let mut shares: Vec<Vec<Share>> = (0..1 << partition_bits).map(|_| Vec::new()).collect();
        let (mut heap, mut sides) = (HeapJoiner::default(), Vec::new());
        let mut has_nulls = vec![false; build.layout.fields.len()];
        for kept in buffers.iter_mut().flat_map(|buffer| buffer.kept.drain(..)) {
            let parts = kept.chunk.elsewhere::<RowRange>().map(|range| &range.part.has_nulls);
            has_nulls
                .iter_mut()
                .zip(parts.into_iter().flatten())
                .for_each(|(any, one)| *any |= one);
            shares[0].push(Share::Kept(kept));
        }
        let mut take = |builder: RowsBuilder| -> PartShare {
            let part = builder.seal_part();
            let (moved, side_base) = (heap.add(&part.heap), sides.len() as u32);
            sides.extend(part.sides.iter().cloned());
            has_nulls.iter_mut().zip(&part.has_nulls).for_each(|(any, one)| *any |= one);
            PartShare { part: Arc::new(part), rows: None, moved, side_base }
        };
        for buffer in buffers {
            let together = take(buffer.together);
            if partitioned {
                let mut lists: Vec<Vec<u32>> = vec![Vec::new(); shares.len()];
                for row in 0..together.part.rows {
                    let hash: u64 = together.part.pages.read(row, HASH_OFFSET);
                    lists[(hash >> (64 - partition_bits)) as usize].push(row as u32);
                }
                for (list, shares) in lists.into_iter().zip(&mut shares) {
                    let (part, moved) = (together.part.clone(), together.moved.clone());
                    let side_base = together.side_base;
                    shares.push(Share::Part(PartShare {
                        part,
                        rows: Some(list),
                        moved,
                        side_base,
                    }));
                }
            } else {
                shares[0].push(Share::Part(together));
            }
            for (builder, shares) in buffer.partitions.into_iter().zip(&mut shares) {
                shares.push(Share::Part(take(builder)));
            }
        }
        let counts: Vec<usize> =
            shares.iter().map(|shares| shares.iter().map(Share::len).sum::<usize>()).collect();
        let rows: usize = counts.iter().sum();
        let bits = Directory::bits_for(rows).max(partition_bits);
        let mut reservation = Reservation::new(build.context.clone());
        reservation.grow(Directory::bytes(bits))?;
        let directory = Arc::new(Directory::new(bits));
        let (pages, writers) = SharedPages::split(build.layout.stride_bytes(), &counts);
        let pending = Arc::new(PendingTable {
            build,
            directory,
            pages,
            rows,
            heap: Mutex::new(Some(heap.finish())),
            sides,
            has_nulls,
            reservations: Mutex::new(vec![reservation]),
            finished: OnceLock::new(),
        });
        let slots = pending.directory.slots() >> partition_bits;
        let mut first_row = 0;
        let mut tasks: Vec<Task> = Vec::new();
        for (partition, ((shares, writer), count)) in
            shares.into_iter().zip(writers).zip(counts).enumerate()
        {
            let pending = pending.clone();
            let range = partition * slots..(partition + 1) * slots;
            let first = first_row;
            first_row += count as u64;
            tasks.push(Box::new(move || pending.copy(shares, writer, range, first)));
        }
        Ok((pending, tasks))
    }

    /// One task: counts the rows of each slot of a partition, sums up, and copies the rows to their
    /// places.
    fn copy(
        &self,
        shares: Vec<Share>,
        mut writer: SharedWriter,
        slots: Range<usize>,
        first_row: u64,
    ) -> Result<()> {
        // The pages are touched, and so become memory, partition by partition, while those they are
        // copied from go.
        let mut reservation = Reservation::new(self.build.context.clone());
        reservation.grow(
            shares.iter().map(Share::len).sum::<usize>() * self.build.layout.stride_bytes(),
        )?;
        for share in &shares {
            match share {
                Share::Kept(kept) => {
                    let ahead = kept.hashes.iter().skip(COUNTED_AHEAD).chain(&kept.hashes);
                    for (hash, ahead) in kept.hashes.iter().zip(ahead) {
                        self.directory.prefetch(*ahead);
                        self.directory.count(*hash);
                    }
                }
                Share::Part(share) => self.each_block(share, |rows| {
                    rows.iter().for_each(|(_, hash)| self.directory.count(*hash));
                })?,
            }
        }
        self.directory.sum_up(slots, first_row);
        let patches: Vec<(usize, bool)> = self
            .build
            .layout
            .fields
            .iter()
            .filter(|field| field.in_heap() || field.in_sides())
            .map(|field| (field.offset, field.in_heap()))
            .collect();
        for share in &shares {
            let share = match share {
                Share::Part(share) => share,
                Share::Kept(kept) => {
                    self.copy_kept(kept, &mut writer, first_row)?;
                    continue;
                }
            };
            self.each_block(share, |rows| {
                let mut places = [0; PREFETCHED_ROWS];
                for (place, (_, hash)) in places.iter_mut().zip(rows) {
                    *place = (self.directory.place(*hash) - first_row) as usize;
                    writer.prefetch(*place);
                }
                for (place, (row, _)) in places.into_iter().zip(rows) {
                    let copy = writer.copy_row(place, share.part.pages.row(*row));
                    for (offset, in_heap) in &patches {
                        share.patch(&mut copy[*offset..], *in_heap);
                    }
                }
            })?;
        }
        let mut reservations = lock(&self.reservations);
        reservations.push(reservation);
        for share in shares {
            let Share::Part(share) = share else { continue };
            // The rows go, what they refer to stays; parts that other tasks read too go with the
            // last of them.
            if let Ok(mut part) = Arc::try_unwrap(share.part) {
                let pages = part.pages.memory_bytes();
                drop(std::mem::replace(&mut part.pages, tessera_rows::Pages::new(8, 0)));
                for mut reservation in part.reservations {
                    let kept = reservation.bytes().saturating_sub(pages);
                    reservation.resize(kept)?;
                    reservations.push(reservation);
                }
            }
        }
        Ok(())
    }

    /// The rows of a share, some at a time, each with its hash, whose entries were asked for.
    #[inline(always)]
    fn each_block(&self, share: &PartShare, mut visit: impl FnMut(&[(usize, u64)])) -> Result<()> {
        let hashes = share.part.pages.field::<u64>(HASH_OFFSET);
        let (mut block, len) = ([(0, 0); PREFETCHED_ROWS], share.len());
        for first in (0..len).step_by(PREFETCHED_ROWS) {
            if first % CHECK_ROWS == 0 {
                self.build.context.check()?;
            }
            let block = &mut block[..PREFETCHED_ROWS.min(len - first)];
            for (number, slot) in (first..).zip(block.iter_mut()) {
                let row = share.rows.as_ref().map_or(number, |rows| rows[number] as usize);
                *slot = (row, hashes.get(row as u64));
                self.directory.prefetch(slot.1);
            }
            visit(block);
        }
        Ok(())
    }

    /// Copies rows from where they lie, each behind its hash.
    fn copy_kept(&self, kept: &Kept, writer: &mut SharedWriter, first_row: u64) -> Result<()> {
        self.build.context.check()?;
        let lost = || Error::internal("rows that were kept are gone");
        let range = kept.chunk.elsewhere::<RowRange>().ok_or_else(lost)?;
        let (_, theirs) = self.build.layout.alike(&range.layout).ok_or_else(lost)?;
        let place = |hash: u64| (self.directory.place(hash) - first_row) as usize;
        let rows = range.first..range.first + range.rows;
        writer.copy_behind((&range.part.pages, theirs), rows, &kept.hashes, place);
        Ok(())
    }

    /// The table; all tasks must have run.
    ///
    /// # Errors
    /// A task is left or has failed: a mistake of the executor.
    pub fn finish(&self) -> Result<Arc<JoinTable>> {
        if let Some(table) = self.finished.get() {
            return Ok(table.clone());
        }
        let pages = self
            .pages
            .take()
            .ok_or_else(|| Error::internal("a join table read before it is built"))?;
        let take = |list: &Mutex<Vec<Reservation>>| std::mem::take(&mut *lock(list));
        let heap = lock(&self.heap).take().unwrap_or_default();
        let part = Part {
            pages,
            rows: self.rows,
            heap,
            sides: self.sides.clone(),
            has_nulls: self.has_nulls.clone(),
            reservations: take(&self.reservations),
        };
        let table = Arc::new(JoinTable::new(self.build.clone(), self.directory.clone(), part));
        Ok(self.finished.get_or_init(|| table).clone())
    }
}

impl Share {
    fn len(&self) -> usize {
        match self {
            Share::Part(share) => share.len(),
            Share::Kept(kept) => kept.hashes.len(),
        }
    }
}

impl PartShare {
    fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.part.rows, Vec::len)
    }

    /// Makes a copied header or reference point into the table's heap or sides.
    #[inline(always)]
    fn patch(&self, bytes: &mut [u8], in_heap: bool) {
        let read = |bytes: &[u8], at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if !in_heap {
            let moved = read(bytes, 0) + self.side_base;
            bytes[..4].copy_from_slice(&moved.to_le_bytes());
            return;
        }
        if read(bytes, 0) <= 12 {
            return;
        }
        let moved = self.moved[read(bytes, 8) as usize];
        let offset = read(bytes, 12) + moved.offset;
        bytes[8..12].copy_from_slice(&moved.buffer.to_le_bytes());
        bytes[12..16].copy_from_slice(&offset.to_le_bytes());
    }
}
