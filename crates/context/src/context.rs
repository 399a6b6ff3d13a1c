//! What a run gives to its sub-operators: memory, cancellation, counters, bytes of sources.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tessera_codegen::Compiler;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use crate::board::Board;
use crate::read_buffer::ReadBuffer;

/// What a mutex guards. A panic while it was held has become an error of its query, which is no
/// concern of who comes next.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where memory is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// The memory of the process, which the query's budget limits.
    #[default]
    Host,
    /// Buffers on a device, which the device's size limits.
    Device,
}

/// What the engine offers to a query; implemented by `engine`.
pub trait Context: Send + Sync + std::fmt::Debug {
    /// Counts `bytes` more that the query holds in a place; those of the host against its memory
    /// budget.
    ///
    /// # Errors
    /// The budget is exhausted; nothing was counted.
    fn grow(&self, place: Place, bytes: usize) -> Result<()>;

    /// Gives bytes back.
    fn shrink(&self, place: Place, bytes: usize);

    /// Fails when the query has been cancelled. To be asked at least once per chunk and in long
    /// loops.
    fn check(&self) -> Result<()>;

    /// The most tuples in a chunk.
    fn chunk_rows(&self) -> usize;

    /// How many workers may run at once.
    fn workers(&self) -> usize;

    /// The query's memory budget in bytes.
    fn memory_bytes(&self) -> usize {
        usize::MAX
    }

    /// Whether state that can leave memory, and holds `held` bytes now, may hold `more`. Where not,
    /// some of it is to leave first; what has to stay asks [`Context::grow`] alone.
    fn may_hold(&self, _held: usize, _more: usize) -> bool {
        true
    }

    /// State that can leave memory begins: until then a share is kept free for it.
    fn state_begins(&self) {}

    /// A file for what leaves memory; it is gone with its last reference, however the process ends.
    ///
    /// # Errors
    /// There is no scratch directory, or it cannot be written to.
    fn scratch(&self) -> Result<Arc<dyn Scratch>> {
        Err(Error::unsupported(
            "this run has no scratch directory for what does not fit into memory",
        ))
    }

    /// Who compiles for this run; nobody in the vectorised tier.
    fn compiler(&self) -> Option<&Arc<dyn Compiler>> {
        None
    }

    /// Which part of the leaves' morsels this process reads, where several run one plan.
    fn share(&self) -> Share {
        Share::default()
    }

    /// Opens a file or object.
    ///
    /// # Errors
    /// It does not exist or cannot be read; the message names it.
    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>>;

    /// Starts a file or object that appears whole when it is committed, or not at all.
    ///
    /// # Errors
    /// It cannot be written there; or the run has nowhere to write.
    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        Err(Error::unsupported(format!(
            "cannot write '{path}': this run has no storage to write to"
        )))
    }
}

/// A file for what leaves memory, written and read by several workers at once.
pub trait Scratch: Send + Sync + std::fmt::Debug {
    /// Appends bytes; gives where they begin.
    ///
    /// # Errors
    /// The file system is full or gone; the message says what to do.
    fn append(&self, bytes: &[u8]) -> Result<u64>;

    /// Bytes that were appended.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, start: u64, len: usize) -> Result<Vec<u8>>;
}

/// One of `count` equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which one, from 0; from `count` on, nothing.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Default for Share {
    /// Everything.
    fn default() -> Self {
        Share { index: 0, count: 1 }
    }
}

/// A file or object being written; dropped without [`Output::commit`] it leaves nothing behind.
pub trait Output: std::io::Write + Send + std::fmt::Debug {
    /// Makes it appear, complete and durable.
    ///
    /// # Errors
    /// It could not be written; nothing is left behind.
    fn commit(self: Box<Self>) -> Result<()>;

    /// Whether what is written is seen at once, and cannot be taken back.
    fn is_stream(&self) -> bool {
        false
    }
}

/// The error of a file or object that is no longer what the statement began to read.
pub fn file_changed(path: &str) -> Error {
    Error::data(format!("'{path}' changed while it was read; run the statement again"))
}

/// A file or object that is read by ranges; implemented by storage.
pub trait RangeReader: Send + Sync + std::fmt::Debug {
    /// The name for messages.
    fn path(&self) -> &str;

    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a read takes far longer than to decode what it gives: few large ranges are then
    /// better than many small ones.
    fn is_remote(&self) -> bool {
        false
    }

    /// Bytes of a range, in the caller's buffer unless they lie elsewhere already (a store's are
    /// adopted), or a token that becomes ready when they have come; the caller then asks again.
    ///
    /// # Errors
    /// The range lies outside the file, or cannot be read.
    fn read_into(&self, range: Range<u64>, buffer: ReadBuffer) -> Result<Read>;

    /// Says which ranges will be read next, in this order, so that all can be under way together.
    /// What is then not read is given up with the reader.
    ///
    /// # Errors
    /// A range lies outside the file.
    fn prefetch(&self, _ranges: &[Range<u64>]) -> Result<()> {
        Ok(())
    }

    /// What reading has cost so far.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// What reading from a store has cost, for the profile; nothing for local files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Time from asking for a range to having it, added up over ranges, which are under way
    /// together.
    pub wait_nanoseconds: u64,
}

