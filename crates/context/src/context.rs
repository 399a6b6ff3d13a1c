//! Services that a run offers to its sub-operators: memory, cancellation, counters, and files.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tessera_codegen::Compiler;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use crate::board::Board;
use crate::compression::Compression;
use crate::counting::CountingReader;
use crate::read_buffer::ReadBuffer;
use crate::rejects::Rejects;

/// Locks a mutex and ignores poisoning: a panic under the lock becomes an error of its own query,
/// and later queries are unaffected.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The default number of lanes of a pipeline that may wait for input at once, per worker; a device
/// may choose another one. Each lane has its own state in every stream and in the sink.
pub const LANES: usize = 8;

/// A kind of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// Memory of the process, limited by the query's budget.
    #[default]
    Host,
    /// Buffers on a device, limited by the size of the device.
    Device,
}

/// Services that the engine offers to a query; implemented by `engine`.
pub trait Context: Send + Sync + std::fmt::Debug {
    /// Reserves `bytes` more in a place. Host memory counts against the query's budget.
    ///
    /// # Errors
    /// The budget is exhausted; nothing was reserved.
    fn grow(&self, place: Place, bytes: usize) -> Result<()>;

    /// Releases reserved bytes.
    fn shrink(&self, place: Place, bytes: usize);

    /// Fails if the query was cancelled. Operators call it at least once per chunk and in long
    /// loops.
    fn check(&self) -> Result<()>;

    /// The maximum number of tuples in a chunk.
    fn chunk_rows(&self) -> usize;

    /// The maximum number of workers that run at once.
    fn workers(&self) -> usize;

    /// The maximum number of lanes of a pipeline that wait for input at once, for each worker.
    fn lanes(&self) -> usize {
        LANES
    }

    /// The query's memory budget in bytes.
    fn memory_bytes(&self) -> usize {
        usize::MAX
    }

    /// Whether spillable state that holds `held` bytes may reserve `more`. If not, the caller
    /// spills first. State that cannot spill calls only [`Context::grow`].
    fn may_hold(&self, _held: usize, _more: usize) -> bool {
        true
    }

    /// Announces the first spillable state. Until then a share of the budget is set aside for it.
    fn begin_spillable_state(&self) {}

    /// Creates a spill file. It is deleted with its last reference, however the process ends.
    ///
    /// # Errors
    /// No scratch directory is configured, or it is not writable.
    fn scratch(&self) -> Result<Arc<dyn Scratch>> {
        Err(Error::unsupported("cannot spill to disk: this run has no scratch directory"))
    }

    /// The compiler of this run; `None` in the vectorized tier.
    fn compiler(&self) -> Option<&Arc<dyn Compiler>> {
        None
    }

    /// The share of the leaves' morsels that this process reads when several processes run one
    /// plan.
    fn share(&self) -> Share {
        Share::default()
    }

    /// Opens a file or object.
    ///
    /// # Errors
    /// It does not exist or cannot be read; the message names it.
    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>>;

    /// Opens a file or object with this compression, whatever its name ends in.
    ///
    /// # Errors
    /// As [`Context::open`], or its bytes are not compressed so.
    fn open_as(
        &self,
        path: &str,
        compression: Option<Compression>,
    ) -> Result<Arc<dyn RangeReader>> {
        match compression == Compression::of_path(path) {
            true => self.open(path),
            false => Err(Error::unsupported(format!(
                "cannot read '{path}' with another compression than that of its name: this run has no storage for it"
            ))),
        }
    }

    /// The list of the records that scans skip; `None` if it is not read.
    fn rejects(&self) -> Option<&Rejects> {
        None
    }

    /// Creates a file or object that becomes visible, complete, when it is committed.
    ///
    /// # Errors
    /// The path is not writable, or this run has no storage to write to.
    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        Err(Error::unsupported(format!(
            "cannot write '{path}': this run has no storage to write to"
        )))
    }

    /// Begins a folder of files that become visible, complete, when the folder is committed.
    ///
    /// # Errors
    /// The path is not writable, its files do not permit the mode, or this run cannot write
    /// folders.
    fn create_folder(&self, path: &str, _mode: FolderMode) -> Result<Box<dyn OutputFolder>> {
        Err(Error::unsupported(format!(
            "cannot write the folder '{path}': this run has no storage for folders"
        )))
    }
}

