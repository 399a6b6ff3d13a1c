//! Rows on their way to another process: partitioned, packed into buffers that are sent whole, and
//! read where they arrive.
//!
//! A sender packs the tuples of each partition into a [`Packet`]: rows, and the strings they refer
//! to. Where a packet will lie among the partition's rows and strings is known only when it is
//! full; [`Packet::relocate`] then rewrites the headers of its strings. The receiver reads rows and
//! strings where they arrived ([`Rows::arrived`]), whoever sent them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::buffer::Buffer;
use arrow::datatypes::DataType;

use tessera_context::{Context, Reservation};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;
use tessera_vector::hash::{hash_fields, hash_of_word, words_of_key};

use super::builder::RowsBuilder;
use super::combine::{Combiner, Full};
use super::incoming::Incoming;
use super::layout::{Kind, RowLayout};
use super::memory::{Pages, Region};
use super::scatter::partition_of;
use super::sealed::{Part, Rows};

/// Bytes of rows, and of strings, after which a packet is sent.
const PACKET_BYTES: usize = 32 << 10;
/// The least, where partitions are many.
const PACKET_BYTES_MIN: usize = 4 << 10;
/// Bytes of the packets being filled: they stay in the second-level cache.
const FILLING_BYTES: usize = 1 << 20;
/// The part of the budget that the packets being filled may take, where that is less: each worker
/// of each exchange has them.
const FILLING_SHARE: usize = 128;
/// Strings of a partition lie in buffers that start this many bytes apart and overlap, so that no
/// string is cut.
const HEAP_STEP_BITS: u32 = 30;
/// The longest such buffer: what Arrow's views can point into.
const HEAP_BUFFER_BYTES: usize = (1 << 31) - 1;

/// Rows of one partition, in the bare layout, and the strings they refer to.
#[derive(Debug, Default)]
pub struct Packet<'a> {
    /// The rows.
    pub rows: Cow<'a, [u64]>,
    /// Strings of more than 12 bytes, of each row its own.
    pub heap: Vec<u8>,
    /// Where the pages of the heap begin that the rows' headers name.
    pages: Vec<u64>,
}

/// Tuples being partitioned by some bits of the hash of their keys, for sending.
#[derive(Debug)]
pub struct Outgoing {
    layout: Arc<RowLayout>,
    keys: Arc<[usize]>,
    bits: u32,
    shift: u32,
    heap_words: Arc<[usize]>,
    filling: Filling,
    packet_rows: usize,
    /// Bytes of strings after which a packet is sent.
    heap_bytes_max: usize,
    /// The most tuples that are taken in one piece, so that no packet outgrows its builder by much.
    piece_rows: usize,
    context: Arc<dyn Context>,
    /// Of one chunk.
    hashes: Vec<u64>,
}

/// The packets being filled.
#[derive(Debug)]
enum Filling {
    /// Rows that refer to nothing: packed one after the other, then moved to the buffers of their
    /// partitions.
    Plain { stage: Box<RowsBuilder>, combiner: Combiner, _memory: Reservation },
    /// Rows with strings: a builder for each partition, which keeps its strings.
    WithStrings(Vec<RowsBuilder>, Positions),
}

/// Positions of a chunk, partition by partition, and where those of each end.
#[derive(Debug, Default)]
struct Positions {
    positions: Vec<u32>,
    ends: Vec<u32>,
}

/// First words of the fields whose long strings lie in a heap.
///
/// # Errors
/// A field is of a kind that cannot be sent.
pub fn heap_words(layout: &RowLayout) -> Result<Arc<[usize]>> {
    let mut words = Vec::new();
    for (place, field) in layout.fields.iter().zip(layout.tuple().fields()) {
        if place.kind == Kind::Handle {
            return Err(Error::unsupported(format!(
                "field {field} is a collection, which cannot be sent to another process; send its tuples instead"
            )));
        }
        if place.in_heap() {
            words.push(place.offset / 8);
        }
    }
    Ok(words.into())
}

