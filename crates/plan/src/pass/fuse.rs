//! Neighbours that make one sub-operator.

use std::collections::HashMap;
use std::sync::Arc;

use tessera_types::{Result, Tuple};

use super::{map_nodes, readers};
use crate::catalogue::Catalogue;
use crate::edge::Traits;
use crate::expr::Expr;
use crate::graph::{Node, Plan};
use crate::rule::{Rule, Rules};
use crate::value::{Params, Value};
use crate::verify::{Verified, verify_in};

/// Fuses a filter with the filter below it, and maps and projections with maps and projections below them; drops
/// projections that keep everything and filters that pass everything; aggregates compute what a map below them would. A map is fused
/// only where no expression would be evaluated twice.
///
/// # Errors
/// The plan does not verify.
pub fn fuse(plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
    let verified = verify_in(plan, catalogue, Traits::DRIVER)?;
    fuse_verified(plan, &verified, rules)
}

fn fuse_verified(plan: &Plan, verified: &Verified, rules: Rules) -> Result<Plan> {
    let readers = readers(plan);
    map_nodes(plan, &mut |out, id, mut node| {
        let old = &plan.nodes[id.index()];
        for (inner, verified) in node.nested.iter_mut().zip(&verified.nested[id.index()]) {
            *inner = fuse_verified(inner, verified, rules)?;
        }
        let (Some(&input), Some(&old_input)) = (node.inputs.first(), old.inputs.first()) else {
            return Ok(out.push(node));
        };
        if rules.has(Rule::DropIdle) && keeps_all(&node, &verified.edges[old_input.index()].tuple) {
            return Ok(input);
        }
        if node.inputs.len() == 1 && readers[old_input.index()] == 1 {
            let below = out.nodes()[input.index()].clone();
            if rule_of(&node, &below).is_some_and(|rule| rules.has(rule))
                && let Some(params) = fused(&node, &below)
            {
                let is_map = &*node.operator == "projection" && &*below.operator == "map";
                let operator = if is_map { below.operator.clone() } else { node.operator.clone() };
                let fused = Node::new(operator, below.inputs, params, Vec::new());
                return Ok(out.push(Node { estimated_rows: node.estimated_rows, ..fused }));
            }
        }
        Ok(out.push(node))
    })
}

/// Whether the output is the input as it is.
fn keeps_all(node: &Node, input: &Tuple) -> bool {
    let same = |mut names: Box<dyn Iterator<Item = Option<Arc<str>>> + '_>, count: usize| {
        count == input.len()
            && input.fields().iter().all(|field| names.next().flatten().as_ref() == Some(&field.name))
    };
    match &*node.operator {
        "projection" => node.params.names("fields").is_ok_and(|names| {
            let count = names.len();
            same(Box::new(names.into_iter().map(Some)), count)
        }),
        "map" => node.params.exprs("exprs").is_ok_and(|exprs| {
            let count = exprs.len();
            let name = |(name, expr): (Arc<str>, &Expr)| match expr {
                Expr::Field(field) if *field == name => Some(name),
                _ => None,
            };
            same(Box::new(exprs.into_iter().map(name)), count)
        }),
        "filter" => node.params.expr("predicate").is_ok_and(|predicate| *predicate == Expr::boolean(true)),
        _ => false,
    }
}

/// The rule that makes one sub-operator of two.
fn rule_of(node: &Node, below: &Node) -> Option<Rule> {
    match (&*node.operator, &*below.operator) {
        ("filter", "filter") => Some(Rule::FuseFilters),
        ("projection" | "map", "projection" | "map") => Some(Rule::FuseMaps),
        ("reduce" | "reduce_by_key", "map") => Some(Rule::FuseAggregates),
        _ => None,
    }
}

