//! `window_bounds`: marks where partitions and peers begin.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use tessera_context::{Context, Run};
use tessera_operator::describe::{self, edge, passes};
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_values::canonical::canonical_values;
use tessera_vector::{Chunk, Column};

use super::check_producer;
use crate::data::sort::PARTITION;

/// Adds two boolean fields: whether a tuple is the first of its partition, and of its peers.
///
/// `(a, 1), (a, 1), (a, 2), (b, 2)` with `partition = [k]`, `order = [v]` gives the flags
/// `(true, true), (false, false), (false, true), (true, true)`. Reads a `sort` by `partition` and
/// `order` whose parameter `partition` is the number of the former. Without `order`, all tuples of
/// a partition are peers. Holds the keys of one tuple, never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 2], ['b', 2], ['a', 1], ['a',
///        1]]}
///      %sorted = sort(%t) {keys = [{field = k}, {field = v}], partition = 1}
///      %result = window_bounds(%sorted) {partition = [k], order = [v], partition_start = p,
///        peer_start = q}",
/// );
/// assert_eq!(rows, ["a 1 true true", "a 1 false false", "a 2 false true", "b 2 true true"]);
/// ```
#[derive(Debug)]
pub struct WindowBounds;

impl Descriptor for WindowBounds {
    tessera_operator::describe!(
        "window_bounds",
        "Marks where partitions and peers begin.",
        ["partition", "order", "partition_start", "peer_start"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let (partition, order) = names(node)?;
        describe::keys(&edge.tuple, &partition, "partition key")?;
        describe::keys(&edge.tuple, &order, "order key")?;
        check_order(&edge.order, &partition, &order)?;
        let mut fields = edge.tuple.fields().to_vec();
        for parameter in ["partition_start", "peer_start"] {
            fields.push(Field::new(describe::field_name(node, parameter)?, Atom::Boolean));
        }
        Ok(passes(edge, Tuple::new(fields), edge.order.clone()))
    }

    fn check_producers(&self, node: &Node, producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        check_producer(producers, &["sort", "window_bounds"])?;
        let (partition, _) = names(node)?;
        let whole = match producers.first() {
            // Windows that share a sort mark their tuples one after the other.
            Some(bounds) if &*bounds.operator == "window_bounds" => Some(names(bounds)?.0.len()),
            Some(sort) => describe::count(sort, PARTITION)?,
            None => None,
        };
        if whole.is_none_or(|keys| keys > partition.len()) {
            return Err(Error::semantic(format!(
                "the sort must have the parameter partition = {}, so that its morsels hold whole partitions",
                partition.len()
            )));
        }
        Ok(())
    }

    fn is_only_reader(&self) -> bool {
        true
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

fn names(node: &Node) -> Result<(Vec<Arc<str>>, Vec<Arc<str>>)> {
    Ok((node.params.names_opt("partition")?, node.params.names_opt("order")?))
}

/// Checks that the input is sorted by the partition keys, in any order, and then by the order keys.
fn check_order(order: &Order, partition: &[Arc<str>], keys: &[Arc<str>]) -> Result<()> {
    let sorted = match order {
        Order::Sorted(sorted) => sorted.as_slice(),
        _ => &[],
    };
    let mut fields = sorted.iter().map(|key| &key.field);
    let leading: Vec<&Arc<str>> = fields.by_ref().take(partition.len()).collect();
    let is_partitioned =
        leading.len() == partition.len() && partition.iter().all(|name| leading.contains(&name));
    // An order key that is a partition key too is the same in the whole partition.
    let mut rest = fields;
    let is_ordered = keys
        .iter()
        .filter(|key| !partition.contains(key))
        .all(|key| rest.next().is_some_and(|field| field == key));
    if is_partitioned && is_ordered {
        return Ok(());
    }
    let all: Vec<&str> = partition.iter().chain(keys).map(|name| &**name).collect();
    Err(Error::semantic(format!("the input is not sorted by {}; insert a sort", all.join(", "))))
}

impl SubOperator for WindowBounds {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let (partition, order) = names(node)?;
        let keys = |names: &[Arc<str>]| -> Result<Arc<[usize]>> {
            Ok(describe::keys(tuple, names, "key")?.into())
        };
        Ok(Operator::Stream(Arc::new(BoundsOperator {
            partition: keys(&partition)?,
            order: keys(&order)?,
        })))
    }
}

#[derive(Debug, Clone)]
struct BoundsOperator {
    partition: Arc<[usize]>,
    order: Arc<[usize]>,
}

impl Stream for BoundsOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(BoundsRun { operator: self.clone(), context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct BoundsRun {
    operator: BoundsOperator,
    context: Arc<dyn Context>,
}

impl StreamRun for BoundsRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (partition, order) = (&self.operator.partition, &self.operator.order);
        Ok(Box::new(BoundsWorker {
            context: self.context.clone(),
            partition: KeyChanges::new(partition),
            order: KeyChanges::new(order),
            output: None,
        }))
    }
}

struct BoundsWorker {
    context: Arc<dyn Context>,
    partition: KeyChanges,
    order: KeyChanges,
    output: Option<Chunk>,
}

impl StreamWorker for BoundsWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.context.check()?;
        let chunk = chunk.compact()?;
        let is_first = self.partition.is_at_start();
        let mut partitions = self.partition.of(&chunk)?;
        if is_first {
            partitions = with_first(&partitions);
        }
        let peers = &partitions | &self.order.of(&chunk)?;
        let mut columns = chunk.stored().to_vec();
        columns.push(Column::Plain(Arc::new(BooleanArray::new(partitions, None))));
        columns.push(Column::Plain(Arc::new(BooleanArray::new(peers, None))));
        self.output = Some(Chunk::new(columns, chunk.rows()));
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.output.take().map_or(Step::NeedInput, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.partition.restart();
        self.order.restart();
        Ok(())
    }
}

/// Sets the first bit.
fn with_first(bits: &BooleanBuffer) -> BooleanBuffer {
    BooleanBuffer::collect_bool(bits.len(), |row| row == 0 || bits.value(row))
}

/// Finds the tuples whose keys differ from those of the tuple before.
struct KeyChanges {
    keys: Arc<[usize]>,
    /// The keys of the last tuple of the chunk before, in arrays of one value; `None` at the start
    /// of a morsel.
    last: Option<Vec<ArrayRef>>,
}

impl KeyChanges {
    fn new(keys: &Arc<[usize]>) -> KeyChanges {
        KeyChanges { keys: keys.clone(), last: None }
    }

