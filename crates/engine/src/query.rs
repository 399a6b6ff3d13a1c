//! The limits of one query: memory, cancellation, deadline, chunk size.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_codegen::Compiler;
use tessera_context::{
    Compression, Context, FolderMode, Interrupt, LANES, Output, OutputFolder, Place, RangeReader,
    Rejects, Scratch,
};
use tessera_types::{Code, Error, Result};
use tessera_vector::{CHUNK_ROWS, CHUNK_ROWS_MAX};

use crate::admission::{Admission, ByteCount};

/// Opens files and objects by path, compressed in a given way.
pub type FileOpener =
    Arc<dyn Fn(&str, Option<Compression>) -> Result<Arc<dyn RangeReader>> + Send + Sync>;

/// Starts files and objects by path. They appear when they are committed.
pub type FileCreator = Arc<dyn Fn(&str) -> Result<Box<dyn Output>> + Send + Sync>;

/// Starts folders by path.
pub type FolderCreator =
    Arc<dyn Fn(&str, FolderMode) -> Result<Box<dyn OutputFolder>> + Send + Sync>;

/// Creates files for state that leaves memory.
pub type ScratchMaker = Arc<dyn Fn() -> Result<Arc<dyn Scratch>> + Send + Sync>;

/// The share of the budget, in quarters, for state that can leave memory. The rest is for tuples in
/// flight.
const STATE_QUARTERS: usize = 3;
/// The bytes of a budget that states may hold.
fn for_states(bytes: usize) -> usize {
    bytes / 4 * STATE_QUARTERS
}

/// Each state may always hold 1/`FLOOR_SHARE` of the budget divided by the number of states.
const FLOOR_SHARE: usize = 4;

/// The memory budget of a query, within the memory of the process ([`crate::Memory`]) if it was
/// admitted there.
#[derive(Debug)]
pub struct Governor {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    /// Bytes on devices, which no budget limits.
    device_bytes: AtomicUsize,
    device_peak_bytes: AtomicUsize,
    admitted: Option<Admission>,
}

