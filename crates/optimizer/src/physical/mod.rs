//! Physical optimization: passes that map a plan of sub-operators to a plan.
//!
//! Passes know a few sub-operators by name (`docs/reference/sub-operators.md`) and assume that any
//! other one needs all of its inputs. Crates can therefore add sub-operators without a change here.
//!
//! Every pass expects a valid plan and returns a valid plan with the same result type.

mod distribute;
mod filter_aggregates;
mod fuse;
mod key_filters;
mod merge;
mod provenance;
mod prune;
mod push;
mod share;
mod stage;
mod threshold;

use tessera_plan::rewrite::without_declared_types;
use tessera_plan::{OperatorCatalog, Plan, Rule, Rules, VerifiedPlan};
use tessera_types::Result;

use stage::Stage;

pub use distribute::{DistributedPlan, distribute, run_by_workers, sort_by_position, unused_name};
pub use filter_aggregates::filter_aggregates;
pub use fuse::fuse;
pub use key_filters::place_key_filters;
pub use merge::insert_merges;
pub use prune::prune_columns;
pub use push::push_filters;
pub use share::share_common;
pub use stage::check_after;
pub use threshold::push_thresholds;

/// Runs the platform-independent passes: [`fuse`], [`push_filters`], [`share_common`],
/// [`prune_columns`], [`fuse`] again for projections that have become redundant, [`share_common`]
/// again, [`filter_aggregates`] and [`push_thresholds`]. Sharing runs before pruning, which may
/// keep different fields in each copy, and after it, because pruning may remove the differences.
///
/// Only the passes in `rules` run. Passes that need edge types share one verification until a pass
/// changes the plan; otherwise plans are verified after each pass only in tests and debug builds.
///
/// # Errors
/// The plan is invalid.
pub fn optimize(plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
    let mut stage = Stage::new(without_declared_types(plan.clone()), catalog);
    stage.typed_pass("fuse", None, |plan, types| fuse::fuse_verified(plan, types, rules))?;
    if rules.has(Rule::PushIntoScans) || rules.has(Rule::TryInScans) {
        stage.pass("push_filters", |plan| push_filters(plan, catalog, rules))?;
    }
    if rules.has(Rule::ShareCommon) {
        stage.pass("share_common", |plan| share_common(plan, catalog))?;
    }
    if rules.has(Rule::PruneColumns) {
        let pruned = |plan: &Plan, types: &VerifiedPlan| prune::prune(plan, types, catalog);
        stage.typed_pass("prune_columns", None, pruned)?;
    }
    stage.typed_pass("fuse", None, |plan, types| fuse::fuse_verified(plan, types, rules))?;
    if rules.has(Rule::ShareCommon) {
        stage.pass("share_common", |plan| share_common(plan, catalog))?;
    }
    if rules.has(Rule::FilterAggregates) {
        stage.typed_pass("filter_aggregates", Some("reduce"), filter_aggregates::filtered)?;
    }
    if rules.has(Rule::PushThresholds) {
        let push = |plan: &Plan, types: &VerifiedPlan| Ok(threshold::pushed(plan, types, catalog));
        stage.typed_pass("push_thresholds", Some("top_k"), push)?;
    }
    Ok(stage.into_plan())
}
