//! `map`: computes new fields.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::{edge, passes, renamed_order, typed};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use crate::data::projector::{Projection, Projector};

/// Yields exactly the fields of `exprs`, each computed from the fields of its tuple (Modularis
/// §2.3.2).
///
/// `<a: int64>` with `exprs = {a = a, b = add(a, 1)}`: `1, 2` becomes `(1, 2), (2, 3)`. A field
/// that is only passed on or renamed keeps its encoding; an expression that several fields share is
/// evaluated once. Holds a chunk, never blocks, keeps the order. Errors: those of the expressions.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = map(%t) {exprs = {x = x, double = x * 2, one = 1::int64}}",
/// );
/// assert_eq!(rows, ["1 2 1", "2 4 1", "NULL NULL 1", "3 6 1"]);
/// ```
#[derive(Debug)]
pub struct Map;

impl Descriptor for Map {
    tessera_operator::describe!(
        "map",
        "Computes new fields from those of each tuple.",
        ["exprs"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let exprs = node.params.exprs("exprs")?;
        let fields = exprs
            .iter()
            .map(|(name, expr)| typed(name, expr, &edge.tuple, inputs))
            .collect::<Result<Vec<_>>>()?;
        let order = renamed_order(&edge.order, |source| {
            let passed = |expr: &Expr| matches!(expr, Expr::Field(name) if &**name == source);
            exprs.iter().find(|(_, expr)| passed(expr)).map(|(name, _)| name.clone())
        });
        Ok(passes(edge, Tuple::new(fields), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Map {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let exprs = node.params.exprs("exprs")?;
        let projector = Projector::new(
            &exprs,
            &lowering.inputs[0].tuple,
            lowering.parameters,
            lowering.library,
        )?;
        Ok(Operator::Stream(Arc::new(MapOperator { projector })))
    }
}

#[derive(Debug)]
struct MapOperator {
    projector: Projector,
}

impl Stream for MapOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(MapRun { projection: self.projector.start(run) }))
    }
}

#[derive(Debug)]
struct MapRun {
    projection: Projection,
}

impl Transform for MapRun {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        self.projection.apply_at_once(&chunk)
    }

    fn piece_rows(&self, chunk: &Chunk) -> Option<usize> {
        self.projection.piece_rows(chunk)
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Order, Params, SortKey, Value};

    use super::*;
    use crate::testing::test_plan;

    fn exprs(list: Vec<(&str, Expr)>) -> Params {
        let list = list.into_iter().map(|(name, expr)| (Arc::from(name), expr));
        Params::new().with("exprs", Value::exprs(list))
    }

    fn sum(a: &str, b: i64) -> Expr {
        Expr::call("add", vec![Expr::field(a), Expr::int64(b)])
    }

    #[test]
    fn fields_are_computed_and_passed_on() {
        let mut plan = test_plan();
        let table =
            plan.table(batch("<a: int64, unused: string, s: string?>", "1 u x|2 u NULL|3 u z"));
        let twice = Expr::call("mul", vec![sum("a", 1), sum("a", 1)]);
        let list =
            vec![("t", Expr::field("s")), ("b", sum("a", 1)), ("c", twice), ("d", Expr::int64(9))];
        let root = plan.add("map", &[table], exprs(list));
        let above = Expr::call("gt", vec![Expr::field("a"), Expr::int64(1)]);
        let filter = plan.add("filter", &[table], Params::new().with("predicate", above));
        let filtered =
            plan.add("map", &[filter], exprs(vec![("a", Expr::field("a")), ("b", sum("a", 1))]));
        for (chunk, workers) in SETTINGS {
            let tuple = "<t: string?, b: int64, c: int64, d: int64>";
            same(&plan.run(root, chunk, workers).unwrap(), tuple, "x 2 4 9|NULL 3 9 9|z 4 16 9");
            let tuple = "<a: int64, b: int64>";
            same(&plan.run(filtered, chunk, workers).unwrap(), tuple, "2 3|3 4");
        }
    }

    #[test]
    fn a_renamed_sort_key_is_still_sorted_by() {
        let mut plan = test_plan();
        let key =
            |field: &str| SortKey { field: field.into(), descending: true, nulls_first: false };
        let table = batch("<a: int64, b: int64>", "");
        let given = plan.given_as(table, None, Order::Sorted(vec![key("a"), key("b")]));
        let table = plan.add("given", &[], given);
        let root = plan.add("map", &[table], exprs(vec![("z", Expr::field("a"))]));
        assert_eq!(plan.verify(root).unwrap().order, Order::Sorted(vec![key("z")]));
        let root = plan.add("map", &[table], exprs(vec![("b", Expr::field("b"))]));
        assert_eq!(plan.verify(root).unwrap().order, Order::Source);
    }

    #[test]
    fn the_field_of_an_ill_typed_expression_is_named() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add(
            "map",
            &[table],
            exprs(vec![("total", Expr::Not(Box::new(Expr::field("a"))))]),
        );
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field total") && message.contains("int64"), "{message}");
    }
}
