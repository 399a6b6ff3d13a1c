//! The order of joins.
//!
//! A region of inner joins is taken apart into units; semi, anti, mark, left and single joins
//! within it are units too, which can be applied once the units they read are there. Dynamic
//! programming over connected subgraphs finds the cheapest tree, bushy ones included; where these
//! are too many, trees are joined greedily ([`search`]). Costs are tuples: those every join yields,
//! and those it builds and probes with. Fields that the region makes equal form classes, so that an
//! implied equality is an edge like a written one, and counts once.

mod search;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tessera_plan::{Expr, Rule};
use tessera_types::{Error, Result};

use crate::logical::estimate::{Estimates, Profile, join_profiles};
use crate::logical::raise::Types;
use crate::logical::relation::{Join, Kind, Name, Relation};
use search::Best;

/// A set of units, by their bits.
type Set = u128;

/// The most units of a region. The joins of a larger one stay as written, and what they join are
/// regions of their own.
const UNITS_MAX: usize = 120;
/// What a tuple costs that goes into a hash table, and one that probes it, where one that comes out
/// costs 1.
const BUILD_COST: f64 = 2.0;
const PROBE_COST: f64 = 0.3;
/// How much dearer a pair of tuples is that is compared without a key.
const PAIR_COST: f64 = 0.05;

/// The relation with its joins in the order that is estimated cheapest.
pub(crate) fn order_joins(
    relation: Relation,
    types: Types<'_>,
    estimates: &Estimates,
) -> Result<Relation> {
    if !types.uses(Rule::OrderJoins) {
        return Ok(relation);
    }
    load_samples(&relation);
    Ordering { types, estimates }.order(relation)
}

/// Draws what estimates of these joins will ask the samples for: the fields that they and
/// predicates read, and keys of groups.
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
            // What is read above a map stands below it under another name.
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

struct Ordering<'a> {
    types: Types<'a>,
    estimates: &'a Estimates,
}

/// What a region is made of.
enum Unit {
    Base(Relation),
    /// A join whose right side hangs on what its conditions read of the left.
    Hanging {
        kind: Kind,
        right: Relation,
        conditions: Vec<Expr>,
        mark: Option<Name>,
        null_aware: bool,
        required: Set,
    },
}

struct Region<'a> {
    units: Vec<Unit>,
    profiles: Vec<Rc<Profile>>,
    /// Which unit a field comes from.
    owner: HashMap<Name, usize>,
    predicates: Vec<(Expr, Set)>,
    /// The units that hang on others.
    hanging: Set,
    /// The units that are no more than joined to others.
    bases: Set,
    /// Predicates that stay on top: they can raise, or read nothing.
    late: Vec<Expr>,
    /// Fields that are equal in the region's result.
    classes: Vec<Vec<Name>>,
    /// The members of each class with their units, once all classes are known.
    members: Vec<Class>,
    types: Types<'a>,
    estimates: &'a Estimates,
}

/// A class of equal fields: the units that have one, and the first one of each.
struct Class {
    units: Set,
    fields: Vec<(Set, Name)>,
}

/// A joined set of units.
#[derive(Clone)]
struct Candidate {
    cost: f64,
    /// That of the set, whichever way it was joined: orders are compared by the same rows.
    profile: Rc<Profile>,
    split: Option<(Set, Set)>,
}

/// Sets that have units of a set become one.
fn merge(joined: &mut Vec<Set>, mut set: Set) {
    joined.retain(|other| {
        let meets = other & set != 0;
        if meets {
            set |= other;
        }
        !meets
    });
    joined.push(set);
}

