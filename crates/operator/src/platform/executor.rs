//! `executor`, as every platform means it: a nested plan that each worker runs.

use tessera_plan::{
    Builder, Descriptor, Edge, Inputs, Locality, Node, Order, Parallelism, Plan, Role, Traits,
    Value,
};
use tessera_types::{Error, Result, Tuple};

use crate::{Lowering, Operator, SubOperator};

/// Platforms whose workers share one memory: their leaves see everything.
const SHARED_MEMORY: [&str; 1] = ["local"];

/// Runs its nested plan once per input tuple (once, for the empty tuple, without an input), each
/// time on all workers of a platform; the output is what the nested plan yields, gathered at the
/// driver (Modularis, Table 2.2).
///
/// By itself, in a build without the platform a plan names, it can be verified and explained, not
/// run.
#[derive(Debug, Clone, Copy)]
pub struct Executor;

impl Descriptor for Executor {
    crate::describe!(
        "executor",
        "Runs its nested plan on the workers of a platform.",
        ["platform"],
        0,
        1
    );

    fn nested(&self) -> usize {
        1
    }

    /// A tuple of the input (the empty one without an input), many workers, and locality `all`
    /// where they share a memory.
    fn nested_input(&self, node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        let platform = match node.param("platform") {
            Some(Value::Name(name)) => name,
            _ => return Err(Error::semantic("parameter platform must be a name, such as local")),
        };
        let locality =
            if SHARED_MEMORY.contains(&&**platform) { Locality::All } else { Locality::Worker };
        let traits = Traits { parallelism: Parallelism::Many, locality, ..Traits::DRIVER };
        let tuple = if node.inputs.is_empty() { Tuple::empty() } else { inputs[0].tuple.clone() };
        Ok(Edge { tuple, traits, order: Order::Source })
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let result =
            inputs.nested.first().ok_or_else(|| Error::internal("an executor without a plan"))?;
        if result.traits.parallelism == Parallelism::Many {
            return Err(Error::semantic(format!(
                "the result of its nested plan ({}) has parallelism many where one is wanted; insert a merge",
                result.tuple
            )));
        }
        Ok(Edge {
            tuple: result.tuple.clone(),
            traits: Traits::DRIVER,
            order: result.order.clone(),
        })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn of_platform(&self) -> bool {
        true
    }
}

/// The plan of an executor alone, as a platform sends it to its other processes.
///
/// # Errors
/// The executor is another platform's, or has an input, which cannot be sent.
pub fn to_send(node: &Node, platform: &'static str) -> Result<Plan> {
    node.params.choice("platform", &[platform]).map_err(|_| {
        Error::unsupported(format!("this executor runs plans of platform {platform} only"))
    })?;
    if !node.inputs.is_empty() {
        return Err(Error::unsupported(format!(
            "an executor with an input on platform {platform}; use values in its plan"
        )));
    }
    let mut alone = Builder::new(Tuple::empty());
    let root = alone.push(node.clone());
    Ok(alone.finish(root))
}

impl SubOperator for Executor {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Err(Error::unsupported(
            "the platform is not in this build: its plans can be explained, not run",
        ))
    }
}
