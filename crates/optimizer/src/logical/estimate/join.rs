//! Cardinality estimates of joins.

use std::collections::HashMap;
use std::rc::Rc;

use tessera_plan::Expr;

use super::component::Component;
use super::key_range::share_in_range;
use super::{Column, FEW_ROWS, Profile, bounded};
use crate::logical::relation::{Kind, Name};

/// Returns the two sides of an equality.
fn equality(condition: &Expr) -> Option<(&Expr, &Expr)> {
    match condition {
        Expr::Call { function, args } if matches!(&**function, "eq" | "is_not_distinct") => {
            match args.as_slice() {
                [a, b] => Some((a, b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The number of values in which two fields can be equal. The minimum or maximum of a group equals
/// one of the group's tuples if their keys are equal too, which is the usual reason to compute it.
fn values(left: &Column, right: &Column) -> f64 {
    let all = left.domain.max(right.domain);
    left.group_rows.or(right.group_rows).map_or(all, |rows| rows.min(all)).max(1.0)
}

/// Estimates the fraction of all pairs that match these conditions, by distinct values.
fn pair_share(left: &Profile, right: &Profile, conditions: &[&Expr]) -> f64 {
    let mut other = 1.0;
    let mut sides: Vec<(Column, Column)> = Vec::new();
    let both = left.merged(right, left.rows.max(1.0) * right.rows.max(1.0));
    for condition in conditions {
        let on_left =
            |expr: &Expr| expr.fields().iter().any(|name| left.columns.contains_key(name));
        match equality(condition) {
            Some((a, b)) if on_left(a) && !on_left(b) => {
                sides.push((left.column_of(a), right.column_of(b)))
            }
            Some((a, b)) if on_left(b) && !on_left(a) => {
                sides.push((left.column_of(b), right.column_of(a)))
            }
            _ => other *= both.share(condition),
        }
    }
    let share = match sides.as_slice() {
        [] => 1.0,
        [(l, r)] => 1.0 / values(l, r),
        many => {
            let product: f64 = many.iter().map(|(l, r)| values(l, r)).product();
            let base =
                |side: &dyn Fn(&(Column, Column)) -> f64| many.iter().map(side).fold(1.0, f64::max);
            // A composite key has no more values than the smaller table has tuples.
            let smaller = base(&|(l, _)| l.base).min(base(&|(_, r)| r.base)).max(1.0);
            1.0 / product.min(smaller)
        }
    };
    share * other
}

/// The maximum number of pairs where tuples are compared with the minimum or maximum of their
/// group: each such value matches its own group.
fn extremes(left: &Profile, right: &Profile, conditions: &[&Expr]) -> f64 {
    let of = |expr: &Expr| {
        let Expr::Field(name) = expr else { return None };
        let side = [left, right].into_iter().find(|side| side.columns.contains_key(name))?;
        side.columns.get(name)?.group_rows.map(|_| side.rows)
    };
    let compared = conditions.iter().filter_map(|condition| equality(condition));
    compared.flat_map(|(a, b)| [of(a), of(b)]).flatten().fold(f64::INFINITY, f64::min)
}

/// The estimate of a join from samples.
struct SampledJoin<'c> {
    /// The sample of the join and the positions of the components that it replaces, if it has
    /// enough rows.
    component: Option<(usize, usize, Rc<Component>)>,
    /// The conditions that the samples do not cover.
    rest: Vec<&'c Expr>,
    /// The fraction of pairs that match.
    share: f64,
    /// The fraction of left tuples with a match, if the samples determine it.
    matched: Option<f64>,
}

/// Joins the two samples that most conditions compare, if the result is reliable.
fn sampled<'c>(
    left: &Profile,
    right: &Profile,
    kind: Kind,
    conditions: &[&'c Expr],
) -> Option<SampledJoin<'c>> {
    let fields = |condition: &'c Expr| -> Option<((usize, usize), (Name, Name))> {
        let Expr::Call { function, .. } = condition else { return None };
        let (Expr::Field(a), Expr::Field(b)) =
            equality(condition).filter(|_| &**function == "eq")?
        else {
            return None;
        };
        let sides = |a: &Name, b: &Name| Some((left.component_of(a)?, right.component_of(b)?));
        match sides(a, b) {
            Some(found) => Some((found, (a.clone(), b.clone()))),
            None => sides(b, a).map(|found| (found, (b.clone(), a.clone()))),
        }
    };
    let mut groups: HashMap<(usize, usize), Vec<(Name, Name)>> = HashMap::new();
    for condition in conditions {
        if let Some((sides, pair)) = fields(condition) {
            groups.entry(sides).or_default().push(pair);
        }
    }
    let sides =
        *groups.iter().max_by_key(|(sides, keys)| (keys.len(), std::cmp::Reverse(**sides)))?.0;
    let tried: Vec<&Expr> = conditions
        .iter()
        .copied()
        .filter(|c| fields(c).is_some_and(|(found, _)| found == sides))
        .collect();
    let rest =
        conditions.iter().copied().filter(|c| !tried.iter().any(|known| std::ptr::eq(*known, *c)));
    let (a, b) = (left.components.get(sides.0)?, right.components.get(sides.1)?);
    if a.rows == 0 || b.rows == 0 || !(a.whole || b.whole || a.uniform && b.uniform) {
        return None;
    }
    let keys = groups.get(&sides)?;
    let joined = a.joined(b, kind, keys)?;
    let draws = a.rows as f64 * b.rows as f64;
    // Tuples from the same place often have the same key: such a sample has as many independent
    // draws as it has keys.
    let (found, draws_found) = if (a.whole || a.uniform) && (b.whole || b.uniform) {
        (joined.pairs, draws)
    } else {
        let (part, whole, names) = match b.whole {
            true => (a, b, keys.iter().map(|(own, _)| own.clone()).collect::<Vec<_>>()),
            false => (b, a, keys.iter().map(|(_, other)| other.clone()).collect()),
        };
        (joined.keys, part.index(&names)?.keys.len() as f64 * whole.rows as f64)
    };
    // Complete samples need not have many matches.
    let is_reliable = a.whole && b.whole || found >= FEW_ROWS;
    let share = if is_reliable {
        joined.pairs / draws
    } else {
        let estimate = share_in_range((left, right), (a, b), keys)
            .unwrap_or_else(|| pair_share(left, right, &tried));
        bounded(estimate, found, draws_found.max(1.0))
    };
    // If the right side is only partly sampled, most left tuples find no match.
    let matched = b.whole.then(|| match is_reliable {
        true => joined.matched / a.rows as f64,
        false => (share * b.rows as f64).min(1.0),
    });
    let enough = is_reliable || kind == Kind::Anti;
    let component = enough.then(|| (sides.0, sides.1, joined.component.clone()));
    Some(SampledJoin { component, rest: rest.collect(), share, matched })
}

impl Profile {
    /// Merges both profiles; the sample of the join replaces those of its inputs.
    fn with_sample(&self, right: &Profile, rows: f64, sampled: Option<SampledJoin<'_>>) -> Profile {
        let mut profile = self.merged(right, rows);
        let Some((left, other, component)) = sampled.and_then(|found| found.component) else {
            return profile;
        };
        let others = right.components.iter().enumerate().filter(|(position, _)| *position != other);
        let own = self.components.iter().enumerate().filter(|(position, _)| *position != left);
        profile.components = own.chain(others).map(|(_, component)| component.clone()).collect();
        profile.components.push(component);
        profile
    }
}

/// Estimates the profile of a join.
pub(crate) fn join_profiles(
    left: &Profile,
    right: &Profile,
    kind: Kind,
    conditions: &[&Expr],
    mark: Option<&Name>,
) -> Profile {
    let sampled = match kind {
        Kind::Mark | Kind::Single | Kind::Full => None,
        _ => sampled(left, right, kind, conditions),
    };
    let share = match &sampled {
        Some(found) => found.share * pair_share(left, right, &found.rest),
        None => pair_share(left, right, conditions),
    };
    let pairs = (left.rows * right.rows * share).min(extremes(left, right, conditions));
    match kind {
        Kind::Inner => left.with_sample(right, pairs, sampled),
        Kind::Left => {
            let alone = sampled
                .as_ref()
                .and_then(|found| found.matched)
                .map(|matched| left.rows * (1.0 - matched));
            let rows = alone.map_or(pairs.max(left.rows), |alone| (pairs + alone).max(left.rows));
            left.with_sample(right, rows, sampled)
        }
        Kind::Full => {
            let mut profile = left.merged(right, pairs.max(left.rows).max(right.rows));
            profile.components.clear();
            profile
        }
        Kind::Single => {
            let mut profile = left.merged(right, left.rows);
            profile.components = left.components.clone();
            profile
        }
        Kind::Mark => {
            let mut profile = left.clone();
            if let Some(mark) = mark {
                profile
                    .columns
                    .insert(mark.clone(), Column { distinct: 2.0, ..Column::unknown(left.rows) });
            }
            profile
        }
        Kind::Semi | Kind::Anti => semi_join_profile(left, right, kind, conditions, sampled),
    }
}

/// Estimates the profile of a semi or anti join.
fn semi_join_profile(
    left: &Profile,
    right: &Profile,
    kind: Kind,
    conditions: &[&Expr],
    sampled: Option<SampledJoin<'_>>,
) -> Profile {
    let mut profile = left.clone();
    if let Some(SampledJoin { component, rest, matched: Some(matched), .. }) = sampled
        && rest.is_empty()
    {
        profile.scale(if kind == Kind::Semi { matched } else { 1.0 - matched });
        if let Some((position, _, component)) = component
            && let Some(before) = profile.components.get_mut(position)
        {
            *before = component;
        }
        return profile;
    }
    let mut share: f64 = if conditions.is_empty() { 1.0 } else { 0.5 };
    let mut keyed = false;
    for condition in conditions {
        let Some((a, b)) = equality(condition) else { continue };
        let on_left = a.fields().iter().any(|name| left.columns.contains_key(name));
        let (l, r) = if on_left { (a, b) } else { (b, a) };
        let (l, r) = (left.column_of(l), right.column_of(r));
        // The fraction of left values that occur on the right.
        let found = (r.distinct / l.domain.max(1.0)).min(1.0);
        share = if keyed { share.min(found) } else { found };
        keyed = true;
    }
    if kind == Kind::Anti {
        share = (1.0 - share).max(0.1);
    }
    profile.scale(share);
    profile
}
