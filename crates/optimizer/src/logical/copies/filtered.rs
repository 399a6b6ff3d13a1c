//! Copies of a grouping that differ in the predicates of their scans, such as those of a common
//! table expression whose readers each ask for another year: one grouping serves all. Its scans
//! pass what any copy reads, and each reader filters the groups.

use std::collections::HashMap;

use tessera_plan::Expr;

use crate::logical::relation::{Kind, Name, Relation, substitute};

/// The predicates of each scan of a relation, in the order of [`scans`].
pub(super) type ScanPredicates = Vec<Vec<Expr>>;

/// Returns the predicates of the scans, those of the first input first.
pub(super) fn scans(relation: &Relation) -> ScanPredicates {
    let mut all = Vec::new();
    add_scans(relation, &mut all);
    all
}

fn add_scans(relation: &Relation, all: &mut ScanPredicates) {
    relation.inputs().into_iter().for_each(|input| add_scans(input, all));
    if let Relation::Scan { predicates, .. } = relation {
        all.push(predicates.clone());
    }
}

/// Returns a grouping that has the groups of all copies, and for each copy the predicates that
/// select its groups. `copies` has the predicates of each copy, in the names of `grouping`. `None`
/// if the groups do not tell which copy they belong to.
pub(super) fn united(
    grouping: &Relation,
    copies: &[ScanPredicates],
) -> Option<(Relation, Vec<Vec<Expr>>)> {
    let mut passed = Vec::new();
    add_passed(grouping, &mut passed);
    let mut united: ScanPredicates = Vec::with_capacity(passed.len());
    let mut selecting: Vec<Vec<Expr>> = vec![Vec::new(); copies.len()];
    for (scan, passed) in passed.iter().enumerate() {
        let of_copies = copies.iter().map(|copy| copy.get(scan));
        let of_copies: Vec<&Vec<Expr>> = of_copies.collect::<Option<_>>()?;
        let (first, others) = of_copies.split_first()?;
        let is_shared = |predicate: &&Expr| others.iter().all(|other| other.contains(predicate));
        let mut predicates: Vec<Expr> = first.iter().filter(is_shared).cloned().collect();
        let mut branches = Vec::with_capacity(copies.len());
        for (of_copy, selecting) in of_copies.iter().zip(&mut selecting) {
            let own = of_copy.iter().filter(|predicate| !predicates.contains(predicate));
            let own: Vec<Expr> = own.cloned().collect();
            for predicate in &own {
                if !predicate.fields().iter().all(|name| passed.contains_key(name)) {
                    return None;
                }
                let mut above = predicate.clone();
                substitute(&mut above, &|name| passed.get(name).cloned().map(Expr::Field));
                selecting.push(above);
            }
            branches.push(own);
        }
        if !branches.iter().any(Vec::is_empty) {
            let mut different: Vec<Expr> = Vec::with_capacity(branches.len());
            for branch in branches.into_iter().map(Expr::all) {
                if !different.contains(&branch) {
                    different.push(branch);
                }
            }
            predicates.push(Expr::Or(different));
        }
        united.push(predicates);
    }
    let mut relation = grouping.clone();
    set_scans(&mut relation, &mut united.into_iter());
    Some((relation, selecting))
}

fn set_scans(relation: &mut Relation, united: &mut impl Iterator<Item = Vec<Expr>>) {
    relation.inputs_mut().into_iter().for_each(|input| set_scans(input, united));
    if let Relation::Scan { predicates, .. } = relation
        && let Some(new) = united.next()
    {
        *predicates = new;
    }
}

/// For each scan, adds the fields by which its tuples can be selected as well above, with their
/// names there.
fn add_passed(relation: &Relation, all: &mut Vec<HashMap<Name, Name>>) {
    let first = all.len();
    relation.inputs().into_iter().for_each(|input| add_passed(input, all));
    if let Relation::Scan { columns, .. } = relation {
        all.push(columns.iter().map(|(name, _)| (name.clone(), name.clone())).collect());
        return;
    }
    let rename = |passed: &mut HashMap<Name, Name>, exprs: &[(Name, Expr)]| {
        passed.retain(|_, name| {
            let found = exprs.iter().find(|(_, expr)| *expr == Expr::Field(name.clone()));
            found.is_some_and(|(above, _)| {
                *name = above.clone();
                true
            })
        });
    };
    match relation {
        Relation::Filter { .. } => {}
        Relation::Map { exprs, .. } => {
            all[first..].iter_mut().for_each(|passed| rename(passed, exprs));
        }
        Relation::Aggregate(aggregate) if aggregate.sets.is_none() => {
            all[first..].iter_mut().for_each(|passed| rename(passed, &aggregate.keys));
        }
        Relation::Join(join) if join.kind == Kind::Inner && !join.correlated => {}
        Relation::Join(join)
            if matches!(join.kind, Kind::Left | Kind::Semi | Kind::Anti) && !join.correlated =>
        {
            let left = scans(&join.left).len();
            all[first + left..].iter_mut().for_each(HashMap::clear);
        }
        _ => all[first..].iter_mut().for_each(HashMap::clear),
    }
}
