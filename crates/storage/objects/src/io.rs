//! The I/O thread: one per process, started on first use. It makes all requests and receives all
//! bodies.
//!
//! Reads of ranges go through [`submit`]. They start in order of submission, as long as the bytes
//! in flight or not yet taken stay below [`BYTES_MAX`]. If every started read has completed and its
//! bytes are not taken for a while, the next one starts nevertheless, because a reader may be
//! waiting for it. So bytes that are not taken can slow reads down, but not stop them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tessera_context::{Interrupt, lock};
use tessera_types::{Error, Result, io_cause};
use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;

/// The most bytes of ranges that are in flight or not yet taken, in the whole process.
pub(crate) const BYTES_MAX: u64 = 256 << 20;
/// The time without progress after which a range starts beyond [`BYTES_MAX`].
const STALL: Duration = Duration::from_millis(250);
/// The most ranges in flight.
const RANGES_MAX: usize = 256;
/// The threads for host name lookups, which the system offers as a blocking call only.
const LOOKUP_THREADS_MAX: usize = 2;
/// The interval at which a waiting thread checks for interrupts.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(10);

/// The kinds of requests, as stores bill them: reading (and selecting), head, listing, writing,
/// deleting.
pub const KINDS: [&str; 5] = ["get", "head", "list", "put", "delete"];

/// The requests and bytes of the process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of requests, including retries.
    pub requests: u64,
    /// The number of requests by kind, in the order of [`KINDS`].
    pub by_kind: [u64; 5],
    /// The bytes of objects received.
    pub bytes: u64,
    /// The bytes sent.
    pub sent_bytes: u64,
    /// The bytes that stores scanned for selections.
    pub scanned_bytes: u64,
    /// The bytes of records that stores selected.
    pub selected_bytes: u64,
    /// The time for which the I/O thread was busy.
    pub busy: Duration,
}

/// The counters behind [`Totals`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    by_kind: [AtomicU64; 5],
    bytes: AtomicU64,
    sent_bytes: AtomicU64,
    scanned_bytes: AtomicU64,
    selected_bytes: AtomicU64,
}

pub(crate) static TOTALS: Counts = Counts {
    by_kind: [const { AtomicU64::new(0) }; 5],
    bytes: AtomicU64::new(0),
    sent_bytes: AtomicU64::new(0),
    scanned_bytes: AtomicU64::new(0),
    selected_bytes: AtomicU64::new(0),
};

impl Counts {
    /// Counts a request, whose kind follows from its method and query.
    pub(crate) fn add_request(&self, method: &str, query: Option<&str>, sent: usize) {
        let query = query.unwrap_or_default();
        let kind = match method {
            "HEAD" => 1,
            "GET" if query.contains("list-type") || query.contains("comp=list") => 2,
            "GET" => 0,
            "DELETE" => 4,
            "POST" if query.starts_with("delete") || query.contains("comp=batch") => 4,
            // Billed like a read.
            "POST" if query.starts_with("select") => 0,
            _ => 3,
        };
        self.by_kind[kind].fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(sent as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a selection.
    pub(crate) fn add_selected(&self, scanned: u64, selected: u64) {
        self.scanned_bytes.fetch_add(scanned, Ordering::Relaxed);
        self.selected_bytes.fetch_add(selected, Ordering::Relaxed);
    }
}

impl Totals {
    /// Returns the difference to an earlier value.
    pub fn since(self, before: Totals) -> Totals {
        Totals {
            requests: self.requests - before.requests,
            by_kind: std::array::from_fn(|kind| self.by_kind[kind] - before.by_kind[kind]),
            bytes: self.bytes - before.bytes,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            scanned_bytes: self.scanned_bytes - before.scanned_bytes,
            selected_bytes: self.selected_bytes - before.selected_bytes,
            busy: self.busy.saturating_sub(before.busy),
        }
    }
}

/// Returns the requests and bytes of the process so far.
pub fn totals() -> Totals {
    let busy = match THREAD.get() {
        Some(Ok(handle)) => handle.metrics().worker_total_busy_duration(0),
        _ => Duration::ZERO,
    };
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let by_kind = TOTALS.by_kind.each_ref().map(read);
    Totals {
        requests: by_kind.iter().sum(),
        by_kind,
        bytes: read(&TOTALS.bytes),
        sent_bytes: read(&TOTALS.sent_bytes),
        scanned_bytes: read(&TOTALS.scanned_bytes),
        selected_bytes: read(&TOTALS.selected_bytes),
        busy,
    }
}

static THREAD: OnceLock<std::result::Result<Handle, String>> = OnceLock::new();

/// Returns the runtime of the I/O thread.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn handle() -> Result<&'static Handle> {
    match THREAD.get_or_init(start) {
        Ok(handle) => Ok(handle),
        Err(error) => Err(Error::io(format!("cannot start the thread for object stores: {error}"))),
    }
}

fn start() -> std::result::Result<Handle, String> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(LOOKUP_THREADS_MAX)
        .build()
        .map_err(|error| io_cause(&error))?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("objects".to_string())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(|error| io_cause(&error))?;
    Ok(handle)
}

