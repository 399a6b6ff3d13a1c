//! A join table under construction: tasks copy the rows of all workers to their places.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Reservation, lock};
use tessera_operator::Task;
use tessera_rows::spill::PARTITION_BITS;
use tessera_rows::{
    HASH_OFFSET, PREFETCHED_ROWS, Part, RowRange, RowsBuilder, SharedPages, SharedWriter, Side,
};
use tessera_types::{Error, Result};

use super::buffers::{BuildBuffers, CHECK_ROWS, InPlaceChunk, TableBuild};
use super::directory::Directory;
use super::heap::{HeapJoiner, PageLocation};
use super::table::JoinTable;

/// How many slots are prefetched before they are counted.
const COUNTED_AHEAD: usize = 16;

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

/// Rows that a task copies.
#[derive(Debug)]
enum Share {
    Part(PartShare),
    InPlace(InPlaceChunk),
}

/// All rows of a part, or the listed ones.
#[derive(Debug)]
struct PartShare {
    part: Arc<Part>,
    rows: Option<Vec<u32>>,
    /// The new locations of its heap pages in the table's heap.
    locations: Arc<[PageLocation]>,
    /// The offset of its side stores among those of the table.
    side_base: u32,
}

impl PendingTable {
    /// Divides the rows of all workers into tasks. The table is complete when all have run.
    ///
    /// # Errors
    /// The memory budget or the scratch directory is exhausted.
    pub fn new(
        build: Arc<TableBuild>,
        mut buffers: Vec<BuildBuffers>,
    ) -> Result<(Arc<PendingTable>, Vec<Task>)> {
        if let Some(spilled) = build.spilled.as_ref().filter(|spilled| spilled.spilled_mask() != 0)
        {
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
        for in_place in buffers.iter_mut().flat_map(|buffer| buffer.in_place.drain(..)) {
            let parts = in_place.chunk.lazy_as::<RowRange>().map(|range| &range.part.has_nulls);
            has_nulls
                .iter_mut()
                .zip(parts.into_iter().flatten())
                .for_each(|(any, one)| *any |= one);
            shares[0].push(Share::InPlace(in_place));
        }
        let mut take = |builder: RowsBuilder| -> PartShare {
            let part = builder.seal_part();
            let (locations, side_base) = (heap.add(&part.heap), sides.len() as u32);
            sides.extend(part.sides.iter().cloned());
            has_nulls.iter_mut().zip(&part.has_nulls).for_each(|(any, one)| *any |= one);
            PartShare { part: Arc::new(part), rows: None, locations, side_base }
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
                    let (part, locations) = (together.part.clone(), together.locations.clone());
                    let side_base = together.side_base;
                    shares.push(Share::Part(PartShare {
                        part,
                        rows: Some(list),
                        locations,
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

    /// Runs one task: counts the rows of each slot of a partition, computes the prefix sums, and
    /// copies the rows to their places.
    fn copy(
        &self,
        shares: Vec<Share>,
        mut writer: SharedWriter,
        slots: Range<usize>,
        first_row: u64,
    ) -> Result<()> {
        // The pages become resident when they are first written, partition by partition, while
        // those they are copied from are released.
        let mut reservation = Reservation::new(self.build.context.clone());
        reservation.grow(
            shares.iter().map(Share::len).sum::<usize>() * self.build.layout.stride_bytes(),
        )?;
        for share in &shares {
            match share {
                Share::InPlace(in_place) => {
                    let ahead = in_place.hashes.iter().skip(COUNTED_AHEAD).chain(&in_place.hashes);
                    for (hash, ahead) in in_place.hashes.iter().zip(ahead) {
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
                Share::InPlace(in_place) => {
                    self.copy_in_place(in_place, &mut writer, first_row)?;
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
            // The rows are released, their heap stays; parts that other tasks read are released
            // with the last of them.
            if let Ok(mut part) = Arc::try_unwrap(share.part) {
                let pages = part.pages.memory_bytes();
                drop(std::mem::replace(&mut part.pages, tessera_rows::Pages::new(8, 0)));
                for mut reservation in part.reservations {
                    let in_place = reservation.bytes().saturating_sub(pages);
                    reservation.resize(in_place)?;
                    reservations.push(reservation);
                }
            }
        }
        Ok(())
    }

    /// Visits the rows of a share, some at a time, each with its hash, whose slots are prefetched.
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

    /// Copies rows that stayed in place, each after its hash.
    fn copy_in_place(
        &self,
        in_place: &InPlaceChunk,
        writer: &mut SharedWriter,
        first_row: u64,
    ) -> Result<()> {
        self.build.context.check()?;
        let lost = || Error::internal("rows in place are missing");
        let range = in_place.chunk.lazy_as::<RowRange>().ok_or_else(lost)?;
        let (_, theirs) = self.build.layout.alike(&range.layout).ok_or_else(lost)?;
        let place = |hash: u64| (self.directory.place(hash) - first_row) as usize;
        let rows = range.first..range.first + range.rows;
        writer.copy_behind((&range.part.pages, theirs), rows, &in_place.hashes, place);
        Ok(())
    }

    /// Returns the table; all tasks must have run.
    ///
    /// # Errors
    /// A task has not run or has failed: an internal error of the executor.
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
            Share::InPlace(in_place) => in_place.hashes.len(),
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
            let side = read(bytes, 0) + self.side_base;
            bytes[..4].copy_from_slice(&side.to_le_bytes());
            return;
        }
        if read(bytes, 0) <= 12 {
            return;
        }
        let location = self.locations[read(bytes, 8) as usize];
        let offset = read(bytes, 12) + location.offset;
        bytes[8..12].copy_from_slice(&location.buffer.to_le_bytes());
        bytes[12..16].copy_from_slice(&offset.to_le_bytes());
    }
}
