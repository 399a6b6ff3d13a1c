//! A run whose result is read while it comes.

use std::sync::Arc;
use std::time::Duration;

use tessera_context::{Context, Token};
use tessera_operator::{ByteQueue, OrderedQueue, Reader, Step};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::execution::{Execution, MakeNested, Worked};
use crate::record::RunRecord;
use crate::workers::Shared;

/// How often a thread that waits for a chunk asks whether the run was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A compiled plan that runs; its result is read chunk by chunk, in order. Dropping it ends the
/// run.
#[derive(Debug)]
pub struct QueryRun {
    shared: Arc<Shared>,
    execution: Arc<Execution>,
    queue: ByteQueue,
    /// The thread that reads does the jobs: those of an executor.
    by_reader: bool,
}

impl QueryRun {
    /// Starts a compiled plan on the engine's workers, or, `by_reader`, on the thread that reads.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        record: &Arc<RunRecord>,
        (parameters, context): (Chunk, Arc<dyn Context>),
        make_nested: MakeNested,
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

    /// What is next in the queue; workers that wait for room hear of it.
    fn pop(&self) -> Result<Step> {
        let step = self.queue.pop()?;
        if matches!(step, Step::HasOutput(_)) {
            self.shared.notify();
        }
        Ok(step)
    }

    /// Does a job, or waits for what others do. A run that fails says so in its queue.
    fn go_on(&self, token: &Token) -> Result<()> {
        if !self.by_reader {
            token.wait(CHECK_INTERVAL);
            self.execution.check();
            return Ok(());
        }
        match self.shared.as_caller(|| self.execution.work_once(0)) {
            Worked::Job | Worked::Finished => {}
            Worked::Parked => {
                self.execution.parked_token().unwrap_or_default().wait(CHECK_INTERVAL)
            }
            Worked::Nothing => return Err(Error::internal("a run has neither work nor an end")),
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
