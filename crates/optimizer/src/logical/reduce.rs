//! Removes groups that a join would discard. Where a grouped relation is joined on its keys with a
//! small relation, a semi join with the small relation first reduces the input of the grouping (the
//! "magic set" of a decorrelated subquery: Seshadri et al., Cost-Based Optimization for Magic,
//! 1996).
//!
//! The small relation then occurs twice in the query, with equal names; the pass `share_common`
//! lets both joins probe one hash table.

use std::collections::HashMap;

use tessera_plan::{Expr, Rule};
use tessera_types::Result;

use crate::logical::estimate::Estimates;
use crate::logical::order::order_joins;
use crate::logical::relation::{Aggregate, Join, Kind, Name, Relation, parameters};
use crate::logical::types::Types;

/// The minimum number of groups per tuple of the small relation: if predicates have removed some of
/// its keys, and if not. The second is larger because estimates of distinct values are too high for
/// sparse keys, and a whole table needs all groups.
const GROUPS_PER_TUPLE: f64 = 4.0;
const GROUPS_PER_TUPLE_WHOLE: f64 = 100.0;
/// Predicates have removed keys of a relation if at most this fraction of a key's values is left.
const SHARE_LEFT_MAX: f64 = 0.5;

/// Reduces the grouped inputs of joins where the estimated cost is lower.
pub(crate) fn reduce_groups(
    mut relation: Relation,
    types: Types<'_>,
    estimates: &Estimates,
) -> Result<Relation> {
    if !types.uses(Rule::ReduceGroups) {
        return Ok(relation);
    }
    if let Relation::Join(join) = &mut relation {
        let Join { kind, left, right, conditions, null_aware, correlated, .. } = &mut **join;
        let plain = !*correlated
            && !*null_aware
            && !conditions.iter().any(|condition| types.must_stay(condition));
        if plain && !matches!(kind, Kind::Full) {
            reduce((right, left), conditions, types, estimates)?;
        }
        if plain && *kind == Kind::Inner {
            reduce((left, right), conditions, types, estimates)?;
        }
    }
    for input in relation.inputs_mut() {
        let taken = std::mem::replace(input, Relation::placeholder());
        *input = reduce_groups(taken, types, estimates)?;
    }
    Ok(relation)
}

/// Reduces the aggregate in `grouped`, if there is one, to the groups that match `filter`.
fn reduce(
    (grouped, filter): (&mut Relation, &Relation),
    conditions: &[Expr],
    types: Types<'_>,
    estimates: &Estimates,
) -> Result<()> {
    // Check the shape before the estimates, which cost more: few joins have a grouping on a side.
    if groups(grouped, Vec::new()).is_none() || !is_deterministic(filter, types) {
        return Ok(());
    }
    let (known, all) = (estimates.profile(filter), estimates.profile(grouped).rows);
    if known.rows * GROUPS_PER_TUPLE > all {
        return Ok(());
    }
    let names = grouped.names();
    let Some((aggregate, keys)) = groups(grouped, names) else { return Ok(()) };
    // The small relation may have to be computed twice.
    if scanned(filter) > scanned(&aggregate.input) {
        return Ok(());
    }
    let mut matching = Vec::new();
    let mut left: f64 = 1.0;
    for condition in conditions {
        let Expr::Call { function, args } = condition else { continue };
        let ([Expr::Field(a), Expr::Field(b)], "eq") = (args.as_slice(), &**function) else {
            continue;
        };
        let (key, other) = match (keys.get(a), keys.get(b)) {
            (Some(key), None) => (key, b),
            (None, Some(key)) => (key, a),
            _ => continue,
        };
        left = left.min(known.share_left(other));
        matching.push(Expr::call("eq", vec![key.clone(), Expr::Field(other.clone())]));
    }
    if left > SHARE_LEFT_MAX && known.rows * GROUPS_PER_TUPLE_WHOLE > all {
        return Ok(());
    }
    if matching.is_empty() || matching.iter().any(|condition| types.must_stay(condition)) {
        return Ok(());
    }
    let semi = Join {
        kind: Kind::Semi,
        left: std::mem::replace(&mut aggregate.input, Relation::placeholder()),
        right: filter.clone(),
        conditions: matching,
        mark: None,
        null_aware: false,
        correlated: false,
    };
    aggregate.input = order_joins(Relation::Join(Box::new(semi)), types, estimates)?;
    Ok(())
}

/// The number of rows that the scans of a relation read.
pub(super) fn scanned(relation: &Relation) -> f64 {
    match relation {
        Relation::Scan { table, .. } => table.statistics.rows.unwrap_or_default(),
        other => other.inputs().into_iter().map(scanned).sum(),
    }
}

/// Returns the aggregate below maps and filters, and the expressions of its keys by their names
/// above, as far as these are in `names`.
fn groups(
    relation: &mut Relation,
    names: Vec<Name>,
) -> Option<(&mut Aggregate, HashMap<Name, Expr>)> {
    // Pairs of the name above and the name at this depth.
    let mut current: Vec<(Name, Name)> =
        names.into_iter().map(|name| (name.clone(), name)).collect();
    let mut at = relation;
    loop {
        match at {
            Relation::Filter { input, .. } => at = input,
            Relation::Map { input, exprs } => {
                current.retain_mut(|(_, below)| {
                    match exprs.iter().find(|(name, _)| name == below) {
                        Some((_, Expr::Field(field))) => {
                            *below = field.clone();
                            true
                        }
                        _ => false,
                    }
                });
                at = input;
            }
            Relation::Aggregate(aggregate) if aggregate.sets.is_none() => {
                let key = |(above, below): (Name, Name)| {
                    let (_, expr) = aggregate.keys.iter().find(|(name, _)| *name == below)?;
                    Some((above, expr.clone()))
                };
                let keys = current.into_iter().filter_map(key).collect();
                return Some((aggregate, keys));
            }
            _ => return None,
        }
    }
}

/// Whether computing the relation twice yields the same tuples, so that the reduced groups are
/// those that the join needs. Float aggregates depend on the order of their input, limits on the
/// order of arrival.
fn is_deterministic(relation: &Relation, types: Types<'_>) -> bool {
    let simple = match relation {
        Relation::Scan { .. }
        | Relation::Values { .. }
        | Relation::Filter { .. }
        | Relation::Map { .. } => true,
        Relation::Join(join) => !join.correlated,
        _ => false,
    };
    // No join here binds parameters, so each node is checked by itself. Right inputs are checked
    // first: chains of joins grow to the left, and each join of a chain checks all joins below it.
    let is_fixed = |expr: &Expr| parameters(expr).is_empty() && !types.volatile(expr);
    simple
        && relation.inputs().into_iter().rev().all(|input| is_deterministic(input, types))
        && relation.exprs().into_iter().all(is_fixed)
}
