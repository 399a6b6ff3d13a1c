//! The memory of a window, and who writes where in it.
//!
//! # Invariants
//! * The memory lives as long as its [`Regions`]: whoever made the window frees it only when it
//!   holds the last reference.
//! * Every byte is handed out once, by the cursors of its partition, to one writer: a worker of
//!   this rank through [`Regions::fill`], or a rank whose histogram says that these bytes are its
//!   own.
//! * Nobody reads before the step that closes the window is over, and nobody writes after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_context::Reservation;
use tessera_rows::{Region, RowLayout, Rows};
use tessera_types::{Error, Result};

/// Which ranks have the tuples of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This one.
    Rank(usize),
    /// All have all of it.
    All,
    /// Each has its own.
    Sender,
}

impl Owner {
    /// Whether a rank has some.
    pub(crate) fn has(self, rank: usize) -> bool {
        !matches!(self, Owner::Rank(owner) if owner != rank)
    }
}

/// Where the tuples of each partition lie: who has them, where their rows and strings begin there,
/// and how many they are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    /// First word of the rows, first byte of the strings: at this rank, where each has its own,
    /// else wherever the partition is.
    pub(crate) rows_at: usize,
    pub(crate) heap_at: usize,
    /// Rows and bytes of strings that come there.
    pub(crate) rows: usize,
    pub(crate) heap_bytes: usize,
}

/// A window: its own memory, and the map of those of all ranks.
#[derive(Debug)]
pub struct Regions {
    base: *mut u64,
    words: usize,
    map: std::sync::OnceLock<Map>,
}

#[derive(Debug)]
struct Map {
    layout: Arc<RowLayout>,
    places: Vec<Place>,
    rank: usize,
    cursors: Vec<Cursor>,
    _memory: Reservation,
}

/// What is left of this rank's share of a partition.
#[derive(Debug)]
struct Cursor {
    row: AtomicU64,
    row_end: u64,
    byte: AtomicU64,
    byte_end: u64,
}

// SAFETY: the memory is plain words; writers are disjoint and readers come after them, by the
// invariants above.
unsafe impl Send for Regions {}
// SAFETY: as above.
unsafe impl Sync for Regions {}

// A panic elsewhere leaves nothing half done here that a reader would see.
impl std::panic::RefUnwindSafe for Regions {}

/// A place for a packet, handed out once: its first word and first byte in the windows of its
/// owner, and its strings' place in the partition.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) owner: Owner,
    pub(crate) word: usize,
    pub(crate) byte: usize,
    pub(crate) heap_base: u64,
    words: usize,
    bytes: usize,
}

impl Regions {
    /// The memory of a window.
    ///
    /// # Safety
    /// The words are initialised, aligned, and live until the last reference is gone; only others
    /// that keep to the invariants of this module write to them.
    pub unsafe fn new(base: *mut u64, words: usize) -> Arc<Regions> {
        Arc::new(Regions { base, words, map: std::sync::OnceLock::new() })
    }

    /// Says what lies where: this rank's share of each partition begins after (rows, bytes) and
    /// ends before (rows, bytes).
    pub(crate) fn set_map(
        &self,
        layout: Arc<RowLayout>,
        places: Vec<Place>,
        rank: usize,
        shares: impl Iterator<Item = ((u64, u64), (u64, u64))>,
        memory: Reservation,
    ) -> Result<()> {
        let stride = layout.stride_bytes() / 8;
        let outside = |place: &Place| {
            place.owner.has(rank)
                && (place.rows_at + place.rows * stride > self.words
                    || place.heap_at + place.heap_bytes > self.words * 8)
        };
        if places.iter().any(outside) {
            return Err(Error::internal("a partition outside its window"));
        }
        let cursors = shares.map(|(from, to)| Cursor {
            row: AtomicU64::new(from.0),
            row_end: to.0,
            byte: AtomicU64::new(from.1),
            byte_end: to.1,
        });
        let map = Map { layout, places, rank, cursors: cursors.collect(), _memory: memory };
        self.map.set(map).map_err(|_| Error::internal("a window was mapped twice"))
    }

    fn map(&self) -> Result<&Map> {
        self.map.get().ok_or_else(|| Error::internal("a window without a map"))
    }

