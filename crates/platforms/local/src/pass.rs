//! The pass of the platform: the whole plan goes into the executor.

use tessera_optimizer::physical;
use tessera_plan::{
    Builder, Catalogue, Locality, Parallelism, Params, Plan, Rule, Rules, Traits, Value,
};
use tessera_types::{Result, Tuple};

/// What a leaf sees inside the executor: many workers with one memory.
const INSIDE: Traits =
    Traits { parallelism: Parallelism::Many, locality: Locality::All, ..Traits::DRIVER };

/// Wraps a plan in the executor; streams that many workers have a part of are merged where one is
/// wanted: as the result, and where they meet a stream that exists once.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn wrap(plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
    let plan = match rules.has(Rule::KeyFilters) {
        true => physical::place_key_filters(plan, catalogue, Traits::DRIVER)?,
        false => plan.clone(),
    };
    let inner = physical::insert_merges(&plan, catalogue, INSIDE)?;
    let mut outer = Builder::new(Tuple::empty());
    let params = Params::new().with("platform", Value::name(crate::NAME));
    let executor = outer.add_nested("executor", &[], params, vec![inner]);
    Ok(outer.finish(executor))
}
