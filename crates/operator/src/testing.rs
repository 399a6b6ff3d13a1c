//! Runs plans in the tests of this room: a context, a source of given tuples, and a plain executor
//! with real threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use tessera_context::testing::TestContext;
use tessera_context::{Context, Run};
use tessera_plan::pipeline::{Chain, End, Pipelines, Start, cut};
use tessera_plan::{
    Builder, Descriptor, Edge, Inputs, Node, NodeId, Order, Params, Plan, Role, SortKey, Traits,
    Value, Verified, verify,
};
use tessera_rows::{Collected, Keeper, Keeping};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use crate::Registry;
use crate::stream_util::{ChunksReader, collected_source};
use crate::{
    Lowering, NestedPlan, NestedPlans, Operator, Reader, SinkRun, SinkWorker, Source, SourceRun,
    Step, StreamRun, StreamWorker, SubOperator, stream_workers,
};

/// Chunk sizes and numbers of workers that every sub-operator is tested with.
pub const SETTINGS: [(usize, usize); 6] =
    [(1, 1), (7, 1), (7, 3), (8192, 1), (8192, 4), (65_536, 2)];

/// A plan under construction, with tables given by the test.
#[derive(Debug)]
pub struct TestPlan {
    /// What the plan may use.
    pub registry: Registry,
    /// What has been added so far.
    pub builder: Builder,
    tables: Arc<Mutex<Vec<Given>>>,
}

#[derive(Debug, Clone)]
struct Given {
    tuple: Tuple,
    batch: RecordBatch,
    traits: Option<Traits>,
    order: Order,
}

impl TestPlan {
    /// An empty plan of the sub-operators that `register` adds to the registry.
    pub fn new(register: impl FnOnce(&mut Registry)) -> Self {
        let tables = Arc::new(Mutex::new(Vec::new()));
        let mut registry = Registry::new(Arc::new(tessera_functions::Library::default()));
        register(&mut registry);
        registry.register(GivenSource { tables: tables.clone() });
        TestPlan { registry, builder: Builder::new(Tuple::empty()), tables }
    }

    /// Parameters of a `given` node (of this plan or of a nested one) that yields the tuples of
    /// `batch`.
    pub fn given(&self, batch: RecordBatch) -> Params {
        self.given_as(batch, None, Order::Source)
    }

    /// As [`TestPlan::given`], with these traits and this order on its edge.
    pub fn given_as(&self, batch: RecordBatch, traits: Option<Traits>, order: Order) -> Params {
        let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
        let mut tables = self.tables.lock().unwrap();
        tables.push(Given { tuple, batch, traits, order });
        Params::new().with("table", tables.len() as i64 - 1)
    }

    /// A node that yields the tuples of `batch`.
    pub fn table(&mut self, batch: RecordBatch) -> NodeId {
        let params = self.given(batch);
        self.builder.add("given", &[], params)
    }

    /// Adds a node.
    pub fn add(&mut self, operator: &str, inputs: &[NodeId], params: Params) -> NodeId {
        self.builder.add(operator, inputs, params)
    }

    /// Adds a node with a nested plan.
    pub fn add_nested(
        &mut self,
        operator: &str,
        inputs: &[NodeId],
        params: Params,
        nested: Plan,
    ) -> NodeId {
        self.builder.add_nested(operator, inputs, params, vec![nested])
    }

    /// The edge out of `root`, or why the plan is rejected.
    pub fn verify(&self, root: NodeId) -> Result<Edge> {
        let plan = self.plan(root);
        Ok(verify(&plan, self.registry.catalogue())?.edges[root.index()].clone())
    }

    fn plan(&self, root: NodeId) -> Plan {
        self.builder.clone().finish(root)
    }

    /// The output of `root` as one batch.
    pub fn run(&self, root: NodeId, chunk_rows: usize, workers: usize) -> Result<RecordBatch> {
        let context = TestContext::new(chunk_rows, workers);
        let batch = self.run_in(root, context.clone())?;
        assert_eq!(context.used(), 0, "memory still held after the run");
        Ok(batch)
    }

    /// The output of `root` as one batch, in a given context.
    pub fn run_in(&self, root: NodeId, context: Arc<dyn Context>) -> Result<RecordBatch> {
        let tuple = self.verify(root)?.tuple;
        let collected = self.collect(root, context)?;
        let schema = Arc::new(tuple.arrow_schema()?);
        let batches =
            collected.chunks().map(|chunk| chunk?.to_batch(&tuple)).collect::<Result<Vec<_>>>()?;
        Ok(concat_batches(&schema, &batches)?)
    }

