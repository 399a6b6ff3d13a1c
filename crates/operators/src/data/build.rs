//! `build`: collects tuples into a hash table.

use std::sync::{Arc, OnceLock};

use tessera_context::Run;
use tessera_functions::key_hash::{CachedHashCode, KeyHasher};
use tessera_operator::stream_util::one_morsel;
use tessera_operator::{
    Finish, Lowering, Operator, Reader, Sink, SinkRun, SinkWorker, Step, SubOperator, describe,
    downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, RowLayout, RowWriter, WriteRequestCell};
use tessera_state::join::{BuildBuffers, PendingTable, SpilledBuild, TableBuild};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

/// The collection format of the table in plans.
pub const HASH_TABLE: &str = "hash_table";
/// The output field that holds the table.
pub const TABLE_FIELD: &str = "table";

/// `build`: collects its input `R` into an unchained hash table by `keys`.
///
/// * Input `R`; output one tuple `<table: hash_table<R>>`. Ends its pipeline. Promises no order.
/// * `keys`: fields of `R`; `null_equal` = true when NULL keys match each other.
/// * Memory: the rows (twice while their partition is being copied), their strings, 8 to 16 bytes
///   of directory per row. Partitions (by hash) that exceed the budget are spilled; the probe joins
///   them after all others.
/// * Each worker fills its own buffers, partitioned by hash; one task per partition sorts them by
///   slot, without locks.
/// * Source: Birler, Kemper, Neumann, *Robust join processing with diamond hardened joins*, VLDB
///   2024; Modularis §2.3.4.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %l = values() {columns = <k: int64, a: string>, rows = [[1, 'x'], [2, 'y'], [4, 'z']]}
///      %table = build(%r) {keys = [j]}
///      %result = probe(%table, %l) {keys = [k], join = :inner}",
/// );
/// assert_eq!(rows, ["1 x 1 one", "2 y 2 two", "2 y 2 due"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Build;

#[derive(Debug)]
struct BuildSink {
    layout: Arc<RowLayout>,
    keys: Vec<usize>,
    null_equal: bool,
    hash: CachedHashCode,
    write: WriteRequestCell,
}

#[derive(Debug)]
struct BuildRun {
    build: Arc<TableBuild>,
}

struct BuildWorker {
    buffers: BuildBuffers,
}

impl Descriptor for Build {
    tessera_operator::describe!(
        "build",
        "Collects tuples into a hash table by their keys.",
        ["keys", "null_equal", "expected_rows"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        describe::require_all(edge, 0)?;
        node.params.flag("null_equal")?;
        keys(node, &edge.tuple)?;
        let table =
            Tuple::new(vec![Field::collection(TABLE_FIELD, HASH_TABLE, edge.tuple.clone())]);
        Ok(describe::single_edge(edge, table, Order::None))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Build {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        Ok(Operator::Sink(Arc::new(BuildSink {
            layout: RowLayout::new(tuple)?,
            keys: keys(node, tuple)?,
            null_equal: node.params.flag("null_equal")?,
            hash: CachedHashCode::new(),
            write: WriteRequestCell::new(),
        })))
    }
}

fn keys(node: &Node, tuple: &Tuple) -> Result<Vec<usize>> {
    let names = node.params.names("keys")?;
    if names.is_empty() {
        return Err(Error::semantic(
            "parameter keys must name at least one field; a join without equality is a nested_loop",
        ));
    }
    describe::keys(tuple, &names, "key")
}

impl Sink for BuildSink {
    fn spills(&self) -> bool {
        tessera_rows::spill::spillable(self.layout.tuple())
    }

    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let spilled = self.spills().then(|| SpilledBuild::new(run, &self.layout, &self.keys));
        if self.spills() {
            run.context.begin_spillable_state();
        }
        let build = TableBuild {
            layout: self.layout.clone(),
            keys: self.keys.clone(),
            hasher: KeyHasher::start(&self.hash, self.layout.tuple(), &self.keys, run),
            writer: RowWriter::start(&self.write, &self.layout, true, run),
            null_equal: self.null_equal,
            hash_mask: u64::MAX,
            depth: 0,
            spilled,
            context: run.context.clone(),
        };
        Ok(Arc::new(BuildRun { build: Arc::new(build) }))
    }
}

impl SinkRun for BuildRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(BuildWorker { buffers: BuildBuffers::new(self.build.clone()) }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers: Vec<BuildWorker> = downcast_workers(workers)?;
        let buffers = workers.into_iter().map(|worker| worker.buffers).collect();
        let (pending, tasks) = PendingTable::new(self.build.clone(), buffers)?;
        let output = one_morsel(move || {
            let handle = tessera_vector::Handle(pending.finish()?);
            let chunk = Chunk::new(vec![Column::Handles(Arc::new([handle]))], 1);
            Ok(Box::new(TableReader { chunk: chunk.into() }))
        });
        Ok(Finish { tasks, output })
    }
}

impl SinkWorker for BuildWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.buffers.push(chunk)
    }
}

/// A source that yields the table once.
struct TableReader {
    chunk: OnceLock<Chunk>,
}

impl Reader for TableReader {
    fn step(&mut self) -> Result<Step> {
        Ok(self.chunk.take().map_or(Step::Done, Step::HasOutput))
    }
}
