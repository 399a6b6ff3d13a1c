//! Rules for comparisons and other calls.

use std::sync::Arc;

use tessera_codegen::Comparison;
use tessera_functions::is_strict;
use tessera_plan::rewrite::mirrored;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, TimeUnit};
use tessera_values::cast::cast_raises;
use tessera_values::scalar::per_second;

use super::{RewriteResult, Simplifier, TypeContext, is_null, truth};

impl<K: TypeContext> Simplifier<'_, K> {
    pub(super) fn strict_null(&self, expr: Expr) -> RewriteResult {
        match &expr {
            Expr::Call { function, args } if is_strict(function) && args.iter().any(is_null) => {
                self.context.atom(&expr).map(Expr::null).ok_or(expr)
            }
            _ => Err(expr),
        }
    }

    pub(super) fn flip_comparison(&self, expr: Expr) -> RewriteResult {
        let (name, left, right) = compared(expr)?;
        match (&left, &right) {
            (Expr::Constant(..), other) if !matches!(other, Expr::Constant(..)) => {
                let name = mirrored(&name).map_or(name, Arc::from);
                Ok(Expr::call(name, vec![right, left]))
            }
            _ => Err(Expr::call(name, vec![left, right])),
        }
    }

    pub(super) fn distinct_from_null(&self, expr: Expr) -> RewriteResult {
        let (name, left, right) = compared(expr)?;
        match &*name {
            "is_distinct" if is_null(&right) => Ok(self.negated(Expr::IsNull(Box::new(left)))),
            "is_not_distinct" if is_null(&right) => Ok(Expr::IsNull(Box::new(left))),
            _ => Err(Expr::call(name, vec![left, right])),
        }
    }

    pub(super) fn boolean_equality(&self, expr: Expr) -> RewriteResult {
        let (name, left, right) = compared(expr)?;
        let same = match (&*name, &right) {
            ("eq", Expr::Constant(Scalar::Boolean(value), _)) => Some(*value),
            ("not_eq", Expr::Constant(Scalar::Boolean(value), _)) => Some(!*value),
            _ => None,
        };
        match same.filter(|_| self.is_boolean(&left)) {
            Some(true) => Ok(left),
            Some(false) => Ok(self.negated(left)),
            None => Err(Expr::call(name, vec![left, right])),
        }
    }

    pub(super) fn unwrap_cast(&self, expr: Expr) -> RewriteResult {
        let (name, left, right) = compared(expr)?;
        let unwrapped = match (&left, &right) {
            (Expr::Cast { input, to, .. }, Expr::Constant(_, atom)) if to == atom => {
                let from = self.context.atom(input).filter(|from| keeps_order(from, to));
                from.and_then(|from| self.converted(&right, &from))
            }
            _ => None,
        };
        match (unwrapped, left) {
            (Some(value), Expr::Cast { input, .. }) => Ok(Expr::call(name, vec![*input, value])),
            (_, left) => Err(Expr::call(name, vec![left, right])),
        }
    }

    /// Converts a constant to another type; `None` if it does not convert back to the same value.
    fn converted(&self, constant: &Expr, to: &Atom) -> Option<Expr> {
        let Expr::Constant(_, atom) = constant else { return None };
        let safe = |input: &Expr, to: &Atom| {
            let cast = Expr::Cast { input: Box::new(input.clone()), to: to.clone(), safe: true };
            tessera_functions::constant(&cast, self.library)
        };
        let value = safe(constant, to)?;
        let back = safe(&value, atom)?;
        let equal = tessera_functions::constant(
            &Expr::call("eq", vec![back, constant.clone()]),
            self.library,
        )?;
        (truth(&equal) == Some(Some(true))).then_some(value)
    }

    pub(super) fn date_comparison(&self, expr: Expr) -> RewriteResult {
        let (name, left, right) = compared(expr)?;
        // With `safe`, a date without a timestamp would become NULL.
        let of_days = match (&left, &right) {
            (
                Expr::Cast { input, to, safe: false },
                Expr::Constant(Scalar::Integer(count), atom),
            ) if to == atom && self.context.atom(input) == Some(Atom::Date) => match to {
                Atom::Timestamp(unit, None) => date_comparison(&name, *unit, *count),
                _ => None,
            },
            _ => None,
        };
        match (of_days, left) {
            (Some((name, day)), Expr::Cast { input, .. }) if i32::try_from(day).is_ok() => {
                Ok(Expr::call(name, vec![*input, Expr::Constant(Scalar::Integer(day), Atom::Date)]))
            }
            (_, left) => Err(Expr::call(name, vec![left, right])),
        }
    }

    pub(super) fn like_without_wildcards(&self, expr: Expr) -> RewriteResult {
        match expr {
            Expr::Call { function, args } if &*function == "like" => match &args[..] {
                [text, Expr::Constant(Scalar::String(pattern), Atom::String)]
                    if !pattern.contains(['%', '_', '\\'])
                        && self.context.atom(text) == Some(Atom::String) =>
                {
                    Ok(Expr::Call { function: "eq".into(), args })
                }
                _ => Err(Expr::Call { function, args }),
            },
            other => Err(other),
        }
    }

    pub(super) fn negate_comparison(&self, expr: Expr) -> RewriteResult {
        let Expr::Not(inner) = expr else { return Err(expr) };
        match *inner {
            Expr::Call { function, args } => match negated(&function) {
                Some(negated) => Ok(Expr::call(negated, args)),
                None => Err(Expr::Not(Box::new(Expr::Call { function, args }))),
            },
            other => Err(Expr::Not(Box::new(other))),
        }
    }
}

