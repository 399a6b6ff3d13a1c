//! Groups before joins: where the arguments of a grouping come from one input of the joins below
//! it, that input is first grouped by the fields that the joins and the keys read (Yan and Larson,
//! Eager Aggregation and Lazy Aggregation, 1995). The joins and the grouping then see few groups
//! instead of many tuples.
//!
//! A group takes part in a join like each of its tuples, since it has the fields that the join
//! reads. So all tuples of a group find the same partners, and the grouping merges the aggregates.
//! The condition of an aggregate (`sum(CASE WHEN day = 'Sunday' THEN price END)`) may read fields
//! of another input: it then chooses among the groups.

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Rule};
use tessera_types::Atom;

use crate::logical::conditions_of_calls::Condition;
use crate::logical::estimate::{Estimates, Profile};
use crate::logical::fields::Fields;
use crate::logical::parts::Parts;
use crate::logical::relation::{Aggregate, Call, Join, Kind, Name, Relation, inline, parameters};
use crate::merging::Merging;

/// The fewest tuples that are worth a grouping of their own.
const TUPLES_MIN: f64 = 50_000.0;
/// The largest number of groups for each tuple.
const GROUPS_OF_TUPLES_MAX: f64 = 0.4;
/// The smallest share of the cost that must be saved: estimates of groups are often too low.
const SAVED_MIN: f64 = 0.25;
/// The cost of a tuple in a grouping or a join, and of each field that it hashes or passes on.
const GROUP_COST: f64 = 2.0;
const JOIN_COST: f64 = 4.0;
const FIELD_COST: f64 = 1.5;
const STRING_COST: f64 = 4.0;
/// The cost of a tuple in a grouping with so many groups that they leave the processor's caches.
const FAR_COST: f64 = 5.0;
const FAR_GROUPS: f64 = 50_000.0;

/// The estimates of the relations below a grouping, by their addresses.
type Profiles = HashMap<*const Relation, Profile>;

/// A place for a grouping: an input of a join.
struct Place {
    /// The way from the grouping down to the place.
    path: Vec<Step>,
    keys: Vec<Name>,
    /// The calls over the fields of the place.
    calls: Vec<(Name, Call)>,
    /// The conditions of some calls, which are asked above.
    conditions: HashMap<Name, Condition>,
    saved: f64,
}

/// A step from a relation to one of its inputs.
#[derive(Debug, Clone)]
struct Step {
    /// The position of the input.
    input: usize,
    /// The fields that the grouping reads, but for those of the calls.
    read: HashSet<Name>,
}

/// A relation below a grouping, on the way down from it.
struct Descent<'r> {
    relation: &'r Relation,
    path: Vec<Step>,
    /// The fields that are read above, but for those of the calls.
    read: HashSet<Name>,
    calls: Vec<(Name, Call)>,
    /// The cost of what stands above.
    cost: f64,
}

