//! Immutable memory that may belong to another component.

use std::sync::Arc;

use arrow::alloc::Allocation;
use arrow::buffer::Buffer;

/// Immutable memory with an owner (a network window, a mapped file, a vector), aligned to words.
#[derive(Clone)]
pub struct WordBuffer {
    start: *const u64,
    words: usize,
    owner: Arc<dyn Allocation>,
}

// SAFETY: the memory is not written to while a buffer exists, and its owner is Send and Sync.
unsafe impl Send for WordBuffer {}

// SAFETY: as above.
unsafe impl Sync for WordBuffer {}

impl std::fmt::Debug for WordBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordBuffer").field("words", &self.words).finish_non_exhaustive()
    }
}

impl WordBuffer {
    /// Refers to the `words` words from `start`.
    ///
    /// # Safety
    /// They are initialized, aligned to 8 bytes, and neither written to nor freed until `owner` is
    /// dropped.
    pub unsafe fn new(start: *const u64, words: usize, owner: Arc<dyn Allocation>) -> WordBuffer {
        WordBuffer { start, words, owner }
    }

    /// Takes over a vector.
    pub fn owned(words: Vec<u64>) -> WordBuffer {
        let owner = Arc::new(words);
        let (start, words) = (owner.as_ptr(), owner.len());
        WordBuffer { start, words, owner }
    }

    /// Copies bytes, padded to whole words with zeros.
    pub fn of_bytes(bytes: &[u8]) -> WordBuffer {
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        };
        WordBuffer::owned(bytes.chunks(8).map(word).collect())
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns a part of the buffer.
    ///
    /// # Panics
    /// The part is out of bounds.
    pub fn slice(&self, first: usize, words: usize) -> WordBuffer {
        assert!(first <= self.words && words <= self.words - first, "a slice is out of bounds");
        WordBuffer { start: self.start.wrapping_add(first), words, owner: self.owner.clone() }
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        // SAFETY: by the contract of `new`, or as a part of such memory, which `slice` checked.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }

    /// Returns `bytes` bytes from `first_byte` as an Arrow buffer.
    ///
    /// # Panics
    /// They are out of bounds.
    pub fn buffer(&self, first_byte: usize, bytes: usize) -> Buffer {
        assert!(first_byte.saturating_add(bytes) <= self.words * 8, "a buffer is out of bounds");
        let start = self.start.cast::<u8>().cast_mut().wrapping_add(first_byte);
        let Some(start) = std::ptr::NonNull::new(start) else {
            return Buffer::from_vec(Vec::<u8>::new());
        };
        // SAFETY: the bytes are inside the buffer, initialized, and live and unchanged for as long
        // as its owner, of which the Arrow buffer holds a reference.
        unsafe { Buffer::from_custom_allocation(start, bytes, self.owner.clone()) }
    }
}
