//! Finds sub-expressions shared by several arguments, to evaluate them once.

use std::sync::Arc;

use tessera_functions::is_written_null;
use tessera_plan::{Expr, Functions};
use tessera_types::Tuple;

/// Replaces common sub-expressions in `exprs` by fields; returns the fields and their expressions,
/// each over `tuple` and the fields before it.
///
/// Only sub-expressions that are always evaluated are extracted: none from inside CASE, AND, OR or
/// COALESCE, whose branches must not raise errors early.
pub(super) fn share(
    exprs: &mut [&mut Expr],
    tuple: &Tuple,
    functions: &dyn Functions,
) -> Vec<(Arc<str>, Expr)> {
    let mut found: Vec<(Expr, usize, usize)> = Vec::new();
    for expr in exprs.iter() {
        count(expr, functions, &mut found);
    }
    found.retain(|(_, times, _)| *times > 1);
    // The largest first: its parts are then shared with it.
    found.sort_by_key(|(_, _, size)| std::cmp::Reverse(*size));
    let mut shared: Vec<(Arc<str>, Expr)> = Vec::new();
    for (candidate, ..) in found {
        let in_exprs: usize = exprs.iter().map(|expr| occurrences(expr, &candidate)).sum();
        let in_shared: usize = shared.iter().map(|(_, expr)| occurrences(expr, &candidate)).sum();
        if in_exprs + in_shared < 2 {
            continue;
        }
        let mut name = format!("#{}", shared.len());
        while tuple.index_of(&name).is_some() {
            name.insert(0, '#');
        }
        let name: Arc<str> = name.into();
        exprs.iter_mut().for_each(|expr| replace(expr, &candidate, &name));
        shared.iter_mut().for_each(|(_, expr)| replace(expr, &candidate, &name));
        shared.push((name, candidate));
    }
    shared.reverse();
    shared
}

fn is_candidate(expr: &Expr, functions: &dyn Functions) -> bool {
    let mut constant = true;
    let mut volatile = false;
    expr.walk(&mut |part| match part {
        Expr::Field(_) => constant = false,
        Expr::Call { function, .. } => volatile |= functions.is_volatile(function),
        _ => {}
    });
    matches!(expr, Expr::Call { .. } | Expr::Cast { .. }) && !constant && !volatile
}

/// Returns the sub-expressions that are evaluated whenever `expr` is.
fn certain(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Call { function, args } if is_written_null(function, args) => Vec::new(),
        Expr::Call { .. } | Expr::Cast { .. } | Expr::Not(_) | Expr::IsNull(_) => expr.children(),
        _ => Vec::new(),
    }
}

fn size(expr: &Expr) -> usize {
    let mut size = 0;
    expr.walk(&mut |_| size += 1);
    size
}

fn count(expr: &Expr, functions: &dyn Functions, found: &mut Vec<(Expr, usize, usize)>) {
    if is_candidate(expr, functions) {
        match found.iter_mut().find(|(other, ..)| other == expr) {
            Some((_, times, _)) => *times += 1,
            None => found.push((expr.clone(), 1, size(expr))),
        }
    }
    certain(expr).into_iter().for_each(|part| count(part, functions, found));
}

fn occurrences(expr: &Expr, wanted: &Expr) -> usize {
    match expr == wanted {
        true => 1,
        false => certain(expr).into_iter().map(|part| occurrences(part, wanted)).sum(),
    }
}

fn replace(expr: &mut Expr, wanted: &Expr, name: &Arc<str>) {
    if expr == wanted {
        *expr = Expr::Field(name.clone());
    } else if matches!(expr, Expr::Call { .. } | Expr::Cast { .. } | Expr::Not(_) | Expr::IsNull(_))
    {
        expr.children_mut().into_iter().for_each(|part| replace(part, wanted, name));
    }
}

#[cfg(test)]
mod tests {
    use tessera_functions::Library;

    use super::*;

    fn call(function: &str, args: &[&Expr]) -> Expr {
        Expr::call(function, args.iter().map(|arg| (*arg).clone()).collect())
    }

    #[test]
    fn a_product_inside_a_longer_one_is_shared() {
        let (price, discount, tax) = (Expr::field("p"), Expr::field("d"), Expr::field("t"));
        let net = call("mul", &[&price, &call("sub", &[&Expr::int64(1), &discount])]);
        let gross = call("mul", &[&net, &call("add", &[&Expr::int64(1), &tax])]);
        let (mut a, mut b, mut c) = (net.clone(), gross, price.clone());
        let shared = share(&mut [&mut a, &mut b, &mut c], &Tuple::empty(), &Library::default());
        assert_eq!(shared, vec![("#0".into(), net)]);
        assert_eq!(a, Expr::field("#0"));
        assert_eq!(b, call("mul", &[&Expr::field("#0"), &call("add", &[&Expr::int64(1), &tax])]));
        assert_eq!(c, price);
    }

    #[test]
    fn what_may_not_be_evaluated_stays() {
        let risky = call("div", &[&Expr::int64(1), &Expr::field("x")]);
        let guarded = |condition: &str| Expr::Case {
            branches: vec![(Expr::field(condition), risky.clone())],
            otherwise: None,
        };
        let (mut a, mut b) = (guarded("c"), guarded("d"));
        assert!(share(&mut [&mut a, &mut b], &Tuple::empty(), &Library::default()).is_empty());
        let (mut a, mut b) = (Expr::call("random", vec![]), Expr::call("random", vec![]));
        assert!(share(&mut [&mut a, &mut b], &Tuple::empty(), &Library::default()).is_empty());
    }

    #[test]
    fn shared_parts_of_shared_parts_come_first() {
        let inner = call("add", &[&Expr::field("x"), &Expr::int64(1)]);
        let outer = call("mul", &[&inner, &inner]);
        let (mut a, mut b, mut c) = (outer.clone(), outer.clone(), inner.clone());
        let shared = share(&mut [&mut a, &mut b, &mut c], &Tuple::empty(), &Library::default());
        assert_eq!(shared.len(), 2);
        assert_eq!(shared[0].1, inner);
        assert_eq!(a, b);
    }
}
