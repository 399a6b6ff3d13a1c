//! `remember`: keeps tuples that have not been seen before.

use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::UInt32Array;

use tessera_context::{Reservation, Run, lock};
use tessera_operator::describe::{collection, edges, field_name, require_all, single_edge};
use tessera_operator::stream_util::{DeferredSource, chunks_source};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, RowLayout, RowsCollector, RowsCollectorWorker};
use tessera_state::group_table::{KeyLayout, Table};
use tessera_types::{Error, Field, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

use super::remember_spilled::{PartitionWriter, SpilledSet, assign};

/// The collection format of a set, in plans.
const SET: &str = "set";
/// The output field that holds the set.
const KNOWN_FIELD: &str = "known";

/// Yields the tuples that are not in a set yet, each once (NULLs equal), and the set with them
/// added.
///
/// With a set of `1, 2` on its side, `2, 3, 3` becomes `<data: rows of 3, known: set of 1, 2, 3>`;
/// without a side the set starts empty. A set is immutable: it is a prefix of a growing table, and
/// only adding to an older prefix copies it. Holds the set and the new tuples. When the budget is
/// exhausted, both are spilled: the set is partitioned by hash in a scratch file, and tuples are
/// looked up at the end, partition by partition, in no order. Ends its pipeline. Errors: fields
/// that hold collections.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [1], [NULL::int64]]}
///      %new = remember(%t)
///      %result = rows_scan(%new) {field = data}",
/// );
/// assert_eq!(rows, ["1", "2", "NULL"]);
/// ```
#[derive(Debug)]
pub struct Remember;

impl Descriptor for Remember {
    tessera_operator::describe!(
        "remember",
        "Keeps tuples that are not in a set yet, and adds them to it.",
        ["known"],
        1,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edges = edges(inputs)?;
        let edge = edges.last().ok_or_else(|| Error::internal("a sub-operator without an edge"))?;
        require_all(edge, edges.len() - 1)?;
        if let Some(field) = edge.tuple.fields().iter().find(|field| field.atom().is_none()) {
            return Err(Error::semantic(format!(
                "field {} holds a collection; remember takes only values",
                quote_name(&field.name)
            )));
        }
        if let [side, _] = edges {
            let name = field_name(node, "known")?;
            let (_, known) = collection(&side.tuple, &name, SET)?;
            if known.tuple != edge.tuple {
                return Err(Error::semantic(format!(
                    "field {} is a set of {}, but the tuples are {}",
                    quote_name(&name),
                    known.tuple,
                    edge.tuple
                )));
            }
        } else if node.param("known").is_some() {
            return Err(Error::semantic(
                "parameter known needs a side that has a set; add this input, or remove the parameter",
            ));
        }
        let data = Field::collection("data", "rows", edge.tuple.clone());
        let known = Field::collection(KNOWN_FIELD, SET, edge.tuple.clone());
        Ok(single_edge(edge, Tuple::new(vec![data, known]), Order::Source))
    }

    fn role(&self, node: &Node) -> Role {
        Role::Sink(node.inputs.len().saturating_sub(1))
    }
}

impl SubOperator for Remember {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let edge =
            lowering.inputs.last().ok_or_else(|| Error::internal("remember without input"))?;
        let types = edge.tuple.fields().iter().filter_map(|field| field.atom());
        let types: Vec<_> = types.map(|atom| atom.arrow()).collect();
        let known = match lowering.inputs {
            [side, _] => Some(collection(&side.tuple, &field_name(node, "known")?, SET)?.0),
            _ => None,
        };
        let keys = Arc::new(KeyLayout::new(&types, u64::MAX)?);
        Ok(Operator::Sink(Arc::new(RememberOperator {
            rows: RowLayout::new(&edge.tuple)?,
            keys,
            known,
        })))
    }
}

#[derive(Debug)]
struct RememberOperator {
    rows: Arc<RowLayout>,
    keys: Arc<KeyLayout>,
    /// The field of the side that has the set, if there is a side.
    known: Option<usize>,
}

