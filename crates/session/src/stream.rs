//! Result streams: the rows of a query while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tessera_context::{Context, Reservation};
use tessera_engine::QueryRun;
use tessera_plan::Plan;
use tessera_types::{Code, Error, Result, SqlState, Tuple};
use tessera_vector::Chunk;

use crate::cancel::RunningGuard;
use crate::result::{QueryResult, ResultColumns};
use crate::run::{PreparedRun, Runner};

/// The first output of a statement.
#[derive(Debug)]
pub enum StatementOutput {
    /// Rows of a query, `SHOW` or `DESCRIBE`.
    Rows(ResultStream),
    /// Text of `EXPLAIN`.
    Text(String),
    /// A summary of the work, such as `COPY 25`.
    Done(String),
}

/// The rows of a running query, in order. The query pauses when the reader is slower, so that few
/// rows are buffered. Dropping the stream cancels the query.
///
/// The session accepts its next statement when the stream was read to its end or dropped. A
/// deadline counts only the time that the reader waits for rows.
///
/// ```
/// use tessera_session::{Config, Session};
/// let mut session = Session::new(Config { threads: 1, ..Config::default() })?;
/// let mut rows = session.query("select x from generate_series(1, 1000000000) as g(x)")?;
/// let first = rows.next().expect("there are rows")?;
/// assert!(first.num_rows() > 0);
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct ResultStream {
    columns: ResultColumns,
    source: Source,
    started: Instant,
}

/// The source of the rows of a stream.
#[derive(Debug)]
enum Source {
    /// Rows in memory, the last chunk first.
    InMemory(Vec<Chunk>),
    Running(Box<RunningQuery>),
    Ended,
}

/// A query whose rows are being read.
#[derive(Debug)]
struct RunningQuery {
    /// `None` between two runs.
    run: Option<(QueryRun, PreparedRun)>,
    /// The last run, if it failed.
    failed: Option<PreparedRun>,
    runner: Runner,
    /// The plan before the platform's pass, as long as another run may still replace this one.
    plan: Option<Plan>,
    _registered: RunningGuard,
    _open: OpenStream,
}

/// Marks the session's stream as open until dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<AtomicBool>);

impl OpenStream {
    /// Checks that no stream of the session is open.
    ///
    /// # Errors
    /// A stream is open.
    pub(crate) fn check(open: &AtomicBool) -> Result<()> {
        match open.load(Ordering::Acquire) {
            true => Err(Error::unsupported(
                "the rows of the previous statement are still being read; read them to the end or drop them first, or open \
                 another session",
            )
            .with_state(SqlState::OBJECT_IN_USE)),
            false => Ok(()),
        }
    }

