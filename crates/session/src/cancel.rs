//! Cancellation of the running statement from any thread, and its progress.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tessera_context::{Interrupt, lock};
use tessera_engine::RunRecord;
use tessera_objects::Timeouts;

use crate::storage::Storage;

/// Cancels the statement of a session from any thread, and reports its progress.
#[derive(Debug, Clone)]
pub struct Cancel {
    running: Arc<Mutex<RunningStatement>>,
    /// Interrupts the statement in all its phases.
    pub(crate) interrupt: Arc<Interrupt>,
}

/// The state of the running statement, empty between statements.
#[derive(Debug, Default)]
pub(crate) struct RunningStatement {
    since: Option<Instant>,
    pub(crate) record: Option<Arc<RunRecord>>,
    /// Whether the statement waits for memory.
    pub(crate) waiting: bool,
    /// Whether every later statement is cancelled as soon as it begins.
    cancel_all: bool,
    pub(crate) stopped: Option<StopReport>,
}

/// How the last failed or cancelled plan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReport {
    /// Bytes of its budget that it held when its statement returned: 0 unless memory leaks.
    pub held_bytes: usize,
    /// Its last job and the time that took.
    pub last: String,
}

/// The progress of the running statement.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Whether it waits for other statements to release memory.
    pub waiting: bool,
    /// Finished morsels of all started pipelines.
    pub morsels_done: u64,
    /// All morsels of all started pipelines.
    pub morsels: u64,
}

impl Cancel {
    /// Cancels the running statement and returns whether there was one. A statement whose last row
    /// is ready but not yet read ends normally.
    pub fn cancel(&self) -> bool {
        // Holding the lock prevents a starting statement from missing the cancellation.
        let running = lock(&self.running);
        self.interrupt.cancel();
        running.since.is_some()
    }

    /// Cancels the running statement and every later one.
    pub fn cancel_all(&self) {
        let mut running = lock(&self.running);
        running.cancel_all = true;
        self.interrupt.cancel();
    }

    /// How the last statement ended, if it failed or was cancelled.
    pub fn stopped(&self) -> Option<StopReport> {
        lock(&self.running).stopped.clone()
    }

    /// The progress of the running statement, if one is running.
    pub fn progress(&self) -> Option<Progress> {
        let running = lock(&self.running);
        let elapsed = running.since?.elapsed();
        let (morsels_done, morsels) = match (&running.record, running.waiting) {
            (Some(record), _) => record.progress(),
            (None, true) => (0, 0),
            (None, false) => return None,
        };
        Some(Progress { elapsed, waiting: running.waiting, morsels_done, morsels })
    }

    /// The handle of a session with this interrupt.
    pub(crate) fn new(interrupt: Arc<Interrupt>) -> Cancel {
        Cancel { running: Arc::default(), interrupt }
    }

    /// Begins a statement, which is the running one until the guard is dropped.
    pub(crate) fn begin(
        &self,
        storage: &Storage,
        since: Instant,
        (deadline, timeouts): (Option<Duration>, Timeouts),
        temp_directory: &Path,
    ) -> RunningGuard {
        self.set(|running| {
            storage.begin(deadline, timeouts, temp_directory);
            if running.cancel_all {
                self.interrupt.cancel();
            }
            *running = RunningStatement {
                since: Some(since),
                cancel_all: running.cancel_all,
                ..RunningStatement::default()
            };
        });
        RunningGuard(self.clone())
    }

    /// Changes the state of the running statement.
    pub(crate) fn set(&self, change: impl FnOnce(&mut RunningStatement)) {
        change(&mut lock(&self.running));
    }
}

/// Marks a statement as the running one until dropped.
#[derive(Debug)]
pub(crate) struct RunningGuard(Cancel);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.set(|running| {
            let (stopped, cancel_all) = (running.stopped.take(), running.cancel_all);
            *running = RunningStatement { stopped, cancel_all, ..RunningStatement::default() };
        });
    }
}
