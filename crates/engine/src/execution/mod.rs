//! One run of a compiled plan: which pipelines are ready, which jobs exist, what has failed.
//!
//! A pipeline passes through [`Phase`]s: it waits for its inputs, starts, runs the morsels of its
//! chains, then the morsels of what its streams have left (unmatched build tuples), then the
//! finishing tasks of its sink. One lock guards the state. It is taken once per job, never per
//! chunk.

mod jobs;
mod phases;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tessera_context::{Board, Context, Token, interrupt, lock};
use tessera_operator::{ByteQueue, NestedPlan};
use tessera_plan::NodeId;
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;

use crate::compiled_plan::CompiledPlan;
use crate::last_job::{Kind, LastJob};
use crate::pipeline::{Job, Phase, PipelineState, dependencies};
use crate::record::RunRecord;
use crate::work_signal::WorkSignal;

/// How long a worker waits when it finds only parked lanes.
const PARKED_WAIT: Duration = Duration::from_micros(200);

/// How often a waiting thread checks whether its run was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How long a lane runs while other runs wait for a worker. A morsel can be long: a row group
/// through many joins.
const SLICE: Duration = Duration::from_millis(10);

/// Makes the nested plan of a record for its sub-operator.
pub(crate) type NestedPlanMaker = fn(&Arc<RunRecord>) -> Arc<dyn NestedPlan>;

pub(crate) struct Execution {
    plan: Arc<CompiledPlan>,
    record: Arc<RunRecord>,
    make_nested: NestedPlanMaker,
    parameters: Chunk,
    context: Arc<dyn Context>,
    board: Arc<Board>,
    workers: usize,
    /// The queue of the result, if the result is a stream.
    results: Option<ByteQueue>,
    failed: AtomicBool,
    state: Mutex<State>,
    finished: Condvar,
    /// Wakes the workers of the engine, if the run has workers.
    signal: OnceLock<Arc<WorkSignal>>,
}

struct State {
    pipelines: Vec<PipelineState>,
    jobs_running: usize,
    error: Option<Error>,
    finished: bool,
    /// Tokens that become ready at the end of the run.
    ended: Vec<Token>,
    result: Option<Arc<Collected>>,
}

/// The outcome of one look for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobOutcome {
    /// A job has run.
    Job,
    /// No job is ready.
    Nothing,
    /// No job is ready, and some lanes are parked.
    Parked,
    /// The run has ended.
    Finished,
}

impl State {
    fn end(&mut self) {
        self.finished = true;
        self.ended.drain(..).for_each(|token| token.set_ready());
    }
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl Execution {
    /// A run whose result is collected.
    pub(crate) fn new(
        record: &Arc<RunRecord>,
        parameters: Chunk,
        context: Arc<dyn Context>,
        workers: usize,
        make_nested: NestedPlanMaker,
    ) -> Result<Arc<Execution>> {
        Execution::with_results(record, (parameters, context), workers, make_nested, None)
    }

    /// A run whose result goes to a queue, if there is one.
    pub(crate) fn with_results(
        record: &Arc<RunRecord>,
        (parameters, context): (Chunk, Arc<dyn Context>),
        workers: usize,
        make_nested: NestedPlanMaker,
        results: Option<ByteQueue>,
    ) -> Result<Arc<Execution>> {
        let pipelines = dependencies(record.plan())?;
        let state = State {
            pipelines,
            jobs_running: 0,
            error: None,
            finished: false,
            ended: Vec::new(),
            result: None,
        };
        Ok(Arc::new(Execution {
            plan: record.plan().clone(),
            record: record.clone(),
            make_nested,
            parameters,
            context,
            board: Arc::default(),
            workers,
            results,
            failed: AtomicBool::new(false),
            state: Mutex::new(state),
            finished: Condvar::new(),
            signal: OnceLock::new(),
        }))
    }

    /// Wakes these workers when there is new work.
    pub(crate) fn attach(&self, signal: &Arc<WorkSignal>) {
        self.signal.get_or_init(|| signal.clone());
    }

    /// Runs everything on the calling thread.
    pub(crate) fn run_alone(&self) -> Result<()> {
        loop {
            match self.work_once(0) {
                JobOutcome::Job => {}
                JobOutcome::Finished => return Ok(()),
                JobOutcome::Parked => self.parked_token().unwrap_or_default().wait(PARKED_WAIT),
                JobOutcome::Nothing => {
                    return Err(Error::internal("a run has neither work nor an end"));
                }
            }
        }
    }

    /// Waits for the end of the run; for threads that are not workers. A run that no worker has
    /// started can be cancelled, too.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while !state.finished {
            if matches!(self.parked(&mut state), JobOutcome::Finished) {
                break;
            }
            let waited = self.finished.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Ends a cancelled run that no worker is working on.
    pub(crate) fn check(&self) {
        let mut state = lock(&self.state);
        if !state.finished {
            self.parked(&mut state);
        }
    }

    /// Stops the run and waits until none of its jobs is running.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        if !state.finished {
            self.failed.store(true, Ordering::Relaxed);
            state.error.get_or_insert_with(|| {
                Error::new(Code::Cancelled, "the result was not read to its end")
            });
            if state.jobs_running == 0 {
                self.clear(&mut state);
            }
        }
        while !state.finished {
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.pipelines.clear();
    }

