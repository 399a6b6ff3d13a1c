//! The memory of a window, and the assignment of its bytes to writers.
//!
//! # Invariants
//! * The memory lives as long as its [`WindowMemory`]: the communication worker frees the window
//!   only when it holds the last reference.
//! * Every byte is assigned once, by the cursors of its partition, to one writer: a worker of this
//!   rank through [`WindowMemory::fill`], or the rank that counted these bytes in its histogram.
//! * No thread reads before the step that closes the window has ended, and none writes after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_context::Reservation;
use tessera_rows::{RowLayout, Rows, WordBuffer};
use tessera_types::{Error, Result};

/// The ranks that hold the tuples of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// One rank.
    Rank(usize),
    /// Every rank holds a full copy.
    All,
    /// Each rank keeps the tuples that it read.
    Sender,
}

impl Owner {
    /// Returns whether `rank` holds tuples of the partition.
    pub(crate) fn has(self, rank: usize) -> bool {
        !matches!(self, Owner::Rank(owner) if owner != rank)
    }
}

/// The owner, position and size of a partition in the windows.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) owner: Owner,
    /// First word of the rows and first byte of the strings, in the owner's window; for
    /// [`Owner::Sender`], in this rank's window.
    pub(crate) rows_at: usize,
    pub(crate) heap_at: usize,
    /// Number of rows and bytes of strings that the partition will have there.
    pub(crate) rows: usize,
    pub(crate) heap_bytes: usize,
}

/// The memory of this rank's window, with the partition map of all ranks' windows.
#[derive(Debug)]
pub struct WindowMemory {
    base: *mut u64,
    words: usize,
    map: std::sync::OnceLock<Map>,
}

#[derive(Debug)]
struct Map {
    layout: Arc<RowLayout>,
    places: Vec<Placement>,
    rank: usize,
    cursors: Vec<Cursor>,
    _memory: Reservation,
}

/// The unassigned part of this rank's share of a partition.
#[derive(Debug)]
struct Cursor {
    row: AtomicU64,
    row_end: u64,
    byte: AtomicU64,
    byte_end: u64,
}

// SAFETY: the memory is plain words. By the invariants above, writers use disjoint bytes and
// readers come after them.
unsafe impl Send for WindowMemory {}
// SAFETY: as above.
unsafe impl Sync for WindowMemory {}

// A panic of another thread cannot leave state here that a reader would see half written.
impl std::panic::RefUnwindSafe for WindowMemory {}

/// Space for one packet, assigned once: its first word and first byte in the owner's window, and
/// the position of its strings within the partition.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) owner: Owner,
    pub(crate) word: usize,
    pub(crate) byte: usize,
    pub(crate) heap_base: u64,
    words: usize,
    bytes: usize,
}

impl WindowMemory {
    /// Wraps the memory of a window.
    ///
    /// # Safety
    /// The words are initialized, aligned, and live until the last reference is gone; only code
    /// that keeps the invariants of this module writes to them.
    pub unsafe fn new(base: *mut u64, words: usize) -> Arc<WindowMemory> {
        Arc::new(WindowMemory { base, words, map: std::sync::OnceLock::new() })
    }

    /// Sets the partition map. `shares` gives, for each partition, the (row, byte) at which this
    /// rank's share begins and at which it ends.
    pub(crate) fn set_map(
        &self,
        layout: Arc<RowLayout>,
        places: Vec<Placement>,
        rank: usize,
        shares: impl Iterator<Item = ((u64, u64), (u64, u64))>,
        memory: Reservation,
    ) -> Result<()> {
        let stride = layout.stride_bytes() / 8;
        let outside = |place: &Placement| {
            place.owner.has(rank)
                && (place.rows_at + place.rows * stride > self.words
                    || place.heap_at + place.heap_bytes > self.words * 8)
        };
        if places.iter().any(outside) {
            return Err(Error::internal("partition outside its window"));
        }
        let cursors = shares.map(|(from, to)| Cursor {
            row: AtomicU64::new(from.0),
            row_end: to.0,
            byte: AtomicU64::new(from.1),
            byte_end: to.1,
        });
        let map = Map { layout, places, rank, cursors: cursors.collect(), _memory: memory };
        self.map.set(map).map_err(|_| Error::internal("window mapped twice"))
    }

    fn map(&self) -> Result<&Map> {
        self.map.get().ok_or_else(|| Error::internal("window without a partition map"))
    }

    /// The layout of the rows.
    pub(crate) fn layout(&self) -> Result<&Arc<RowLayout>> {
        Ok(&self.map()?.layout)
    }

