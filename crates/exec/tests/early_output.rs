//! Sinks whose output is read while their input still comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tessera_encodings::Chunk;
use tessera_exec::{Engine, Governor, Program, Query, Settings};
use tessera_ops::{
    Collected, Finish, Interrupt, Lowering, Operator, Reader, Registry, Run, Sink, SinkRun, SinkWorker,
    SourceRun, Step, SubOperator, Token,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Plan, Role, text};
use tessera_types::Result;

/// Passes its input on through a queue that holds one chunk: more comes only when that was read, or when nobody reads.
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
        Ok(Arc::new(RelayRun(Arc::default())))
    }
}

#[derive(Debug, Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    ended: bool,
    given_up: bool,
    /// Whoever waits for the queue to change.
    waiting: Vec<Token>,
}

impl Queue {
    fn change(&mut self) {
        self.waiting.drain(..).for_each(|token| token.set_ready());
    }

    fn wait(&mut self) -> Token {
        let token = Token::new();
        self.waiting.push(token.clone());
        token
    }
}

#[derive(Debug)]
struct RelayRun(Arc<Mutex<Queue>>);

struct RelayWorker(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct RelaySource(Arc<Reading>);

struct RelayReader(Arc<Reading>);

#[derive(Debug)]
struct Reading(Arc<Mutex<Queue>>);

impl Drop for Reading {
    fn drop(&mut self) {
        let mut queue = self.0.lock().unwrap();
        queue.given_up = true;
        queue.chunks.clear();
        queue.change();
    }
}

impl SinkRun for RelayRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(RelayWorker(self.0.clone())))
    }

    fn early_output(&self) -> Option<Arc<dyn SourceRun>> {
        Some(Arc::new(RelaySource(Arc::new(Reading(self.0.clone())))))
    }

    fn finish(self: Arc<Self>, _workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut queue = self.0.lock().unwrap();
        queue.ended = true;
        queue.change();
        let output = tessera_ops::stream_util::chunks_source(Vec::new(), 1);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl SinkWorker for RelayWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let mut queue = self.0.lock().unwrap();
        if !queue.given_up {
            queue.chunks.push_back(chunk);
        }
        queue.change();
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        let mut queue = self.0.lock().unwrap();
        (!queue.chunks.is_empty()).then(|| queue.wait())
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
        let mut queue = self.0.0.lock().unwrap();
        let step = match queue.chunks.pop_front() {
            Some(chunk) => Step::HasOutput(chunk),
            None if queue.ended => Step::Done,
            None => return Ok(Step::Blocked(queue.wait())),
        };
        queue.change();
        Ok(step)
    }
}

/// A plan over the numbers from 0 to 99; `%1` relays them.
fn plan(rest: &str) -> Plan {
    let numbers: Vec<String> = (0..100).map(|number| format!("[{number}]")).collect();
    let values = format!("%0 = values(){{columns = <x: int64>, rows = [{}]}}\n", numbers.join(", "));
    text::parse(&format!("plan {{{values}%1 = relay(%0)\n{rest}}}")).unwrap()
}

/// How many tuples a plan gives.
fn rows(plan: &Plan, workers: usize) -> Result<usize> {
    let mut registry: Registry = tessera_ops::standard_registry();
    registry.register(Relay);
    let program = Program::lower(plan, &registry)?;
    // Whoever waits for ever fails.
    let interrupt = Arc::new(Interrupt::after(Duration::from_secs(20)));
    let settings = Settings { chunk_rows: 1, interrupt, ..Settings::default() };
    let query = Query::new(settings, &Governor::unlimited());
    Ok(Engine::new(workers)?.run(&program, query)?.rows())
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
        assert_eq!(rows(&plan("%2 = limit(%1){limit = 3}\n%3 = relay(%2)\nreturn %3"), workers).unwrap(), 3);
    }
}

#[test]
fn several_readers_read_what_was_collected() {
    assert_eq!(rows(&plan("%2 = union(%1, %1)\nreturn %2"), 2).unwrap(), 200);
}
