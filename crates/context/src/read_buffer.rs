//! Pooled read buffers. Each thread caches free buffers, so that the next read does not fault in
//! fresh pages, which the operating system would have to clear first.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Smaller buffers are cheap to allocate and are not cached.
const CACHED_BYTES_MIN: usize = 64 << 10;
/// The maximum number of bytes that one thread caches.
const THREAD_BYTES_MAX: usize = 16 << 20;
/// A cached buffer serves a request if it is at most this many times as large.
const SPARE_FACTOR: usize = 4;

/// The maximum number of bytes that all threads cache together.
static CACHED_BYTES_MAX: AtomicUsize = AtomicUsize::new(64 << 20);
/// Bytes cached by all threads.
static CACHED_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CACHE: RefCell<BufferCache> = const { RefCell::new(BufferCache(Vec::new())) };
}

/// The free buffers of one thread.
#[derive(Debug)]
struct BufferCache(Vec<Vec<u8>>);

impl Drop for BufferCache {
    fn drop(&mut self) {
        CACHED_BYTES.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

impl BufferCache {
    fn bytes(&self) -> usize {
        self.0.iter().map(Vec::capacity).sum()
    }

    /// Takes the smallest buffer that is large enough but not much too large.
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let fits = |memory: &Vec<u8>| {
            (len..=len.saturating_mul(SPARE_FACTOR)).contains(&memory.capacity())
        };
        let found = self.0.iter().enumerate().filter(|(_, memory)| fits(memory));
        let (at, _) = found.min_by_key(|(_, memory)| memory.capacity())?;
        let memory = self.0.swap_remove(at);
        CACHED_BYTES.fetch_sub(memory.capacity(), Ordering::Relaxed);
        Some(memory)
    }

    fn put(&mut self, mut memory: Vec<u8>) {
        let bytes = memory.capacity();
        let most = CACHED_BYTES_MAX.load(Ordering::Relaxed);
        let is_room = self.bytes() + bytes <= THREAD_BYTES_MAX
            && CACHED_BYTES.load(Ordering::Relaxed) + bytes <= most;
        if bytes >= CACHED_BYTES_MIN && is_room {
            memory.clear();
            CACHED_BYTES.fetch_add(bytes, Ordering::Relaxed);
            self.0.push(memory);
        }
    }
}

/// Sets the limit on the bytes that all threads cache together. A cache above the limit shrinks as
/// its buffers are used. Sessions set it to a fraction of the process's memory.
pub fn set_cached_bytes_max(bytes: usize) {
    CACHED_BYTES_MAX.store(bytes, Ordering::Relaxed);
}

/// Bytes that were read, or a buffer to read into.
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
    /// A buffer from the pool; it returns to the pool on drop.
    pooled: Vec<u8>,
    /// Bytes received from a store, used instead of `pooled`.
    adopted: Option<Bytes>,
}

impl ReadBuffer {
    /// Wraps existing bytes without copying them.
    pub fn adopt(bytes: Bytes) -> Self {
        ReadBuffer { pooled: Vec::new(), adopted: Some(bytes) }
    }

    /// Returns an empty buffer with a capacity of at least `len` bytes, to be filled.
    pub fn reserve(&mut self, len: usize) -> &mut Vec<u8> {
        self.adopted = None;
        if self.pooled.capacity() < len {
            let cached = CACHE.try_with(|cached| cached.borrow_mut().take(len)).ok().flatten();
            give_back(std::mem::replace(
                &mut self.pooled,
                cached.unwrap_or_else(|| Vec::with_capacity(len)),
            ));
        }
        self.pooled.clear();
        &mut self.pooled
    }

    /// Returns the bytes, which can be shared; their memory returns to the pool with the last
    /// reference.
    pub fn into_bytes(mut self) -> Bytes {
        match (self.adopted.take(), std::mem::take(&mut self.pooled)) {
            (Some(bytes), _) => bytes,
            (None, memory) if memory.capacity() >= CACHED_BYTES_MIN => {
                Bytes::from_owner(PooledBuffer(memory))
            }
            (None, memory) => memory.into(),
        }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.adopted.as_deref().unwrap_or(&self.pooled)
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.pooled));
    }
}

/// A pooled buffer that backs shared bytes.
struct PooledBuffer(Vec<u8>);

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

fn give_back(memory: Vec<u8>) {
    if memory.capacity() > 0 {
        // A thread that is ending caches nothing.
        let _ = CACHE.try_with(|cached| cached.borrow_mut().put(memory));
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
        // A much smaller or a larger request gets another buffer.
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
        let cached = std::thread::spawn(|| {
            for bytes in [10 << 20, 10 << 20, 1000] {
                let mut buffers = [ReadBuffer::default(), ReadBuffer::default()];
                buffers.iter_mut().for_each(|buffer| buffer.reserve(bytes).push(1));
            }
            CACHE.with_borrow(BufferCache::bytes)
        });
        assert_eq!(cached.join().unwrap(), 10 << 20);
    }
}
