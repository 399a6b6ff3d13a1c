//! `loop`: a plan, again and again.

use std::sync::Arc;

use arrow::array::AsArray;

use tessera_encodings::{Chunk, concat_chunks};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Atom, Code, Error, Result, quote_name};

use crate::describe::{count, edge, field_name, key, passes};
use crate::operator::{
    Collected, Lowering, NestedPlan, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator,
};
use crate::orchestration::nested_map::{nested_input, run_once};
use crate::{Context, Run, describe};

/// Runs its nested plan on each tuple, then on the result, and so on, while the result's boolean field `while` is true
/// (Modularis §2.3.2).
///
/// `<n, more>` = `(1, true)` with a nested plan that doubles `n` and sets `more` to `n < 8` becomes `(8, false)`. At least one
/// run is made; false and NULL end it. Holds a tuple; keeps the order. Errors: `limit` runs without an end; a run
/// that does not yield exactly one tuple.
#[derive(Debug)]
pub struct Loop;

impl Descriptor for Loop {
    describe!(
        "loop",
        "Runs its nested plan on its own result while a field is true.",
        ["while", "limit"],
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
        let index = key(tuple, &condition, "field")?;
        if tuple.fields()[index].atom() != Some(&Atom::Boolean) {
            let field = &tuple.fields()[index];
            return Err(Error::semantic(format!("field {field} must be boolean to be looped on")));
        }
        if count(node, "limit")?.is_none_or(|limit| limit == 0) {
            return Err(Error::semantic(
                "parameter limit must be given and positive: the most runs that are made",
            ));
        }
        let result = &inputs.nested.first().ok_or_else(|| Error::internal("no nested plan"))?.tuple;
        let fits = result.len() == tuple.len()
            && result.fields().iter().zip(tuple).all(|(from, to)| {
                from.name == to.name && from.item == to.item && (to.nullable || !from.nullable)
            });
        if !fits {
            return Err(Error::semantic(format!(
                "its nested plan takes {tuple} and yields {result}; the result of one run is the input of the next, so \
                 both must be of the same type"
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
        let plan = lowering.nested.first().cloned().ok_or_else(|| Error::internal("no nested plan"))?;
        let name = field_name(node, "while")?;
        let condition = key(&lowering.inputs[0].tuple, &name, "field")?;
        let limit = count(node, "limit")?.unwrap_or(1);
        Ok(Operator::Stream(Arc::new(Lowered { plan, name, condition, limit })))
    }
}

#[derive(Debug, Clone)]
struct Lowered {
    plan: Arc<dyn NestedPlan>,
    name: Arc<str>,
    condition: usize,
    limit: usize,
}

impl Stream for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(LoopRun { lowered: self.clone(), context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct LoopRun {
    lowered: Lowered,
    context: Arc<dyn Context>,
}

impl StreamRun for LoopRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (lowered, context) = (self.lowered.clone(), self.context.clone());
        Ok(Box::new(LoopWorker { lowered, context, output: None }))
    }
}

struct LoopWorker {
    lowered: Lowered,
    context: Arc<dyn Context>,
    output: Option<Chunk>,
}

impl LoopWorker {
    fn repeat(&self, mut tuple: Chunk) -> Result<Chunk> {
        let Lowered { plan, name, condition, limit } = &self.lowered;
        for _ in 0..*limit {
            self.context.check()?;
            tuple = run_once(&**plan, tuple, &self.context, "loop")?;
            let value = tuple.column(*condition)?.plain()?;
            let value = value.as_boolean_opt().and_then(|value| value.iter().next().flatten());
            if value != Some(true) {
                return Ok(tuple);
            }
        }
        Err(Error::new(
            Code::Limit,
            format!(
                "field {} is still true after {limit} runs of the loop; raise its parameter limit, or see why it does \
                 not end",
                quote_name(name)
            ),
        ))
    }
}

impl StreamWorker for LoopWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let results = (0..chunk.rows()).map(|row| self.repeat(chunk.slice(row, 1).compact()?));
        self.output = Some(concat_chunks(&results.collect::<Result<Vec<_>>>()?)?);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.output.take().map_or(Step::NeedInput, Step::HasOutput))
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Builder, Expr, NodeId, Params, Value};

    use super::*;
    use crate::testing::{SETTINGS, TestPlan, batch, same};

    /// Doubles `n` while it is below 100.
    fn doubling(plan: &mut TestPlan, input: NodeId, limit: i64) -> NodeId {
        let mut builder = Builder::new("<n: int64, more: boolean?>".parse().unwrap());
        let tuple = builder.add("parameter_lookup", &[], Params::new());
        let double = Expr::call("mul", vec![Expr::field("n"), Expr::int64(2)]);
        let more = Expr::call("lt", vec![Expr::field("n"), Expr::int64(50)]);
        let exprs = Value::exprs([("n".into(), double), ("more".into(), more)]);
        let root = builder.add("map", &[tuple], Params::new().with("exprs", exprs));
        let params = Params::new().with("while", Value::Expr(Expr::field("more"))).with("limit", limit);
        plan.add_nested("loop", &[input], params, builder.finish(root))
    }

    #[test]
    fn each_tuple_runs_until_it_is_done() {
        let mut plan = TestPlan::new();
        let table = plan.table(batch("<n: int64, more: boolean?>", "1 true|60 false|7 NULL"));
        let root = doubling(&mut plan, table, 100);
        for (chunk, workers) in SETTINGS {
            let expected = "128 false|120 false|112 false";
            same(&plan.run(root, chunk, workers).unwrap(), "<n: int64, more: boolean?>", expected);
        }
    }

    #[test]
    fn the_limit_is_named() {
        let mut plan = TestPlan::new();
        let table = plan.table(batch("<n: int64, more: boolean?>", "1 true"));
        let root = doubling(&mut plan, table, 3);
        let error = plan.run(root, 7, 1).unwrap_err();
        assert_eq!(error.code(), Code::Limit);
        assert!(error.message().contains("parameter limit"), "{error}");
    }
}
