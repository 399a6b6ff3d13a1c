//! `nested_map`: runs a nested plan for every tuple.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::row::{RowConverter, Rows, SortField};

use tessera_context::{Context, Run};
use tessera_operator::describe::{edge, passes};
use tessera_operator::{
    Lowering, NestedPlan, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator, nested_plan,
};
use tessera_plan::{Descriptor, Edge, Functions, Inputs, Node, Order, Plan, Role, Traits, Value};
use tessera_rows::Collected;
use tessera_types::{Error, Item, Result, Tuple};
use tessera_vector::{Chunk, concat_chunks};

/// The most results that a worker caches; a full cache is cleared.
const REMEMBERED_MAX: usize = 4_096;
/// The cache also takes at most this fraction of the memory budget.
const REMEMBERED_SHARE: usize = 128;
const REMEMBERED_BYTES_MAX: usize = 64 << 20;
/// Approximate overhead of a cached result, in bytes.
const ENTRY_BYTES: usize = 256;

/// Results that are output together take about this fraction of the memory budget.
const OUTPUT_SHARE: usize = 64;

/// Runs its nested plan for every tuple and yields the one tuple of each run (Modularis §2.3.2).
///
/// With a nested plan that counts the tuples of its input collection, `(a, rows of 3), (b, rows of
/// 5)` becomes `3, 5`. Results are cached for tuples without collections, so that the plan does not
/// run again for each equal tuple. Holds a chunk and the cache; never blocks; keeps the order.
/// Errors: a run that does not yield exactly one tuple, and those of the nested plan.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = nested_map(%t) plan <x: int64?> {
///        %outer = parameter_lookup()
///        %square = map(%outer) {exprs = {square = x * x}}
///        return %square
///      }",
/// );
/// assert_eq!(rows, ["1", "4", "NULL", "9"]);
/// ```
#[derive(Debug)]
pub struct NestedMap;

impl Descriptor for NestedMap {
    tessera_operator::describe!("nested_map", "Runs its nested plan for every tuple.", [], 1, 1);

    fn nested(&self) -> usize {
        1
    }