/// What a read gives.
#[derive(Debug)]
pub enum Read {
    /// The bytes.
    Ready(ReadBuffer),
    /// Not there yet: ask again when the token is ready.
    Blocked(Token),
}

/// Something a sub-operator waits for; the worker does other work until it is ready.
#[derive(Debug, Clone, Default)]
pub struct Token {
    inner: Arc<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    ready: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Token {
    /// A token that is not ready.
    pub fn new() -> Self {
        Token::default()
    }

    /// Whether what was waited for has come.
    pub fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// Whether no one else has it any more.
    pub fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// Says that it has come.
    pub fn set_ready(&self) {
        self.inner.ready.store(true, Ordering::Release);
        drop(lock(&self.inner.lock));
        self.inner.changed.notify_all();
    }

    /// Waits at most this long; only for a caller that has nothing else to do.
    pub fn wait(&self, at_most: Duration) {
        let guard = lock(&self.inner.lock);
        if !self.is_ready() {
            drop(self.inner.changed.wait_timeout(guard, at_most));
        }
    }
}

/// Figures a sub-operator adds to the profile, by name.
#[derive(Debug, Default)]
pub struct Counters {
    values: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Adds to a figure. Not for every chunk: it takes a lock.
    pub fn add(&self, name: &'static str, amount: u64) {
        *lock(&self.values).entry(name).or_default() += amount;
    }

    /// Adds to a figure that another process tells by name.
    pub fn add_told(&self, name: &str, amount: u64) {
        /// Names that were told: few, as both processes run one program.
        static TOLD: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        const TOLD_MAX: usize = 1_000;
        let mut told = lock(&TOLD);
        let known = match told.get(name) {
            Some(known) => known,
            None if told.len() == TOLD_MAX => return,
            None => {
                let kept: &'static str = Box::leak(name.into());
                told.insert(kept);
                kept
            }
        };
        self.add(known, amount);
    }

    /// The figures so far.
    pub fn get(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.values).clone()
    }
}

/// One run of one node: the query's context, the parameter tuple, the node's counters.
#[derive(Debug, Clone)]
pub struct Run {
    /// The query.
    pub context: Arc<dyn Context>,
    /// The type of the parameter tuple.
    pub parameter_tuple: Tuple,
    /// The parameter tuple: one row; what ParameterLookup yields.
    pub parameters: Chunk,
    /// The node's figures.
    pub counters: Arc<Counters>,
    /// What nodes tell others further up their stream.
    pub board: Arc<Board>,
    /// The node's nested plans, where it has some: `NestedPlans` of the room of operators, which
    /// this room cannot name.
    pub nested: Option<Arc<dyn Any + Send + Sync>>,
}

impl Run {
    /// A run without parameters and nested plans.
    pub fn of(context: Arc<dyn Context>) -> Run {
        Run {
            context,
            parameter_tuple: Tuple::empty(),
            parameters: Chunk::unit(),
            counters: Arc::default(),
            board: Arc::default(),
            nested: None,
        }
    }

    /// Opens a file or object; what reading it costs counts for the node.
    ///
    /// # Errors
    /// As [`Context::open`].
    pub fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        let reader = self.context.open(path)?;
        if !reader.is_remote() {
            return Ok(reader);
        }
        Ok(Arc::new(Counted { reader, counters: self.counters.clone() }))
    }
}

/// A reader that adds what it has cost to a node's counters when it is dropped.
#[derive(Debug)]
struct Counted {
    reader: Arc<dyn RangeReader>,
    counters: Arc<Counters>,
}

impl RangeReader for Counted {
    fn path(&self) -> &str {
        self.reader.path()
    }

    fn len(&self) -> u64 {
        self.reader.len()
    }

    fn is_remote(&self) -> bool {
        self.reader.is_remote()
    }

    fn read_into(&self, range: Range<u64>, buffer: ReadBuffer) -> Result<Read> {
        self.reader.read_into(range, buffer)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        self.reader.prefetch(ranges)
    }

    fn traffic(&self) -> Traffic {
        self.reader.traffic()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let traffic = self.reader.traffic();
        if traffic != Traffic::default() {
            self.counters.add("store_requests", traffic.requests);
            self.counters.add("store_bytes", traffic.bytes);
            self.counters.add("store_wait_nanoseconds", traffic.wait_nanoseconds);
        }
    }
}

/// Memory held by one piece of state; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    context: Arc<dyn Context>,
    place: Place,
    bytes: usize,
}

impl Reservation {
    /// Holds nothing yet, and later memory of the host.
    pub fn new(context: Arc<dyn Context>) -> Self {
        Reservation::on(Place::Host, context)
    }

    /// Holds nothing yet, and later memory of this place.
    pub fn on(place: Place, context: Arc<dyn Context>) -> Self {
        Reservation { context, place, bytes: 0 }
    }

    /// Holds `bytes` from now on, more or less than before.
    ///
    /// # Errors
    /// The budget is exhausted; what was held before is still held.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.context.grow(self.place, bytes - self.bytes)?;
        } else {
            self.context.shrink(self.place, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Holds `bytes` more.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// How much is held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The query whose budget it counts against.
    pub fn context(&self) -> Arc<dyn Context> {
        self.context.clone()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.context.shrink(self.place, self.bytes);
    }
}