/// The parameters of the one sub-operator that does what `below` and then `node` do.
fn fused(node: &Node, below: &Node) -> Option<Params> {
    if below.inputs.len() != 1 {
        return None;
    }
    match (&*node.operator, &*below.operator) {
        ("filter", "filter") => {
            let mut all = below.params.expr("predicate").ok()?.conjuncts();
            all.extend(node.params.expr("predicate").ok()?.conjuncts());
            Some(Params::new().with("predicate", Expr::all(all)))
        }
        ("projection", "projection") => Some(node.params.clone()),
        ("map", "projection") => Some(node.params.clone()),
        ("projection", "map") => {
            let exprs: HashMap<_, _> = below.params.exprs("exprs").ok()?.into_iter().collect();
            let names = node.params.names("fields").ok()?;
            let kept =
                names.into_iter().map(|name| exprs.get(&name).map(|expr| (name.clone(), (*expr).clone())));
            Some(Params::new().with("exprs", Value::exprs(kept.collect::<Option<Vec<_>>>()?)))
        }
        ("map", "map") => composed(node, below),
        ("reduce" | "reduce_by_key", "map") => aggregated(node, below),
        _ => None,
    }
}

fn composed(node: &Node, below: &Node) -> Option<Params> {
    let inner: Exprs<'_> = below.params.exprs("exprs").ok()?.into_iter().collect();
    let outer = node.params.exprs("exprs").ok()?;
    if !is_used_once(&inner, outer.iter().map(|(_, expr)| *expr)) {
        return None;
    }
    let exprs = outer.into_iter().map(|(name, expr)| {
        let mut expr = expr.clone();
        substitute(&mut expr, &inner)?;
        Some((name, expr))
    });
    Some(Params::new().with("exprs", Value::exprs(exprs.collect::<Option<Vec<_>>>()?)))
}

/// Aggregates over what a map computes. Its keys must be fields as they are, and no filter may keep tuples from what the map evaluates for
/// all of them.
fn aggregated(node: &Node, below: &Node) -> Option<Params> {
    let inner: Exprs<'_> = below.params.exprs("exprs").ok()?.into_iter().collect();
    let is_kept = |key: &Arc<str>| matches!(inner.get(key), Some(Expr::Field(field)) if field == key);
    if !node.params.names_opt("keys").ok()?.iter().all(is_kept) {
        return None;
    }
    let mut params = node.params.clone();
    let Value::Record(mut fused) = params.get("aggregates")?.clone() else { return None };
    let mut args = Vec::new();
    for (_, call) in &mut fused {
        let Value::Record(entries) = call else { return None };
        for (name, value) in entries {
            match (&**name, value) {
                ("args", Value::List(list)) => args.extend(list),
                ("function" | "distinct", _) => {}
                _ => return None,
            }
        }
    }
    let mut exprs = args
        .into_iter()
        .map(|arg| match arg {
            Value::Expr(expr) => Some(expr),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()?;
    if !is_used_once(&inner, exprs.iter().map(|expr| &**expr)) {
        return None;
    }
    exprs.iter_mut().try_for_each(|expr| substitute(expr, &inner))?;
    params.set("aggregates", Value::Record(fused));
    Some(params)
}

/// What a map computes, by name.
type Exprs<'a> = HashMap<Arc<str>, &'a Expr>;

/// Whether expressions read each of those that cost something at most once.
fn is_used_once<'a>(inner: &Exprs<'_>, outer: impl Iterator<Item = &'a Expr>) -> bool {
    let mut uses: HashMap<&Arc<str>, usize> = HashMap::new();
    for expr in outer {
        expr.walk(&mut |expr| {
            if let Expr::Field(name) = expr {
                *uses.entry(name).or_default() += 1;
            }
        });
    }
    let cheap = |expr: &Expr| matches!(expr, Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..));
    inner.iter().all(|(name, expr)| cheap(expr) || uses.get(name).copied().unwrap_or(0) <= 1)
}

fn substitute(expr: &mut Expr, fields: &HashMap<Arc<str>, &Expr>) -> Option<()> {
    if let Expr::Field(name) = expr {
        *expr = (*fields.get(name)?).clone();
        return Some(());
    }
    expr.children_mut().into_iter().try_for_each(|child| substitute(child, fields))
}
