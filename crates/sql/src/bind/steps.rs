//! What has to be done to a relation before expressions over it can be computed: subqueries are
//! joined to it, and values that are read more than once become fields of it.

use tessera_optimizer::logical::relation::{Join, Kind, Name, Relation};
use tessera_plan::Expr;

/// A step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Only tuples that satisfy all of these are kept.
    Filter(Vec<Expr>),
    /// A subquery is joined.
    Join {
        kind: Kind,
        right: Relation,
        conditions: Vec<Expr>,
        mark: Option<Name>,
        null_aware: bool,
    },
    /// A value becomes a field.
    Value(Name, Expr),
}

impl Step {
    /// The expressions of the step itself.
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

    /// The fields of the relation that it reads.
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

/// The relation after the steps.
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

/// The relation with more fields.
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

/// A join; correlated where the right side reads fields of the left one.
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
