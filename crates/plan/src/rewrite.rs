//! Tools for rewriting plans, independent of any sub-operator.

use tessera_types::{Atom, Result, Tuple};

use crate::expr::Expr;
use crate::graph::{Builder, Node, NodeId, Plan};
use crate::operator_catalog::Functions;
use crate::typing::{Scope, type_of};
use crate::value::Value;

/// Returns the comparison that is equivalent with exchanged operands; `None` if the function is no
/// comparison by order or equality.
pub fn mirrored(function: &str) -> Option<&'static str> {
    Some(match function {
        "eq" => "eq",
        "not_eq" => "not_eq",
        "lt" => "gt",
        "lt_eq" => "gt_eq",
        "gt" => "lt",
        "gt_eq" => "lt_eq",
        _ => return None,
    })
}

/// Rebuilds a plan node by node, inputs first. `rewrite` gets each node with translated inputs,
/// adds nodes to the new plan and returns the id that replaces the node. Nested plans are not
/// visited; unreachable nodes are removed.
///
/// # Errors
/// Returns the errors of `rewrite`.
pub fn map_nodes(
    plan: &Plan,
    rewrite: &mut dyn FnMut(&mut Builder, NodeId, Node) -> Result<NodeId>,
) -> Result<Plan> {
    let mut out = Builder::new(plan.parameters.clone());
    let mut ids: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    for (id, node) in plan.ids().zip(&plan.nodes) {
        let mut node = node.clone();
        for input in &mut node.inputs {
            *input = translated(&ids, *input)?;
        }
        ids.push(rewrite(&mut out, id, node)?);
    }
    let root = translated(&ids, plan.root)?;
    Ok(remove_unreachable(&out.finish(root)))
}

fn translated(ids: &[NodeId], old: NodeId) -> Result<NodeId> {
    ids.get(old.index()).copied().ok_or_else(|| {
        tessera_types::Error::semantic(format!("node %{} is used before it is defined", old.0))
    })
}

/// Returns for each node whether the result depends on it.
pub fn reachable(plan: &Plan) -> Vec<bool> {
    let mut reachable = vec![false; plan.nodes.len()];
    if let Some(root) = reachable.get_mut(plan.root.index()) {
        *root = true;
    }
    for position in (0..plan.nodes.len()).rev() {
        if reachable[position] {
            for input in &plan.nodes[position].inputs {
                if let Some(input) = reachable.get_mut(input.index()) {
                    *input = true;
                }
            }
        }
    }
    reachable
}

/// Removes the nodes that the result does not depend on.
pub fn remove_unreachable(plan: &Plan) -> Plan {
    let keep = reachable(plan);
    let mut next = 0;
    let positions: Vec<NodeId> = keep
        .iter()
        .map(|keep| {
            let id = NodeId(next);
            next += u32::from(*keep);
            id
        })
        .collect();
    // An id that is out of range stays out of range, for the verifier to report.
    let renumbered = |id: NodeId| positions.get(id.index()).copied().unwrap_or(NodeId(u32::MAX));
    let nodes = plan.nodes.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(node, _)| {
        let mut node = node.clone();
        node.inputs.iter_mut().for_each(|input| *input = renumbered(*input));
        node
    });
    Plan {
        parameters: plan.parameters.clone(),
        nodes: nodes.collect(),
        root: renumbered(plan.root),
    }
}

/// Removes the declared output types: they have been checked, and a pass may narrow tuples.
pub fn without_declared_types(mut plan: Plan) -> Plan {
    for node in &mut plan.nodes {
        node.expected = None;
        node.nested =
            std::mem::take(&mut node.nested).into_iter().map(without_declared_types).collect();
    }
    plan
}

/// Returns how many nodes read each node; the plan's result counts as a reader.
pub fn readers(plan: &Plan) -> Vec<usize> {
    let reachable = reachable(plan);
    let mut readers = vec![0; plan.nodes.len()];
    for (node, _) in plan.nodes.iter().zip(&reachable).filter(|(_, reachable)| **reachable) {
        for input in &node.inputs {
            readers[input.index()] += 1;
        }
    }
    readers[plan.root.index()] += 1;
    readers
}

/// Whether evaluating the expression can raise an error; `true` for an ill-typed expression.
pub fn can_raise(expr: &Expr, scope: Scope<'_>) -> bool {
    type_and_raises(expr, scope).is_none_or(|(_, raises)| raises)
}

/// Returns the type and whether the expression can raise an error. One pass computes both, since
/// typing each level separately would take quadratic time.
fn type_and_raises(expr: &Expr, scope: Scope<'_>) -> Option<(Atom, bool)> {
    let children = expr
        .children()
        .into_iter()
        .map(|child| type_and_raises(child, scope))
        .collect::<Option<Vec<_>>>()?;
    let any = children.iter().any(|(_, raises)| *raises);
    Some(match expr {
        Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..) => {
            (type_of(expr, scope).ok()?.0, false)
        }
        Expr::Call { function, args } => {
            let types = children.into_iter().zip(args).map(|((atom, _), arg)| (atom, true, arg));
            let types: Vec<_> = types.collect();
            let (atom, _) = scope.functions.scalar(function, &types).ok()?;
            (atom, any || scope.functions.can_raise(function, &types))
        }
        Expr::Cast { to, safe, .. } => {
            let (from, _) = children.first()?;
            (to.clone(), any || (!safe && scope.functions.cast_can_raise(from, to)))
        }
        // The first value: it follows the first condition, or is the only child (ELSE).
        Expr::Case { branches, .. } => {
            (children.get(usize::from(!branches.is_empty())).or(children.first())?.0.clone(), any)
        }
        Expr::Coalesce(_) => (children.first()?.0.clone(), any),
        Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) => (Atom::Boolean, any),
        Expr::Try(_) => (Atom::Boolean, false),
        Expr::Lambda(lambda) => {
            let none = Tuple::empty();
            let functions = scope.functions;
            let scope = Scope { tuple: &lambda.parameters, parameters: &none, functions };
            type_and_raises(&lambda.body, scope)?
        }
    })
}

/// Whether the expression calls a volatile function, also in a lambda.
pub fn is_volatile(expr: &Expr, functions: &dyn Functions) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| match expr {
        Expr::Call { function, .. } => found |= functions.is_volatile(function),
        Expr::Lambda(lambda) => found |= is_volatile(&lambda.body, functions),
        _ => {}
    });
    found
}

/// Calls `visit` on every expression in a parameter value.
pub fn expressions<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a Expr)) {
    match value {
        Value::Expr(expr) => visit(expr),
        Value::List(values) => values.iter().for_each(|value| expressions(value, visit)),
        Value::Record(entries) => entries.iter().for_each(|(_, value)| expressions(value, visit)),
        _ => {}
    }
}
