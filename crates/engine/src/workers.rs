//! State shared by the workers of an engine: the runs in progress, and the signal that wakes idle
//! workers.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tessera_types::Result;

use crate::execution::{Execution, JobOutcome};
use crate::scheduler::Scheduler;
use crate::work_signal::WorkSignal;

/// How long an idle worker sleeps while a parked lane may become ready without a notification. The
/// time doubles after each unsuccessful look, up to the maximum below.
const PARKED_WAIT: Duration = Duration::from_micros(200);
const PARKED_WAIT_MAX: Duration = Duration::from_millis(1);

/// State shared by all workers.
#[derive(Debug)]
pub(crate) struct Shared {
    turns: Scheduler,
    signal: Arc<WorkSignal>,
    ending: AtomicBool,
    workers: AtomicUsize,
}

thread_local! {
    /// The engine of this thread and its worker number; the number is `None` in the thread that
    /// called a run.
    static WORKER: RefCell<Option<(Weak<Shared>, Option<usize>)>> = const { RefCell::new(None) };
}

impl Shared {
    /// State for `workers` threads.
    pub(crate) fn new(workers: usize) -> Arc<Shared> {
        let signal = Arc::<WorkSignal>::default();
        Arc::new(Shared {
            turns: Scheduler::new(signal.clone()),
            signal,
            ending: AtomicBool::new(false),
            workers: AtomicUsize::new(workers),
        })
    }

    /// The engine of the calling thread, and the worker number if the thread is a worker.
    pub(crate) fn of_this_thread() -> Option<(Arc<Shared>, Option<usize>)> {
        WORKER.with_borrow(|worker| {
            let (shared, worker) = worker.as_ref()?;
            Some((shared.upgrade()?, *worker))
        })
    }

    /// Calls `work` as the caller of a run: nested plans find the engine and see that this thread
    /// is not a worker.
    pub(crate) fn as_caller<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = WORKER.replace(Some((Arc::downgrade(self), None)));
        let done = work();
        WORKER.set(before);
        done
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Runs an execution with all workers while the calling thread, which is not a worker, waits.
    pub(crate) fn run_waiting(self: &Arc<Self>, execution: &Arc<Execution>) {
        self.add(execution);
        execution.wait();
        self.turns.remove(execution);
    }

    /// Runs an execution with all workers. The calling worker takes part instead of waiting.
    pub(crate) fn run_taking_part(
        self: &Arc<Self>,
        execution: &Arc<Execution>,
        worker: usize,
    ) -> Result<()> {
        self.add(execution);
        while !execution.is_finished() {
            let seen = self.signal.notices();
            match execution.work_once(worker) {
                JobOutcome::Job | JobOutcome::Finished => {}
                JobOutcome::Nothing => self.signal.sleep(seen, None),
                JobOutcome::Parked => self.signal.sleep(seen, Some(PARKED_WAIT)),
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

    /// Wakes every sleeping worker.
    pub(crate) fn notify(&self) {
        self.signal.notify();
    }

    /// Ends all workers.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.notify();
    }

    /// The main loop of a worker.
    pub(crate) fn work(self: Arc<Self>, worker: usize) {
        WORKER.set(Some((Arc::downgrade(&self), Some(worker))));
        let mut parked_wait = PARKED_WAIT;
        loop {
            // Read the counter before the state: a notification that comes later ends the sleep
            // below.
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
                    JobOutcome::Job => {
                        self.turns.had(turn, started.elapsed());
                        worked = true;
                        break;
                    }
                    JobOutcome::Parked => parked = true,
                    JobOutcome::Nothing | JobOutcome::Finished => {}
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
