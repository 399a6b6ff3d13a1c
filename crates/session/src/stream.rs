//! The rows of a query as they come.

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

use crate::cancel::Registered;
use crate::result::{Columns, QueryResult};
use crate::run::{Ready, Runner};

/// What a statement gives, as soon as it gives something.
#[derive(Debug)]
pub enum StatementOutput {
    /// Rows: of a query, `SHOW` or `DESCRIBE`.
    Rows(ResultStream),
    /// Text for people: of `EXPLAIN`.
    Text(String),
    /// What was done, in a few words: `COPY 25`.
    Done(String),
}

/// The rows of a query, in order, as they come. The query runs while they are read, and is held
/// back while they are not: few bytes wait. Dropping the stream ends the query.
///
/// The session runs its next statement when the stream was read to its end or dropped. A deadline
/// counts the time in which the reader waits for rows, not that in which rows wait for the reader.
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
    columns: Columns,
    source: Source,
    started: Instant,
}

#[derive(Debug)]
enum Source {
    /// Rows that are there, the last one first.
    There(Vec<Chunk>),
    Running(Box<Running>),
    Ended,
}

/// A query whose rows are read.
#[derive(Debug)]
struct Running {
    /// None between two tries.
    run: Option<(QueryRun, Ready)>,
    /// What the last run was, where it has failed.
    failed: Option<Ready>,
    runner: Runner,
    /// The plan before the platform's pass, while rows may still come of another run.
    plan: Option<Plan>,
    _registered: Registered,
    _open: Open,
}

/// A session's stream is open for as long as this lives.
#[derive(Debug)]
pub(crate) struct Open(Arc<AtomicBool>);

impl Open {
    /// # Errors
    /// Another stream of the session is open.
    pub(crate) fn check(open: &AtomicBool) -> Result<()> {
        match open.load(Ordering::Acquire) {
            true => Err(Error::unsupported(
                "the rows of the statement before are still being read; read them to the end or drop them first, or use \
                 another session beside this one",
            )
            .with_state(SqlState::OBJECT_IN_USE)),
            false => Ok(()),
        }
    }

    pub(crate) fn new(open: &Arc<AtomicBool>) -> Open {
        open.store(true, Ordering::Release);
        Open(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl ResultStream {
    /// Rows that are there.
    pub(crate) fn there(columns: Columns, chunk: Chunk, started: Instant) -> Self {
        ResultStream { columns, source: Source::There(vec![chunk]), started }
    }

    /// Starts a plan that the platform's pass has made of `plan`, if there is such.
    pub(crate) fn start(
        runner: Runner,
        for_platform: &Plan,
        plan: Option<Plan>,
        columns: impl FnOnce(&Tuple) -> Result<Columns>,
        started: Instant,
        registered: Registered,
        open: Open,
    ) -> Result<Self> {
        let (ready, run) = runner.start(for_platform)?;
        let columns = columns(ready.record.plan().tuple())?;
        runner.cancel.interrupt.pause();
        let run = Some((run, ready));
        let running =
            Running { run, failed: None, runner, plan, _registered: registered, _open: open };
        Ok(ResultStream { columns, source: Source::Running(Box::new(running)), started })
    }

    /// The type of the rows; field names are unique.
    pub fn tuple(&self) -> &Tuple {
        &self.columns.tuple
    }

    /// The names the columns are shown under; may repeat.
    pub fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// The Arrow schema of the batches, with the names that are shown.
    pub fn schema(&self) -> SchemaRef {
        self.columns.schema.clone()
    }

    /// All rows that have not been read, which count for the query's budget until they are
    /// complete.
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
            Source::There(chunks) => Ok(chunks.pop()),
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

impl Running {
    /// The next rows. Before the first ones, a plan that needs less memory may take the place of
    /// one that has run out of it.
    fn next(&mut self) -> Result<Option<Chunk>> {
        self.runner.cancel.interrupt.resume();
        let mut next = self.step();
        if self.starts_anew(&next)? {
            next = self.step();
        }
        self.plan = None;
        self.runner.cancel.interrupt.pause();
        self.noted(next)
    }

    /// Notes how a failed run ended; by now it has given back all memory.
    fn noted<T>(&mut self, ran: Result<T>) -> Result<T> {
        match (ran, self.failed.take()) {
            (Err(error), Some(ready)) => Err(self.runner.stopped(&ready, error)),
            (ran, _) => ran,
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

    /// Starts the plan that needs less memory, where a run has ended for want of it.
    fn starts_anew<T>(&mut self, ran: &Result<T>) -> Result<bool> {
        let short = ran.as_ref().is_err_and(|error| error.code() == Code::Limit);
        let Some(plan) = self.plan.take().filter(|_| short) else { return Ok(false) };
        let Some(frugal) = self.runner.frugal(&plan)? else { return Ok(false) };
        // Its memory is given back before another run asks for some.
        self.run = None;
        let (ready, run) = self.runner.start(&frugal)?;
        self.run = Some((run, ready));
        Ok(true)
    }

    /// All rows. The caller has seen none before, so another plan can take over at any time.
    fn collect(&mut self) -> Result<Vec<Chunk>> {
        self.runner.cancel.interrupt.resume();
        let collected = self.collect_once();
        let collected = if self.starts_anew(&collected)? { self.collect_once() } else { collected };
        self.noted(collected)
    }

    fn collect_once(&mut self) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let Some((_, ready)) = &self.run else { return Ok(chunks) };
        let mut held = Reservation::new(ready.query.clone());
        let chunk_rows = ready.query.chunk_rows();
        while let Some(chunk) = self.step()? {
            let chunk = chunk.without_much_else(chunk_rows)?;
            held.grow(chunk.value_bytes())?;
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}