    /// The number of partitions.
    pub(crate) fn partitions(&self) -> Result<usize> {
        Ok(self.map()?.places.len())
    }

    /// Assigns space for a packet of a partition.
    ///
    /// # Errors
    /// The histogram counted fewer tuples or bytes.
    pub(crate) fn claim(&self, partition: usize, words: usize, bytes: usize) -> Result<Slot> {
        let map = self.map()?;
        let (Some(place), Some(cursor)) = (map.places.get(partition), map.cursors.get(partition))
        else {
            return Err(Error::internal("partition not in the window's map"));
        };
        let stride = map.layout.stride_bytes() / 8;
        let rows = (words / stride) as u64;
        let row = cursor.row.fetch_add(rows, Ordering::Relaxed);
        let byte = cursor.byte.fetch_add(bytes as u64, Ordering::Relaxed);
        if row + rows > cursor.row_end || byte + bytes as u64 > cursor.byte_end {
            return Err(histogram_mismatch(partition));
        }
        Ok(Slot {
            owner: place.owner,
            word: place.rows_at + row as usize * stride,
            byte: place.heap_at + byte as usize,
            heap_base: byte,
            words,
            bytes,
        })
    }

    /// Copies a packet to its slot in this rank's own window.
    ///
    /// # Errors
    /// The slot belongs to another packet: an internal error.
    pub(crate) fn fill(&self, slot: Slot, rows: &[u64], heap: &[u8]) -> Result<()> {
        let inside =
            slot.word + slot.words <= self.words && slot.byte + slot.bytes <= self.words * 8;
        if !inside
            || !slot.owner.has(self.map()?.rank)
            || (rows.len(), heap.len()) != (slot.words, slot.bytes)
        {
            return Err(Error::internal("packet in the slot of another packet"));
        }
        // SAFETY: the slot is inside the memory, checked here and in `set_map`. It was assigned
        // once and is consumed here, so no other thread writes there, and no thread reads before
        // the window is closed.
        unsafe {
            copy_uncached(self.base.add(slot.word), rows);
            self.base
                .cast::<u8>()
                .add(slot.byte)
                .copy_from_nonoverlapping(heap.as_ptr(), heap.len());
        }
        Ok(())
    }

    /// Checks that everything the histogram counted has been sent.
    ///
    /// # Errors
    /// Some partition got fewer tuples or bytes.
    pub(crate) fn check_full(&self) -> Result<()> {
        let is_short = |cursor: &Cursor| {
            cursor.row.load(Ordering::Relaxed) != cursor.row_end
                || cursor.byte.load(Ordering::Relaxed) != cursor.byte_end
        };
        match self.map()?.cursors.iter().position(is_short) {
            None => Ok(()),
            Some(partition) => Err(histogram_mismatch(partition)),
        }
    }

    /// Returns the partitions held by this rank, with their numbers. Call it after the window was
    /// closed.
    pub(crate) fn received(self: &Arc<Self>) -> Result<Vec<(i64, Rows)>> {
        let map = self.map()?;
        // SAFETY: the words are initialized and live as long as `self`, to which the region holds a
        // reference; the window is closed, so no thread writes any more.
        let all = unsafe { WordBuffer::new(self.base, self.words, self.clone()) };
        let is_here = |(_, place): &(usize, &Placement)| place.owner.has(map.rank);
        let here = map.places.iter().enumerate().filter(is_here);
        here.map(|(partition, place)| {
            let rows = all.slice(place.rows_at, place.rows * map.layout.stride_bytes() / 8);
            let first = place.heap_at / 8;
            let heap = all.slice(first, (place.heap_bytes).div_ceil(8));
            Ok((
                partition as i64,
                Rows::received(&map.layout, rows, &heap, place.heap_bytes, Vec::new())?,
            ))
        })
        .collect()
    }
}

/// Copies words with non-temporal stores if the processor has them: a window was not read before
/// and will not be read soon.
///
/// # Safety
/// `to` is aligned and valid for writes of `words.len()` words.
unsafe fn copy_uncached(to: *mut u64, words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract. The fence orders the stores before everything that follows.
    unsafe {
        for (at, word) in words.iter().enumerate() {
            std::arch::x86_64::_mm_stream_si64(to.add(at).cast(), *word as i64);
        }
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: by the contract.
    unsafe {
        to.copy_from_nonoverlapping(words.as_ptr(), words.len());
    }
}

fn histogram_mismatch(partition: usize) -> Error {
    Error::data(format!(
        "the histogram does not match the tuples of partition {partition}; compute it from the same tuples with the same \
         keys, bits and shift"
    ))
}
