//! Decorrelation: turns correlated subqueries into plain joins where possible. Conditions on outer
//! fields move out of the subquery and become join conditions; an aggregate in between gets their
//! fields as keys.
//!
//! Other subqueries stay correlated and become nested plans.

mod one_row;
mod window;

use std::collections::HashSet;

use tessera_plan::{Expr, Rule, Scalar};
use tessera_types::Atom;

use crate::logical::fields::Fields;
use crate::logical::lateral_limit::sink;
use crate::logical::lateral_unnest::unnested;
use crate::logical::relation::{
    Aggregate, Join, Kind, Name, Relation, inline, parameters, parameters_to_fields, substitute,
};

/// Aggregate functions that do not depend on the order of their input.
const ORDER_FREE: [&str; 7] = ["count", "sum", "min", "max", "avg", "bool_and", "bool_or"];

/// A subquery and the conditions on outer fields that were moved out of it.
struct DecorrelatedSubquery {
    relation: Relation,
    conditions: Vec<Expr>,
    /// For an aggregate without keys: its results, computed after the join has supplied NULLs for
    /// empty groups.
    lifted: Option<Vec<(Name, Expr)>>,
}

impl Fields<'_> {
    /// Removes correlated joins where possible.
    pub fn decorrelate(&mut self, relation: Relation) -> Relation {
        self.decorrelate_within(relation, false)
    }

    /// With `nested`, the relation may be part of a nested plan.
    fn decorrelate_within(&mut self, mut relation: Relation, nested: bool) -> Relation {
        if let Relation::Filter { input, predicates } = relation {
            let types = self.types();
            relation = match types.uses(Rule::LateralLimit) {
                true => sink(*input, predicates, &|predicate| types.must_stay(predicate)),
                false => Relation::Filter { input, predicates },
            };
        }
        let inside = match &relation {
            Relation::Join(join) => join.correlated,
            Relation::Recursive(_) => true,
            _ => false,
        };
        for (position, input) in relation.inputs_mut().into_iter().enumerate() {
            let taken = std::mem::replace(input, Relation::placeholder());
            *input = self.decorrelate_within(taken, nested || inside && position > 0);
        }
        match relation {
            Relation::Join(join) if join.correlated => {
                let lateral = self.types().uses(Rule::UnnestLateral);
                match if lateral { unnested(*join) } else { Err(join) } {
                    Ok(relation) => relation,
                    Err(join) => self.decorrelate_join(*join, nested),
                }
            }
            Relation::Join(mut join) => {
                // The subquery has exactly one row, so a second one need not be detected.
                if self.types().uses(Rule::SingleRowSubquery)
                    && join.kind == Kind::Single
                    && join.conditions.is_empty()
                    && join.right.has_one_row()
                {
                    join.kind = Kind::Inner;
                }
                Relation::Join(join)
            }
            other => other,
        }
    }

    fn decorrelate_join(&mut self, join: Join, nested: bool) -> Relation {
        if matches!(join.kind, Kind::Semi | Kind::Anti | Kind::Mark)
            && self.types().uses(Rule::SingleRowSubquery)
            && !self.types().is_volatile(&join.right)
            && join.right.has_one_row()
        {
            return self.test_of_one_row(join, nested);
        }
        // A volatile subquery is computed for each left row. A null-aware join cannot be rewritten.
        if join.null_aware || self.types().is_volatile(&join.right) {
            return Relation::Join(Box::new(join));
        }
        let outer: HashSet<Name> = join.left.names().into_iter().collect();
        let exists = matches!(join.kind, Kind::Semi | Kind::Anti | Kind::Mark);
        let mut conditions = join.conditions.clone();
        let attempt = self.pull(unsorted(join.right.clone()), &outer, exists, &mut conditions);
        let reads_outer = |pulled: &DecorrelatedSubquery| {
            pulled.relation.parameters().iter().any(|name| outer.contains(name))
        };
        let Some(pulled) = attempt.filter(|pulled| !reads_outer(pulled)) else {
            return self.limit_by_value(join, nested).unwrap_or_else(Relation::Join);
        };
        let Join { mut kind, left, right: _, conditions: _, mark, null_aware, correlated: _ } =
            join;
        conditions.extend(pulled.conditions);
        let lifted = match (kind, pulled.lifted) {
            (Kind::Single | Kind::Left | Kind::Inner, Some(lifted)) => {
                // Conditions on the aggregate apply to its results after the join.
                if !join.conditions.is_empty() {
                    return self.lateral_with_condition(
                        left,
                        pulled.relation,
                        conditions,
                        lifted,
                        kind,
                        &join.conditions,
                    );
                }
                kind = Kind::Left;
                Some(lifted)
            }
            (_, lifted) => lifted,
        };
        if kind == Kind::Single && unique(&pulled.relation, &conditions) {
            kind = Kind::Left;
        }
        let outputs: Vec<Name> = left.names();
        let joined = Relation::Join(Box::new(Join {
            kind,
            left,
            right: pulled.relation,
            conditions,
            mark,
            null_aware,
            correlated: false,
        }));
        match lifted {
            None => joined,
            Some(lifted) => {
                let mut exprs: Vec<(Name, Expr)> =
                    outputs.into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
                exprs.extend(lifted);
                Relation::Map { input: Box::new(joined), exprs }
            }
        }
    }

    /// Joins with a lateral aggregate without keys that has its own conditions, which are tested on
    /// the lifted results.
    fn lateral_with_condition(
        &mut self,
        left: Relation,
        right: Relation,
        mut conditions: Vec<Expr>,
        lifted: Vec<(Name, Expr)>,
        kind: Kind,
        own: &[Expr],
    ) -> Relation {
        conditions.retain(|condition| !own.contains(condition));
        let mut exprs: Vec<(Name, Expr)> =
            left.names().into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
        let test = Expr::Coalesce(vec![Expr::all(own.to_vec()), Expr::boolean(false)]);
        let joined = Relation::Join(Box::new(Join {
            kind: Kind::Left,
            left,
            right,
            conditions,
            mark: None,
            null_aware: false,
            correlated: false,
        }));
        if kind == Kind::Inner {
            exprs.extend(lifted);
            return Relation::Map { input: Box::new(joined), exprs }.filtered(own.to_vec());
        }
        let mut test = test;
        inline(&mut test, &lifted);
        for (name, value) in lifted {
            let value = Expr::Case { branches: vec![(test.clone(), value)], otherwise: None };
            exprs.push((name, value));
        }
        Relation::Map { input: Box::new(joined), exprs }
    }

    /// Moves the conditions on outer fields out of a relation; `None` if one of them cannot be
    /// moved.
    fn pull(
        &mut self,
        relation: Relation,
        outer: &HashSet<Name>,
        exists: bool,
        own: &mut Vec<Expr>,
    ) -> Option<DecorrelatedSubquery> {
        let reads = |expr: &Expr| parameters(expr).iter().any(|name| outer.contains(name));
        if !relation.parameters().iter().any(|name| outer.contains(name)) {
            return Some(DecorrelatedSubquery { relation, conditions: Vec::new(), lifted: None });
        }
        match relation {
            Relation::Filter { input, predicates } => {
                let DecorrelatedSubquery { relation, mut conditions, lifted } =
                    self.pull(*input, outer, exists, own)?;
                if lifted.is_some() {
                    return None;
                }
                let mut stay = Vec::new();
                let mut moved = false;
                for mut predicate in self.types().conjuncts(predicates) {
                    // A predicate that can raise an error stays behind a condition that moves out.
                    if reads(&predicate) || moved && self.types().must_stay(&predicate) {
                        parameters_to_fields(&mut predicate, outer);
                        conditions.push(predicate);
                        moved = true;
                    } else {
                        stay.push(predicate);
                    }
                }
                Some(DecorrelatedSubquery {
                    relation: relation.filtered(stay),
                    conditions,
                    lifted: None,
                })
            }
            Relation::Map { input, exprs } => self.pull_map(*input, exprs, outer, exists, own),
            Relation::Join(join) => self.pull_join(*join, outer),
            Relation::Aggregate(aggregate) if exists && aggregate.is_distinct() => {
                // Duplicates do not matter.
                self.pull_map(aggregate.input, aggregate.keys, outer, exists, own)
            }
            Relation::Aggregate(aggregate) => self.pull_aggregate(*aggregate, outer, exists),
            Relation::Window(window) => self.pull_window(*window, outer),
            Relation::Sort { input, limit: None, offset: 0, .. } if exists => {
                self.pull(*input, outer, exists, own)
            }
            Relation::Sort { input, mut keys, limit: None, offset: 0 } => {
                // A sort key over outer fields only is constant within one subquery.
                keys.retain(|key| !reads(&key.expr) || !key.expr.fields().is_empty());
                let DecorrelatedSubquery { relation, conditions, lifted } =
                    self.pull(*input, outer, exists, own)?;
                if keys.iter().any(|key| reads(&key.expr)) || lifted.is_some() {
                    return None;
                }
                let relation = match keys.is_empty() {
                    true => relation,
                    false => {
                        Relation::Sort { input: Box::new(relation), keys, limit: None, offset: 0 }
                    }
                };
                Some(DecorrelatedSubquery { relation, conditions, lifted: None })
            }
            Relation::Sort { input, limit: Some(1..), offset: 0, .. }
            | Relation::Limit { input, limit: Some(1..), offset: 0 }
                if exists && own.is_empty() =>
            {
                self.pull(*input, outer, exists, own)
            }
            _ => None,
        }
    }

    fn pull_map(
        &mut self,
        input: Relation,
        exprs: Vec<(Name, Expr)>,
        outer: &HashSet<Name>,
        exists: bool,
        own: &mut Vec<Expr>,
    ) -> Option<DecorrelatedSubquery> {
        let DecorrelatedSubquery { relation, conditions, lifted } =
            self.pull(input, outer, exists, own)?;
        if let Some(below) = lifted {
            let lifted = exprs
                .into_iter()
                .map(|(name, mut expr)| {
                    parameters_to_fields(&mut expr, outer);
                    inline(&mut expr, &below);
                    (name, expr)
                })
                .collect();
            return Some(DecorrelatedSubquery { relation, conditions, lifted: Some(lifted) });
        }
        let mut kept: Vec<(Name, Expr)> = Vec::new();
        for (name, mut expr) in exprs {
            if !parameters(&expr).iter().any(|parameter| outer.contains(parameter)) {
                kept.push((name, expr));
                continue;
            }
            if !exists {
                return None;
            }
            // Only conditions can read the field, so they compute it themselves.
            parameters_to_fields(&mut expr, outer);
            for condition in own.iter_mut() {
                substitute(condition, &|field| (*field == name).then(|| expr.clone()));
            }
        }
        let available: HashSet<Name> = relation.names().into_iter().collect();
        for expr in conditions.iter().chain(own.iter()) {
            for field in expr.fields() {
                if available.contains(&field) && !kept.iter().any(|(name, _)| *name == field) {
                    kept.push((field.clone(), Expr::Field(field)));
                }
            }
        }
        Some(DecorrelatedSubquery {
            relation: Relation::Map { input: Box::new(relation), exprs: kept },
            conditions,
            lifted: None,
        })
    }

    fn pull_join(&mut self, join: Join, outer: &HashSet<Name>) -> Option<DecorrelatedSubquery> {
        let Join { kind, left, right, conditions, mark, null_aware, correlated } = join;
        if correlated {
            return None;
        }
        let reads = |expr: &Expr| parameters(expr).iter().any(|name| outer.contains(name));
        // A filter of the left side does not commute with the NULLs that a full join adds there.
        if kind == Kind::Full && left.parameters().iter().any(|name| outer.contains(name)) {
            return None;
        }
        let left = self.pull(unsorted(left), outer, false, &mut Vec::new())?;
        if left.lifted.is_some() {
            return None;
        }
        let mut pulled = left.conditions;
        let mut stay = Vec::new();
        let right = if kind == Kind::Inner {
            let right = self.pull(unsorted(right), outer, false, &mut Vec::new())?;
            if right.lifted.is_some() {
                return None;
            }
            pulled.extend(right.conditions);
            for mut condition in conditions {
                if reads(&condition) {
                    parameters_to_fields(&mut condition, outer);
                    pulled.push(condition);
                } else {
                    stay.push(condition);
                }
            }
            right.relation
        } else {
            if right.parameters().iter().any(|name| outer.contains(name))
                || conditions.iter().any(reads)
            {
                return None;
            }
            stay = conditions;
            right
        };
        let join = Join {
            kind,
            left: left.relation,
            right,
            conditions: stay,
            mark,
            null_aware,
            correlated: false,
        };
        Some(DecorrelatedSubquery {
            relation: Relation::Join(Box::new(join)),
            conditions: pulled,
            lifted: None,
        })
    }

    fn pull_aggregate(
        &mut self,
        aggregate: Aggregate,
        outer: &HashSet<Name>,
        exists: bool,
    ) -> Option<DecorrelatedSubquery> {
        let Aggregate { input, mut keys, sets, grouping, mut calls } = aggregate;
        let scalar = keys.is_empty();
        if sets.is_some() || scalar && exists {
            return None;
        }
        // Each group's tuples keep the order of the input.
        let free = calls.iter().all(|(_, call)| ORDER_FREE.contains(&&*call.function));
        let input = if free { unsorted(input) } else { input };
        let DecorrelatedSubquery { relation, conditions, lifted } =
            self.pull(input, outer, false, &mut Vec::new())?;
        let inside: HashSet<Name> = relation.names().into_iter().collect();
        let reads = |expr: &Expr| parameters(expr).iter().any(|name| outer.contains(name));
        let own_exprs = Relation::Aggregate(Box::new(Aggregate {
            input: Relation::placeholder(),
            keys: keys.clone(),
            sets: None,
            grouping: None,
            calls: calls.clone(),
        }));
        if lifted.is_some() || own_exprs.exprs().into_iter().any(reads) {
            return None;
        }
        let mut outside = Vec::new();
        for condition in conditions {
            if !condition.fields().iter().any(|field| inside.contains(field)) {
                outside.push(condition);
                continue;
            }
            let (inner, other) = split_equality(&condition, &inside)?;
            let name = match (&inner, keys.iter().find(|(_, known)| *known == inner)) {
                (_, Some((name, _))) => name.clone(),
                (Expr::Field(field), None) => {
                    keys.push((field.clone(), inner.clone()));
                    field.clone()
                }
                _ => {
                    let atom = self.atom_of(&inner).ok()?;
                    let name = self.fresh("key", atom);
                    keys.push((name.clone(), inner));
                    name
                }
            };
            outside.push(Expr::call("eq", vec![Expr::Field(name), other]));
        }
        let lifted = scalar.then(|| {
            calls
                .iter_mut()
                .map(|(name, call)| {
                    if !matches!(&*call.function, "count" | "approx_distinct" | "regr_count") {
                        return (name.clone(), Expr::Field(name.clone()));
                    }
                    // The count of no tuples is 0, not NULL.
                    let atom = self.atoms().get(name).cloned().unwrap_or(Atom::Int64);
                    let inner = self.fresh(name, atom.clone());
                    let outer = std::mem::replace(name, inner.clone());
                    let zero = Expr::Constant(Scalar::Integer(0), atom);
                    (outer, Expr::Coalesce(vec![Expr::Field(inner), zero]))
                })
                .collect()
        });
        let aggregate = Aggregate { input: relation, keys, sets, grouping, calls };
        Some(DecorrelatedSubquery {
            relation: Relation::Aggregate(Box::new(aggregate)),
            conditions: outside,
            lifted,
        })
    }
}