/// A set: the first tuples of a growing table, in insertion order.
#[derive(Debug)]
struct Set {
    growing: Arc<Mutex<GrowingSet>>,
    tuples: usize,
}

#[derive(Debug)]
struct GrowingSet {
    storage: SetStorage,
    /// Whether a run is adding to it.
    claimed: bool,
    memory: Reservation,
}

/// The tuples of a growing table.
#[derive(Debug)]
enum SetStorage {
    Memory(Table),
    File(SpilledSet),
}

impl SetStorage {
    fn tuples(&self) -> usize {
        match self {
            SetStorage::Memory(table) => table.store.groups(),
            SetStorage::File(set) => set.tuples,
        }
    }
}

impl Set {
    /// Returns the table that new tuples are added to: this one if it is the newest, else a copy.
    fn claim(&self, keys: &Arc<KeyLayout>, run: &Run) -> Result<Arc<Mutex<GrowingSet>>> {
        let mut growing = lock(&self.growing);
        if !growing.claimed && growing.storage.tuples() == self.tuples {
            growing.claimed = true;
            return Ok(self.growing.clone());
        }
        let mut memory = Reservation::new(run.context.clone());
        let storage = match &growing.storage {
            SetStorage::File(set) => SetStorage::File(set.first(self.tuples)),
            SetStorage::Memory(all) => {
                let mut table = Table::of_keys(keys.clone())?;
                table.assign(&all.store, 0, self.tuples, &mut Vec::new())?;
                memory.resize(table.memory())?;
                SetStorage::Memory(table)
            }
        };
        Ok(Arc::new(Mutex::new(GrowingSet { storage, claimed: true, memory })))
    }
}

impl Sink for RememberOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let growing = match (self.known, sides.first()) {
            (Some(field), Some(side)) => {
                let tuple = side.single()?;
                let column = tuple.column(field)?;
                let handle = column
                    .handles()?
                    .first()
                    .ok_or_else(|| Error::internal("a side without a set"))?;
                handle.get::<Set>()?.claim(&self.keys, run)?
            }
            _ => {
                let storage = SetStorage::Memory(Table::of_keys(self.keys.clone())?);
                let memory = Reservation::new(run.context.clone());
                Arc::new(Mutex::new(GrowingSet { storage, claimed: true, memory }))
            }
        };
        Ok(Arc::new(RememberRun {
            collector: RowsCollector::new(self.rows.clone(), run),
            tuple: self.rows.tuple().clone(),
            keys: self.keys.clone(),
            run: run.clone(),
            growing,
            candidates: Arc::default(),
        }))
    }
}

#[derive(Debug, Clone)]
struct RememberRun {
    collector: Arc<RowsCollector>,
    tuple: Tuple,
    keys: Arc<KeyLayout>,
    run: Run,
    growing: Arc<Mutex<GrowingSet>>,
    /// Tuples to look up at the end, if the set is spilled.
    candidates: Arc<OnceLock<PartitionWriter>>,
}

struct RememberWorker {
    shared: RememberRun,
    local: RowsCollectorWorker,
}

impl SinkRun for RememberRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(RememberWorker { shared: self.clone(), local: self.collector.worker() }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<RememberWorker>(workers)?;
        let locals: Vec<RowsCollectorWorker> =
            workers.into_iter().map(|worker| worker.local).collect();
        let chunk_rows = self.run.context.chunk_rows();
        if self.candidates.get().is_none() {
            return Ok(Finish {
                tasks: Vec::new(),
                output: chunks_source(vec![self.output(locals)?], chunk_rows),
            });
        }
        let output = DeferredSource::new(1, chunk_rows);
        let made = output.clone();
        let task = move || {
            let mut last = self.collector.worker();
            last.begin(u64::MAX);
            self.look_up(&mut last)?;
            made.fill(0, vec![self.output(locals.into_iter().chain([last]))?])
        };
        Ok(Finish { tasks: vec![Box::new(task)], output })
    }
}

