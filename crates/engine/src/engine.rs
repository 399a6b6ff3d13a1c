//! The engine: one worker thread per core, and what they work on.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tessera_context::{Context, lock};
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::execution::{Execution, Worked};
use crate::program::Program;
use crate::query::Query;
use crate::query_run::QueryRun;
use crate::turns::Turns;

/// Stack of a worker: expressions are walked recursively, to `EXPR_DEPTH_MAX` levels. Only what is touched becomes memory.
const WORKER_STACK_BYTES: usize = 256 << 20;

/// How long an idle worker sleeps when a parked lane may become ready without a notice; twice as long each time that it has
/// not, up to the second.
const PARKED_WAIT: Duration = Duration::from_micros(200);
const PARKED_WAIT_MAX: Duration = Duration::from_millis(1);

/// Worker threads. Dropping it ends them.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    turns: Turns,
    /// Counts notices, so that a worker that looked and found nothing does not miss one.
    notices: AtomicU64,
    lock: Mutex<()>,
    wake: Condvar,
    ending: AtomicBool,
    workers: AtomicUsize,
}

thread_local! {
    /// The engine that the thread works in, and as which worker; none where it is the caller of a run.
    static WORKER: RefCell<Option<(Weak<Shared>, Option<usize>)>> = const { RefCell::new(None) };
}

impl Engine {
    /// Starts this many workers.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(workers: usize) -> Result<Engine> {
        let shared = Arc::new(Shared {
            turns: Turns::default(),
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

    /// Runs a program and waits for its result. The calling thread does no work of sub-operators meanwhile, other than to begin
    /// and end that of an executor: a worker that waited for it would be kept from other queries. Any number of threads may
    /// call; their queries share the workers evenly.
    ///
    /// # Errors
    /// The first error of any sub-operator; all others are stopped.
    pub fn run(&self, program: &Arc<Program>, query: Arc<Query>) -> Result<Arc<Collected>> {
        let context = self.context(program, query);
        let execution = Execution::new(program.clone(), Chunk::unit(), context, self.workers(), None)?;
        if program.is_executor() {
            self.shared.as_caller(|| execution.run_alone())?;
        } else {
            self.shared.run_waiting(&execution);
        }
        execution.take_result()
    }

    /// Starts a program whose result is read while it comes. As [`Engine::run`] otherwise: the jobs of an executor are done by
    /// the thread that reads.
    ///
    /// # Errors
    /// The plan is damaged.
    pub fn start(&self, program: &Arc<Program>, query: Arc<Query>) -> Result<QueryRun> {
        let context = self.context(program, query);
        QueryRun::start(&self.shared, program, Chunk::unit(), context, program.is_executor())
    }

    fn context(&self, program: &Program, query: Arc<Query>) -> Arc<dyn Context> {
        query.workers.store(self.workers(), Ordering::Relaxed);
        query.expect_states(program.spilling_states());
        query
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
    /// The engine the calling thread belongs to, and which worker of it it is, if any.
    pub(crate) fn of_this_thread() -> Option<(Arc<Shared>, Option<usize>)> {
        WORKER.with_borrow(|worker| {
            let (shared, worker) = worker.as_ref()?;
            Some((shared.upgrade()?, *worker))
        })
    }

    /// Does something as the caller of a run: nested plans find the engine, and that this thread is none of its workers.
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
        self.turns.remove(execution);
        Ok(())
    }

    pub(crate) fn remove(&self, execution: &Arc<Execution>) {
        self.turns.remove(execution);
    }

    pub(crate) fn add(self: &Arc<Self>, execution: &Arc<Execution>) {
        execution.attach(self);
        self.turns.add(execution);
        self.notify();
    }

    /// Whether several runs are in progress.
    pub(crate) fn crowded(&self) -> bool {
        self.turns.crowded()
    }

    /// Wakes every sleeping worker: there may be work.
    pub(crate) fn notify(&self) {
        self.notices.fetch_add(1, Ordering::AcqRel);
        drop(lock(&self.lock));
        self.wake.notify_all();
    }

    /// Sleeps until there is a notice after the `seen`-th.
    fn sleep(&self, seen: u64, at_most: Option<Duration>) {
        let mut guard = lock(&self.lock);
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

    /// A worker's life.
    fn work(self: Arc<Self>, worker: usize) {
        WORKER.set(Some((Arc::downgrade(&self), Some(worker))));
        let mut parked_wait = PARKED_WAIT;
        while !self.ending.load(Ordering::Acquire) {
            let seen = self.notices.load(Ordering::Acquire);
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
                self.sleep(seen, parked.then_some(parked_wait));
                parked_wait = (parked_wait * 2).min(PARKED_WAIT_MAX);
            }
        }
    }
}
