//! A region of joins: its units, the predicates between them, and the joined result.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tessera_plan::{Expr, Rule};
use tessera_types::{Error, Result};

use super::counts::Counts;
use super::search::BestTrees;
use super::{BUILD_COST, PAIR_COST, PROBE_COST, UnitSet, is_inequality};
use crate::logical::estimate::{Estimates, Profile, join_profiles};
use crate::logical::relation::{Join, Kind, Name, Relation};
use crate::logical::types::Types;

/// A unit of a region.
pub(super) enum Unit {
    Base(Relation),
    /// A join other than inner; its conditions read the units in `required`.
    Dependent {
        kind: Kind,
        right: Relation,
        conditions: Vec<Expr>,
        mark: Option<Name>,
        null_aware: bool,
        required: UnitSet,
    },
}

pub(super) struct Region<'a> {
    pub(super) units: Vec<Unit>,
    pub(super) profiles: Vec<Rc<Profile>>,
    /// The unit of each field.
    pub(super) owner: HashMap<Name, usize>,
    pub(super) predicates: Vec<(Expr, UnitSet)>,
    /// The dependent units.
    pub(super) dependent: UnitSet,
    /// The base units.
    pub(super) bases: UnitSet,
    /// Predicates above the region's joins: they can raise errors, or read no field.
    pub(super) deferred: Vec<Expr>,
    /// Classes of fields that are equal in the region's result.
    pub(super) classes: Vec<Vec<Name>>,
    /// The classes with their units; set once all classes are known.
    pub(super) members: Vec<Class>,
    pub(super) types: Types<'a>,
    pub(super) counts: &'a Counts,
    pub(super) estimates: &'a Estimates,
}

/// A class of equal fields: its units, and one field of each.
pub(super) struct Class {
    pub(super) units: UnitSet,
    pub(super) fields: Vec<(UnitSet, Name)>,
}

/// A join tree of a set of units.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) cost: f64,
    /// The profile of the set, regardless of the tree, so that orders are compared by the same
    /// rows.
    pub(super) profile: Rc<Profile>,
    pub(super) split: Option<(UnitSet, UnitSet)>,
}

/// Merges all sets that intersect `set`.
fn merge(joined: &mut Vec<UnitSet>, mut set: UnitSet) {
    joined.retain(|other| {
        let meets = other & set != 0;
        if meets {
            set |= other;
        }
        !meets
    });
    joined.push(set);
}

