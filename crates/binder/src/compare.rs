//! Comparisons in a type that holds all values of both sides.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, Result, SqlState, TimeUnit};
use tessera_values::cast::whole_digits;
use tessera_values::types::common_type;

use super::Binder;
use super::coerce::{at_least_micros, number_atom};
use super::typed::TypedExpr;

impl Binder<'_> {
    /// Compares two values with the function `name`: `eq`, `lt`, `is_distinct` and so on.
    pub(super) fn compared(
        &self,
        name: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<TypedExpr> {
        let (left, right) = self.comparable(self.settled(left), self.settled(right))?;
        let (left, right) = self.compared_keys(name, left, right)?;
        let (a, b) = (&left.atom, &right.atom);
        if a == b {
            return Ok(TypedExpr::boolean(Expr::call(name, vec![left.expr, right.expr])));
        }
        if let Some((left, right)) = self.without_common_type(&left, &right)? {
            return self.call(&format!("{name}_exact"), vec![left, right]);
        }
        let Some(common) = common_type(a, b) else { return Err(incomparable(a, b)) };
        let (left, right) = (self.retyped(left, &common)?, self.retyped(right, &common)?);
        Ok(TypedExpr::boolean(Expr::call(name, vec![left.expr, right.expr])))
    }

    /// Converts an untyped literal to the type of the other side.
    fn comparable(&self, left: TypedExpr, right: TypedExpr) -> Result<(TypedExpr, TypedExpr)> {
        let (left, right) = match (left.unknown, right.unknown) {
            (true, false) if right.atom != Atom::Null => {
                (self.adapt_literal(left, &right.atom)?, right)
            }
            (false, true) if left.atom != Atom::Null => {
                let right = self.adapt_literal(right, &left.atom)?;
                (left, right)
            }
            _ => (left.known(), right.known()),
        };
        Ok(match (&left.atom, &right.atom) {
            (Atom::Null, other) if *other != Atom::Null => {
                (self.cast_to(left, other, false)?, right)
            }
            (other, Atom::Null) if *other != Atom::Null => {
                let right = self.cast_to(right, other, false)?;
                (left, right)
            }
            // A time of day is an interval since midnight.
            (Atom::Time(_), Atom::Interval) => (self.cast_to(left, &Atom::Interval, false)?, right),
            (Atom::Interval, Atom::Time(_)) => {
                let right = self.cast_to(right, &Atom::Interval, false)?;
                (left, right)
            }
            _ => (left, right),
        })
    }

    /// Converts an untyped literal to a type that compares with this type.
    pub(super) fn adapt_literal(&self, literal: TypedExpr, other: &Atom) -> Result<TypedExpr> {
        let Some(text) = literal.literal() else { return Ok(literal) };
        let to = match other {
            Atom::String | Atom::Null => return Ok(literal.known()),
            Atom::Decimal(..) => number_atom(std::slice::from_ref(other), &[text]),
            Atom::Timestamp(TimeUnit::Nanosecond, zone) => {
                // Nanoseconds in 64 bits end in the year 2262.
                let nanos = self.cast_to(literal.clone(), other, true)?;
                match self.evaluated(nanos)?.expr {
                    Expr::Constant(Scalar::Null, _) => {
                        Atom::Timestamp(TimeUnit::Microsecond, zone.clone())
                    }
                    _ => other.clone(),
                }
            }
            Atom::Timestamp(unit, zone) => Atom::Timestamp(at_least_micros(*unit), zone.clone()),
            Atom::Duration(_) => Atom::Interval,
            other => other.clone(),
        };
        self.cast_to(literal, &to, false)
    }

    /// Returns both sides unconverted if no type holds the values of both: decimals with too many
    /// digits, and nanosecond timestamps beside dates or timestamps outside their range.
    fn without_common_type(
        &self,
        left: &TypedExpr,
        right: &TypedExpr,
    ) -> Result<Option<(TypedExpr, TypedExpr)>> {
        if let (Atom::Timestamp(a, _), Atom::Timestamp(b, _)) = (&left.atom, &right.atom)
            && (*a == TimeUnit::Nanosecond) != (*b == TimeUnit::Nanosecond)
        {
            return self.timestamps_without_common_type(left, right);
        }
        if matches!(
            (&left.atom, &right.atom),
            (Atom::Timestamp(TimeUnit::Nanosecond, None), Atom::Date)
        ) || matches!(
            (&left.atom, &right.atom),
            (Atom::Date, Atom::Timestamp(TimeUnit::Nanosecond, None))
        ) {
            return self.timestamps_without_common_type(left, right);
        }
        let decimal = |value: &TypedExpr| matches!(value.atom, Atom::Decimal(..));
        let (true, Some(a), Some(b)) =
            (decimal(left) || decimal(right), digits(left), digits(right))
        else {
            return Ok(None);
        };
        let too_long = a.0.max(b.0) + a.1.max(b.1) > i16::from(DECIMAL_PRECISION_MAX);
        Ok(too_long.then(|| (left.clone(), right.clone())))
    }

    /// Like `without_common_type`, for a nanosecond timestamp and another date or timestamp.
    fn timestamps_without_common_type(
        &self,
        left: &TypedExpr,
        right: &TypedExpr,
    ) -> Result<Option<(TypedExpr, TypedExpr)>> {
        let zone = |atom: &Atom| matches!(atom, Atom::Timestamp(_, Some(_)));
        if zone(&left.atom) != zone(&right.atom) {
            return Ok(None);
        }
        // A constant in the range of nanoseconds is converted to nanoseconds.
        let holds = |value: &TypedExpr, nanos: &Atom| -> Result<bool> {
            if matches!(nanos, Atom::Date) {
                return Ok(false);
            }
            let converted = self.evaluated(self.cast_to(value.clone(), nanos, true)?)?;
            Ok(matches!(converted.expr, Expr::Constant(value, _) if !value.is_null()))
        };
        let is_nanos = |atom: &Atom| matches!(atom, Atom::Timestamp(TimeUnit::Nanosecond, _));
        let constant = match is_nanos(&left.atom) {
            true => holds(right, &left.atom)?,
            false => holds(left, &right.atom)?,
        };
        Ok((!constant).then(|| (left.clone(), right.clone())))
    }
}

