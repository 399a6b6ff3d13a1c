//! The I/O thread: one for the process, started on first use. All requests are made and all bodies
//! received on it.
//!
//! Reads of ranges go through [`submit`]: they start in the order in which they came, as long as
//! the bytes that are under way or not yet taken stay below [`BYTES_MAX`]. Where all that was
//! started has come and nobody takes it for a while, because who should waits for what has not been
//! started, the next one starts in any case: bytes that wait can slow things down but not stop
//! them.

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

/// The most bytes of ranges that are under way or have come and are not taken yet, in the whole
/// process.
pub(crate) const BYTES_MAX: u64 = 256 << 20;
/// How long nothing moves before a range starts beyond [`BYTES_MAX`].
const STALL: Duration = Duration::from_millis(250);
/// The most ranges that are under way at once.
const RANGES_MAX: usize = 256;
/// Threads that look up names of hosts, which the system offers only as a call that waits.
const LOOKUP_THREADS_MAX: usize = 2;
/// How often a thread that waits asks whether it should go on.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(10);

/// Kinds of requests, as stores bill them: reading (and selecting), looking, listing, writing,
/// deleting.
pub const KINDS: [&str; 5] = ["get", "head", "list", "put", "delete"];

/// What the process has asked of stores so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were sent, those sent again included.
    pub requests: u64,
    /// The same by kind, in the order of [`KINDS`].
    pub by_kind: [u64; 5],
    /// Bytes of objects that came.
    pub bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that stores have read to select from objects.
    pub scanned_bytes: u64,
    /// Bytes of records that they have selected.
    pub selected_bytes: u64,
    /// How long the I/O thread was not waiting.
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
    /// A request leaves: its kind follows from its method and query.
    pub(crate) fn add_request(&self, method: &str, query: Option<&str>, sent: usize) {
        let query = query.unwrap_or_default();
        let kind = match method {
            "HEAD" => 1,
            "GET" if query.contains("list-type") || query.contains("comp=list") => 2,
            "GET" => 0,
            "DELETE" => 4,
            "POST" if query.starts_with("delete") || query.contains("comp=batch") => 4,
            // Billed as reading is.
            "POST" if query.starts_with("select") => 0,
            _ => 3,
        };
        self.by_kind[kind].fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(sent as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A store has selected from an object.
    pub(crate) fn add_selected(&self, scanned: u64, selected: u64) {
        self.scanned_bytes.fetch_add(scanned, Ordering::Relaxed);
        self.selected_bytes.fetch_add(selected, Ordering::Relaxed);
    }
}

impl Totals {
    /// What came after `before`.
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

/// What the process has asked of stores so far; all zero where it has not.
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

/// The I/O thread.
///
/// # Errors
/// The system gives no thread.
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

/// Waits until the statement is to end: the error that then comes.
pub(crate) async fn happened(interrupt: &Interrupt) -> Error {
    loop {
        match interrupt.check() {
            Ok(()) => tokio::time::sleep(INTERRUPT_INTERVAL).await,
            Err(error) => return error,
        }
    }
}

/// Runs something on the I/O thread and waits for it; for threads that are no workers, and for
/// writing.
///
/// # Errors
/// It was interrupted, or fails.
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
                return Err(Error::internal("a request to a store ended without an answer"));
            }
        }
    }
}

/// A range that is to be read.
pub(crate) trait Transfer: Send + Sync {
    /// The bytes it counts for.
    fn bytes(&self) -> u64;

    /// Begins it: its bytes count from now on, until [`release`]. No, where nobody wants it any
    /// more.
    fn claim(&self) -> bool;

    /// Reads it, keeps what came and tells those who wait.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Takes the handle that ends it early.
    fn started(&self, abort: AbortHandle);
}

#[derive(Default)]
struct Traffic {
    held_bytes: u64,
    under_way: usize,
    waiting: VecDeque<Arc<dyn Transfer>>,
    /// How often bytes were taken or given up.
    released: u64,
    /// Whether somebody looks after [`STALL`] whether anything has moved.
    watched: bool,
}

static TRAFFIC: Mutex<Traffic> = Mutex::new(Traffic {
    held_bytes: 0,
    under_way: 0,
    waiting: VecDeque::new(),
    released: 0,
    watched: false,
});

/// Reads a range when its turn comes.
///
/// # Errors
/// There is no I/O thread.
pub(crate) fn submit(transfer: Arc<dyn Transfer>) -> Result<()> {
    let handle = handle()?;
    lock(&TRAFFIC).waiting.push_back(transfer);
    admit(handle, false);
    Ok(())
}

/// The bytes of a transfer that was started have been taken, or nobody wants them.
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

/// A transfer that is under way, until it ends in whatever way.
struct UnderWay;

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&TRAFFIC).under_way -= 1;
        if let Ok(handle) = handle() {
            admit(handle, false);
        }
    }
}

/// Starts what fits; one that does not, too, where it `must`.
fn admit(handle: &Handle, mut must: bool) {
    loop {
        let next = {
            let mut traffic = lock(&TRAFFIC);
            let Some(next) = traffic.waiting.front() else { return };
            let fits =
                traffic.held_bytes + next.bytes() <= BYTES_MAX && traffic.under_way < RANGES_MAX;
            if !fits && !must {
                if traffic.under_way == 0 && !traffic.watched {
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
            traffic.under_way += 1;
            must = false;
            next
        };
        let work = next.clone().run();
        let under_way = UnderWay;
        let task = handle.spawn(async move {
            let _under_way = under_way;
            work.await;
        });
        next.started(task.abort_handle());
    }
}

/// Starts the next one after a while in which nothing moved.
async fn watch(released: u64) {
    tokio::time::sleep(STALL).await;
    let stalled = {
        let mut traffic = lock(&TRAFFIC);
        traffic.watched = false;
        traffic.under_way == 0 && traffic.released == released
    };
    admit(&Handle::current(), stalled);
}
