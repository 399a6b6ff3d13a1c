//! All `unsafe` code of the monolith: operating-system memory, streaming stores, the MPI window,
//! and buffers that MPI reads asynchronously. Each type maintains its own invariants, which code
//! outside of this module cannot break.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Deref, DerefMut, Range};
use std::ptr;

use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::tuple::{JoinedTuple, Tuple};

/// A cache line of eight words.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// Types without padding.
///
/// # Safety
/// The type is `repr(C)` and consists of `u64` only: every bit pattern is a valid value, and values
/// may be read and written as words.
pub(crate) unsafe trait Plain: Copy + 'static {}

// SAFETY: each of these types consists of words only.
unsafe impl Plain for u64 {}
unsafe impl Plain for Tuple {}
unsafe impl Plain for JoinedTuple {}
unsafe impl Plain for Line {}

/// An item that is sent; its size divides a cache line.
pub(crate) trait Item: Plain + Default {
    /// Items in a line.
    const PER_LINE: usize = size_of::<Line>() / size_of::<Self>();

    /// Stores the item into a slot of a line.
    fn store(self, line: &mut Line, slot: usize);
}

impl Item for u64 {
    #[inline(always)]
    fn store(self, line: &mut Line, slot: usize) {
        line.0[slot % 8] = self;
    }
}

impl Item for Tuple {
    #[inline(always)]
    fn store(self, line: &mut Line, slot: usize) {
        Tuple::store(self, line, slot);
    }
}

/// The size of a large page, to which areas are aligned.
const HUGE_PAGE: usize = 2 << 20;

/// Zeroed private memory, in large pages if the system provides them.
///
/// Invariant: `base` points to `len` values of `T` within `mapped_len` bytes at `mapped`, which
/// this area has mapped and owns.
#[derive(Debug)]
pub(crate) struct Area<T> {
    base: *mut T,
    len: usize,
    mapped: *mut c_void,
    mapped_len: usize,
}

impl<T: Plain> Area<T> {
    pub(crate) fn new(len: usize) -> Self {
        let bytes = len.checked_mul(size_of::<T>()).expect("memory of less than 2^64 bytes");
        let mapped_len = bytes.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        // SAFETY: a new anonymous mapping at an unused address that the system selects.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped_len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(
            mapped != libc::MAP_FAILED,
            "no memory for {bytes} bytes: {}",
            std::io::Error::last_os_error()
        );
        let skip = mapped.align_offset(HUGE_PAGE);
        assert!(skip < HUGE_PAGE);
        // SAFETY: `skip` is less than the page that was mapped in addition to `bytes`. The advice
        // changes no contents.
        let base = unsafe {
            let base = mapped.byte_add(skip);
            libc::madvise(base, bytes.next_multiple_of(HUGE_PAGE), libc::MADV_HUGEPAGE);
            base.cast::<T>()
        };
        Self { base, len, mapped, mapped_len }
    }
}

impl<T> Drop for Area<T> {
    fn drop(&mut self) {
        // SAFETY: the area owns the mapping, and no reference into it outlives the area.
        unsafe { libc::munmap(self.mapped, self.mapped_len) };
    }
}

impl<T: Plain> Deref for Area<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: by the invariant; unwritten pages read as zeros, which are valid values of a
        // `Plain` type.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }
}

impl<T: Plain> DerefMut for Area<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the area is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }
}

/// How whole lines are written to memory that is not read soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// Streaming stores of 32 bytes, which bypass the cache. Requires AVX.
    Streaming,
    Plain,
}

/// The memory that receives the tuples of this rank: from other ranks by puts or messages, and from
/// the rank itself in whole lines. No reference into an open inbox exists, because other ranks
/// write to it; `close` ends that.
///
/// Invariants: `base` points to `len` items, aligned to 16 bytes, which live as long as `memory`.
/// Other ranks write only while the inbox is open (between `window` and the barrier in `close`).
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    base: *mut T,
    len: usize,
    memory: Memory<T>,
    store: Store,
}

#[derive(Debug)]
enum Memory<T> {
    /// An MPI window, locked for all ranks of its communicator.
    Window(ffi::MPI_Win),
    /// Private memory that only this inbox uses.
    Private { _area: Area<T> },
}