impl RememberRun {
    /// Returns the new tuples, and the set that includes them.
    fn output(&self, locals: impl IntoIterator<Item = RowsCollectorWorker>) -> Result<Chunk> {
        let rows = self.collector.collect(locals)?;
        let tuples = {
            let mut growing = lock(&self.growing);
            growing.claimed = false;
            growing.storage.tuples()
        };
        let set = Set { growing: self.growing.clone(), tuples };
        Ok(Chunk::new(vec![Column::handle(rows), Column::handle(set)], 1))
    }

    /// Adds the candidates to a spilled set.
    fn look_up(&self, new: &mut RowsCollectorWorker) -> Result<()> {
        let mut growing = lock(&self.growing);
        match (&mut growing.storage, self.candidates.get()) {
            (SetStorage::File(set), Some(candidates)) => {
                set.add(candidates, &self.tuple, new, &self.run)
            }
            _ => Err(Error::internal("candidates for a set in memory")),
        }
    }

    /// Adds all tuples of a chunk to the set; returns the positions of the new ones. Returns `None`
    /// if the set is spilled: the tuples are then looked up at the end.
    fn add(&self, chunk: &Chunk) -> Result<Option<UInt32Array>> {
        let mut growing = lock(&self.growing);
        let GrowingSet { storage, memory, .. } = &mut *growing;
        if let SetStorage::Memory(table) = storage {
            // Growing and spilling copy the table.
            let more = table.memory() + 2 * chunk.value_bytes();
            if self.run.context.may_hold(memory.bytes(), more) {
                return assign(table, &self.keys, chunk, memory, &self.run).map(Some);
            }
            let table = std::mem::replace(table, Table::of_keys(self.keys.clone())?);
            *storage =
                SetStorage::File(SpilledSet::of_table(table, &self.tuple, &self.keys, &self.run)?);
            memory.resize(0)?;
        }
        drop(growing);
        let candidates = match self.candidates.get() {
            Some(candidates) => candidates,
            None => {
                let new = PartitionWriter::new(&self.tuple, &self.keys, false, &self.run)?;
                self.candidates.get_or_init(|| new)
            }
        };
        candidates.put(chunk).map(|()| None)
    }
}

