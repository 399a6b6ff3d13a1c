//! Join ordering by estimated cost.
//!
//! A region of inner joins is split into units. Semi, anti, mark, left and single joins within it
//! are dependent units: they can be joined once the units that they read are joined. Dynamic
//! programming over connected subgraphs finds the cheapest tree, including bushy trees; for large
//! regions, trees are joined greedily ([`search`]). The cost counts tuples: those that each join
//! yields, builds and probes with. Fields that the region makes equal form classes, so that an
//! implied equality is an edge like a written one, and is counted once.

pub(crate) mod counts;
mod region;
mod search;

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Rule};
use tessera_types::Result;

use crate::logical::estimate::Estimates;
use crate::logical::relation::{Join, Kind, Name, Relation};
use crate::logical::types::Types;
use counts::Counts;
use region::{Candidate, Region, Unit};

/// A set of units, one bit per unit.
type UnitSet = u128;

/// The maximum number of units of a region. The joins of a larger region stay as written, and their
/// inputs are regions of their own.
const UNITS_MAX: usize = 120;
/// The costs of building and probing with a tuple, relative to 1 for an output tuple.
const BUILD_COST: f64 = 2.0;
const PROBE_COST: f64 = 0.3;
/// The cost of comparing a pair of tuples without a key.
const PAIR_COST: f64 = 0.05;

/// Orders the joins of a relation by estimated cost.
pub(crate) fn order_joins(
    relation: Relation,
    types: Types<'_>,
    estimates: &Estimates,
) -> Result<Relation> {
    if !types.uses(Rule::OrderJoins) {
        return Ok(relation);
    }
    load_samples(&relation);
    estimates.forget_tables();
    let counts = Counts::of(&relation);
    JoinOrdering { types, counts: &counts, estimates }.order(relation)
}

/// Loads the samples that the estimates need: the fields of joins, predicates and group keys.
fn load_samples(relation: &Relation) {
    fn walk<'r>(relation: &'r Relation, visit: &mut dyn FnMut(&'r Relation)) {
        visit(relation);
        relation.inputs().into_iter().for_each(|input| walk(input, visit));
    }
    let (mut read, mut joins): (HashSet<Name>, bool) = (HashSet::new(), false);
    walk(relation, &mut |relation| {
        joins |= matches!(relation, Relation::Join(_));
        match relation {
            Relation::Scan { .. } | Relation::Filter { .. } | Relation::Join(_) => {
                read.extend(relation.exprs().into_iter().flat_map(Expr::fields));
            }
            Relation::Aggregate(aggregate) => {
                read.extend(aggregate.keys.iter().flat_map(|(_, expr)| expr.fields()));
                let calls = aggregate.calls.iter().filter(|(name, _)| read.contains(name));
                read.extend(
                    calls
                        .flat_map(|(_, call)| &call.args)
                        .flat_map(Expr::fields)
                        .collect::<Vec<_>>(),
                );
            }
            // A map renames the fields that are read above it.
            Relation::Map { exprs, .. } => {
                read.extend(
                    exprs
                        .iter()
                        .filter(|(name, _)| read.contains(name))
                        .flat_map(|(_, e)| e.fields())
                        .collect::<Vec<_>>(),
                );
            }
            _ => {}
        }
    });
    if !joins {
        return;
    }
    walk(relation, &mut |relation| {
        if let Relation::Scan { table, columns, .. } = relation
            && let Some(sample) = &table.sample
        {
            let wanted =
                columns.iter().filter(|(name, _)| read.contains(name)).map(|(_, index)| *index);
            sample.load(&wanted.collect::<Vec<_>>());
        }
    });
}

/// Whether a function compares values by their order.
fn is_inequality(function: &str) -> bool {
    matches!(function, "lt" | "lt_eq" | "gt" | "gt_eq")
}

struct JoinOrdering<'a> {
    types: Types<'a>,
    counts: &'a Counts,
    estimates: &'a Estimates,
}