impl Governor {
    /// A budget of this many bytes.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Governor::with(limit_bytes, None)
    }

    /// A budget of this many bytes for an admitted query.
    pub fn within(limit_bytes: usize, admitted: Admission) -> Arc<Self> {
        Governor::with(limit_bytes, Some(admitted))
    }

    fn with(limit_bytes: usize, admitted: Option<Admission>) -> Arc<Self> {
        let zero = || AtomicUsize::new(0);
        Arc::new(Governor {
            limit_bytes,
            used_bytes: zero(),
            peak_bytes: zero(),
            device_bytes: zero(),
            device_peak_bytes: zero(),
            admitted,
        })
    }

    /// No limit.
    pub fn unlimited() -> Arc<Self> {
        Governor::new(usize::MAX)
    }

    /// Bytes in use now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The maximum number of bytes in use at once.
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Bytes in use on devices now.
    pub fn device_bytes(&self) -> usize {
        self.device_bytes.load(Ordering::Relaxed)
    }

    /// The maximum number of bytes in use on devices at once.
    pub fn device_peak_bytes(&self) -> usize {
        self.device_peak_bytes.load(Ordering::Relaxed)
    }

    fn grow_on_device(&self, bytes: usize) {
        let before = self.device_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.device_peak_bytes.fetch_max(before.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Counts bytes of the host's memory.
    ///
    /// # Errors
    /// The budget is exhausted; nothing was counted.
    pub fn grow(&self, bytes: usize) -> Result<()> {
        // A request that can never fit is not counted: the sum would overflow and never decrease
        // again.
        if bytes > self.limit_bytes.min(isize::MAX as usize) {
            return Err(self.too_much(self.used_bytes(), bytes));
        }
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = before.saturating_add(bytes);
        // Counted even if it fails: concurrent requests are counted from here on.
        let fits = self.admitted.as_ref().is_none_or(|admitted| admitted.grew(before, now));
        if now > self.limit_bytes {
            self.shrink(bytes);
            return Err(self.too_much(before, bytes));
        }
        if let (false, Some(admitted)) = (fits, &self.admitted) {
            self.shrink(bytes);
            return Err(Error::new(
                Code::Limit,
                format!(
                    "the memory of this process is spoken for: the query holds {}, {} more asked for, it and the other queries may \
                     hold {}; run it again when they have ended, or give them smaller budgets (SET memory)",
                    ByteCount(before),
                    ByteCount(bytes),
                    ByteCount(admitted.memory().limit_bytes())
                ),
            ));
        }
        self.peak_bytes.fetch_max(now, Ordering::Relaxed);
        Ok(())
    }

    fn too_much(&self, before: usize, bytes: usize) -> Error {
        let (used, more, limit) =
            (ByteCount(before), ByteCount(bytes), ByteCount(self.limit_bytes));
        Error::new(
            Code::Limit,
            format!(
                "the query needs more memory than allowed: {used} in use, {more} more asked for, the limit is {limit}; \
                 raise it with --memory SIZE (or SET memory), or read less"
            ),
        )
    }

    /// Releases counted bytes.
    pub fn shrink(&self, bytes: usize) {
        let before = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(admitted) = &self.admitted {
            admitted.shrank(before, before - bytes);
        }
    }
}

impl Drop for Governor {
    /// Releases what a panic has left counted. Later queries would wait for it.
    fn drop(&mut self) {
        let left = *self.used_bytes.get_mut();
        if let (1.., Some(admitted)) = (left, &self.admitted) {
            admitted.shrank(left, 0);
        }
    }
}

/// The settings of a query.
#[derive(Clone)]
pub struct Settings {
    /// The maximum number of tuples in a chunk: 1 to [`CHUNK_ROWS_MAX`].
    pub chunk_rows: usize,
    /// Ends the query at the next chunk. A session shares it with all its waits.
    pub interrupt: Arc<Interrupt>,
    /// Opens the files that scans name.
    pub opener: FileOpener,
    /// Starts the files that materializing sub-operators write.
    pub creator: FileCreator,
    /// Starts the folders that they write.
    pub folder_creator: FolderCreator,
    /// Creates files for state that exceeds memory. Without it such a query fails.
    pub scratch: Option<ScratchMaker>,
    /// The compiler; `None` in the vectorized tier.
    pub compiler: Option<Arc<dyn Compiler>>,
    /// Lanes of a pipeline that may wait for input at once, for each worker.
    pub lanes: usize,
    /// The list of the records that scans skip; `None` if it is not read.
    pub rejects: Option<Arc<Rejects>>,
}

impl Default for Settings {
    fn default() -> Self {
        let no_opener = |path: &str, _: Option<Compression>| {
            Err(Error::io(format!("cannot open {path}: this query was given no storage")))
        };
        let no_creator = |path: &str| {
            Err(Error::io(format!("cannot write {path}: this query was given no storage")))
        };
        let no_folder = |path: &str, _mode: FolderMode| {
            Err(Error::io(format!("cannot write {path}: this query was given no storage")))
        };
        Settings {
            chunk_rows: CHUNK_ROWS,
            interrupt: Arc::default(),
            opener: Arc::new(no_opener),
            creator: Arc::new(no_creator),
            folder_creator: Arc::new(no_folder),
            scratch: None,
            compiler: None,
            lanes: LANES,
            rejects: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("chunk_rows", &self.chunk_rows)
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

/// One query as its sub-operators see it. Any thread can cancel it.
#[derive(Debug)]
pub struct Query {
    settings: Settings,
    governor: Arc<Governor>,
    pub(crate) workers: AtomicUsize,
    /// The number of states that can leave memory, and of those that have not started.
    states: AtomicUsize,
    states_to_come: AtomicUsize,
}

impl Query {
    /// A query with these settings and this budget.
    pub fn new(settings: Settings, governor: &Arc<Governor>) -> Arc<Self> {
        Arc::new(Query {
            settings,
            governor: governor.clone(),
            workers: AtomicUsize::new(1),
            states: AtomicUsize::new(0),
            states_to_come: AtomicUsize::new(0),
        })
    }

    /// Sets the number of states that can leave memory.
    pub(crate) fn expect_states(&self, states: usize) {
        self.states.store(states, Ordering::Relaxed);
        self.states_to_come.store(states, Ordering::Relaxed);
    }

    /// Ends the query at the next chunk.
    pub fn cancel(&self) {
        self.settings.interrupt.cancel();
    }
}

impl Context for Query {
    fn grow(&self, place: Place, bytes: usize) -> Result<()> {
        match place {
            Place::Host => self.governor.grow(bytes),
            Place::Device => {
                self.governor.grow_on_device(bytes);
                Ok(())
            }
        }
    }

    fn shrink(&self, place: Place, bytes: usize) {
        match place {
            Place::Host => self.governor.shrink(bytes),
            Place::Device => {
                self.governor.device_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }

    fn check(&self) -> Result<()> {
        self.settings.interrupt.check()
    }

    fn chunk_rows(&self) -> usize {
        self.settings.chunk_rows.clamp(1, CHUNK_ROWS_MAX)
    }

    fn memory_bytes(&self) -> usize {
        self.governor.limit_bytes
    }

    fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    fn lanes(&self) -> usize {
        self.settings.lanes
    }

    /// Whether a state may grow. Every state may hold its floor. Beyond it, a state grows as long
    /// as the floors of states to come stay free. If other queries hold the rest of the memory, the
    /// floor is a share of what the query was admitted with.
    fn may_hold(&self, held: usize, more: usize) -> bool {
        if self.settings.scratch.is_none() || self.governor.limit_bytes == usize::MAX {
            return true;
        }
        let states = self.states.load(Ordering::Relaxed).max(1);
        let floor = |bytes: usize| for_states(bytes) / FLOOR_SHARE / states;
        if let Some(admitted) = &self.governor.admitted {
            let memory = admitted.memory();
            if memory.used_bytes().saturating_add(more) > for_states(memory.limit_bytes()) {
                return held + more <= floor(admitted.least_bytes());
            }
        }
        let (limit, to_come) =
            (self.governor.limit_bytes, self.states_to_come.load(Ordering::Relaxed));
        held + more <= floor(limit)
            || self.governor.used_bytes() + more + to_come * floor(limit) <= for_states(limit)
    }

    fn begin_spillable_state(&self) {
        // Nested plans start theirs repeatedly; the count stays at zero then.
        let one_less = |left: usize| left.checked_sub(1);
        let _ = self.states_to_come.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }

    fn scratch(&self) -> Result<Arc<dyn Scratch>> {
        match &self.settings.scratch {
            Some(scratch) => scratch(),
            None => Err(Error::unsupported("this query has no scratch directory")),
        }
    }

    fn compiler(&self) -> Option<&Arc<dyn Compiler>> {
        self.settings.compiler.as_ref()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        (self.settings.opener)(path, Compression::of_path(path))
    }

    fn open_as(
        &self,
        path: &str,
        compression: Option<Compression>,
    ) -> Result<Arc<dyn RangeReader>> {
        (self.settings.opener)(path, compression)
    }

    fn rejects(&self) -> Option<&Rejects> {
        self.settings.rejects.as_deref()
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        (self.settings.creator)(path)
    }

    fn create_folder(&self, path: &str, mode: FolderMode) -> Result<Box<dyn OutputFolder>> {
        (self.settings.folder_creator)(path, mode)
    }
}
