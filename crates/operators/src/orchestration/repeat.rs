//! `loop`: runs a plan on its own result.

use std::sync::Arc;

use arrow::array::AsArray;

use tessera_context::{Context, Run};
use tessera_operator::describe::{count, edge, field, field_name, passes};
use tessera_operator::{
    Lowering, NestedPlan, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator, nested_plan,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, Rows};
use tessera_types::{Atom, Code, Error, Item, Result, quote_name};
use tessera_vector::{Chunk, Column};

use crate::orchestration::nested_map::{nested_input, run_once};

/// Runs its nested plan on each tuple, then on the result, and so on, while the result's field
/// `while` is true, or, if it is a collection of rows, while it is not empty (Modularis §2.3.2).
///
/// `<n, more>` = `(1, true)` with a nested plan that doubles `n` and sets `more` to `n < 8` becomes
/// `(8, false)`; with `each`, it becomes `(1, true), (2, true), (4, true), (8, false)`: the tuple
/// itself and the result of every run, each as soon as it is computed. The plan runs at least once;
/// false and NULL end the loop. Holds a tuple; keeps the order. Errors: more than `limit` runs; a
/// run that does not yield exactly one tuple.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <n: int64, more: boolean?>, rows = [[1, true], [5, true]]}
///      %result = loop(%t) {while = more, limit = 10, each = true} plan <n: int64, more: boolean?>
///        {
///        %outer = parameter_lookup()
///        %twice = map(%outer) {exprs = {n = n * 2, more = n * 2 < 8}}
///        return %twice
///      }",
/// );
/// assert_eq!(rows, ["1 true", "2 true", "4 true", "8 false", "5 true", "10 false"]);
/// ```
#[derive(Debug)]
pub struct Loop;

impl Descriptor for Loop {
    tessera_operator::describe!(
        "loop",
        "Runs its nested plan on its own result while a field is true.",
        ["while", "limit", "each"],
        1,
        1
    );

    fn nested(&self) -> usize {
        1
    }

