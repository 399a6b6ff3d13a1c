//! The verifier: gives every edge its type and traits, or says what is wrong where.

use tessera_types::{Code, Error, Result};

use crate::PLAN_DEPTH_MAX;
use crate::catalogue::{Catalogue, Inputs};
use crate::edge::{Edge, Traits};
use crate::graph::{Node, Plan};

/// A plan whose every edge has been checked.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The edge out of each node.
    pub edges: Vec<Edge>,
    /// The verified nested plans of each node.
    pub nested: Vec<Vec<Verified>>,
}

/// Checks `plan` as a whole plan: run by the driver, yielding to the driver.
///
/// # Errors
/// The first node that is wrong, named by position and sub-operator, with the field and both types.
pub fn verify(plan: &Plan, catalogue: &Catalogue) -> Result<Verified> {
    verify_at(plan, catalogue, Traits::DRIVER, 0)
}

/// Checks `plan` as a nested plan whose leaves start with these traits; passes ask it what an executor would see.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(plan: &Plan, catalogue: &Catalogue, start: Traits) -> Result<Verified> {
    verify_at(plan, catalogue, start, 0)
}

fn verify_at(plan: &Plan, catalogue: &Catalogue, start: Traits, depth: usize) -> Result<Verified> {
    if depth > PLAN_DEPTH_MAX {
        let message = format!("plans are nested deeper than {PLAN_DEPTH_MAX} levels (PLAN_DEPTH_MAX)");
        return Err(Error::new(Code::Limit, message));
    }
    plan.parameters.check()?;
    if plan.root.index() >= plan.nodes.len() {
        return Err(Error::semantic("the plan returns a node that does not exist"));
    }
    let mut verified = Verified { edges: Vec::new(), nested: Vec::new() };
    for (position, node) in plan.nodes.iter().enumerate() {
        let (edge, nested) = verify_node(plan, node, position, &verified.edges, catalogue, start, depth)
            .map_err(|error| error.context(format!("sub-operator {} (%{position})", node.operator)))?;
        verified.edges.push(edge);
        verified.nested.push(nested);
    }
    Ok(verified)
}

fn verify_node(
    plan: &Plan,
    node: &Node,
    position: usize,
    edges: &[Edge],
    catalogue: &Catalogue,
    start: Traits,
    depth: usize,
) -> Result<(Edge, Vec<Verified>)> {
    let descriptor = catalogue.descriptor(&node.operator)?;
    let (least, most) = descriptor.arity();
    if node.inputs.len() < least || node.inputs.len() > most {
        let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        return Err(Error::semantic(format!("takes {wanted} inputs, has {}", node.inputs.len())));
    }
    if let Some((name, _)) = node.params.iter().find(|(name, _)| !descriptor.parameters().contains(&&***name))
    {
        return Err(Error::semantic(format!(
            "has no parameter {name}; it takes {}",
            descriptor.parameters().join(", ")
        )));
    }
    if node.nested.len() != descriptor.nested() {
        let (wanted, found) = (descriptor.nested(), node.nested.len());
        return Err(Error::semantic(format!("takes {wanted} nested plans, has {found}")));
    }
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for input in &node.inputs {
        match edges.get(input.index()) {
            Some(edge) if input.index() < position => inputs.push(edge.clone()),
            _ => return Err(Error::semantic(format!("reads %{}, which does not stand before it", input.0))),
        }
    }
    if inputs.is_empty() {
        // A leaf starts with the traits of the plan it stands in.
        inputs.push(Edge { tuple: plan.parameters.clone(), traits: start, order: crate::Order::Source });
    }
    let visible = if node.inputs.is_empty() { &inputs[..1] } else { &inputs[..] };
    let mut nested = Vec::new();
    let mut results = Vec::new();
    for (index, inner) in node.nested.iter().enumerate() {
        let given = descriptor.nested_input(node, visible, index)?;
        if inner.parameters != given.tuple {
            return Err(Error::semantic(format!(
                "hands {} to its nested plan, which declares {}",
                given.tuple, inner.parameters
            )));
        }
        let verified = verify_at(inner, catalogue, given.traits, depth + 1)?;
        results.push(verified.edges[inner.root.index()].clone());
        nested.push(verified);
    }
    let functions = catalogue.functions();
    let edge = descriptor.derive(
        node,
        &Inputs { edges: visible, nested: &results, parameters: &plan.parameters, functions },
    )?;
    edge.tuple.check()?;
    match &node.expected {
        Some(expected) if *expected != edge.tuple => {
            Err(Error::semantic(format!("is declared to yield {expected} but yields {}", edge.tuple)))
        }
        _ => Ok((edge, nested)),
    }
}
