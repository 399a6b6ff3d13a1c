//! What the workers of an engine share: the runs in progress, and the signals that wake idle
//! workers.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tessera_types::Result;

use crate::execution::{Execution, Worked};
use crate::turns::Turns;
use crate::work_signal::WorkSignal;

/// How long an idle worker sleeps when a parked lane may become ready without a notice; twice as
/// long each time that it has not, up to the second.
const PARKED_WAIT: Duration = Duration::from_micros(200);
const PARKED_WAIT_MAX: Duration = Duration::from_millis(1);

/// What workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    turns: Turns,
    signal: Arc<WorkSignal>,
    ending: AtomicBool,
    workers: AtomicUsize,
}

thread_local! {
    /// The engine that the thread works in, and as which worker; none where it is the caller of a
    /// run.
    static WORKER: RefCell<Option<(Weak<Shared>, Option<usize>)>> = const { RefCell::new(None) };
}

impl Shared {
    /// For this many workers.
    pub(crate) fn new(workers: usize) -> Arc<Shared> {
        let signal = Arc::<WorkSignal>::default();
        Arc::new(Shared {
            turns: Turns::new(signal.clone()),
            signal,
            ending: AtomicBool::new(false),
            workers: AtomicUsize::new(workers),
        })
    }

    /// The engine the calling thread belongs to, and which worker of it it is, if any.
    pub(crate) fn of_this_thread() -> Option<(Arc<Shared>, Option<usize>)> {
        WORKER.with_borrow(|worker| {
            let (shared, worker) = worker.as_ref()?;
            Some((shared.upgrade()?, *worker))
        })
    }

    /// Does something as the caller of a run: nested plans find the engine, and that this thread is
    /// none of its workers.
    pub(crate) fn as_caller<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = WORKER.replace(Some((Arc::downgrade(self), None)));
        let done = work();
        WORKER.set(before);
        done
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Runs to the end with all workers, while the calling thread, which is none, waits.
    pub(crate) fn run_waiting(self: &Arc<Self>, execution: &Arc<Execution>) {
        self.add(execution);
        execution.wait();
        self.turns.remove(execution);
    }

    /// Runs to the end with all workers; the calling worker takes part instead of waiting.
    pub(crate) fn run_taking_part(
        self: &Arc<Self>,
        execution: &Arc<Execution>,
        worker: usize,
    ) -> Result<()> {
        self.add(execution);
        while !execution.is_finished() {
            let seen = self.signal.notices();
            match execution.work_once(worker) {
                Worked::Job | Worked::Finished => {}
                Worked::Nothing => self.signal.sleep(seen, None),
                Worked::Parked => self.signal.sleep(seen, Some(PARKED_WAIT)),
            }
        }
        self.turns.remove(execution);
        Ok(())
    }

    pub(crate) fn remove(&self, execution: &Arc<Execution>) {
        self.turns.remove(execution);
    }

    pub(crate) fn add(self: &Arc<Self>, execution: &Arc<Execution>) {
        execution.attach(&self.signal);
        self.turns.add(execution);
        self.notify();
    }

    /// Wakes every sleeping worker: there may be work.
    pub(crate) fn notify(&self) {
        self.signal.notify();
    }

    /// Ends the workers.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.notify();
    }

    /// A worker's life.
    pub(crate) fn work(self: Arc<Self>, worker: usize) {
        WORKER.set(Some((Arc::downgrade(&self), Some(worker))));
        let mut parked_wait = PARKED_WAIT;
        loop {
            // Before all that a notice may change is read: a notice that comes later ends the
            // sleep.
            let seen = self.signal.notices();
            if self.ending.load(Ordering::Acquire) {
                break;
            }
            let turns = self.turns.in_order();
            let mut parked = false;
            let mut worked = false;
            for turn in &turns {
                let started = Instant::now();
                match turn.execution.work_once(worker) {
                    Worked::Job => {
                        self.turns.had(turn, started.elapsed());
                        worked = true;
                        break;
                    }
                    Worked::Parked => parked = true,
                    Worked::Nothing | Worked::Finished => {}
                }
            }
            drop(turns);
            if worked {
                parked_wait = PARKED_WAIT;
            } else {
                self.signal.sleep(seen, parked.then_some(parked_wait));
                parked_wait = (parked_wait * 2).min(PARKED_WAIT_MAX);
            }
        }
    }
}