    fn nested_input(&self, _node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        nested_input(inputs)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let tuple = &edge.tuple;
        let condition = field_name(node, "while")?;
        let (_, field) = field(tuple, &condition, "field")?;
        let fits = match &field.item {
            Item::Atom(atom) => *atom == Atom::Boolean,
            Item::Collection(collection) => &*collection.format == "rows",
        };
        if !fits {
            return Err(Error::semantic(format!(
                "field {field} is neither boolean nor rows; name such a field in parameter while of loop"
            )));
        }
        node.params.flag("each")?;
        if count(node, "limit")?.is_none_or(|limit| limit == 0) {
            return Err(Error::semantic(
                "parameter limit of loop must be a positive number: the most runs",
            ));
        }
        let result = &inputs.nested.first().ok_or_else(|| Error::internal("no nested plan"))?.tuple;
        let fits = result.len() == tuple.len()
            && result.fields().iter().zip(tuple).all(|(from, to)| {
                from.name == to.name && from.item == to.item && (to.nullable || !from.nullable)
            });
        if !fits {
            return Err(Error::semantic(format!(
                "the nested plan of loop takes {tuple} and yields {result}; both must have the same type"
            )));
        }
        let order = if edge.order == Order::None { Order::None } else { Order::Source };
        Ok(passes(edge, tuple.clone(), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Loop {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let name = field_name(node, "while")?;
        let (condition, _) = field(&lowering.inputs[0].tuple, &name, "field")?;
        let limit = count(node, "limit")?.unwrap_or(1);
        let each = node.params.flag("each")?;
        Ok(Operator::Stream(Arc::new(LoopOperator { name, condition, limit, each })))
    }
}

#[derive(Debug, Clone)]
struct LoopOperator {
    name: Arc<str>,
    condition: usize,
    limit: usize,
    each: bool,
}

impl Stream for LoopOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let (operator, plan) = (self.clone(), nested_plan(run)?);
        Ok(Arc::new(LoopRun { operator, plan, context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct LoopRun {
    operator: LoopOperator,
    plan: Arc<dyn NestedPlan>,
    context: Arc<dyn Context>,
}

impl StreamRun for LoopRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (operator, plan) = (self.operator.clone(), self.plan.clone());
        let context = self.context.clone();
        Ok(Box::new(LoopWorker {
            operator,
            plan,
            context,
            pending: Chunk::unit().slice(0, 0),
            next: 0,
            at: None,
        }))
    }
}

struct LoopWorker {
    operator: LoopOperator,
    plan: Arc<dyn NestedPlan>,
    context: Arc<dyn Context>,
    /// The input chunk, and its next tuple.
    pending: Chunk,
    next: usize,
    /// The tuple to run on, and the number of runs so far.
    at: Option<(Chunk, usize)>,
}

impl LoopWorker {
    /// Runs once; returns the result, and whether the loop is finished.
    fn run(&self, tuple: Chunk, runs: usize) -> Result<(Chunk, bool)> {
        let LoopOperator { name, condition, limit, .. } = &self.operator;
        self.context.check()?;
        let result = run_once(&*self.plan, tuple, &self.context, "loop")?;
        if !goes_on(&result.column(*condition)?)? {
            return Ok((result, true));
        }
        if runs < *limit {
            return Ok((result, false));
        }
        Err(Error::new(
            Code::Limit,
            format!(
                "loop has not ended after {limit} runs, by field {}; raise its parameter limit, or check its condition",
                quote_name(name)
            ),
        ))
    }
}

/// Returns whether the only value of a column is true, or a non-empty collection.
fn goes_on(column: &Column) -> Result<bool> {
    if let Column::Handles(handles) = column {
        let rows = handles.first().map(|handle| handle.get::<Rows>()).transpose()?;
        return Ok(rows.is_some_and(|rows| !rows.is_empty()));
    }
    let value = column.plain()?;
    Ok(value.as_boolean_opt().and_then(|value| value.iter().next().flatten()) == Some(true))
}

impl StreamWorker for LoopWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        (self.pending, self.next) = (chunk, 0);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        let each = self.operator.each;
        loop {
            let Some((tuple, runs)) = self.at.take() else {
                if self.next == self.pending.rows() {
                    return Ok(Step::NeedInput);
                }
                let tuple = self.pending.slice(self.next, 1).compact()?;
                self.next += 1;
                self.at = Some((tuple.clone(), 0));
                if each {
                    return Ok(Step::HasOutput(tuple));
                }
                continue;
            };
            let (result, last) = self.run(tuple, runs + 1)?;
            if !last {
                self.at = Some((result.clone(), runs + 1));
            }
            if each || last {
                return Ok(Step::HasOutput(result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::{SETTINGS, TestPlan};
    use tessera_plan::{Builder, Expr, NodeId, Params, Value};

    use super::*;
    use crate::testing::test_plan;

    /// Doubles `n` while it is below 100.
    fn doubling(plan: &mut TestPlan, input: NodeId, limit: i64, each: bool) -> NodeId {
        let mut builder = Builder::new("<n: int64, more: boolean?>".parse().unwrap());
        let tuple = builder.add("parameter_lookup", &[], Params::new());
        let double = Expr::call("mul", vec![Expr::field("n"), Expr::int64(2)]);
        let more = Expr::call("lt", vec![Expr::field("n"), Expr::int64(50)]);
        let exprs = Value::exprs([("n".into(), double), ("more".into(), more)]);
        let root = builder.add("map", &[tuple], Params::new().with("exprs", exprs));
        let params =
            Params::new().with("while", Value::Expr(Expr::field("more"))).with("limit", limit);
        let params = if each { params.with("each", true) } else { params };
        plan.add_nested("loop", &[input], params, builder.finish(root))
    }

    #[test]
    fn each_tuple_runs_until_it_is_done() {
        let mut plan = test_plan();
        let table = plan.table(batch("<n: int64, more: boolean?>", "1 true|60 false|7 NULL"));
        let root = doubling(&mut plan, table, 100, false);
        for (chunk, workers) in SETTINGS {
            let expected = "128 false|120 false|112 false";
            same(&plan.run(root, chunk, workers).unwrap(), "<n: int64, more: boolean?>", expected);
        }
    }

    #[test]
    fn the_tuple_of_every_run_comes_with_each() {
        let mut plan = test_plan();
        let table = plan.table(batch("<n: int64, more: boolean?>", "20 true|70 NULL"));
        let root = doubling(&mut plan, table, 100, true);
        for (chunk, workers) in SETTINGS {
            let expected = "20 true|40 true|80 true|160 false|70 NULL|140 false";
            same(&plan.run(root, chunk, workers).unwrap(), "<n: int64, more: boolean?>", expected);
        }
    }

    #[test]
    fn rows_are_looped_on_until_there_are_none() {
        let mut plan = test_plan();
        let table = plan.table(batch("<n: int64>", "1|5|9"));
        let start = plan.add("rows_materialize", &[table], Params::new());
        let mut builder = Builder::new("<data: rows<n: int64>>".parse().unwrap());
        let tuple = builder.add("parameter_lookup", &[], Params::new());
        let data = Params::new().with("field", Value::Expr(Expr::field("data")));
        let work = builder.add("rows_scan", &[tuple], data.clone());
        let below = Expr::call("lt", vec![Expr::field("n"), Expr::int64(9)]);
        let kept = builder.add("filter", &[work], Params::new().with("predicate", below));
        let more = Expr::call("add", vec![Expr::field("n"), Expr::int64(3)]);
        let exprs = Value::exprs([("n".into(), more)]);
        let next = builder.add("map", &[kept], Params::new().with("exprs", exprs));
        let result = builder.add("rows_materialize", &[next], Params::new());
        let params =
            Params::new().with("while", Value::Expr(Expr::field("data"))).with("limit", 10);
        let nested = builder.finish(result);
        let looped = plan.add_nested("loop", &[start], params.with("each", true), nested);
        let root = plan.add("rows_scan", &[looped], data);
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<n: int64>", "1|5|9|4|8|7|11|10");
        }
    }

    #[test]
    fn the_limit_is_named() {
        let mut plan = test_plan();
        let table = plan.table(batch("<n: int64, more: boolean?>", "1 true"));
        let root = doubling(&mut plan, table, 3, false);
        let error = plan.run(root, 7, 1).unwrap_err();
        assert_eq!(error.code(), Code::Limit);
        assert!(error.message().contains("parameter limit"), "{error}");
    }
}
