//! The optimizer: turns the relations of a query into a plan of sub-operators. It holds all
//! rewrites.
//!
//! The list below is the order of all steps. [`tessera_plan::rule`] has an entry for each rewrite,
//! with its condition.
//!
//! Expressions are simplified ([`expression`]) when they are bound and when predicates move.
//!
//! 1. `logical::decorrelate` turns subqueries into joins, so that later steps see joins only.
//! 2. `logical::distinct` splits DISTINCT aggregates into two groupings. Predicates can then move
//!    below both.
//! 3. `logical::push` moves predicates to their tables, so that estimates count filtered tables.
//! 4. `logical::partition_aggregates` turns aggregates over whole partitions into joins with
//!    groups. Both sides then have the same predicates.
//! 5. `logical::order` orders joins by estimated cost.
//! 6. `logical::reduce` reduces the input of groupings before a join. It needs the join order.
//! 7. `logical::early_groups` groups inputs of joins. It needs the join order.
//! 8. `logical::copies` lets equal parts share their tuples. It needs the final relations.
//! 9. `lower` creates sub-operators.
//! 10. [`physical::optimize`] rewrites the plan; its documentation lists its passes in order.
//! 11. A store that can filter takes predicates (`storage/objects`), once they are in the scans.
//! 12. The platform's pass inserts executors, exchanges and merges; all steps before are the same
//!     on every platform.
//!
//! Steps 1 to 9 are [`plan`]; the session calls 10 to 12.

#![forbid(unsafe_code)]

pub mod expression;
pub mod logical;
mod lower;
mod merging;
pub mod physical;
mod planning;
pub mod sample;
pub mod table;

use tessera_plan::Plan;
use tessera_types::{Result, Tuple};

use crate::logical::copies::share_copies;
use crate::logical::estimate::Estimates;
use crate::logical::fields::Fields;
use crate::logical::order::order_joins;
use crate::logical::push::push_down;
use crate::logical::reduce::reduce_groups;
use crate::logical::relation::{Name, Relation};
use crate::logical::types::Types;
use crate::lower::Lowering;

/// Returns the platform-independent plan of a relation and the type of its result. `output` lists
/// the name of each result field and the field of the relation that it shows. With `join_order`,
/// joins are ordered by cost, else they stay as written.
///
/// # Errors
/// An expression is ill-typed, or planning was cancelled.
pub fn plan(
    relation: Relation,
    output: &[(Name, Name)],
    mut fields: Fields<'_>,
    join_order: bool,
) -> Result<(Plan, Tuple)> {
    let relation = fields.decorrelate(relation);
    let read: Vec<Name> = output.iter().map(|(_, field)| field.clone()).collect();
    let relation = fields.group_distinct(relation, &read);
    let relation = push_down(relation, fields.types());
    let estimates = Estimates::default();
    let mut relation = fields.join_partition_aggregates(relation, &read, &estimates);
    if join_order {
        relation = order_joins(relation, fields.types(), &estimates)?;
        relation = reduce_groups(relation, fields.types(), &estimates)?;
        relation = fields.group_early(relation, &estimates);
    }
    let (library, rules) = (fields.library, fields.rules);
    let atoms = fields.into_atoms();
    let types = Types { library, atoms: &atoms, rules };
    let relation = share_copies(relation, types, &estimates);
    Lowering::new(types, &estimates).query(&relation, output)
}