    /// Marks the stream as open.
    pub(crate) fn new(open: &Arc<AtomicBool>) -> OpenStream {
        open.store(true, Ordering::Release);
        OpenStream(open.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl ResultStream {
    /// A stream of rows in memory.
    pub(crate) fn in_memory(columns: ResultColumns, chunk: Chunk, started: Instant) -> Self {
        ResultStream { columns, source: Source::InMemory(vec![chunk]), started }
    }

    /// Starts the plan `for_platform`. `plan` is the plan before the platform's pass, if a retry
    /// with less memory is possible.
    ///
    /// # Errors
    /// The plan is invalid, or the statement is cancelled while it waits for memory.
    pub(crate) fn start(
        runner: Runner,
        for_platform: &Plan,
        plan: Option<Plan>,
        columns: impl FnOnce(&Tuple) -> Result<ResultColumns>,
        started: Instant,
        registered: RunningGuard,
        open: OpenStream,
    ) -> Result<Self> {
        let (ready, run) = runner.start(for_platform)?;
        let columns = columns(ready.record.plan().tuple())?;
        runner.cancel.interrupt.pause();
        let run = Some((run, ready));
        let running =
            RunningQuery { run, failed: None, runner, plan, _registered: registered, _open: open };
        Ok(ResultStream { columns, source: Source::Running(Box::new(running)), started })
    }

    /// The type of the rows. Field names are unique.
    pub fn tuple(&self) -> &Tuple {
        &self.columns.tuple
    }

    /// The column names to show. They may repeat.
    pub fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// The Arrow schema of the batches, with the names to show.
    pub fn schema(&self) -> SchemaRef {
        self.columns.schema.clone()
    }

    /// Reads all remaining rows. They count for the memory budget of the query until the last one
    /// is read.
    ///
    /// # Errors
    /// The query fails.
    pub fn collect_all(mut self) -> Result<QueryResult> {
        let mut chunks = Vec::new();
        if let Source::Running(running) = &mut self.source {
            chunks = running.collect()?;
            self.source = Source::Ended;
        }
        while let Some(chunk) = self.next_chunk()? {
            chunks.push(chunk);
        }
        Ok(QueryResult::new(self.columns, chunks, self.started.elapsed()))
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        match &mut self.source {
            Source::InMemory(chunks) => Ok(chunks.pop()),
            Source::Running(running) => {
                let next = running.next();
                if !matches!(next, Ok(Some(_))) {
                    self.source = Source::Ended;
                }
                next
            }
            Source::Ended => Ok(None),
        }
    }
}

impl Iterator for ResultStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_chunk() {
                Ok(None) => return None,
                Ok(Some(chunk)) if chunk.is_empty() => {}
                Ok(Some(chunk)) => return Some(self.columns.batch(&chunk)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RunningQuery {
    /// The next rows. Before the first rows, a plan that needs less memory may replace one that has
    /// run out of memory.
    fn next(&mut self) -> Result<Option<Chunk>> {
        self.runner.cancel.interrupt.resume();
        let mut next = self.step();
        if self.restart(&next)? {
            next = self.step();
        }
        self.plan = None;
        self.runner.cancel.interrupt.pause();
        self.record_failure(next)
    }

    /// Records how a failed run ended. It has released all memory by now.
    fn record_failure<T>(&mut self, result: Result<T>) -> Result<T> {
        match (result, self.failed.take()) {
            (Err(error), Some(ready)) => Err(self.runner.record_stop(&ready, error)),
            (result, _) => result,
        }
    }

    fn step(&mut self) -> Result<Option<Chunk>> {
        let Some((mut run, ready)) = self.run.take() else { return Ok(None) };
        match run.next_chunk() {
            Ok(next) => {
                self.run = Some((run, ready));
                Ok(next)
            }
            Err(error) => {
                drop(run);
                self.failed = Some(ready);
                Err(error)
            }
        }
    }

    /// Starts the plan that needs less memory, if the run has failed for lack of memory.
    fn restart<T>(&mut self, result: &Result<T>) -> Result<bool> {
        let short = result.as_ref().is_err_and(|error| error.code() == Code::Limit);
        let Some(plan) = self.plan.take().filter(|_| short) else { return Ok(false) };
        let Some(frugal) = self.runner.frugal(&plan)? else { return Ok(false) };
        // Releases the memory of this run before the next one reserves its own.
        self.run = None;
        let (ready, run) = self.runner.start(&frugal)?;
        self.run = Some((run, ready));
        Ok(true)
    }

    /// Reads all rows. No row has left the stream before, so another plan can take over at any
    /// time.
    fn collect(&mut self) -> Result<Vec<Chunk>> {
        self.runner.cancel.interrupt.resume();
        let collected = self.collect_once();
        let collected = if self.restart(&collected)? { self.collect_once() } else { collected };
        self.record_failure(collected)
    }

    fn collect_once(&mut self) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let Some((_, ready)) = &self.run else { return Ok(chunks) };
        let mut held = Reservation::new(ready.query.clone());
        let chunk_rows = ready.query.chunk_rows();
        while let Some(chunk) = self.step()? {
            let chunk = chunk.compact_if_sparse(chunk_rows)?;
            held.grow(chunk.value_bytes())?;
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}
