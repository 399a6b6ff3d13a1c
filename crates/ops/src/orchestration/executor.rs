//! `executor`, as every platform means it: a nested plan that each worker runs.

use tessera_plan::{Edge, Inputs, Locality, Node, Order, Parallelism, Traits, Value};
use tessera_types::{Error, Result, Tuple};

/// Platforms whose workers share one memory: their leaves see everything.
const SHARED_MEMORY: [&str; 1] = ["local"];

/// The parameters every platform's executor takes.
pub const PARAMETERS: &[&str] = &["platform"];

/// What the nested plan starts with: a tuple of the input (the empty one without an input), many workers, and
/// locality `all` where they share a memory.
///
/// # Errors
/// The platform is not named.
pub fn nested_input(node: &Node, inputs: &[Edge]) -> Result<Edge> {
    let platform = match node.param("platform") {
        Some(Value::Name(name)) => name,
        _ => return Err(Error::semantic("parameter platform must be a name, such as local")),
    };
    let locality = if SHARED_MEMORY.contains(&&**platform) { Locality::All } else { Locality::Worker };
    let traits = Traits { parallelism: Parallelism::Many, locality, ..Traits::DRIVER };
    let tuple = if node.inputs.is_empty() { Tuple::empty() } else { inputs[0].tuple.clone() };
    Ok(Edge { tuple, traits, order: Order::Source })
}

/// The output: what the nested plan yields, gathered at the driver (Modularis, Table 2.2).
///
/// # Errors
/// The nested plan's result exists once per worker.
pub fn derive(inputs: &Inputs<'_>) -> Result<Edge> {
    let result = inputs.nested.first().ok_or_else(|| Error::internal("an executor without a plan"))?;
    if result.traits.parallelism == Parallelism::Many {
        return Err(Error::semantic(format!(
            "the result of its nested plan ({}) has parallelism many where one is wanted; insert a merge",
            result.tuple
        )));
    }
    Ok(Edge { tuple: result.tuple.clone(), traits: Traits::DRIVER, order: result.order.clone() })
}
