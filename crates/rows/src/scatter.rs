//! Scatters rows over partitions of known sizes: the inner loop of `local_partition`.
//!
//! Each worker packs tuples into a small stage, and moves its rows from there into write-combining
//! buffers, a few cache lines for each partition (Modularis §2.3.2; Balkesen et al.). A full buffer
//! is copied to its partition in one piece with plain stores: non-temporal stores need whole
//! aligned cache lines, and with rows of 24 bytes, which are not, they took most of this loop's
//! time.

use std::sync::{Arc, Mutex};

use arrow::buffer::Buffer;

use tessera_context::{Context, Reservation, lock};
use tessera_types::{Error, Result};

use super::builder::RowsBuilder;
use super::combine::Combiner;
use super::compiled::Tuples;
use super::layout::{FieldLayout, RowLayout};
use super::memory::Pages;
use super::sealed::{Part, Rows, Side};

/// Bytes of a worker's buffer for one partition: a few cache lines.
const BUFFER_BYTES: usize = 512;
/// Bytes of rows that are packed before they are scattered: they fit the second-level cache.
const STAGE_BYTES: usize = 128 << 10;

/// Returns the partition of a hash: `bits` bits of it, starting `shift` bits from the top.
#[inline(always)]
pub fn partition_of(hash: u64, bits: u32, shift: u32) -> usize {
    // Two shifts: one by 64 would be undefined.
    if bits == 0 { 0 } else { ((hash << shift) >> (64 - bits)) as usize }
}

/// Partitions under construction, filled by many workers.
#[derive(Debug)]
pub struct Scatter {
    layout: Arc<RowLayout>,
    bits: u32,
    shift: u32,
    buffer_rows: usize,
    /// The first word of each field that refers to the heap, and of each that refers to a side.
    heap_words: Vec<usize>,
    side_words: Vec<usize>,
    targets: Vec<Mutex<Target>>,
    shared: Mutex<Referred>,
}

/// A partition of its exact size.
#[derive(Debug)]
struct Target {
    pages: Pages,
    rows: usize,
    filled: usize,
    memory: Reservation,
}

/// The heap buffers and sides that rows of all partitions refer to.
#[derive(Debug)]
struct Referred {
    heap: Vec<Buffer>,
    sides: Vec<Side>,
    has_nulls: Vec<bool>,
    reservations: Vec<Reservation>,
}

/// A worker's stage and buffers.
#[derive(Debug)]
pub struct Scatterer {
    scatter: Arc<Scatter>,
    context: Arc<dyn Context>,
    stage: RowsBuilder,
    combiner: Combiner,
    _memory: Reservation,
}

