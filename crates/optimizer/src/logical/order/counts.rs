//! Fields that count tuples.

use std::collections::HashSet;

use tessera_plan::{Expr, Scalar};

use crate::logical::relation::{Name, Relation};
use crate::logical::types::Types;

/// The largest constant that is added to a count.
const CONSTANT_MAX: u128 = 1 << 32;

/// The fields whose values are between 0 and a number of tuples: far from where 64 bits overflow.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    fields: HashSet<Name>,
}

impl Counts {
    /// Finds the fields of a relation and all relations below it.
    pub(crate) fn of(relation: &Relation) -> Counts {
        let mut counts = Counts::default();
        counts.add(relation);
        counts
    }

    fn add(&mut self, relation: &Relation) {
        relation.inputs().into_iter().for_each(|input| self.add(input));
        match relation {
            Relation::Window(window) => {
                let calls = window.calls.iter().map(|(name, call)| (name, &call.function));
                self.add_calls(calls);
            }
            Relation::Aggregate(aggregate) => {
                let calls = aggregate.calls.iter().map(|(name, call)| (name, &call.function));
                self.add_calls(calls);
            }
            Relation::Map { exprs, .. } => {
                for (name, expr) in exprs {
                    if matches!(expr, Expr::Field(of) if self.fields.contains(of)) {
                        self.fields.insert(name.clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the results of functions that return a number of tuples or a position among them.
    fn add_calls<'a>(&mut self, calls: impl Iterator<Item = (&'a Name, &'a Name)>) {
        let counts = ["count", "row_number", "rank", "dense_rank"];
        let counting = calls.filter(|(_, function)| counts.contains(&&***function));
        self.fields.extend(counting.map(|(name, _)| name.clone()));
    }

    /// Whether a predicate must stay above the joins: it can raise an error, or is volatile.
    /// Arithmetic on counts does not overflow.
    pub(super) fn must_stay(&self, predicate: &Expr, types: Types<'_>) -> bool {
        types.must_stay(predicate) && !self.compares_safely(predicate, types)
    }

    /// Whether the predicate compares values of which none can raise an error, such as a count plus
    /// a small constant.
    fn compares_safely(&self, predicate: &Expr, types: Types<'_>) -> bool {
        let Expr::Call { function, args } = predicate else { return false };
        matches!(&**function, "eq" | "is_not_distinct" | "lt" | "lt_eq" | "gt" | "gt_eq")
            && args.iter().all(|arg| !self.may_raise(arg, types))
    }

    /// Whether a value can raise an error, or is volatile.
    pub(crate) fn may_raise(&self, value: &Expr, types: Types<'_>) -> bool {
        types.must_stay(value) && !self.is_near_count(value)
    }

    /// Whether the expression is the sum or difference of a count and another one or a constant.
    fn is_near_count(&self, expr: &Expr) -> bool {
        let Expr::Call { function, args } = expr else { return false };
        let is_small = |arg: &Expr| match arg {
            Expr::Field(name) => self.fields.contains(name),
            Expr::Constant(Scalar::Integer(value), _) => value.unsigned_abs() <= CONSTANT_MAX,
            _ => false,
        };
        matches!(&**function, "add" | "sub")
            && args.iter().any(|arg| matches!(arg, Expr::Field(_)))
            && args.iter().all(is_small)
    }
}
