//! Simplification of expressions while planning: constants are folded, and predicates get the forms that scans can prune by.
//!
//! Each rule gives the same value for every tuple: with NULLs (three-valued logic), NaN (the
//! greatest value, equal to itself), and errors. A rule drops an operand only if it cannot raise,
//! or stands beside a NULL that is written down, as in PostgreSQL. None copies a volatile one.
//!
//! | rule | why |
//! |---|---|
//! | an expression over constants is its value | scans prune by it, joins are estimated by it |
//! | `5 < x` is `x > 5` | later rules and scans look for the constant on the right |
//! | `cast(x as T) < c` is `x < c'` | for a cast that keeps every value and the order, if `c'` converts to `c` |
//! | `cast(date as timestamp) < c` is one of dates | no column is converted, and scans prune by days |
//! | comparisons, `+ - * / %` and `like` with a written NULL are NULL | as in PostgreSQL |
//! | `x is distinct from NULL` is `x is not NULL` | later rules absorb it |
//! | `b = true` is `b`, `b = false` is `not b` | the same |
//! | `s like 'abc'` is `s = 'abc'` | scans prune by it, sets are looked up |
//! | `not (a < b)` is `a >= b`; `not` moves into `and`, `or`, `not` | conjuncts move on their own |
//! | `and`, `or` are flat, without neutral and repeated operands, cut behind a deciding one | the same |
//! | `case` has no branch that is never taken; `coalesce` none after a value | what is never needed is not evaluated |

use std::mem;
use std::sync::Arc;

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, TimeUnit};

use super::arithmetic::Operation;
use super::cast::cast_raises;
use super::compare::Comparison;
use super::fold;
use super::library::Library;
use super::scalar::per_second;

/// Repeated operands are looked for in lists up to this length; looking takes time quadratic in it.
const REPEATED_MAX: usize = 64;

/// What a planner knows about the expressions it simplifies.
pub trait Known {
    /// The type of an expression; none where it is not known.
    fn atom(&self, expr: &Expr) -> Option<Atom>;

    /// Whether the expression must not be dropped or copied: it can raise, or it is volatile.
    fn stays(&self, expr: &Expr) -> bool;
}

/// Simplifies expressions.
#[derive(Debug, Clone, Copy)]
pub struct Simplifier<'a, K> {
    library: &'a Library,
    known: K,
}

impl<'a, K: Known> Simplifier<'a, K> {
    /// One that evaluates constants with these functions.
    pub fn new(library: &'a Library, known: K) -> Self {
        Simplifier { library, known }
    }

    /// The whole expression, simplified from its leaves up.
    pub fn tree(&self, mut expr: Expr) -> Expr {
        for child in expr.children_mut() {
            let taken = mem::replace(child, Expr::boolean(false));
            *child = self.tree(taken);
        }
        self.node(expr)
    }

    /// An expression whose operands are simplified already.
    pub fn node(&self, expr: Expr) -> Expr {
        if let Some(constant) = fold::constant(&expr, self.library) {
            return constant;
        }
        match expr {
            Expr::Call { function, args } => self.call(function, args),
            Expr::And(list) => self.connective(list, false),
            Expr::Or(list) => self.connective(list, true),
            Expr::Not(inner) => self.not(*inner),
            Expr::Cast { input, to, .. } if self.known.atom(&input).as_ref() == Some(&to) => *input,
            Expr::Case { branches, otherwise } => self.case(branches, otherwise),
            Expr::Coalesce(list) => self.coalesce(list),
            other => other,
        }
    }

    fn call(&self, function: Arc<str>, mut args: Vec<Expr>) -> Expr {
        if is_strict(&function) && args.iter().any(|arg| matches!(arg, Expr::Constant(Scalar::Null, _))) {
            let call = Expr::Call { function, args };
            return self.known.atom(&call).map_or(call, Expr::null);
        }
        if args.len() == 2
            && let (Some(right), Some(left)) = (args.pop(), args.pop())
        {
            if Comparison::named(&function).is_some() {
                return self.comparison(function, left, right);
            }
            let constant = match &right {
                Expr::Constant(Scalar::String(pattern), Atom::String) if &*function == "like" => {
                    !pattern.contains(['%', '_', '\\']) && self.known.atom(&left) == Some(Atom::String)
                }
                _ => false,
            };
            if constant {
                return self.comparison("eq".into(), left, right);
            }
            args = vec![left, right];
        }
        Expr::Call { function, args }
    }

