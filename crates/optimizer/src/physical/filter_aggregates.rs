//! Filters that aggregates over all tuples take over.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_plan::catalogue::Catalogue;
use tessera_plan::edge::Traits;
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::rewrite::{map_nodes, readers};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::{Verified, verify_in};
use tessera_types::{Atom, Result, Tuple};

/// Fields that aggregates read for all tuples, not only for those that a filter lets pass.
const MORE_FIELDS_MAX: usize = 2;

/// What a processor does to several numbers at once.
const ON_NUMBERS: [&str; 9] = ["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq", "add", "sub", "mul"];

/// Gives the predicate of a filter of numbers to the aggregates of a `reduce` right above it, as
/// the filter of each: compiled, that is one loop without branches over all tuples, and nothing is
/// written between. Groups are not made of tuples that do not count, so that the filter of a
/// `reduce_by_key` stays, and so does one that keeps aggregates from reading many fields.
///
/// # Errors
/// The plan does not verify.
pub fn filter_aggregates(plan: &Plan, catalogue: &Catalogue) -> Result<Plan> {
    let verified = verify_in(plan, catalogue, Traits::DRIVER)?;
    filtered(plan, &verified)
}

pub(super) fn filtered(plan: &Plan, verified: &Verified) -> Result<Plan> {
    let readers = readers(plan);
    map_nodes(plan, &mut |out, id, mut node| {
        for (inner, verified) in node.nested.iter_mut().zip(&verified.nested[id.index()]) {
            *inner = filtered(inner, verified)?;
        }
        let (Some(&old_input), Some(&input)) = (plan.node(id).inputs.first(), node.inputs.first())
        else {
            return Ok(out.push(node));
        };
        // Aggregates read what they read by name, whatever else there is.
        let steps = usize::from(&*plan.node(old_input).operator == "projection");
        let below = |at: NodeId, node: &Node| {
            if steps == 1 { node.inputs.first().copied() } else { Some(at) }
        };
        let old_filter = below(old_input, plan.node(old_input));
        let filter =
            below(input, &out.nodes()[input.index()]).map(|at| out.nodes()[at.index()].clone());
        let (Some(old_filter), Some(filter)) = (old_filter, filter) else {
            return Ok(out.push(node));
        };
        let is_read_once = [old_input, old_filter].iter().all(|id| readers[id.index()] == 1);
        if &*node.operator == "reduce"
            && &*filter.operator == "filter"
            && is_read_once
            && let Some(&tuples) = plan.node(old_filter).inputs.first()
            && let Some(params) = taken(&node, &filter, &verified.edges[tuples.index()].tuple)
        {
            (node.params, node.inputs) = (params, filter.inputs);
        }
        Ok(out.push(node))
    })
}

/// The parameters of a `reduce` whose aggregates have the predicate of a filter.
fn taken(reduce: &Node, filter: &Node, tuple: &Tuple) -> Option<Params> {
    let predicate = filter.params.expr("predicate").ok()?;
    let mut tested = HashSet::new();
    let mut is_simple = is_of_numbers(predicate, tuple, &mut tested);
    let mut read = HashSet::new();
    let Value::Record(mut calls) = reduce.params.get("aggregates")?.clone() else { return None };
    for (_, call) in &mut calls {
        let Value::Record(entries) = call else { return None };
        for (name, value) in entries.iter() {
            match (&**name, value) {
                ("args", Value::List(args)) => {
                    is_simple &= args
                        .iter()
                        .all(|arg| matches!(arg, Value::Expr(expr) if is_of_numbers(expr, tuple, &mut read)));
                }
                ("function", Value::Name(function) | Value::Expr(Expr::Field(function))) => {
                    is_simple &= matches!(&**function, "count" | "sum" | "min" | "max" | "avg");
                }
                _ => return None,
            }
        }
        entries.push((Arc::from("filter"), Value::Expr(predicate.clone())));
    }
    let more = read.difference(&tested).count();
    let mut params = reduce.params.clone();
    params.set("aggregates", Value::Record(calls));
    (is_simple && more <= MORE_FIELDS_MAX).then_some(params)
}

/// Whether an expression does nothing but what a processor does to several numbers at once; the
/// fields that it reads are added.
fn is_of_numbers(expr: &Expr, tuple: &Tuple, read: &mut HashSet<Arc<str>>) -> bool {
    let mut is_simple = true;
    expr.walk(&mut |expr| {
        is_simple &= match expr {
            Expr::Field(name) => {
                read.insert(name.clone());
                let field = tuple.index_of(name).map(|index| &tuple.fields()[index]);
                field.and_then(|field| field.atom()).is_some_and(is_number)
            }
            Expr::Constant(_, atom) => is_number(atom),
            Expr::Call { function, .. } => ON_NUMBERS.contains(&&**function),
            Expr::Parameter(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) => {
                true
            }
            Expr::Cast { .. } | Expr::Case { .. } | Expr::Coalesce(_) | Expr::Try(_) => false,
        };
    });
    is_simple
}

fn is_number(atom: &Atom) -> bool {
    use Atom::*;
    matches!(
        atom,
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64 | Date
    ) || matches!(atom, Decimal(precision, _) if *precision <= 18)
}