    /// The output of `root`.
    pub fn collect(&self, root: NodeId, context: Arc<dyn Context>) -> Result<Collected> {
        let plan = self.plan(root);
        let verified = verify(&plan, self.registry.catalogue())?;
        let compiled = compile(&plan, &verified, &self.registry)?;
        let collected = compiled.execute(Chunk::unit(), &context, context.workers())?;
        for chunk in collected.chunks() {
            let chunk = chunk?;
            assert!(chunk.rows() <= context.chunk_rows(), "a chunk of {} tuples", chunk.rows());
        }
        Ok(collected)
    }
}

/// Yields what the test gave: `table` = its number.
#[derive(Debug)]
struct GivenSource {
    tables: Arc<Mutex<Vec<Given>>>,
}

impl GivenSource {
    fn table(&self, node: &Node) -> Result<Given> {
        let index = node.params.integer("table")? as usize;
        Ok(self.tables.lock().unwrap()[index].clone())
    }
}

impl Descriptor for GivenSource {
    crate::describe!("given", "What the test gave.", ["table"], 0, 0);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let table = self.table(node)?;
        let traits = table.traits.unwrap_or(inputs.edges[0].traits);
        Ok(Edge { tuple: table.tuple, traits, order: table.order })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for GivenSource {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let columns = self.table(node)?.batch.columns().to_vec();
        let rows = self.table(node)?.batch.num_rows();
        let columns = columns.into_iter().map(tessera_vector::Column::new).collect();
        Ok(Operator::Source(Arc::new(GivenRun { chunk: Chunk::new(columns, rows), chunk_rows: 0 })))
    }
}

/// Morsels of about three chunks, so that there are several however few tuples there are.
#[derive(Debug)]
struct GivenRun {
    chunk: Chunk,
    chunk_rows: usize,
}

impl Source for GivenRun {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let chunk_rows = run.context.chunk_rows();
        Ok(Arc::new(GivenRun { chunk: self.chunk.clone(), chunk_rows }))
    }
}

impl GivenRun {
    fn morsel_rows(&self) -> usize {
        (3 * self.chunk_rows).min(self.chunk.rows() / 5).max(1)
    }
}

impl SourceRun for GivenRun {
    fn morsels(&self) -> usize {
        self.chunk.rows().div_ceil(self.morsel_rows())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let first = morsel * self.morsel_rows();
        let len = self.morsel_rows().min(self.chunk.rows() - first);
        Ok(Box::new(ChunksReader::new(vec![self.chunk.slice(first, len)], self.chunk_rows)))
    }
}

/// A plan with its sub-operators lowered.
#[derive(Debug)]
struct Compiled {
    parameters: Tuple,
    operators: Vec<Operator>,
    /// The nested plans of each node.
    nested: Vec<Vec<Arc<Compiled>>>,
    pipelines: Pipelines,
}

fn compile(plan: &Plan, verified: &Verified, registry: &Registry) -> Result<Arc<Compiled>> {
    let (mut operators, mut nested) = (Vec::new(), Vec::new());
    for (id, node) in plan.ids().zip(&plan.nodes) {
        let inner = node.nested.iter().zip(&verified.nested[id.index()]);
        nested.push(
            inner
                .map(|(plan, verified)| compile(plan, verified, registry))
                .collect::<Result<_>>()?,
        );
        let nested_outputs = node.nested.iter().zip(&verified.nested[id.index()]);
        let leaf =
            [Edge { tuple: plan.parameters.clone(), traits: Traits::DRIVER, order: Order::Source }];
        let inputs: Vec<Edge> =
            node.inputs.iter().map(|input| verified.edges[input.index()].clone()).collect();
        let lowering = Lowering {
            inputs: if inputs.is_empty() { &leaf } else { &inputs },
            output: &verified.edges[id.index()],
            parameters: &plan.parameters,
            nested_outputs: nested_outputs.map(|(p, v)| v.edges[p.root.index()].clone()).collect(),
            position: id.index(),
            library: registry.library(),
        };
        operators.push(registry.implementation(&node.operator)?.lower(node, &lowering)?);
    }
    let pipelines = cut(plan, registry.catalogue())?;
    Ok(Arc::new(Compiled { parameters: plan.parameters.clone(), operators, nested, pipelines }))
}

/// What a pipeline has left.
enum Product {
    Collected(Arc<Collected>),
    Output(Arc<dyn SourceRun>),
}

