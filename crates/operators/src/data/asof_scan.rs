//! `asof_scan`: joins each tuple with the last one of the other side.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use tessera_context::Run;
use tessera_operator::describe::{self, edge, field_name, passes};
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Item, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

use super::window::{FlagFields, check_producer, flags};

/// Joins each left tuple with the right tuple before it in its partition.
///
/// The input has the tuples of both sides, sorted by the keys of the join and the compared value:
/// `is_right` tells them apart, and `fields` are those of the right side. `(a, 1, right, x), (a, 2,
/// left, NULL), (b, 1, left, NULL)` gives `(a, 2, left, x)`, and with `outer` also `(b, 1, left,
/// NULL)`. Of several right tuples with equal values, the first one counts. Holds one tuple, never
/// blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%l = values() {columns = <k: string, t: int64>, rows = [['a', 4], ['a', 9], ['b', 2]]}
///      %r = values() {columns = <j: string, s: int64, p: int64>, rows = [['a', 3, 30], ['a', 5,
///        50]]}
///      %left = map(%l) {exprs = {k = k, t = t, is_right = false::boolean, p = NULL::int64}}
///      %right = map(%r) {exprs = {k = j, t = s, is_right = true::boolean, p = p}}
///      %both = union(%left, %right)
///      %sorted = sort(%both) {keys = [{field = k}, {field = t}, {field = is_right, descending =
///        true}], partition = 1}
///      %bounds = window_bounds(%sorted) {partition = [k], order = [t], partition_start = first,
///        peer_start = peer}
///      %joined = asof_scan(%bounds) {partition_start = first, peer_start = peer, is_right =
///        is_right, fields = [p], outer = true}
///      %result = projection(%joined) {fields = [k, t, p]}",
/// );
/// assert_eq!(rows, ["a 4 30", "a 9 50", "b 2 NULL"]);
/// ```
#[derive(Debug)]
pub struct AsOfScan;

impl Descriptor for AsOfScan {
    tessera_operator::describe!(
        "asof_scan",
        "Joins each left tuple with the right tuple before it.",
        ["partition_start", "peer_start", "is_right", "fields", "outer"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        FlagFields::new(node, &edge.tuple)?;
        side_field(node, &edge.tuple)?;
        node.params.flag("outer")?;
        let right = describe::keys(&edge.tuple, &node.params.names_opt("fields")?, "field")?;
        let mut fields = edge.tuple.fields().to_vec();
        for position in right {
            fields[position] = fields[position].with_nullable(true);
        }
        Ok(passes(edge, Tuple::new(fields), edge.order.clone()))
    }

    fn check_producers(&self, _node: &Node, producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        check_producer(producers, &["window_bounds"])
    }

    fn is_only_reader(&self) -> bool {
        true
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

/// Returns the position of the field that marks the tuples of the right side.
fn side_field(node: &Node, tuple: &Tuple) -> Result<usize> {
    let name = field_name(node, "is_right")?;
    let (position, field) = describe::field(tuple, &name, "field")?;
    match &field.item {
        Item::Atom(Atom::Boolean) => Ok(position),
        other => Err(Error::semantic(format!(
            "field {} of parameter is_right is {other}; expected a boolean",
            quote_name(&name)
        ))),
    }
}

impl SubOperator for AsOfScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let right = describe::keys(tuple, &node.params.names_opt("fields")?, "field")?;
        Ok(Operator::Stream(Arc::new(ScanOperator(Arc::new(ScanProgram {
            flags: FlagFields::new(node, tuple)?,
            is_right: side_field(node, tuple)?,
            fields: (0..tuple.len()).map(|position| right.contains(&position)).collect(),
            outer: node.params.flag("outer")?,
        })))))
    }
}

#[derive(Debug)]
struct ScanProgram {
    flags: FlagFields,
    is_right: usize,
    /// For each field: whether it is one of the right side.
    fields: Vec<bool>,
    outer: bool,
}

#[derive(Debug)]
struct ScanOperator(Arc<ScanProgram>);

#[derive(Debug)]
struct ScanRun {
    program: Arc<ScanProgram>,
    run: Run,
}

impl Stream for ScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(ScanRun { program: self.0.clone(), run: run.clone() }))
    }
}

impl StreamRun for ScanRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(ScanWorker {
            program: self.program.clone(),
            run: self.run.clone(),
            last: None,
            has_peer: false,
            is_started: false,
            output: None,
        }))
    }
}

struct ScanWorker {
    program: Arc<ScanProgram>,
    run: Run,
    /// The fields of the last right tuple of the partition, in arrays of one value.
    last: Option<Vec<ArrayRef>>,
    /// Whether this tuple is a peer of the current one.
    has_peer: bool,
    /// Whether the morsel has begun.
    is_started: bool,
    output: Option<Chunk>,
}

/// The position of `last`, before the right tuples of the chunk.
const LAST: u32 = 0;

impl StreamWorker for ScanWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let chunk = chunk.compact()?;
        let program = self.program.clone();
        let partitions = flags(&chunk, program.flags.partition)?;
        let peers = flags(&chunk, program.flags.peer)?;
        let is_right = flags(&chunk, program.is_right)?;
        if !self.is_started && !partitions.value(0) {
            return Err(Error::internal("a morsel of a join begins inside a partition"));
        }
        self.is_started = true;
        let mut current = self.last.is_some().then_some(LAST);
        let (mut left, mut matches) = (Vec::new(), Vec::new());
        for row in 0..chunk.rows() {
            if partitions.value(row) {
                current = None;
            }
            if peers.value(row) {
                self.has_peer = false;
            }
            if !is_right.value(row) {
                if current.is_some() || program.outer {
                    left.push(row as u32);
                    matches.push(current);
                }
            } else if !self.has_peer {
                current = Some(row as u32 + 1);
                self.has_peer = true;
            }
        }
        let (left, matches) = (UInt32Array::from(left), UInt32Array::from(matches));
        if !left.is_empty() {
            self.output = Some(self.joined(&chunk, &left, &matches)?);
        }
        self.remember(&chunk, current)
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.output.take().map_or(Step::NeedInput, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        (self.last, self.has_peer, self.is_started) = (None, false, false);
        Ok(())
    }
}