    /// The token of some parked lane.
    pub(crate) fn parked_token(&self) -> Option<Token> {
        let state = lock(&self.state);
        state
            .pipelines
            .iter()
            .find_map(|pipeline| pipeline.parked.first().map(|(token, ..)| token.clone()))
    }

    /// A token that becomes ready at the end of the run.
    pub(crate) fn ended(&self) -> Token {
        let (token, mut state) = (Token::new(), lock(&self.state));
        match state.finished {
            true => token.set_ready(),
            false => state.ended.push(token.clone()),
        }
        token
    }

    /// Returns the result of a finished run.
    pub(crate) fn take_result(&self) -> Result<Arc<Collected>> {
        let mut state = lock(&self.state);
        state.pipelines.clear();
        match (state.error.take(), state.result.take()) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result),
            (None, None) => Err(Error::internal("a run ended without a result")),
        }
    }

    /// Looks for a job and runs it.
    pub(crate) fn work_once(&self, worker: usize) -> JobOutcome {
        let job = {
            let mut state = lock(&self.state);
            if state.finished {
                return JobOutcome::Finished;
            }
            match self.find_job(&mut state, worker) {
                Ok(job) => {
                    state.jobs_running += 1;
                    job
                }
                Err(JobOutcome::Parked) => return self.parked(&mut state),
                Err(worked) => return worked,
            }
        };
        let (pipeline, kind, started) = (job.pipeline(), job.kind(), Instant::now());
        let mut longest = None;
        let done = self.guarded(|| self.do_job(job, &mut longest));
        self.note(&done, pipeline, kind, started, longest);
        self.finish_job(pipeline, done);
        JobOutcome::Job
    }

    /// Runs `work` so that long kernels notice a cancellation. A panic becomes an error.
    fn guarded(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let done = catch_unwind(AssertUnwindSafe(|| interrupt::within(&self.context, work)));
        done.unwrap_or_else(|panic| Err(panic_error(&*panic)))
    }

    /// Only parked lanes are left. No chunk is produced meanwhile, so a cancelled query is noticed
    /// here.
    fn parked(&self, state: &mut State) -> JobOutcome {
        let Err(error) = self.context.check() else { return JobOutcome::Parked };
        self.failed.store(true, Ordering::Relaxed);
        state.error.get_or_insert(error);
        if state.jobs_running > 0 {
            return JobOutcome::Nothing;
        }
        self.clear(state);
        self.finished.notify_all();
        JobOutcome::Finished
    }

    /// Records the last job of a failed run.
    fn note(
        &self,
        done: &Result<()>,
        pipeline: usize,
        kind: Kind,
        started: Instant,
        longest: Option<(NodeId, Duration)>,
    ) {
        if done.is_err() || self.failed.load(Ordering::Relaxed) {
            let (took, cleared) = (started.elapsed(), Duration::ZERO);
            *lock(&self.record.last) = Some(LastJob { pipeline, kind, took, longest, cleared });
        }
    }

    /// Drops the state of a failed run.
    fn clear(&self, state: &mut State) {
        let started = Instant::now();
        state.pipelines.iter_mut().for_each(PipelineState::clear);
        if let (Some(results), Some(error)) = (&self.results, &state.error) {
            results.fail(error.clone());
        }
        state.end();
        if let Some(last) = &mut *lock(&self.record.last) {
            last.cleared = started.elapsed();
        }
    }

    fn find_job(&self, state: &mut State, worker: usize) -> Result<Job, JobOutcome> {
        if state.error.is_some() {
            return Err(JobOutcome::Nothing);
        }
        let mut any_parked = false;
        for (index, pipeline) in state.pipelines.iter_mut().enumerate() {
            let job = match pipeline.phase {
                Phase::Ready => {
                    pipeline.phase = Phase::Advancing;
                    Some(Job::Start(index))
                }
                Phase::Tasks => pipeline.find_task(index),
                Phase::Running if pipeline.phase_is_over() => {
                    pipeline.phase = Phase::Advancing;
                    Some(Job::Advance(index))
                }
                Phase::Running => {
                    pipeline.find_morsel(index, worker, self.workers * self.context.lanes())
                }
                Phase::Waiting | Phase::Advancing | Phase::Done => None,
            };
            any_parked |= !pipeline.parked.is_empty() || pipeline.after.is_some();
            if let Some(job) = job {
                pipeline.active += 1;
                return Ok(job);
            }
        }
        Err(if any_parked { JobOutcome::Parked } else { JobOutcome::Nothing })
    }
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> Error {
    if let Some(ended) = panic.downcast_ref::<Error>() {
        return ended.clone();
    }
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string());
    Error::internal(format!("a sub-operator panicked: {text}"))
}
