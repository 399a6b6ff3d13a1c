//! All calls of MPI's C interface: non-blocking collectives, messages, windows. Together with
//! `window_memory`, this is the crate's unsafe code for data exchange.
//!
//! # Invariants
//! * All functions are called on the thread that initialized MPI, between initialization and
//!   finalization: they need a [`World`], which is neither `Send` nor `Sync` and exists once.
//! * A buffer that MPI reads or writes is owned by the [`Pending`] of its request, in memory that
//!   does not move, until the request is complete. A `Pending` dropped before that leaks its
//!   buffers instead of freeing them.
//! * A put reads its buffer until its window is flushed: [`RawWindow`] keeps the buffers until
//!   then.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use mpi::environment::Universe;
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator};

use crate::link::{Buffer, Bytes, InFlightBytes, Put};
use crate::window_memory::WindowMemory;

/// The maximum bytes of one MPI message: its count is a C integer, so longer messages are split.
const PIECE_BYTES: usize = 1 << 30;
/// Window sizes are multiples of this.
const PAGE_BYTES: usize = 4096;
/// Bytes of puts in flight after which their buffers are flushed and freed.
const IN_FLIGHT_BYTES: usize = 8 << 20;

/// The signature of an MPI reduction: input numbers, output, count, type, operation.
type Reduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    c_int,
    ffi::MPI_Datatype,
    ffi::MPI_Op,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;

/// The MPI world, bound to its thread.
pub(crate) struct World {
    _universe: Universe,
    comm: ffi::MPI_Comm,
    rank: usize,
    ranks: usize,
    phantom: std::marker::PhantomData<*const ()>,
}

/// A pending MPI request, with the memory that it uses.
pub(crate) struct Pending<B> {
    request: ffi::MPI_Request,
    buffer: Option<Box<B>>,
}

impl<B> Pending<B> {
    /// Starts a request on a buffer that does not move until the request is complete.
    fn start(buffer: B, start: impl FnOnce(&mut B, &mut ffi::MPI_Request)) -> Pending<B> {
        let mut buffer = Box::new(buffer);
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        start(&mut buffer, &mut request);
        Pending { request, buffer: Some(buffer) }
    }