impl SinkWorker for RememberWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.local.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.shared.run.context.check()?;
        let chunk = chunk.compact()?;
        let Some(new) = self.shared.add(&chunk)?.filter(|new| !new.is_empty()) else {
            return Ok(());
        };
        let columns =
            chunk.stored().iter().map(|column| column.take(&new)).collect::<Result<Vec<_>>>()?;
        let chunk = Chunk::new(columns, new.len());
        self.local.append(chunk.value_bytes(), |rows| rows.append_chunk(&chunk, &[]).map(drop))
    }

    fn end(&mut self) -> Result<()> {
        self.local.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use tessera_context::testing::{TestContext, batch, rows};
    use tessera_operator::testing::{SETTINGS, TestPlan};
    use tessera_plan::{Expr, NodeId, Params, Value};

    use crate::testing::test_plan;

    const TUPLE: &str = "<a: int64?, s: string?>";

    fn field(name: &str) -> Params {
        Params::new().with("field", Value::Expr(Expr::field(name)))
    }

    fn sorted(plan: &TestPlan, root: NodeId, chunk: usize, workers: usize) -> Vec<String> {
        let mut found = rows(&plan.run(root, chunk, workers).unwrap());
        found.sort();
        found
    }

    #[test]
    fn only_new_tuples_pass_and_older_sets_stay_as_they_are() {
        let mut plan = test_plan();
        let long = "a-text-that-is-long-enough-for-the-heap";
        let first = plan.table(batch(TUPLE, &format!("1 x|1 x|NULL NULL|2 {long}")));
        let second = plan.table(batch(TUPLE, &format!("2 {long}|NULL NULL|3 x|3 x|1 {long}")));
        let third = plan.table(batch(TUPLE, "3 x|4 x"));
        let known = Params::new().with("known", Value::Expr(Expr::field("known")));
        let start = plan.add("remember", &[first], Params::new());
        let next = plan.add("remember", &[start, second], known.clone());
        // Both add to the same set: neither may see what the other added.
        let other = plan.add("remember", &[start, third], known.clone());
        let last = plan.add("remember", &[next, third], known);
        let mut scan = |node| plan.add("rows_scan", &[node], field("data"));
        let roots = [scan(start), scan(next), scan(other), scan(last)];
        // All in one plan, so that they run concurrently.
        let all = plan.add("union", &roots, Params::new());
        for (chunk, workers) in SETTINGS {
            let long_one = format!("1 {long}");
            let long_two = format!("2 {long}");
            let expected: [Vec<&str>; 4] = [
                vec!["1 x", &long_two, "NULL NULL"],
                vec![&long_one, "3 x"],
                vec!["3 x", "4 x"],
                vec!["4 x"],
            ];
            for (root, expected) in roots.iter().zip(&expected) {
                assert_eq!(sorted(&plan, *root, chunk, workers), *expected, "{chunk} {workers}");
            }
            let mut together: Vec<&str> = expected.into_iter().flatten().collect();
            together.sort_unstable();
            assert_eq!(sorted(&plan, all, chunk, workers), together, "{chunk} {workers}");
        }
    }

    /// A spilled set gives the same results as one in memory, and adding to a newer set does not
    /// change an older one.
    #[test]
    fn sets_leave_memory() {
        let mut plan = test_plan();
        let line = |n: i64| match n % 5 {
            0 => format!("{n} NULL"),
            _ => format!("{n} a-text-that-is-long-enough-for-the-heap-{n}"),
        };
        let mut table = |numbers: Vec<i64>| {
            let lines: Vec<String> = numbers.into_iter().map(line).collect();
            plan.table(batch(TUPLE, &lines.join("|")))
        };
        let tables = [
            table((0..2_000).chain(1_000..1_500).collect()),
            table((500..3_000).chain(0..100).collect()),
            table((2_900..4_000).collect()),
            table((0..5_000).collect()),
        ];
        let known = Params::new().with("known", Value::Expr(Expr::field("known")));
        let start = plan.add("remember", &[tables[0]], Params::new());
        let next = plan.add("remember", &[start, tables[1]], known.clone());
        let other = plan.add("remember", &[start, tables[2]], known.clone());
        let last = plan.add("remember", &[next, tables[3]], known.clone());
        let behind = plan.add("remember", &[other, tables[3]], known);
        let nodes = [start, next, other, last, behind];
        let roots = nodes.map(|node| plan.add("rows_scan", &[node], field("data")));
        let expected: [Vec<i64>; 5] = [
            (0..2_000).collect(),
            (2_000..3_000).collect(),
            (2_900..4_000).collect(),
            (3_000..5_000).collect(),
            (2_000..2_900).chain(4_000..5_000).collect(),
        ];
        let all = plan.add("union", &roots, Params::new());
        let run = |root, context| {
            let found = plan.run_in(root, context).unwrap();
            let mut numbers = found.column(0).as_primitive::<Int64Type>().values().to_vec();
            numbers.sort_unstable();
            numbers
        };
        let mut together: Vec<i64> = expected.iter().flatten().copied().collect();
        together.sort_unstable();
        for (chunk, workers) in [(61, 3), (8_192, 2)] {
            for state_budget in [0, 50_000] {
                let context = || TestContext::with_state_budget(chunk, workers, state_budget);
                for (root, expected) in roots.iter().zip(&expected) {
                    assert_eq!(
                        run(*root, context()),
                        *expected,
                        "{chunk} {workers} {state_budget}"
                    );
                }
                let context = context();
                assert_eq!(run(all, context.clone()), together, "{chunk} {workers} {state_budget}");
                assert!(context.spilled() > 0);
            }
        }
    }

    #[test]
    fn a_set_of_other_tuples_is_rejected() {
        let mut plan = test_plan();
        let numbers = plan.table(batch("<a: int64>", "1"));
        let texts = plan.table(batch("<a: string>", "1"));
        let start = plan.add("remember", &[numbers], Params::new());
        let known = Params::new().with("known", Value::Expr(Expr::field("known")));
        let root = plan.add("remember", &[start, texts], known);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("is a set of <a: int64>"), "{message}");
    }
}