/// Removes a sort that has no effect on the result.
fn unsorted(relation: Relation) -> Relation {
    match relation {
        Relation::Sort { input, limit: None, offset: 0, .. } => unsorted(*input),
        Relation::Map { input, exprs } => {
            Relation::Map { input: Box::new(unsorted(*input)), exprs }
        }
        other => other,
    }
}

/// Splits an equality into the side over inner fields and the side over none of them.
fn split_equality(condition: &Expr, inside: &HashSet<Name>) -> Option<(Expr, Expr)> {
    let Expr::Call { function, args } = condition else { return None };
    let ([a, b], "eq") = (args.as_slice(), &**function) else { return None };
    let within = |expr: &Expr| {
        let fields = expr.fields();
        !fields.is_empty() && fields.iter().all(|name| inside.contains(name))
    };
    let without = |expr: &Expr| expr.fields().iter().all(|name| !inside.contains(name));
    if within(a) && without(b) {
        Some((a.clone(), b.clone()))
    } else if within(b) && without(a) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

/// Whether at most one tuple of the relation satisfies the conditions: they fix all keys of its
/// groups.
fn unique(relation: &Relation, conditions: &[Expr]) -> bool {
    match relation {
        Relation::Aggregate(aggregate) => {
            aggregate.sets.is_none()
                && aggregate.keys.iter().all(|(key, _)| {
                    conditions.iter().any(|condition| match condition {
                        Expr::Call { function, args } if &**function == "eq" => {
                            args.iter().any(|arg| matches!(arg, Expr::Field(name) if name == key))
                        }
                        _ => false,
                    })
                })
        }
        Relation::Filter { input, .. } => unique(input, conditions),
        Relation::Map { input, exprs } => {
            let same = exprs.iter().all(|(name, expr)| match expr {
                Expr::Field(field) => field == name,
                _ => true,
            });
            same && unique(input, conditions)
        }
        _ => false,
    }
}