impl Ordering<'_> {
    fn order(&self, mut relation: Relation) -> Result<Relation> {
        if self.is_region(&relation) {
            return self.region(relation, Vec::new());
        }
        if let Relation::Filter { input, predicates } = &mut relation
            && self.is_region(input)
        {
            // Equalities that can raise have stayed above the joins. Those behind another
            // predicate stay there: it may drop the tuples for which they raise.
            let stands = |predicate: &Expr| !self.is_late_equality(predicate);
            let first = predicates.iter().position(stands).unwrap_or(predicates.len());
            let stay = predicates.split_off(first);
            let equal = std::mem::take(predicates);
            let joins = std::mem::replace(&mut **input, Relation::nothing());
            return Ok(self.region(joins, equal)?.filtered(stay));
        }
        for input in relation.inputs_mut() {
            let taken = std::mem::replace(input, Relation::nothing());
            *input = self.order(taken)?;
        }
        Ok(relation)
    }

    fn is_region(&self, relation: &Relation) -> bool {
        matches!(relation, Relation::Join(join) if self.flattens(join))
            && self.units(relation) <= UNITS_MAX
    }

    /// Whether the predicate is an equality that can raise.
    fn is_late_equality(&self, predicate: &Expr) -> bool {
        let is_equal = matches!(predicate, Expr::Call { function, .. } if &**function == "eq");
        is_equal && self.types.stays(predicate) && !self.types.volatile(predicate)
    }

    /// Joins in their best order, with what holds above them.
    fn region(&self, relation: Relation, above: Vec<Expr>) -> Result<Relation> {
        let mut region = Region {
            units: Vec::new(),
            profiles: Vec::new(),
            owner: HashMap::new(),
            predicates: Vec::new(),
            hanging: 0,
            bases: 0,
            late: Vec::new(),
            classes: Vec::new(),
            members: Vec::new(),
            types: self.types,
            estimates: self.estimates,
        };
        let mut predicates = Vec::new();
        self.flatten(relation, &mut region, &mut predicates)?;
        predicates.extend(above);
        region.take_predicates(predicates);
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
            Relation::Join(join) if self.flattens(&join) => *join,
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
        let all: Set = (first..region.units.len()).map(|unit| 1 << unit).sum();
        let read: Set = region.mask(conditions.iter().flat_map(Expr::fields));
        let careful =
            kind == Kind::Single || conditions.iter().any(|condition| self.types.stays(condition));
        let required = if read == 0 || careful { all } else { read };
        let right = self.order(right)?;
        region.add(Unit::Hanging { kind, right, conditions, mark, null_aware, required });
        Ok(())
    }

    /// Whether a join can be taken apart. A volatile condition is drawn for each pair that the join
    /// compares as it is written.
    fn flattens(&self, join: &Join) -> bool {
        let is_volatile = |condition: &Expr| self.types.volatile(condition);
        !join.correlated && join.kind != Kind::Full && !join.conditions.iter().any(is_volatile)
    }

    /// How many units a region has.
    fn units(&self, relation: &Relation) -> usize {
        match relation {
            Relation::Join(join) if self.flattens(join) => {
                self.units(&join.left)
                    + if join.kind == Kind::Inner { self.units(&join.right) } else { 1 }
            }
            _ => 1,
        }
    }
}

