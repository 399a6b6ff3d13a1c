//! What the executor promises, shown with sub-operators made for the purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use tessera_context::{Context, Interrupt, Run, Token};
use tessera_engine::{CompiledPlan, Engine, Governor, Query, RunRecord, Settings};
use tessera_operator::{
    Finish, Lowering, Operator, Reader, Registry, Sink, SinkRun, SinkWorker, Source, SourceRun,
    Step, Stream, StreamRun, StreamWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Builder, Descriptor, Edge, Inputs, Node, Order, Params, Plan, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Code, Error, Field, Result, Tuple};
use tessera_vector::Chunk;

pub(crate) const MORSELS: usize = 50;
pub(crate) const ROWS: usize = 100;
/// Ends what would wait for ever if a test failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Mode `asleep` has its worker.
static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Until then, mode `asleep` keeps its worker.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// How many morsels of mode `counted` were opened for long chunks.
static LONG: AtomicUsize = AtomicUsize::new(0);

/// Yields `MORSELS` morsels of one chunk of `ROWS` numbers; what else it does is its `mode`.
#[derive(Debug, Clone, Copy)]
struct Numbers;

/// Passes on every chunk, and at the end one more with the number of tuples that passed.
#[derive(Debug, Clone, Copy)]
struct CountAtEnd;

/// Adds up its input; after each chunk it wants no more for a while, and an error if it gets some.
#[derive(Debug, Clone, Copy)]
struct SlowSum;

fn tuple() -> Tuple {
    Tuple::new(vec![Field::new("x", Atom::Int64)])
}

macro_rules! descriptor {
    ($type:ty, $name:literal, [$($parameter:literal),*], $arity:expr, $role:expr) => {
        impl Descriptor for $type {
            fn name(&self) -> &'static str {
                $name
            }
            fn summary(&self) -> &'static str {
                "for tests"
            }
            fn parameters(&self) -> &'static [&'static str] {
                &[$($parameter),*]
            }
            fn arity(&self) -> (usize, usize) {
                $arity
            }
            fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
                Ok(Edge { tuple: tuple(), traits: inputs.edges[0].traits, order: Order::Source })
            }
            fn role(&self, _node: &Node) -> Role {
                $role
            }
        }
    };
}

descriptor!(Numbers, "numbers", ["mode"], (0, 0), Role::Source);
descriptor!(CountAtEnd, "count_at_end", [], (1, 1), Role::Stream(0));
descriptor!(SlowSum, "slow_sum", [], (1, 1), Role::Sink(0));

impl SubOperator for Numbers {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let mode = node.params.choice(
            "mode",
            &["plain", "blocking", "panicking", "failing", "endless", "asleep", "counted"],
        )?;
        Ok(Operator::Source(Arc::new(NumbersSource { mode })))
    }
}

#[derive(Debug, Clone)]
struct NumbersSource {
    mode: &'static str,
}

impl Source for NumbersSource {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(NumbersRun { mode: self.mode, context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct NumbersRun {
    mode: &'static str,
    context: Arc<dyn Context>,
}

impl SourceRun for NumbersRun {
    fn morsels(&self) -> usize {
        MORSELS
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let context = self.context.clone();
        Ok(Box::new(NumbersReader { mode: self.mode, morsel, asked: 0, token: None, context }))
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        LONG.fetch_add(usize::from(self.mode == "counted"), Ordering::SeqCst);
        self.open(morsel)
    }
}

struct NumbersReader {
    mode: &'static str,
    morsel: usize,
    asked: usize,
    token: Option<Token>,
    context: Arc<dyn Context>,
}

impl Reader for NumbersReader {
    fn step(&mut self) -> Result<Step> {
        self.asked += 1;
        match self.mode {
            "panicking" if self.morsel == 20 => panic!("a bug in morsel 20"),
            "failing" if self.morsel == 20 => return Err(Error::data("morsel 20 is damaged")),
            "asleep" if self.morsel == 0 => {
                let since = Instant::now();
                ASLEEP.store(true, Ordering::SeqCst);
                while !AWAKE.load(Ordering::SeqCst) && since.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            "endless" => {
                std::thread::sleep(Duration::from_micros(100));
                self.context.check()?;
                self.asked = 1;
            }
            "blocking" if self.asked == 1 => {
                let token = Token::new();
                self.token = Some(token.clone());
                let ready = token.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(2));
                    ready.set_ready();
                });
                return Ok(Step::Blocked(token));
            }
            _ => {}
        }
        if let Some(token) = self.token.take() {
            assert!(token.is_ready(), "asked again before the token was ready");
            self.asked = 1;
        }
        if self.asked > 1 {
            return Ok(Step::Done);
        }
        let first = (self.morsel * ROWS) as i64;
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + ROWS as i64));
        Ok(Step::HasOutput(Chunk::from_arrays(vec![values])))
    }
}

