//! Filters that move into the aggregates above them.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_plan::edge::Traits;
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::operator_catalog::OperatorCatalog;
use tessera_plan::rewrite::{map_nodes, readers};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::{VerifiedPlan, verify_in};
use tessera_types::{Atom, Result, Tuple};

/// The maximum number of fields that aggregates may read for all tuples instead of the selected
/// ones.
const MORE_FIELDS_MAX: usize = 2;

/// The functions that a CPU evaluates for several numbers at once (SIMD).
const ON_NUMBERS: [&str; 9] = ["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq", "add", "sub", "mul"];

/// Moves the predicate of a numeric filter into the aggregates of the `reduce` directly above it,
/// as the FILTER of each. Compiled, this is one branch-free loop without intermediate results. The
/// filter below a `reduce_by_key` stays, so that no groups are created for rejected tuples; so does
/// a filter that keeps aggregates from reading many fields.
///
/// # Errors
/// The plan is invalid.
pub fn filter_aggregates(plan: &Plan, catalog: &OperatorCatalog) -> Result<Plan> {
    let verified = verify_in(plan, catalog, Traits::DRIVER)?;
    filtered(plan, &verified)
}

pub(super) fn filtered(plan: &Plan, verified: &VerifiedPlan) -> Result<Plan> {
    let readers = readers(plan);
    map_nodes(plan, &mut |out, id, mut node| {
        for (inner, verified) in node.nested.iter_mut().zip(&verified.nested[id.index()]) {
            *inner = filtered(inner, verified)?;
        }
        let (Some(&old_input), Some(&input)) = (plan.node(id).inputs.first(), node.inputs.first())
        else {
            return Ok(out.push(node));
        };
        // Aggregates read fields by name, so further fields do not matter.
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

/// Returns the parameters of a `reduce` with the predicate of a filter in its aggregates.
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

/// Whether an expression uses only functions that a CPU evaluates for several numbers at once; adds
/// the fields that it reads to `read`.
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
            Expr::Cast { .. }
            | Expr::Case { .. }
            | Expr::Coalesce(_)
            | Expr::Try(_)
            | Expr::Lambda(_) => false,
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
