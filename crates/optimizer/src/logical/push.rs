//! Predicate pushdown.
//!
//! Only predicates that cannot raise errors move; others stay where they were written, behind the
//! predicates before them. An outer join becomes an inner join if a predicate rejects its NULLs.
//! Equalities between the sides of inner joins always become join conditions, regardless of the
//! enabled rules: without keys, a join compares all pairs.

use std::collections::HashSet;

use tessera_plan::{Expr, Rule, Scalar};
use tessera_types::{Field, Tuple};

use crate::logical::as_of::AsOf;
use crate::logical::relation::{
    Aggregate, Join, Kind, Name, Relation, covered, inline, parameters, substitute,
};
use crate::logical::strict::rejecting_fields;
use crate::logical::types::Types;
use crate::logical::window::Window;

/// Moves all predicates as far down as possible.
pub(crate) fn push_down(relation: Relation, types: Types<'_>) -> Relation {
    PushDown { types }.push(relation, Vec::new())
}

struct PushDown<'a> {
    types: Types<'a>,
}

impl PushDown<'_> {
    fn raises(&self, expr: &Expr) -> bool {
        self.types.must_stay(expr)
    }

    /// Returns an empty relation with the same fields; `None` if the type of a field is unknown.
    fn empty(&self, relation: &Relation) -> Option<Relation> {
        let field =
            |name: Name| Some(Field::nullable(name.clone(), self.types.atoms.get(&name)?.clone()));
        let fields = relation.names().into_iter().map(field).collect::<Option<Vec<_>>>()?;
        Some(Relation::Values { tuple: Tuple::new(fields), rows: Vec::new() })
    }

    fn uses(&self, rule: Rule) -> bool {
        self.types.uses(rule)
    }

    /// Pushes predicates that cannot raise errors into a relation.
    fn push(&self, relation: Relation, incoming: Vec<Expr>) -> Relation {
        if self.uses(Rule::EmptyFilter)
            && incoming.iter().any(is_never_true)
            && let Some(empty) = self.empty(&relation)
        {
            return empty;
        }
        match relation {
            Relation::Filter { input, predicates } => {
                let all = self.types.conjuncts(predicates);
                let (stay, mut go): (Vec<Expr>, Vec<Expr>) =
                    all.into_iter().partition(|predicate| self.raises(predicate));
                go.extend(incoming);
                self.push(*input, go).filtered(stay)
            }
            Relation::Scan { table, columns, mut predicates }
                if self.uses(Rule::PushFilterScan) =>
            {
                for predicate in incoming {
                    if !predicates.contains(&predicate) {
                        predicates.push(predicate);
                    }
                }
                Relation::Scan { table, columns, predicates }
            }
            Relation::Map { input, exprs } if self.uses(Rule::PushFilterMap) => {
                self.through_map(*input, exprs, incoming)
            }
            Relation::Join(join) => self.through_join(*join, incoming),
            Relation::AsOf(join) => self.through_as_of(*join, incoming),
            Relation::Aggregate(aggregate) if self.uses(Rule::PushFilterAggregate) => {
                self.through_aggregate(*aggregate, incoming)
            }
            Relation::Window(window) if self.uses(Rule::PushFilterWindow) => {
                self.through_window(*window, incoming)
            }
            Relation::Sort { input, keys, offset: 0, limit: None }
                if self.uses(Rule::PushFilterSort) =>
            {
                let input = Box::new(self.push(*input, incoming));
                Relation::Sort { input, keys, offset: 0, limit: None }
            }
            Relation::Limit { input, offset, limit: Some(limit) }
                if self.uses(Rule::FirstOfSort) && is_sorted(&input) =>
            {
                self.push(first_of_sort(*input, offset, limit), Vec::new()).filtered(incoming)
            }
            Relation::Union { inputs, names } if self.uses(Rule::PushFilterUnion) => {
                let inputs = inputs
                    .into_iter()
                    .map(|(input, given)| {
                        let renamed = incoming.iter().cloned().map(|mut predicate| {
                            substitute(&mut predicate, &|name| {
                                let position = names.iter().position(|known| known == name)?;
                                given.get(position).cloned().map(Expr::Field)
                            });
                            predicate
                        });
                        (self.push(input, renamed.collect()), given)
                    })
                    .collect();
                Relation::Union { inputs, names }
            }
            Relation::Unnest { input, lists, outer } if self.uses(Rule::PushFilterUnnest) => {
                let (go, stay): (Vec<Expr>, Vec<Expr>) =
                    incoming.into_iter().partition(|predicate| {
                        let fields = predicate.fields();
                        !lists.iter().any(|(list, element)| {
                            fields.contains(element) || fields.contains(list)
                        })
                    });
                Relation::Unnest { input: Box::new(self.push(*input, go)), lists, outer }
                    .filtered(stay)
            }
            mut other => {
                for input in other.inputs_mut() {
                    let taken = std::mem::replace(input, Relation::placeholder());
                    *input = self.push(taken, Vec::new());
                }
                other.filtered(incoming)
            }
        }
    }

    fn through_map(
        &self,
        input: Relation,
        exprs: Vec<(Name, Expr)>,
        incoming: Vec<Expr>,
    ) -> Relation {
        let (mut go, mut stay) = (Vec::new(), Vec::new());
        for predicate in incoming {
            let mut below = predicate.clone();
            inline(&mut below, &exprs);
            if exprs.iter().any(|(_, expr)| !matches!(expr, Expr::Field(_))) {
                below = self.types.simplified(below);
            }
            let is_true = matches!(below, Expr::Constant(Scalar::Boolean(true), _));
            if self.raises(&below) {
                stay.push(predicate);
            } else if !is_true {
                go.push(below);
            }
        }
        Relation::Map { input: Box::new(self.push(input, go)), exprs }.filtered(stay)
    }

    fn through_aggregate(&self, mut aggregate: Aggregate, incoming: Vec<Expr>) -> Relation {
        let keys: HashSet<Name> = aggregate.keys.iter().map(|(name, _)| name.clone()).collect();
        let (mut go, mut stay) = (Vec::new(), Vec::new());
        for predicate in incoming {
            let mut below = predicate.clone();
            inline(&mut below, &aggregate.keys);
            let passes = aggregate.sets.is_none()
                && !keys.is_empty()
                && !predicate.fields().is_empty()
                && covered(&predicate, &keys)
                && !self.raises(&below);
            if passes { go.push(below) } else { stay.push(predicate) }
        }
        aggregate.input = self.push(aggregate.input, go);
        Relation::Aggregate(Box::new(aggregate)).filtered(stay)
    }

    /// Pushes the predicates that keep or drop whole partitions.
    fn through_window(&self, mut window: Window, incoming: Vec<Expr>) -> Relation {
        let keys: HashSet<Name> = window.partition_fields().cloned().collect();
        let (go, stay) = incoming
            .into_iter()
            .partition(|predicate| !predicate.fields().is_empty() && covered(predicate, &keys));
        window.input = self.push(window.input, go);
        if self.uses(Rule::FirstOfPartitions) {
            window.limit = first_of_partitions(&window, &stay);
        }
        Relation::Window(Box::new(window)).filtered(stay)
    }

    /// Pushes the predicates on the left side; those on keys also hold for the matches.
    fn through_as_of(&self, mut join: AsOf, incoming: Vec<Expr>) -> Relation {
        let right: HashSet<Name> = join.right.names().into_iter().collect();
        let rejects = |predicate: &Expr| !rejecting_fields(predicate).is_disjoint(&right);
        if self.uses(Rule::OuterToInner) && incoming.iter().any(rejects) {
            join.outer = false;
        }
        let left: HashSet<Name> = join.left.names().into_iter().collect();
        let (to_left, stay): (Vec<Expr>, Vec<Expr>) = incoming.into_iter().partition(|predicate| {
            self.uses(Rule::PushFilterJoin)
                && !predicate.fields().is_empty()
                && covered(predicate, &left)
        });
        let other_side = |name: &Name| {
            let is_key = |(key, _): &&(Expr, Expr)| *key == Expr::Field(name.clone());
            match join.keys.iter().find(is_key) {
                Some((_, other @ Expr::Field(_))) => Some(other.clone()),
                _ => None,
            }
        };
        let to_right = of_equal_fields(&to_left, &other_side);
        join.left = self.push(join.left, to_left);
        join.right = self.push(join.right, to_right);
        Relation::AsOf(Box::new(join)).filtered(stay)
    }

    fn through_join(&self, mut join: Join, incoming: Vec<Expr>) -> Relation {
        if self.uses(Rule::OuterToAnti) && keeps_unmatched(&join, &incoming) {
            return self.through_anti_join(join, incoming);
        }
        if self.uses(Rule::OuterToInner) {
            reject_nulls(&mut join, &incoming);
        }
        let left: HashSet<Name> = join.left.names().into_iter().collect();
        let right: HashSet<Name> = join.right.names().into_iter().collect();
        let moves = |predicate: &Expr| self.uses(Rule::PushFilterJoin) || is_key(predicate);
        let (mut to_left, mut to_right, mut stay) = (Vec::new(), Vec::new(), Vec::new());
        for condition in self.types.conjuncts(std::mem::take(&mut join.conditions)) {
            let constant = condition.fields().is_empty();
            let safe =
                moves(&condition) && !constant && !self.raises(&condition) && !join.null_aware;
            let into_left =
                matches!(join.kind, Kind::Inner | Kind::Semi) && covered(&condition, &left);
            let into_right = join.kind != Kind::Full && covered(&condition, &right);
            if safe && into_left {
                to_left.push(condition);
            } else if safe && into_right {
                to_right.push(condition);
            } else {
                join.conditions.push(condition);
            }
        }
        for predicate in incoming {
            let constant = predicate.fields().is_empty() || !moves(&predicate);
            if join.kind != Kind::Full && !constant && covered(&predicate, &left) {
                to_left.push(predicate);
            } else if join.kind == Kind::Inner && !constant && covered(&predicate, &right) {
                to_right.push(predicate);
            } else if join.kind == Kind::Inner && !constant {
                join.conditions.push(predicate);
            } else {
                stay.push(predicate);
            }
        }
        if join.kind == Kind::Inner && self.uses(Rule::ImpliedPredicates) {
            for condition in &join.conditions {
                to_left.extend(self.implied(condition, &left));
                to_right.extend(self.implied(condition, &right));
            }
        }
        let keeps_left = matches!(join.kind, Kind::Left | Kind::Semi | Kind::Anti);
        if keeps_left && self.uses(Rule::ImpliedPredicates) {
            to_right.extend(self.of_matches(&join, &to_left, &right));
        }
        join.left = self.push(join.left, to_left);
        join.right = self.push(join.right, to_right);
        self.sink(join).filtered(stay)
    }

    /// Turns a left join of which only the tuples without a match remain into an anti join. The
    /// fields of its right side are NULL.
    fn through_anti_join(&self, mut join: Join, incoming: Vec<Expr>) -> Relation {
        let mut exprs: Vec<(Name, Expr)> =
            join.left.names().into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
        for name in join.right.names() {
            let Some(atom) = self.types.atoms.get(&name) else {
                return Relation::Join(Box::new(join)).filtered(incoming);
            };
            exprs.push((name, Expr::Constant(Scalar::Null, atom.clone())));
        }
        join.kind = Kind::Anti;
        let input = Box::new(Relation::Join(Box::new(join)));
        self.push(Relation::Map { input, exprs }, incoming)
    }

    /// Moves a semi or anti join below maps and filters, next to the joins with which it can be
    /// ordered.
    fn sink(&self, mut join: Join) -> Relation {
        let filters = matches!(join.kind, Kind::Semi | Kind::Anti) && !join.correlated;
        if !filters
            || !self.uses(Rule::SinkSemiJoins)
            || !over_join(&join.left)
            || join.conditions.iter().any(|condition| self.raises(condition))
        {
            return Relation::Join(Box::new(join));
        }
        match join.left {
            Relation::Filter { input, predicates } => {
                join.left = *input;
                self.sink(join).filtered(predicates)
            }
            Relation::Map { input, exprs } => {
                let conditions = join.conditions.iter().cloned().map(|mut condition| {
                    inline(&mut condition, &exprs);
                    condition
                });
                let below: Vec<Expr> = conditions.collect();
                if below.iter().any(|condition| self.raises(condition)) {
                    join.left = Relation::Map { input, exprs };
                    return Relation::Join(Box::new(join));
                }
                join.left = *input;
                join.conditions = below;
                Relation::Map { input: Box::new(self.sink(join)), exprs }
            }
            left => {
                join.left = left;
                Relation::Join(Box::new(join))
            }
        }
    }

    /// Returns what holds for all right tuples with a match, because it holds for the left tuples.
    fn of_matches(&self, join: &Join, to_left: &[Expr], right: &HashSet<Name>) -> Vec<Expr> {
        if join.null_aware || join.correlated {
            return Vec::new();
        }
        let atom = |name: &Name| self.types.atoms.get(name).filter(|atom| !atom.is_float());
        let other_side = |name: &Name| {
            let equal = join.conditions.iter().find_map(|condition| match condition {
                Expr::Call { function, args } if &**function == "eq" => match args.as_slice() {
                    [Expr::Field(a), Expr::Field(b)] if a == name => Some(b),
                    [Expr::Field(a), Expr::Field(b)] if b == name => Some(a),
                    _ => None,
                },
                _ => None,
            })?;
            let is_same =
                right.contains(equal) && atom(name).is_some() && atom(name) == atom(equal);
            is_same.then(|| Expr::Field(equal.clone()))
        };
        of_equal_fields(to_left, &other_side)
    }

    /// Returns the predicate on one side that a disjunction over both sides implies.
    fn implied(&self, condition: &Expr, side: &HashSet<Name>) -> Option<Expr> {
        let Expr::Or(branches) = condition else { return None };
        if self.raises(condition) {
            return None;
        }
        let mut implied = Vec::new();
        for branch in branches {
            let own: Vec<Expr> = branch
                .conjuncts()
                .into_iter()
                .filter(|part| {
                    !part.fields().is_empty() && parameters(part).is_empty() && covered(part, side)
                })
                .collect();
            if own.is_empty() {
                return None;
            }
            implied.push(Expr::all(own));
        }
        Some(Expr::Or(implied))
    }
}