    /// The layout of the rows.
    pub(crate) fn layout(&self) -> Result<&Arc<RowLayout>> {
        Ok(&self.map()?.layout)
    }

    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> Result<usize> {
        Ok(self.map()?.places.len())
    }

    /// A place for a packet of a partition.
    ///
    /// # Errors
    /// The histogram counted fewer.
    pub(crate) fn claim(&self, partition: usize, words: usize, bytes: usize) -> Result<Slot> {
        let map = self.map()?;
        let (Some(place), Some(cursor)) = (map.places.get(partition), map.cursors.get(partition))
        else {
            return Err(Error::internal("a partition that the window has no place for"));
        };
        let stride = map.layout.stride_bytes() / 8;
        let rows = (words / stride) as u64;
        let row = cursor.row.fetch_add(rows, Ordering::Relaxed);
        let byte = cursor.byte.fetch_add(bytes as u64, Ordering::Relaxed);
        if row + rows > cursor.row_end || byte + bytes as u64 > cursor.byte_end {
            return Err(other_tuples(partition));
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

    /// Copies a packet to its place in this rank's own window.
    ///
    /// # Errors
    /// It is the place of another packet: a mistake of Tessera.
    pub(crate) fn fill(&self, slot: Slot, rows: &[u64], heap: &[u8]) -> Result<()> {
        let inside =
            slot.word + slot.words <= self.words && slot.byte + slot.bytes <= self.words * 8;
        if !inside
            || !slot.owner.has(self.map()?.rank)
            || (rows.len(), heap.len()) != (slot.words, slot.bytes)
        {
            return Err(Error::internal("a packet was given the place of another"));
        }
        // SAFETY: the slot is inside the memory, checked here and in `set_map`; it was handed out
        // once and is used up, so nobody else writes there, and nobody reads before the window is
        // closed.
        unsafe {
            stream(self.base.add(slot.word), rows);
            self.base
                .cast::<u8>()
                .add(slot.byte)
                .copy_from_nonoverlapping(heap.as_ptr(), heap.len());
        }
        Ok(())
    }

    /// Checks that the histogram counted no more than has been sent.
    ///
    /// # Errors
    /// It did.
    pub(crate) fn check_full(&self) -> Result<()> {
        let is_short = |cursor: &Cursor| {
            cursor.row.load(Ordering::Relaxed) != cursor.row_end
                || cursor.byte.load(Ordering::Relaxed) != cursor.byte_end
        };
        match self.map()?.cursors.iter().position(is_short) {
            None => Ok(()),
            Some(partition) => Err(other_tuples(partition)),
        }
    }

    /// The partitions that have arrived here, with their numbers; after the window was closed.
    pub(crate) fn arrived(self: &Arc<Self>) -> Result<Vec<(i64, Rows)>> {
        let map = self.map()?;
        // SAFETY: the words are initialised and live as long as `self`, of which the region holds a
        // reference; the window is closed, so nobody writes any more.
        let all = unsafe { Region::new(self.base, self.words, self.clone()) };
        let is_here = |(_, place): &(usize, &Place)| place.owner.has(map.rank);
        let here = map.places.iter().enumerate().filter(is_here);
        here.map(|(partition, place)| {
            let rows = all.slice(place.rows_at, place.rows * map.layout.stride_bytes() / 8);
            let first = place.heap_at / 8;
            let heap = all.slice(first, (place.heap_bytes).div_ceil(8));
            Ok((
                partition as i64,
                Rows::arrived(&map.layout, rows, &heap, place.heap_bytes, Vec::new())?,
            ))
        })
        .collect()
    }
}

/// Copies words around the caches, where the processor can: a window is memory that was not used
/// before, and will not be soon.
///
/// # Safety
/// So many words may be written to from `to` on, which is aligned.
unsafe fn stream(to: *mut u64, words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract; what was streamed is seen by others before anything that is done
    // afterwards.
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

fn other_tuples(partition: usize) -> Error {
    Error::data(format!(
        "the histogram does not fit the tuples of partition {partition}; it must be made of the same tuples with the same \
         keys, bits and shift"
    ))
}