/// A spill file, written and read by several workers at once.
pub trait Scratch: Send + Sync + std::fmt::Debug {
    /// Appends bytes and returns their offset.
    ///
    /// # Errors
    /// The file system is full or unavailable; the message says what to do.
    fn append(&self, bytes: &[u8]) -> Result<u64>;

    /// Reads bytes that were appended.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read(&self, start: u64, len: usize) -> Result<Vec<u8>>;
}

/// One of `count` equal shares of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The index of this share, from 0. An index of `count` or more means an empty share.
    pub index: usize,
    /// The number of shares.
    pub count: usize,
}

impl Default for Share {
    /// The whole input.
    fn default() -> Self {
        Share { index: 0, count: 1 }
    }
}

/// A file or object being written. Dropped without [`Output::commit`], it leaves nothing behind.
pub trait Output: std::io::Write + Send + std::fmt::Debug {
    /// Makes the output visible, complete and durable.
    ///
    /// # Errors
    /// The output could not be written; nothing is left behind.
    fn commit(self: Box<Self>) -> Result<()>;

    /// Whether written bytes are visible at once and cannot be taken back.
    fn is_stream(&self) -> bool {
        false
    }
}

/// What happens to the files that a folder has before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderMode {
    /// The folder must be absent or empty.
    New,
    /// Its data files are removed.
    Overwrite,
    /// Files of the same names are replaced; others stay.
    Replace,
    /// All files stay; one of the same name is an error.
    Append,
}

/// A folder being written. Dropped without [`OutputFolder::commit`], it leaves nothing behind.
pub trait OutputFolder: Send + std::fmt::Debug {
    /// Starts a file by its path within the folder. When the file is committed, it is complete, but
    /// not visible before the folder is committed.
    ///
    /// # Errors
    /// The file cannot be written.
    fn create(&mut self, name: &str) -> Result<Box<dyn Output>>;

    /// Makes all files visible.
    ///
    /// # Errors
    /// A file cannot be moved to its place.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// Returns the error for a file or object that changed while a statement read it.
pub fn file_changed(path: &str) -> Error {
    Error::data(format!("'{path}' changed while it was read; run the statement again"))
}

/// A file or object that is read by byte ranges; implemented by storage.
pub trait RangeReader: Send + Sync + std::fmt::Debug {
    /// The name used in messages.
    fn path(&self) -> &str;

    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of the last change, if it is known.
    fn modified(&self) -> Option<SystemTime> {
        None
    }

    /// Whether a read takes far longer than decoding its bytes, so that few large reads are better
    /// than many small ones.
    fn is_remote(&self) -> bool {
        false
    }

    /// Reads a range into `buffer`, or replaces it by bytes that are in memory already (such as
    /// those of a store). Returns a token if the bytes are not there yet; the caller retries when
    /// it is ready.
    ///
    /// # Errors
    /// The range lies outside the file or cannot be read.
    fn read_into(&self, range: Range<u64>, buffer: ReadBuffer) -> Result<Read>;

    /// Announces the ranges that will be read next, in this order, so that they can be fetched
    /// concurrently. Ranges that are never read are dropped with the reader.
    ///
    /// # Errors
    /// A range lies outside the file.
    fn prefetch(&self, _ranges: &[Range<u64>]) -> Result<()> {
        Ok(())
    }

    /// The cost of all reads so far.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// The cost of reading from a store, for the profile; zero for local files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The number of requests.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Time from requesting a range to receiving it, summed over ranges, which may overlap in time.
    pub wait_nanoseconds: u64,
}

/// The result of a read.
#[derive(Debug)]
pub enum Read {
    /// The bytes.
    Ready(ReadBuffer),
    /// The bytes are not there yet: retry when the token is ready.
    Blocked(Token),
}

/// An event that a sub-operator waits for. The worker does other work until it is ready.
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
    /// Creates a token that is not ready.
    pub fn new() -> Self {
        Token::default()
    }

