//! Rows to send to another process: partitioned, packed into batches that are sent whole, and read
//! in place by the receiver.
//!
//! A sender packs the tuples of each partition into a [`WireBatch`]: rows, and the strings they
//! refer to. The position of a batch among the partition's rows and strings is known only when it
//! is full; [`WireBatch::relocate`] then rewrites the headers of its strings. The receiver reads
//! rows and strings in place ([`Rows::received`]), from all senders alike.

mod partitioner;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::buffer::Buffer;
use arrow::datatypes::DataType;

use tessera_context::Reservation;
use tessera_types::{Error, Result};

use super::builder::RowsBuilder;
use super::layout::{Kind, RowLayout};
use super::memory::{Pages, WordBuffer};
use super::sealed::{Part, Rows};

pub use partitioner::WirePartitioner;

/// The strings of a partition are in buffers that start this many bytes apart and overlap, so that
/// no string is split.
const HEAP_STEP_BITS: u32 = 30;
/// The longest such buffer: Arrow's views use 32-bit offsets.
const HEAP_BUFFER_BYTES: usize = (1 << 31) - 1;

/// Rows of one partition, in the bare layout, and the strings they refer to.
#[derive(Debug, Default)]
pub struct WireBatch<'a> {
    /// The rows.
    pub rows: Cow<'a, [u64]>,
    /// Strings of more than 12 bytes; rows do not share them.
    pub heap: Vec<u8>,
    /// The offsets in the heap of the pages that the rows' headers refer to.
    pages: Vec<u64>,
}

/// Returns the first words of the fields whose long strings are in a heap.
///
/// # Errors
/// A field cannot be sent.
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

impl<'a> WireBatch<'a> {
    fn plain(rows: &'a [u64]) -> WireBatch<'a> {
        WireBatch { rows: rows.into(), ..WireBatch::default() }
    }

    /// Copies borrowed rows, so that the batch can be stored.
    pub fn into_owned(self) -> WireBatch<'static> {
        WireBatch { rows: self.rows.into_owned().into(), heap: self.heap, pages: self.pages }
    }

    fn new(filled: RowsBuilder) -> WireBatch<'static> {
        let (rows, mut heap) = filled.into_words();
        let mut end = 0;
        let mut pages = Vec::with_capacity(heap.len());
        for page in &heap {
            pages.push(end);
            end += page.len() as u64;
        }
        let heap = if heap.len() == 1 { heap.remove(0) } else { heap.concat() };
        WireBatch { rows: rows.into(), heap, pages }
    }

    /// Creates a batch received from another process, not relocated yet.
    pub fn received(rows: Vec<u64>, heap: Vec<u8>) -> WireBatch<'static> {
        WireBatch { rows: rows.into(), heap, pages: Vec::new() }
    }

    /// Validates a batch from storage that others can write to, before it is relocated: each string
    /// must be inside the heap, and be valid text if its type requires that. Nothing else in a row
    /// is a reference.
    ///
    /// # Errors
    /// A string is out of bounds or invalid.
    pub fn check(&self, layout: &RowLayout) -> Result<()> {
        let damaged = || {
            Error::data(
                "rows received from another process are damaged: a string is outside their heap",
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
                        // The bytes after a short string are zero: views are compared as numbers.
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

    /// Rewrites the references to strings for a batch whose heap begins `base` bytes into the
    /// partition's heap.
    pub fn relocate(&mut self, layout: &RowLayout, heap_words: &[usize], base: u64) {
        if heap_words.is_empty() || self.heap.is_empty() {
            return;
        }
        for row in self.rows.to_mut().chunks_exact_mut(layout.stride_bytes() / 8) {
            for &word in heap_words {
                if row[word] as u32 > 12 {
                    let (page, offset) = (row[word + 1] as u32, row[word + 1] >> 32);
                    // A received batch refers to its own heap from offset 0.
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
    /// Creates rows from received batches, in the bare layout: `rows` contains the rows, `heap` the
    /// strings, of which `heap_bytes` are used.
    ///
    /// # Errors
    /// The layout has fields that cannot be sent.
    pub fn received(
        layout: &Arc<RowLayout>,
        rows: WordBuffer,
        heap: &WordBuffer,
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
mod tests;