impl SubOperator for CountAtEnd {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Stream(Arc::new(CountAtEnd)))
    }
}

impl Stream for CountAtEnd {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(CountRun { passed: Arc::new(AtomicUsize::new(0)) }))
    }
}

#[derive(Debug)]
struct CountRun {
    passed: Arc<AtomicUsize>,
}

struct CountWorker {
    passed: Arc<AtomicUsize>,
    chunk: Option<Chunk>,
}

impl StreamRun for CountRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(CountWorker { passed: self.passed.clone(), chunk: None }))
    }

    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let count: ArrayRef =
            Arc::new(Int64Array::from(vec![self.passed.load(Ordering::SeqCst) as i64]));
        Ok(Some(tessera_operator::stream_util::chunks_source(
            vec![Chunk::from_arrays(vec![count])],
            1,
        )))
    }
}

impl StreamWorker for CountWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.passed.fetch_add(chunk.rows(), Ordering::SeqCst);
        self.chunk = Some(chunk);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.chunk.take().map_or(Step::NeedInput, Step::HasOutput))
    }
}

impl SubOperator for SlowSum {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Sink(Arc::new(SlowSum)))
    }
}

impl Sink for SlowSum {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(SlowSum))
    }
}

#[derive(Default)]
struct SlowWorker {
    sum: i64,
    resting: Token,
    pushed: bool,
}

impl SinkRun for SlowSum {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(SlowWorker::default()))
    }

    fn accepts_long_chunks(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<SlowWorker>(workers)?;
        let sum: ArrayRef =
            Arc::new(Int64Array::from(vec![workers.iter().map(|worker| worker.sum).sum::<i64>()]));
        let output =
            tessera_operator::stream_util::chunks_source(vec![Chunk::from_arrays(vec![sum])], 1);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl SinkWorker for SlowWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if self.pushed && !self.resting.is_ready() {
            return Err(Error::internal("it was given more while it rested"));
        }
        let column = chunk.column(0)?.plain()?;
        self.sum += column.as_primitive::<Int64Type>().values().iter().sum::<i64>();
        self.pushed = true;
        self.resting = Token::new();
        let rested = self.resting.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            rested.set_ready();
        });
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        self.pushed.then(|| self.resting.clone())
    }
}

pub(crate) fn registry() -> Registry {
    let mut registry = tessera_testing::standard_registry();
    registry.register(Numbers);
    registry.register(CountAtEnd);
    registry.register(SlowSum);
    registry
}

pub(crate) fn numbers(mode: &str, counts: usize) -> Plan {
    let mut plan = Builder::new(Tuple::empty());
    let mut node =
        plan.add("numbers", &[], Params::new().with("mode", tessera_plan::Value::name(mode)));
    for _ in 0..counts {
        node = plan.add("count_at_end", &[node], Params::new());
    }
    plan.finish(node)
}

