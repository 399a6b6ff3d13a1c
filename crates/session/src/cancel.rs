//! Ending the running statement from any thread, and how far it is.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tessera_context::{Interrupt, lock};
use tessera_engine::RunRecord;
use tessera_objects::Timeouts;

use crate::storage::Storage;

/// Ends what a session is doing, from any thread, and tells how far it is.
#[derive(Debug, Clone)]
pub struct Cancel {
    running: Arc<Mutex<Running>>,
    /// Ends the statement, whatever it is at.
    pub(crate) interrupt: Arc<Interrupt>,
}

#[derive(Debug, Default)]
pub(crate) struct Running {
    since: Option<Instant>,
    pub(crate) record: Option<Arc<RunRecord>>,
    /// For memory.
    pub(crate) waiting: bool,
    /// Each statement ends as soon as it has begun.
    all_end: bool,
    pub(crate) stopped: Option<Stopped>,
}

/// How the last plan that failed or was cancelled came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Bytes of its budget that it still held when its statement returned: 0.
    pub held_bytes: usize,
    /// The last thing that was done for it, and how long that took.
    pub last: String,
}

/// How far the running statement is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// It waits for others to give memory back.
    pub waiting: bool,
    /// Morsels done, in all pipelines that have begun.
    pub morsels_done: u64,
    /// Morsels there are, in all pipelines that have begun.
    pub morsels: u64,
}

impl Cancel {
    /// Ends the running statement; whether there is one. One whose last row is there, but not read,
    /// ends as it would have.
    pub fn cancel(&self) -> bool {
        // The lock is held meanwhile: a statement that begins cannot forget it.
        let running = lock(&self.running);
        self.interrupt.cancel();
        running.since.is_some()
    }

    /// Ends the running statement and each that begins after it.
    pub fn cancel_all(&self) {
        let mut running = lock(&self.running);
        running.all_end = true;
        self.interrupt.cancel();
    }

    /// How the last statement ended, where it did before its time.
    pub fn stopped(&self) -> Option<Stopped> {
        lock(&self.running).stopped.clone()
    }

    /// How far the running statement is; nothing while none runs.
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

    /// The handle of a session whose waits this ends.
    pub(crate) fn new(interrupt: Arc<Interrupt>) -> Cancel {
        Cancel { running: Arc::default(), interrupt }
    }

    /// A statement begins.
    pub(crate) fn begin(
        &self,
        storage: &Storage,
        since: Instant,
        (deadline, timeouts): (Option<Duration>, Timeouts),
        temp_directory: &Path,
    ) -> Registered {
        self.set(|running| {
            storage.begin(deadline, timeouts, temp_directory);
            if running.all_end {
                self.interrupt.cancel();
            }
            *running =
                Running { since: Some(since), all_end: running.all_end, ..Running::default() };
        });
        Registered(self.clone())
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Running)) {
        change(&mut lock(&self.running));
    }
}

/// A statement is the one to cancel for as long as this lives.
#[derive(Debug)]
pub(crate) struct Registered(Cancel);

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.set(|running| {
            let (stopped, all_end) = (running.stopped.take(), running.all_end);
            *running = Running { stopped, all_end, ..Running::default() };
        });
    }
}
