//! `merge`: gathers many streams into one.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::{edge, sort_keys};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Parallelism, Role, SortKey, Traits};
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::data::sort::SortSink;

/// Gathers the streams of many workers into one: in the order of the source, or, with `keys`,
/// sorted streams into a sorted one (HetExchange, many to one).
///
/// `1, 4` from one worker and `2, 3` from another give, with `keys = [{field = a}]`, `1, 2, 3, 4`.
/// Without keys, chunks pass through unchanged; the consumer orders them by the position they
/// carry. With keys, it holds all tuples and ends its pipeline. Errors: an input that is not sorted
/// by `keys`.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64>, rows = [[1], [2], [3]]}
///      %sorted = sort(%t) {keys = [{field = x, descending = true}]}
///      %result = merge(%sorted) {keys = [{field = x, descending = true}]}",
/// );
/// assert_eq!(rows, ["3", "2", "1"]);
/// ```
#[derive(Debug)]
pub struct Merge;

impl Descriptor for Merge {
    tessera_operator::describe!(
        "merge",
        "Gathers the streams of many workers into one.",
        ["keys"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        if node.param("keys").is_none() {
            return Ok(gathered(edge, edge.order.clone()));
        }
        let keys: Vec<SortKey> =
            sort_keys(node, &edge.tuple)?.into_iter().map(|(_, key)| key).collect();
        match &edge.order {
            Order::Sorted(order) if order.starts_with(&keys) => {
                Ok(gathered(edge, Order::Sorted(keys)))
            }
            _ => Err(Error::semantic(
                "the input is not sorted by keys; insert a sort by the same keys",
            )),
        }
    }

    fn role(&self, node: &Node) -> Role {
        if node.param("keys").is_some() { Role::Sink(0) } else { Role::Stream(0) }
    }
}

/// Returns the edge of the single output stream.
fn gathered(edge: &Edge, order: Order) -> Edge {
    let traits = Traits { parallelism: Parallelism::One, ..edge.traits };
    Edge { tuple: edge.tuple.clone(), traits, order }
}

impl SubOperator for Merge {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        if node.param("keys").is_none() {
            return Ok(Operator::Stream(Arc::new(PassThrough)));
        }
        // A presorted run is detected with one comparison per tuple, so this costs little more than
        // the merge.
        Ok(Operator::Sink(Arc::new(SortSink::new(node, &lowering.inputs[0].tuple)?)))
    }
}

#[derive(Debug)]
struct PassThrough;

impl Stream for PassThrough {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(PassThrough))
    }
}

impl Transform for PassThrough {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        Ok(chunk)
    }
}