impl Fields<'_> {
    /// Groups the inputs of joins where the estimated cost is lower.
    pub(crate) fn group_early(
        &mut self,
        mut relation: Relation,
        estimates: &Estimates,
    ) -> Relation {
        if !self.types().uses(Rule::GroupEarly) {
            return relation;
        }
        // The right side of a correlated join runs for each left tuple, a step for each iteration.
        let once = match &relation {
            Relation::Join(join) if join.correlated => 1,
            Relation::Recursive(_) => 1,
            _ => usize::MAX,
        };
        for input in relation.inputs_mut().into_iter().take(once) {
            let taken = std::mem::replace(input, Relation::placeholder());
            *input = self.group_early(taken, estimates);
        }
        let Relation::Aggregate(mut aggregate) = relation else { return relation };
        if let Some(place) = self.best_place(&aggregate, estimates) {
            self.group_at(&mut aggregate, place);
        }
        Relation::Aggregate(aggregate)
    }

    /// Groups the input at a place, and lets the grouping above merge the groups.
    fn group_at(&mut self, aggregate: &mut Aggregate, place: Place) {
        let Place { path, keys, calls, mut conditions, .. } = place;
        let merged = calls.into_iter().map(|(name, call)| Some((name, self.merging(&call)?, call)));
        let Some(merged) = merged.collect::<Option<Vec<(Name, Merging, Call)>>>() else { return };
        let Parts { parts, merging } = self.split_calls(merged);
        for (name, merge, atom) in merging {
            if let Some((_, call)) = aggregate.calls.iter_mut().find(|(known, _)| *known == name) {
                *call = merge;
                if let Some(condition) = conditions.remove(&name) {
                    condition.restrict(call, &atom);
                }
            }
        }
        let passed: Vec<Name> = parts.iter().map(|(name, _)| name.clone()).collect();
        replace_below(&mut aggregate.input, &path, &passed, |input| {
            let keys = keys.into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
            let groups = Aggregate { input, keys, sets: None, grouping: None, calls: parts };
            Relation::Aggregate(Box::new(groups))
        });
    }

    /// Returns the place that saves the most, if it saves enough.
    fn best_place(&self, aggregate: &Aggregate, estimates: &Estimates) -> Option<Place> {
        if aggregate.keys.is_empty() || !has_join(&aggregate.input) {
            return None;
        }
        if aggregate.keys.iter().any(|(_, expr)| self.types().volatile(expr)) {
            return None;
        }
        let profiles = estimates.profiles_of_all(&aggregate.input);
        let whole = self.place_for(aggregate, &profiles, aggregate.calls.clone(), HashMap::new());
        let mut conditions = HashMap::new();
        let mut calls = aggregate.calls.clone();
        for (name, call) in &mut calls {
            if let Some((of_all, condition)) = Condition::split(call)
                && !self.types().volatile(&condition.when)
            {
                *call = of_all;
                conditions.insert(name.clone(), condition);
            }
        }
        if conditions.is_empty() {
            return whole;
        }
        let split = self.place_for(aggregate, &profiles, calls, conditions);
        whole.into_iter().chain(split).max_by(|a, b| a.saved.total_cmp(&b.saved))
    }

    /// Returns the best place for these calls.
    fn place_for(
        &self,
        aggregate: &Aggregate,
        profiles: &Profiles,
        calls: Vec<(Name, Call)>,
        conditions: HashMap<Name, Condition>,
    ) -> Option<Place> {
        if !calls.iter().all(|(_, call)| self.merging(call).is_some() && self.may_move(call)) {
            return None;
        }
        let rows = profiles.get(&std::ptr::from_ref(&aggregate.input))?.rows;
        let keys = aggregate.keys.iter().map(|(_, expr)| self.atom_of(expr).ok());
        let sets = aggregate.sets.as_ref().map_or(1, Vec::len).min(2) as f64;
        let key_cost: f64 = keys.map(|atom| atom.as_ref().map_or(FIELD_COST, field_cost)).sum();
        let asked = conditions.values().map(|condition| &condition.when);
        let mut descent = Descent {
            relation: &aggregate.input,
            path: Vec::new(),
            read: aggregate
                .keys
                .iter()
                .map(|(_, expr)| expr)
                .chain(asked)
                .flat_map(Expr::fields)
                .collect(),
            calls,
            cost: rows * sets * (GROUP_COST + key_cost),
        };
        let mut best: Option<Place> = None;
        while let Some(next) = self.descend(descent, profiles) {
            descent = next;
            if let Some(place) = self.place(&descent, profiles)
                && best.as_ref().is_none_or(|best| place.saved > best.saved)
            {
                best = Some(place);
            }
        }
        best.map(|place| Place { conditions, ..place })
    }

    /// Goes down to the input that the calls read. Returns `None` at the end, or if the calls
    /// cannot be computed further down.
    fn descend<'r>(&self, from: Descent<'r>, profiles: &Profiles) -> Option<Descent<'r>> {
        let Descent { relation, mut path, mut read, mut calls, mut cost } = from;
        let above = read.clone();
        let (position, relation) = match relation {
            Relation::Filter { input, predicates } => {
                if predicates.iter().any(|predicate| self.types().volatile(predicate)) {
                    return None;
                }
                read.extend(predicates.iter().flat_map(Expr::fields));
                (0, &**input)
            }
            Relation::Map { input, exprs } => {
                let is_volatile = exprs.iter().any(|(_, expr)| self.types().volatile(expr));
                if is_volatile {
                    return None;
                }
                for expr in calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()) {
                    inline(expr, exprs);
                }
                if !calls.iter().all(|(_, call)| self.may_move(call)) {
                    return None;
                }
                let kept = exprs.iter().filter(|(name, _)| read.contains(name));
                read = kept.flat_map(|(_, expr)| expr.fields()).collect();
                (0, &**input)
            }
            Relation::Join(join) => {
                let position = self.side(join, &calls, profiles)?;
                read.extend(join.conditions.iter().flat_map(Expr::fields));
                let (input, other) = match position {
                    0 => (&join.left, &join.right),
                    _ => (&join.right, &join.left),
                };
                let passed = other.names().into_iter().filter(|name| read.contains(name));
                let fields: f64 = passed.map(|name| self.name_cost(&name)).sum();
                // A filter of the join's keys drops what finds no match, but not below a grouping.
                let met = rows(profiles, relation).min(rows(profiles, input));
                cost += met * (JOIN_COST + fields);
                (position, input)
            }
            _ => return None,
        };
        path.push(Step { input: position, read: above });
        Some(Descent { relation, path, read, calls, cost })
    }

    /// Returns the side of a join that the calls read, if its tuples can be grouped before.
    fn side(&self, join: &Join, calls: &[(Name, Call)], profiles: &Profiles) -> Option<usize> {
        let is_volatile = |condition: &Expr| self.types().volatile(condition);
        if join.correlated || join.conditions.iter().any(is_volatile) {
            return None;
        }
        let exprs = calls.iter().flat_map(|(_, call)| call.exprs());
        let args: HashSet<Name> = exprs.flat_map(Expr::fields).collect();
        let has_all = |side: &Relation| {
            let names: HashSet<Name> = side.names().into_iter().collect();
            args.iter().all(|name| names.contains(name))
        };
        match join.kind {
            Kind::Inner if args.is_empty() => {
                Some(usize::from(rows(profiles, &join.left) < rows(profiles, &join.right)))
            }
            Kind::Inner if has_all(&join.right) => Some(1),
            Kind::Inner | Kind::Left | Kind::Semi | Kind::Anti if has_all(&join.left) => Some(0),
            _ => None,
        }
    }

    /// Returns a place for a grouping here, if it pays.
    fn place(&self, descent: &Descent<'_>, profiles: &Profiles) -> Option<Place> {
        let names = descent.relation.names();
        let keys: Vec<Name> =
            names.into_iter().filter(|name| descent.read.contains(name)).collect();
        if keys.is_empty() || !keys.iter().all(|name| self.identifies(name)) {
            return None;
        }
        let profile = profiles.get(&std::ptr::from_ref(descent.relation))?;
        let share = groups(profile, &keys) / profile.rows.max(1.0);
        if profile.rows < TUPLES_MIN || share > GROUPS_OF_TUPLES_MAX {
            return None;
        }
        let far = if share * profile.rows > FAR_GROUPS { FAR_COST } else { 0.0 };
        let each = GROUP_COST + far + keys.iter().map(|name| self.name_cost(name)).sum::<f64>();
        let saved = descent.cost * (1.0 - share) - profile.rows * each;
        (saved > descent.cost * SAVED_MIN).then(|| Place {
            path: descent.path.clone(),
            keys,
            calls: descent.calls.clone(),
            conditions: HashMap::new(),
            saved,
        })
    }

    /// Returns how to merge a call from those of groups of fixed size.
    fn merging(&self, call: &Call) -> Option<Merging> {
        let args = call.args.iter().map(|arg| self.atom_of(arg).ok());
        let args: Vec<Atom> = args.collect::<Option<_>>()?;
        let merging = Merging::exact(call, &args, &self.call_atom(call)?)?;
        let is_small = matches!(&*call.function, "count")
            || args.iter().all(|atom| atom.width_bytes().is_some() && !atom.is_stored_as_text());
        is_small.then_some(merging)
    }

    /// Whether a call may be computed for tuples that the joins above would drop.
    fn may_move(&self, call: &Call) -> bool {
        call.exprs().all(|expr| parameters(expr).is_empty() && !self.types().must_stay(expr))
    }

    /// Whether equal values of a field cannot be told apart. Equal floats can, such as the zeros,
    /// and equal intervals.
    fn identifies(&self, name: &Name) -> bool {
        self.atoms().get(name).is_some_and(|atom| {
            atom.is_integer()
                || matches!(atom, Atom::Boolean | Atom::Decimal(..) | Atom::Date)
                || atom.is_stored_as_text()
        })
    }

    fn name_cost(&self, name: &Name) -> f64 {
        self.atoms().get(name).map_or(FIELD_COST, field_cost)
    }
}