/// Where chunks of a pipeline go.
#[derive(Debug)]
struct CollectSink {
    chunks: Mutex<BTreeMap<(u64, usize), Chunk>>,
}

struct CollectWorker {
    run: Arc<CollectSink>,
    position: u64,
    count: usize,
}

impl SinkRun for CollectSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Err(Error::internal("made by the executor"))
    }

    fn finish(self: Arc<Self>, _workers: Vec<Box<dyn SinkWorker>>) -> Result<crate::Finish> {
        Err(Error::internal("read by the executor"))
    }
}

impl SinkWorker for CollectWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        (self.position, self.count) = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.chunks.lock().unwrap().insert((self.position, self.count), chunk);
        self.count += 1;
        Ok(())
    }
}

impl NestedPlan for Compiled {
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        self.execute(parameters, context, 1)
    }

    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>> {
        let collected = self.execute(parameters, context, context.workers())?;
        Ok(Box::new(ChunksReader::of_kept(collected.kept().to_vec(), context.chunk_rows())))
    }

    fn figures(&self) -> String {
        String::new()
    }

    fn add_figures(&self, _figures: &str) -> Result<()> {
        Ok(())
    }
}

/// Chunks as the engine keeps them: those that there is no room for leave memory.
fn kept(mut chunks: impl Iterator<Item = Chunk>, run: &Run) -> Result<Collected> {
    let mut keeper = Keeping::new(run).keeper();
    chunks.try_for_each(|chunk| keeper.push(chunk))?;
    Ok(Keeper::collect(vec![keeper]).0)
}

impl Compiled {
    fn execute(
        &self,
        parameters: Chunk,
        context: &Arc<dyn Context>,
        workers: usize,
    ) -> Result<Collected> {
        let parameter_tuple = self.parameters.clone();
        let run = Run { parameter_tuple, parameters, ..Run::of(context.clone()) };
        let mut products: Vec<Product> = Vec::new();
        for pipeline in &self.pipelines.pipelines {
            let product = match pipeline.end {
                End::Collect(_) => {
                    let sink = Arc::new(CollectSink { chunks: Mutex::default() });
                    let worker = || {
                        Ok(Box::new(CollectWorker { run: sink.clone(), position: 0, count: 0 })
                            as Box<dyn SinkWorker>)
                    };
                    self.pipeline(&pipeline.chains, &run, &products, workers, &*sink, &worker)?;
                    let chunks = std::mem::take(&mut *sink.chunks.lock().unwrap());
                    let is_last = products.len() + 1 == self.pipelines.pipelines.len();
                    let collected = match is_last {
                        true => Collected::new(chunks.into_values()),
                        false => kept(chunks.into_values(), &run)?,
                    };
                    Product::Collected(Arc::new(collected))
                }
                End::Sink(node) => {
                    let Operator::Sink(sink) = &self.operators[node.index()] else {
                        return Err(Error::internal(
                            "the role says sink, the lowering another thing",
                        ));
                    };
                    let sink =
                        sink.start(&self.run_of(node, &run), &self.sides(node, &products))?;
                    let states =
                        self.pipeline(&pipeline.chains, &run, &products, workers, &*sink, &|| {
                            sink.worker()
                        })?;
                    let finish = sink.finish(states)?;
                    std::thread::scope(|scope| {
                        let tasks: Vec<_> =
                            finish.tasks.into_iter().map(|task| scope.spawn(task)).collect();
                        tasks.into_iter().try_for_each(|task| task.join().unwrap())
                    })?;
                    Product::Output(finish.output)
                }
            };
            products.push(product);
        }
        match products.pop() {
            Some(Product::Collected(collected)) => Ok((*collected).clone()),
            _ => Err(Error::internal("a plan without a result")),
        }
    }

    fn run_of(&self, node: NodeId, run: &Run) -> Run {
        let nested =
            self.nested[node.index()].iter().map(|plan| plan.clone() as Arc<dyn NestedPlan>);
        Run { nested: NestedPlans::of(nested.collect()), ..run.clone() }
    }

    fn sides(&self, node: NodeId, products: &[Product]) -> Vec<Arc<Collected>> {
        let sides = self.pipelines.sides.get(&node).map_or(&[][..], Vec::as_slice);
        sides
            .iter()
            .map(|&(_, pipeline)| match &products[pipeline] {
                Product::Collected(collected) => collected.clone(),
                Product::Output(_) => panic!("a side that was not collected"),
            })
            .collect()
    }