    /// Whether the event has happened.
    pub fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// Whether this is the last reference to the token.
    pub fn is_last_reference(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// Marks the event as happened and wakes all waiting threads.
    pub fn set_ready(&self) {
        self.inner.ready.store(true, Ordering::Release);
        drop(lock(&self.inner.lock));
        self.inner.changed.notify_all();
    }

    /// Blocks the thread for at most this long. Only for callers that have no other work.
    pub fn wait(&self, at_most: Duration) {
        let guard = lock(&self.inner.lock);
        if !self.is_ready() {
            drop(self.inner.changed.wait_timeout(guard, at_most));
        }
    }
}

/// Named counters that a sub-operator adds to the profile.
#[derive(Debug, Default)]
pub struct Counters {
    values: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Adds to a counter. It takes a lock, so do not call it for every chunk.
    pub fn add(&self, name: &'static str, amount: u64) {
        *lock(&self.values).entry(name).or_default() += amount;
    }

    /// Adds to a counter of another process. Names beyond a limit are ignored.
    pub fn add_by_name(&self, name: &str, amount: u64) {
        /// Names received so far. There are few: both processes run the same program.
        static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        const NAMES_MAX: usize = 1_000;
        let mut names = lock(&NAMES);
        let known = match names.get(name) {
            Some(known) => known,
            None if names.len() == NAMES_MAX => return,
            None => {
                let leaked: &'static str = Box::leak(name.into());
                names.insert(leaked);
                leaked
            }
        };
        self.add(known, amount);
    }

    /// Returns the current values.
    pub fn get(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.values).clone()
    }
}

/// One run of one node: the query's context, the parameter tuple, and the node's counters.
#[derive(Debug, Clone)]
pub struct Run {
    /// The query.
    pub context: Arc<dyn Context>,
    /// The type of the parameter tuple.
    pub parameter_tuple: Tuple,
    /// The parameter tuple, as a chunk of one row; `ParameterLookup` returns it.
    pub parameters: Chunk,
    /// The node's counters.
    pub counters: Arc<Counters>,
    /// Values that nodes publish for other nodes of the plan.
    pub board: Arc<Board>,
    /// The node's nested plans, if it has any: `NestedPlans` of the `operator` crate, a type that
    /// this crate cannot name.
    pub nested: Option<Arc<dyn Any + Send + Sync>>,
}

impl Run {
    /// Creates a run without parameters or nested plans.
    pub fn new(context: Arc<dyn Context>) -> Run {
        Run {
            context,
            parameter_tuple: Tuple::empty(),
            parameters: Chunk::unit(),
            counters: Arc::default(),
            board: Arc::default(),
            nested: None,
        }
    }

    /// Opens a file or object and adds the cost of reading it to the node's counters.
    ///
    /// # Errors
    /// As [`Context::open`].
    pub fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        self.context.open(path).map(|reader| self.counted(reader))
    }

    /// Like [`Run::open`], with this compression, whatever the name of the file ends in.
    ///
    /// # Errors
    /// As [`Context::open_as`].
    pub fn open_as(
        &self,
        path: &str,
        compression: Option<Compression>,
    ) -> Result<Arc<dyn RangeReader>> {
        self.context.open_as(path, compression).map(|reader| self.counted(reader))
    }

    fn counted(&self, reader: Arc<dyn RangeReader>) -> Arc<dyn RangeReader> {
        match reader.is_remote() {
            true => Arc::new(CountingReader { reader, counters: self.counters.clone() }),
            false => reader,
        }
    }
}

/// A memory reservation of one piece of state; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    context: Arc<dyn Context>,
    place: Place,
    bytes: usize,
}

impl Reservation {
    /// Creates an empty reservation of host memory.
    pub fn new(context: Arc<dyn Context>) -> Self {
        Reservation::on(Place::Host, context)
    }

    /// Creates an empty reservation of memory in a place.
    pub fn on(place: Place, context: Arc<dyn Context>) -> Self {
        Reservation { context, place, bytes: 0 }
    }

    /// Sets the size of the reservation.
    ///
    /// # Errors
    /// The budget is exhausted; the reservation is unchanged.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.context.grow(self.place, bytes - self.bytes)?;
        } else {
            self.context.shrink(self.place, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Adds `bytes` to the reservation.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// The size of the reservation.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The query that this reservation counts against.
    pub fn context(&self) -> Arc<dyn Context> {
        self.context.clone()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.context.shrink(self.place, self.bytes);
    }
}