fn rows(profiles: &Profiles, relation: &Relation) -> f64 {
    profiles.get(&std::ptr::from_ref(relation)).map_or(0.0, |profile| profile.rows)
}

fn field_cost(atom: &Atom) -> f64 {
    match atom {
        Atom::Bytes => STRING_COST,
        text if text.is_stored_as_text() => STRING_COST,
        _ => FIELD_COST,
    }
}

/// The largest number of groups: fields are taken as independent, because a number that is too low
/// costs more than one that is too high.
fn groups(profile: &Profile, keys: &[Name]) -> f64 {
    keys.iter().map(|name| profile.distinct(name)).product::<f64>().min(profile.rows.max(1.0))
}

/// Whether there is a join below computed columns and filters.
fn has_join(relation: &Relation) -> bool {
    match relation {
        Relation::Join(_) => true,
        Relation::Map { input, .. } | Relation::Filter { input, .. } => has_join(input),
        _ => false,
    }
}

/// Replaces the relation at the end of a path. Maps on the way pass these fields on, and lose those
/// that only the calls have read.
fn replace_below(
    relation: &mut Relation,
    path: &[Step],
    passed: &[Name],
    new: impl FnOnce(Relation) -> Relation,
) {
    let Some((step, rest)) = path.split_first() else {
        *relation = new(std::mem::replace(relation, Relation::placeholder()));
        return;
    };
    if let Relation::Map { exprs, .. } = relation {
        exprs.retain(|(name, _)| step.read.contains(name));
        exprs.extend(passed.iter().map(|name| (name.clone(), Expr::Field(name.clone()))));
    }
    if let Some(input) = relation.inputs_mut().into_iter().nth(step.input) {
        replace_below(input, rest, passed, new);
    }
}