fn run(plan: &Plan, workers: usize) -> Result<Vec<i64>> {
    let compiled = CompiledPlan::lower(plan, &registry())?;
    let result = Engine::new(workers)?
        .run(&compiled, Query::new(Settings::default(), &Governor::unlimited()))?;
    let mut values = Vec::new();
    for chunk in result.chunks() {
        let chunk = chunk?;
        values.extend_from_slice(chunk.column(0)?.plain()?.as_primitive::<Int64Type>().values());
    }
    Ok(values)
}

pub(crate) fn all() -> Vec<i64> {
    (0..(MORSELS * ROWS) as i64).collect()
}

#[test]
fn source_order_is_kept_with_any_number_of_workers() {
    for workers in [1, 2, 5] {
        assert_eq!(run(&numbers("plain", 0), workers).unwrap(), all());
    }
}

#[test]
fn blocked_morsels_are_parked_and_resumed() {
    for workers in [1, 3] {
        assert_eq!(run(&numbers("blocking", 0), workers).unwrap(), all());
    }
}

#[test]
fn a_sink_that_wants_no_more_now_is_given_no_more() {
    let mut plan = Builder::new(Tuple::empty());
    let plain = Params::new().with("mode", tessera_plan::Value::name("plain"));
    let source = plan.add("numbers", &[], plain);
    let sum = plan.add("slow_sum", &[source], Params::new());
    let plan = plan.finish(sum);
    for workers in [1, 3] {
        assert_eq!(run(&plan, workers).unwrap(), [all().iter().sum::<i64>()]);
    }
}

#[test]
fn only_what_comes_straight_from_a_source_comes_in_long_chunks() {
    for (streams, long) in [(1, 0), (0, MORSELS)] {
        let mut plan = Builder::new(Tuple::empty());
        let counted = Params::new().with("mode", tessera_plan::Value::name("counted"));
        let mut node = plan.add("numbers", &[], counted);
        for _ in 0..streams {
            node = plan.add("count_at_end", &[node], Params::new());
        }
        node = plan.add("slow_sum", &[node], Params::new());
        run(&plan.finish(node), 2).unwrap();
        assert_eq!(LONG.load(Ordering::SeqCst), long);
    }
}

#[test]
fn what_streams_have_left_passes_the_streams_behind_them() {
    let count = (MORSELS * ROWS) as i64;
    let mut expected = all();
    expected.extend([count, count + 1]);
    for workers in [1, 4] {
        assert_eq!(run(&numbers("plain", 2), workers).unwrap(), expected);
    }
}

#[test]
fn a_shared_node_runs_once_for_all_its_consumers() {
    let mut plan = Builder::new(Tuple::empty());
    let source =
        plan.add("numbers", &[], Params::new().with("mode", tessera_plan::Value::name("plain")));
    let both = plan.add("union", &[source, source], Params::new());
    let record = RunRecord::new(&CompiledPlan::lower(&plan.finish(both), &registry()).unwrap());
    let query = Query::new(Settings::default(), &Governor::unlimited());
    let result = Engine::new(2).unwrap().run_recorded(&record, query).unwrap();
    assert_eq!(result.rows(), 2 * MORSELS * ROWS);
    assert_eq!(record.profile().nodes[0].rows as usize, MORSELS * ROWS);
}

#[test]
fn the_first_error_ends_the_run() {
    let error = run(&numbers("failing", 1), 3).unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::Data, "morsel 20 is damaged"));
}

#[test]
fn a_panic_becomes_an_error_and_the_engine_lives() {
    let engine = Engine::new(2).unwrap();
    let run = |mode| {
        let compiled = CompiledPlan::lower(&numbers(mode, 0), &registry()).unwrap();
        engine.run(&compiled, Query::new(Settings::default(), &Governor::unlimited()))
    };
    let error = run("panicking").unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("a bug in morsel 20"), "{error}");
    assert_eq!(run("plain").unwrap().rows(), MORSELS * ROWS);
}

