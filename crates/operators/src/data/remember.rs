//! `remember`: tuples that were not there before.

use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::UInt32Array;

use tessera_context::{Reservation, Run, lock};
use tessera_operator::describe::{collection, edges, field_name, gives_one, wants_all};
use tessera_operator::stream_util::{DeferredSource, chunks_source};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, KeepingRows, RowLayout, RowsKeeper};
use tessera_state::group_table::{KeyLayout, Table};
use tessera_types::{Error, Field, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

use super::remember_spilled::{Partitioned, SetInFile, assign};

/// The format of what is known, in plans.
const SET: &str = "set";
/// The field that holds it.
const KNOWN_FIELD: &str = "known";

/// Keeps the tuples that are not in a set yet, each once (NULLs equal), and yields them with the
/// set that has them too.
///
/// With a set of `1, 2` on its side, `2, 3, 3` becomes `<data: rows of 3, known: set of 1, 2, 3>`;
/// without a side the set starts empty. A set never changes for those who hold it: it is a prefix
/// of a table that grows, and only who adds to an older prefix pays for a copy. Holds the set and
/// the new tuples, which leave memory when the budget is spoken for: then the set lies in a file by
/// partitions of its hashes, and tuples are looked up a partition after the other in the end, in no
/// order. Ends its pipeline. Errors: fields that hold collections.
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
        wants_all(edge, edges.len() - 1)?;
        if let Some(field) = edge.tuple.fields().iter().find(|field| field.atom().is_none()) {
            return Err(Error::semantic(format!(
                "field {} holds a collection, and sets hold values",
                quote_name(&field.name)
            )));
        }
        if let [side, _] = edges {
            let name = field_name(node, "known")?;
            let (_, known) = collection(&side.tuple, &name, SET)?;
            if known.tuple != edge.tuple {
                return Err(Error::semantic(format!(
                    "field {} is a set of {}, and the tuples to be looked up are {}",
                    quote_name(&name),
                    known.tuple,
                    edge.tuple
                )));
            }
        } else if node.param("known").is_some() {
            return Err(Error::semantic(
                "parameter known names a field of the side, and there is no side",
            ));
        }
        let data = Field::collection("data", "rows", edge.tuple.clone());
        let known = Field::collection(KNOWN_FIELD, SET, edge.tuple.clone());
        Ok(gives_one(edge, Tuple::new(vec![data, known]), Order::Source))
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
        Ok(Operator::Sink(Arc::new(Lowered { rows: RowLayout::new(&edge.tuple)?, keys, known })))
    }
}

#[derive(Debug)]
struct Lowered {
    rows: Arc<RowLayout>,
    keys: Arc<KeyLayout>,
    /// The side's field with the set, where there is a side.
    known: Option<usize>,
}

/// A set: the first tuples of what grows, in the order in which they came.
#[derive(Debug)]
struct Set {
    grown: Arc<Mutex<Grown>>,
    tuples: usize,
}

#[derive(Debug)]
struct Grown {
    known: Known,
    /// Somebody is adding to it.
    claimed: bool,
    memory: Reservation,
}

/// The tuples of a set.
#[derive(Debug)]
enum Known {
    Memory(Table),
    File(SetInFile),
}

impl Known {
    fn tuples(&self) -> usize {
        match self {
            Known::Memory(table) => table.store.groups(),
            Known::File(set) => set.tuples,
        }
    }
}

impl Set {
    /// The set that new tuples are added to: this one if it is the newest, else a copy of it.
    fn claim(&self, keys: &Arc<KeyLayout>, run: &Run) -> Result<Arc<Mutex<Grown>>> {
        let mut grown = lock(&self.grown);
        if !grown.claimed && grown.known.tuples() == self.tuples {
            grown.claimed = true;
            return Ok(self.grown.clone());
        }
        let mut memory = Reservation::new(run.context.clone());
        let known = match &grown.known {
            Known::File(set) => Known::File(set.first(self.tuples)),
            Known::Memory(all) => {
                let mut table = Table::of_keys(keys.clone())?;
                table.assign(&all.store, 0, self.tuples, &mut Vec::new())?;
                memory.resize(table.memory())?;
                Known::Memory(table)
            }
        };
        Ok(Arc::new(Mutex::new(Grown { known, claimed: true, memory })))
    }
}

