//! The executor in the user's process: invokes the first worker and reads the parts of its result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use futures_util::future::join;
use tessera_context::{Run, Token, lock};
use tessera_operator::platform::{Runtime, plan_to_send};
use tessera_operator::stream_util::one_morsel;
use tessera_operator::{
    Lowering, NestedPlan, Operator, Reader, Source, SourceRun, Step, nested_plan,
};
use tessera_plan::{Functions, Node, Plan, Value, text};
use tessera_rows::{Collected, RowLayout, Rows};
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::AbortHandle;

use crate::cloud::{Cloud, Space};
use crate::invoke::Function;
use crate::rendezvous;
use crate::report::{Prices, Usage};
use crate::result::Part;
use crate::task::{Answer, Order, StopSignal};

/// The default name of the function.
pub(crate) const FUNCTION: &str = "tessera-worker";
/// How long to wait for the objects of an abandoned query to be deleted.
const CLEAR_MAX: Duration = Duration::from_secs(20);

/// Returns what the service will bill so far: invocations, and MiB × ms of memory.
pub type Meter = Box<dyn Fn() -> (u64, u64) + Send + Sync>;

/// The driver of serverless queries, in the user's process.
pub struct Driver {
    cloud: Arc<Cloud>,
    function: Function,
    workers: usize,
    /// The address below which each query has its prefix.
    scratch: String,
    prices: Prices,
    meter: Option<Meter>,
    queries: AtomicU64,
    last: Mutex<Option<Usage>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Driver {
    /// Returns a driver of queries on this many workers, with objects below the address `scratch`.
    ///
    /// # Errors
    /// The settings of the cloud are inconsistent.
    pub fn new(
        cloud: Cloud,
        function: Option<&str>,
        (workers, scratch): (usize, &str),
        prices: Prices,
        meter: Option<Meter>,
    ) -> Result<Driver> {
        Ok(Driver {
            function: Function::new(function.unwrap_or(FUNCTION), &cloud)?,
            cloud: Arc::new(cloud),
            workers: workers.max(1),
            scratch: scratch.trim_end_matches('/').to_string(),
            prices,
            meter,
            queries: AtomicU64::new(0),
            last: Mutex::default(),
        })
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Takes the usage report of the last query, as text.
    pub fn report(&self) -> Option<String> {
        lock(&self.last).take().map(|usage| usage.text(&self.prices))
    }

    fn query(&self, (plan, repeatable): (Arc<str>, bool), run: &Run) -> Result<Query> {
        // Names are unique: they contain the start of this process, its number and the query's
        // number.
        let number = self.queries.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("query-{:x}-{:x}-{number}", since.as_nanos(), std::process::id());
        let prefix = format!("{}/{name}", self.scratch);
        let space = Space::new((self.cloud.connect)(&prefix)?);
        let order = Order {
            index: 0,
            workers: self.workers,
            prefix,
            plan,
            chunk_rows: run.context.chunk_rows(),
            memory_bytes: run.context.memory_bytes(),
            repeatable,
        };
        Ok(Query { space, order, stop: StopSignal::default(), run: run.clone() })
    }
}

/// Runs `executor` in the user's process.
#[derive(Debug, Clone)]
pub(crate) struct DriverRuntime(pub(crate) Arc<Driver>);

impl Runtime for DriverRuntime {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        node.nested.iter().try_for_each(reads_only_objects)?;
        node.nested.iter().try_for_each(rendezvous::check)?;
        // The result is sent between processes, so it must have an Arrow form.
        lowering.output.tuple.arrow_schema()?;
        let layout = RowLayout::bare(&lowering.output.tuple)?;
        let plan = text::print(&plan_to_send(node, crate::NAME)?).into();
        let repeatable = !node.nested.iter().any(|plan| is_volatile(plan, &**lowering.library));
        Ok(Operator::Source(Arc::new(ExecutorOperator {
            driver: self.0.clone(),
            plan,
            layout,
            repeatable,
        })))
    }
}

/// Checks that a plan reads no local files, which workers cannot see.
fn reads_only_objects(plan: &Plan) -> Result<()> {
    for node in &plan.nodes {
        if let Some(Value::List(paths)) = node.params.get("paths") {
            let local = paths.iter().find_map(|path| match path {
                Value::String(path) if !path.contains("://") => Some(path),
                _ => None,
            });
            if let Some(path) = local {
                return Err(Error::unsupported(format!(
                    "serverless workers cannot read the local file '{path}'; put it into an object store, or name its folder as the \
                     database, which is uploaded"
                )));
            }
        }
        node.nested.iter().try_for_each(reads_only_objects)?;
    }
    Ok(())
}

/// Whether a plan calls a function that returns another value each time.
fn is_volatile(plan: &Plan, functions: &dyn Functions) -> bool {
    fn in_value(value: &Value, functions: &dyn Functions) -> bool {
        match value {
            Value::Expr(expr) => tessera_plan::rewrite::is_volatile(expr, functions),
            Value::List(values) => values.iter().any(|value| in_value(value, functions)),
            Value::Record(entries) => entries.iter().any(|(_, value)| in_value(value, functions)),
            _ => false,
        }
    }
    plan.nodes.iter().any(|node| {
        node.params.iter().any(|(_, value)| in_value(value, functions))
            || node.nested.iter().any(|nested| is_volatile(nested, functions))
    })
}

#[derive(Debug, Clone)]
struct ExecutorOperator {
    driver: Arc<Driver>,
    plan: Arc<str>,
    layout: Arc<RowLayout>,
    repeatable: bool,
}

impl Source for ExecutorOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let (operator, nested, run) = (self.clone(), nested_plan(run)?, run.clone());
        Ok(one_morsel(move || operator.open(&nested, &run)))
    }
}

