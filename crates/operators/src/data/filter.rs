//! `filter`: keeps the tuples for which a predicate is true.

use std::sync::Arc;

use tessera_context::Run;
use tessera_functions::{BoundExpr, Predicate};
use tessera_operator::describe::{edge, passes};
use tessera_operator::stream_util::{Transform, packed_transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

/// Keeps the tuples for which `predicate` is true; false and NULL are dropped (Modularis §2.3.2).
///
/// `<x: int64?>` with `predicate = gt(x, 1)`: `1, 2, NULL, 3` becomes `2, 3`. A selection vector
/// marks the surviving tuples. They are copied only if so few survive that they are packed with
/// those of the next chunks of the same morsel. Holds at most a chunk, never blocks, keeps the
/// order. Errors: those of the predicate.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = filter(%t) {predicate = x > 1}",
/// );
/// assert_eq!(rows, ["2", "3"]);
/// ```
#[derive(Debug)]
pub struct Filter;

impl Descriptor for Filter {
    tessera_operator::describe!(
        "filter",
        "Keeps the tuples for which a predicate is true.",
        ["predicate"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        describe::predicate(node.params.expr("predicate")?, &edge.tuple, inputs)?;
        Ok(passes(edge, edge.tuple.clone(), edge.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Filter {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let predicate = node.params.expr("predicate")?;
        let predicate = BoundExpr::new(predicate, tuple, lowering.parameters, lowering.library)?;
        Ok(Operator::Stream(Arc::new(FilterOperator { predicate })))
    }
}

#[derive(Debug)]
struct FilterOperator {
    predicate: BoundExpr,
}

impl Stream for FilterOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let filter = FilterRun { predicate: Predicate::start(&self.predicate, run) };
        Ok(packed_transform_run(filter, run.context.chunk_rows()))
    }
}

#[derive(Debug)]
struct FilterRun {
    predicate: Predicate,
}

impl Transform for FilterRun {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        self.predicate.select(chunk)
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Expr, Params};

    use crate::testing::test_plan;

    fn more_than(value: i64) -> Params {
        Params::new()
            .with("predicate", Expr::call("gt", vec![Expr::field("x"), Expr::int64(value)]))
    }

    #[test]
    fn only_true_passes() {
        let mut plan = test_plan();
        let table = plan.table(batch("<x: int64?>", "1|2|NULL|3|0"));
        let root = plan.add("filter", &[table], more_than(1));
        let none = plan.add("filter", &[root], more_than(100));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<x: int64?>", "2|3");
            same(&plan.run(none, chunk, workers).unwrap(), "<x: int64?>", "");
        }
    }

    #[test]
    fn the_few_that_pass_are_packed_in_order() {
        let mut plan = test_plan();
        let text: Vec<String> =
            (0..5000).map(|i| if i % 100 == 0 { i.to_string() } else { "0".into() }).collect();
        let table = plan.table(batch("<x: int64?>", &text.join("|")));
        let root = plan.add("filter", &[table], more_than(0));
        let expected: Vec<String> = (1..50).map(|i| (i * 100).to_string()).collect();
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<x: int64?>", &expected.join("|"));
        }
    }

    #[test]
    fn a_predicate_is_boolean() {
        let mut plan = test_plan();
        let table = plan.table(batch("<x: int64>", ""));
        let root = plan.add("filter", &[table], Params::new().with("predicate", Expr::field("x")));
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("sub-operator filter") && message.contains("int64"), "{message}");
    }
}
