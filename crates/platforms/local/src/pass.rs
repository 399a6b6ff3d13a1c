//! The pass of the platform: wraps the plan in the executor.

use tessera_optimizer::physical;
use tessera_plan::{
    Builder, Locality, OperatorCatalog, Parallelism, Params, Plan, Rule, Rules, Traits, Value,
};
use tessera_types::{Result, Tuple};

/// The traits of leaves inside the executor: many workers with shared memory.
const INSIDE: Traits =
    Traits { parallelism: Parallelism::Many, locality: Locality::All, ..Traits::DRIVER };

/// Wraps a plan in the executor. Inserts merges where all workers' streams must become one: for the
/// result, and where they are combined with a stream that exists once.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn wrap(plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
    let plan = match rules.has(Rule::KeyFilters) {
        true => physical::place_key_filters(plan, catalog, Traits::DRIVER)?,
        false => plan.clone(),
    };
    let inner = physical::insert_merges(&plan, catalog, INSIDE)?;
    let mut outer = Builder::new(Tuple::empty());
    let params = Params::new().with("platform", Value::name(crate::NAME));
    let executor = outer.add_nested("executor", &[], params, vec![inner]);
    Ok(outer.finish(executor))
}
