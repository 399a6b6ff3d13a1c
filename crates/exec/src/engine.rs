//! The engine: one worker thread per core, and what they work on.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tessera_encodings::Chunk;
use tessera_ops::{Collected, Context};
use tessera_types::{Error, Result};

use crate::execution::{Execution, Worked};
use crate::program::Program;
use crate::query::Query;

/// Stack of a worker: expressions are walked recursively, to `EXPR_DEPTH_MAX` levels.
const WORKER_STACK_BYTES: usize = 64 << 20;

/// How long an idle worker sleeps when a parked lane may become ready without a notice.
const PARKED_WAIT: Duration = Duration::from_micros(200);

/// Worker threads. Dropping it ends them.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What workers share: the runs in progress.
#[derive(Debug)]
pub(crate) struct Shared {
    executions: Mutex<Vec<Arc<Execution>>>,
    /// Counts notices, so that a worker that looked and found nothing does not miss one.
    notices: AtomicU64,
    lock: Mutex<()>,
    wake: Condvar,
    ending: AtomicBool,
    workers: AtomicUsize,
}

thread_local! {
    static WORKER: RefCell<Option<(Weak<Shared>, usize)>> = const { RefCell::new(None) };
}

impl Engine {
    /// Starts this many workers.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(workers: usize) -> Result<Engine> {
        let shared = Arc::new(Shared {
            executions: Mutex::new(Vec::new()),
            notices: AtomicU64::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            ending: AtomicBool::new(false),
            workers: AtomicUsize::new(workers.max(1)),
        });
        let mut engine = Engine { shared: shared.clone(), threads: Vec::new() };
        for worker in 0..workers.max(1) {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .stack_size(WORKER_STACK_BYTES)
                .spawn(move || shared.work(worker))
                .map_err(|error| Error::io(format!("cannot start worker {worker}: {error}")))?;
            engine.threads.push(thread);
        }
        Ok(engine)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.shared.worker_count()
    }

    /// Runs a program and waits for its result. The calling thread does no work meanwhile.
    ///
    /// # Errors
    /// The first error of any sub-operator; all others are stopped.
    pub fn run(&self, program: &Arc<Program>, query: Arc<Query>) -> Result<Arc<Collected>> {
        query.workers.store(self.workers(), Ordering::Relaxed);
        query.expect_states(program.spilling_states());
        let execution =
            Execution::new(program.clone(), Chunk::unit(), query as Arc<dyn Context>, self.workers())?;
        self.shared.add(&execution);
        execution.wait();
        self.shared.remove(&execution);
        execution.take_result()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        self.shared.notify();
        for thread in self.threads.drain(..) {
            // A worker that panicked outside a job has already said so.
            drop(thread.join());
        }
    }
}

impl Shared {
    /// The engine the calling thread is a worker of.
    pub(crate) fn of_this_worker() -> Option<(Arc<Shared>, usize)> {
        WORKER.with_borrow(|worker| {
            let (shared, worker) = worker.as_ref()?;
            Some((shared.upgrade()?, *worker))
        })
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Runs to the end with all workers; the calling worker takes part instead of waiting.
    pub(crate) fn run_taking_part(self: &Arc<Self>, execution: &Arc<Execution>, worker: usize) -> Result<()> {
        self.add(execution);
        while !execution.is_finished() {
            let seen = self.notices.load(Ordering::Acquire);
            match execution.work_once(worker) {
                Worked::Job | Worked::Finished => {}
                Worked::Nothing => self.sleep(seen, None),
                Worked::Parked => self.sleep(seen, Some(PARKED_WAIT)),
            }
        }
        self.remove(execution);
        Ok(())
    }

    fn add(self: &Arc<Self>, execution: &Arc<Execution>) {
        execution.attach(self);
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).push(execution.clone());
        self.notify();
    }

    fn remove(&self, execution: &Arc<Execution>) {
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        executions.retain(|other| !Arc::ptr_eq(other, execution));
    }

    /// Wakes every sleeping worker: there may be work.
    pub(crate) fn notify(&self) {
        self.notices.fetch_add(1, Ordering::AcqRel);
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    /// Sleeps until there is a notice after the `seen`-th.
    fn sleep(&self, seen: u64, at_most: Option<Duration>) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.notices.load(Ordering::Acquire) == seen {
            match at_most {
                Some(at_most) => {
                    drop(self.wake.wait_timeout(guard, at_most));
                    return;
                }
                None => guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// A worker's life. The latest run comes first: it may be a nested one that another waits for.
    fn work(self: Arc<Self>, worker: usize) {
        WORKER.set(Some((Arc::downgrade(&self), worker)));
        while !self.ending.load(Ordering::Acquire) {
            let seen = self.notices.load(Ordering::Acquire);
            let executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut parked = false;
            let mut worked = false;
            for execution in executions.iter().rev() {
                match execution.work_once(worker) {
                    Worked::Job => {
                        worked = true;
                        break;
                    }
                    Worked::Parked => parked = true,
                    Worked::Nothing | Worked::Finished => {}
                }
            }
            drop(executions);
            if !worked {
                self.sleep(seen, parked.then_some(PARKED_WAIT));
            }
        }
    }
}