impl JoinOrdering<'_> {
    fn order(&self, mut relation: Relation) -> Result<Relation> {
        if self.is_region(&relation) {
            return self.region(relation, Vec::new());
        }
        if let Relation::Filter { input, predicates } = &mut relation
            && self.is_region(input)
        {
            let (mut go, mut stay) = (Vec::new(), Vec::new());
            // A comparison that can raise errors stays behind another predicate, which may drop the
            // tuples for which it raises one.
            let mut follows = false;
            for predicate in std::mem::take(predicates) {
                let must_stay = self.counts.must_stay(&predicate, self.types);
                let is_free = !predicate.fields().is_empty() && !must_stay;
                if is_free || !follows && self.is_deferred_comparison(&predicate) {
                    go.push(predicate);
                    follows |= is_free;
                } else {
                    stay.push(predicate);
                    follows = true;
                }
            }
            let joins = std::mem::replace(&mut **input, Relation::placeholder());
            return Ok(self.region(joins, go)?.filtered(stay));
        }
        for input in relation.inputs_mut() {
            let taken = std::mem::replace(input, Relation::placeholder());
            *input = self.order(taken)?;
        }
        Ok(relation)
    }

    fn is_region(&self, relation: &Relation) -> bool {
        matches!(relation, Relation::Join(join) if self.can_flatten(join))
            && self.units(relation, UNITS_MAX) <= UNITS_MAX
    }

    /// Whether the predicate is a comparison that can raise an error, and that may join two sets.
    fn is_deferred_comparison(&self, predicate: &Expr) -> bool {
        let Expr::Call { function, .. } = predicate else { return false };
        let may_join = &**function == "eq"
            || self.types.uses(Rule::InequalityJoins) && is_inequality(function);
        may_join && self.types.must_stay(predicate) && !self.types.volatile(predicate)
    }

    /// Orders the joins of a region; `above` are predicates on its result.
    fn region(&self, relation: Relation, above: Vec<Expr>) -> Result<Relation> {
        let mut region = Region {
            units: Vec::new(),
            profiles: Vec::new(),
            owner: HashMap::new(),
            predicates: Vec::new(),
            dependent: 0,
            bases: 0,
            deferred: Vec::new(),
            classes: Vec::new(),
            members: Vec::new(),
            types: self.types,
            counts: self.counts,
            estimates: self.estimates,
        };
        let mut predicates = Vec::new();
        self.flatten(relation, &mut region, &mut predicates)?;
        predicates.extend(above);
        region.assign_predicates(predicates);
        region.join_subqueries_early();
        region.connect();
        region.compare_within_units();
        region.solve()
    }

    fn flatten(
        &self,
        relation: Relation,
        region: &mut Region<'_>,
        predicates: &mut Vec<Expr>,
    ) -> Result<()> {
        let join = match relation {
            Relation::Join(join) if self.can_flatten(&join) => *join,
            other => {
                let relation = self.order(other)?;
                region.add(Unit::Base(relation));
                return Ok(());
            }
        };
        let Join { kind, left, right, conditions, mark, null_aware, correlated: _ } = join;
        let first = region.units.len();
        self.flatten(left, region, predicates)?;
        if kind == Kind::Inner {
            self.flatten(right, region, predicates)?;
            predicates.extend(conditions);
            return Ok(());
        }
        let all: UnitSet = (first..region.units.len()).map(|unit| 1 << unit).sum();
        let read: UnitSet = region.mask(conditions.iter().flat_map(Expr::fields));
        let careful = kind == Kind::Single
            || conditions.iter().any(|condition| self.types.must_stay(condition));
        let required = if read == 0 || careful { all } else { read };
        let right = self.order(right)?;
        region.add(Unit::Dependent { kind, right, conditions, mark, null_aware, required });
        Ok(())
    }

    /// Whether a join can be part of a region. A volatile condition must be evaluated for each pair
    /// that the join compares as written.
    fn can_flatten(&self, join: &Join) -> bool {
        let is_volatile = |condition: &Expr| self.types.volatile(condition);
        !join.correlated && join.kind != Kind::Full && !join.conditions.iter().any(is_volatile)
    }

    /// The number of units of a region, or a number above `most`. Each join of a long chain is
    /// asked, and chains grow to the left, so the right side counts first.
    fn units(&self, relation: &Relation, most: usize) -> usize {
        match relation {
            Relation::Join(join) if most > 0 && self.can_flatten(join) => {
                let inner = join.kind == Kind::Inner;
                let right = if inner { self.units(&join.right, most) } else { 1 };
                if right > most { right } else { right + self.units(&join.left, most - right) }
            }
            _ => 1,
        }
    }
}
