//! `remember`: tuples that were not there before.

use std::sync::{Arc, Mutex};

use arrow::array::UInt32Array;

use tessera_encodings::{Chunk, Column};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Error, Field, Result, Tuple, quote_name};

use crate::describe::{collection, edges, field_name, gives_one, wants_all};
use crate::group_table::{KeyLayout, Packed, Table};
use crate::lock;
use crate::operator::{
    Collected, Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use crate::rows::{RowLayout, Rows, RowsBuilder};
use crate::stream_util::chunks_source;
use crate::{Reservation, Run, describe};

/// The format of what is known, in plans.
const SET: &str = "set";
/// The field that holds it.
const KNOWN_FIELD: &str = "known";

/// Keeps the tuples that are not in a set yet, each once (NULLs equal), and yields them with the set that has them too.
///
/// With a set of `1, 2` on its side, `2, 3, 3` becomes `<data: rows of 3, known: set of 1, 2, 3>`; without a side the set
/// starts empty. A set never changes for those who hold it: it is a prefix of a table that grows, and only who adds to an
/// older prefix pays for a copy. Holds the set and the new tuples; ends its pipeline. Errors: fields that hold
/// collections.
#[derive(Debug)]
pub struct Remember;

impl Descriptor for Remember {
    describe!("remember", "Keeps tuples that are not in a set yet, and adds them to it.", ["known"], 1, 2);

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
            return Err(Error::semantic("parameter known names a field of the side, and there is no side"));
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
        let edge = lowering.inputs.last().ok_or_else(|| Error::internal("remember without input"))?;
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

/// A set: the first tuples of a table, in the order in which they came.
#[derive(Debug)]
struct Set {
    grown: Arc<Mutex<Grown>>,
    tuples: usize,
}

#[derive(Debug)]
struct Grown {
    table: Table,
    /// Somebody is adding to it.
    claimed: bool,
    memory: Reservation,
}

impl Set {
    /// The table to add to: its own where nobody has added yet, else a copy.
    fn claim(&self, keys: &Arc<KeyLayout>, run: &Run) -> Result<Arc<Mutex<Grown>>> {
        let mut grown = lock(&self.grown);
        if !grown.claimed && grown.table.store.groups() == self.tuples {
            grown.claimed = true;
            return Ok(self.grown.clone());
        }
        let mut table = Table::of_keys(keys.clone())?;
        table.assign(&grown.table.store, 0, self.tuples, &mut Vec::new())?;
        let mut memory = Reservation::new(run.context.clone());
        memory.resize(table.memory())?;
        Ok(Arc::new(Mutex::new(Grown { table, claimed: true, memory })))
    }
}

impl Sink for Lowered {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let grown = match (self.known, sides.first()) {
            (Some(field), Some(side)) => {
                let tuple = side.single()?;
                let column = tuple.column(field)?;
                let handle =
                    column.handles()?.first().ok_or_else(|| Error::internal("a side without a set"))?;
                handle.get::<Set>()?.claim(&self.keys, run)?
            }
            _ => {
                let table = Table::of_keys(self.keys.clone())?;
                let memory = Reservation::new(run.context.clone());
                Arc::new(Mutex::new(Grown { table, claimed: true, memory }))
            }
        };
        Ok(Arc::new(RememberRun {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            run: run.clone(),
            grown,
        }))
    }
}

#[derive(Debug, Clone)]
struct RememberRun {
    rows: Arc<RowLayout>,
    keys: Arc<KeyLayout>,
    run: Run,
    grown: Arc<Mutex<Grown>>,
}

struct RememberWorker {
    shared: RememberRun,
    position: u64,
    packed: Packed,
    groups: Vec<u32>,
    builder: Option<RowsBuilder>,
    morsels: Vec<(u64, Rows)>,
}

impl SinkRun for RememberRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(RememberWorker {
            shared: self.clone(),
            position: 0,
            packed: Packed::default(),
            groups: Vec::new(),
            builder: None,
            morsels: Vec::new(),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut morsels = Vec::new();
        for mut worker in downcast_workers::<RememberWorker>(workers)? {
            worker.end()?;
            morsels.append(&mut worker.morsels);
        }
        morsels.sort_by_key(|(position, _)| *position);
        let rows = Rows::concat(self.rows.clone(), morsels.into_iter().map(|(_, rows)| rows))?;
        let tuples = {
            let mut grown = lock(&self.grown);
            grown.claimed = false;
            grown.table.store.groups()
        };
        let set = Set { grown: self.grown.clone(), tuples };
        let chunk = Chunk::new(vec![Column::handle(rows), Column::handle(set)], 1);
        Ok(Finish { tasks: Vec::new(), output: chunks_source(vec![chunk], self.run.context.chunk_rows()) })
    }
}

impl RememberWorker {
    /// Adds all tuples of a chunk to the table; the rows of those that were not in it.
    fn add(&mut self, chunk: &Chunk) -> Result<Vec<u32>> {
        self.shared.keys.pack(chunk.stored(), chunk.rows(), &mut self.packed)?;
        self.groups.clear();
        let mut grown = lock(&self.shared.grown);
        let mut next = grown.table.store.groups() as u32;
        grown.table.assign(&self.packed, 0, chunk.rows(), &mut self.groups)?;
        let bytes = grown.table.memory();
        if bytes != grown.memory.bytes() {
            grown.memory.resize(bytes)?;
        }
        // A tuple's number is the number of tuples before it, so that new ones come in order.
        let mut new = Vec::new();
        for (row, group) in self.groups.iter().enumerate() {
            if *group == next {
                new.push(row as u32);
                next += 1;
            }
        }
        Ok(new)
    }
}

impl SinkWorker for RememberWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.shared.run.context.check()?;
        let chunk = chunk.compact()?;
        let new = self.add(&chunk)?;
        if new.is_empty() {
            return Ok(());
        }
        let rows = new.len();
        let new = UInt32Array::from(new);
        let columns = chunk.stored().iter().map(|column| column.take(&new)).collect::<Result<Vec<_>>>()?;
        let shared = &self.shared;
        let builder = || RowsBuilder::new(shared.rows.clone(), Reservation::new(shared.run.context.clone()));
        self.builder.get_or_insert_with(builder).append_chunk(&Chunk::new(columns, rows), &[])?;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.morsels.extend(self.builder.take().map(|builder| (self.position, builder.seal())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Expr, NodeId, Params, Value};

    use crate::testing::{SETTINGS, TestPlan, batch, rows};

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
        let mut plan = TestPlan::new();
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

    #[test]
    fn a_set_of_other_tuples_is_rejected() {
        let mut plan = TestPlan::new();
        let numbers = plan.table(batch("<a: int64>", "1"));
        let texts = plan.table(batch("<a: string>", "1"));
        let start = plan.add("remember", &[numbers], Params::new());
        let known = Params::new().with("known", Value::Expr(Expr::field("known")));
        let root = plan.add("remember", &[start, texts], known);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("is a set of <a: int64>"), "{message}");
    }
}