    fn pipeline(
        &self,
        chains: &[Chain],
        run: &Run,
        products: &[Product],
        workers: usize,
        sink: &dyn SinkRun,
        sink_worker: &(dyn Fn() -> Result<Box<dyn SinkWorker>> + Sync),
    ) -> Result<Vec<Box<dyn SinkWorker>>> {
        let mut states = (0..workers).map(|_| sink_worker()).collect::<Result<Vec<_>>>()?;
        let mut base = 0;
        for chain in chains {
            let source = match chain.start {
                Start::Pipeline(pipeline) => match &products[pipeline] {
                    Product::Collected(collected) => {
                        collected_source(collected, run.context.chunk_rows())
                    }
                    Product::Output(output) => output.clone(),
                },
                Start::Node(node) => match &self.operators[node.index()] {
                    Operator::Source(source) => {
                        source.start(&self.run_of(node, run), &self.sides(node, products))?
                    }
                    _ => {
                        return Err(Error::internal(
                            "the role says source, the lowering another thing",
                        ));
                    }
                },
            };
            let mut streams = Vec::new();
            for &node in &chain.streams {
                match &self.operators[node.index()] {
                    Operator::Stream(stream) => streams
                        .push(stream.start(&self.run_of(node, run), &self.sides(node, products))?),
                    _ => {
                        return Err(Error::internal(
                            "the role says stream, the lowering another thing",
                        ));
                    }
                }
            }
            base = drive(&*source, &streams, sink, &mut states, base)?;
            for index in 0..streams.len() {
                if let Some(rest) = streams[index].rest()? {
                    base = drive(&*rest, &streams[index + 1..], sink, &mut states, base)?;
                }
            }
        }
        Ok(states)
    }
}

/// Takes every morsel of a source through streams into a sink, with one thread per sink worker.
fn drive(
    source: &dyn SourceRun,
    streams: &[Arc<dyn StreamRun>],
    sink: &dyn SinkRun,
    states: &mut [Box<dyn SinkWorker>],
    base: u64,
) -> Result<u64> {
    let morsels = source.morsels();
    let next = AtomicUsize::new(0);
    let work = |state: &mut Box<dyn SinkWorker>| -> Result<()> {
        let mut workers = stream_workers(streams.iter(), sink)?;
        loop {
            let morsel = next.fetch_add(1, Ordering::SeqCst);
            if morsel >= morsels || sink.satisfied() {
                return Ok(());
            }
            state.begin(base + morsel as u64)?;
            let mut reader = source.open(morsel)?;
            loop {
                match reader.step()? {
                    Step::Again => {}
                    Step::HasOutput(chunk) if chunk.is_empty() => {}
                    Step::HasOutput(chunk) => pass(&mut workers, chunk, &mut **state)?,
                    Step::Blocked(token) => token.wait(Duration::from_millis(10)),
                    Step::Done => break,
                    Step::NeedInput => return Err(Error::internal("a source asks for input")),
                }
            }
            for index in 0..workers.len() {
                let (first, after) = workers[index..].split_first_mut().unwrap();
                first.end()?;
                drain(first, after, &mut **state)?;
            }
            state.end()?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = states.iter_mut().map(|state| scope.spawn(|| work(state))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    Ok(base + morsels as u64)
}

fn pass(
    workers: &mut [Box<dyn StreamWorker>],
    chunk: Chunk,
    sink: &mut dyn SinkWorker,
) -> Result<()> {
    match workers.split_first_mut() {
        None => sink.push(chunk),
        Some((first, after)) => {
            first.push(chunk)?;
            drain(first, after, sink)
        }
    }
}

fn drain(
    first: &mut Box<dyn StreamWorker>,
    after: &mut [Box<dyn StreamWorker>],
    sink: &mut dyn SinkWorker,
) -> Result<()> {
    loop {
        match first.step()? {
            Step::Again => {}
            Step::HasOutput(chunk) if chunk.is_empty() => {}
            Step::HasOutput(chunk) => pass(after, chunk, sink)?,
            Step::Blocked(token) => token.wait(Duration::from_millis(10)),
            Step::NeedInput | Step::Done => return Ok(()),
        }
    }
}

/// A parameter that is a list of field names.
pub fn names(names: &[&str]) -> Value {
    Value::names(names)
}

/// The parameter `keys` of a sort: field, whether descending, whether NULLs come first.
pub fn sort_keys(list: &[(&str, bool, bool)]) -> Params {
    let key = |&(field, descending, nulls_first): &(&str, bool, bool)| {
        SortKey { field: field.into(), descending, nulls_first }.to_value()
    };
    Params::new().with("keys", Value::List(list.iter().map(key).collect()))
}