/// Returns the digits before and after the decimal point; for a constant, the digits it needs.
fn digits(value: &TypedExpr) -> Option<(i16, i16)> {
    if let Expr::Constant(Scalar::Integer(number), atom) = &value.expr
        && atom.is_integer()
    {
        return Some((number.unsigned_abs().checked_ilog10().map_or(1, |log| log as i16 + 1), 0));
    }
    Some(match &value.atom {
        Atom::Decimal(precision, scale) => {
            (i16::from(*precision) - i16::from(*scale), i16::from(*scale))
        }
        whole => (i16::from(whole_digits(whole)?), 0),
    })
}

fn incomparable(left: &Atom, right: &Atom) -> Error {
    let message =
        format!("{left} and {right} cannot be compared; cast one to the type of the other");
    Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Comparison {
    /// Returns the comparison of an operator; `None` for other operators.
    pub(super) fn of(op: &sqlparser::ast::BinaryOperator) -> Option<Comparison> {
        use sqlparser::ast::BinaryOperator as O;
        Some(match op {
            O::Eq => Comparison::Eq,
            O::NotEq => Comparison::NotEq,
            O::Lt => Comparison::Lt,
            O::LtEq => Comparison::LtEq,
            O::Gt => Comparison::Gt,
            O::GtEq => Comparison::GtEq,
            _ => return None,
        })
    }

    /// Returns the name of the function that compares.
    pub(super) fn function(self) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::NotEq => "not_eq",
            Comparison::Lt => "lt",
            Comparison::LtEq => "lt_eq",
            Comparison::Gt => "gt",
            Comparison::GtEq => "gt_eq",
        }
    }
}