#[test]
fn cancelling_and_deadlines_end_a_run() {
    let engine = Engine::new(2).unwrap();
    let compiled = CompiledPlan::lower(&numbers("endless", 0), &registry()).unwrap();
    let query = Query::new(Settings::default(), &Governor::unlimited());
    let canceller = query.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        canceller.cancel();
    });
    assert_eq!(engine.run(&compiled, query).unwrap_err().code(), Code::Cancelled);
    thread.join().unwrap();
    let interrupt = Arc::new(Interrupt::after(Duration::from_millis(20)));
    let deadline = Settings { interrupt, ..Settings::default() };
    let error = engine.run(&compiled, Query::new(deadline, &Governor::unlimited())).unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
}

#[test]
fn a_run_has_its_turn_beside_one_that_does_not_end() {
    let engine = Engine::new(1).unwrap();
    let governor = Governor::unlimited();
    // Without turns it would end first, by its deadline.
    let interrupt = Arc::new(Interrupt::after(Duration::from_secs(30)));
    let endless = Query::new(Settings { interrupt, ..Settings::default() }, &governor);
    std::thread::scope(|scope| {
        let compiled = CompiledPlan::lower(&numbers("endless", 0), &registry()).unwrap();
        let (engine, query) = (&engine, endless.clone());
        let hog = scope.spawn(move || engine.run(&compiled, query).unwrap_err().code());
        while governor.used_bytes() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for mode in ["plain", "blocking"] {
            let compiled = CompiledPlan::lower(&numbers(mode, 1), &registry()).unwrap();
            let query = Query::new(Settings::default(), &Governor::unlimited());
            let done = engine.run(&compiled, query);
            assert_eq!(done.map(|result| result.rows()).ok(), Some(MORSELS * ROWS + 1), "{mode}");
        }
        assert!(!hog.is_finished());
        endless.cancel();
        assert_eq!(hog.join().unwrap(), Code::Cancelled);
    });
}

#[test]
fn a_run_that_gets_no_worker_can_be_cancelled() {
    let engine = Engine::new(1).unwrap();
    let governor = Governor::unlimited();
    std::thread::scope(|scope| {
        let compiled = CompiledPlan::lower(&numbers("asleep", 0), &registry()).unwrap();
        let engine = &engine;
        let query = Query::new(Settings::default(), &Governor::unlimited());
        let hog = scope.spawn(move || engine.run(&compiled, query).map(|result| result.rows()));
        let since = Instant::now();
        while !ASLEEP.load(Ordering::SeqCst) && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let compiled = CompiledPlan::lower(&numbers("plain", 0), &registry()).unwrap();
        let interrupt = Arc::new(Interrupt::after(Duration::from_millis(50)));
        let query = Query::new(Settings { interrupt, ..Settings::default() }, &governor);
        let error = engine.run(&compiled, query).unwrap_err();
        assert_eq!(error.code(), Code::Cancelled);
        assert!(!hog.is_finished(), "it has waited for the worker");
        AWAKE.store(true, Ordering::SeqCst);
        assert_eq!(hog.join().unwrap().unwrap(), MORSELS * ROWS);
    });
}

#[test]
fn a_result_beyond_the_budget_without_scratch_is_an_error_and_the_memory_comes_back() {
    let governor = Governor::new(10_000);
    let compiled = CompiledPlan::lower(&numbers("plain", 0), &registry()).unwrap();
    let engine = Engine::new(2).unwrap();
    let error = engine.run(&compiled, Query::new(Settings::default(), &governor)).unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("no scratch directory"), "{error}");
    assert_eq!(governor.used_bytes(), 0);
}

/// Threads of the test, more than there are cores: a worker loses its core between any two steps
/// then.
const THREADS: usize = 16;

#[test]
fn workers_end_whenever_the_engine_is_dropped() {
    let (done, ended) = std::sync::mpsc::channel();
    for _ in 0..THREADS {
        let done = done.clone();
        std::thread::spawn(move || {
            (0..1_000).for_each(|_| drop(Engine::new(3).unwrap()));
            done.send(()).unwrap();
        });
    }
    for _ in 0..THREADS {
        ended.recv_timeout(PATIENCE).expect("a worker sleeps on");
    }
}
