//! Whose turn it is: the runs in progress share the workers by the time they have had, whoever came
//! first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tessera_context::lock;

use crate::execution::Execution;
use crate::work_signal::WorkSignal;

/// How much a run that had nothing to do for a while may catch up on the others.
const BEHIND_MAX_NANOSECONDS: u64 = 20_000_000;

/// A run and the time that workers have spent on it.
pub(crate) struct Turn {
    pub(crate) execution: Arc<Execution>,
    used_nanoseconds: AtomicU64,
}

/// All runs in progress.
pub(crate) struct Turns {
    turns: Mutex<Vec<Arc<Turn>>>,
    /// Is told how many there are.
    signal: Arc<WorkSignal>,
    /// What the run that had the last turn had used before: who comes new starts here.
    clock_nanoseconds: AtomicU64,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl Turns {
    pub(crate) fn new(signal: Arc<WorkSignal>) -> Turns {
        Turns { turns: Mutex::default(), signal, clock_nanoseconds: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, execution: &Arc<Execution>) {
        let used_nanoseconds = AtomicU64::new(self.clock_nanoseconds.load(Ordering::Relaxed));
        let mut turns = lock(&self.turns);
        turns.push(Arc::new(Turn { execution: execution.clone(), used_nanoseconds }));
        self.signal.set_runs(turns.len());
    }

    pub(crate) fn remove(&self, execution: &Arc<Execution>) {
        let mut turns = lock(&self.turns);
        turns.retain(|other| !Arc::ptr_eq(&other.execution, execution));
        self.signal.set_runs(turns.len());
    }

    /// All of them, who has had the least first; of equal ones the latest, which may be short.
    pub(crate) fn in_order(&self) -> Vec<Arc<Turn>> {
        let mut turns = lock(&self.turns).clone();
        turns.reverse();
        turns.sort_by_key(|turn| turn.used_nanoseconds.load(Ordering::Relaxed));
        turns
    }

    /// A worker has spent this time on a run.
    pub(crate) fn had(&self, turn: &Turn, took: Duration) {
        let clock = self.clock_nanoseconds.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let before = turn
            .used_nanoseconds
            .fetch_max(clock.saturating_sub(BEHIND_MAX_NANOSECONDS), Ordering::Relaxed);
        turn.used_nanoseconds.fetch_add(took, Ordering::Relaxed);
        self.clock_nanoseconds.fetch_max(before, Ordering::Relaxed);
    }
}
