//! Partitions tuples and packs them into batches.

use std::sync::Arc;

use tessera_context::{Context, Reservation};
use tessera_types::Result;
use tessera_vector::Chunk;
use tessera_vector::hash::{hash_fields, hash_of_word, words_of_key};

use super::{WireBatch, heap_words};
use crate::builder::RowsBuilder;
use crate::combine::{Combiner, FlushFn};
use crate::layout::RowLayout;
use crate::resolved_columns::ResolvedColumns;
use crate::scatter::partition_of;

/// Bytes of rows, and of strings, after which a batch is sent.
const BATCH_BYTES: usize = 32 << 10;
/// The smallest batch size, with many partitions.
const BATCH_BYTES_MIN: usize = 4 << 10;
/// Bytes of all batches being filled: they fit the second-level cache.
const FILLING_BYTES: usize = 1 << 20;
/// The batches being filled also take at most this fraction of the memory budget: each worker of
/// each exchange has them.
const FILLING_SHARE: usize = 128;

/// Partitions tuples by some bits of the hash of their keys, for sending.
#[derive(Debug)]
pub struct WirePartitioner {
    layout: Arc<RowLayout>,
    keys: Arc<[usize]>,
    bits: u32,
    shift: u32,
    heap_words: Arc<[usize]>,
    filling: BatchBuilders,
    batch_rows: usize,
    /// Bytes of strings after which a batch is sent.
    heap_bytes_max: usize,
    /// The most tuples taken in one piece, so that no batch outgrows its builder by much.
    piece_rows: usize,
    context: Arc<dyn Context>,
    /// The hashes of one chunk.
    hashes: Vec<u64>,
}

/// The batches being filled.
#[derive(Debug)]
enum BatchBuilders {
    /// Rows without references: packed one after the other, then moved to the buffers of their
    /// partitions.
    Plain { stage: Box<RowsBuilder>, combiner: Combiner, _memory: Reservation },
    /// Rows with strings: one builder per partition, with its strings.
    WithStrings(Vec<RowsBuilder>, Positions),
}

/// The positions of a chunk's tuples by partition, and the end of each partition.
#[derive(Debug, Default)]
struct Positions {
    positions: Vec<u32>,
    ends: Vec<u32>,
}

