//! Rewrites of plans of sub-operators: plain functions plan → plan.
//!
//! They know a few names of the catalogue (`docs/sub-operators.md`) and treat every other sub-operator as one that needs
//! all of its inputs, so that a room can add sub-operators without coming here.
//!
//! All expect a plan that verifies, and give one that verifies to the same result type.

mod distribute;
mod filter_aggregates;
mod fuse;
mod key_filters;
mod merge;
mod prune;
mod push;
mod share;
mod threshold;
mod way;

use tessera_plan::rewrite::without_declared_types;
use tessera_plan::{Catalogue, Plan, Rule, Rules};
use tessera_types::Result;

pub use distribute::{Distributed, distribute, in_order_of, run_by_workers, unused_name};
pub use filter_aggregates::filter_aggregates;
pub use fuse::fuse;
pub use key_filters::place_key_filters;
pub use merge::insert_merges;
pub use prune::prune_columns;
pub use push::push_filters;
pub use share::share_common;
pub use threshold::push_thresholds;

/// Runs the platform-independent passes: [`fuse`], [`push_filters`], [`share_common`], [`prune_columns`], [`fuse`]
/// again for the projections that turned out to do nothing, [`share_common`] again, [`filter_aggregates`] and [`push_thresholds`]. What is written twice is shared
/// before pruning, which may leave each copy other fields, and after it, which may have dropped what told them apart.
///
/// Only what is among `rules`.
///
/// # Errors
/// The plan does not verify.
pub fn optimise(plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
    type Pass = fn(&Plan, &Catalogue) -> Result<Plan>;
    let when = |rule: Rule, pass: Pass, plan: Plan| {
        if rules.has(rule) { pass(&plan, catalogue) } else { Ok(plan) }
    };
    let plan = fuse(&without_declared_types(plan.clone()), catalogue, rules)?;
    let plan = match rules.has(Rule::PushIntoScans) || rules.has(Rule::TryInScans) {
        true => push_filters(&plan, catalogue, rules)?,
        false => plan,
    };
    let plan = when(Rule::ShareCommon, share_common, plan)?;
    let plan = when(Rule::PruneColumns, prune_columns, plan)?;
    let plan = fuse(&plan, catalogue, rules)?;
    let plan = when(Rule::ShareCommon, share_common, plan)?;
    let plan = when(Rule::FilterAggregates, filter_aggregates, plan)?;
    when(Rule::PushThresholds, push_thresholds, plan)
}
