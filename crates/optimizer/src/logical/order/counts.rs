//! Fields that count tuples.

use std::collections::HashSet;

use tessera_plan::{Expr, Scalar};

use crate::logical::relation::{Name, Relation};
use crate::logical::types::Types;

/// The largest constant that is added to a count.
const CONSTANT_MAX: u128 = 1 << 32;

/// The fields whose values are between 0 and a number of tuples: far from where 64 bits overflow.
#[derive(Debug, Default)]
pub(super) struct Counts {
    fields: HashSet<Name>,
}

impl Counts {
    /// Finds the fields of a relation and all relations below it.
    pub(super) fn of(relation: &Relation) -> Counts {
        let mut counts = Counts::default();
        counts.add(relation);
        counts
    }

    fn add(&mut self, relation: &Relation) {
        relation.inputs().into_iter().for_each(|input| self.add(input));
        match relation {
            Relation::Window(window) => self.fields.extend(
                window
                    .calls
                    .iter()
                    .filter(|(_, call)| counts(&call.function))
                    .map(|(name, _)| name.clone()),
            ),
            Relation::Aggregate(aggregate) => self.fields.extend(
                aggregate
                    .calls
                    .iter()
                    .filter(|(_, call)| counts(&call.function))
                    .map(|(name, _)| name.clone()),
            ),
            Relation::Map { exprs, .. } => {
                let is_count =
                    |expr: &Expr| matches!(expr, Expr::Field(of) if self.fields.contains(of));
                let renamed: Vec<Name> = exprs
                    .iter()
                    .filter(|(_, expr)| is_count(expr))
                    .map(|(name, _)| name.clone())
                    .collect();
                self.fields.extend(renamed);
            }
            _ => {}
        }
    }

    /// Whether the predicate compares values of which none can raise an error, such as a count plus
    /// a small constant.
    pub(super) fn compares_safely(&self, predicate: &Expr, types: Types<'_>) -> bool {
        let Expr::Call { function, args } = predicate else { return false };
        matches!(&**function, "eq" | "is_not_distinct" | "lt" | "lt_eq" | "gt" | "gt_eq")
            && args.iter().all(|arg| !types.must_stay(arg) || self.is_near_count(arg))
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

/// Whether a function returns a number of tuples or a position among them.
fn counts(function: &str) -> bool {
    matches!(function, "count" | "row_number" | "rank" | "dense_rank")
}
