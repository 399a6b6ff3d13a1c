//! Fusion of adjacent sub-operators.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::edge::Traits;
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::operator_catalog::OperatorCatalog;
use tessera_plan::rewrite::{expressions, map_nodes, readers};
use tessera_plan::rule::{Rule, Rules};
use tessera_plan::typing::EXPR_DEPTH_MAX;
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::{VerifiedPlan, verify_in};
use tessera_types::{Result, Tuple};

/// Fuses consecutive filters, and consecutive maps and projections; removes projections and filters
/// without effect; lets aggregates compute the expressions of a map below them. A map is fused only
/// if no expression would be evaluated twice.
///
/// # Errors
/// The plan is invalid.
pub fn fuse(plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
    let verified = verify_in(plan, catalog, Traits::DRIVER)?;
    fuse_verified(plan, &verified, rules)
}

/// The maximum depth of fused expressions, far below the limit of plans.
const DEPTH_MAX: usize = EXPR_DEPTH_MAX / 2;

pub(super) fn fuse_verified(plan: &Plan, verified: &VerifiedPlan, rules: Rules) -> Result<Plan> {
    let readers = readers(plan);
    // The depth of the expressions of fused nodes.
    let mut depths: HashMap<NodeId, usize> = HashMap::new();
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
        if node.inputs.len() == 1
            && readers[old_input.index()] == 1
            && let Some(below) = out.node_mut(input)
            && rule_of(&node, below).is_some_and(|rule| rules.has(rule))
        {
            let deepest =
                depth(&node) + depths.get(&input).copied().unwrap_or_else(|| depth(below));
            if deepest <= DEPTH_MAX && fuse_below(&mut node, below) {
                node.estimated_rows = old.estimated_rows;
                let fused = out.push(node);
                depths.insert(fused, deepest);
                return Ok(fused);
            }
        }
        Ok(out.push(node))
    })
}

/// Returns the depth of a node's deepest expression.
fn depth(node: &Node) -> usize {
    let mut deepest = 0;
    for (_, value) in node.params.iter() {
        expressions(value, &mut |expr| {
            let mut pending = vec![(expr, 1)];
            while let Some((expr, depth)) = pending.pop() {
                deepest = deepest.max(depth);
                pending.extend(expr.children().into_iter().map(|child| (child, depth + 1)));
            }
        });
    }
    deepest
}

/// Whether the output equals the input.
fn keeps_all(node: &Node, input: &Tuple) -> bool {
    let same = |mut names: Box<dyn Iterator<Item = Option<Arc<str>>> + '_>, count: usize| {
        count == input.len()
            && input
                .fields()
                .iter()
                .all(|field| names.next().flatten().as_ref() == Some(&field.name))
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
        "filter" => {
            node.params.expr("predicate").is_ok_and(|predicate| *predicate == Expr::boolean(true))
        }
        _ => false,
    }
}

/// Returns the rule that fuses two sub-operators.
fn rule_of(node: &Node, below: &Node) -> Option<Rule> {
    match (&*node.operator, &*below.operator) {
        ("filter", "filter") => Some(Rule::FuseFilters),
        ("projection" | "map", "projection" | "map") => Some(Rule::FuseMaps),
        ("reduce" | "reduce_by_key", "map") => Some(Rule::FuseAggregates),
        _ => None,
    }
}

/// Fuses `below` into `node`; returns whether that was possible. `node` is the only consumer of
/// `below`, so expressions are moved: copying them for each pair would take quadratic time in long
/// chains.
fn fuse_below(node: &mut Node, below: &mut Node) -> bool {
    if below.inputs.len() != 1 {
        return false;
    }
    let params = match (&*node.operator, &*below.operator) {
        ("filter", "filter") => fuse_filter(node, below),
        ("projection", "projection") | ("map", "projection") => {
            Some(std::mem::take(&mut node.params))
        }
        ("projection", "map") => fuse_projection(node, below),
        ("map", "map") => fuse_map(node, below),
        ("reduce" | "reduce_by_key", "map") => fuse_aggregate(node, below),
        _ => None,
    };
    let Some(params) = params else { return false };
    if &*node.operator == "projection" && &*below.operator == "map" {
        node.operator = below.operator.clone();
    }
    (node.params, node.inputs) = (params, below.inputs.clone());
    (node.nested, node.expected) = (Vec::new(), None);
    true
}

fn fuse_filter(node: &mut Node, below: &mut Node) -> Option<Params> {
    node.params.expr("predicate").ok()?;
    below.params.expr("predicate").ok()?;
    let mut all = into_conjuncts(take_expr(&mut below.params, "predicate")?);
    all.extend(into_conjuncts(take_expr(&mut node.params, "predicate")?));
    Some(Params::new().with("predicate", Expr::all(all)))
}

fn take_expr(params: &mut Params, name: &str) -> Option<Expr> {
    match params.take(name)? {
        Value::Expr(expr) => Some(expr),
        _ => None,
    }
}

fn into_conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(parts) if !parts.iter().any(|part| matches!(part, Expr::And(_))) => parts,
        Expr::And(parts) => parts.into_iter().flat_map(into_conjuncts).collect(),
        other => vec![other],
    }
}