/// Whether the relation is a join below maps and filters only.
fn over_join(relation: &Relation) -> bool {
    match relation {
        Relation::Filter { input, .. } | Relation::Map { input, .. } => over_join(input),
        Relation::Join(_) => true,
        _ => false,
    }
}

/// Whether a predicate can be a join key: an equality of expressions over different fields.
fn is_key(predicate: &Expr) -> bool {
    let Expr::Call { function, args } = predicate else { return false };
    let ([a, b], "eq" | "is_not_distinct") = (args.as_slice(), &**function) else { return false };
    let (a, b) = (a.fields(), b.fields());
    !a.is_empty() && !b.is_empty() && !a.iter().any(|name| b.contains(name))
}

/// Returns the upper bound that predicates set for `row_number`, if tuples beyond it do not matter
/// to the calls of the window.
fn first_of_partitions(window: &Window, predicates: &[Expr]) -> Option<u64> {
    let looks_back = |function: &str| matches!(function, "row_number" | "rank" | "dense_rank");
    if !window.calls.iter().all(|(_, call)| looks_back(&call.function)) {
        return None;
    }
    let is_number = |field: &Name| {
        let call = window.calls.iter().find(|(name, _)| name == field);
        call.is_some_and(|(_, call)| &*call.function == "row_number")
    };
    let bound = |predicate: &Expr| {
        let Expr::Call { function, args } = predicate else { return None };
        let [Expr::Field(field), Expr::Constant(Scalar::Integer(value), _)] = args.as_slice()
        else {
            return None;
        };
        let last = match &**function {
            "lt_eq" | "eq" => *value,
            "lt" => value.saturating_sub(1),
            _ => return None,
        };
        is_number(field).then(|| u64::try_from(last.max(0)).unwrap_or(u64::MAX))
    };
    predicates.iter().filter_map(bound).min()
}

