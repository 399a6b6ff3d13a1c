//! What a sub-operator is to the executor.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use tessera_context::{Context, Run, Token};
use tessera_functions::Library;
use tessera_plan::{Edge, Node};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

/// The answer of a sub-operator that was asked to go on.
#[derive(Debug)]
pub enum Step {
    /// It needs the next input chunk.
    NeedInput,
    /// Here is output; ask again.
    HasOutput(Chunk),
    /// It has worked for a while and has no output yet; ask again. Whoever asks may let others have
    /// their turn before.
    Again,
    /// It waits; ask again when the token is ready.
    Blocked(Token),
    /// Nothing more will come (sources), or no more input is wanted for this morsel (streams).
    Done,
}

/// A nested plan in one run of the node that holds it ([`nested_plan`]): compiled once, run for
/// every outer tuple.
pub trait NestedPlan: Send + Sync + Debug {
    /// Runs it for one parameter tuple (a chunk of one row) on the calling worker alone.
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected>;

    /// Starts it for one parameter tuple with all workers; its result is read while it comes, in
    /// order. Where the calling thread is a worker, which must not wait for others, the result is
    /// complete first. Dropping the reader ends the run.
    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>>;

    /// The figures of all its runs so far in this process, as lines for another.
    fn figures(&self) -> String;

    /// Adds the figures that another process had of the same plan.
    ///
    /// # Errors
    /// They are of another plan.
    fn add_figures(&self, figures: &str) -> Result<()>;
}

/// The nested plans of a node in one run of it, in their order.
#[derive(Debug)]
pub struct NestedPlans(Vec<Arc<dyn NestedPlan>>);

impl NestedPlans {
    /// What an executor of plans puts into [`Run::nested`].
    pub fn of(plans: Vec<Arc<dyn NestedPlan>>) -> Option<Arc<dyn Any + Send + Sync>> {
        (!plans.is_empty()).then(|| Arc::new(NestedPlans(plans)) as _)
    }
}

/// The nested plan of a node that has one, in this run of the node.
///
/// # Errors
/// It has none: a mistake of the executor, as the verifier counts them.
pub fn nested_plan(run: &Run) -> Result<Arc<dyn NestedPlan>> {
    let plans = run.nested.as_ref().and_then(|nested| nested.downcast_ref::<NestedPlans>());
    let plan = plans.and_then(|NestedPlans(plans)| plans.first());
    plan.cloned().ok_or_else(|| Error::internal("a sub-operator without its nested plan"))
}

/// What lowering sees of a node's surroundings.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// The edges into the node (for a leaf: one edge with the plan's parameter tuple).
    pub inputs: &'a [Edge],
    /// The edge out of the node.
    pub output: &'a Edge,
    /// The parameter tuple of the plan the node stands in.
    pub parameters: &'a Tuple,
    /// The result edges of its nested plans.
    pub nested_outputs: Vec<Edge>,
    /// The node's position in its plan.
    pub position: usize,
    /// Functions.
    pub library: &'a Arc<Library>,
}

/// What a sub-operator does; registered under its descriptor's name.
pub trait SubOperator: tessera_plan::Descriptor {
    /// Binds a verified node, once per plan. The variant must agree with the descriptor's role.
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator>;
}

/// A lowered sub-operator.
#[derive(Debug, Clone)]
pub enum Operator {
    /// Starts a pipeline.
    Source(Arc<dyn Source>),
    /// Passes chunks on.
    Stream(Arc<dyn Stream>),
    /// Consumes its input whole.
    Sink(Arc<dyn Sink>),
    /// Passes all inputs on.
    Union,
}

/// A lowered sub-operator that starts a pipeline.
pub trait Source: Send + Sync + Debug {
    /// Starts a run. `sides` are all inputs, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>>;
}

/// A source in one run: morsels, in the source's order.
pub trait SourceRun: Send + Sync + Debug {
    /// What must be ready before it is asked for its morsels; of the output of a sink only.
    fn ready(&self) -> Option<Token> {
        None
    }

    /// How many morsels there are. Asked once, before the first is opened.
    fn morsels(&self) -> usize;

    /// Whether morsels are best begun one after the other, since later ones need what earlier ones
    /// find.
    fn in_order(&self) -> bool {
        false
    }

    /// All morsels in the order in which they are best begun, where that is not their own: the
    /// tuples of the first ones may make the others needless. Their positions stay what they are.
    fn order(&self) -> Option<&[usize]> {
        None
    }

    /// Begins a morsel; each is opened exactly once, by any worker.
    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>>;

    /// As [`SourceRun::open`], for a sink that [takes long chunks](SinkRun::takes_long): they may
    /// have up to
    /// [`long_chunk_rows`](crate::stream_util::long_chunk_rows) tuples.
    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.open(morsel)
    }
}

/// Reads one morsel.
pub trait Reader: Send {
    /// The next chunk (never more than the context's `chunk_rows` tuples, unless it was opened for
    /// long ones), `Blocked` or `Done`.
    fn step(&mut self) -> Result<Step>;
}

/// A lowered sub-operator that passes chunks on.
pub trait Stream: Send + Sync + Debug {
    /// Starts a run. `sides` are the inputs other than the streaming one, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>>;
}

