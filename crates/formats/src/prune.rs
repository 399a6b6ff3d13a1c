//! Pruning by statistics: decides whether any row of a file, row group or page can satisfy a
//! predicate.
//!
//! The answer "no" must be sound: for NULLs (a comparison with NULL is never true), for bounds that
//! are wider than the values (truncated strings), and for NaN, which statistics omit and which is
//! greater than every number.

use std::cmp::Ordering;

use tessera_plan::rewrite::mirrored;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, TimeUnit};
use tessera_values::scalar::compare;

/// The statistics of a column in a range of rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    /// The type of `min` and `max`.
    pub(crate) atom: Atom,
    /// A lower bound of all values.
    pub(crate) min: Option<Scalar>,
    /// An upper bound of all values except NaN.
    pub(crate) max: Option<Scalar>,
    /// Whether the range may contain NULLs.
    pub(crate) some_null: bool,
    /// Whether the range may contain values other than NULL.
    pub(crate) some_value: bool,
}

/// Returns the statistics of a column by name.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Bounds>;

/// The nesting depth of predicates beyond which the answer is always "perhaps".
const DEPTH_MAX: usize = 100;

/// Whether the predicate may be true for some row.
pub(crate) fn may_be_true(expr: &Expr, lookup: Lookup<'_>) -> bool {
    may_be(expr, true, lookup, 0)
}

fn may_be(expr: &Expr, truth: bool, lookup: Lookup<'_>, depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return true;
    }
    let below = |expr: &Expr, truth: bool| may_be(expr, truth, lookup, depth + 1);
    match (expr, truth) {
        (Expr::Constant(Scalar::Boolean(value), _), _) => *value == truth,
        (Expr::Constant(Scalar::Null, _), _) => false,
        (Expr::And(list), true) | (Expr::Or(list), false) => list.iter().all(|e| below(e, truth)),
        (Expr::And(list), false) | (Expr::Or(list), true) => list.iter().any(|e| below(e, truth)),
        (Expr::Not(input), _) => below(input, !truth),
        (Expr::IsNull(input), _) => match bounds_of(input, lookup) {
            Some(bounds) => {
                if truth {
                    bounds.some_null
                } else {
                    bounds.some_value
                }
            }
            None => true,
        },
        (Expr::Call { function, args }, _) => call(function, args, truth, lookup),
        _ => true,
    }
}

fn call(function: &str, args: &[Expr], truth: bool, lookup: Lookup<'_>) -> bool {
    let [left, right] = args else { return true };
    let (function, column, constant) = match (bounds_of(left, lookup), bounds_of(right, lookup)) {
        (Some(column), None) => (function, column, right),
        (None, Some(column)) => match mirrored(function) {
            Some(function) => (function, column, left),
            None => return true,
        },
        _ => return true,
    };
    let Expr::Constant(value, atom) = constant else { return true };
    if function == "like" {
        return !truth || like(&column, value);
    }
    let Some(function) = (if truth { Some(function) } else { negated(function) }) else {
        return true;
    };
    if value.is_null() || !column.some_value {
        // Every row is NULL, so the comparison is neither true nor false.
        return !matches!(function, "eq" | "not_eq" | "lt" | "lt_eq" | "gt" | "gt_eq");
    }
    if let ("any_eq", Scalar::Nested(items), Atom::List(slot)) = (function, value, atom) {
        // NaN is above every bound, so columns of floats are not pruned.
        if slot.atom != column.atom || slot.atom.is_float() {
            return true;
        }
        let (min, max) = (column.min.as_ref(), column.max.as_ref());
        return items.iter().filter(|item| !item.is_null()).any(|item| {
            min.and_then(|min| compare(min, item)) != Some(Ordering::Greater)
                && max.and_then(|max| compare(max, item)) != Some(Ordering::Less)
        });
    }
    if *atom != column.atom {
        return true;
    }
    // NaN is above every bound, so an upper bound excludes nothing.
    let nan_above = atom.is_float();
    if matches!(value, Scalar::Float(value) if value.is_nan()) {
        return true;
    }
    let min = column.min.as_ref().and_then(|min| compare(&low(min), value));
    let max = column.max.as_ref().and_then(|max| compare(&high(max), value));
    match function {
        "eq" => min != Some(Ordering::Greater) && max != Some(Ordering::Less),
        "lt" => !matches!(min, Some(Ordering::Greater | Ordering::Equal)),
        "lt_eq" => min != Some(Ordering::Greater),
        "gt" => nan_above || !matches!(max, Some(Ordering::Less | Ordering::Equal)),
        "gt_eq" => nan_above || max != Some(Ordering::Less),
        // Bounds may be wider than the values, so equal bounds do not prove equal values.
        _ => true,
    }
}

fn negated(function: &str) -> Option<&'static str> {
    Some(match function {
        "eq" => "not_eq",
        "not_eq" => "eq",
        "lt" => "gt_eq",
        "lt_eq" => "gt",
        "gt" => "lt_eq",
        "gt_eq" => "lt",
        _ => return None,
    })
}

/// Whether some value may start with the literal prefix of the pattern.
fn like(column: &Bounds, pattern: &Scalar) -> bool {
    if !column.some_value || pattern.is_null() {
        return false;
    }
    let Scalar::String(pattern) = pattern else { return true };
    let prefix = pattern.split(['%', '_', '\\']).next().unwrap_or_default().as_bytes();
    let above = |min: &[u8]| min > prefix && !min.starts_with(prefix);
    match (&column.min, &column.max) {
        (Some(Scalar::String(min)), _) if above(min.as_bytes()) => false,
        (_, Some(Scalar::String(max))) if max.as_bytes() < prefix => false,
        _ => true,
    }
}

