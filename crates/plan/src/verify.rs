//! The verifier: gives every edge its type and traits, or says what is wrong where.
//!
//! What a single sub-operator asks of its inputs and parameters is its [`Descriptor`]'s business.
//! What holds for all of them is here: names, counts and order of nodes; tuples without doubled
//! fields; the rules for traits.
//!
//! - A plan's result is one stream of chunks that sees everything, on the device the plan started
//!   on.
//! - Only the trait converters (`router`, `mem_move`, `device_cross`, `unpack`) take packets.
//! - All inputs of a node agree on device and granularity. Those of a source (a zip, a merge join)
//!   agree on locality and parallelism too; of a union's output each worker sees a part only, if
//!   that is so of one of the inputs. A *side* of a streaming node sees everything (locality all),
//!   and is one, shared by the instances of the stream, or as many as they.

use tessera_types::{Code, Error, Result, Tuple};

use crate::PLAN_DEPTH_MAX;
use crate::catalogue::{Catalogue, Descriptor, Inputs, Role};
use crate::edge::{Edge, Granularity, Locality, Parallelism, Traits};
use crate::graph::{Node, Plan};

/// A plan whose every edge has been checked.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The traits the plan starts with.
    pub start: Traits,
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
    let verified = verify_at(plan, catalogue, Traits::DRIVER, 0)?;
    check_result(plan, &verified)?;
    Ok(verified)
}

/// Checks `plan` as a nested plan whose leaves start with these traits, without a word on the
/// traits of its result; passes ask it what an executor would see.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(plan: &Plan, catalogue: &Catalogue, start: Traits) -> Result<Verified> {
    verify_at(plan, catalogue, start, 0)
}

fn verify_at(plan: &Plan, catalogue: &Catalogue, start: Traits, depth: usize) -> Result<Verified> {
    if depth > PLAN_DEPTH_MAX {
        let message =
            format!("plans are nested deeper than {PLAN_DEPTH_MAX} levels (PLAN_DEPTH_MAX)");
        return Err(Error::new(Code::Limit, message));
    }
    plan.parameters.check()?;
    let mut verified = Verified { start, edges: Vec::new(), nested: Vec::new() };
    for (position, node) in plan.nodes.iter().enumerate() {
        let (edge, nested) =
            verify_node(node, &plan.parameters, position, &verified.edges, catalogue, start, depth)
                .and_then(|made| {
                    check_producers(plan, node, &verified.edges, catalogue).map(|()| made)
                })
                .map_err(|error| {
                    error.context(format!("sub-operator {} (%{position})", node.operator))
                })?;
        verified.edges.push(edge);
        verified.nested.push(nested);
    }
    if verified.edges.get(plan.root.index()).is_none() {
        let message =
            format!("the plan returns %{}, but has {} nodes", plan.root.0, plan.nodes.len());
        return Err(Error::semantic(message));
    }
    Ok(verified)
}

fn check_producers(plan: &Plan, node: &Node, edges: &[Edge], catalogue: &Catalogue) -> Result<()> {
    let before =
        |input: &crate::NodeId| Some((plan.nodes.get(input.index())?, edges.get(input.index())?));
    let (producers, edges): (Vec<&Node>, Vec<&Edge>) =
        node.inputs.iter().filter_map(before).unzip();
    catalogue.descriptor(&node.operator)?.check_producers(node, &producers, &edges)
}

/// Checks one node whose inputs have these edges; `parameters` are those of the plan it stands in.
pub fn verify_node(
    node: &Node,
    parameters: &Tuple,
    position: usize,
    edges: &[Edge],
    catalogue: &Catalogue,
    start: Traits,
    depth: usize,
) -> Result<(Edge, Vec<Verified>)> {
    let descriptor = catalogue.descriptor(&node.operator)?;
    let (least, most) = descriptor.arity();
    if node.inputs.len() < least || node.inputs.len() > most {
        let wanted = match most {
            _ if least == most => format!("{least}"),
            usize::MAX => format!("{least} or more"),
            _ => format!("{least} to {most}"),
        };
        return Err(Error::semantic(format!("takes {wanted} inputs, has {}", node.inputs.len())));
    }
    if let Some((name, _)) =
        node.params.iter().find(|(name, _)| !descriptor.parameters().contains(&&***name))
    {
        let known = descriptor.parameters().join(", ");
        let known = if known.is_empty() { "none" } else { &known };
        return Err(Error::semantic(format!("has no parameter {name}; it takes {known}")));
    }
    if node.nested.len() != descriptor.nested() {
        let (wanted, found) = (descriptor.nested(), node.nested.len());
        return Err(Error::semantic(format!("takes {wanted} nested plans, has {found}")));
    }
    let mut inputs = Vec::with_capacity(node.inputs.len().max(1));
    for input in &node.inputs {
        match edges.get(input.index()) {
            Some(edge) if input.index() < position => inputs.push(edge.clone()),
            _ => {
                return Err(Error::semantic(format!(
                    "reads %{}, which does not stand before it",
                    input.0
                )));
            }
        }
    }
    check_inputs(node, &**descriptor, &inputs)?;
    if inputs.is_empty() {
        // A leaf starts with the traits of the plan it stands in.
        inputs.push(Edge { tuple: parameters.clone(), traits: start, order: crate::Order::Source });
    }
    let mut nested = Vec::new();
    let mut results = Vec::new();
    for (index, inner) in node.nested.iter().enumerate() {
        let given = descriptor.nested_input(node, &inputs, index)?;
        if inner.parameters != given.tuple {
            return Err(Error::semantic(format!(
                "hands {} to its nested plan, which declares {}",
                given.tuple, inner.parameters
            )));
        }
        let verified = verify_at(inner, catalogue, given.traits, depth + 1)?;
        check_result(inner, &verified)?;
        results.extend(verified.edges.get(inner.root.index()).cloned());
        nested.push(verified);
    }
    let functions = catalogue.functions();
    let inputs = Inputs { edges: &inputs, nested: &results, parameters, functions };
    let edge = descriptor.derive(node, &inputs)?;
    edge.tuple.check()?;
    match &node.expected {
        Some(expected) if *expected != edge.tuple => {
            let difference = difference(expected, &edge.tuple);
            let message =
                format!("is declared to yield {expected} but yields {}: {difference}", edge.tuple);
            Err(Error::semantic(message))
        }
        _ => Ok((edge, nested)),
    }
}

