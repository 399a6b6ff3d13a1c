//! Properties of a correlated subquery that decide whether its LIMIT can become a join.

use std::collections::HashSet;

use tessera_plan::Expr;
use tessera_types::{Atom, Slot};

use crate::logical::relation::{Kind, Name, Relation, parameters};

/// Whether the relation or a part of it has a limit.
pub(super) fn limited(relation: &Relation) -> bool {
    match relation {
        Relation::Limit { .. } | Relation::Sort { limit: Some(_), .. } => true,
        Relation::Sort { offset, .. } if *offset > 0 => true,
        other => other.inputs().into_iter().any(limited),
    }
}

/// Whether each combination of outer values has at most one tuple.
pub(super) fn one_at_most(relation: &Relation) -> bool {
    match relation {
        Relation::Map { input, .. } | Relation::Filter { input, .. } => one_at_most(input),
        Relation::Unnest { input, lists, outer: false } => match (&**input, lists.as_slice()) {
            (Relation::Aggregate(aggregate), [(list, _)]) => {
                aggregate.calls.iter().any(|(name, call)| name == list && call.limit == Some(1))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether a conjunct equates a value of the tuple with a value of the outer row.
pub(super) fn finds(predicates: &[Expr], read: &[Name]) -> bool {
    predicates.iter().flat_map(Expr::conjuncts).any(|conjunct| is_equality(&conjunct, read))
}

fn is_equality(conjunct: &Expr, read: &[Name]) -> bool {
    let Expr::Call { function, args } = conjunct else { return false };
    let ([a, b], "eq") = (args.as_slice(), &**function) else { return false };
    let of_outer = |expr: &Expr| {
        expr.fields().is_empty() && parameters(expr).iter().any(|name| read.contains(name))
    };
    let of_tuple = |expr: &Expr| !expr.fields().is_empty() && parameters(expr).is_empty();
    of_outer(a) && of_tuple(b) || of_tuple(a) && of_outer(b)
}

/// Returns the outer values for which the subquery is empty if they are NULL.
pub(super) fn rejected_nulls(relation: &Relation) -> HashSet<Name> {
    match relation {
        Relation::Filter { input, predicates } => {
            let mut names = rejected_nulls(input);
            names.extend(predicates.iter().flat_map(Expr::conjuncts).flat_map(compared));
            names
        }
        Relation::Map { input, .. }
        | Relation::Sort { input, .. }
        | Relation::Limit { input, .. }
        | Relation::Unnest { input, outer: false, .. } => rejected_nulls(input),
        Relation::Aggregate(aggregate) if !aggregate.keys.is_empty() => {
            rejected_nulls(&aggregate.input)
        }
        Relation::Window(window) => rejected_nulls(&window.input),
        Relation::Join(join) if join.kind == Kind::Inner => {
            let mut names = rejected_nulls(&join.left);
            names.extend(rejected_nulls(&join.right));
            names.extend(join.conditions.iter().flat_map(Expr::conjuncts).flat_map(compared));
            names
        }
        _ => HashSet::new(),
    }
}

/// Returns the parameters that a conjunct compares, so that it is not true if they are NULL.
fn compared(conjunct: Expr) -> Vec<Name> {
    let Expr::Call { function, args } = conjunct else { return Vec::new() };
    if !is_comparison(&function) {
        return Vec::new();
    }
    let name = |arg| if let Expr::Parameter(name) = arg { Some(name) } else { None };
    args.into_iter().filter_map(name).collect()
}

fn is_comparison(function: &str) -> bool {
    matches!(function, "eq" | "not_eq" | "lt" | "lt_eq" | "gt" | "gt_eq")
}

/// Whether these parameters occur in comparisons only.
pub(super) fn only_compared(relation: &Relation, odd: &HashSet<&Name>) -> bool {
    fn within(expr: &Expr, odd: &HashSet<&Name>) -> bool {
        match expr {
            Expr::Parameter(name) => !odd.contains(name),
            Expr::Call { function, args } if is_comparison(function) => {
                args.iter().all(|arg| matches!(arg, Expr::Parameter(_)) || within(arg, odd))
            }
            other => other.children().into_iter().all(|child| within(child, odd)),
        }
    }
    relation.exprs().into_iter().all(|expr| within(expr, odd))
        && relation.inputs().into_iter().all(|input| only_compared(input, odd))
}

/// Whether a relation is cheap to compute twice.
pub(in crate::logical) fn cheap(relation: &Relation) -> bool {
    match relation {
        Relation::Scan { .. } | Relation::Values { .. } | Relation::Shared { .. } => true,
        Relation::Filter { input, .. } | Relation::Map { input, .. } => cheap(input),
        _ => false,
    }
}

/// Whether a relation without volatile expressions yields the same tuples each time. Limits and
/// aggregates that depend on the order of their input may not.
pub(super) fn is_deterministic(relation: &Relation) -> bool {
    let simple = match relation {
        Relation::Scan { .. }
        | Relation::Values { .. }
        | Relation::Filter { .. }
        | Relation::Map { .. }
        | Relation::Shared { .. } => true,
        Relation::Join(join) => !join.correlated,
        _ => false,
    };
    simple && relation.inputs().into_iter().all(is_deterministic)
}

pub(super) fn has_map(atom: &Atom) -> bool {
    let of = |slot: &Slot| has_map(&slot.atom);
    match atom {
        Atom::Map(..) => true,
        Atom::List(slot) => of(slot),
        Atom::Struct(slots) => slots.iter().any(|(_, slot)| of(slot)),
        _ => false,
    }
}