    /// Returns the buffer once the request is complete, `None` before that.
    pub(crate) fn test(&mut self) -> Option<B> {
        let mut done: c_int = 0;
        // SAFETY: this value owns the request; a completed one is the null request, for which the
        // call is defined.
        unsafe { ffi::MPI_Test(&mut self.request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        if done == 0 { None } else { self.buffer.take().map(|buffer| *buffer) }
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take()
            && self.test_only() == 0
        {
            std::mem::forget(buffer);
        }
    }
}

impl<B> Pending<B> {
    fn test_only(&mut self) -> c_int {
        let mut done: c_int = 0;
        // SAFETY: as in `test`.
        unsafe { ffi::MPI_Test(&mut self.request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        done
    }
}

/// A packet being sent.
pub(crate) type Sending = Pending<(Vec<u64>, InFlightBytes)>;

fn count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

/// The MPI datatype of a word.
fn ffi_word() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_UINT64_T }
}

impl World {
    /// Initializes MPI for calls from this thread; `None` if it was initialized before.
    pub(crate) fn new() -> Option<World> {
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)?;
        let world = universe.world();
        let (rank, ranks) = (world.rank() as usize, world.size() as usize);
        let comm = world.as_raw();
        Some(World { _universe: universe, comm, rank, ranks, phantom: std::marker::PhantomData })
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Computes the bitwise AND over all ranks.
    pub(crate) fn all_and(&self, word: u64) -> Pending<(u64, u64)> {
        Pending::start((word, 0), |(own, all), request| {
            // SAFETY: both buffers are one word in the box that the pending request owns.
            unsafe {
                ffi::MPI_Iallreduce(
                    std::ptr::from_ref(own).cast::<c_void>().cast_mut(),
                    std::ptr::from_mut(all).cast(),
                    1,
                    ffi::RSMPI_UINT64_T,
                    ffi::RSMPI_BAND,
                    self.comm,
                    request,
                )
            };
        })
    }

    /// Sums over all ranks.
    pub(crate) fn all_sum(&self, own: Vec<i64>) -> Pending<(Vec<i64>, Vec<i64>)> {
        self.sums(ffi::MPI_Iallreduce, own)
    }

    /// Sums over the ranks before this one; zeros on the first rank.
    pub(crate) fn sum_before(&self, own: Vec<i64>) -> Pending<(Vec<i64>, Vec<i64>)> {
        self.sums(ffi::MPI_Iexscan, own)
    }

    /// Starts an MPI reduction; results are zero where MPI leaves them undefined.
    fn sums(&self, reduce: Reduce, own: Vec<i64>) -> Pending<(Vec<i64>, Vec<i64>)> {
        let sums = vec![0; own.len()];
        Pending::start((own, sums), |(own, sums), request| {
            // SAFETY: `reduce` is an MPI reduction; both buffers have the same length and do not
            // move while the pending request owns the vectors.
            unsafe {
                reduce(
                    own.as_ptr().cast(),
                    sums.as_mut_ptr().cast(),
                    count(own.len()),
                    ffi::RSMPI_INT64_T,
                    ffi::RSMPI_SUM,
                    self.comm,
                    request,
                )
            };
        })
    }

    /// Gathers one number of each rank.
    pub(crate) fn gather(&self, own: u64) -> Pending<(u64, Vec<u64>)> {
        let all = vec![0; self.ranks];
        Pending::start((own, all), |(own, all), request| {
            // SAFETY: one number goes out of the box, and one for each rank into the vector.
            unsafe {
                ffi::MPI_Iallgather(
                    std::ptr::from_ref(own).cast::<c_void>().cast_mut(),
                    1,
                    ffi::RSMPI_UINT64_T,
                    all.as_mut_ptr().cast(),
                    1,
                    ffi::RSMPI_UINT64_T,
                    self.comm,
                    request,
                )
            };
        })
    }

    /// Sends bytes, in pieces.
    pub(crate) fn send(
        &self,
        bytes: &Arc<Vec<u8>>,
        to: usize,
        tag: i32,
    ) -> Vec<Pending<Arc<Vec<u8>>>> {
        let piece = |start: usize| {
            let length = PIECE_BYTES.min(bytes.len() - start);
            Pending::start(bytes.clone(), |bytes, request| {
                // SAFETY: the piece is inside the vector, which does not change while it is shared.
                unsafe {
                    ffi::MPI_Isend(
                        bytes.as_ptr().add(start).cast::<c_void>().cast_mut(),
                        count(length),
                        ffi::RSMPI_UINT8_T,
                        to as c_int,
                        tag,
                        self.comm,
                        request,
                    )
                };
            })
        };
        (0..bytes.len()).step_by(PIECE_BYTES).map(piece).collect()
    }

    /// Receives `length` bytes, piece by piece in the order of sending.
    pub(crate) fn receive(&self, length: usize, from: usize, tag: i32) -> Vec<Pending<Vec<u8>>> {
        let piece = |start: usize| {
            Pending::start(vec![0u8; PIECE_BYTES.min(length - start)], |bytes, request| {
                // SAFETY: the vector has room for the piece and does not move.
                unsafe {
                    ffi::MPI_Irecv(
                        bytes.as_mut_ptr().cast(),
                        count(bytes.len()),
                        ffi::RSMPI_UINT8_T,
                        from as c_int,
                        tag,
                        self.comm,
                        request,
                    )
                };
            })
        };
        (0..length).step_by(PIECE_BYTES).map(piece).collect()
    }

    /// Sends a packet; the request completes only when the receiver has started to receive it.
    pub(crate) fn send_packet(
        &self,
        packet: Vec<u64>,
        to: usize,
        tag: i32,
        in_flight: InFlightBytes,
    ) -> Sending {
        Pending::start((packet, in_flight), |(packet, _), request| {
            // SAFETY: the words do not move while the pending request owns the vector.
            unsafe {
                ffi::MPI_Issend(
                    packet.as_ptr().cast::<c_void>().cast_mut(),
                    count(packet.len()),
                    ffi::RSMPI_UINT64_T,
                    to as c_int,
                    tag,
                    self.comm,
                    request,
                )
            };
        })
    }

    /// Receives a packet that has arrived from any rank, with its sender.
    pub(crate) fn poll_packet(&self, tag: i32) -> Option<(usize, Vec<u64>)> {
        let (status, length) = self.probe(tag, ffi_word())?;
        let mut words = vec![0u64; length];
        // SAFETY: the message is there and has as many words as the vector.
        unsafe {
            ffi::MPI_Recv(
                words.as_mut_ptr().cast(),
                count(length),
                ffi_word(),
                status.MPI_SOURCE,
                tag,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        Some((status.MPI_SOURCE as usize, words))
    }

    /// Returns the status and number of elements of an arrived message with this tag.
    fn probe(&self, tag: i32, element: ffi::MPI_Datatype) -> Option<(ffi::MPI_Status, usize)> {
        let mut there: c_int = 0;
        // SAFETY: a status is plain numbers, which the call fills in when there is a message.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        // SAFETY: both outputs are valid places.
        unsafe { ffi::MPI_Iprobe(ffi::RSMPI_ANY_SOURCE, tag, self.comm, &mut there, &mut status) };
        if there == 0 {
            return None;
        }
        let mut length: c_int = 0;
        // SAFETY: the status is that of the message just found.
        unsafe { ffi::MPI_Get_count(&status, element, &mut length) };
        Some((status, usize::try_from(length).unwrap_or(0)))
    }

    /// Receives a short message with this tag that has arrived from any rank, with its sender.
    pub(crate) fn poll(&self, tag: i32) -> Option<(usize, Vec<u8>)> {
        // SAFETY: a constant of the library.
        let (status, length) = self.probe(tag, unsafe { ffi::RSMPI_UINT8_T })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the message is there and has as many bytes as the vector.
        unsafe {
            ffi::MPI_Recv(
                bytes.as_mut_ptr().cast(),
                count(length),
                ffi::RSMPI_UINT8_T,
                status.MPI_SOURCE,
                tag,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        Some((status.MPI_SOURCE as usize, bytes))
    }

    /// Allocates a window on all ranks together, with this many bytes on this one, and opens it for
    /// puts.
    pub(crate) fn window(&self, bytes: usize) -> RawWindow {
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: constants and valid places for the outputs; all ranks take this step together.
        let (win, has_memory) = unsafe {
            let mut win = ffi::RSMPI_WIN_NULL;
            // Whole pages: some libraries lay the windows of ranks end to end, and every library
            // returns a non-null address for one page.
            let bytes = bytes.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
            ffi::MPI_Win_allocate(
                bytes as ffi::MPI_Aint,
                1,
                ffi::RSMPI_INFO_NULL,
                self.comm,
                std::ptr::from_mut(&mut base).cast(),
                &mut win,
            );
            ffi::MPI_Win_lock_all(0, win);
            (win, populate(base, bytes))
        };
        let words = bytes.div_ceil(8);
        // SAFETY: MPI has just allocated the words, aligned, and frees them in `free`, which needs
        // the last reference. Fresh memory of the system is zero, and any value is valid for words.
        let memory = unsafe { WindowMemory::new(base.cast(), words) };
        RawWindow { win, memory, has_memory, in_flight: Vec::new(), in_flight_bytes: 0 }
    }
}

/// Asks the system for all pages of a window at once, which costs half as much as page faults
/// (measured with lab/monolith: 110 ms instead of 230 ms for 512 MiB). Returns whether the system
/// had enough memory; systems without this advice fault pages in later.
///
/// # Safety
/// The `bytes` bytes from `base` are the memory of a window.
#[cfg(target_os = "linux")]
unsafe fn populate(base: *mut c_void, bytes: usize) -> bool {
    let skip = base.cast::<u8>().align_offset(PAGE_BYTES);
    let whole = (bytes - skip) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: whole pages inside the memory; the advice does not change their contents.
    let advised = unsafe { libc::madvise(base.byte_add(skip), whole, libc::MADV_POPULATE_WRITE) };
    // `EFAULT` stands for the SIGBUS that the first access would have caused.
    advised == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

/// Other systems have no such advice.
///
/// # Safety
/// None is needed.
#[cfg(not(target_os = "linux"))]
unsafe fn populate(_base: *mut c_void, _bytes: usize) -> bool {
    true
}

/// A window of memory that other ranks put into.
pub(crate) struct RawWindow {
    win: ffi::MPI_Win,
    pub(crate) memory: Arc<WindowMemory>,
    /// Whether the system has provided its pages.
    pub(crate) has_memory: bool,
    in_flight: Vec<Buffer>,
    in_flight_bytes: usize,
}

impl RawWindow {
    /// Starts a put.
    pub(crate) fn put(&mut self, put: Put) {
        let Put { rank, byte, buffer } = put;
        let (start, length) = match &buffer.bytes {
            Bytes::Words(words) => (words.as_ptr().cast::<u8>(), words.len() * 8),
            Bytes::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
        };
        // SAFETY: the buffer stays in `in_flight` until a flush. The target range belongs to this
        // rank in the owner's map, which was computed from the same histogram.
        unsafe {
            ffi::MPI_Put(
                start.cast::<c_void>().cast_mut(),
                count(length),
                ffi::RSMPI_UINT8_T,
                rank as c_int,
                byte as ffi::MPI_Aint,
                count(length),
                ffi::RSMPI_UINT8_T,
                self.win,
            )
        };
        self.in_flight.push(buffer);
        self.in_flight_bytes += length;
        if self.in_flight_bytes >= IN_FLIGHT_BYTES {
            self.flush_local();
        }
    }

    /// Waits until MPI has read the buffers of all puts, and frees them.
    pub(crate) fn flush_local(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        // SAFETY: the window is open.
        unsafe { ffi::MPI_Win_flush_local_all(self.win) };
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// Waits until all puts of this rank have arrived.
    pub(crate) fn flush(&mut self) {
        // SAFETY: the window is open.
        unsafe {
            ffi::MPI_Win_flush_all(self.win);
            ffi::MPI_Win_sync(self.win);
        }
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// Makes the puts of other ranks visible, after all ranks have flushed.
    pub(crate) fn sync(&self) {
        // SAFETY: the window is open.
        unsafe { ffi::MPI_Win_sync(self.win) };
    }

    /// Whether no other code on this rank uses its memory.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.memory) == 1
    }

    /// Frees the window on all ranks together, after each has found it unused.
    pub(crate) fn free(mut self) {
        // SAFETY: the window is open, and its memory has no other reference.
        unsafe {
            ffi::MPI_Win_unlock_all(self.win);
            ffi::MPI_Win_free(&mut self.win);
        }
    }
}