impl Region<'_> {
    pub(super) fn add(&mut self, unit: Unit) {
        let index = self.units.len();
        let names = match &unit {
            Unit::Base(relation) => relation.names(),
            Unit::Dependent { kind: Kind::Semi | Kind::Anti, .. } => Vec::new(),
            Unit::Dependent { kind: Kind::Mark, mark, .. } => mark.iter().cloned().collect(),
            Unit::Dependent { right, .. } => right.names(),
        };
        for name in names {
            self.owner.insert(name, index);
        }
        match unit {
            Unit::Dependent { .. } => self.dependent |= 1 << index,
            Unit::Base(_) => self.bases |= 1 << index,
        }
        self.profiles.push(match &unit {
            Unit::Base(relation) | Unit::Dependent { right: relation, .. } => {
                Rc::new(self.estimates.profile(relation))
            }
        });
        self.units.push(unit);
    }

    /// Returns the units of fields.
    pub(super) fn mask(&self, fields: impl Iterator<Item = Name>) -> UnitSet {
        fields.filter_map(|name| self.owner.get(&name)).fold(0, |mask, unit| mask | 1 << unit)
    }

    fn is_base(&self, unit: usize) -> bool {
        matches!(self.units.get(unit), Some(Unit::Base(_)))
    }

    pub(super) fn assign_predicates(&mut self, predicates: Vec<Expr>) {
        for predicate in predicates {
            let mask = self.mask(predicate.fields().into_iter());
            if mask == 0 || self.counts.must_stay(&predicate, self.types) {
                self.deferred.push(predicate);
                continue;
            }
            if mask.is_power_of_two()
                && let Some(Unit::Base(relation)) =
                    self.units.get_mut(mask.trailing_zeros() as usize)
            {
                *relation =
                    std::mem::replace(relation, Relation::placeholder()).filtered(vec![predicate]);
                continue;
            }
            if let Some((a, b)) = self.equal_fields(&predicate) {
                self.merge_classes(a, b);
            } else {
                self.predicates.push((predicate, mask));
            }
        }
    }

    /// Lets a scalar subquery without conditions be joined as soon as the units are joined that the
    /// predicates on its value read, so that these predicates can filter early. As in PostgreSQL, a
    /// second row of the subquery is then an error even if another unit is empty.
    pub(super) fn join_subqueries_early(&mut self) {
        let bases = self.bases;
        for position in 0..self.units.len() {
            let own: UnitSet = 1 << position;
            let readers = self.predicates.iter().filter(|(_, mask)| mask & own != 0);
            let read = readers.fold(0, |read, (_, mask)| read | mask) & bases;
            if let Some(Unit::Dependent { kind: Kind::Single, conditions, required, .. }) =
                self.units.get_mut(position)
                && conditions.is_empty()
                && read != 0
                && read & !*required == 0
            {
                *required = read;
            }
        }
    }

    /// Uses deferred comparisons as join conditions where the join would otherwise be a cross
    /// product: equalities, then inequalities. Their sides are then computed for each tuple, as for
    /// a join that is written with one condition.
    pub(super) fn connect(&mut self) {
        let classes = self.classes.iter().map(|class| self.mask(class.iter().cloned()));
        let mut joined: Vec<UnitSet> = Vec::new();
        for mask in classes.chain(self.predicates.iter().map(|(_, mask)| *mask)) {
            merge(&mut joined, mask);
        }
        self.connect_by(&mut joined, &|function| function == "eq");
        if self.types.uses(Rule::InequalityJoins) {
            self.connect_by(&mut joined, &is_inequality);
        }
    }

    /// Moves deferred comparisons by some functions to the predicates if they connect sets of
    /// units.
    fn connect_by(&mut self, joined: &mut Vec<UnitSet>, wanted: &dyn Fn(&str) -> bool) {
        for predicate in std::mem::take(&mut self.deferred) {
            let mask = self.mask(predicate.fields().into_iter());
            let whole = |side: UnitSet| {
                side.is_power_of_two() || joined.iter().any(|set| set & side == side)
            };
            let connects = self.sides(&predicate, wanted).is_some_and(|(left, right)| {
                let apart = joined.iter().all(|set| set & left == 0 || set & right == 0);
                apart && whole(left) && whole(right)
            });
            if connects {
                merge(joined, mask);
                self.predicates.push((predicate, mask));
            } else {
                self.deferred.push(predicate);
            }
        }
    }

    /// Returns the base units of both sides of a comparison by a wanted function, if each side
    /// reads some and they are disjoint.
    fn sides(&self, predicate: &Expr, wanted: &dyn Fn(&str) -> bool) -> Option<(UnitSet, UnitSet)> {
        let Expr::Call { function, args } = predicate else { return None };
        let ([left, right], true) = (args.as_slice(), wanted(function)) else { return None };
        let (left, right) =
            (self.mask(left.fields().into_iter()), self.mask(right.fields().into_iter()));
        let usable =
            left != 0 && right != 0 && left & right == 0 && (left | right) & !self.bases == 0;
        usable.then_some((left, right))
    }

    /// Returns the two fields of base units that a predicate makes equal.
    fn equal_fields(&self, predicate: &Expr) -> Option<(Name, Name)> {
        let Expr::Call { function, args } = predicate else { return None };
        let ([Expr::Field(a), Expr::Field(b)], "eq") = (args.as_slice(), &**function) else {
            return None;
        };
        let (x, y) = (self.owner.get(a)?, self.owner.get(b)?);
        let same_type = self.types.atoms.get(a) == self.types.atoms.get(b);
        (x != y && same_type && self.is_base(*x) && self.is_base(*y))
            .then(|| (a.clone(), b.clone()))
    }

    fn merge_classes(&mut self, a: Name, b: Name) {
        let (mut joined, others): (Vec<Vec<Name>>, Vec<Vec<Name>>) =
            std::mem::take(&mut self.classes)
                .into_iter()
                .partition(|class| class.contains(&a) || class.contains(&b));
        let mut class: Vec<Name> = joined.drain(..).flatten().collect();
        for name in [a, b] {
            if !class.contains(&name) {
                class.push(name);
            }
        }
        self.classes = others;
        self.classes.push(class);
    }

    /// Adds filters for fields of one unit that a class makes equal, because joins compare one
    /// field per side.
    pub(super) fn compare_within_units(&mut self) {
        for class in &self.classes {
            for (position, name) in class.iter().enumerate() {
                let unit = self.owner.get(name);
                let Some(first) =
                    class[..position].iter().find(|other| self.owner.get(*other) == unit)
                else {
                    continue;
                };
                let equal =
                    Expr::call("eq", vec![Expr::Field(first.clone()), Expr::Field(name.clone())]);
                if let Some(Unit::Base(relation)) = unit.and_then(|unit| self.units.get_mut(*unit))
                {
                    *relation =
                        std::mem::replace(relation, Relation::placeholder()).filtered(vec![equal]);
                }
            }
        }
    }

    /// Computes the units of each class.
    fn index_classes(&mut self) {
        let of_unit = |name: &Name| self.owner.get(name).map(|unit| (1 << unit, name.clone()));
        let class = |names: &Vec<Name>| {
            let mut class = Class { units: 0, fields: Vec::new() };
            for (unit, name) in names.iter().filter_map(of_unit) {
                if class.units & unit == 0 {
                    class.units |= unit;
                    class.fields.push((unit, name));
                }
            }
            class
        };
        self.members = self.classes.iter().map(class).collect();
    }

    /// Returns the join conditions of two sets: equalities of classes, and predicates that neither
    /// set can evaluate alone.
    pub(super) fn conditions(&self, left: UnitSet, right: UnitSet) -> Vec<Expr> {
        let mut conditions = Vec::new();
        for class in &self.members {
            if class.units & left == 0 || class.units & right == 0 {
                continue;
            }
            let first = |set: UnitSet| class.fields.iter().find(|(unit, _)| unit & set != 0);
            if let (Some((_, a)), Some((_, b))) = (first(left), first(right)) {
                conditions
                    .push(Expr::call("eq", vec![Expr::Field(a.clone()), Expr::Field(b.clone())]));
            }
        }
        let both = left | right;
        for (predicate, mask) in &self.predicates {
            let hangs = right & self.dependent == right;
            if mask & !both == 0 && mask & !left != 0 && (mask & !right != 0 || hangs) {
                conditions.push(predicate.clone());
            }
        }
        conditions
    }

    /// Joins two sets if possible. `cross` allows a cross product, `known` is the profile of the
    /// union. Returns `None` if the cost is not below `bound`.
    pub(super) fn combine(
        &self,
        left: (UnitSet, &Candidate),
        right: (UnitSet, &Candidate),
        cross: bool,
        known: Option<&Rc<Profile>>,
        bound: Option<f64>,
    ) -> Option<Candidate> {
        let ((left_mask, left), (right_mask, right)) = (left, right);
        let below = left.cost + right.cost;
        if bound.is_some_and(|bound| below >= bound) {
            return None;
        }
        let candidate = |profile: Rc<Profile>, refs: &[&Expr]| {
            let cost = below + join_cost(left, right, &profile, refs);
            Some(Candidate { cost, profile, split: Some((left_mask, right_mask)) })
        };
        let single = right_mask.is_power_of_two().then(|| right_mask.trailing_zeros() as usize);
        if let Some(Unit::Dependent { kind, conditions, mark, required, .. }) =
            single.and_then(|u| self.units.get(u))
        {
            if required & !left_mask != 0 || !self.has_base(left_mask) {
                return None;
            }
            let refs: Vec<&Expr> = conditions.iter().collect();
            let joined = known.cloned().unwrap_or_else(|| {
                let mut joined =
                    join_profiles(&left.profile, &right.profile, *kind, &refs, mark.as_ref());
                joined.apply_all(&self.conditions(left_mask, right_mask));
                Rc::new(joined.only(&self.needed(left_mask | right_mask)))
            });
            return candidate(joined, &refs);
        }
        if !self.has_base(left_mask) || !self.has_base(right_mask) {
            return None;
        }
        let conditions = self.conditions(left_mask, right_mask);
        // A cross product with a single tuple is free.
        let free = left.profile.rows <= 1.0 || right.profile.rows <= 1.0;
        if conditions.is_empty() && !cross && !free {
            return None;
        }
        let refs: Vec<&Expr> = conditions.iter().collect();
        let joined = known.cloned().unwrap_or_else(|| {
            let joined = join_profiles(&left.profile, &right.profile, Kind::Inner, &refs, None);
            Rc::new(joined.only(&self.needed(left_mask | right_mask)))
        });
        candidate(joined, &refs)
    }

    /// Returns the fields of a set that later joins may read. Thousands of sets may each have a
    /// profile, so it keeps only these.
    pub(super) fn needed(&self, set: UnitSet) -> HashSet<Name> {
        let mut needed = HashSet::new();
        for class in self.members.iter().filter(|class| class.units & !set != 0) {
            let first = class.fields.iter().find(|(unit, _)| unit & set != 0);
            needed.extend(first.map(|(_, name)| name.clone()));
        }
        for (predicate, _) in self.predicates.iter().filter(|(_, mask)| mask & !set != 0) {
            needed.extend(predicate.fields());
        }
        for (position, unit) in self.units.iter().enumerate() {
            if let Unit::Dependent { conditions, .. } = unit
                && set & (1 << position) == 0
            {
                needed.extend(conditions.iter().flat_map(Expr::fields));
            }
        }
        needed
    }

    pub(super) fn has_base(&self, set: UnitSet) -> bool {
        set & self.bases != 0
    }

    /// Returns the set of all units.
    pub(super) fn all(&self) -> UnitSet {
        self.bases | self.dependent
    }

    pub(super) fn solve(mut self) -> Result<Relation> {
        let deferred = std::mem::take(&mut self.deferred);
        self.index_classes();
        let best = self.best();
        let full = self.all();
        let mut units: Vec<Option<Unit>> =
            std::mem::take(&mut self.units).into_iter().map(Some).collect();
        Ok(self.tree(full, &best, &mut units)?.filtered(deferred))
    }

    /// Builds the relation of a set of units. Fails if no tree was found, so that no unit is lost.
    fn tree(&self, set: UnitSet, best: &BestTrees, units: &mut [Option<Unit>]) -> Result<Relation> {
        let split = best.get(&set).and_then(|candidate| candidate.split);
        let Some((left, right)) = split else {
            let alone = set.is_power_of_two().then(|| set.trailing_zeros() as usize);
            return match alone.and_then(|unit| units.get_mut(unit)).and_then(Option::take) {
                Some(Unit::Base(relation) | Unit::Dependent { right: relation, .. }) => {
                    Ok(relation)
                }
                None => Err(Error::internal("join ordering found no tree for a set of relations")),
            };
        };
        let conditions = {
            let mut found = self.conditions(left, right);
            found.sort_by_key(
                |condition| !matches!(condition, Expr::Call { function, .. } if &**function == "eq"),
            );
            found
        };
        let left_relation = self.tree(left, best, units)?;
        let dependent = right.is_power_of_two()
            && matches!(
                units.get(right.trailing_zeros() as usize),
                Some(Some(Unit::Dependent { .. }))
            );
        if dependent {
            let unit = units.get_mut(right.trailing_zeros() as usize).and_then(Option::take);
            let Some(Unit::Dependent { kind, right, conditions: own, mark, null_aware, .. }) = unit
            else {
                return Err(Error::internal("join ordering used a relation twice"));
            };
            let join = Join {
                kind,
                left: left_relation,
                right,
                conditions: own,
                mark,
                null_aware,
                correlated: false,
            };
            return Ok(Relation::Join(Box::new(join)).filtered(conditions));
        }
        let right_relation = self.tree(right, best, units)?;
        Ok(Relation::Join(Box::new(Join {
            kind: Kind::Inner,
            left: left_relation,
            right: right_relation,
            conditions,
            mark: None,
            null_aware: false,
            correlated: false,
        })))
    }
}

fn join_cost(left: &Candidate, right: &Candidate, joined: &Profile, conditions: &[&Expr]) -> f64 {
    let (small, large) = if left.profile.rows < right.profile.rows {
        (left.profile.rows, right.profile.rows)
    } else {
        (right.profile.rows, left.profile.rows)
    };
    let keyed = conditions.iter().any(|condition| match condition {
        Expr::Call { function, .. } => matches!(&**function, "eq" | "is_not_distinct"),
        _ => false,
    });
    let pairs = if keyed { 0.0 } else { PAIR_COST * small * large };
    joined.rows + BUILD_COST * small + PROBE_COST * large + pairs
}
