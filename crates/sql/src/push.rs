//! Predicates moved to where they first can be tested.
//!
//! Only predicates that cannot raise move; one that can stays where it was written, behind what stood before it. An outer
//! join whose added NULLs a predicate rejects becomes an inner one.

use std::collections::HashSet;

use tessera_plan::{Expr, Scalar};

use crate::raise::Types;
use crate::relation::{Aggregate, Join, Kind, Name, Relation, covered, inline, parameters, substitute};

/// The relation with all its predicates as far down as they can be.
pub(crate) fn push_down(relation: Relation, types: Types<'_>) -> Relation {
    Push { types }.push(relation, Vec::new())
}

struct Push<'a> {
    types: Types<'a>,
}

impl Push<'_> {
    fn raises(&self, expr: &Expr) -> bool {
        self.types.stays(expr)
    }

    /// Pushes predicates, none of which can raise, into a relation.
    fn push(&self, relation: Relation, incoming: Vec<Expr>) -> Relation {
        match relation {
            Relation::Filter { input, predicates } => {
                let mut all: Vec<Expr> =
                    predicates.iter().flat_map(Expr::conjuncts).flat_map(factored).collect();
                all.retain(|predicate| !matches!(predicate, Expr::Constant(Scalar::Boolean(true), _)));
                let (stay, mut go): (Vec<Expr>, Vec<Expr>) =
                    all.into_iter().partition(|predicate| self.raises(predicate));
                go.extend(incoming);
                self.push(*input, go).filtered(stay)
            }
            Relation::Scan { table, columns, mut predicates } => {
                for predicate in incoming {
                    if !predicates.contains(&predicate) {
                        predicates.push(predicate);
                    }
                }
                Relation::Scan { table, columns, predicates }
            }
            Relation::Map { input, exprs } => self.through_map(*input, exprs, incoming),
            Relation::Join(join) => self.through_join(*join, incoming),
            Relation::Aggregate(aggregate) => self.through_aggregate(*aggregate, incoming),
            Relation::Sort { input, keys, offset: 0, limit: None } => {
                let input = Box::new(self.push(*input, incoming));
                Relation::Sort { input, keys, offset: 0, limit: None }
            }
            Relation::Union { inputs, names } => {
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
            Relation::Unnest { input, lists, outer } => {
                let (go, stay): (Vec<Expr>, Vec<Expr>) = incoming.into_iter().partition(|predicate| {
                    let fields = predicate.fields();
                    !lists.iter().any(|(list, element)| fields.contains(element) || fields.contains(list))
                });
                Relation::Unnest { input: Box::new(self.push(*input, go)), lists, outer }.filtered(stay)
            }
            mut other => {
                for input in other.inputs_mut() {
                    let taken = std::mem::replace(input, Relation::nothing());
                    *input = self.push(taken, Vec::new());
                }
                other.filtered(incoming)
            }
        }
    }

    fn through_map(&self, input: Relation, exprs: Vec<(Name, Expr)>, incoming: Vec<Expr>) -> Relation {
        let (mut go, mut stay) = (Vec::new(), Vec::new());
        for predicate in incoming {
            let mut below = predicate.clone();
            inline(&mut below, &exprs);
            if exprs.iter().any(|(_, expr)| !matches!(expr, Expr::Field(_))) {
                below = self.types.simplified(below);
            }
            if self.raises(&below) { stay.push(predicate) } else { go.push(below) }
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

    fn through_join(&self, mut join: Join, incoming: Vec<Expr>) -> Relation {
        let left: HashSet<Name> = join.left.names().into_iter().collect();
        let right: HashSet<Name> = join.right.names().into_iter().collect();
        let rejects = |names: &HashSet<Name>| {
            incoming.iter().any(|predicate| strict_fields(predicate).iter().any(|name| names.contains(name)))
        };
        match join.kind {
            Kind::Left if rejects(&right) => join.kind = Kind::Inner,
            Kind::Full => match (rejects(&left), rejects(&right)) {
                (true, true) => join.kind = Kind::Inner,
                (true, false) => join.kind = Kind::Left,
                (false, true) => {
                    std::mem::swap(&mut join.left, &mut join.right);
                    join.kind = Kind::Left;
                    return self.through_join(join, incoming);
                }
                (false, false) => {}
            },
            _ => {}
        }
        let conditions: Vec<Expr> = std::mem::take(&mut join.conditions)
            .iter()
            .flat_map(Expr::conjuncts)
            .flat_map(factored)
            .collect();
        let (mut to_left, mut to_right, mut stay) = (Vec::new(), Vec::new(), Vec::new());
        for condition in conditions {
            let safe = !self.raises(&condition) && !join.null_aware;
            let constant = condition.fields().is_empty();
            let into_left = matches!(join.kind, Kind::Inner | Kind::Semi) && covered(&condition, &left);
            let into_right = join.kind != Kind::Full && covered(&condition, &right) && !constant;
            if matches!(condition, Expr::Constant(Scalar::Boolean(true), _)) {
                continue;
            } else if safe && into_left && !constant {
                to_left.push(condition);
            } else if safe && into_right {
                to_right.push(condition);
            } else {
                join.conditions.push(condition);
            }
        }
        for predicate in incoming {
            let constant = predicate.fields().is_empty();
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
        if join.kind == Kind::Inner {
            for condition in &join.conditions {
                to_left.extend(self.implied(condition, &left));
                to_right.extend(self.implied(condition, &right));
            }
        }
        join.left = self.push(join.left, to_left);
        join.right = self.push(join.right, to_right);
        self.sink(join).filtered(stay)
    }

    /// A semi or anti join moved below the maps and filters that keep it from the joins it could be ordered among.
    fn sink(&self, mut join: Join) -> Relation {
        let filters = matches!(join.kind, Kind::Semi | Kind::Anti) && !join.correlated;
        if !filters
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

    /// What a disjunction over both sides of a join implies for one side alone.
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

/// Whether only maps and filters stand between the relation and a join.
fn over_join(relation: &Relation) -> bool {
    match relation {
        Relation::Filter { input, .. } | Relation::Map { input, .. } => over_join(input),
        Relation::Join(_) => true,
        _ => false,
    }
}

/// Conjuncts that all branches of a disjunction share, and what is left of it.
fn factored(predicate: Expr) -> Vec<Expr> {
    let Expr::Or(branches) = predicate else { return vec![predicate] };
    let mut branches: Vec<Vec<Expr>> = branches.iter().map(Expr::conjuncts).collect();
    let Some((first, others)) = branches.split_first() else { return vec![Expr::boolean(false)] };
    let shared: Vec<Expr> =
        first.iter().filter(|part| others.iter().all(|branch| branch.contains(part))).cloned().collect();
    for branch in &mut branches {
        branch.retain(|part| !shared.contains(part));
    }
    let mut result = shared;
    // A branch of which nothing is left holds wherever the shared part does.
    if !branches.iter().any(Vec::is_empty) {
        result.push(Expr::Or(branches.into_iter().map(Expr::all).collect()));
    }
    result
}

/// Fields of which a NULL keeps the predicate from being true.
fn strict_fields(predicate: &Expr) -> HashSet<Name> {
    match predicate {
        Expr::Field(name) => HashSet::from([name.clone()]),
        Expr::Cast { input, .. } => strict_fields(input),
        Expr::And(list) => list.iter().flat_map(strict_fields).collect(),
        Expr::Or(list) => {
            let mut sets = list.iter().map(strict_fields);
            let first = sets.next().unwrap_or_default();
            sets.fold(first, |shared, set| shared.intersection(&set).cloned().collect())
        }
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(value) => strict_fields(value),
            Expr::Call { .. } | Expr::Field(_) => strict_fields(inner),
            _ => HashSet::new(),
        },
        Expr::Call { function, args } if is_strict(function) => args.iter().flat_map(strict_fields).collect(),
        _ => HashSet::new(),
    }
}

/// Functions that give NULL for a NULL argument.
fn is_strict(function: &str) -> bool {
    matches!(
        function,
        "eq" | "not_eq"
            | "lt"
            | "lt_eq"
            | "gt"
            | "gt_eq"
            | "like"
            | "ilike"
            | "regex"
            | "iregex"
            | "similar"
            | "add"
            | "sub"
            | "mul"
            | "div"
            | "mod"
            | "neg"
            | "lower"
            | "upper"
            | "date_part"
            | "extract"
            | "substr"
            | "concat_op"
    )
}
