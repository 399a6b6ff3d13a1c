//! A run whose result is a stream.

use std::sync::Arc;
use std::time::Duration;

use tessera_context::{Context, Token};
use tessera_operator::{ByteQueue, OrderedQueue, Reader, Step};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::execution::{Execution, JobOutcome, NestedPlanMaker};
use crate::record::RunRecord;
use crate::workers::Shared;

/// How often a thread that waits for a chunk checks whether the run was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A running plan whose result is read chunk by chunk, in order. Dropping it ends the run.
#[derive(Debug)]
pub struct QueryRun {
    shared: Arc<Shared>,
    execution: Arc<Execution>,
    queue: ByteQueue,
    /// Whether the reading thread runs the jobs, which are those of an executor.
    by_reader: bool,
}

impl QueryRun {
    /// Starts a compiled plan on the engine's workers or, with `by_reader`, on the reading thread.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        record: &Arc<RunRecord>,
        (parameters, context): (Chunk, Arc<dyn Context>),
        make_nested: NestedPlanMaker,
        by_reader: bool,
    ) -> Result<QueryRun> {
        let queue = OrderedQueue::queue_for(&*context);
        let workers = shared.worker_count();
        let (start, results) = ((parameters, context), Some(queue.clone()));
        let execution = Execution::with_results(record, start, workers, make_nested, results)?;
        if !by_reader {
            shared.add(&execution);
        }
        Ok(QueryRun { shared: shared.clone(), execution, queue, by_reader })
    }

    /// The next chunk; none after the last. Waits for it.
    ///
    /// # Errors
    /// The first error of any sub-operator, or the query was cancelled.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            match self.pop()? {
                Step::HasOutput(chunk) => return Ok(Some(chunk)),
                Step::Blocked(token) => self.go_on(&token)?,
                _ if self.execution.is_finished() => return Ok(None),
                _ => self.go_on(&self.execution.ended())?,
            }
        }
    }

    /// The next chunk of the queue. Wakes workers that wait for room.
    fn pop(&self) -> Result<Step> {
        let step = self.queue.pop()?;
        if matches!(step, Step::HasOutput(_)) {
            self.shared.notify();
        }
        Ok(step)
    }

    /// Runs a job, or waits for the jobs of workers. A failed run reports its error through the
    /// queue.
    fn go_on(&self, token: &Token) -> Result<()> {
        if !self.by_reader {
            token.wait(CHECK_INTERVAL);
            self.execution.check();
            return Ok(());
        }
        match self.shared.as_caller(|| self.execution.work_once(0)) {
            JobOutcome::Job | JobOutcome::Finished => {}
            JobOutcome::Parked => {
                self.execution.parked_token().unwrap_or_default().wait(CHECK_INTERVAL)
            }
            JobOutcome::Nothing => {
                return Err(Error::internal("a run has neither work nor an end"));
            }
        }
        Ok(())
    }
}

impl Drop for QueryRun {
    fn drop(&mut self) {
        self.queue.stop();
        self.shared.as_caller(|| self.execution.stop());
        self.shared.remove(&self.execution);
    }
}

/// Reads the result of a nested plan while that runs.
pub(crate) struct RunReader(pub(crate) QueryRun);

impl Reader for RunReader {
    fn step(&mut self) -> Result<Step> {
        match self.0.pop()? {
            Step::Done if !self.0.execution.is_finished() => {
                Ok(Step::Blocked(self.0.execution.ended()))
            }
            step => Ok(step),
        }
    }
}
