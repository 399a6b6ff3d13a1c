//! Runs plans in tests of sub-operators: a context, sources over test tables, and a simple executor
//! with real threads.

mod executor;

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use tessera_context::testing::{TestContext, rows};
use tessera_context::{Context, Run};
use tessera_plan::{
    Builder, Descriptor, Edge, Inputs, Node, NodeId, Order, Params, Plan, Role, SortKey, Traits,
    Value, text, verify,
};
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use crate::Registry;
use crate::stream_util::ChunksReader;
use crate::{Lowering, Operator, Reader, Source, SourceRun, SubOperator};

use executor::compile;

/// The chunk sizes and numbers of workers that every sub-operator is tested with.
pub const SETTINGS: [(usize, usize); 6] =
    [(1, 1), (7, 1), (7, 3), (8192, 1), (8192, 4), (65_536, 2)];

/// A plan under construction, with tables from the test.
#[derive(Debug)]
pub struct TestPlan {
    /// The sub-operators that the plan may use.
    pub registry: Registry,
    /// The nodes added so far.
    pub builder: Builder,
    tables: Arc<Mutex<Vec<TestTable>>>,
}

#[derive(Debug, Clone)]
struct TestTable {
    tuple: Tuple,
    batch: RecordBatch,
    traits: Option<Traits>,
    order: Order,
}

impl TestPlan {
    /// Creates an empty plan; `register` adds its sub-operators.
    pub fn new(register: impl FnOnce(&mut Registry)) -> Self {
        let tables = Arc::new(Mutex::new(Vec::new()));
        let mut registry = Registry::new(Arc::new(tessera_functions::Library::default()));
        register(&mut registry);
        registry.register(TestTableSource { tables: tables.clone() });
        TestPlan { registry, builder: Builder::new(Tuple::empty()), tables }
    }

    /// The parameters of a `given` node, in this plan or a nested one, that yields the tuples of
    /// `batch`.
    pub fn given(&self, batch: RecordBatch) -> Params {
        self.given_as(batch, None, Order::Source)
    }

    /// Like [`TestPlan::given`], with these traits and this order on its edge.
    pub fn given_as(&self, batch: RecordBatch, traits: Option<Traits>, order: Order) -> Params {
        let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
        let mut tables = self.tables.lock().unwrap();
        tables.push(TestTable { tuple, batch, traits, order });
        Params::new().with("table", tables.len() as i64 - 1)
    }

    /// Adds a node that yields the tuples of `batch`.
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

    /// Returns the edge out of `root`, or the error of the verifier.
    pub fn verify(&self, root: NodeId) -> Result<Edge> {
        let plan = self.plan(root);
        Ok(verify(&plan, self.registry.catalog())?.edges[root.index()].clone())
    }

    /// Returns the plan with this root.
    pub fn plan(&self, root: NodeId) -> Plan {
        self.builder.clone().finish(root)
    }

    /// Runs the plan and returns the output of `root` as one batch.
    pub fn run(&self, root: NodeId, chunk_rows: usize, workers: usize) -> Result<RecordBatch> {
        let context = TestContext::new(chunk_rows, workers);
        let batch = self.run_in(root, context.clone())?;
        assert_eq!(context.used(), 0, "memory still held after the run");
        Ok(batch)
    }

    /// Like [`TestPlan::run`], in an existing context.
    pub fn run_in(&self, root: NodeId, context: Arc<dyn Context>) -> Result<RecordBatch> {
        let tuple = self.verify(root)?.tuple;
        let collected = self.collect(root, context)?;
        let schema = Arc::new(tuple.arrow_schema()?);
        let batches =
            collected.chunks().map(|chunk| chunk?.to_batch(&tuple)).collect::<Result<Vec<_>>>()?;
        Ok(concat_batches(&schema, &batches)?)
    }

    /// Runs the plan and returns the output of `root`.
    pub fn collect(&self, root: NodeId, context: Arc<dyn Context>) -> Result<Collected> {
        let plan = self.plan(root);
        let verified = verify(&plan, self.registry.catalog())?;
        let compiled = compile(&plan, &verified, &self.registry)?;
        let collected = compiled.execute(Chunk::unit(), &context, context.workers())?;
        for chunk in collected.chunks() {
            let chunk = chunk?;
            assert!(chunk.rows() <= context.chunk_rows(), "a chunk of {} tuples", chunk.rows());
        }
        Ok(collected)
    }
}

/// Runs the nodes of a plan in text form, of which `%result` is the last, and returns its tuples as
/// text, one each.
///
/// # Errors
/// Those of the parser, of the verifier and of the run; a result that holds collections.
pub fn run_text(registry: &Registry, nodes: &str) -> Result<Vec<String>> {
    let Plan { parameters, nodes, root } =
        text::parse(&format!("plan {{ {nodes} return %result }}"))?;
    let mut builder = Builder::new(parameters);
    for node in nodes {
        builder.push(node);
    }
    let plan = TestPlan { registry: registry.clone(), builder, tables: Arc::default() };
    Ok(rows(&plan.run(root, 2048, 1)?))
}

/// The sub-operator `given`: yields the test table with number `table`.
#[derive(Debug)]
struct TestTableSource {
    tables: Arc<Mutex<Vec<TestTable>>>,
}

impl TestTableSource {
    fn table(&self, node: &Node) -> Result<TestTable> {
        let index = node.params.integer("table")? as usize;
        Ok(self.tables.lock().unwrap()[index].clone())
    }
}

impl Descriptor for TestTableSource {
    crate::describe!("given", "The tuples of a test table.", ["table"], 0, 0);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let table = self.table(node)?;
        let traits = table.traits.unwrap_or(inputs.edges[0].traits);
        Ok(Edge { tuple: table.tuple, traits, order: table.order })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for TestTableSource {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let columns = self.table(node)?.batch.columns().to_vec();
        let rows = self.table(node)?.batch.num_rows();
        let columns = columns.into_iter().map(tessera_vector::Column::new).collect();
        Ok(Operator::Source(Arc::new(TestTableScan {
            chunk: Chunk::new(columns, rows),
            chunk_rows: 0,
        })))
    }
}

/// A source over a test table. A morsel has about three chunks, fewer where the table is small, so
/// that there are several morsels.
#[derive(Debug)]
struct TestTableScan {
    chunk: Chunk,
    chunk_rows: usize,
}

impl Source for TestTableScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let chunk_rows = run.context.chunk_rows();
        Ok(Arc::new(TestTableScan { chunk: self.chunk.clone(), chunk_rows }))
    }
}

impl TestTableScan {
    fn morsel_rows(&self) -> usize {
        (3 * self.chunk_rows).min(self.chunk.rows() / 5).max(1)
    }
}

impl SourceRun for TestTableScan {
    fn morsels(&self) -> usize {
        self.chunk.rows().div_ceil(self.morsel_rows())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let first = morsel * self.morsel_rows();
        let len = self.morsel_rows().min(self.chunk.rows() - first);
        Ok(Box::new(ChunksReader::new(vec![self.chunk.slice(first, len)], self.chunk_rows)))
    }
}

/// A parameter value that is a list of field names.
pub fn names(names: &[&str]) -> Value {
    Value::names(names)
}

/// The parameter `keys` of a sort, from (field, descending, NULLs first).
pub fn sort_keys(list: &[(&str, bool, bool)]) -> Params {
    let key = |&(field, descending, nulls_first): &(&str, bool, bool)| {
        SortKey { field: field.into(), descending, nulls_first }.to_value()
    };
    Params::new().with("keys", Value::List(list.iter().map(key).collect()))
}
