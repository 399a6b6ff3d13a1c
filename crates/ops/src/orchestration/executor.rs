//! `executor`, as every platform means it: a nested plan that each worker runs.

use tessera_plan::{
    Builder, Descriptor, Edge, Inputs, Locality, Node, Order, Parallelism, Plan, Role, Traits, Value,
};
use tessera_types::{Error, Result, Tuple};

use crate::operator::{Lowering, Operator, SubOperator};

/// Platforms whose workers share one memory: their leaves see everything.
const SHARED_MEMORY: [&str; 1] = ["local"];

/// Runs its nested plan once per input tuple (once, for the empty tuple, without an input), each time on all workers of
/// a platform; the output is what the nested plan yields, gathered at the driver (Modularis, Table 2.2).
///
/// By itself, in a build without the platform a plan names, it can be verified and explained, not run.
#[derive(Debug, Clone, Copy)]
pub struct Executor;

impl Descriptor for Executor {
    crate::describe!("executor", "Runs its nested plan on the workers of a platform.", ["platform"], 0, 1);

    fn nested(&self) -> usize {
        1
    }

    /// A tuple of the input (the empty one without an input), many workers, and locality `all` where they share a memory.
    fn nested_input(&self, node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        let platform = match node.param("platform") {
            Some(Value::Name(name)) => name,
            _ => return Err(Error::semantic("parameter platform must be a name, such as local")),
        };
        let locality = if SHARED_MEMORY.contains(&&**platform) { Locality::All } else { Locality::Worker };
        let traits = Traits { parallelism: Parallelism::Many, locality, ..Traits::DRIVER };
        let tuple = if node.inputs.is_empty() { Tuple::empty() } else { inputs[0].tuple.clone() };
        Ok(Edge { tuple, traits, order: Order::Source })
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let result = inputs.nested.first().ok_or_else(|| Error::internal("an executor without a plan"))?;
        if result.traits.parallelism == Parallelism::Many {
            return Err(Error::semantic(format!(
                "the result of its nested plan ({}) has parallelism many where one is wanted; insert a merge",
                result.tuple
            )));
        }
        Ok(Edge { tuple: result.tuple.clone(), traits: Traits::DRIVER, order: result.order.clone() })
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
    node.params
        .choice("platform", &[platform])
        .map_err(|_| Error::unsupported(format!("this executor runs plans of platform {platform} only")))?;
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
        Err(Error::unsupported("the platform is not in this build: its plans can be explained, not run"))
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::Params;

    use super::*;
    use crate::testing::{TestPlan, batch, names};

    fn on(plan: &mut TestPlan, platform: &str, nested: Plan) -> Result<Edge> {
        let params = Params::new().with("platform", Value::name(platform));
        let root = plan.add_nested("executor", &[], params, nested);
        plan.verify(root)
    }

    fn nested(plan: &TestPlan, operators: &[(&str, Params)]) -> Plan {
        let mut builder = Builder::new(Tuple::empty());
        let mut root = builder.add("given", &[], plan.given(batch("<a: int64>", "1|2")));
        for (operator, params) in operators {
            root = builder.add(operator, &[root], params.clone());
        }
        builder.finish(root)
    }

    #[test]
    fn the_result_of_many_workers_is_merged() {
        let mut plan = TestPlan::new();
        let inner = nested(&plan, &[]);
        let message = on(&mut plan, "local", inner).unwrap_err().to_string();
        assert!(message.contains("insert a merge"), "{message}");
        let mut plan = TestPlan::new();
        let inner = nested(&plan, &[("merge", Params::new())]);
        assert_eq!(on(&mut plan, "local", inner).unwrap().traits, Traits::DRIVER);
    }

    #[test]
    fn workers_that_share_nothing_need_an_exchange() {
        let limit = ("limit", Params::new().with("limit", 1));
        let exchange = ("exchange", Params::new().with("keys", names(&["a"])));
        let mut plan = TestPlan::new();
        let inner = nested(&plan, std::slice::from_ref(&limit));
        assert!(on(&mut plan, "local", inner).is_ok());
        let mut plan = TestPlan::new();
        let inner = nested(&plan, std::slice::from_ref(&limit));
        let message = on(&mut plan, "mpi", inner).unwrap_err().to_string();
        assert!(message.contains("insert an exchange"), "{message}");
        let mut plan = TestPlan::new();
        let inner = nested(&plan, &[exchange, limit]);
        assert!(on(&mut plan, "mpi", inner).is_ok());
    }
}