/// Waits until the statement is interrupted, and returns its error.
pub(crate) async fn interrupted(interrupt: &Interrupt) -> Error {
    loop {
        match interrupt.check() {
            Ok(()) => tokio::time::sleep(INTERRUPT_INTERVAL).await,
            Err(error) => return error,
        }
    }
}

/// Runs a future on the I/O thread and blocks until it completes. For writes, and for threads that
/// are not workers.
///
/// # Errors
/// The statement was interrupted, or the work fails.
pub(crate) fn wait<T: Send + 'static>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = channel();
    let task = handle()?.spawn(async move { drop(sender.send(work.await)) });
    loop {
        match receiver.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => interrupt.check().inspect_err(|_| task.abort())?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("a request to a store ended without a result"));
            }
        }
    }
}

/// A range to be read.
pub(crate) trait Transfer: Send + Sync {
    /// The bytes to account for.
    fn bytes(&self) -> u64;

    /// Starts the transfer: its bytes count until [`release`]. Returns `false` if it was cancelled.
    fn claim(&self) -> bool;

    /// Reads the range, stores the result and wakes its readers.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Receives the handle that aborts the transfer.
    fn started(&self, abort: AbortHandle);
}

#[derive(Default)]
struct Traffic {
    held_bytes: u64,
    in_flight: usize,
    waiting: VecDeque<Arc<dyn Transfer>>,
    /// How often bytes were taken or given up.
    released: u64,
    /// Whether a check for progress after [`STALL`] is scheduled.
    watched: bool,
}

static TRAFFIC: Mutex<Traffic> = Mutex::new(Traffic {
    held_bytes: 0,
    in_flight: 0,
    waiting: VecDeque::new(),
    released: 0,
    watched: false,
});

/// Queues a range for reading.
///
/// # Errors
/// The I/O thread cannot be started.
pub(crate) fn submit(transfer: Arc<dyn Transfer>) -> Result<()> {
    let handle = handle()?;
    lock(&TRAFFIC).waiting.push_back(transfer);
    admit(handle, false);
    Ok(())
}

/// Releases the bytes of a started transfer that were taken or are no longer needed.
pub(crate) fn release(bytes: u64) {
    {
        let mut traffic = lock(&TRAFFIC);
        traffic.held_bytes -= bytes;
        traffic.released += 1;
    }
    if let Ok(handle) = handle() {
        admit(handle, false);
    }
}

/// Counts a transfer in flight until dropped.
struct TransferInFlight;

impl Drop for TransferInFlight {
    fn drop(&mut self) {
        lock(&TRAFFIC).in_flight -= 1;
        if let Ok(handle) = handle() {
            admit(handle, false);
        }
    }
}

/// Starts transfers within the budget; with `must`, also one beyond it.
fn admit(handle: &Handle, mut must: bool) {
    loop {
        let next = {
            let mut traffic = lock(&TRAFFIC);
            let Some(next) = traffic.waiting.front() else { return };
            let fits =
                traffic.held_bytes + next.bytes() <= BYTES_MAX && traffic.in_flight < RANGES_MAX;
            if !fits && !must {
                if traffic.in_flight == 0 && !traffic.watched {
                    traffic.watched = true;
                    handle.spawn(watch(traffic.released));
                }
                return;
            }
            let Some(next) = traffic.waiting.pop_front() else { return };
            if !next.claim() {
                continue;
            }
            traffic.held_bytes += next.bytes();
            traffic.in_flight += 1;
            must = false;
            next
        };
        let work = next.clone().run();
        let in_flight = TransferInFlight;
        let task = handle.spawn(async move {
            let _under_way = in_flight;
            work.await;
        });
        next.started(task.abort_handle());
    }
}

/// Starts the next transfer after a time without progress.
async fn watch(released: u64) {
    tokio::time::sleep(STALL).await;
    let stalled = {
        let mut traffic = lock(&TRAFFIC);
        traffic.watched = false;
        traffic.in_flight == 0 && traffic.released == released
    };
    admit(&Handle::current(), stalled);
}
