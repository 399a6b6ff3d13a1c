//! The traits through which the executor runs sub-operators.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use tessera_context::{Context, Run, Token};
use tessera_functions::Library;
use tessera_plan::{Edge, Node};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

/// The result of one call of [`Reader::step`] or [`StreamWorker::step`].
#[derive(Debug)]
pub enum Step {
    /// The stream needs the next input chunk.
    NeedInput,
    /// A chunk of output; call again for more.
    HasOutput(Chunk),
    /// No output yet after a slice of work; call again. The caller may run other work first.
    Again,
    /// The operator waits for this token; call again when it is ready.
    Blocked(Token),
    /// End of the source, or the stream needs no more input of this morsel.
    Done,
}

/// A nested plan in one run of its node ([`nested_plan`]): compiled once, run for every outer
/// tuple.
pub trait NestedPlan: Send + Sync + Debug {
    /// Runs the plan for one parameter tuple (a chunk of one row) on the calling worker alone.
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected>;

    /// Starts the plan for one parameter tuple on all workers. The reader returns results in order,
    /// while they are produced; if the calling thread is a worker, which must not block, the result
    /// is complete first. Dropping the reader ends the run.
    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>>;

    /// Returns the metrics of all runs so far in this process, as lines that another process can
    /// add.
    fn figures(&self) -> String;

    /// Adds the metrics of the same plan in another process.
    ///
    /// # Errors
    /// The metrics belong to another plan.
    fn add_figures(&self, figures: &str) -> Result<()>;
}

/// The nested plans of a node in one run, in the order of the node.
#[derive(Debug)]
pub struct NestedPlans(Vec<Arc<dyn NestedPlan>>);

impl NestedPlans {
    /// Wraps plans for [`Run::nested`]; `None` for an empty list.
    pub fn of(plans: Vec<Arc<dyn NestedPlan>>) -> Option<Arc<dyn Any + Send + Sync>> {
        (!plans.is_empty()).then(|| Arc::new(NestedPlans(plans)) as _)
    }
}

/// Returns the nested plan of the node that `run` belongs to.
///
/// # Errors
/// The node has none. The verifier counts nested plans, so this is a fault of the executor.
pub fn nested_plan(run: &Run) -> Result<Arc<dyn NestedPlan>> {
    let plans = run.nested.as_ref().and_then(|nested| nested.downcast_ref::<NestedPlans>());
    let plan = plans.and_then(|NestedPlans(plans)| plans.first());
    plan.cloned().ok_or_else(|| Error::internal("a sub-operator has no nested plan"))
}

/// The inputs of [`SubOperator::lower`] other than the node.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// The edges into the node (for a leaf, one edge with the plan's parameter tuple).
    pub inputs: &'a [Edge],
    /// The edge out of the node.
    pub output: &'a Edge,
    /// The parameter tuple of the plan that contains the node.
    pub parameters: &'a Tuple,
    /// The result edges of the node's nested plans.
    pub nested_outputs: Vec<Edge>,
    /// The node's position in its plan.
    pub position: usize,
    /// The function library that expressions bind to.
    pub library: &'a Arc<Library>,
}

/// The executable side of a sub-operator; registered under its descriptor's name.
pub trait SubOperator: tessera_plan::Descriptor {
    /// Lowers a verified node, once per plan. The variant must agree with the descriptor's role.
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator>;
}

/// A lowered sub-operator.
#[derive(Debug, Clone)]
pub enum Operator {
    /// Starts a pipeline.
    Source(Arc<dyn Source>),
    /// Transforms chunks inside a pipeline.
    Stream(Arc<dyn Stream>),
    /// Ends a pipeline: consumes its whole input.
    Sink(Arc<dyn Sink>),
    /// Passes the tuples of all inputs on unchanged.
    Union,
}

/// A lowered sub-operator that starts a pipeline.
pub trait Source: Send + Sync + Debug {
    /// Starts a run. `sides` are all inputs, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>>;
}

/// A source in one run: its morsels, in the order of the source.
pub trait SourceRun: Send + Sync + Debug {
    /// A token that must be ready before [`SourceRun::morsels`] is called. Only outputs of sinks
    /// have one.
    fn ready(&self) -> Option<Token> {
        None
    }

    /// The number of morsels. Called once, before the first morsel is opened.
    fn morsels(&self) -> usize;

    /// Whether morsels should start in order, because later morsels use what earlier ones found.
    fn in_order(&self) -> bool {
        false
    }

    /// The order in which morsels should start, if it differs from their own: tuples of the first
    /// ones may make the others unnecessary. Positions of morsels do not change.
    fn order(&self) -> Option<&[usize]> {
        None
    }

    /// Opens a morsel. Each morsel is opened exactly once, by any worker.
    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>>;

    /// Like [`SourceRun::open`], for a sink with [`SinkRun::accepts_long_chunks`]: chunks may have
    /// up to [`long_chunk_rows`](crate::stream_util::long_chunk_rows) tuples.
    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.open(morsel)
    }
}

/// Reads one morsel.
pub trait Reader: Send {
    /// Returns the next chunk, `Blocked` or `Done`. A chunk has at most the context's `chunk_rows`
    /// tuples, unless the morsel was opened with [`SourceRun::open_long`].
    fn step(&mut self) -> Result<Step>;
}

/// A lowered sub-operator that transforms chunks inside a pipeline.
pub trait Stream: Send + Sync + Debug {
    /// Starts a run. `sides` are the inputs other than the streaming one, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>>;
}