impl Scatter {
    /// Creates partitions of `counts` rows each, one for each value of `bits` bits.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    pub fn new(
        layout: Arc<RowLayout>,
        counts: &[usize],
        (bits, shift): (u32, u32),
        context: &Arc<dyn Context>,
    ) -> Result<Arc<Scatter>> {
        let stride = layout.stride_bytes();
        let words = |wanted: fn(&FieldLayout) -> bool| {
            layout
                .fields
                .iter()
                .filter(|field| wanted(field))
                .map(|field| field.offset / 8)
                .collect()
        };
        let target = |rows: &usize| {
            let mut memory = Reservation::new(context.clone());
            memory.grow(rows * stride)?;
            Ok(Mutex::new(Target {
                pages: Pages::contiguous(stride, *rows),
                rows: *rows,
                filled: 0,
                memory,
            }))
        };
        Ok(Arc::new(Scatter {
            heap_words: words(FieldLayout::in_heap),
            side_words: words(FieldLayout::in_sides),
            targets: counts.iter().map(target).collect::<Result<_>>()?,
            shared: Mutex::new(Referred {
                heap: Vec::new(),
                sides: Vec::new(),
                has_nulls: vec![false; layout.fields.len()],
                reservations: Vec::new(),
            }),
            buffer_rows: (BUFFER_BYTES / stride).max(2),
            layout,
            bits,
            shift,
        }))
    }

    /// Creates the state of one worker.
    pub fn worker(self: &Arc<Self>, context: &Arc<dyn Context>) -> Result<Scatterer> {
        let (partitions, stride) = (self.targets.len(), self.layout.stride_bytes());
        let mut memory = Reservation::new(context.clone());
        memory.grow(Combiner::bytes(partitions, self.buffer_rows, stride))?;
        Ok(Scatterer {
            scatter: self.clone(),
            context: context.clone(),
            stage: RowsBuilder::new(self.layout.clone(), Reservation::new(context.clone())),
            combiner: Combiner::new(partitions, self.buffer_rows, stride),
            _memory: memory,
        })
    }

    /// Returns the partitions; all workers must have been flushed.
    ///
    /// # Errors
    /// The counts differ from the numbers of tuples.
    pub fn finish(&self) -> Result<Vec<Rows>> {
        let mut shared = lock(&self.shared);
        let heap: Arc<[Buffer]> = std::mem::take(&mut shared.heap).into();
        let sides = std::mem::take(&mut shared.sides);
        let partition = |(number, target): (usize, &Mutex<Target>)| {
            let mut target = lock(target);
            if target.filled != target.rows {
                return Err(wrong_count(number, target.rows, target.filled));
            }
            let pages = std::mem::replace(&mut target.pages, Pages::new(8, 0));
            let memory = Reservation::new(target.memory.context());
            let mut reservations = vec![std::mem::replace(&mut target.memory, memory)];
            if number == 0 {
                reservations.append(&mut shared.reservations);
            }
            let part = Part {
                pages,
                rows: target.rows,
                heap: heap.clone(),
                sides: sides.clone(),
                has_nulls: shared.has_nulls.clone(),
                reservations,
            };
            Ok(Rows::new(self.layout.clone(), vec![Arc::new(part)]))
        };
        self.targets.iter().enumerate().map(partition).collect()
    }

    /// Adds rows to their partition.
    fn fill(&self, partition: usize, words: &[u64]) -> Result<()> {
        let rows = words.len() * 8 / self.layout.stride_bytes();
        let mut target = lock(&self.targets[partition]);
        let (first, counted) = (target.filled, target.rows);
        target.filled += rows;
        match target.pages.words_mut(first, rows) {
            Some(place) => place.copy_from_slice(words),
            None => return Err(wrong_count(partition, counted, first + rows)),
        }
        Ok(())
    }

    /// Shifts the references of rows behind the buffers and sides that were added before.
    fn shift_references(&self, rows: &mut [u64], (heap_base, side_base): (u64, u64)) {
        if self.heap_words.is_empty() && self.side_words.is_empty() {
            return;
        }
        for row in rows.chunks_exact_mut(self.layout.stride_bytes() / 8) {
            for &word in &self.heap_words {
                // A string of more than 12 bytes: its heap page is in the lower half of the second
                // word.
                if row[word] as u32 > 12 {
                    row[word + 1] += heap_base;
                }
            }
            for &word in &self.side_words {
                row[word] += side_base;
            }
        }
    }

    /// Adds the heap and sides of a stage; returns how many buffers and sides were there before it.
    fn keep(&self, stage: &Part) -> (u64, u64) {
        let mut shared = lock(&self.shared);
        let bases = (shared.heap.len() as u64, shared.sides.len() as u64);
        shared.heap.extend(stage.heap.iter().cloned());
        shared.sides.extend(stage.sides.iter().cloned());
        shared.has_nulls.iter_mut().zip(&stage.has_nulls).for_each(|(any, more)| *any |= more);
        bases
    }
}

fn wrong_count(partition: usize, counted: usize, found: usize) -> Error {
    Error::data(format!(
        "the histogram counts {counted} tuples in partition {partition}, but there are {found} or more; it must be made \
         of the same tuples with the same keys, bits and shift"
    ))
}

impl Scatterer {
    /// Appends the tuples of a chunk at the positions of `selection`, or all; hashes are by
    /// position.
    pub fn append(
        &mut self,
        tuples: &Tuples<'_>,
        hashes: &[u64],
        selection: Option<&[u32]>,
    ) -> Result<()> {
        self.stage.append_tuples(tuples, Some(hashes), selection)?;
        let full = self.stage.len() * self.scatter.layout.stride_bytes() >= STAGE_BYTES;
        if full { self.scatter_stage() } else { Ok(()) }
    }

    /// Moves the remaining rows to the partitions.
    pub fn flush(&mut self) -> Result<()> {
        self.scatter_stage()?;
        let scatter = self.scatter.clone();
        self.combiner.empty_all(&mut |partition, words| scatter.fill(partition, words))?;
        Ok(())
    }

    fn scatter_stage(&mut self) -> Result<()> {
        self.context.check()?;
        let next =
            RowsBuilder::new(self.scatter.layout.clone(), Reservation::new(self.context.clone()));
        let mut stage = std::mem::replace(&mut self.stage, next).seal_part();
        let bases = self.scatter.keep(&stage);
        let (scatter, stride) = (self.scatter.clone(), self.scatter.layout.stride_bytes() / 8);
        for words in stage.pages.runs_mut(stage.rows) {
            scatter.shift_references(words, bases);
            // The hash is the first word of a row.
            let hashes = words.iter().step_by(stride);
            let partitions = hashes.map(|hash| partition_of(*hash, scatter.bits, scatter.shift));
            self.combiner
                .put(words, partitions, &mut |partition, words| scatter.fill(partition, words))?;
        }
        // The rows are released; the heap they refer to stays.
        let mut row_bytes = stage.pages.memory_bytes();
        stage.pages = Pages::new(8, 0);
        for mut reservation in stage.reservations {
            let given = row_bytes.min(reservation.bytes());
            reservation.resize(reservation.bytes() - given)?;
            row_bytes -= given;
            if reservation.bytes() > 0 {
                lock(&scatter.shared).reservations.push(reservation);
            }
        }
        Ok(())
    }
}
