//! Rewrites of plans of sub-operators: plain functions plan → plan.
//!
//! They know a few names of the catalogue (`docs/sub-operators.md`) and treat every other
//! sub-operator as one that needs all of its inputs, so that a room can add sub-operators without
//! coming here.
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
mod stage;
mod threshold;
mod way;

use tessera_plan::rewrite::without_declared_types;
use tessera_plan::{Catalogue, Plan, Rule, Rules, Verified};
use tessera_types::Result;

use stage::Stage;

pub use distribute::{Distributed, distribute, in_order_of, run_by_workers, unused_name};
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
/// [`prune_columns`], [`fuse`] again for the projections that turned out to do nothing,
/// [`share_common`] again, [`filter_aggregates`] and [`push_thresholds`]. What is written twice is
/// shared before pruning, which may leave each copy other fields, and after it, which may have
/// dropped what told them apart.
///
/// Only what is among `rules`. Passes that ask for the types of edges share what the verifier says,
/// until one changes the plan; apart from that, plans are verified after each pass in tests and
/// debug builds only.
///
/// # Errors
/// The plan does not verify.
pub fn optimise(plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
    let mut stage = Stage::new(without_declared_types(plan.clone()), catalogue);
    stage.typed_pass("fuse", None, |plan, types| fuse::fuse_verified(plan, types, rules))?;
    if rules.has(Rule::PushIntoScans) || rules.has(Rule::TryInScans) {
        stage.pass("push_filters", |plan| push_filters(plan, catalogue, rules))?;
    }
    if rules.has(Rule::ShareCommon) {
        stage.pass("share_common", |plan| share_common(plan, catalogue))?;
    }
    if rules.has(Rule::PruneColumns) {
        stage.typed_pass("prune_columns", None, prune::prune)?;
    }
    stage.typed_pass("fuse", None, |plan, types| fuse::fuse_verified(plan, types, rules))?;
    if rules.has(Rule::ShareCommon) {
        stage.pass("share_common", |plan| share_common(plan, catalogue))?;
    }
    if rules.has(Rule::FilterAggregates) {
        stage.typed_pass("filter_aggregates", Some("reduce"), filter_aggregates::filtered)?;
    }
    if rules.has(Rule::PushThresholds) {
        let functions = catalogue.functions();
        let push = |plan: &Plan, types: &Verified| Ok(threshold::pushed(plan, types, functions));
        stage.typed_pass("push_thresholds", Some("top_k"), push)?;
    }
    Ok(stage.into_plan())
}