/// The first field in which two tuples differ.
fn difference(expected: &Tuple, found: &Tuple) -> String {
    for (position, (expected, found)) in expected.fields().iter().zip(found.fields()).enumerate() {
        if expected != found {
            return format!("field {position} is declared `{expected}` and is `{found}`");
        }
    }
    format!("{} fields are declared, there are {}", expected.len(), found.len())
}

fn mismatch(
    what: &str,
    trait_name: &str,
    has: impl std::fmt::Display,
    wants: impl std::fmt::Display,
    insert: &str,
) -> Error {
    Error::semantic(format!(
        "{what} has {trait_name} {has} where {wants} is needed; insert {insert}"
    ))
}

/// The rule for a plan's result.
fn check_result(plan: &Plan, verified: &Verified) -> Result<()> {
    let Some(traits) = verified.edges.get(plan.root.index()).map(|edge| edge.traits) else {
        return Ok(());
    };
    let operator = plan.nodes.get(plan.root.index()).map_or("", |node| &node.operator);
    let what = format!("the result of the plan (%{}, {operator})", plan.root.0);
    let device = verified.start.device;
    if traits.granularity == Granularity::Packet {
        return Err(mismatch(
            &what,
            "granularity",
            traits.granularity,
            Granularity::Chunk,
            "an unpack",
        ));
    }
    if traits.device != device {
        return Err(mismatch(&what, "device", traits.device, device, "a device_cross"));
    }
    if traits.parallelism == Parallelism::Many {
        return Err(mismatch(
            &what,
            "parallelism",
            traits.parallelism,
            Parallelism::One,
            "a merge",
        ));
    }
    if traits.locality == Locality::Worker {
        return Err(mismatch(
            &what,
            "locality",
            traits.locality,
            Locality::All,
            "an exchange or a merge",
        ));
    }
    Ok(())
}

/// The rules for the traits of a node's inputs; the message names the converter that is missing.
fn check_inputs(node: &Node, descriptor: &dyn Descriptor, inputs: &[Edge]) -> Result<()> {
    for (position, edge) in inputs.iter().enumerate() {
        let what = format!("input {position} (%{})", node.inputs[position].0);
        match (edge.traits.granularity, descriptor.takes_packets()) {
            (Granularity::Packet, false) => {
                return Err(mismatch(
                    &what,
                    "granularity",
                    Granularity::Packet,
                    Granularity::Chunk,
                    "an unpack",
                ));
            }
            (Granularity::Chunk, true) => {
                return Err(mismatch(
                    &what,
                    "granularity",
                    Granularity::Chunk,
                    Granularity::Packet,
                    "a pack",
                ));
            }
            _ => {}
        }
    }
    let role = descriptor.role(node);
    let stream = match role {
        Role::Stream(input) | Role::Sink(input) if input < inputs.len() => Some(input),
        Role::Stream(input) | Role::Sink(input) => {
            let message = format!("streams its input {input}, but has {}", inputs.len());
            return Err(Error::semantic(message));
        }
        Role::Source | Role::Union => None,
    };
    let against = stream.unwrap_or(0);
    let Some(with) = inputs.get(against).map(|edge| edge.traits) else { return Ok(()) };
    for (position, edge) in inputs.iter().enumerate().filter(|(position, _)| *position != against) {
        let traits = edge.traits;
        let what = format!("input {position} (%{})", node.inputs[position].0);
        let wants = |value: &dyn std::fmt::Display| format!("{value}, as of input {against},");
        if traits.device != with.device {
            return Err(mismatch(
                &what,
                "device",
                traits.device,
                wants(&with.device),
                "a device_cross",
            ));
        }
        // The tuples of an input that exists once come out of one of the instances of a union.
        let parallelism_fits = role == Role::Union
            || traits.parallelism == with.parallelism
            || (stream.is_some() && traits.parallelism == Parallelism::One);
        if !parallelism_fits {
            let insert = match traits.parallelism {
                Parallelism::Many => "a merge",
                Parallelism::One => "a router, or put it under the same executor",
            };
            return Err(mismatch(
                &what,
                "parallelism",
                traits.parallelism,
                wants(&with.parallelism),
                insert,
            ));
        }
        let locality = if stream.is_some() { Locality::All } else { with.locality };
        if traits.locality != locality && role != Role::Union {
            let insert = match traits.locality {
                Locality::Worker => "an exchange",
                Locality::All => "an exchange after the other input",
            };
            return Err(mismatch(&what, "locality", traits.locality, locality, insert));
        }
    }
    Ok(())
}
