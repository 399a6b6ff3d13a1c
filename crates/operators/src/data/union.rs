//! `union`: concatenates its inputs.

use tessera_operator::describe::edges;
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Parallelism, Role, Traits};
use tessera_types::{Error, Result, Tuple, quote_name};

/// Yields all tuples of the first input, then all of the second, and so on; duplicates stay
/// (Modularis §2.3.2).
///
/// `1, 2` and `2, 3` give `1, 2, 2, 3`. The inputs have the same fields; an output field can be
/// NULL if it can be in any input. Holds nothing, never blocks, keeps the order within and among
/// its inputs.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %more = values() {columns = <x: int64?>, rows = [[4]]}
///      %result = union(%t, %more)",
/// );
/// assert_eq!(rows, ["1", "2", "NULL", "3", "4"]);
/// ```
#[derive(Debug)]
pub struct Union;

impl Descriptor for Union {
    tessera_operator::describe!(
        "union",
        "Passes on its inputs, one after the other.",
        [],
        1,
        usize::MAX
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edges = edges(inputs)?;
        let first = &edges[0];
        let mut fields = first.tuple.fields().to_vec();
        for (position, edge) in edges.iter().enumerate().skip(1) {
            if edge.tuple.len() != fields.len() {
                return Err(Error::semantic(format!(
                    "input 0 is {} and input {position} is {}; they must have the same fields",
                    first.tuple, edge.tuple
                )));
            }
            for (field, other) in fields.iter_mut().zip(&edge.tuple) {
                if field.name != other.name || field.item != other.item {
                    return Err(Error::semantic(format!(
                        "field {} is {} in input 0, where input {position} has {}: {}; rename or cast one of them",
                        quote_name(&field.name),
                        field.item,
                        quote_name(&other.name),
                        other.item
                    )));
                }
                field.nullable |= other.nullable;
            }
        }
        let many = edges.iter().any(|edge| edge.traits.parallelism == Parallelism::Many);
        let parallelism = if many { Parallelism::Many } else { Parallelism::One };
        let parts = edges.iter().any(|edge| edge.traits.locality == Locality::Worker);
        let locality = if parts { Locality::Worker } else { Locality::All };
        let order = match edges {
            [only] => only.order.clone(),
            _ if edges.iter().any(|edge| edge.order == Order::None) => Order::None,
            _ => Order::Source,
        };
        Ok(Edge {
            tuple: Tuple::new(fields),
            traits: Traits { parallelism, locality, ..first.traits },
            order,
        })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Union
    }
}

impl SubOperator for Union {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Union)
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::Params;

    use crate::testing::test_plan;

    #[test]
    fn inputs_follow_each_other() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2"));
        let b = plan.table(batch("<a: int64?>", "NULL|2|3"));
        let empty = plan.table(batch("<a: int64>", ""));
        let root = plan.add("union", &[a, empty, b, a], Params::new());
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64?>", "1|2|NULL|2|3|1|2");
        }
    }

    #[test]
    fn other_fields_are_rejected_with_both_types() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", ""));
        let b = plan.table(batch("<a: string>", ""));
        let root = plan.add("union", &[a, b], Params::new());
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field a is int64") && message.contains("a: string"), "{message}");
    }
}