/// A stream in one run: the state shared by all workers.
pub trait StreamRun: Send + Sync + Debug {
    /// Creates the state of one worker.
    fn worker(&self) -> Result<Box<dyn StreamWorker>>;

    /// Like `worker`; `accepts_lazy` says whether the consumer can read tuples that are not yet
    /// columns.
    fn worker_for_consumer(&self, _accepts_lazy: bool) -> Result<Box<dyn StreamWorker>> {
        self.worker()
    }

    /// Like [`SinkRun::accepts_lazy`].
    fn accepts_lazy(&self) -> bool {
        false
    }

    /// Whether the stream forwards tuples that are not yet columns without reading them.
    fn passes_lazy(&self) -> bool {
        false
    }

    /// The tuples to emit after all workers have consumed all input, such as unmatched build
    /// tuples. Called once.
    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        Ok(None)
    }
}

/// The state of one worker of a stream. `push` is called only after `step` returned `NeedInput`, or
/// at the start.
pub trait StreamWorker: Send {
    /// Begins a morsel. `position` is that of [`SinkWorker::begin`]. Called before the first
    /// `push`.
    fn begin(&mut self, _position: u64) {}

    /// Takes the next input chunk, which is not empty.
    fn push(&mut self, chunk: Chunk) -> Result<()>;

    /// Returns output for the pushed chunk, until `NeedInput`. A chunk has at most `chunk_rows`
    /// tuples.
    fn step(&mut self) -> Result<Step>;

    /// Ends the morsel; `step` then returns what was held back, until `NeedInput`. Called for every
    /// morsel after its last `push`, and after the streams before this one have returned their
    /// output.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Creates one worker's states of a chain of streams that ends in `sink`, in the chain's order.
///
/// # Errors
/// Those of [`StreamRun::worker`].
pub fn stream_workers<'a>(
    streams: impl DoubleEndedIterator<Item = &'a Arc<dyn StreamRun>>,
    sink: &dyn SinkRun,
) -> Result<Vec<Box<dyn StreamWorker>>> {
    let mut accepts_lazy = sink.accepts_lazy();
    let worker = |stream: &'a Arc<dyn StreamRun>| {
        let worker = stream.worker_for_consumer(accepts_lazy);
        accepts_lazy = stream.accepts_lazy() || accepts_lazy && stream.passes_lazy();
        worker
    };
    let mut workers = streams.rev().map(worker).collect::<Result<Vec<_>>>()?;
    workers.reverse();
    Ok(workers)
}

/// A lowered sub-operator that consumes its input whole.
pub trait Sink: Send + Sync + Debug {
    /// Whether the sink can spill its state when the memory budget is exhausted.
    fn spills(&self) -> bool {
        false
    }

    /// Starts a run. `sides` are the inputs other than the streaming one, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>>;
}

/// A sink in one run: the state shared by all workers.
pub trait SinkRun: Send + Sync + Debug {
    /// Creates the state of one worker.
    fn worker(&self) -> Result<Box<dyn SinkWorker>>;

    /// Whether the sink accepts tuples that are not yet columns. It must not keep them longer than
    /// it needs.
    fn accepts_lazy(&self) -> bool {
        false
    }

    /// Whether the sink makes one pass over its input and keeps nothing per tuple: chunks larger
    /// than the cache then cost nothing, and fewer chunks cost less. Called for each morsel. Only
    /// chunks that come straight from a source are long.
    fn accepts_long_chunks(&self) -> bool {
        false
    }

    /// Whether the sink needs no more input; the remaining morsels are skipped.
    fn satisfied(&self) -> bool {
        false
    }

    /// Whether morsels should start in the source's order, because a prefix of them decides when
    /// the sink is satisfied.
    fn in_order(&self) -> bool {
        false
    }

    /// An output that can be read while input still arrives, instead of the output of `finish`. One
    /// chain reads it once, and its pipeline ends after the input. An output is an error unless
    /// `has_one_reader`.
    fn early_output(&self, _has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        None
    }

    /// Ends the input; `workers` are all workers of this sink. Returns quickly: long work goes into
    /// tasks.
    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish>;
}

/// The state of one worker of a sink.
pub trait SinkWorker: Any + Send {
    /// Begins a morsel. `position` orders morsels as their source does; a worker sees them in any
    /// order.
    fn begin(&mut self, _position: u64) -> Result<()> {
        Ok(())
    }

    /// Takes the next chunk of the morsel, which is not empty.
    fn push(&mut self, chunk: Chunk) -> Result<()>;

    /// A token to wait for before more input of this morsel is pushed. Called after each chunk. The
    /// sink must accept input that is pushed nevertheless.
    fn blocked(&self) -> Option<Token> {
        None
    }

    /// Ends the morsel.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Work of a finishing sink, for any worker.
pub type Task = Box<dyn FnOnce() -> Result<()> + Send>;

/// The result of [`SinkRun::finish`]: tasks to run in parallel, and the output after them.
pub struct Finish {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The output; its morsels are read only after all tasks.
    pub output: Arc<dyn SourceRun>,
}

impl Debug for Finish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finish").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Converts worker states back to the type that the sink created.
///
/// # Errors
/// A worker belongs to another sink, which is a fault of the executor.
pub fn downcast_workers<T: SinkWorker>(workers: Vec<Box<dyn SinkWorker>>) -> Result<Vec<T>> {
    workers
        .into_iter()
        .map(|worker| {
            let worker: Box<dyn Any> = worker;
            worker
                .downcast::<T>()
                .map(|worker| *worker)
                .map_err(|_| Error::internal("the worker belongs to another sink"))
        })
        .collect()
}
