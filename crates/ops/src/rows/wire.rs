//! Rows on their way to another process: partitioned, packed into buffers that are sent whole, and read where they arrive.
//!
//! A sender packs the tuples of each partition into a [`Packet`]: rows, and the strings they refer to. Where a packet will
//! lie among the partition's rows and strings is known only when it is full; [`Packet::relocate`] then rewrites the headers of
//! its strings. The receiver reads rows and strings where they arrived ([`Rows::arrived`]), whoever sent them.

use std::sync::Arc;

use arrow::buffer::Buffer;

use tessera_encodings::Chunk;
use tessera_types::{Error, Result};

use crate::context::{Context, Reservation};
use crate::physical::Physical;

use super::builder::RowsBuilder;
use super::incoming::long_bytes;
use super::layout::{Kind, RowLayout};
use super::memory::{Pages, Region};
use super::scatter::partition_of;
use super::sealed::{Part, Rows};

/// Bytes of rows that are packed before they are partitioned: they stay in the second-level cache.
const STAGE_BYTES: usize = 128 << 10;
/// Bytes of rows, and of strings, after which a packet is sent.
const PACKET_BYTES: usize = 32 << 10;
/// Strings of a partition lie in buffers that start this many bytes apart and overlap, so that no string is cut.
const HEAP_STEP_BITS: u32 = 30;
/// The longest such buffer: what Arrow's views can point into.
const HEAP_BUFFER_BYTES: usize = (1 << 31) - 1;

/// Rows of one partition and the strings they refer to.
#[derive(Debug, Default)]
pub struct Packet {
    /// The rows.
    pub rows: Vec<u64>,
    /// Strings of more than 12 bytes, in the order of the rows.
    pub heap: Vec<u8>,
}

/// Tuples being partitioned by some bits of the hash of their keys, for sending.
#[derive(Debug)]
pub struct Outgoing {
    layout: Arc<RowLayout>,
    keys: Arc<[usize]>,
    bits: u32,
    shift: u32,
    heap_words: Arc<[usize]>,
    stage: RowsBuilder,
    packets: Vec<Packet>,
    packet_rows: usize,
    context: Arc<dyn Context>,
    _memory: Reservation,
}

/// First words of the fields whose long strings lie in a heap.
///
/// # Errors
/// A field is of a kind that cannot be sent.
pub fn heap_words(layout: &RowLayout) -> Result<Arc<[usize]>> {
    let mut words = Vec::new();
    for (place, field) in layout.fields.iter().zip(layout.tuple().fields()) {
        match &place.kind {
            Kind::Value(Physical::View, _) => words.push(place.offset / 8),
            Kind::Value(Physical::Nested, _) | Kind::Handle => {
                return Err(Error::unsupported(format!(
                    "field {field} cannot be sent to another process; unnest it, or cast it to a string, first"
                )));
            }
            Kind::Value(..) => {}
        }
    }
    Ok(words.into())
}

impl Outgoing {
    /// Nothing yet. Partitions are the values of `bits` bits of the hash of `keys`, `shift` bits from the top.
    ///
    /// # Errors
    /// A field is of a kind that cannot be sent, or the memory budget is exhausted.
    pub fn new(
        layout: &Arc<RowLayout>,
        keys: &Arc<[usize]>,
        (bits, shift): (u32, u32),
        context: &Arc<dyn Context>,
    ) -> Result<Outgoing> {
        let partitions = 1usize << bits;
        let mut memory = Reservation::new(context.clone());
        memory.grow(partitions * PACKET_BYTES)?;
        Ok(Outgoing {
            layout: layout.clone(),
            keys: keys.clone(),
            bits,
            shift,
            heap_words: heap_words(layout)?,
            stage: RowsBuilder::new(layout.clone(), Reservation::new(context.clone())),
            packets: (0..partitions).map(|_| Packet::default()).collect(),
            packet_rows: (PACKET_BYTES / layout.stride_bytes()).max(1),
            context: context.clone(),
            _memory: memory,
        })
    }

