//! Groups that nobody asks for: where a grouped relation is joined on its keys with a relation of
//! few tuples, its input is first cut down by a semi join with that relation (the "magic set" of a
//! decorrelated subquery: Seshadri et al., Cost-Based Optimization for Magic, 1996).
//!
//! The small relation then stands twice in the query, with equal names; the plan's `share_common`
//! lets both joins probe one table.

use std::collections::HashMap;

use tessera_plan::{Expr, Rule};
use tessera_types::Result;

use crate::logical::estimate::Estimates;
use crate::logical::order::order_joins;
use crate::logical::raise::Types;
use crate::logical::relation::{Aggregate, Join, Kind, Name, Relation};

/// How many groups there must be for each tuple of the relation that asks for them: if that has
/// lost keys to predicates, and if it has not. Distinct values of sparse keys are estimated too
/// high, and a whole table asks for all groups.
const GROUPS_PER_TUPLE: f64 = 4.0;
const GROUPS_PER_TUPLE_WHOLE: f64 = 100.0;
/// A relation that has at most this share of a key's values left has lost some to predicates.
const SHARE_LEFT_MAX: f64 = 0.5;

/// The relation with its grouped inputs reduced where that is estimated to pay.
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
            && !conditions.iter().any(|condition| types.stays(condition));
        if plain && !matches!(kind, Kind::Full) {
            reduce((right, left), conditions, types, estimates)?;
        }
        if plain && *kind == Kind::Inner {
            reduce((left, right), conditions, types, estimates)?;
        }
    }
    for input in relation.inputs_mut() {
        let taken = std::mem::replace(input, Relation::nothing());
        *input = reduce_groups(taken, types, estimates)?;
    }
    Ok(relation)
}

/// Reduces the aggregate that `grouped` is made of, if it is, to the groups that `asking` asks for.
fn reduce(
    (grouped, asking): (&mut Relation, &Relation),
    conditions: &[Expr],
    types: Types<'_>,
    estimates: &Estimates,
) -> Result<()> {
    // Estimates last: few joins have a grouping on a side.
    let names = grouped.names();
    if groups(grouped, Vec::new()).is_none() || !same_each_time(asking, types) {
        return Ok(());
    }
    let (known, all) = (estimates.profile(asking), estimates.profile(grouped).rows);
    if known.rows * GROUPS_PER_TUPLE > all {
        return Ok(());
    }
    let Some((aggregate, keys)) = groups(grouped, names) else { return Ok(()) };
    // What asks may have to be computed twice.
    if scanned(asking) > scanned(&aggregate.input) {
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
    if matching.is_empty() || matching.iter().any(|condition| types.stays(condition)) {
        return Ok(());
    }
    let semi = Join {
        kind: Kind::Semi,
        left: std::mem::replace(&mut aggregate.input, Relation::nothing()),
        right: asking.clone(),
        conditions: matching,
        mark: None,
        null_aware: false,
        correlated: false,
    };
    aggregate.input = order_joins(Relation::Join(Box::new(semi)), types, estimates)?;
    Ok(())
}

/// The rows that a relation's scans read.
fn scanned(relation: &Relation) -> f64 {
    match relation {
        Relation::Scan { table, .. } => table.statistics.rows.unwrap_or_default(),
        other => other.inputs().into_iter().map(scanned).sum(),
    }
}

/// The aggregate below maps and filters, and what its keys are computed from by the name they have
/// above, among `names`.
fn groups(
    relation: &mut Relation,
    names: Vec<Name>,
) -> Option<(&mut Aggregate, HashMap<Name, Expr>)> {
    // The name above, and the one at this depth.
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

/// Whether computing the relation twice surely gives the same tuples: the groups asked for are then
/// the ones that are joined. Aggregates of floats hang on the order of their input, limits on who
/// comes first.
fn same_each_time(relation: &Relation, types: Types<'_>) -> bool {
    let simple = match relation {
        Relation::Scan { .. }
        | Relation::Values { .. }
        | Relation::Filter { .. }
        | Relation::Map { .. } => true,
        Relation::Join(join) => !join.correlated,
        _ => false,
    };
    simple
        && relation.parameters().is_empty()
        && !relation.exprs().into_iter().any(|expr| types.volatile(expr))
        && relation.inputs().into_iter().all(|input| same_each_time(input, types))
}
