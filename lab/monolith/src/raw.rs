//! All `unsafe` of the monolith: memory of the operating system, streaming stores, the window that
//! other ranks put into, and buffers that MPI reads while the program goes on. Each type keeps its
//! own invariants; nothing outside can break them.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Deref, DerefMut, Range};
use std::ptr;

use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::tuple::{Joined, Tuple};

/// A cache line of eight words.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// Words without holes.
///
/// # Safety
/// The type is `repr(C)` and consists of `u64` only: every bit pattern is a value, and it may be
/// read and written as words.
pub(crate) unsafe trait Plain: Copy + 'static {}

// SAFETY: all of these are words only.
unsafe impl Plain for u64 {}
unsafe impl Plain for Tuple {}
unsafe impl Plain for Joined {}
unsafe impl Plain for Line {}

/// What travels: of a size that divides a cache line.
pub(crate) trait Item: Plain + Default {
    /// How many fill a line.
    const PER_LINE: usize = size_of::<Line>() / size_of::<Self>();

    /// Puts the item into a slot of a line.
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

/// The operating system's large page, to which areas are aligned.
const HUGE_PAGE: usize = 2 << 20;

/// Zeroed private memory in large pages where the system gives them.
///
/// Invariant: `base` points to `len` values of `T` inside `mapped_len` bytes at `mapped`, mapped by
/// us and owned.
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
        // SAFETY: a new anonymous mapping; nothing else is at the address that the system picks.
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
        // SAFETY: `skip` is less than the page that was mapped beyond `bytes`. The advice changes
        // no contents.
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
        // SAFETY: the mapping is ours, and no reference into it outlives the area.
        unsafe { libc::munmap(self.mapped, self.mapped_len) };
    }
}

impl<T: Plain> Deref for Area<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: by the invariant; pages not yet written read as zeros, which are values of a
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

/// How whole lines are written into memory that is not read soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// Around the cache, 32 bytes at a time. Only where the processor has AVX.
    Streaming,
    Plain,
}

/// Where the tuples of this rank arrive: written by other ranks, or by messages, and by the rank
/// itself in whole lines. While it is an inbox nobody holds a reference into it that another rank
/// could write through; `close` ends that.
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
    /// A window of MPI, locked by all of its communicator for all.
    Window(ffi::MPI_Win),
    /// Private memory, which nothing but this inbox points into.
    Private { _area: Area<T> },
}

impl<T: Item> Inbox<T> {
    /// A window of `len` items at this rank. All ranks of the communicator call it together.
    pub(crate) fn window(world: &SimpleCommunicator, len: usize, streaming: bool) -> Self {
        let mut base = ptr::null_mut::<T>();
        // Whole pages: MPICH lays the ranks' parts end to end.
        let bytes = (len.max(1) * size_of::<T>()).next_multiple_of(4096);
        // SAFETY: both results are written by the call; the handles are MPI's own. An error ends
        // the program (MPI's default).
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
            // Whole pages of the own part come at once, which costs half of a fault for each. Where
            // the system has no such advice they come by faults.
            let skip = base.cast::<u8>().align_offset(4096);
            libc::madvise(base.byte_add(skip).cast(), bytes - 4096, libc::MADV_POPULATE_WRITE);
            window
        };
        Self::new(base, len, Memory::Window(window), streaming)
    }

    /// Private memory of `len` items, for messages.
    pub(crate) fn private(len: usize, streaming: bool) -> Self {
        let mut area = Area::new(len);
        Self::new(area.as_mut_ptr(), len, Memory::Private { _area: area }, streaming)
    }

    fn new(base: *mut T, len: usize, memory: Memory<T>, streaming: bool) -> Self {
        assert!(base.addr().is_multiple_of(16), "MPI aligns memory for every type it knows");
        let avx = streaming && has_avx();
        Self { base, len, memory, store: if avx { Store::Streaming } else { Store::Plain } }
    }

    /// How many items the inbox begins after the begin of a cache line. The places of `write` count
    /// from there.
    pub(crate) fn lead(&self) -> usize {
        self.base.addr() % size_of::<Line>() / size_of::<T>()
    }

    /// Writes the slots `slots` of a line, of which the first is at `place`. A whole line goes
    /// around the cache.
    #[inline]
    pub(crate) fn write(&mut self, place: usize, slots: Range<usize>, line: &Line) {
        let lead = self.lead();
        assert!(
            place.is_multiple_of(T::PER_LINE)
                && slots.end <= T::PER_LINE
                && slots.start <= slots.end
        );
        assert!(place + slots.start >= lead && place + slots.end <= lead + self.len);
        // SAFETY: the items `place + slots - lead` are inside the inbox, by the assertions. They
        // are this rank's region: other ranks write other regions. A whole line begins at a
        // multiple of 64 bytes, for `lead` was added; `Streaming` means AVX.
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

    /// Private memory of the items `range`, as words for a message to be received into.
    pub(crate) fn receiving(&mut self, range: Range<usize>) -> &mut [u64] {
        assert!(matches!(self.memory, Memory::Private { .. }), "a window is written by puts");
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the inbox, whose memory is private and borrowed mutably; items are words.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(range.start).cast(),
                range.len() * size_of::<T>() / 8,
            )
        }
    }

    /// Waits until this rank's puts have arrived, and its own stores are visible.
    pub(crate) fn flush(&self) {
        // SAFETY: a fence; and the window is locked for all.
        unsafe {
            fence();
            if let Memory::Window(window) = self.memory {
                ffi::MPI_Win_flush_all(window);
            }
        }
    }

    /// Waits for all ranks: afterwards what has arrived can be read. Takes the outbox, which waits
    /// for what it sends.
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
            // SAFETY: the window is ours, and locked. All ranks drop their inboxes together.
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

