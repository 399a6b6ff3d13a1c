//! Merges where many instances meet one.

use std::collections::HashMap;

use tessera_plan::catalogue::{Catalogue, Role};
use tessera_plan::edge::{Edge, Order, Parallelism, Traits};
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::rewrite::{map_nodes, remove_unreachable};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::verify_node;
use tessera_types::{Error, Result};

use super::stage::check_after;

/// Puts a merge wherever the rules for parallelism want one stream and there are many: the sides of
/// a stream that exists once, inputs of which only some exist once, and the plan's result. `start`
/// is what the leaves of the plan see: platforms call this on the plan that their executor runs.
///
/// # Errors
/// The plan does not verify for another reason: as of [`tessera_plan::verify()`], with the node's
/// position in `plan`.
pub fn insert_merges(plan: &Plan, catalogue: &Catalogue, start: Traits) -> Result<Plan> {
    insert_merges_with_edges(plan, catalogue, start).map(|(plan, _)| plan)
}

/// As [`insert_merges`], with the edges of the plan that it gives.
pub(super) fn insert_merges_with_edges(
    plan: &Plan,
    catalogue: &Catalogue,
    start: Traits,
) -> Result<(Plan, Vec<Edge>)> {
    // Every node below is read by another one then, so that those of the result are those of
    // `edges`.
    let plan = &remove_unreachable(plan);
    let mut edges: Vec<Edge> = Vec::new();
    let mut merged: HashMap<NodeId, NodeId> = HashMap::new();
    let mut inserter =
        |out: &mut Builder, mut node: Node, edges: &mut Vec<Edge>| -> Result<NodeId> {
            let role = catalogue.descriptor(&node.operator)?.role(&node);
            let parallelism =
                |input: &NodeId| edges.get(input.index()).map(|edge| edge.traits.parallelism);
            let of: Vec<_> = node.inputs.iter().map(parallelism).collect();
            let one =
                |position: usize| of.get(position).copied().flatten() == Some(Parallelism::One);
            let to_merge = match role {
                // The stream decides; its sides follow.
                Role::Stream(input) | Role::Sink(input) => one(input),
                Role::Source => (0..of.len()).any(one),
                Role::Union => false,
            };
            if to_merge {
                for (position, input) in node.inputs.iter_mut().enumerate() {
                    if of[position] == Some(Parallelism::Many) {
                        *input = merge(out, *input, catalogue, start, edges, &mut merged)?;
                    }
                }
            }
            add(out, node, catalogue, start, edges)
        };
    let plan = map_nodes(plan, &mut |out, id, node| {
        let operator = node.operator.clone();
        inserter(out, node, &mut edges)
            .map_err(|error| error.context(format!("sub-operator {operator} (%{})", id.0)))
    })?;
    debug_assert_eq!(plan.nodes.len(), edges.len());
    let root =
        edges.get(plan.root.index()).ok_or_else(|| Error::internal("a plan without its result"))?;
    let plan = match root.traits.parallelism {
        Parallelism::One => plan,
        Parallelism::Many => {
            let (mut out, root) = (Builder::new(plan.parameters.clone()), plan.root);
            out.append(plan);
            let root = merge(&mut out, root, catalogue, start, &mut edges, &mut HashMap::new())?;
            out.finish(root)
        }
    };
    check_after("insert_merges", &plan, catalogue, start)?;
    Ok((plan, edges))
}

fn add(
    out: &mut Builder,
    node: Node,
    catalogue: &Catalogue,
    start: Traits,
    edges: &mut Vec<Edge>,
) -> Result<NodeId> {
    let (edge, _) = verify_node(&node, out.parameters(), edges.len(), edges, catalogue, start, 0)?;
    let before =
        |input: &NodeId| Some((out.nodes().get(input.index())?, edges.get(input.index())?));
    let (producers, produced): (Vec<_>, Vec<_>) = node.inputs.iter().filter_map(before).unzip();
    catalogue.descriptor(&node.operator)?.check_producers(&node, &producers, &produced)?;
    edges.push(edge);
    Ok(out.push(node))
}

fn merge(
    out: &mut Builder,
    input: NodeId,
    catalogue: &Catalogue,
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
    let id = add(out, node, catalogue, start, edges)
        .map_err(|error| error.context(format!("a merge of %{}", input.0)))?;
    merged.insert(input, id);
    Ok(id)
}