    /// Takes the tuples of a chunk; `send` gets each packet that is full, with its partition, and leaves an empty one.
    ///
    /// # Errors
    /// The memory budget is exhausted, and those of `send`.
    pub fn append(
        &mut self,
        chunk: &Chunk,
        send: &mut dyn FnMut(usize, &mut Packet) -> Result<()>,
    ) -> Result<()> {
        self.stage.append_chunk(chunk, &self.keys)?;
        let full = self.stage.len() * self.layout.stride_bytes() >= STAGE_BYTES;
        if full { self.partition_stage(send) } else { Ok(()) }
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn flush(&mut self, send: &mut dyn FnMut(usize, &mut Packet) -> Result<()>) -> Result<()> {
        self.partition_stage(send)?;
        for (partition, packet) in self.packets.iter_mut().enumerate() {
            if !packet.rows.is_empty() {
                send(partition, packet)?;
            }
        }
        Ok(())
    }

    fn partition_stage(&mut self, send: &mut dyn FnMut(usize, &mut Packet) -> Result<()>) -> Result<()> {
        self.context.check()?;
        let next = RowsBuilder::new(self.layout.clone(), Reservation::new(self.context.clone()));
        let Part { pages, rows, heap, reservations: _held, .. } =
            std::mem::replace(&mut self.stage, next).seal_part();
        let stride = self.layout.stride_bytes() / 8;
        for row in 0..rows {
            let words = pages.words(row);
            // The hash is the first word of a row.
            let partition = partition_of(words[0], self.bits, self.shift);
            let packet = &mut self.packets[partition];
            if packet.rows.capacity() == 0 {
                packet.rows.reserve_exact(self.packet_rows * stride);
            }
            let start = packet.rows.len();
            packet.rows.extend_from_slice(words);
            for &word in self.heap_words.iter() {
                let (low, high) = (words[word], words[word + 1]);
                if low as u32 > 12 {
                    let view = u128::from(low) | u128::from(high) << 64;
                    let bytes = long_bytes(view, &heap)
                        .ok_or_else(|| Error::internal("a string view points outside its heap"))?;
                    packet.rows[start + word + 1] = packet.heap.len() as u64;
                    packet.heap.extend_from_slice(bytes);
                }
            }
            if packet.rows.len() == self.packet_rows * stride || packet.heap.len() >= PACKET_BYTES {
                send(partition, packet)?;
            }
        }
        Ok(())
    }

    /// First words of the fields whose long strings lie in a heap.
    pub fn heap_words(&self) -> &Arc<[usize]> {
        &self.heap_words
    }
}

impl Packet {
    /// Makes the rows refer to their strings as of their place in the partition: `base` bytes from the start of its heap.
    pub fn relocate(&mut self, layout: &RowLayout, heap_words: &[usize], base: u64) {
        if heap_words.is_empty() || self.heap.is_empty() {
            return;
        }
        for row in self.rows.chunks_exact_mut(layout.stride_bytes() / 8) {
            for &word in heap_words {
                if row[word] as u32 > 12 {
                    let at = base + row[word + 1];
                    row[word + 1] = at >> HEAP_STEP_BITS | (at & ((1 << HEAP_STEP_BITS) - 1)) << 32;
                }
            }
        }
    }
}

impl Rows {
    /// Rows that packets brought: `rows` holds them whole, `heap` the strings, of which `heap_bytes` are used.
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
    use super::*;
    use crate::testing::{TestContext, batch, rows};
    use arrow::array::RecordBatch;

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
        let layout = RowLayout::new(&tuple).unwrap();
        let context: Arc<dyn Context> = TestContext::new(2048, 1);
        let mut outgoing = Outgoing::new(&layout, &vec![0].into(), (2, 40), &context).unwrap();
        let words = outgoing.heap_words().clone();
        let mut arrived: Vec<Packet> = (0..4).map(|_| Packet::default()).collect();
        let mut send = |partition: usize, packet: &mut Packet| {
            let mut packet = std::mem::take(packet);
            let into = &mut arrived[partition];
            packet.relocate(&layout, &words, into.heap.len() as u64);
            into.rows.extend(packet.rows);
            into.heap.extend(packet.heap);
            Ok(())
        };
        for part in lines.chunks(700) {
            let batch = batch(TUPLE, &part.join("|"));
            let chunk = Chunk::from_arrays(batch.columns().to_vec());
            outgoing.append(&chunk, &mut send).unwrap();
        }
        outgoing.flush(&mut send).unwrap();
        let mut found = Vec::new();
        for packet in arrived {
            assert!(!packet.rows.is_empty());
            let (bytes, heap) = (packet.heap.len(), Region::of_bytes(&packet.heap));
            let there = Rows::arrived(&layout, Region::owned(packet.rows), &heap, bytes, Vec::new()).unwrap();
            let chunk = there.chunk(0..there.len() as u64).unwrap();
            let columns = (0..3).map(|field| chunk.column(field).unwrap().plain().unwrap()).collect();
            found.extend(rows(&RecordBatch::try_new(schema.clone(), columns).unwrap()));
        }
        let mut lines = lines;
        lines.sort();
        found.sort();
        assert_eq!(found, lines);
    }

    #[test]
    fn what_cannot_be_sent_is_an_error() {
        let layout = RowLayout::new(&"<l: list<int64>>".parse().unwrap()).unwrap();
        let context: Arc<dyn Context> = TestContext::new(2048, 1);
        let message = Outgoing::new(&layout, &vec![].into(), (0, 0), &context).unwrap_err().to_string();
        assert!(message.contains("cannot be sent"), "{message}");
    }
}