impl ExecutorOperator {
    fn open(&self, nested: &Arc<dyn NestedPlan>, run: &Run) -> Result<Box<dyn Reader>> {
        let ExecutorOperator { driver, plan, repeatable, .. } = self;
        let query = Arc::new(driver.query((plan.clone(), *repeatable), run)?);
        let done: Arc<Completion> = Arc::default();
        let (sender, parts) = mpsc::channel(1);
        let (running, completion) = ((driver.clone(), query.clone()), done.clone());
        let work = async move {
            let (driver, query) = running;
            let result = query.run(&driver, sender).await;
            *lock(&completion.result) = Some(result);
            completion.token.set_ready();
        };
        let abort = driver.cloud.io.spawn(work).abort_handle();
        let running = RunningQuery { driver: driver.clone(), query, done, abort };
        let (operator, nested, run) = (self.clone(), nested.clone(), run.clone());
        Ok(Box::new(ExecutorReader { running, operator, nested, run, parts, part: None }))
    }
}

/// A running query.
#[derive(Debug)]
struct Query {
    space: Space,
    order: Order,
    stop: StopSignal,
    run: Run,
}

#[derive(Debug, Default)]
struct Completion {
    token: Token,
    result: Mutex<Option<Result<QueryOutcome>>>,
}

/// The outcome of a query: its usage, and the counters of each worker's sub-operators.
#[derive(Debug)]
struct QueryOutcome {
    usage: Usage,
    figures: Vec<String>,
}

impl Query {
    /// Returns the error that ended the query. A failed worker may be lost before it answers; then
    /// the others only report a cancellation, and the store has the cause.
    async fn cause(&self, error: Error) -> Error {
        if error.code() != Code::Cancelled {
            return error;
        }
        let noted = self.space.reason().await;
        noted.and_then(|reason| Answer::from_bytes(&reason).ok()?.error).unwrap_or(error)
    }