/// A stream in one run: what its workers share.
pub trait StreamRun: Send + Sync + Debug {
    /// A worker's own state.
    fn worker(&self) -> Result<Box<dyn StreamWorker>>;

    /// As [`StreamRun::worker`], where who gets its chunks reads tuples that lie elsewhere than in
    /// columns, or not.
    fn worker_before(&self, _reads_lying: bool) -> Result<Box<dyn StreamWorker>> {
        self.worker()
    }

    /// As [`SinkRun::reads_lying`].
    fn reads_lying(&self) -> bool {
        false
    }

    /// Whether it passes tuples on where they lie.
    fn passes_lying(&self) -> bool {
        false
    }

    /// What is left to emit after all input has passed through all workers (unmatched build
    /// tuples). Asked once.
    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        Ok(None)
    }
}

/// A worker's share of a stream. `push` is called only after `step` answered `NeedInput` (or at the
/// start).
pub trait StreamWorker: Send {
    /// Gives the next chunk (not empty).
    fn push(&mut self, chunk: Chunk) -> Result<()>;

    /// Output for what was pushed, until `NeedInput`. Every output has at most `chunk_rows` tuples.
    fn step(&mut self) -> Result<Step>;

    /// The morsel is complete: what was held back is then asked for with `step`, until `NeedInput`.
    /// Called for every morsel, after the last `push` of it (and after the output of the streams
    /// before this one).
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A worker's own states of the streams of a chain, one after the other, before a sink.
///
/// # Errors
/// Those of [`StreamRun::worker`].
pub fn stream_workers<'a>(
    streams: impl DoubleEndedIterator<Item = &'a Arc<dyn StreamRun>>,
    sink: &dyn SinkRun,
) -> Result<Vec<Box<dyn StreamWorker>>> {
    let mut reads_lying = sink.reads_lying();
    let worker = |stream: &'a Arc<dyn StreamRun>| {
        let worker = stream.worker_before(reads_lying);
        reads_lying = stream.reads_lying() || reads_lying && stream.passes_lying();
        worker
    };
    let mut workers = streams.rev().map(worker).collect::<Result<Vec<_>>>()?;
    workers.reverse();
    Ok(workers)
}

/// A lowered sub-operator that consumes its input whole.
pub trait Sink: Send + Sync + Debug {
    /// Whether its state can leave memory when the budget is spoken for.
    fn spills(&self) -> bool {
        false
    }

    /// Starts a run. `sides` are the inputs other than the streaming one, in order.
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>>;
}

/// A sink in one run: what its workers share.
pub trait SinkRun: Send + Sync + Debug {
    /// A worker's own state.
    fn worker(&self) -> Result<Box<dyn SinkWorker>>;

    /// Whether it reads tuples that lie elsewhere than in columns: without columns, and not for
    /// longer than needed.
    fn reads_lying(&self) -> bool {
        false
    }

    /// Whether it goes over its input once and keeps nothing for each tuple, so that chunks longer
    /// than a cache likes cost nothing, and fewer of them less. Asked for each morsel; only what
    /// comes straight from a source comes in such.
    fn takes_long(&self) -> bool {
        false
    }

    /// Whether no more input is needed; the remaining morsels are then skipped.
    fn satisfied(&self) -> bool {
        false
    }

    /// Whether morsels should start in the source's order, because their prefix decides when it is
    /// satisfied.
    fn in_order(&self) -> bool {
        false
    }

    /// What can be read while input still comes, in the place of what `finish` gives: once, by one
    /// chain, whose pipeline ends after the input has. `has_one_reader` says whether one chain
    /// reads it; where not, giving some is an error.
    fn early_output(&self, _has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        None
    }

    /// All input has come; `workers` are all that were made. Quick: long work goes into tasks.
    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish>;
}

/// A worker's share of a sink.
pub trait SinkWorker: Any + Send {
    /// A morsel begins. `position` orders morsels as their source does; a worker sees them in any
    /// order.
    fn begin(&mut self, _position: u64) -> Result<()> {
        Ok(())
    }

    /// Gives the next chunk (not empty) of the morsel.
    fn push(&mut self, chunk: Chunk) -> Result<()>;

    /// What to wait for before more of this morsel is given; asked after each chunk. Input that is
    /// still given must be taken.
    fn blocked(&self) -> Option<Token> {
        None
    }

    /// The morsel is complete.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Work of a finishing sink that runs on any worker.
pub type Task = Box<dyn FnOnce() -> Result<()> + Send>;

/// How a sink ends: tasks, run in parallel, and what can be read when all are done.
pub struct Finish {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The output; started (asked for its morsels) only after the tasks.
    pub output: Arc<dyn SourceRun>,
}

impl Debug for Finish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finish").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// The worker states as the type the sink made them.
///
/// # Errors
/// A worker of another sink was handed in: a mistake of the executor.
pub fn downcast_workers<T: SinkWorker>(workers: Vec<Box<dyn SinkWorker>>) -> Result<Vec<T>> {
    workers
        .into_iter()
        .map(|worker| {
            let worker: Box<dyn Any> = worker;
            worker
                .downcast::<T>()
                .map(|worker| *worker)
                .map_err(|_| Error::internal("a worker of another sink"))
        })
        .collect()
}
