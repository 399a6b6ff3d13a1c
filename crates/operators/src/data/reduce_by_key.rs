//! ReduceByKey: aggregates over the tuples of each key (Modularis §3.2).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tessera_operator::{Lowering, Operator, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_state::aggregate::{calls, output_fields};
use tessera_state::group_table::{Grouping, Limits, PartialGrouping};
use tessera_types::{Field, Result, Tuple};

/// One tuple per distinct key: the keys, then the aggregates over the tuples with that key.
///
/// * **Input** any tuple; **output** the key fields, then one field per aggregate. Without
///   aggregates: the distinct keys. No input, no output.
/// * **Parameters** `keys` = `[names]`; `aggregates` as for [`super::Reduce`].
/// * Keys that are NULL are one key, as are `-0.0` and `0.0`, and all NaNs.
/// * **Memory** a record per group; each worker has a table of its own up to the size of a cache,
///   then groups flow to partitions, which leave memory where they are more than there may be.
///   **Blocks** until all input has come. **Order** none is promised.
/// * With `partial`, what each worker sees is grouped by itself, in a table the size of a cache
///   that is passed on when it is full: a key can come several times, and nothing blocks.
/// * **Errors** a sum that leaves its type (`overflow`), and whatever arguments raise.
///
/// | in: k, x | `keys = [k], aggregates = {s = {function = sum, args = [x]}}` |
/// |---|---|
/// | (a, 1), (b, 2), (a, 3), (NULL, 4), (NULL, 5) | (a, 4), (b, 2), (NULL, 9) |
#[derive(Debug, Clone, Copy)]
pub struct ReduceByKey;

impl Descriptor for ReduceByKey {
    tessera_operator::describe!(
        "reduce_by_key",
        "Aggregates over the tuples of each key; without aggregates the distinct keys.",
        ["keys", "aggregates", "partial"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        describe::wants_all_unless_partial(node, edge, 0)?;
        let keys = describe::keys(&edge.tuple, &node.params.names("keys")?, "key")?;
        let mut fields: Vec<Field> =
            keys.iter().map(|&key| edge.tuple.fields()[key].clone()).collect();
        fields.extend(output_fields(&calls(node)?, &edge.tuple, inputs)?);
        Ok(describe::passes(edge, Tuple::new(fields), Order::None))
    }

    fn role(&self, node: &Node) -> Role {
        if node.params.flag("partial").unwrap_or(false) { Role::Stream(0) } else { Role::Sink(0) }
    }
}

impl SubOperator for ReduceByKey {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        lower_with(node, lowering, Limits::default())
    }
}

/// Lowers a node, its table limited.
pub(crate) fn lower_with(node: &Node, lowering: &Lowering<'_>, limits: Limits) -> Result<Operator> {
    let keys = describe::keys(&lowering.inputs[0].tuple, &node.params.names("keys")?, "key")?;
    let grouping = Grouping::bind(&keys, &calls(node)?, lowering, (limits, node.estimated_rows))?;
    Ok(match node.params.flag("partial")? {
        true => Operator::Stream(Arc::new(PartialGrouping::new(grouping))),
        false => Operator::Sink(Arc::new(grouping)),
    })
}
