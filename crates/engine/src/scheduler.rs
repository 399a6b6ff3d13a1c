//! Fair scheduling: the runs in progress share the workers by the time that each has used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tessera_context::lock;

use crate::execution::Execution;
use crate::work_signal::WorkSignal;

/// How far behind the others a run can fall while it has no work, in nanoseconds.
const BEHIND_MAX_NANOSECONDS: u64 = 20_000_000;

/// A run and the time that workers have spent on it.
pub(crate) struct ScheduledRun {
    pub(crate) execution: Arc<Execution>,
    used_nanoseconds: AtomicU64,
}

/// All runs in progress.
pub(crate) struct Scheduler {
    turns: Mutex<Vec<Arc<ScheduledRun>>>,
    /// Learns the number of runs.
    signal: Arc<WorkSignal>,
    /// Time used by the run that was scheduled last. A new run starts from here.
    clock_nanoseconds: AtomicU64,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl Scheduler {
    pub(crate) fn new(signal: Arc<WorkSignal>) -> Scheduler {
        Scheduler { turns: Mutex::default(), signal, clock_nanoseconds: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, execution: &Arc<Execution>) {
        let used_nanoseconds = AtomicU64::new(self.clock_nanoseconds.load(Ordering::Relaxed));
        let mut turns = lock(&self.turns);
        turns.push(Arc::new(ScheduledRun { execution: execution.clone(), used_nanoseconds }));
        self.signal.set_runs(turns.len());
    }

    pub(crate) fn remove(&self, execution: &Arc<Execution>) {
        let mut turns = lock(&self.turns);
        turns.retain(|other| !Arc::ptr_eq(&other.execution, execution));
        self.signal.set_runs(turns.len());
    }

    /// All runs, the one with the least time used first. Among equals the newest comes first: it
    /// may be short.
    pub(crate) fn in_order(&self) -> Vec<Arc<ScheduledRun>> {
        let mut turns = lock(&self.turns).clone();
        turns.reverse();
        turns.sort_by_key(|turn| turn.used_nanoseconds.load(Ordering::Relaxed));
        turns
    }

    /// Adds the time that a worker has spent on a run.
    pub(crate) fn had(&self, turn: &ScheduledRun, took: Duration) {
        let clock = self.clock_nanoseconds.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let before = turn
            .used_nanoseconds
            .fetch_max(clock.saturating_sub(BEHIND_MAX_NANOSECONDS), Ordering::Relaxed);
        turn.used_nanoseconds.fetch_add(took, Ordering::Relaxed);
        self.clock_nanoseconds.fetch_max(before, Ordering::Relaxed);
    }
}