impl Region<'_> {
    fn add(&mut self, unit: Unit) {
        let index = self.units.len();
        let names = match &unit {
            Unit::Base(relation) => relation.names(),
            Unit::Hanging { kind: Kind::Semi | Kind::Anti, .. } => Vec::new(),
            Unit::Hanging { kind: Kind::Mark, mark, .. } => mark.iter().cloned().collect(),
            Unit::Hanging { right, .. } => right.names(),
        };
        for name in names {
            self.owner.insert(name, index);
        }
        match unit {
            Unit::Hanging { .. } => self.hanging |= 1 << index,
            Unit::Base(_) => self.bases |= 1 << index,
        }
        self.profiles.push(match &unit {
            Unit::Base(relation) | Unit::Hanging { right: relation, .. } => {
                Rc::new(self.estimates.profile(relation))
            }
        });
        self.units.push(unit);
    }

    /// The units that fields come from.
    fn mask(&self, fields: impl Iterator<Item = Name>) -> Set {
        fields.filter_map(|name| self.owner.get(&name)).fold(0, |mask, unit| mask | 1 << unit)
    }

    fn is_base(&self, unit: usize) -> bool {
        matches!(self.units.get(unit), Some(Unit::Base(_)))
    }

    fn take_predicates(&mut self, predicates: Vec<Expr>) {
        for predicate in predicates {
            let mask = self.mask(predicate.fields().into_iter());
            if mask == 0 || self.types.stays(&predicate) {
                self.late.push(predicate);
                continue;
            }
            if mask.is_power_of_two()
                && let Some(Unit::Base(relation)) =
                    self.units.get_mut(mask.trailing_zeros() as usize)
            {
                *relation =
                    std::mem::replace(relation, Relation::nothing()).filtered(vec![predicate]);
                continue;
            }
            if let Some((a, b)) = self.equal_fields(&predicate) {
                self.unite(a, b);
            } else {
                self.predicates.push((predicate, mask));
            }
        }
    }

    /// Takes late equalities as conditions of joins where there would be a cross product otherwise:
    /// their sides are then computed for each tuple, as they are where a join is written with one
    /// condition.
    fn connect(&mut self) {
        let classes = self.classes.iter().map(|class| self.mask(class.iter().cloned()));
        let mut joined: Vec<Set> = Vec::new();
        for mask in classes.chain(self.predicates.iter().map(|(_, mask)| *mask)) {
            merge(&mut joined, mask);
        }
        for predicate in std::mem::take(&mut self.late) {
            let mask = self.mask(predicate.fields().into_iter());
            let whole =
                |side: Set| side.is_power_of_two() || joined.iter().any(|set| set & side == side);
            let connects = self.sides(&predicate).is_some_and(|(left, right)| {
                let apart = joined.iter().all(|set| set & left == 0 || set & right == 0);
                apart && whole(left) && whole(right)
            });
            if connects {
                merge(&mut joined, mask);
                self.predicates.push((predicate, mask));
            } else {
                self.late.push(predicate);
            }
        }
    }

    /// The base units that each side of an equality reads, where both read some and none is read by
    /// both.
    fn sides(&self, predicate: &Expr) -> Option<(Set, Set)> {
        let Expr::Call { function, args } = predicate else { return None };
        let ([left, right], "eq") = (args.as_slice(), &**function) else { return None };
        let (left, right) =
            (self.mask(left.fields().into_iter()), self.mask(right.fields().into_iter()));
        let usable =
            left != 0 && right != 0 && left & right == 0 && (left | right) & !self.bases == 0;
        usable.then_some((left, right))
    }

    /// Two fields of base units that a predicate makes equal.
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

    fn unite(&mut self, a: Name, b: Name) {
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

    /// Fields of one unit that a class makes equal are compared there: joins test one field a side.
    fn compare_within_units(&mut self) {
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
                        std::mem::replace(relation, Relation::nothing()).filtered(vec![equal]);
                }
            }
        }
    }

    /// Notes of which units the fields of each class are.
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

    /// What joins two sets of units: equalities of classes, and predicates that neither set could
    /// test alone.
    fn conditions(&self, left: Set, right: Set) -> Vec<Expr> {
        let mut conditions = Vec::new();
        for class in &self.members {
            if class.units & left == 0 || class.units & right == 0 {
                continue;
            }
            let first = |set: Set| class.fields.iter().find(|(unit, _)| unit & set != 0);
            if let (Some((_, a)), Some((_, b))) = (first(left), first(right)) {
                conditions
                    .push(Expr::call("eq", vec![Expr::Field(a.clone()), Expr::Field(b.clone())]));
            }
        }
        let both = left | right;
        for (predicate, mask) in &self.predicates {
            let hangs = right & self.hanging == right;
            if mask & !both == 0 && mask & !left != 0 && (mask & !right != 0 || hangs) {
                conditions.push(predicate.clone());
            }
        }
        conditions
    }

    /// Joins two sets, if they can be; `cross` allows it without a condition, `known` is the set's
    /// profile. One that costs no less than `bound` is of no interest.
    fn combine(
        &self,
        left: (Set, &Candidate),
        right: (Set, &Candidate),
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
        if let Some(Unit::Hanging { kind, conditions, mark, required, .. }) =
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
        // A relation of one tuple multiplies nothing.
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

    /// The fields of a joined set that joining it to others may read. There may be thousands of
    /// sets, each with what is believed of its fields.
    fn needed(&self, set: Set) -> HashSet<Name> {
        let mut needed = HashSet::new();
        for class in self.members.iter().filter(|class| class.units & !set != 0) {
            let first = class.fields.iter().find(|(unit, _)| unit & set != 0);
            needed.extend(first.map(|(_, name)| name.clone()));
        }
        for (predicate, _) in self.predicates.iter().filter(|(_, mask)| mask & !set != 0) {
            needed.extend(predicate.fields());
        }
        for (position, unit) in self.units.iter().enumerate() {
            if let Unit::Hanging { conditions, .. } = unit
                && set & (1 << position) == 0
            {
                needed.extend(conditions.iter().flat_map(Expr::fields));
            }
        }
        needed
    }

    fn has_base(&self, set: Set) -> bool {
        set & self.bases != 0
    }

    /// All units.
    fn all(&self) -> Set {
        self.bases | self.hanging
    }

    fn solve(mut self) -> Result<Relation> {
        let late = std::mem::take(&mut self.late);
        self.index_classes();
        let best = self.best();
        let full = self.all();
        let mut units: Vec<Option<Unit>> =
            std::mem::take(&mut self.units).into_iter().map(Some).collect();
        Ok(self.tree(full, &best, &mut units)?.filtered(late))
    }

    /// The relation of a set of units. It is an error if no tree was found of it: never is a unit
    /// left out.
    fn tree(&self, set: Set, best: &Best, units: &mut [Option<Unit>]) -> Result<Relation> {
        let split = best.get(&set).and_then(|candidate| candidate.split);
        let Some((left, right)) = split else {
            let alone = set.is_power_of_two().then(|| set.trailing_zeros() as usize);
            return match alone.and_then(|unit| units.get_mut(unit)).and_then(Option::take) {
                Some(Unit::Base(relation) | Unit::Hanging { right: relation, .. }) => Ok(relation),
                None => Err(Error::internal("no order was found for the joins")),
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
        let hanging = right.is_power_of_two()
            && matches!(
                units.get(right.trailing_zeros() as usize),
                Some(Some(Unit::Hanging { .. }))
            );
        if hanging {
            let unit = units.get_mut(right.trailing_zeros() as usize).and_then(Option::take);
            let Some(Unit::Hanging { kind, right, conditions: own, mark, null_aware, .. }) = unit
            else {
                return Err(Error::internal("a relation was joined twice"));
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
