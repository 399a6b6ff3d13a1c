//! The descriptor of `executor` on every platform: a nested plan that each worker runs.

use tessera_plan::{
    Builder, Descriptor, Edge, Inputs, Locality, Node, Order, Parallelism, Plan, Role, Traits,
    Value,
};
use tessera_types::{Error, Result, Tuple};

use crate::{Lowering, Operator, SubOperator};

/// Runs its nested plan once per input tuple, or once for the empty tuple if it has no input, each
/// time on all workers of a platform. The output is the result of the nested plan, gathered at the
/// driver (Modularis, Table 2.2).
///
/// Without the platform that a plan names, a build can verify and explain the plan, but not run it.
#[derive(Debug, Clone, Default)]
pub struct Executor {
    /// Platforms whose workers share one memory, so that a leaf of the plan reads all of its input.
    pub(crate) shared_memory: Vec<&'static str>,
}

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

    /// The parameter edge: an input tuple (the empty one without an input), parallelism `many`, and
    /// locality `all` if the workers share memory.
    fn nested_input(&self, node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        let platform = match node.param("platform") {
            Some(Value::Name(name)) => name,
            _ => return Err(Error::semantic("parameter platform must be a name, such as local")),
        };
        let locality = if self.shared_memory.contains(&&**platform) {
            Locality::All
        } else {
            Locality::Worker
        };
        let traits = Traits { parallelism: Parallelism::Many, locality, ..Traits::DRIVER };
        let tuple = if node.inputs.is_empty() { Tuple::empty() } else { inputs[0].tuple.clone() };
        Ok(Edge { tuple, traits, order: Order::Source })
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let result = inputs
            .nested
            .first()
            .ok_or_else(|| Error::internal("an executor has no nested plan"))?;
        if result.traits.parallelism == Parallelism::Many {
            return Err(Error::semantic(format!(
                "the result of its nested plan ({}) has parallelism many where one is needed; insert a merge",
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

    fn is_platform_specific(&self) -> bool {
        true
    }
}

/// Returns the executor alone as a plan, which a platform sends to its other processes.
///
/// # Errors
/// The executor belongs to another platform, or has an input, which cannot be sent.
pub fn plan_to_send(node: &Node, platform: &'static str) -> Result<Plan> {
    node.params.choice("platform", &[platform]).map_err(|_| {
        Error::unsupported(format!(
            "unsupported platform: this executor runs plans of platform {platform} only"
        ))
    })?;
    if !node.inputs.is_empty() {
        return Err(Error::unsupported(format!(
            "platform {platform} does not support an executor with an input; use values in its plan"
        )));
    }
    let mut alone = Builder::new(Tuple::empty());
    let root = alone.push(node.clone());
    Ok(alone.finish(root))
}

impl SubOperator for Executor {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Err(Error::unsupported(
            "this build lacks the platform of this plan; it can explain the plan but not run it",
        ))
    }
}
