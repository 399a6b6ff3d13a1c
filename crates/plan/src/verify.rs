//! The verifier: derives the type and traits of every edge, or reports what is wrong and where.
//!
//! A sub-operator's [`Descriptor`] checks its inputs and parameters. This module checks what holds
//! for all: names, the number and order of nodes, unique field names, and the rules for traits:
//!
//! - The result of a plan is one stream of chunks with locality all, on the device that the plan
//!   started on.
//! - Only the trait converters (`router`, `mem_move`, `device_cross`, `unpack`) take packets.
//! - All inputs of a node have the same device and granularity. Those of a source (a zip, a merge
//!   join) also have the same locality and parallelism. The output of a union has locality worker
//!   if one of its inputs has. A *side* of a streaming node has locality all; it exists once,
//!   shared by all instances of the stream, or once per instance.

use tessera_types::{Code, Error, Result, Tuple, suggest};

use crate::PLAN_DEPTH_MAX;
use crate::edge::{Edge, Granularity, Locality, Parallelism, Traits};
use crate::graph::{Node, Plan};
use crate::operator_catalog::{Descriptor, Inputs, OperatorCatalog, Role};

/// The result of verification: the derived edges of a plan.
#[derive(Debug, Clone)]
pub struct VerifiedPlan {
    /// The initial traits of the plan.
    pub start: Traits,
    /// The output edge of each node.
    pub edges: Vec<Edge>,
    /// The verified nested plans of each node.
    pub nested: Vec<Vec<VerifiedPlan>>,
}

/// Verifies a top-level plan: the driver runs it and receives its result.
///
/// # Errors
/// Reports the first invalid node by position and sub-operator, with the field and both types.
pub fn verify(plan: &Plan, catalog: &OperatorCatalog) -> Result<VerifiedPlan> {
    let verified = verify_at(plan, catalog, Traits::DRIVER, 0)?;
    check_result(plan, &verified)?;
    Ok(verified)
}

/// Verifies a nested plan with leaves of the traits `start`, without checking the traits of its
/// result. Passes use it to see the edges inside of an executor.
///
/// # Errors
/// See [`verify`].
pub fn verify_in(plan: &Plan, catalog: &OperatorCatalog, start: Traits) -> Result<VerifiedPlan> {
    verify_at(plan, catalog, start, 0)
}

fn verify_at(
    plan: &Plan,
    catalog: &OperatorCatalog,
    start: Traits,
    depth: usize,
) -> Result<VerifiedPlan> {
    if depth > PLAN_DEPTH_MAX {
        let message =
            format!("plans are nested deeper than {PLAN_DEPTH_MAX} levels (PLAN_DEPTH_MAX)");
        return Err(Error::new(Code::Limit, message));
    }
    plan.parameters.check()?;
    let mut verified = VerifiedPlan { start, edges: Vec::new(), nested: Vec::new() };
    for (position, node) in plan.nodes.iter().enumerate() {
        let (edge, nested) =
            verify_node(node, &plan.parameters, position, &verified.edges, catalog, start, depth)
                .and_then(|derived| {
                    check_producers(plan, node, &verified.edges, catalog).map(|()| derived)
                })
                .map_err(|error| {
                    error.context(format!("sub-operator {} (%{position})", node.operator))
                })?;
        verified.edges.push(edge);
        verified.nested.push(nested);
    }
    if verified.edges.get(plan.root.index()).is_none() {
        let message =
            format!("the plan returns %{}, but has only {} nodes", plan.root.0, plan.nodes.len());
        return Err(Error::semantic(message));
    }
    check_only_readers(plan, catalog)?;
    Ok(verified)
}

/// Checks that nodes which depend on the morsels of their producer are its only readers.
fn check_only_readers(plan: &Plan, catalog: &OperatorCatalog) -> Result<()> {
    let mut readers: Option<Vec<usize>> = None;
    for (position, node) in plan.nodes.iter().enumerate() {
        if !catalog.descriptor(&node.operator)?.is_only_reader() {
            continue;
        }
        let readers = readers.get_or_insert_with(|| {
            let reachable = crate::rewrite::reachable(plan);
            let is_read = |consumers: &Vec<crate::NodeId>| {
                consumers.iter().filter(|consumer| reachable[consumer.index()]).count()
            };
            plan.consumers().iter().map(is_read).collect()
        });
        if let Some(input) = node.inputs.iter().find(|input| readers[input.index()] > 1) {
            return Err(Error::semantic(format!(
                "sub-operator {} (%{position}) must be the only reader of %{}; copy its input",
                node.operator, input.0
            )));
        }
    }
    Ok(())
}

fn check_producers(
    plan: &Plan,
    node: &Node,
    edges: &[Edge],
    catalog: &OperatorCatalog,
) -> Result<()> {
    let before =
        |input: &crate::NodeId| Some((plan.nodes.get(input.index())?, edges.get(input.index())?));
    let (producers, edges): (Vec<&Node>, Vec<&Edge>) =
        node.inputs.iter().filter_map(before).unzip();
    catalog.descriptor(&node.operator)?.check_producers(node, &producers, &edges)
}

