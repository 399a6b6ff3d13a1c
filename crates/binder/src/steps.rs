//! Steps that prepare a relation before expressions over it can be computed: joins with subqueries,
//! and fields for values that are read more than once.

use std::collections::HashSet;

use tessera_optimizer::logical::relation::{Join, Kind, Name, Relation};
use tessera_plan::Expr;

/// A preparation step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Keeps the tuples that satisfy all predicates.
    Filter(Vec<Expr>),
    /// Joins a subquery.
    Join {
        kind: Kind,
        right: Relation,
        conditions: Vec<Expr>,
        mark: Option<Name>,
        null_aware: bool,
    },
    /// Computes a value into a field.
    Value(Name, Expr),
}

impl Step {
    /// Returns the step's own expressions, without those of its subquery.
    pub(crate) fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Step::Filter(exprs) => exprs.iter_mut().collect(),
            Step::Join { conditions, .. } => conditions.iter_mut().collect(),
            Step::Value(_, expr) => vec![expr],
        }
    }

    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Step::Filter(exprs) => exprs.iter().collect(),
            Step::Join { conditions, .. } => conditions.iter().collect(),
            Step::Value(_, expr) => vec![expr],
        }
    }

    /// Returns the fields that the step adds.
    pub(crate) fn adds(&self) -> Vec<Name> {
        match self {
            Step::Filter(_) => Vec::new(),
            Step::Join { right, mark, .. } => {
                right.names().into_iter().chain(mark.clone()).collect()
            }
            Step::Value(name, _) => vec![name.clone()],
        }
    }

    /// Returns the fields of the input relation that the step reads.
    pub(crate) fn reads(&self) -> Vec<Name> {
        let mut names: Vec<Name> = self.exprs().iter().flat_map(|expr| expr.fields()).collect();
        if let Step::Join { right, .. } = self {
            let own = right.names();
            names.retain(|name| !own.contains(name));
            names.extend(right.parameters());
        }
        names
    }
}

/// Takes out the steps that add some of these fields, and the steps that those need.
pub(crate) fn take_needed(steps: &mut Vec<Step>, mut wanted: HashSet<Name>) -> Vec<Step> {
    let (mut needed, mut others) = (Vec::new(), Vec::new());
    // A step reads what earlier ones add.
    for step in std::mem::take(steps).into_iter().rev() {
        if step.adds().iter().any(|name| wanted.contains(name)) {
            wanted.extend(step.reads());
            needed.push(step);
        } else {
            others.push(step);
        }
    }
    *steps = others.into_iter().rev().collect();
    needed.reverse();
    needed
}

/// Applies steps to a relation.
pub(crate) fn apply(mut relation: Relation, steps: Vec<Step>) -> Relation {
    for step in steps {
        relation = match step {
            Step::Filter(predicates) => relation.filtered(predicates),
            Step::Join { kind, right, conditions, mark, null_aware } => {
                joined(kind, relation, right, conditions, mark, null_aware)
            }
            Step::Value(name, value) => with_fields(relation, vec![(name, value)]),
        };
    }
    relation
}

/// Adds computed fields to a relation.
pub(crate) fn with_fields(relation: Relation, fields: Vec<(Name, Expr)>) -> Relation {
    if fields.is_empty() {
        return relation;
    }
    let names = relation.names().into_iter();
    let mut exprs: Vec<(Name, Expr)> =
        names.map(|name| (name.clone(), Expr::Field(name))).collect();
    exprs.extend(fields);
    Relation::Map { input: Box::new(relation), exprs }
}

/// Builds a join, correlated if the right side reads fields of the left side.
pub(crate) fn joined(
    kind: Kind,
    left: Relation,
    right: Relation,
    conditions: Vec<Expr>,
    mark: Option<Name>,
    null_aware: bool,
) -> Relation {
    let parameters = right.parameters();
    let correlated =
        !parameters.is_empty() && left.names().iter().any(|name| parameters.contains(name));
    Relation::Join(Box::new(Join { kind, left, right, conditions, mark, null_aware, correlated }))
}