impl<T: Item> Inbox<T> {
    /// Creates a window of `len` items at this rank. Collective over the communicator.
    pub(crate) fn window(world: &SimpleCommunicator, len: usize, streaming: bool) -> Self {
        let mut base = ptr::null_mut::<T>();
        // Whole pages, because MPICH places the ranks' parts one after the other.
        let bytes = (len.max(1) * size_of::<T>()).next_multiple_of(4096);
        // SAFETY: the call writes both results; the handles belong to MPI. An error aborts the
        // program (MPI's default).
        let window = unsafe {
            let mut window = ffi::RSMPI_WIN_NULL;
            ffi::MPI_Win_allocate(
                bytes as ffi::MPI_Aint,
                size_of::<T>() as i32,
                ffi::RSMPI_INFO_NULL,
                world.as_raw(),
                (&raw mut base).cast(),
                &mut window,
            );
            ffi::MPI_Win_lock_all(ffi::MPI_MODE_NOCHECK as i32, window);
            // Populates whole pages of this rank's part at once, which halves the cost of page
            // faults. Systems without this advice populate them by faults.
            let skip = base.cast::<u8>().align_offset(4096);
            libc::madvise(base.byte_add(skip).cast(), bytes - 4096, libc::MADV_POPULATE_WRITE);
            window
        };
        Self::new(base, len, Memory::Window(window), streaming)
    }

    /// Allocates private memory of `len` items for messages.
    pub(crate) fn private(len: usize, streaming: bool) -> Self {
        let mut area = Area::new(len);
        Self::new(area.as_mut_ptr(), len, Memory::Private { _area: area }, streaming)
    }

    fn new(base: *mut T, len: usize, memory: Memory<T>, streaming: bool) -> Self {
        assert!(base.addr().is_multiple_of(16), "MPI aligns memory for every type it knows");
        let avx = streaming && has_avx();
        Self { base, len, memory, store: if avx { Store::Streaming } else { Store::Plain } }
    }

    /// Returns how many items after the begin of a cache line the inbox begins. The positions of
    /// `write` count from that line.
    pub(crate) fn lead(&self) -> usize {
        self.base.addr() % size_of::<Line>() / size_of::<T>()
    }

    /// Writes the slots `slots` of a line, the first of them at `place`. A whole line bypasses the
    /// cache.
    #[inline]
    pub(crate) fn write(&mut self, place: usize, slots: Range<usize>, line: &Line) {
        let lead = self.lead();
        assert!(
            place.is_multiple_of(T::PER_LINE)
                && slots.end <= T::PER_LINE
                && slots.start <= slots.end
        );
        assert!(place + slots.start >= lead && place + slots.end <= lead + self.len);
        // SAFETY: the assertions keep the items `place + slots - lead` inside the inbox. They are
        // in this rank's region, and other ranks write other regions. A whole line begins at a
        // multiple of 64 bytes because `lead` was added; `Streaming` implies AVX.
        unsafe {
            if slots.len() == T::PER_LINE && self.store == Store::Streaming {
                stream(self.base.offset(place as isize - lead as isize).cast(), line);
            } else {
                let from = ptr::from_ref(line).cast::<T>().add(slots.start);
                let to = self.base.offset((place + slots.start) as isize - lead as isize);
                ptr::copy_nonoverlapping(from, to, slots.len());
            }
        }
    }

    /// Returns the items `range` of private memory as words, to receive a message into.
    pub(crate) fn receiving(&mut self, range: Range<usize>) -> &mut [u64] {
        assert!(matches!(self.memory, Memory::Private { .. }), "a window is written by puts");
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: within the inbox; its memory is private and borrowed mutably; items consist of
        // words.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(range.start).cast(),
                range.len() * size_of::<T>() / 8,
            )
        }
    }

    /// Waits until this rank's puts have arrived and its own stores are visible.
    pub(crate) fn flush(&self) {
        // SAFETY: a fence; and the window is locked for all.
        unsafe {
            fence();
            if let Memory::Window(window) = self.memory {
                ffi::MPI_Win_flush_all(window);
            }
        }
    }

    /// Waits for all ranks; afterwards the received items can be read. Consumes the outbox, which
    /// waits for its sends.
    pub(crate) fn close(self, world: &SimpleCommunicator, outbox: Outbox<T>) -> Received<T> {
        drop(outbox);
        self.flush();
        world.barrier();
        if let Memory::Window(window) = self.memory {
            // SAFETY: the window is still locked for all.
            unsafe { ffi::MPI_Win_sync(window) };
        }
        Received(self)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        if let Memory::Window(mut window) = self.memory {
            // SAFETY: this inbox owns the window, which is locked. All ranks drop their inboxes
            // together.
            unsafe {
                ffi::MPI_Win_unlock_all(window);
                ffi::MPI_Win_free(&mut window);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx() -> bool {
    is_x86_feature_detected!("avx")
}

/// Writes a line, bypassing the cache.
///
/// # Safety
/// `to` points to 64 writable bytes, aligned to 64; the CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream(to: *mut u8, line: &Line) {
    use std::arch::x86_64::{__m256i, _mm256_load_si256, _mm256_stream_si256};
    // SAFETY: guaranteed by the caller; a `Line` is aligned to 64 bytes.
    unsafe {
        let from = ptr::from_ref(line).cast::<__m256i>();
        let to = to.cast::<__m256i>();
        _mm256_stream_si256(to, _mm256_load_si256(from));
        _mm256_stream_si256(to.add(1), _mm256_load_si256(from.add(1)));
    }
}

/// Orders streaming stores before later accesses.
#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: every x86-64 CPU has the instruction, which only orders accesses.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx() -> bool {
    false
}

/// A substitute on CPUs without AVX; never called.
///
/// # Safety
/// `to` points to 64 writable bytes.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(to: *mut u8, line: &Line) {
    // SAFETY: guaranteed by the caller.
    unsafe { to.cast::<Line>().write_unaligned(*line) };
}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

