//! Propagation of NULL from fields to expressions.

use std::collections::HashSet;

use tessera_functions::is_strict;
use tessera_plan::Expr;

use crate::logical::relation::Name;

/// Returns the fields for which NULL prevents the predicate from being true.
pub(crate) fn rejecting_fields(predicate: &Expr) -> HashSet<Name> {
    match predicate {
        Expr::And(list) => list.iter().flat_map(rejecting_fields).collect(),
        Expr::Or(list) => in_all(list, rejecting_fields),
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(value) => null_fields(value),
            _ => null_fields(inner),
        },
        other => null_fields(other),
    }
}

/// Returns the fields for which NULL makes the expression NULL.
fn null_fields(expr: &Expr) -> HashSet<Name> {
    match expr {
        Expr::Field(name) => HashSet::from([name.clone()]),
        Expr::Cast { input, .. } | Expr::Not(input) => null_fields(input),
        // One operand that is not NULL may decide the result.
        Expr::And(list) | Expr::Or(list) => in_all(list, null_fields),
        Expr::Call { function, args } if is_strict(function) => {
            args.iter().flat_map(null_fields).collect()
        }
        _ => HashSet::new(),
    }
}

fn in_all(list: &[Expr], fields: fn(&Expr) -> HashSet<Name>) -> HashSet<Name> {
    let mut sets = list.iter().map(fields);
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |shared, set| shared.intersection(&set).cloned().collect())
}
