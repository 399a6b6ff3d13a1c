//! Aggregates of some tuples only, such as `sum(CASE WHEN day = 'Sunday' THEN price END)`, as an
//! aggregate of all tuples and its condition. Where the condition reads other fields than the
//! argument, tuples that are equal in those fields can be merged before the condition is known.

use std::collections::HashSet;

use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

use crate::logical::relation::{Call, Name};

/// The condition of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    /// The tuples that the call is of.
    pub(super) when: Expr,
    /// Whether each other tuple adds a zero, so that a sum of none of them is not NULL.
    adds_zero: bool,
}

impl Condition {
    /// Splits a call into one of all tuples and its condition; `None` where the condition reads a
    /// field of the argument, or none at all.
    pub(super) fn split(call: &Call) -> Option<(Call, Condition)> {
        let (call, condition) = match &call.filter {
            Some(filter) => {
                let condition = Condition { when: filter.clone(), adds_zero: false };
                (Call { filter: None, ..call.clone() }, condition)
            }
            None => of_case(call)?,
        };
        let read: HashSet<Name> = condition.when.fields().into_iter().collect();
        let of_args: HashSet<Name> = call.exprs().flat_map(Expr::fields).collect();
        (!read.is_empty() && read.is_disjoint(&of_args)).then_some((call, condition))
    }

    /// Makes a call over aggregates of type `atom` one of those that meet the condition.
    pub(super) fn restrict(self, call: &mut Call, atom: &Atom) {
        if !self.adds_zero {
            call.filter = Some(self.when);
            return;
        }
        let zero = Expr::Constant(Scalar::Integer(0), atom.clone());
        for arg in &mut call.args {
            let value = std::mem::replace(arg, Expr::boolean(false));
            let branches = vec![(self.when.clone(), value)];
            *arg = Expr::Case { branches, otherwise: Some(Box::new(zero.clone())) };
        }
    }
}

/// Splits a call whose only argument is `CASE WHEN when THEN value END`, or with a zero as the
/// other value of a sum of exact numbers.
fn of_case(call: &Call) -> Option<(Call, Condition)> {
    let [Expr::Case { branches, otherwise }] = &call.args[..] else { return None };
    let [(when, value)] = &branches[..] else { return None };
    let adds_zero = match otherwise.as_deref() {
        None | Some(Expr::Constant(Scalar::Null, _)) => false,
        Some(Expr::Constant(Scalar::Integer(0), atom))
            if &*call.function == "sum"
                && (atom.is_integer() || matches!(atom, Atom::Decimal(..))) =>
        {
            true
        }
        _ => return None,
    };
    let merges = matches!(&*call.function, "sum" | "count" | "avg" | "mean" | "min" | "max");
    let condition = Condition { when: when.clone(), adds_zero };
    merges.then(|| (Call { args: vec![value.clone()], ..call.clone() }, condition))
}