/// What takes a packet of a partition.
type Send<'a> = &'a mut dyn FnMut(usize, Packet<'_>) -> Result<()>;

impl Outgoing {
    /// Nothing yet. Partitions are the values of `bits` bits of the hash of `keys`, `shift` bits
    /// from the top; `layout` is bare.
    ///
    /// # Errors
    /// A field is of a kind that cannot be sent, or the memory budget is exhausted.
    pub fn new(
        layout: &Arc<RowLayout>,
        keys: &Arc<[usize]>,
        (bits, shift): (u32, u32),
        context: &Arc<dyn Context>,
    ) -> Result<Outgoing> {
        let (heap_words, stride) = (heap_words(layout)?, layout.stride_bytes());
        let filling_bytes = (context.memory_bytes() / FILLING_SHARE).min(FILLING_BYTES);
        let packet_bytes = (filling_bytes >> bits).clamp(PACKET_BYTES_MIN, PACKET_BYTES);
        let packet_rows = (packet_bytes / stride).max(1);
        let (piece_rows, heap_bytes_max) = match filling_bytes {
            FILLING_BYTES => (usize::MAX, PACKET_BYTES),
            few => ((few / stride).max(1), packet_bytes),
        };
        let chunk_rows = context.chunk_rows().min(piece_rows);
        let filling = if heap_words.is_empty() {
            let mut memory = Reservation::new(context.clone());
            memory.grow(Combiner::bytes(1 << bits, packet_rows, stride))?;
            Filling::Plain {
                stage: Box::new(RowsBuilder::new(
                    layout.clone(),
                    Reservation::new(context.clone()),
                )),
                combiner: Combiner::new(1 << bits, packet_rows, stride),
                _memory: memory,
            }
        } else {
            let rows = packet_rows + (chunk_rows >> bits);
            let builders = (0..1usize << bits).map(|_| builder(layout, rows, context));
            Filling::WithStrings(builders.collect::<Result<_>>()?, Positions::default())
        };
        Ok(Outgoing {
            layout: layout.clone(),
            keys: keys.clone(),
            bits,
            shift,
            heap_words,
            filling,
            packet_rows,
            heap_bytes_max,
            piece_rows,
            context: context.clone(),
            hashes: Vec::new(),
        })
    }

    /// Takes the tuples of a chunk; `send` gets each packet that is full, with its partition.
    ///
    /// # Errors
    /// The memory budget is exhausted, and those of `send`.
    pub fn append(&mut self, chunk: &Chunk, send: Send<'_>) -> Result<()> {
        self.context.check()?;
        let rows = chunk.rows();
        if rows <= self.piece_rows {
            return self.append_piece(chunk, send);
        }
        let piece_rows = self.piece_rows;
        // A piece of a selection would be hashed and resolved with all tuples that do not count.
        let chunk = chunk.clone().compact()?;
        let mut firsts = (0..rows).step_by(piece_rows);
        firsts.try_for_each(|first| {
            self.append_piece(&chunk.slice(first, piece_rows.min(rows - first)), &mut *send)
        })
    }

    fn append_piece(&mut self, chunk: &Chunk, send: Send<'_>) -> Result<()> {
        let incoming = Incoming::of_sent(chunk)?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        if let (Filling::Plain { combiner, .. }, None) = (&mut self.filling, selection)
            && let Some(words) = words_of_key(chunk, &self.keys)
        {
            let of = |word: &u64| partition_of(hash_of_word(*word), self.bits, self.shift);
            let full: Full<'_> = &mut |partition, words| send(partition, Packet::plain(words));
            if combiner.put_values(&self.layout, &incoming, words.iter().map(of), full)? {
                return Ok(());
            }
        }
        self.hashes.clear();
        if self.bits > 0 {
            hash_fields(chunk, &self.keys, &mut self.hashes)?;
        }
        let (hashes, bits, shift) = (&self.hashes, self.bits, self.shift);
        // Without bits there are no hashes, and all is one partition.
        let of = |position: usize| {
            if bits == 0 { 0 } else { partition_of(hashes[position], bits, shift) }
        };
        match &mut self.filling {
            Filling::Plain { stage, combiner, .. } => {
                let full: Full<'_> = &mut |partition, words| send(partition, Packet::plain(words));
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
            Filling::WithStrings(builders, sorted) => {
                let rows =
                    self.packet_rows + (self.context.chunk_rows().min(self.piece_rows) >> bits);
                let mut add = |partition: usize, positions: Option<&[u32]>| {
                    let filling = &mut builders[partition];
                    filling.append(&incoming, None, positions)?;
                    if filling.len() >= self.packet_rows
                        || filling.heap_bytes() >= self.heap_bytes_max
                    {
                        let next = builder(&self.layout, rows, &self.context)?;
                        send(partition, Packet::new(std::mem::replace(filling, next)))?;
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

    /// Sends what is left.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn flush(&mut self, send: Send<'_>) -> Result<()> {
        match &mut self.filling {
            Filling::Plain { combiner, .. } => {
                combiner.empty_all(&mut |partition, words| send(partition, Packet::plain(words)))
            }
            Filling::WithStrings(builders, _) => {
                for (partition, filling) in
                    builders.iter_mut().enumerate().filter(|(_, one)| !one.is_empty())
                {
                    let next = RowsBuilder::new(
                        self.layout.clone(),
                        Reservation::new(self.context.clone()),
                    );
                    send(partition, Packet::new(std::mem::replace(filling, next)))?;
                }
                Ok(())
            }
        }
    }

    /// First words of the fields whose long strings lie in a heap.
    pub fn heap_words(&self) -> &Arc<[usize]> {
        &self.heap_words
    }
}

impl Positions {
    /// Puts the positions that count in the order of their partitions, by counting.
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
        // Each entry runs from where its partition begins to where it ends.
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

    /// Visits the positions of each partition that has some.
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

/// A builder for one packet, and for what may come in one piece when it is almost full.
fn builder(
    layout: &Arc<RowLayout>,
    rows: usize,
    context: &Arc<dyn Context>,
) -> Result<RowsBuilder> {
    RowsBuilder::unshared(layout.clone(), rows, Reservation::new(context.clone()))
}

impl<'a> Packet<'a> {
    fn plain(rows: &'a [u64]) -> Packet<'a> {
        Packet { rows: rows.into(), ..Packet::default() }
    }

    /// The same, to be kept.
    pub fn into_owned(self) -> Packet<'static> {
        Packet { rows: self.rows.into_owned().into(), heap: self.heap, pages: self.pages }
    }

    fn new(filled: RowsBuilder) -> Packet<'static> {
        let (rows, mut heap) = filled.into_words();
        let mut end = 0;
        let mut pages = Vec::with_capacity(heap.len());
        for page in &heap {
            pages.push(end);
            end += page.len() as u64;
        }
        let heap = if heap.len() == 1 { heap.remove(0) } else { heap.concat() };
        Packet { rows: rows.into(), heap, pages }
    }

    /// A packet that came from another process, before it was relocated there.
    pub fn came(rows: Vec<u64>, heap: Vec<u8>) -> Packet<'static> {
        Packet { rows: rows.into(), heap, pages: Vec::new() }
    }

    /// Checks a packet that came from where others can write, before it is relocated: that each
    /// string lies in its heap, and is valid text where it must be. Nothing else in a row refers to
    /// anything.
    ///
    /// # Errors
    /// One does not.
    pub fn check(&self, layout: &RowLayout) -> Result<()> {
        let damaged = || {
            Error::data(
                "rows that came from another process are damaged: a string is not among their strings",
            )
        };
        let fields = layout.fields.iter().filter(|field| field.in_heap());
        let fields: Vec<(usize, bool)> = fields
            .map(|field| {
                (field.offset / 8, matches!(field.kind, Kind::Value(_, DataType::Utf8View)))
            })
            .collect();
        if fields.is_empty() {
            return Ok(());
        }
        for row in self.rows.chunks_exact(layout.stride_bytes() / 8) {
            for &(word, is_text) in &fields {
                let (first, second) = (row[word], row[word + 1]);
                let short = [first.to_le_bytes(), second.to_le_bytes()].concat();
                let bytes = match first as u32 as usize {
                    len @ ..=12 => {
                        // What stands behind a short string is zero: views are compared as numbers.
                        if short[4 + len..].iter().any(|byte| *byte != 0) {
                            return Err(damaged());
                        }
                        &short[4..4 + len]
                    }
                    len => {
                        let at =
                            ((second as u32 as u64) << HEAP_STEP_BITS).checked_add(second >> 32);
                        let at = at.and_then(|at| usize::try_from(at).ok()).ok_or_else(damaged)?;
                        let end = at.checked_add(len).ok_or_else(damaged)?;
                        let bytes = self.heap.get(at..end).ok_or_else(damaged)?;
                        if bytes[..4] != short[4..8] {
                            return Err(damaged());
                        }
                        bytes
                    }
                };
                if is_text && std::str::from_utf8(bytes).is_err() {
                    return Err(damaged());
                }
            }
        }
        Ok(())
    }

    /// Makes the rows refer to their strings as of their place in the partition: `base` bytes from
    /// the start of its heap.
    pub fn relocate(&mut self, layout: &RowLayout, heap_words: &[usize], base: u64) {
        if heap_words.is_empty() || self.heap.is_empty() {
            return;
        }
        for row in self.rows.to_mut().chunks_exact_mut(layout.stride_bytes() / 8) {
            for &word in heap_words {
                if row[word] as u32 > 12 {
                    let (page, offset) = (row[word + 1] as u32, row[word + 1] >> 32);
                    // What came has been relocated to the start of its own heap.
                    let page = self.pages.get(page as usize).copied();
                    let at = base
                        + page.unwrap_or((row[word + 1] as u32 as u64) << HEAP_STEP_BITS)
                        + offset;
                    row[word + 1] = at >> HEAP_STEP_BITS | (at & ((1 << HEAP_STEP_BITS) - 1)) << 32;
                }
            }
        }
        self.pages = Vec::new();
    }
}

impl Rows {
    /// Rows that packets brought, in the bare layout: `rows` holds them whole, `heap` the strings,
    /// of which `heap_bytes` are used.
    ///
    /// # Errors
    /// The layout has fields that cannot be sent.
    pub fn arrived(
        layout: &Arc<RowLayout>,
        rows: Region,
        heap: &Region,
        heap_bytes: usize,
        reservations: Vec<Reservation>,
    ) -> Result<Rows> {
        heap_words(layout)?;
        let step = 1usize << HEAP_STEP_BITS;
        let buffer = |start: usize| heap.buffer(start, (heap_bytes - start).min(HEAP_BUFFER_BYTES));
        let heap: Vec<Buffer> = (0..heap_bytes).step_by(step).map(buffer).collect();
        let count = rows.words() * 8 / layout.stride_bytes();
        let part = Part {
            pages: Pages::foreign(layout.stride_bytes(), rows),
            rows: count,
            heap: heap.into(),
            sides: Vec::new(),
            has_nulls: layout.tuple().fields().iter().map(|field| field.nullable).collect(),
            reservations,
        };
        Ok(Rows::new(layout.clone(), vec![Arc::new(part)]))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;

    use tessera_context::testing::{TestContext, batch, rows};

    use super::*;

    #[test]
    fn packets_arrive_in_any_order() {
        const TUPLE: &str = "<k: int64, s: string?, t: string>";
        let tuple: tessera_types::Tuple = TUPLE.parse().unwrap();
        let schema = Arc::new(tuple.arrow_schema().unwrap());
        let lines: Vec<String> = (0..3_000)
            .map(|i| match i % 3 {
                0 => format!("{i} NULL t{i}"),
                1 => format!("{i} short a-long-text-that-needs-the-heap-{i}"),
                _ => format!("{i} another-long-text-{i} yet-another-long-text-{i}"),
            })
            .collect();
        let layout = RowLayout::bare(&tuple).unwrap();
        let context: Arc<dyn Context> = TestContext::new(2048, 1);
        let mut outgoing = Outgoing::new(&layout, &vec![0].into(), (2, 40), &context).unwrap();
        let words = outgoing.heap_words().clone();
        let mut arrived: Vec<(Vec<u64>, Vec<u8>)> = vec![Default::default(); 4];
        let mut send = |partition: usize, mut packet: Packet<'_>| {
            let (rows, heap) = &mut arrived[partition];
            packet.relocate(&layout, &words, heap.len() as u64);
            rows.extend_from_slice(&packet.rows);
            heap.extend(packet.heap);
            Ok(())
        };
        for part in lines.chunks(700) {
            let batch = batch(TUPLE, &part.join("|"));
            let chunk = Chunk::from_arrays(batch.columns().to_vec());
            outgoing.append(&chunk, &mut send).unwrap();
        }
        outgoing.flush(&mut send).unwrap();
        let mut found = Vec::new();
        for (words, heap) in arrived {
            assert!(!words.is_empty());
            let (bytes, heap) = (heap.len(), Region::of_bytes(&heap));
            let there =
                Rows::arrived(&layout, Region::owned(words), &heap, bytes, Vec::new()).unwrap();
            let chunk = there.chunk(0..there.len() as u64).unwrap();
            let columns =
                (0..3).map(|field| chunk.column(field).unwrap().plain().unwrap()).collect();
            found.extend(rows(&RecordBatch::try_new(schema.clone(), columns).unwrap()));
        }
        let mut lines = lines;
        lines.sort();
        found.sort();
        assert_eq!(found, lines);
    }

    #[test]
    fn what_cannot_be_sent_is_an_error() {
        let layout = RowLayout::bare(&"<l: rows<k: int64>>".parse().unwrap()).unwrap();
        let context: Arc<dyn Context> = TestContext::new(2048, 1);
        let message =
            Outgoing::new(&layout, &vec![].into(), (0, 0), &context).unwrap_err().to_string();
        assert!(message.contains("cannot be sent"), "{message}");
    }
}