/// Splits a comparison into its name, left and right side; returns any other expression as an
/// error.
fn compared(expr: Expr) -> Result<(Arc<str>, Expr, Expr), Expr> {
    match expr {
        Expr::Call { function, mut args }
            if args.len() == 2 && Comparison::from_name(&function).is_some() =>
        {
            match (args.pop(), args.pop()) {
                (Some(right), Some(left)) => Ok((function, left, right)),
                _ => Err(Expr::Call { function, args }),
            }
        }
        other => Err(other),
    }
}

/// Whether a cast preserves the values of `from` and their order, and never raises an error.
fn keeps_order(from: &Atom, to: &Atom) -> bool {
    let exact = match (from, to) {
        (from, Atom::Float64) => matches!(
            from,
            Atom::Float32
                | Atom::Int8
                | Atom::Int16
                | Atom::Int32
                | Atom::UInt8
                | Atom::UInt16
                | Atom::UInt32
        ),
        (Atom::Decimal(_, old), Atom::Decimal(_, new)) => new >= old,
        (from, Atom::Decimal(_, scale)) => from.is_integer() && *scale >= 0,
        // Another time zone is another way to show the same moment.
        (Atom::Timestamp(old, Some(_)), Atom::Timestamp(new, Some(_))) => old == new,
        (from, to) => from.is_integer() && to.is_integer(),
    };
    exact && !cast_raises(from, to)
}

/// Rewrites the comparison of a day's midnight with a timestamp as a comparison of days.
fn date_comparison(name: &str, unit: TimeUnit, count: i128) -> Option<(&'static str, i128)> {
    let per_day = i128::from(per_second(unit)) * 86_400;
    let (day, midnight) = match i64::try_from(count) {
        // Infinity is a valid date.
        Ok(i64::MAX) => (i32::MAX.into(), true),
        Ok(i64::MIN) => (i32::MIN.into(), true),
        _ => (count.div_euclid(per_day), count.rem_euclid(per_day) == 0),
    };
    Some(match (name, midnight) {
        ("lt", true) => ("lt", day),
        ("lt", false) | ("lt_eq", _) => ("lt_eq", day),
        ("gt_eq", true) => ("gt_eq", day),
        ("gt_eq", false) | ("gt", _) => ("gt", day),
        ("eq", true) => ("eq", day),
        ("not_eq", true) => ("not_eq", day),
        _ => return None,
    })
}

/// Returns the negated comparison.
fn negated(name: &str) -> Option<&'static str> {
    Some(match name {
        "eq" => "not_eq",
        "not_eq" => "eq",
        "lt" => "gt_eq",
        "lt_eq" => "gt",
        "gt" => "lt_eq",
        "gt_eq" => "lt",
        "is_distinct" => "is_not_distinct",
        "is_not_distinct" => "is_distinct",
        _ => return None,
    })
}
