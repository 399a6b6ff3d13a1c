//! The optimizer: from the relations of a query to a plan of sub-operators, and every rewrite on
//! the way.
//!
//! This list is the order of all steps. Each rewrite has an entry in [`tessera_plan::rule`], with
//! its condition.
//!
//! Expressions are simplified ([`expression`]) while they are bound, and when their predicates
//! move.
//!
//! 1. `logical::decorrelate` turns subqueries into joins, so that the others see joins only.
//! 2. `logical::distinct` turns aggregates of distinct values into two groupings. Predicates can
//!    then move below both.
//! 3. `logical::push` moves predicates to the tables that they speak of, so that estimates count
//!    what is left of these.
//! 4. `logical::order` orders joins by estimated cost.
//! 5. `logical::reduce` groups before a join where that leaves fewer tuples: it must know the order
//!    of joins.
//! 6. `lower` makes sub-operators.
//! 7. [`physical::optimise`] rewrites the plan; its documentation has its own order.
//! 8. A store that can filter takes predicates (`storage/objects`), after they have reached the
//!    scans.
//! 9. The platform's pass brings executors, exchanges and merges: everything before is the same on
//!    all platforms.
//!
//! Steps 1 to 6 are [`plan`]; the session calls 7 to 9.

pub mod expression;
pub mod logical;
mod lower;
pub mod physical;
mod planning;
pub mod sample;
pub mod table;

use tessera_plan::Plan;
use tessera_types::{Result, Tuple};

use crate::logical::estimate::Estimates;
use crate::logical::fields::Fields;
use crate::logical::order::order_joins;
use crate::logical::push::push_down;
use crate::logical::raise::Types;
use crate::logical::reduce::reduce_groups;
use crate::logical::relation::{Name, Relation};
use crate::lower::Lowering;

/// The platform-independent plan of a relation, and the tuple of its result: `output` has the name
/// of each of its fields, and the field of the relation that it shows. Joins are ordered by cost
/// with `join_order`, else as written.
///
/// # Errors
/// An expression has no type; a table's sample cannot be read; planning was cancelled.
pub fn plan(
    relation: Relation,
    output: &[(Name, Name)],
    mut fields: Fields<'_>,
    join_order: bool,
) -> Result<(Plan, Tuple)> {
    let relation = fields.decorrelate(relation);
    let read: Vec<Name> = output.iter().map(|(_, field)| field.clone()).collect();
    let relation = fields.group_distinct(relation, &read);
    let (library, rules) = (fields.library, fields.rules);
    let atoms = fields.into_atoms();
    let types = Types { library, atoms: &atoms, rules };
    let mut relation = push_down(relation, types);
    let estimates = Estimates::default();
    if join_order {
        relation = order_joins(relation, types, &estimates)?;
        relation = reduce_groups(relation, types, &estimates)?;
    }
    Lowering::new(types, &estimates).query(&relation, output)
}
