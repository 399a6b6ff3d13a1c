//! Sinks whose output is read while their input still comes.

use std::sync::Arc;
use std::time::Duration;

use tessera_context::{Interrupt, Run, Token};
use tessera_engine::{CompiledPlan, Engine, Governor, Query, RunRecord, Settings};
use tessera_operator::{
    ByteQueue, Finish, Lowering, Operator, Reader, Registry, Sink, SinkRun, SinkWorker, SourceRun,
    Step, SubOperator,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Plan, Role, text};
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

/// Who waits for ever fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Passes its input on through a queue that holds one chunk: more comes only when that was read, or
/// when no thread reads.
#[derive(Debug, Clone, Copy)]
struct Relay;

impl Descriptor for Relay {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn summary(&self) -> &'static str {
        "for tests"
    }

    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Ok(Edge { order: Order::None, ..inputs.edges[0].clone() })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Relay {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Sink(Arc::new(Relay)))
    }
}

impl Sink for Relay {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(RelayRun(ByteQueue::new(0))))
    }
}

#[derive(Debug)]
struct RelayRun(ByteQueue);

struct RelayWorker(ByteQueue);

#[derive(Debug)]
struct RelaySource(Arc<Reading>);

struct RelayReader(Arc<Reading>);

#[derive(Debug)]
struct Reading(ByteQueue);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl SinkRun for RelayRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(RelayWorker(self.0.clone())))
    }

    fn early_output(&self, _has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        Some(Arc::new(RelaySource(Arc::new(Reading(self.0.clone())))))
    }

    fn finish(self: Arc<Self>, _workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        self.0.close();
        let output = tessera_operator::stream_util::chunks_source(Vec::new(), 1);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl SinkWorker for RelayWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        drop(self.0.try_push(chunk, None));
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        self.0.full()
    }
}

impl SourceRun for RelaySource {
    fn morsels(&self) -> usize {
        2
    }

    fn open(&self, _morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(RelayReader(self.0.clone())))
    }
}

impl Reader for RelayReader {
    fn step(&mut self) -> Result<Step> {
        self.0.0.pop()
    }
}

/// A plan over the numbers from 0 to 99; `%1` relays them.
fn plan(rest: &str) -> Plan {
    let numbers: Vec<String> = (0..100).map(|number| format!("[{number}]")).collect();
    let values =
        format!("%0 = values(){{columns = <x: int64>, rows = [{}]}}\n", numbers.join(", "));
    text::parse(&format!("plan {{{values}%1 = relay(%0)\n{rest}}}")).unwrap()
}

/// How many tuples a plan gives.
fn rows(plan: &Plan, workers: usize) -> Result<usize> {
    let mut registry: Registry = tessera_testing::standard_registry();
    registry.register(Relay);
    let compiled = CompiledPlan::lower(plan, &registry)?;
    let interrupt = Arc::new(Interrupt::after(PATIENCE));
    let settings = Settings { chunk_rows: 1, interrupt, ..Settings::default() };
    let query = Query::new(settings, &Governor::unlimited());
    Ok(Engine::new(workers)?.run(&compiled, query)?.rows())
}

#[test]
fn readers_run_while_the_input_comes() {
    for workers in [1, 2, 5] {
        assert_eq!(rows(&plan("return %1"), workers).unwrap(), 100);
        assert_eq!(rows(&plan("%2 = relay(%1)\n%3 = relay(%2)\nreturn %3"), workers).unwrap(), 100);
    }
}

#[test]
fn readers_that_have_enough_let_the_input_end() {
    // Often, as it depends on which worker ends last.
    for workers in [1, 3].repeat(100) {
        assert_eq!(rows(&plan("%2 = limit(%1){limit = 3}\nreturn %2"), workers).unwrap(), 3);
        assert_eq!(
            rows(&plan("%2 = limit(%1){limit = 3}\n%3 = relay(%2)\nreturn %3"), workers).unwrap(),
            3
        );
    }
}

#[test]
fn several_readers_read_what_was_collected() {
    assert_eq!(rows(&plan("%2 = union(%1, %1)\nreturn %2"), 2).unwrap(), 200);
}

#[test]
fn nested_plans_read_while_their_input_comes() {
    let values = "%0 = values(){columns = <y: int64>, rows = [[1], [2], [3]]}";
    let relays = "%1 = relay(%0)\n%2 = relay(%1)";
    let count = "%3 = reduce(%2){aggregates = {n = {function = :count, args = []}}}\nreturn %3";
    let nested = format!("plan <x: int64> {{{values}\n{relays}\n{count}}}");
    for workers in [1, 2, 5] {
        assert_eq!(
            rows(&plan(&format!("%2 = nested_map(%1) {nested}\nreturn %2")), workers).unwrap(),
            100
        );
    }
}

#[test]
fn queries_share_a_compiled_plan_and_have_records_of_their_own() {
    let values = "%0 = values(){columns = <y: int64>, rows = [[1], [2], [3]]}";
    let count = "%1 = reduce(%0){aggregates = {n = {function = :count, args = []}}}\nreturn %1";
    let outer =
        plan(&format!("%2 = nested_map(%1) plan <x: int64> {{{values}\n{count}}}\nreturn %2"));
    let mut registry: Registry = tessera_testing::standard_registry();
    registry.register(Relay);
    let compiled = CompiledPlan::lower(&outer, &registry).unwrap();
    let engine = Engine::new(2).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let record = RunRecord::new(&compiled);
                let query = Query::new(Settings::default(), &Governor::unlimited());
                assert_eq!(engine.run_recorded(&record, query).unwrap().rows(), 100);
                let profile = record.profile();
                assert_eq!(profile.nodes[1].rows, 100);
                // All runs of the nested plan together.
                assert_eq!(profile.nodes[2].nested[0].nodes[0].rows, 300);
                let (done, total) = record.progress();
                assert!(done == total && done > 100, "{done} of {total}");
                assert_eq!(record.last_job(), None);
            });
        }
    });
    let unused = RunRecord::new(&compiled);
    assert_eq!((unused.profile().nodes[1].rows, unused.progress()), (0, (0, 0)));
}
