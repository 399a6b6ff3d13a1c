//! Insertion of merges.

use std::collections::HashMap;

use tessera_plan::edge::{Edge, Order, Parallelism, Traits};
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::operator_catalog::{OperatorCatalog, Role};
use tessera_plan::rewrite::{map_nodes, remove_unreachable};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::verify_node;
use tessera_types::{Error, Result};

use super::stage::check_after;

/// Inserts a merge wherever a single stream is required but several instances produce it: at sides
/// of a single stream, at inputs of which only some are single, and at the plan's result. `start`
/// are the traits of the plan's leaves; platforms call this on the plan inside of their executor.
///
/// # Errors
/// The plan is invalid for another reason: see [`tessera_plan::verify()`]. Positions refer to
/// `plan`.
pub fn insert_merges(plan: &Plan, catalog: &OperatorCatalog, start: Traits) -> Result<Plan> {
    insert_merges_with_edges(plan, catalog, start).map(|(plan, _)| plan)
}

/// Like [`insert_merges`]; also returns the edges of the new plan.
pub(super) fn insert_merges_with_edges(
    plan: &Plan,
    catalog: &OperatorCatalog,
    start: Traits,
) -> Result<(Plan, Vec<Edge>)> {
    // Without unreachable nodes, `edges` match the nodes of the new plan.
    let plan = &remove_unreachable(plan);
    let mut edges: Vec<Edge> = Vec::new();
    let mut merged: HashMap<NodeId, NodeId> = HashMap::new();
    let mut inserter =
        |out: &mut Builder, mut node: Node, edges: &mut Vec<Edge>| -> Result<NodeId> {
            let role = catalog.descriptor(&node.operator)?.role(&node);
            let parallelism =
                |input: &NodeId| edges.get(input.index()).map(|edge| edge.traits.parallelism);
            let of: Vec<_> = node.inputs.iter().map(parallelism).collect();
            let one =
                |position: usize| of.get(position).copied().flatten() == Some(Parallelism::One);
            let to_merge = match role {
                // The stream determines the parallelism of its sides.
                Role::Stream(input) | Role::Sink(input) => one(input),
                Role::Source => (0..of.len()).any(one),
                Role::Union => false,
            };
            if to_merge {
                for (position, input) in node.inputs.iter_mut().enumerate() {
                    if of[position] == Some(Parallelism::Many) {
                        *input = merge(out, *input, catalog, start, edges, &mut merged)?;
                    }
                }
            }
            add(out, node, catalog, start, edges)
        };
    let plan = map_nodes(plan, &mut |out, id, node| {
        let operator = node.operator.clone();
        inserter(out, node, &mut edges)
            .map_err(|error| error.context(format!("sub-operator {operator} (%{})", id.0)))
    })?;
    debug_assert_eq!(plan.nodes.len(), edges.len());
    let root =
        edges.get(plan.root.index()).ok_or_else(|| Error::internal("the plan has no result"))?;
    let plan = match root.traits.parallelism {
        Parallelism::One => plan,
        Parallelism::Many => {
            let (mut out, root) = (Builder::new(plan.parameters.clone()), plan.root);
            out.append(plan);
            let root = merge(&mut out, root, catalog, start, &mut edges, &mut HashMap::new())?;
            out.finish(root)
        }
    };
    check_after("insert_merges", &plan, catalog, start)?;
    Ok((plan, edges))
}

fn add(
    out: &mut Builder,
    node: Node,
    catalog: &OperatorCatalog,
    start: Traits,
    edges: &mut Vec<Edge>,
) -> Result<NodeId> {
    let (edge, _) = verify_node(&node, out.parameters(), edges.len(), edges, catalog, start, 0)?;
    let before =
        |input: &NodeId| Some((out.nodes().get(input.index())?, edges.get(input.index())?));
    let (producers, produced): (Vec<_>, Vec<_>) = node.inputs.iter().filter_map(before).unzip();
    catalog.descriptor(&node.operator)?.check_producers(&node, &producers, &produced)?;
    edges.push(edge);
    Ok(out.push(node))
}

fn merge(
    out: &mut Builder,
    input: NodeId,
    catalog: &OperatorCatalog,
    start: Traits,
    edges: &mut Vec<Edge>,
    merged: &mut HashMap<NodeId, NodeId>,
) -> Result<NodeId> {
    if let Some(id) = merged.get(&input) {
        return Ok(*id);
    }
    let mut params = Params::new();
    if let Some(Order::Sorted(keys)) = edges.get(input.index()).map(|edge| &edge.order) {
        params.set("keys", Value::List(keys.iter().map(|key| key.to_value()).collect()));
    }
    let node = Node::new("merge", vec![input], params, Vec::new());
    let id = add(out, node, catalog, start, edges)
        .map_err(|error| error.context(format!("merge of %{}", input.0)))?;
    merged.insert(input, id);
    Ok(id)
}