fn fuse_projection(node: &Node, below: &mut Node) -> Option<Params> {
    let names = node.params.names("fields").ok()?;
    let computed: HashSet<_> =
        below.params.exprs("exprs").ok()?.into_iter().map(|(name, _)| name).collect();
    if !names.iter().all(|name| computed.contains(name)) {
        return None;
    }
    let mut exprs = MovedExprs::of(&mut below.params, names.iter())?;
    let kept = names.iter().map(|name| Some((name.clone(), exprs.take(name)?)));
    Some(Params::new().with("exprs", Value::exprs(kept.collect::<Option<Vec<_>>>()?)))
}

fn fuse_map(node: &mut Node, below: &mut Node) -> Option<Params> {
    let outer = node.params.exprs("exprs").ok()?;
    let read: Vec<Arc<str>> = outer.iter().flat_map(|(_, expr)| read_by(expr)).collect();
    if !is_used_once(&below.params.exprs("exprs").ok()?, &read) {
        return None;
    }
    let mut inner = MovedExprs::of(&mut below.params, read.iter())?;
    let Value::Record(mut outer) = node.params.take("exprs")? else { return None };
    for (_, value) in &mut outer {
        if let Value::Expr(expr) = value {
            substitute(expr, &mut inner)?;
        }
    }
    Some(Params::new().with("exprs", Value::Record(outer)))
}

/// Fuses aggregates with the map below them. The keys must be plain fields, and no aggregate may
/// have a filter, since the map evaluates its expressions for all tuples.
fn fuse_aggregate(node: &Node, below: &mut Node) -> Option<Params> {
    let keys = node.params.names_opt("keys").ok()?;
    let mut params = node.params.clone();
    let Value::Record(mut fused) = params.take("aggregates")? else { return None };
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
    let read: Vec<Arc<str>> = exprs.iter().flat_map(|expr| read_by(expr)).collect();
    {
        let inner = below.params.exprs("exprs").ok()?;
        let by_name: HashMap<_, _> = inner.iter().map(|(name, expr)| (name, *expr)).collect();
        let is_kept =
            |key: &Arc<str>| matches!(by_name.get(key), Some(Expr::Field(field)) if field == key);
        if !keys.iter().all(is_kept) || !is_used_once(&inner, &read) {
            return None;
        }
    }
    let mut inner = MovedExprs::of(&mut below.params, read.iter())?;
    exprs.iter_mut().try_for_each(|expr| substitute(expr, &mut inner))?;
    params.set("aggregates", Value::Record(fused));
    Some(params)
}

/// The expressions of a map with their remaining uses; the last use takes an expression.
struct MovedExprs(HashMap<Arc<str>, (Expr, usize)>);

impl MovedExprs {
    /// Takes the expressions in `params` for these reads, or nothing if one of them is missing.
    fn of<'a>(params: &mut Params, read: impl Iterator<Item = &'a Arc<str>>) -> Option<MovedExprs> {
        let mut uses: HashMap<&Arc<str>, usize> = HashMap::new();
        read.for_each(|name| *uses.entry(name).or_default() += 1);
        let names: HashSet<_> =
            params.exprs("exprs").ok()?.into_iter().map(|(name, _)| name).collect();
        if !uses.keys().all(|name| names.contains(*name)) {
            return None;
        }
        let Value::Record(entries) = params.take("exprs")? else { return None };
        let of_entry = |(name, value): (Arc<str>, Value)| match value {
            Value::Expr(expr) => {
                let left = uses.get(&name).copied().unwrap_or(0);
                Some((name, (expr, left)))
            }
            _ => None,
        };
        Some(MovedExprs(entries.into_iter().filter_map(of_entry).collect()))
    }

    fn take(&mut self, name: &Arc<str>) -> Option<Expr> {
        let (expr, left) = self.0.get_mut(name)?;
        *left = left.checked_sub(1)?;
        if *left > 0 {
            return Some(expr.clone());
        }
        self.0.remove(name).map(|(expr, _)| expr)
    }
}

/// Returns the fields that an expression reads, once per occurrence.
fn read_by(expr: &Expr) -> Vec<Arc<str>> {
    let mut read = Vec::new();
    expr.walk(&mut |expr| {
        if let Expr::Field(name) = expr {
            read.push(name.clone());
        }
    });
    read
}

/// Whether each expensive expression is read at most once.
fn is_used_once(inner: &[(Arc<str>, &Expr)], read: &[Arc<str>]) -> bool {
    let mut uses: HashMap<&Arc<str>, usize> = HashMap::new();
    read.iter().for_each(|name| *uses.entry(name).or_default() += 1);
    let cheap =
        |expr: &Expr| matches!(expr, Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..));
    inner.iter().all(|(name, expr)| cheap(expr) || uses.get(name).copied().unwrap_or(0) <= 1)
}

fn substitute(expr: &mut Expr, fields: &mut MovedExprs) -> Option<()> {
    if let Expr::Field(name) = expr {
        *expr = fields.take(name)?;
        return Some(());
    }
    expr.children_mut().into_iter().try_for_each(|child| substitute(child, fields))
}
