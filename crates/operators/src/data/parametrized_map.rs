//! `parametrized_map`: a map that can also read one constant tuple.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::{edges, passes, require_all, typed};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column, repeat_value};

use crate::data::projector::{Projection, Projector};

/// A map whose expressions can also read the only tuple of its first input (Modularis §2.3.2).
///
/// With the side `<total: int64>` = `10` and `<a: int64>` = `1, 2`, `exprs = {a = a, rest =
/// sub(total, a)}` gives `(1, 9), (2, 8)`. The side's values are constants of the run. Holds a
/// chunk, never blocks, keeps the order. Errors: those of the expressions; a side that does not
/// have exactly one tuple.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%p = values() {columns = <factor: int64>, rows = [[10]]}
///      %t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = parametrized_map(%p, %t) {exprs = {y = x * factor}}",
/// );
/// assert_eq!(rows, ["10", "20", "NULL", "30"]);
/// ```
#[derive(Debug)]
pub struct ParametrizedMap;

impl Descriptor for ParametrizedMap {
    tessera_operator::describe!(
        "parametrized_map",
        "Computes new fields from those of each tuple and of one constant tuple.",
        ["exprs"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = edges(inputs)? else { return Err(Error::internal("two inputs")) };
        require_all(side, 0)?;
        let scope = side.tuple.concat(&stream.tuple);
        scope.check()?;
        let exprs = node.params.exprs("exprs")?;
        let fields = exprs
            .iter()
            .map(|(name, expr)| typed(name, expr, &scope, inputs))
            .collect::<Result<Vec<_>>>()?;
        let order = if stream.order == Order::None { Order::None } else { Order::Source };
        Ok(passes(stream, Tuple::new(fields), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

impl SubOperator for ParametrizedMap {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let [side, stream] = lowering.inputs else { return Err(Error::internal("two inputs")) };
        let exprs = node.params.exprs("exprs")?;
        let scope = side.tuple.concat(&stream.tuple);
        let projector = Projector::new(&exprs, &scope, lowering.parameters, lowering.library)?;
        Ok(Operator::Stream(Arc::new(ParametrizedMapOperator { projector })))
    }
}

#[derive(Debug)]
struct ParametrizedMapOperator {
    projector: Projector,
}

impl Stream for ParametrizedMapOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let side = sides.first().ok_or_else(|| Error::internal("a side is missing"))?;
        let parameter =
            side.single().map_err(|error| error.context("the first input of parametrized_map"))?;
        Ok(transform_run(MapRun { projection: self.projector.start(run), parameter }))
    }
}

#[derive(Debug)]
struct MapRun {
    projection: Projection,
    parameter: Chunk,
}

impl Transform for MapRun {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        let rows = chunk.rows_stored();
        let constants = self.parameter.stored().iter().map(|column| repeat_value(column, 0, rows));
        let mut columns = constants.collect::<Result<Vec<Column>>>()?;
        columns.extend_from_slice(chunk.stored());
        self.projection.apply(&chunk.with_stored(columns))
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Expr, Params, Value};

    use super::*;
    use crate::testing::test_plan;

    fn rest() -> Params {
        let rest = Expr::call("sub", vec![Expr::field("total"), Expr::field("a")]);
        let exprs = [(Arc::from("a"), Expr::field("a")), (Arc::from("rest"), rest)];
        Params::new().with("exprs", Value::exprs(exprs))
    }

    #[test]
    fn the_side_is_a_constant() {
        let mut plan = test_plan();
        let side = plan.table(batch("<total: int64>", "10"));
        let table = plan.table(batch("<a: int64?>", "1|NULL|3"));
        let root = plan.add("parametrized_map", &[side, table], rest());
        for (chunk, workers) in SETTINGS {
            same(
                &plan.run(root, chunk, workers).unwrap(),
                "<a: int64?, rest: int64?>",
                "1 9|NULL NULL|3 7",
            );
        }
    }

    #[test]
    fn the_side_is_exactly_one_tuple() {
        for rows in ["", "1|2"] {
            let mut plan = test_plan();
            let side = plan.table(batch("<total: int64>", rows));
            let table = plan.table(batch("<a: int64?>", "1"));
            let root = plan.add("parametrized_map", &[side, table], rest());
            let message = plan.run(root, 7, 1).unwrap_err().to_string();
            assert!(message.contains("exactly one tuple"), "{message}");
        }
    }

    #[test]
    fn a_name_on_both_sides_is_rejected() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", "1"));
        let root = plan.add("parametrized_map", &[table, table], rest());
        assert!(plan.verify(root).unwrap_err().to_string().contains("duplicate field"));
    }
}
