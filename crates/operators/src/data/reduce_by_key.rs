//! `reduce_by_key`: aggregates over the tuples of each key (Modularis §2.3.4).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tessera_operator::{Lowering, Operator, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_state::aggregate::{calls, output_fields};
use tessera_state::group_table::{Grouping, Limits, PartialGrouping};
use tessera_types::{Field, Result, Tuple};

/// Yields one tuple per distinct key: the keys, then the aggregates over the tuples with that key.
///
/// * **Input** any tuple; **output** the key fields, then one field per aggregate. Without
///   aggregates: the distinct keys. Empty for an empty input.
/// * **Parameters** `keys` = `[names]`; `aggregates` as for [`super::Reduce`].
/// * All NULL keys are one key, as are `-0.0` and `0.0`, and all NaNs.
/// * **Memory** a record per group. Each worker fills its own table of the size of a cache; beyond
///   that, groups move to partitions, which are spilled when they exceed the budget. **Blocks**
///   until the input is complete. **Order** not promised.
/// * With `partial`, each worker groups its own tuples in a table of the size of a cache, which is
///   emitted when full: a key can occur several times, and nothing blocks.
/// * **Errors** a sum out of range (`overflow`), and those of the arguments.
///
/// | in: k, x | `keys = [k], aggregates = {s = {function = sum, args = [x]}}` |
/// |---|---|
/// | (a, 1), (b, 2), (a, 3), (NULL, 4), (NULL, 5) | (a, 4), (b, 2), (NULL, 9) |
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 1], ['b', 2], ['a', 3], ['c',
///        4]]}
///      %sums = reduce_by_key(%t) {keys = [k], aggregates = {total = {function = :sum, args =
///        [v]}}}
///      %result = sort(%sums) {keys = [{field = k}]}",
/// );
/// assert_eq!(rows, ["a 4", "b 2", "c 4"]);
/// ```
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
        describe::require_all_unless_partial(node, edge, 0)?;
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

/// Lowers a node with limits on the size of its table.
pub(crate) fn lower_with(node: &Node, lowering: &Lowering<'_>, limits: Limits) -> Result<Operator> {
    let keys = describe::keys(&lowering.inputs[0].tuple, &node.params.names("keys")?, "key")?;
    let grouping = Grouping::bind(&keys, &calls(node)?, lowering, (limits, node.estimated_rows))?;
    Ok(match node.params.flag("partial")? {
        true => Operator::Stream(Arc::new(PartialGrouping::new(grouping))),
        false => Operator::Sink(Arc::new(grouping)),
    })
}
