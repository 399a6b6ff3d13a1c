//! The pass of the platform: the whole plan goes into the executor.

use tessera_plan::{
    Builder, Catalogue, Locality, NodeId, Parallelism, Params, Plan, Traits, Value, verify_in,
};
use tessera_types::{Result, Tuple};

/// What a leaf sees inside the executor: many workers with one memory.
const INSIDE: Traits = Traits { parallelism: Parallelism::Many, locality: Locality::All, ..Traits::DRIVER };

/// Wraps a plan in the executor; its result is merged where each worker would have a part of it.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn wrap(plan: &Plan, catalogue: &Catalogue) -> Result<Plan> {
    let verified = verify_in(plan, catalogue, INSIDE)?;
    let mut inner = Builder::new(Tuple::empty());
    let mut root: NodeId = inner.append(plan.clone());
    if verified.edges[plan.root.index()].traits.parallelism == Parallelism::Many {
        root = inner.add("merge", &[root], Params::new());
    }
    let mut outer = Builder::new(Tuple::empty());
    let params = Params::new().with("platform", Value::name(crate::NAME));
    let executor = outer.add_nested("executor", &[], params, vec![inner.finish(root)]);
    Ok(outer.finish(executor))
}