    fn comparison(&self, name: Arc<str>, left: Expr, right: Expr) -> Expr {
        let (name, left, right) = match (&left, &right) {
            (Expr::Constant(..), other) if !matches!(other, Expr::Constant(..)) => {
                (flipped(name), right, left)
            }
            _ => (name, left, right),
        };
        let call = |left, right| Expr::Call { function: name.clone(), args: vec![left, right] };
        let Expr::Constant(value, atom) = &right else { return call(left, right) };
        match (&*name, value) {
            ("is_distinct", Scalar::Null) => return self.not(Expr::IsNull(Box::new(left))),
            ("is_not_distinct", Scalar::Null) => return Expr::IsNull(Box::new(left)),
            ("eq", Scalar::Boolean(true)) | ("not_eq", Scalar::Boolean(false))
                if self.known.atom(&left) == Some(Atom::Boolean) =>
            {
                return left;
            }
            ("eq", Scalar::Boolean(false)) | ("not_eq", Scalar::Boolean(true))
                if self.known.atom(&left) == Some(Atom::Boolean) =>
            {
                return self.not(left);
            }
            _ => {}
        }
        let Expr::Cast { input, to, safe } = left else { return call(left, right) };
        let from = self.known.atom(&input);
        if let Some(from) = &from
            && to == *atom
            && keeps_order(from, &to)
            && let Some(value) = self.converted(&right, from)
        {
            return self.comparison(name, *input, value);
        }
        if let (Some(Atom::Date), Atom::Timestamp(unit, None), Scalar::Integer(count)) = (from, &to, value)
            && *atom == to
            && let Some((name, day)) = date_comparison(&name, *unit, *count)
            && i32::try_from(day).is_ok()
        {
            let day = Expr::Constant(Scalar::Integer(day), Atom::Date);
            return Expr::call(name, vec![*input, day]);
        }
        call(Expr::Cast { input, to, safe }, right)
    }

    /// The constant of another type that converts to this one.
    fn converted(&self, constant: &Expr, to: &Atom) -> Option<Expr> {
        let Expr::Constant(_, atom) = constant else { return None };
        let safe = |input: &Expr, to: &Atom| {
            let cast = Expr::Cast { input: Box::new(input.clone()), to: to.clone(), safe: true };
            fold::constant(&cast, self.library)
        };
        let value = safe(constant, to)?;
        let back = safe(&value, atom)?;
        let equal = fold::constant(&Expr::call("eq", vec![back, constant.clone()]), self.library)?;
        (truth(&equal) == Some(Some(true))).then_some(value)
    }