    fn is_at_start(&self) -> bool {
        self.last.is_none()
    }

    fn restart(&mut self) {
        self.last = None;
    }

    fn of(&mut self, chunk: &Chunk) -> Result<BooleanBuffer> {
        let rows = chunk.rows();
        let mut changes = BooleanBuffer::new_unset(rows);
        let mut last = Vec::with_capacity(self.keys.len());
        for (number, key) in self.keys.iter().enumerate() {
            let values = canonical_values(chunk.column(*key)?.plain()?)?;
            let inside = differences(&values.slice(0, rows - 1), &values.slice(1, rows - 1))?;
            let from_before = match &self.last {
                Some(last) => differences(&last[number], &values.slice(0, 1))?.value(0),
                None => false,
            };
            changes = BooleanBuffer::collect_bool(rows, |row| match row {
                0 => changes.value(0) || from_before,
                row => changes.value(row) || inside.value(row - 1),
            });
            last.push(arrow::compute::take(
                &values,
                &arrow::array::UInt32Array::from(vec![rows as u32 - 1]),
                None,
            )?);
        }
        self.last = Some(last);
        Ok(changes)
    }
}

/// Returns where two arrays differ; NULL equals NULL.
fn differences(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanBuffer> {
    match left.data_type() {
        DataType::Null => Ok(BooleanBuffer::new_unset(left.len())),
        data_type if data_type.is_nested() => {
            let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
            let left = converter.convert_columns(std::slice::from_ref(left))?;
            let right = converter.convert_columns(std::slice::from_ref(right))?;
            let rows = left.num_rows();
            Ok(BooleanBuffer::collect_bool(rows, |row| left.row(row) != right.row(row)))
        }
        _ => Ok(distinct(left, right)?.values().clone()),
    }
}