    fn nested_input(&self, _node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        nested_input(inputs)
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let result = inputs.nested.first().ok_or_else(|| Error::internal("no nested plan"))?;
        let order = if edge.order == Order::None { Order::None } else { Order::Source };
        Ok(passes(edge, result.tuple.clone(), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

/// The input edge of a nested plan that runs for each tuple: one worker sees the whole tuple.
pub(crate) fn nested_input(inputs: &[Edge]) -> Result<Edge> {
    let input = inputs.first().ok_or_else(|| Error::internal("no input"))?;
    let traits = Traits { device: input.traits.device, ..Traits::DRIVER };
    Ok(Edge { tuple: input.tuple.clone(), traits, order: Order::Source })
}

impl SubOperator for NestedMap {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let values =
            |tuple: &Tuple| tuple.fields().iter().all(|field| matches!(field.item, Item::Atom(_)));
        let input = &lowering.inputs[0].tuple;
        let repeatable = !node.nested.iter().any(|plan| is_volatile(plan, &**lowering.library));
        let remembers =
            values(input) && values(&lowering.output.tuple) && !input.is_empty() && repeatable;
        let key = remembers.then(|| input.clone());
        Ok(Operator::Stream(Arc::new(NestedMapOperator { key })))
    }
}

/// Returns whether two runs for the same tuple can give different results.
fn is_volatile(plan: &Plan, functions: &dyn Functions) -> bool {
    let node = |node: &Node| {
        node.params.iter().any(|(_, value)| value_is_volatile(value, functions))
            || node.nested.iter().any(|plan| is_volatile(plan, functions))
    };
    plan.nodes.iter().any(node)
}

fn value_is_volatile(value: &Value, functions: &dyn Functions) -> bool {
    match value {
        Value::List(values) => values.iter().any(|value| value_is_volatile(value, functions)),
        Value::Record(entries) => {
            entries.iter().any(|(_, value)| value_is_volatile(value, functions))
        }
        Value::Expr(expr) => tessera_plan::rewrite::is_volatile(expr, functions),
        _ => false,
    }
}

#[derive(Debug)]
struct NestedMapOperator {
    /// The input's type, if results are cached.
    key: Option<Tuple>,
}

impl Stream for NestedMapOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let (plan, key) = (nested_plan(run)?, self.key.clone());
        Ok(Arc::new(NestedMapRun { plan, key, context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct NestedMapRun {
    plan: Arc<dyn NestedPlan>,
    key: Option<Tuple>,
    context: Arc<dyn Context>,
}

impl StreamRun for NestedMapRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let memory = match &self.key {
            None => None,
            Some(tuple) => {
                let fields = tuple.fields().iter().filter_map(|field| field.atom());
                let fields: Vec<_> = fields.map(|atom| SortField::new(atom.arrow())).collect();
                let supported = RowConverter::supports_fields(&fields);
                let bytes_max =
                    (self.context.memory_bytes() / REMEMBERED_SHARE).min(REMEMBERED_BYTES_MAX);
                let converter = supported.then(|| RowConverter::new(fields)).transpose()?;
                converter.map(|converter| Memory {
                    converter,
                    results: HashMap::new(),
                    bytes: 0,
                    bytes_max,
                })
            }
        };
        let (plan, context) = (self.plan.clone(), self.context.clone());
        Ok(Box::new(NestedMapWorker { plan, context, memory, input: None }))
    }
}

/// Cached results of earlier runs, by the bytes of their tuples.
struct Memory {
    converter: RowConverter,
    results: HashMap<Box<[u8]>, Chunk>,
    bytes: usize,
    bytes_max: usize,
}

impl Memory {
    fn get(&self, key: &[u8]) -> Option<Chunk> {
        self.results.get(key).cloned()
    }

    /// Caches a result; clears the cache first if it is full.
    fn insert(&mut self, key: &[u8], result: &Chunk) {
        let bytes = ENTRY_BYTES + key.len() + result.value_bytes();
        if self.results.len() >= REMEMBERED_MAX || self.bytes + bytes > self.bytes_max {
            self.results.clear();
            self.bytes = 0;
        }
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.results.insert(key.into(), result.with_compact_strings());
        }
    }
}

struct NestedMapWorker {
    plan: Arc<dyn NestedPlan>,
    context: Arc<dyn Context>,
    memory: Option<Memory>,
    input: Option<Input>,
}

/// A chunk of tuples that the nested plan runs for.
struct Input {
    chunk: Chunk,
    keys: Option<Rows>,
    /// The first tuple that it has not run for.
    next: usize,
}

impl NestedMapWorker {
    fn run(&self, tuple: Chunk) -> Result<Chunk> {
        self.context.check()?;
        run_once(&*self.plan, tuple, &self.context, "nested_map")
    }
}

/// Runs a nested plan that must yield exactly one tuple.
pub(crate) fn run_once(
    plan: &dyn NestedPlan,
    tuple: Chunk,
    context: &Arc<dyn Context>,
    operator: &str,
) -> Result<Chunk> {
    let result = plan.run(tuple, context)?;
    result.single().map_err(|_| {
        Error::data(format!(
            "the nested plan of {operator} must yield exactly one tuple per run, but yielded {}",
            result.rows()
        ))
    })
}

impl StreamWorker for NestedMapWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact()?;
        let keys = match &self.memory {
            None => None,
            Some(memory) => {
                let arrays =
                    chunk.stored().iter().map(|c| c.plain()).collect::<Result<Vec<_>>>()?;
                Some(memory.converter.convert_columns(&arrays)?)
            }
        };
        self.input = Some(Input { chunk, keys, next: 0 });
        Ok(())
    }

    /// Yields the results of the next tuples, up to a limit on their bytes.
    fn step(&mut self) -> Result<Step> {
        let Some(mut input) = self.input.take() else { return Ok(Step::NeedInput) };
        let limit = self.context.memory_bytes() / OUTPUT_SHARE;
        let (mut results, mut bytes) = (Vec::new(), 0);
        while input.next < input.chunk.rows() && bytes <= limit {
            let key = input.keys.as_ref().map(|keys| keys.row(input.next));
            let known =
                key.zip(self.memory.as_ref()).and_then(|(key, memory)| memory.get(key.as_ref()));
            let result = match known {
                Some(result) => result,
                None => {
                    let result = self.run(input.chunk.slice(input.next, 1))?;
                    if let Some((key, memory)) = key.zip(self.memory.as_mut()) {
                        memory.insert(key.as_ref(), &result);
                    }
                    result
                }
            };
            bytes += result.value_bytes();
            results.push(result);
            input.next += 1;
        }
        if results.is_empty() {
            return Ok(Step::NeedInput);
        }
        self.input = Some(input);
        Ok(Step::HasOutput(concat_chunks(&results)?))
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::{SETTINGS, TestPlan};
    use tessera_plan::{Builder, Expr, Params};

    use super::*;
    use crate::testing::test_plan;

    /// A nested plan that filters `1, 2, 3` by `> $x`, and yields the first `limit` of them.
    fn nested(plan: &TestPlan, limit: i64) -> Plan {
        let mut builder = Builder::new("<x: int64?>".parse().unwrap());
        let table = builder.add("given", &[], plan.given(batch("<a: int64>", "1|2|3")));
        let more = Expr::call("gt", vec![Expr::field("a"), Expr::Parameter("x".into())]);
        let filter = builder.add("filter", &[table], Params::new().with("predicate", more));
        let root = builder.add("limit", &[filter], Params::new().with("limit", limit));
        builder.finish(root)
    }

    #[test]
    fn every_tuple_gets_its_result_in_order() {
        let mut plan = test_plan();
        let inner = nested(&plan, 1);
        let table = plan.table(batch("<x: int64?>", "2|0|1|1|0|0|2|1|1"));
        let root = plan.add_nested("nested_map", &[table], Params::new(), inner);
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64>", "3|1|2|2|1|1|3|2|2");
        }
    }

    #[test]
    fn a_run_yields_exactly_one_tuple() {
        for (limit, x) in [(1, "1|NULL"), (2, "1")] {
            let mut plan = test_plan();
            let inner = nested(&plan, limit);
            let table = plan.table(batch("<x: int64?>", x));
            let root = plan.add_nested("nested_map", &[table], Params::new(), inner);
            let message = plan.run(root, 7, 1).unwrap_err().to_string();
            assert!(message.contains("exactly one tuple"), "{message}");
        }
    }

    #[test]
    fn a_plan_for_other_tuples_is_rejected() {
        let mut plan = test_plan();
        let inner = nested(&plan, 1);
        let table = plan.table(batch("<x: string>", ""));
        let root = plan.add_nested("nested_map", &[table], Params::new(), inner);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("<x: string>") && message.contains("<x: int64?>"), "{message}");
    }
}