impl Sink for Lowered {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let grown = match (self.known, sides.first()) {
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
                let known = Known::Memory(Table::of_keys(self.keys.clone())?);
                let memory = Reservation::new(run.context.clone());
                Arc::new(Mutex::new(Grown { known, claimed: true, memory }))
            }
        };
        Ok(Arc::new(RememberRun {
            keeping: KeepingRows::new(self.rows.clone(), run),
            tuple: self.rows.tuple().clone(),
            keys: self.keys.clone(),
            run: run.clone(),
            grown,
            candidates: Arc::default(),
        }))
    }
}

#[derive(Debug, Clone)]
struct RememberRun {
    keeping: Arc<KeepingRows>,
    tuple: Tuple,
    keys: Arc<KeyLayout>,
    run: Run,
    grown: Arc<Mutex<Grown>>,
    /// Tuples to be looked up in the end, where the set has left memory.
    candidates: Arc<OnceLock<Partitioned>>,
}

struct RememberWorker {
    shared: RememberRun,
    keeper: RowsKeeper,
}

impl SinkRun for RememberRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(RememberWorker { shared: self.clone(), keeper: self.keeping.keeper() }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<RememberWorker>(workers)?;
        let keepers: Vec<RowsKeeper> = workers.into_iter().map(|worker| worker.keeper).collect();
        let chunk_rows = self.run.context.chunk_rows();
        if self.candidates.get().is_none() {
            return Ok(Finish {
                tasks: Vec::new(),
                output: chunks_source(vec![self.output(keepers)?], chunk_rows),
            });
        }
        let output = DeferredSource::new(1, chunk_rows);
        let made = output.clone();
        let task = move || {
            let mut last = self.keeping.keeper();
            last.begin(u64::MAX);
            self.look_up(&mut last)?;
            made.fill(0, vec![self.output(keepers.into_iter().chain([last]))?])
        };
        Ok(Finish { tasks: vec![Box::new(task)], output })
    }
}

impl RememberRun {
    /// The new tuples, and the set that has them.
    fn output(&self, keepers: impl IntoIterator<Item = RowsKeeper>) -> Result<Chunk> {
        let rows = self.keeping.collect(keepers)?;
        let tuples = {
            let mut grown = lock(&self.grown);
            grown.claimed = false;
            grown.known.tuples()
        };
        let set = Set { grown: self.grown.clone(), tuples };
        Ok(Chunk::new(vec![Column::handle(rows), Column::handle(set)], 1))
    }

    /// Adds the candidates to a set that has left memory.
    fn look_up(&self, new: &mut RowsKeeper) -> Result<()> {
        let mut grown = lock(&self.grown);
        match (&mut grown.known, self.candidates.get()) {
            (Known::File(set), Some(candidates)) => {
                set.add(candidates, &self.tuple, new, &self.run)
            }
            _ => Err(Error::internal("candidates for a set in memory")),
        }
    }

    /// Adds all tuples of a chunk to the set; the rows of those that were not in it. Nothing where
    /// the set has left memory: the tuples are looked up in the end.
    fn add(&self, chunk: &Chunk) -> Result<Option<UInt32Array>> {
        let mut grown = lock(&self.grown);
        let Grown { known, memory, .. } = &mut *grown;
        if let Known::Memory(table) = known {
            // It is copied when it grows and when it leaves.
            let more = table.memory() + 2 * chunk.value_bytes();
            if self.run.context.may_hold(memory.bytes(), more) {
                return assign(table, &self.keys, chunk, memory, &self.run).map(Some);
            }
            let table = std::mem::replace(table, Table::of_keys(self.keys.clone())?);
            *known = Known::File(SetInFile::of_table(table, &self.tuple, &self.keys, &self.run)?);
            memory.resize(0)?;
        }
        drop(grown);
        let candidates = match self.candidates.get() {
            Some(candidates) => candidates,
            None => {
                let new = Partitioned::new(&self.tuple, &self.keys, false, &self.run)?;
                self.candidates.get_or_init(|| new)
            }
        };
        candidates.put(chunk).map(|()| None)
    }
}

impl SinkWorker for RememberWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.keeper.begin(position);
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
        self.keeper.append(chunk.value_bytes(), |rows| rows.append_chunk(&chunk, &[]).map(drop))
    }

    fn end(&mut self) -> Result<()> {
        self.keeper.end();
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
        // All in one plan, so that they do run beside each other.
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

    /// A set in a scratch file gives the same answers as one in memory, and adding to a newer set
    /// does not change an older one.
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
