//! Memory for bytes that are read: each thread keeps some that is free, so that what is read next
//! needs no fresh pages, which the system would clear first.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Smaller allocations are cheap, and not kept.
const KEPT_BYTES_MIN: usize = 64 << 10;
/// Memory that a thread keeps.
const THREAD_BYTES_MAX: usize = 16 << 20;
/// A buffer takes kept memory that is at most so many times as large as it needs.
const SPARE_FACTOR: usize = 4;

/// How much threads may keep together.
static KEPT_BYTES_MAX: AtomicUsize = AtomicUsize::new(64 << 20);
/// How much they keep.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// Free memory of a thread.
#[derive(Debug)]
struct Kept(Vec<Vec<u8>>);

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT_BYTES.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        self.0.iter().map(Vec::capacity).sum()
    }

    /// The smallest memory that is large enough, and not far too large.
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let fits = |memory: &Vec<u8>| {
            (len..=len.saturating_mul(SPARE_FACTOR)).contains(&memory.capacity())
        };
        let found = self.0.iter().enumerate().filter(|(_, memory)| fits(memory));
        let (at, _) = found.min_by_key(|(_, memory)| memory.capacity())?;
        let memory = self.0.swap_remove(at);
        KEPT_BYTES.fetch_sub(memory.capacity(), Ordering::Relaxed);
        Some(memory)
    }

    fn put(&mut self, mut memory: Vec<u8>) {
        let bytes = memory.capacity();
        let most = KEPT_BYTES_MAX.load(Ordering::Relaxed);
        let is_room = self.bytes() + bytes <= THREAD_BYTES_MAX
            && KEPT_BYTES.load(Ordering::Relaxed) + bytes <= most;
        if bytes >= KEPT_BYTES_MIN && is_room {
            memory.clear();
            KEPT_BYTES.fetch_add(bytes, Ordering::Relaxed);
            self.0.push(memory);
        }
    }
}

/// Limits what threads keep together for later reads; what is kept beyond it is given back as it is
/// used next. Sessions set it to a part of the process's memory.
pub fn set_kept_bytes_max(bytes: usize) {
    KEPT_BYTES_MAX.store(bytes, Ordering::Relaxed);
}

/// Bytes that were read, or are to be.
///
/// ```
/// use tessera_context::ReadBuffer;
/// let mut buffer = ReadBuffer::default();
/// buffer.reserve(5).extend_from_slice(b"12345");
/// assert_eq!(buffer.into_bytes(), &b"12345"[..]);
/// assert_eq!(&*ReadBuffer::adopt("67".into()), b"67");
/// ```
#[derive(Debug, Default)]
pub struct ReadBuffer {
    /// Of the pool, to which it goes back.
    own: Vec<u8>,
    /// As they have come from a store, in the place of its own.
    adopted: Option<Bytes>,
}

impl ReadBuffer {
    /// A buffer of bytes that are there; nothing is copied.
    pub fn adopt(bytes: Bytes) -> Self {
        ReadBuffer { own: Vec::new(), adopted: Some(bytes) }
    }

    /// Empty memory with room for so many bytes, to be filled.
    pub fn reserve(&mut self, len: usize) -> &mut Vec<u8> {
        self.adopted = None;
        if self.own.capacity() < len {
            let kept = KEPT.try_with(|kept| kept.borrow_mut().take(len)).ok().flatten();
            give_back(std::mem::replace(
                &mut self.own,
                kept.unwrap_or_else(|| Vec::with_capacity(len)),
            ));
        }
        self.own.clear();
        &mut self.own
    }

    /// The bytes, shared from now on; their memory is free again with the last reference.
    pub fn into_bytes(mut self) -> Bytes {
        match (self.adopted.take(), std::mem::take(&mut self.own)) {
            (Some(bytes), _) => bytes,
            (None, memory) if memory.capacity() >= KEPT_BYTES_MIN => {
                Bytes::from_owner(Owned(memory))
            }
            (None, memory) => memory.into(),
        }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.adopted.as_deref().unwrap_or(&self.own)
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.own));
    }
}

/// Memory of the pool that bytes lie in.
struct Owned(Vec<u8>);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

fn give_back(memory: Vec<u8>) {
    if memory.capacity() > 0 {
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| kept.borrow_mut().put(memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_its_thread() {
        let place = |buffer: &ReadBuffer| buffer.as_ptr() as usize;
        let mut buffer = ReadBuffer::default();
        buffer.reserve(100_000).resize(100_000, 7);
        let first = place(&buffer);
        let bytes = buffer.into_bytes();
        let part = bytes.slice(10..20);
        drop(bytes);
        let mut other = ReadBuffer::default();
        other.reserve(90_000).resize(90_000, 8);
        assert!(place(&other) != first && part[..] == [7; 10], "a part is still read");
        drop(part);
        let mut again = ReadBuffer::default();
        again.reserve(90_000).resize(90_000, 9);
        assert_eq!(place(&again), first);
        // Far less than it, or more, is another memory.
        drop(again);
        let mut small = ReadBuffer::default();
        small.reserve(10).push(1);
        assert!(place(&small) != first);
        let mut large = ReadBuffer::default();
        large.reserve(5_000_000).push(1);
        assert!(place(&large) != first);
    }

    #[test]
    fn little_is_kept_and_it_is_counted() {
        let kept = std::thread::spawn(|| {
            for bytes in [10 << 20, 10 << 20, 1000] {
                let mut buffers = [ReadBuffer::default(), ReadBuffer::default()];
                buffers.iter_mut().for_each(|buffer| buffer.reserve(bytes).push(1));
            }
            KEPT.with_borrow(Kept::bytes)
        });
        assert_eq!(kept.join().unwrap(), 10 << 20);
    }
}
