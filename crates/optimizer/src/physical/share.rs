//! Sharing of equal sub-plans.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tessera_context::interrupt;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::operator_catalog::{Functions, OperatorCatalog, Role};
use tessera_plan::rewrite::{expressions, is_volatile, remove_unreachable};
use tessera_plan::value::Value;
use tessera_types::Result;

/// Lets equal sub-plans share their state: of several pipeline breakers with equal parameters and
/// equal inputs, only one does the work. Streams are not shared, since that would materialize them.
///
/// # Errors
/// A sub-operator is not in the catalog.
pub fn share_common(plan: &Plan, catalog: &OperatorCatalog) -> Result<Plan> {
    let mut plan = plan.clone();
    // The first node equal to each node, and the distinct nodes per operator, inputs and hash.
    let mut firsts: Vec<NodeId> = Vec::with_capacity(plan.nodes.len());
    let mut candidates: HashMap<(Arc<str>, Vec<NodeId>, u64), Vec<NodeId>> = HashMap::new();
    for id in plan.ids() {
        let node = &mut plan.nodes[id.index()];
        node.nested = node
            .nested
            .iter()
            .map(|inner| share_common(inner, catalog))
            .collect::<Result<Vec<_>>>()?;
        let inputs: Vec<NodeId> =
            node.inputs.iter().filter_map(|input| firsts.get(input.index()).copied()).collect();
        interrupt::point();
        let head = (node.operator.clone(), inputs, fingerprint(node));
        let same_head = candidates.entry(head).or_default();
        let node = plan.node(id);
        let pure = !writes(node) && !is_volatile_node(node, catalog.functions());
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
    let mut only_reader = vec![false; plan.nodes.len()];
    for node in &plan.nodes {
        if catalog.descriptor(&node.operator)?.is_only_reader() {
            node.inputs.iter().for_each(|input| only_reader[input.index()] = true);
        }
    }
    let mut shared = Vec::with_capacity(plan.nodes.len());
    for (id, node) in plan.ids().zip(&plan.nodes) {
        let materializes = matches!(catalog.descriptor(&node.operator)?.role(node), Role::Sink(_));
        // Window functions depend on the morsels of their sort, which a second reader would change.
        let is_alone = only_reader[id.index()];
        shared.push(if materializes && !is_alone { firsts[id.index()] } else { id });
    }
    let replace = |id: &mut NodeId| *id = shared.get(id.index()).copied().unwrap_or(*id);
    plan.nodes.iter_mut().flat_map(|node| &mut node.inputs).for_each(replace);
    replace(&mut plan.root);
    Ok(remove_unreachable(&plan))
}

/// Returns a hash of a node's parameters and nested plans. It avoids comparing thousands of nodes
/// of one operator and input with each other.
fn fingerprint(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_node(node, &mut hasher);
    hasher.finish()
}

fn hash_node(node: &Node, hasher: &mut DefaultHasher) {
    for (name, value) in node.params.iter() {
        name.hash(hasher);
        hash_value(value, hasher);
    }
    for inner in node.nested.iter().flat_map(|plan| &plan.nodes) {
        (&inner.operator, &inner.inputs).hash(hasher);
        hash_node(inner, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Boolean(value) => value.hash(hasher),
        Value::Integer(value) => value.hash(hasher),
        Value::Name(text) | Value::String(text) => text.hash(hasher),
        Value::Tuple(tuple) => tuple.hash(hasher),
        Value::Expr(expr) => expr.fingerprint().hash(hasher),
        Value::List(values) => values.iter().for_each(|value| hash_value(value, hasher)),
        Value::Record(entries) => entries.iter().for_each(|(name, value)| {
            name.hash(hasher);
            hash_value(value, hasher);
        }),
    }
}

/// Whether the node has side effects.
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