/// Returns the bounds of a field, or of an order-preserving conversion of a field.
fn bounds_of(expr: &Expr, lookup: Lookup<'_>) -> Option<Bounds> {
    match expr {
        Expr::Field(name) => lookup(name),
        Expr::Cast { input, to, .. } => converted(bounds_of(input, lookup)?, to),
        _ => None,
    }
}

fn converted(bounds: Bounds, to: &Atom) -> Option<Bounds> {
    if bounds.atom == *to {
        return Some(bounds);
    }
    let factor: i128 = match (&bounds.atom, to) {
        (Atom::Int8 | Atom::Int16 | Atom::Int32, Atom::Int64) => 1,
        (Atom::Int8 | Atom::Int16, Atom::Int32) => 1,
        (Atom::UInt8 | Atom::UInt16 | Atom::UInt32, Atom::Int64) => 1,
        (Atom::Decimal(p, s), Atom::Decimal(q, t))
            if t >= s && q - (*t as u8) >= p - (*s as u8) =>
        {
            10i128.checked_pow((t - s) as u32)?
        }
        (Atom::Date, Atom::Timestamp(unit, None)) => 86_400 * per_second(*unit),
        _ => return None,
    };
    let scaled = |value: Scalar| match value {
        Scalar::Integer(value) => value.checked_mul(factor).map(Scalar::Integer),
        _ => None,
    };
    Some(Bounds {
        atom: to.clone(),
        min: bounds.min.and_then(scaled),
        max: bounds.max.and_then(scaled),
        ..bounds
    })
}

fn per_second(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Statistics may store either zero when both occur; the lower one is the safe minimum.
fn low(min: &Scalar) -> Scalar {
    match min {
        Scalar::Float(value) if *value == 0.0 => Scalar::Float(-0.0),
        other => other.clone(),
    }
}

fn high(max: &Scalar) -> Scalar {
    match max {
        Scalar::Float(value) if *value == 0.0 => Scalar::Float(0.0),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(min: i128, max: i128, some_null: bool) -> Bounds {
        let (min, max) = (Some(Scalar::Integer(min)), Some(Scalar::Integer(max)));
        Bounds { atom: Atom::Int64, min, max, some_null, some_value: true }
    }

    fn check(expr: &Expr, bounds: &Bounds) -> bool {
        may_be_true(expr, &|name| (name == "x").then(|| bounds.clone()))
    }

    fn call(function: &str, value: i64) -> Expr {
        Expr::call(function, vec![Expr::field("x"), Expr::int64(value)])
    }

    #[test]
    fn comparisons_against_bounds() {
        let b = bounds(10, 20, false);
        for (function, value, expected) in [
            ("eq", 9, false),
            ("eq", 10, true),
            ("eq", 21, false),
            ("lt", 10, false),
            ("lt", 11, true),
            ("lt_eq", 9, false),
            ("lt_eq", 10, true),
            ("gt", 20, false),
            ("gt", 19, true),
            ("gt_eq", 21, false),
            ("gt_eq", 20, true),
            ("not_eq", 10, true),
        ] {
            assert_eq!(check(&call(function, value), &b), expected, "x {function} {value}");
            let mirror =
                Expr::call(mirrored(function).unwrap(), vec![Expr::int64(value), Expr::field("x")]);
            assert_eq!(check(&mirror, &b), expected, "mirrored x {function} {value}");
        }
        assert!(!check(&Expr::Not(Box::new(call("lt", 30))), &b), "not x < 30");
        assert!(check(&Expr::Or(vec![call("eq", 1), call("eq", 12)]), &b));
        assert!(!check(&Expr::Or(vec![call("eq", 1), call("eq", 2)]), &b));
        assert!(!check(&Expr::And(vec![call("gt", 5), call("gt", 50)]), &b));
    }

    #[test]
    fn nulls() {
        let is_null = Expr::IsNull(Box::new(Expr::field("x")));
        assert!(!check(&is_null, &bounds(1, 2, false)));
        assert!(check(&is_null, &bounds(1, 2, true)));
        let all_null = Bounds { min: None, max: None, some_value: false, ..bounds(0, 0, true) };
        assert!(!check(&call("not_eq", 5), &all_null));
        assert!(!check(&Expr::Not(Box::new(call("eq", 5))), &all_null));
        assert!(!check(&Expr::Not(Box::new(is_null)), &all_null));
    }

    #[test]
    fn nan_and_zero() {
        let float = |value: f64| Expr::Constant(Scalar::Float(value), Atom::Float64);
        let test = |function: &str, value: f64, min: f64, max: f64| {
            let b = Bounds {
                atom: Atom::Float64,
                min: Some(Scalar::Float(min)),
                max: Some(Scalar::Float(max)),
                some_null: false,
                some_value: true,
            };
            check(&Expr::call(function, vec![Expr::field("x"), float(value)]), &b)
        };
        assert!(
            test("gt", 100.0, 0.0, 1.0),
            "NaN is greater than any number and not in the statistics"
        );
        assert!(!test("lt", -1.0, 0.0, 1.0));
        assert!(test("eq", -0.0, 0.0, 1.0) && test("eq", 0.0, -1.0, -0.0));
        assert!(test("eq", f64::NAN, 0.0, 1.0));
    }

    #[test]
    fn prefixes() {
        let text = |value: &str| Some(Scalar::String(value.into()));
        let b = Bounds {
            atom: Atom::String,
            min: text("PROMO A"),
            max: text("STANDARD"),
            some_null: false,
            some_value: true,
        };
        let like = |pattern: &str| {
            check(&Expr::call("like", vec![Expr::field("x"), Expr::string(pattern)]), &b)
        };
        assert!(like("PROMO%") && like("%x") && like("S%") && like("PROMO A"));
        assert!(!like("A%") && !like("T%") && !like("STANDARDX%"));
    }
}