    /// AND, or with `any` OR, which is also the value that decides.
    fn connective(&self, list: Vec<Expr>, any: bool) -> Expr {
        let mut flat = Vec::with_capacity(list.len());
        for operand in list {
            match operand {
                Expr::And(inner) if !any => flat.extend(inner),
                Expr::Or(inner) if any => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut kept: Vec<Expr> = Vec::with_capacity(flat.len());
        for operand in flat {
            match truth(&operand) {
                Some(Some(value)) if value == any => {
                    // Operands before it count only if they raise, or keep one behind them from raising; those
                    // behind it are never evaluated.
                    let raising = kept.iter().rposition(|before| self.known.stays(before));
                    kept.truncate(raising.map_or(0, |last| last + 1));
                    kept.push(operand);
                    break;
                }
                Some(Some(_)) => {}
                _ if kept.len() < REPEATED_MAX
                    && kept.contains(&operand)
                    && !tessera_plan::pass::is_volatile(&operand, self.library) => {}
                _ => kept.push(operand),
            }
        }
        match (kept.len(), any) {
            (0, _) => Expr::boolean(!any),
            (1, _) => kept.remove(0),
            (_, false) => Expr::And(kept),
            (_, true) => Expr::Or(kept),
        }
    }

    fn not(&self, inner: Expr) -> Expr {
        match inner {
            Expr::Not(inner) => *inner,
            Expr::Constant(Scalar::Boolean(value), _) => Expr::boolean(!value),
            Expr::Constant(Scalar::Null, _) => Expr::null(Atom::Boolean),
            Expr::Call { function, args } => match negated(&function) {
                Some(negated) => Expr::call(negated, args),
                None => Expr::Not(Box::new(Expr::Call { function, args })),
            },
            Expr::And(list) => self.connective(list.into_iter().map(|item| self.not(item)).collect(), true),
            // Equalities of one value with constants are looked up as a set, also when negated.
            Expr::Or(list) if !is_set(&list) => {
                self.connective(list.into_iter().map(|item| self.not(item)).collect(), false)
            }
            other => Expr::Not(Box::new(other)),
        }
    }

    fn case(&self, branches: Vec<(Expr, Expr)>, mut otherwise: Option<Box<Expr>>) -> Expr {
        let atom = branches.first().and_then(|(_, value)| self.known.atom(value));
        let Some(atom) = atom else { return Expr::Case { branches, otherwise } };
        let mut kept = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            match truth(&condition) {
                Some(Some(true)) => {
                    otherwise = Some(Box::new(value));
                    break;
                }
                Some(_) => {}
                None => kept.push((condition, value)),
            }
        }
        match (kept.is_empty(), otherwise) {
            (false, otherwise) => Expr::Case { branches: kept, otherwise },
            (true, Some(otherwise)) => *otherwise,
            (true, None) => Expr::null(atom),
        }
    }

    fn coalesce(&self, list: Vec<Expr>) -> Expr {
        let atom = list.first().and_then(|first| self.known.atom(first));
        let Some(atom) = atom else { return Expr::Coalesce(list) };
        let mut flat = Vec::with_capacity(list.len());
        for operand in list {
            match operand {
                Expr::Coalesce(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let is_value = |operand: &Expr| matches!(operand, Expr::Constant(value, _) if !value.is_null());
        flat.retain(|operand| !matches!(operand, Expr::Constant(Scalar::Null, _)));
        if let Some(value) = flat.iter().position(is_value) {
            flat.truncate(value + 1);
        }
        match flat.len() {
            0 => Expr::null(atom),
            1 => flat.remove(0),
            _ => Expr::Coalesce(flat),
        }
    }
}

/// The value of a boolean constant, none within for NULL; none where it is no boolean constant.
fn truth(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Constant(Scalar::Boolean(value), _) => Some(Some(*value)),
        Expr::Constant(Scalar::Null, Atom::Boolean | Atom::Null) => Some(None),
        _ => None,
    }
}

/// Whether all are equalities of the same value with constants.
fn is_set(list: &[Expr]) -> bool {
    let value = |expr: &Expr| match expr {
        Expr::Call { function, args } if &**function == "eq" => match args.as_slice() {
            [value, Expr::Constant(..)] => Some(value.clone()),
            _ => None,
        },
        _ => None,
    };
    let Some(first) = list.first().and_then(value) else { return false };
    list.iter().all(|item| truth(item) == Some(None) || value(item).as_ref() == Some(&first))
}

/// Whether a cast keeps every value of `from` and their order, and never raises.
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
        (from, to) => from.is_integer() && to.is_integer(),
    };
    exact && !cast_raises(from, to)
}

/// A comparison of a day's midnight with a timestamp as one of days.
fn date_comparison(name: &str, unit: TimeUnit, count: i128) -> Option<(&'static str, i128)> {
    let per_day = i128::from(per_second(unit)) * 86_400;
    let (day, midnight) = match i64::try_from(count) {
        // Infinity is a date, too.
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

/// Whether an operator gives NULL wherever an operand is NULL.
fn is_strict(function: &str) -> bool {
    match Comparison::named(function) {
        Some(comparison) => !matches!(comparison, Comparison::Distinct | Comparison::NotDistinct),
        None => Operation::named(function).is_some() || matches!(function, "like" | "ilike"),
    }
}

/// The comparison of the operands the other way round.
fn flipped(name: Arc<str>) -> Arc<str> {
    match &*name {
        "lt" => "gt".into(),
        "lt_eq" => "gt_eq".into(),
        "gt" => "lt".into(),
        "gt_eq" => "lt_eq".into(),
        _ => name,
    }
}

/// The comparison that is true where this one is false.
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