impl ScanWorker {
    /// Returns left tuples of a chunk with their matches.
    fn joined(&self, chunk: &Chunk, left: &UInt32Array, matches: &UInt32Array) -> Result<Chunk> {
        let mut columns = Vec::with_capacity(self.program.fields.len());
        let mut last = self.last.iter().flatten();
        for (position, is_right) in self.program.fields.iter().enumerate() {
            let column = chunk.column(position)?;
            if !is_right {
                columns.push(column.take(left)?);
                continue;
            }
            let values = column.plain()?;
            let before = match last.next() {
                Some(value) => value.clone(),
                None => new_null_array(values.data_type(), 1),
            };
            let all = concat(&[&*before, &*values])?;
            columns.push(Column::Plain(take(&all, matches, None)?));
        }
        Ok(Chunk::new(columns, left.len()))
    }

    /// Keeps the right tuple that the next chunk begins with.
    fn remember(&mut self, chunk: &Chunk, current: Option<u32>) -> Result<()> {
        let row = match current {
            None => {
                self.last = None;
                return Ok(());
            }
            Some(LAST) => return Ok(()),
            Some(position) => position as usize - 1,
        };
        let right = self.program.fields.iter().enumerate().filter(|(_, is_right)| **is_right);
        let columns =
            right.map(|(position, _)| chunk.column(position)).collect::<Result<Vec<_>>>()?;
        // A slice would keep the strings of the whole chunk.
        let tuple = Chunk::new(columns, chunk.rows()).slice(row, 1).compact()?;
        let tuple = tuple.with_compact_strings();
        self.last = Some(tuple.stored().iter().map(Column::plain).collect::<Result<_>>()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::{SETTINGS, TestPlan};
    use tessera_plan::{NodeId, Params, SortKey, Value};

    use crate::testing::test_plan;

    /// Sorts tuples `<k, t, is_right, x, p>` and joins them, with the right tuple first among equal
    /// values.
    fn scan(plan: &mut TestPlan, table: NodeId, is_right: &str, outer: bool) -> NodeId {
        let key = |field: &str, descending| {
            SortKey { field: field.into(), descending, nulls_first: true }.to_value()
        };
        let keys = vec![key("k", false), key("t", false), key("is_right", true)];
        let params = Params::new().with("keys", keys).with("partition", 1_i64);
        let sorted = plan.add("sort", &[table], params);
        let name = |name: &str| Value::Expr(tessera_plan::Expr::field(name));
        let starts = || {
            Params::new().with("partition_start", name("first")).with("peer_start", name("peer"))
        };
        let params =
            starts().with("partition", Value::names(["k"])).with("order", Value::names(["t"]));
        let bounds = plan.add("window_bounds", &[sorted], params);
        let params = starts()
            .with("is_right", name(is_right))
            .with("fields", Value::names(["p"]))
            .with("outer", outer);
        let joined = plan.add("asof_scan", &[bounds], params);
        plan.add(
            "projection",
            &[joined],
            Params::new().with("fields", Value::names(["k", "x", "p"])),
        )
    }

    const TUPLES: &str = "<k: string?, t: int64?, is_right: boolean, x: int64?, p: string?>";

    #[test]
    fn each_left_tuple_finds_the_last_right_one() {
        let mut plan = test_plan();
        let table = plan.table(batch(
            TUPLES,
            "a 1 true NULL one|a 1 true NULL uno|a 1 false 1 NULL|a 3 false 2 NULL|a 4 true NULL NULL|\
             a 5 false 3 NULL|b 9 false 4 NULL|b 9 true NULL nine|c NULL false 5 NULL|c 0 true NULL no|\
             NULL 5 false 6 NULL",
        ));
        let root = scan(&mut plan, table, "is_right", true);
        for (chunk, workers) in SETTINGS {
            let rows = plan.run(root, chunk, workers).unwrap();
            let expected = "NULL 6 NULL|a 1 one|a 2 one|a 3 NULL|b 4 nine|c 5 NULL";
            same(&rows, "<k: string?, x: int64?, p: string?>", expected);
        }
        let root = scan(&mut plan, table, "is_right", false);
        for (chunk, workers) in SETTINGS {
            let rows = plan.run(root, chunk, workers).unwrap();
            same(&rows, "<k: string?, x: int64?, p: string?>", "a 1 one|a 2 one|a 3 NULL|b 4 nine");
        }
    }

    #[test]
    fn another_input_is_refused() {
        let mut plan = test_plan();
        let table = plan.table(batch(TUPLES, ""));
        let root = scan(&mut plan, table, "x", false);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field x of parameter is_right is int64"), "{message}");
        let mut plan = test_plan();
        let table = plan.table(batch(TUPLES, ""));
        let name = |name: &str| Value::Expr(tessera_plan::Expr::field(name));
        let params = Params::new()
            .with("partition_start", name("is_right"))
            .with("peer_start", name("is_right"))
            .with("is_right", name("is_right"))
            .with("fields", Value::names(["p"]));
        let root = plan.add("asof_scan", &[table], params);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("expected window_bounds"), "{message}");
    }
}