/// An inbox that other ranks no longer write.
#[derive(Debug)]
pub(crate) struct Received<T>(Inbox<T>);

impl<T: Item> Received<T> {
    /// Reopens the inbox for other ranks, after all ranks have released what they received.
    pub(crate) fn reopen(self, world: &SimpleCommunicator) -> Inbox<T> {
        world.barrier();
        self.0
    }
}

impl<T: Item> Deref for Received<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: after the barrier in `close` no rank writes; items consist of plain words.
        unsafe { std::slice::from_raw_parts(self.0.base, self.0.len) }
    }
}

/// Buffers of equal size, which MPI reads while the program fills others.
///
/// Invariant: a buffer with a pending request is not written.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    lines: Area<Line>,
    lines_per_buffer: usize,
    requests: Vec<Option<ffi::MPI_Request>>,
    items: PhantomData<T>,
}

impl<T: Item> Outbox<T> {
    pub(crate) fn new(buffers: usize, lines_per_buffer: usize) -> Self {
        Self {
            lines: Area::new(buffers * lines_per_buffer),
            lines_per_buffer,
            requests: vec![None; buffers],
            items: PhantomData,
        }
    }

    /// Writes a line of a buffer that is not being sent.
    #[inline]
    pub(crate) fn write(&mut self, buffer: usize, line: usize, from: &Line) {
        assert!(self.requests[buffer].is_none() && line < self.lines_per_buffer);
        self.lines[buffer * self.lines_per_buffer + line] = *from;
    }

    /// Starts a put of the first `len` items of a buffer into the window of `target`, at item `at`.
    pub(crate) fn put(
        &mut self,
        buffer: usize,
        len: usize,
        inbox: &Inbox<T>,
        target: i32,
        at: usize,
    ) {
        let Memory::Window(window) = inbox.memory else { unreachable!("puts go into windows") };
        let (from, words) = self.pending(buffer, len);
        // SAFETY: the buffer holds `words` words and stays unwritten until the request completes.
        // MPI checks the target's bounds; the window is locked for all.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Rput(
                from,
                words,
                ffi::RSMPI_UINT64_T,
                target,
                at as ffi::MPI_Aint,
                words,
                ffi::RSMPI_UINT64_T,
                window,
                &mut request,
            );
            self.requests[buffer] = Some(request);
        }
    }

    /// Starts a send of the first `len` items of a buffer to `target`.
    pub(crate) fn send(
        &mut self,
        buffer: usize,
        len: usize,
        world: &SimpleCommunicator,
        target: i32,
        tag: i32,
    ) {
        let (from, words) = self.pending(buffer, len);
        // SAFETY: the buffer holds `words` words and stays unwritten until the request completes.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Isend(
                from,
                words,
                ffi::RSMPI_UINT64_T,
                target,
                tag,
                world.as_raw(),
                &mut request,
            );
            self.requests[buffer] = Some(request);
        }
    }

    /// Returns the address of a buffer to send, and the number of words of `len` items.
    fn pending(&mut self, buffer: usize, len: usize) -> (*const c_void, i32) {
        assert!(self.requests[buffer].is_none() && len <= self.lines_per_buffer * T::PER_LINE);
        let from = self.lines[buffer * self.lines_per_buffer..].as_ptr();
        (
            from.cast(),
            i32::try_from(len * size_of::<T>() / 8).expect("buffers of less than 2^31 words"),
        )
    }

    /// Waits until a buffer has been read.
    pub(crate) fn wait(&mut self, buffer: usize) {
        if let Some(mut request) = self.requests[buffer].take() {
            // SAFETY: the request is pending and released here.
            unsafe { ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE) };
        }
    }

    /// Returns whether a buffer has been read.
    pub(crate) fn is_done(&mut self, buffer: usize) -> bool {
        let Some(request) = &mut self.requests[buffer] else { return true };
        let mut done = 0;
        // SAFETY: the request is pending; if it has completed it is released.
        unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        if done != 0 {
            self.requests[buffer] = None;
        }
        done != 0
    }
}

impl<T> Drop for Outbox<T> {
    fn drop(&mut self) {
        for mut request in self.requests.drain(..).flatten() {
            // SAFETY: the request is pending; the buffers are unmapped only afterwards.
            unsafe { ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE) };
        }
    }
}

#[cfg(test)]
mod tests;