/// Verifies one node with these input edges; `parameters` are those of the plan that contains it.
pub fn verify_node(
    node: &Node,
    parameters: &Tuple,
    position: usize,
    edges: &[Edge],
    catalog: &OperatorCatalog,
    start: Traits,
    depth: usize,
) -> Result<(Edge, Vec<VerifiedPlan>)> {
    let descriptor = catalog.descriptor(&node.operator)?;
    let (least, most) = descriptor.arity();
    if node.inputs.len() < least || node.inputs.len() > most {
        let wanted = match most {
            _ if least == most => format!("{least}"),
            usize::MAX => format!("{least} or more"),
            _ => format!("{least} to {most}"),
        };
        return Err(Error::semantic(format!(
            "expected {wanted} inputs, found {}",
            node.inputs.len()
        )));
    }
    if let Some((name, _)) =
        node.params.iter().find(|(name, _)| !descriptor.parameters().contains(&&***name))
    {
        let hint = match descriptor.parameters() {
            [] => "; this sub-operator has no parameters".to_string(),
            known => suggest(name, "known parameters are", known),
        };
        return Err(Error::semantic(format!("unknown parameter '{name}'{hint}")));
    }
    if node.nested.len() != descriptor.nested() {
        let (wanted, found) = (descriptor.nested(), node.nested.len());
        return Err(Error::semantic(format!("expected {wanted} nested plans, found {found}")));
    }
    let mut inputs = Vec::with_capacity(node.inputs.len().max(1));
    for input in &node.inputs {
        match edges.get(input.index()) {
            Some(edge) if input.index() < position => inputs.push(edge.clone()),
            _ => {
                return Err(Error::semantic(format!(
                    "input %{} is not defined before this node",
                    input.0
                )));
            }
        }
    }
    check_inputs(node, &**descriptor, &inputs)?;
    if inputs.is_empty() {
        // A leaf starts with the initial traits of its plan.
        inputs.push(Edge { tuple: parameters.clone(), traits: start, order: crate::Order::Source });
    }
    let mut nested = Vec::new();
    let mut results = Vec::new();
    for (index, inner) in node.nested.iter().enumerate() {
        let passed = descriptor.nested_input(node, &inputs, index)?;
        if inner.parameters != passed.tuple {
            return Err(Error::semantic(format!(
                "passes {} to a nested plan that declares {}",
                passed.tuple, inner.parameters
            )));
        }
        let verified = verify_at(inner, catalog, passed.traits, depth + 1)?;
        check_result(inner, &verified)?;
        results.extend(verified.edges.get(inner.root.index()).cloned());
        nested.push(verified);
    }
    let functions = catalog.functions();
    let inputs = Inputs { edges: &inputs, nested: &results, parameters, functions };
    let edge = descriptor.derive(node, &inputs)?;
    edge.tuple.check()?;
    match &node.expected {
        Some(expected) if *expected != edge.tuple => {
            let difference = difference(expected, &edge.tuple);
            let message = format!(
                "declared type {expected} differs from derived type {}: {difference}",
                edge.tuple
            );
            Err(Error::semantic(message))
        }
        _ => Ok((edge, nested)),
    }
}

/// Describes the first field in which two tuples differ.
fn difference(expected: &Tuple, found: &Tuple) -> String {
    for (position, (expected, found)) in expected.fields().iter().zip(found.fields()).enumerate() {
        if expected != found {
            return format!("field {position} is declared as `{expected}` but is `{found}`");
        }
    }
    format!("{} fields declared, {} found", expected.len(), found.len())
}

fn mismatch(
    what: &str,
    trait_name: &str,
    has: impl std::fmt::Display,
    wants: impl std::fmt::Display,
    insert: &str,
) -> Error {
    Error::semantic(format!("{what} has {trait_name} {has}, expected {wants}; insert {insert}"))
}

/// Checks the traits of a plan's result.
fn check_result(plan: &Plan, verified: &VerifiedPlan) -> Result<()> {
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

/// Checks the traits of a node's inputs; the message names the missing converter.
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
            let message = format!("streams input {input}, but has only {} inputs", inputs.len());
            return Err(Error::semantic(message));
        }
        Role::Source | Role::Union => None,
    };
    let against = stream.unwrap_or(0);
    let Some(with) = inputs.get(against).map(|edge| edge.traits) else { return Ok(()) };
    for (position, edge) in inputs.iter().enumerate().filter(|(position, _)| *position != against) {
        let traits = edge.traits;
        let what = format!("input {position} (%{})", node.inputs[position].0);
        let wants = |value: &dyn std::fmt::Display| format!("{value} as in input {against}");
        if traits.device != with.device {
            return Err(mismatch(
                &what,
                "device",
                traits.device,
                wants(&with.device),
                "a device_cross",
            ));
        }
        // An input that exists once is emitted by one of the union's instances.
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