/// Writes a line around the cache.
///
/// # Safety
/// `to` points to 64 bytes that may be written, at a multiple of 64; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream(to: *mut u8, line: &Line) {
    use std::arch::x86_64::{__m256i, _mm256_load_si256, _mm256_stream_si256};
    // SAFETY: by the caller; a `Line` is aligned to 64 bytes.
    unsafe {
        let from = ptr::from_ref(line).cast::<__m256i>();
        let to = to.cast::<__m256i>();
        _mm256_stream_si256(to, _mm256_load_si256(from));
        _mm256_stream_si256(to.add(1), _mm256_load_si256(from.add(1)));
    }
}

/// Orders streaming stores before what follows.
#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: every x86-64 has the instruction, and it only orders.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx() -> bool {
    false
}

/// Stands in where there is no AVX, and is never called there.
///
/// # Safety
/// `to` points to 64 bytes that may be written.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(to: *mut u8, line: &Line) {
    // SAFETY: by the caller.
    unsafe { to.cast::<Line>().write_unaligned(*line) };
}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

/// An inbox that no other rank writes any more.
#[derive(Debug)]
pub(crate) struct Received<T>(Inbox<T>);

impl<T: Item> Received<T> {
    /// Lets other ranks write again, once all of them have given up what they received.
    pub(crate) fn reopen(self, world: &SimpleCommunicator) -> Inbox<T> {
        world.barrier();
        self.0
    }
}

impl<T: Item> Deref for Received<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: after the barrier in `close` no rank writes; items are plain words.
        unsafe { std::slice::from_raw_parts(self.0.base, self.0.len) }
    }
}

/// Buffers of equal size, which MPI reads while the program fills others.
///
/// Invariant: a buffer whose request is pending is not written.
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

    /// Starts to put the first `len` items of a buffer into the window of `target`, from item `at`
    /// on.
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
        // SAFETY: the buffer holds `words` words and stays unwritten until the request is done. MPI
        // checks the target's bounds; the window is locked for all.
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

    /// Starts to send the first `len` items of a buffer to `target`.
    pub(crate) fn send(
        &mut self,
        buffer: usize,
        len: usize,
        world: &SimpleCommunicator,
        target: i32,
        tag: i32,
    ) {
        let (from, words) = self.pending(buffer, len);
        // SAFETY: the buffer holds `words` words and stays unwritten until the request is done.
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

    /// The address of a buffer that is to be sent, and how many words `len` items are.
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
            // SAFETY: the request is pending and given up here.
            unsafe { ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE) };
        }
    }

    /// Whether a buffer has been read.
    pub(crate) fn is_done(&mut self, buffer: usize) -> bool {
        let Some(request) = &mut self.requests[buffer] else { return true };
        let mut done = 0;
        // SAFETY: the request is pending; where it is done it is given up.
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
mod tests {
    use super::*;

    #[test]
    fn areas_are_zeroed_and_aligned() {
        for len in [0, 1, 1000, HUGE_PAGE / 8 + 1] {
            let mut area = Area::<u64>::new(len);
            assert_eq!(area.len(), len);
            assert!(area.as_ptr().addr().is_multiple_of(64) && area.iter().all(|&word| word == 0));
            area.fill(7);
            assert!(area.iter().all(|&word| word == 7));
        }
    }

    /// Writes `count` items from place `from` on, as a partitioning pass does, and looks at the
    /// whole inbox.
    fn fill<T: Item + PartialEq + std::fmt::Debug>(
        item: impl Fn(usize) -> T,
        from: usize,
        count: usize,
        streaming: bool,
    ) {
        let mut inbox = Inbox::<T>::private(64, streaming);
        let (mut line, begin) = (Line::default(), inbox.lead() + from);
        for place in begin..begin + count {
            item(place - begin).store(&mut line, place % T::PER_LINE);
            if place % T::PER_LINE == T::PER_LINE - 1 {
                let first = place + 1 - T::PER_LINE;
                inbox.write(first, begin.saturating_sub(first)..T::PER_LINE, &line);
            }
        }
        let slots = (begin + count) % T::PER_LINE;
        let first = begin + count - slots;
        inbox.write(first, begin.saturating_sub(first).min(slots)..slots, &line);
        inbox.flush();
        let received = Received(inbox);
        for (place, found) in received.iter().enumerate() {
            let expected = if (from..from + count).contains(&place) {
                item(place - from)
            } else {
                T::default()
            };
            assert_eq!(*found, expected, "place {place} of {count} from {from}");
        }
    }

    #[test]
    fn a_region_is_written_and_nothing_beside_it() {
        for streaming in [false, true] {
            for from in 0..9 {
                for count in 0..20 {
                    fill(|number| number as u64 + 1, from, count, streaming);
                    fill(
                        |number| Tuple { key: number as u64 + 1, payload: 9 },
                        from,
                        count,
                        streaming,
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "self.len")]
    fn a_line_past_the_end_is_refused() {
        Inbox::<u64>::private(12, true).write(8, 0..8, &Line::default());
    }

    #[test]
    fn messages_are_received_where_they_belong() {
        let mut inbox = Inbox::<Tuple>::private(3, true);
        inbox.receiving(1..3).copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(
            Received(inbox)[..],
            [(0, 0), (1, 2), (3, 4)].map(|(key, payload)| Tuple { key, payload })
        );
    }
}
