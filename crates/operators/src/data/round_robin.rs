//! `round_robin`: deals tuples out to partitions in turn.

use std::sync::Arc;

use tessera_operator::describe::{count, edge, require_all, single_edge};
use tessera_operator::partitions::{PARTITION_BITS_MAX, partitions_tuple};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::RowLayout;
use tessera_types::{Error, Result};

use crate::data::partition::{PartitionSink, Router};

/// Deals tuples out to `fan_out` partitions in turn, so that their sizes are about equal for any
/// values.
///
/// `1, 2, 3` with `fan_out = 2` gives `(0, rows of 1 and 3), (1, rows of 2)`: always `fan_out`
/// tuples, in order. Each worker deals its own tuples. Holds the tuples, as rows; ends its
/// pipeline; partitions are unordered.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: int64>, rows = [[1], [2], [3], [4], [5]]}
///      %parts = round_robin(%t) {fan_out = 1}
///      %result = rows_scan(%parts) {field = data}",
/// );
/// assert_eq!(rows, ["1", "2", "3", "4", "5"]);
/// ```
#[derive(Debug)]
pub struct RoundRobin;

fn fan_out(node: &Node) -> Result<usize> {
    let most = 1 << PARTITION_BITS_MAX;
    match count(node, "fan_out")? {
        Some(fan_out) if (1..=most).contains(&fan_out) => Ok(fan_out),
        _ => Err(Error::semantic(format!("parameter fan_out must be a number from 1 to {most}"))),
    }
}

impl Descriptor for RoundRobin {
    tessera_operator::describe!(
        "round_robin",
        "Deals tuples out to partitions in turn.",
        ["fan_out"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all(edge, 0)?;
        fan_out(node)?;
        Ok(single_edge(edge, partitions_tuple(&edge.tuple), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for RoundRobin {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let layout = RowLayout::new(&lowering.inputs[0].tuple)?;
        Ok(Operator::Sink(Arc::new(PartitionSink::new(Router::RoundRobin(fan_out(node)?), layout))))
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{TestContext, batch, rows};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Params, Value};
    use tessera_rows::Rows;

    use crate::testing::test_plan;

    #[test]
    fn partitions_are_even_and_complete() {
        let mut plan = test_plan();
        let numbers: Vec<String> = (0..1000).map(|i| format!("{i}")).collect();
        let table = plan.table(batch("<a: int64?>", &numbers.join("|")));
        let partitions = plan.add("round_robin", &[table], Params::new().with("fan_out", 3));
        let root =
            plan.add("rows_scan", &[partitions], Params::new().with("field", Value::name("data")));
        for (chunk, workers) in SETTINGS {
            let collected = plan.collect(partitions, TestContext::new(chunk, workers)).unwrap();
            assert_eq!(collected.rows(), 3);
            for chunk in collected.chunks().map(Result::unwrap) {
                for handle in chunk.column(1).unwrap().handles().unwrap() {
                    let rows = handle.get::<Rows>().unwrap().len();
                    assert!(
                        (333 - workers..=334 + workers).contains(&rows),
                        "{rows} with {workers} workers"
                    );
                }
            }
            let mut found = rows(&plan.run(root, chunk, workers).unwrap());
            found.sort_by_key(|line| line.parse::<i64>().unwrap());
            assert_eq!(found, numbers);
        }
        let root = plan.add("round_robin", &[table], Params::new().with("fan_out", 0));
        assert!(plan.verify(root).unwrap_err().to_string().contains("from 1 to"));
    }
}