/// Whether a predicate compares fields and constants, so that it is the same for equal values.
fn is_plain_comparison(predicate: &Expr) -> bool {
    let Expr::Call { function, args } = predicate else { return false };
    let is_plain = |arg: &Expr| matches!(arg, Expr::Field(_) | Expr::Constant(..));
    matches!(&**function, "eq" | "not_eq" | "lt" | "lt_eq" | "gt" | "gt_eq")
        && args.iter().all(is_plain)
}

/// Returns the comparisons among the predicates whose fields all have an equal one, with that one.
fn of_equal_fields(predicates: &[Expr], equal: &dyn Fn(&Name) -> Option<Expr>) -> Vec<Expr> {
    let comparisons = predicates.iter().filter(|predicate| is_plain_comparison(predicate));
    let known =
        comparisons.filter(|predicate| predicate.fields().iter().all(|f| equal(f).is_some()));
    known
        .cloned()
        .map(|mut predicate| {
            substitute(&mut predicate, equal);
            predicate
        })
        .collect()
}

/// Turns an outer join into a stricter one if a predicate above rejects its NULLs.
fn reject_nulls(join: &mut Join, incoming: &[Expr]) {
    let rejected: HashSet<Name> = incoming.iter().flat_map(rejecting_fields).collect();
    let rejects = |side: &Relation| side.names().iter().any(|name| rejected.contains(name));
    match (join.kind, rejects(&join.left), rejects(&join.right)) {
        (Kind::Left, _, true) | (Kind::Full, true, true) => join.kind = Kind::Inner,
        (Kind::Full, true, false) => join.kind = Kind::Left,
        (Kind::Full, false, true) => {
            std::mem::swap(&mut join.left, &mut join.right);
            join.kind = Kind::Left;
        }
        _ => {}
    }
}