    /// Runs the query to its end, sends the parts of its result to `parts`, and deletes its
    /// objects.
    async fn run(&self, driver: &Driver, parts: Sender<Part>) -> Result<QueryOutcome> {
        let before = (driver.cloud.store_usage)();
        let metered = driver.meter.as_ref().map(|meter| meter());
        self.space.open().await?;
        let answer = driver.function.invoke(&self.order, &self.stop).await;
        let no_result = || {
            Error::io(
                "the first worker's answer lacks its result: the function runs another version of \
                 the program; deploy this one",
            )
        };
        let written = match answer.error {
            None => answer.result.ok_or_else(no_result),
            Some(error) => Err(self.cause(error).await),
        };
        // Closing first makes other attempts at workers stop and leave the result alone.
        let closed = self.space.close().await;
        let (read, cleared) = match written {
            Ok(written) => {
                let read = written.read(&self.space, &self.run.context, parts);
                let (read, cleared) = join(read, self.space.clear_others(&written)).await;
                (read, cleared.and(self.space.remove(&written).await))
            }
            Err(error) => (Err(error), self.space.clear().await),
        };
        let mut usage = answer.usage;
        usage.add_store_usage(before, (driver.cloud.store_usage)());
        usage.add_received(&self.space);
        if let (Some(before), Some(meter)) = (metered, &driver.meter) {
            let after = meter();
            usage.set_billed(after.0 - before.0, after.1 - before.1);
        }
        read?;
        closed.and(cleared)?;
        Ok(QueryOutcome { usage, figures: answer.figures })
    }
}

/// Cancels the query when dropped before its end.
#[derive(Debug)]
struct RunningQuery {
    driver: Arc<Driver>,
    query: Arc<Query>,
    done: Arc<Completion>,
    abort: AbortHandle,
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        if self.done.token.is_ready() {
            return;
        }
        self.abort.abort();
        let (query, (sender, receiver)) = (self.query.clone(), channel::<()>());
        self.driver.cloud.io.spawn(async move {
            drop(query.space.close().await);
            drop(query.space.clear().await);
            drop(sender);
        });
        // The channel disconnects when all objects are deleted.
        let _ = receiver.recv_timeout(CLEAR_MAX);
    }
}

struct ExecutorReader {
    running: RunningQuery,
    operator: ExecutorOperator,
    nested: Arc<dyn NestedPlan>,
    run: Run,
    parts: Receiver<Part>,
    /// The current part, and its next tuple to output.
    part: Option<(Rows, u64)>,
}

/// Makes a token ready when its future can be polled.
struct TokenWaker(Token);

impl Wake for TokenWaker {
    fn wake(self: Arc<Self>) {
        self.0.set_ready();
    }
}

impl ExecutorReader {
    /// Returns the next chunk of the current part.
    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let Some((rows, first)) = &mut self.part else { return Ok(None) };
        let end = (*first + self.run.context.chunk_rows() as u64).min(rows.len() as u64);
        let range = std::mem::replace(first, end)..end;
        if range.is_empty() {
            self.part = None;
            return Ok(None);
        }
        rows.chunk(range).map(Some)
    }

    /// Ends the query after all parts were read.
    fn end(&self) -> Result<Step> {
        let RunningQuery { driver, done, .. } = &self.running;
        if !done.token.is_ready() {
            return Ok(Step::Blocked(done.token.clone()));
        }
        let result = lock(&done.result).take();
        let ended = result.unwrap_or_else(|| Err(Error::internal("result read twice")))?;
        let QueryOutcome { usage, figures } = ended;
        figures.iter().try_for_each(|figures| self.nested.add_figures(figures))?;
        usage.count(&self.run.counters, &driver.prices);
        *lock(&driver.last) = Some(usage);
        Ok(Step::Done)
    }
}

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(chunk) = self.next_chunk()? {
                return Ok(Step::HasOutput(chunk));
            }
            let token = Token::new();
            let waker = Waker::from(Arc::new(TokenWaker(token.clone())));
            match self.parts.poll_recv(&mut task::Context::from_waker(&waker)) {
                Poll::Pending => return Ok(Step::Blocked(token)),
                Poll::Ready(Some(part)) => self.part = Some((part.rows(&self.operator.layout)?, 0)),
                Poll::Ready(None) => return self.end(),
            }
        }
    }
}