/// Receives the partition and a batch of it.
type SendFn<'a> = &'a mut dyn FnMut(usize, WireBatch<'_>) -> Result<()>;

impl WirePartitioner {
    /// Creates empty batches. Partitions are the values of `bits` bits of the hash of `keys`,
    /// `shift` bits from the top; `layout` is bare.
    ///
    /// # Errors
    /// A field cannot be sent, or the memory budget is exhausted.
    pub fn new(
        layout: &Arc<RowLayout>,
        keys: &Arc<[usize]>,
        (bits, shift): (u32, u32),
        context: &Arc<dyn Context>,
    ) -> Result<WirePartitioner> {
        let (heap_words, stride) = (heap_words(layout)?, layout.stride_bytes());
        let filling_bytes = (context.memory_bytes() / FILLING_SHARE).min(FILLING_BYTES);
        let batch_bytes = (filling_bytes >> bits).clamp(BATCH_BYTES_MIN, BATCH_BYTES);
        let batch_rows = (batch_bytes / stride).max(1);
        let (piece_rows, heap_bytes_max) = match filling_bytes {
            FILLING_BYTES => (usize::MAX, BATCH_BYTES),
            few => ((few / stride).max(1), batch_bytes),
        };
        let chunk_rows = context.chunk_rows().min(piece_rows);
        let filling = if heap_words.is_empty() {
            let mut memory = Reservation::new(context.clone());
            memory.grow(Combiner::bytes(1 << bits, batch_rows, stride))?;
            BatchBuilders::Plain {
                stage: Box::new(RowsBuilder::new(
                    layout.clone(),
                    Reservation::new(context.clone()),
                )),
                combiner: Combiner::new(1 << bits, batch_rows, stride),
                _memory: memory,
            }
        } else {
            let rows = batch_rows + (chunk_rows >> bits);
            let builders = (0..1usize << bits).map(|_| builder(layout, rows, context));
            BatchBuilders::WithStrings(builders.collect::<Result<_>>()?, Positions::default())
        };
        Ok(WirePartitioner {
            layout: layout.clone(),
            keys: keys.clone(),
            bits,
            shift,
            heap_words,
            filling,
            batch_rows,
            heap_bytes_max,
            piece_rows,
            context: context.clone(),
            hashes: Vec::new(),
        })
    }

    /// Appends the tuples of a chunk; passes each full batch to `send`, with its partition.
    ///
    /// # Errors
    /// The memory budget is exhausted, and those of `send`.
    pub fn append(&mut self, chunk: &Chunk, send: SendFn<'_>) -> Result<()> {
        self.context.check()?;
        let rows = chunk.rows();
        if rows <= self.piece_rows {
            return self.append_piece(chunk, send);
        }
        let piece_rows = self.piece_rows;
        // A slice of a selection would be hashed and resolved with all tuples that are not
        // selected.
        let chunk = chunk.clone().compact()?;
        let mut firsts = (0..rows).step_by(piece_rows);
        firsts.try_for_each(|first| {
            self.append_piece(&chunk.slice(first, piece_rows.min(rows - first)), &mut *send)
        })
    }

    fn append_piece(&mut self, chunk: &Chunk, send: SendFn<'_>) -> Result<()> {
        let incoming = ResolvedColumns::of_sent(chunk)?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        if let (BatchBuilders::Plain { combiner, .. }, None) = (&mut self.filling, selection)
            && let Some(words) = words_of_key(chunk, &self.keys)
        {
            let of = |word: &u64| partition_of(hash_of_word(*word), self.bits, self.shift);
            let full: FlushFn<'_> =
                &mut |partition, words| send(partition, WireBatch::plain(words));
            if combiner.put_values(&self.layout, &incoming, words.iter().map(of), full)? {
                return Ok(());
            }
        }
        self.hashes.clear();
        if self.bits > 0 {
            hash_fields(chunk, &self.keys, &mut self.hashes)?;
        }
        let (hashes, bits, shift) = (&self.hashes, self.bits, self.shift);
        // Without bits there are no hashes, and one partition.
        let of = |position: usize| {
            if bits == 0 { 0 } else { partition_of(hashes[position], bits, shift) }
        };
        match &mut self.filling {
            BatchBuilders::Plain { stage, combiner, .. } => {
                let full: FlushFn<'_> =
                    &mut |partition, words| send(partition, WireBatch::plain(words));
                let all = (0..incoming.rows()).map(of);
                if selection.is_none() && combiner.put_values(&self.layout, &incoming, all, full)? {
                    return Ok(());
                }
                stage.append(&incoming, None, selection)?;
                let mut first = 0;
                for words in stage.runs() {
                    let here = words.len() * 8 / self.layout.stride_bytes();
                    match selection {
                        None => combiner.put(words, (first..first + here).map(of), full)?,
                        Some(selection) => {
                            let positions = selection[first..first + here].iter();
                            combiner.put(
                                words,
                                positions.map(|position| of(*position as usize)),
                                full,
                            )?;
                        }
                    }
                    first += here;
                }
                stage.clear_rows();
                Ok(())
            }
            BatchBuilders::WithStrings(builders, sorted) => {
                let rows =
                    self.batch_rows + (self.context.chunk_rows().min(self.piece_rows) >> bits);
                let mut add = |partition: usize, positions: Option<&[u32]>| {
                    let filling = &mut builders[partition];
                    filling.append(&incoming, None, positions)?;
                    if filling.len() >= self.batch_rows
                        || filling.heap_bytes() >= self.heap_bytes_max
                    {
                        let next = builder(&self.layout, rows, &self.context)?;
                        send(partition, WireBatch::new(std::mem::replace(filling, next)))?;
                    }
                    Ok(())
                };
                if bits == 0 {
                    return add(0, selection);
                }
                sorted.sort(chunk.rows_stored(), selection, 1 << bits, of);
                sorted.each(|partition, positions| add(partition, Some(positions)))
            }
        }
    }

    /// Sends the remaining rows.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn flush(&mut self, send: SendFn<'_>) -> Result<()> {
        match &mut self.filling {
            BatchBuilders::Plain { combiner, .. } => {
                combiner.empty_all(&mut |partition, words| send(partition, WireBatch::plain(words)))
            }
            BatchBuilders::WithStrings(builders, _) => {
                for (partition, filling) in
                    builders.iter_mut().enumerate().filter(|(_, one)| !one.is_empty())
                {
                    let next = RowsBuilder::new(
                        self.layout.clone(),
                        Reservation::new(self.context.clone()),
                    );
                    send(partition, WireBatch::new(std::mem::replace(filling, next)))?;
                }
                Ok(())
            }
        }
    }

    /// The first words of the fields whose long strings are in a heap.
    pub fn heap_words(&self) -> &Arc<[usize]> {
        &self.heap_words
    }
}

impl Positions {
    /// Sorts the selected positions by partition, by counting.
    fn sort(
        &mut self,
        rows: usize,
        selection: Option<&[u32]>,
        partitions: usize,
        of: impl Fn(usize) -> usize,
    ) {
        let Positions { positions, ends } = self;
        let all = 0..rows as u32;
        ends.clear();
        ends.resize(partitions, 0);
        match selection {
            None => all.clone().for_each(|position| ends[of(position as usize)] += 1),
            Some(selection) => {
                selection.iter().for_each(|position| ends[of(*position as usize)] += 1)
            }
        }
        let mut before = 0;
        for end in ends.iter_mut() {
            (*end, before) = (before, before + *end);
        }
        // The entry of a partition advances from its start to its end.
        positions.clear();
        positions.resize(before as usize, 0);
        let mut put = |position: u32| {
            let place = &mut ends[of(position as usize)];
            positions[*place as usize] = position;
            *place += 1;
        };
        match selection {
            None => all.for_each(&mut put),
            Some(selection) => selection.iter().copied().for_each(&mut put),
        }
    }

    /// Visits the positions of each non-empty partition.
    fn each(&self, mut visit: impl FnMut(usize, &[u32]) -> Result<()>) -> Result<()> {
        let mut first = 0;
        for (partition, end) in self.ends.iter().enumerate() {
            let positions = &self.positions[first..*end as usize];
            first = *end as usize;
            if !positions.is_empty() {
                visit(partition, positions)?;
            }
        }
        Ok(())
    }
}

/// Creates a builder for one batch, and for one more piece when it is almost full.
fn builder(
    layout: &Arc<RowLayout>,
    rows: usize,
    context: &Arc<dyn Context>,
) -> Result<RowsBuilder> {
    RowsBuilder::unshared(layout.clone(), rows, Reservation::new(context.clone()))
}
