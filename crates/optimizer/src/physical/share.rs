//! Work that is written twice.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tessera_plan::catalogue::{Catalogue, Functions, Role};
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::rewrite::{expressions, is_volatile, remove_unreachable};
use tessera_types::Result;

/// Lets equal sub-plans share their state: where two sub-operators that consume their input whole
/// have equal parameters and equal inputs all the way down, one of them does the work. Streams are
/// not shared: that would materialise what would have flowed.
///
/// # Errors
/// A sub-operator that is not in the catalogue.
pub fn share_common(plan: &Plan, catalogue: &Catalogue) -> Result<Plan> {
    let mut plan = plan.clone();
    // The first node equal to each node, and for each head of a sub-plan the nodes that have it.
    let mut firsts: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    let mut candidates: HashMap<(Arc<str>, Vec<NodeId>, u64), Vec<NodeId>> = HashMap::new();
    for id in plan.ids() {
        let node = &mut plan.nodes[id.index()];
        node.nested = node
            .nested
            .iter()
            .map(|inner| share_common(inner, catalogue))
            .collect::<Result<Vec<_>>>()?;
        let inputs: Vec<NodeId> =
            node.inputs.iter().filter_map(|input| firsts.get(input.index()).copied()).collect();
        let head = (node.operator.clone(), inputs, fingerprint(node));
        let same_head = candidates.entry(head).or_default();
        let node = plan.node(id);
        let pure = !writes(node) && !is_volatile_node(node, catalogue.functions());
        let equal = |other: &&NodeId| {
            let other = plan.node(**other);
            other.params == node.params && other.nested == node.nested
        };
        let first = if pure { same_head.iter().find(equal).copied() } else { None };
        firsts.push(first.unwrap_or(id));
        if first.is_none() && pure {
            same_head.push(id);
        }
    }
    let mut shared = Vec::with_capacity(plan.nodes.len());
    for (id, node) in plan.ids().zip(&plan.nodes) {
        let materialises =
            matches!(catalogue.descriptor(&node.operator)?.role(node), Role::Sink(_));
        shared.push(if materialises { firsts[id.index()] } else { id });
    }
    let replace = |id: &mut NodeId| *id = shared.get(id.index()).copied().unwrap_or(*id);
    plan.nodes.iter_mut().flat_map(|node| &mut node.inputs).for_each(replace);
    replace(&mut plan.root);
    Ok(remove_unreachable(&plan))
}

/// A number that tells most nodes of one operator and input apart: comparing thousands of them with
/// each other takes long.
fn fingerprint(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in node.params.iter() {
        name.hash(&mut hasher);
        expressions(value, &mut |expr| expr.fingerprint().hash(&mut hasher));
    }
    hasher.finish()
}

/// Whether running it leaves something behind.
fn writes(node: &Node) -> bool {
    node.param("path").is_some() || node.nested.iter().any(|plan| plan.nodes.iter().any(writes))
}

fn is_volatile_node(node: &Node, functions: &dyn Functions) -> bool {
    let mut found = false;
    for (_, value) in node.params.iter() {
        expressions(value, &mut |expr| found |= is_volatile(expr, functions));
    }
    found
        || node
            .nested
            .iter()
            .any(|plan| plan.nodes.iter().any(|node| is_volatile_node(node, functions)))
}
