//! Signals to workers: there may be work; several runs compete for workers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tessera_context::lock;

/// Wakes the workers of an engine.
#[derive(Debug, Default)]
pub(crate) struct WorkSignal {
    /// Counts notifications, so that a worker that found no work does not miss one.
    notices: AtomicU64,
    lock: Mutex<()>,
    wake: Condvar,
    runs: AtomicUsize,
}

impl WorkSignal {
    /// The number of notifications so far.
    pub(crate) fn notices(&self) -> u64 {
        self.notices.load(Ordering::Acquire)
    }

    /// Wakes every sleeping worker.
    pub(crate) fn notify(&self) {
        self.notices.fetch_add(1, Ordering::AcqRel);
        drop(lock(&self.lock));
        self.wake.notify_all();
    }

    /// Sleeps until a notification after number `seen`, or for `at_most`.
    pub(crate) fn sleep(&self, seen: u64, at_most: Option<Duration>) {
        let mut guard = lock(&self.lock);
        while self.notices() == seen {
            match at_most {
                Some(at_most) => {
                    drop(self.wake.wait_timeout(guard, at_most));
                    return;
                }
                None => guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Sets the number of runs in progress.
    pub(crate) fn set_runs(&self, runs: usize) {
        self.runs.store(runs, Ordering::Relaxed);
    }

    /// Whether several runs are in progress.
    pub(crate) fn crowded(&self) -> bool {
        self.runs.load(Ordering::Relaxed) > 1
    }
}