/// Whether predicates above a left join drop all matches: one of them requires NULL in a field of
/// the right side that an equality of the join compares.
fn keeps_unmatched(join: &Join, predicates: &[Expr]) -> bool {
    if join.kind != Kind::Left || join.correlated {
        return false;
    }
    let right: HashSet<Name> = join.right.names().into_iter().collect();
    let compared = |field: &Name| {
        join.conditions.iter().any(|condition| {
            let Expr::Call { function, args } = condition else { return false };
            &**function == "eq" && args.contains(&Expr::Field(field.clone()))
        })
    };
    predicates.iter().any(|predicate| {
        let Expr::IsNull(value) = predicate else { return false };
        matches!(&**value, Expr::Field(field) if right.contains(field) && compared(field))
    })
}

/// Merges a limit into the sort below it; only maps are in between.
fn first_of_sort(input: Relation, offset: u64, limit: u64) -> Relation {
    match input {
        Relation::Sort { input, keys, offset: 0, limit: None } => {
            Relation::Sort { input, keys, offset, limit: Some(limit) }
        }
        Relation::Map { input, exprs } if is_sorted(&input) => {
            Relation::Map { input: Box::new(first_of_sort(*input, offset, limit)), exprs }
        }
        other => Relation::Limit { input: Box::new(other), offset, limit: Some(limit) },
    }
}

fn is_sorted(relation: &Relation) -> bool {
    match relation {
        Relation::Sort { offset: 0, limit: None, .. } => true,
        Relation::Map { input, .. } => is_sorted(input),
        _ => false,
    }
}

/// Whether a predicate is constant false or NULL.
fn is_never_true(predicate: &Expr) -> bool {
    matches!(predicate, Expr::Constant(Scalar::Boolean(false) | Scalar::Null, _))
}
