//! Limits of frames in RANGE: the order key plus or minus an offset.
//!
//! A limit must not overflow, since a frame up to beyond the largest key has all keys: numbers get
//! wider types, doubles end at infinity, times of day do not wrap.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState, TimeUnit};

use super::Binder;
use super::typed::TypedExpr;

/// The type in which 64-bit integers are added.
const WIDE: Atom = Atom::Decimal(20, 0);

impl Binder<'_> {
    /// Returns the order key of a frame and the limit `key + offset` or `key - offset` in a type
    /// that holds both. The offset is checked for each row.
    pub(super) fn range_limit(
        &self,
        key: &TypedExpr,
        offset: TypedExpr,
        adds: bool,
    ) -> Result<(TypedExpr, TypedExpr)> {
        let untyped = offset.unknown || offset.is_null();
        let refused = |offset: &TypedExpr| {
            let message = format!(
                "a frame in RANGE over a key of type {} does not take an offset of type {}; cast one of them",
                key.atom, offset.atom
            );
            Err(Error::unsupported(message).with_state(SqlState::FEATURE_NOT_SUPPORTED))
        };
        if key.atom.is_numeric() {
            let offset = if untyped { self.cast_to(offset, &key.atom, false)? } else { offset };
            if !offset.atom.is_numeric() {
                return refused(&offset);
            }
            return self.number_limit(key.clone(), offset, adds);
        }
        let key_atom = match &key.atom {
            Atom::Date => Atom::Timestamp(TimeUnit::Microsecond, None),
            Atom::Duration(_) => Atom::Interval,
            atom @ (Atom::Timestamp(..) | Atom::Time(_) | Atom::Interval) => atom.clone(),
            _ => return refused(&offset),
        };
        let offset = match &offset.atom {
            Atom::Interval | Atom::Duration(_) => self.cast_to(offset, &Atom::Interval, false)?,
            _ if untyped => self.cast_to(offset, &Atom::Interval, false)?,
            _ => return refused(&offset),
        };
        if matches!(key_atom, Atom::Time(_)) {
            let (key, offset) = (self.microseconds(key.clone())?, self.microseconds(offset)?);
            return self.sum(key, self.checked(offset)?, adds);
        }
        let key = self.cast_to(key.clone(), &key_atom, false)?;
        self.sum(key, self.checked(offset)?, adds)
    }

    fn number_limit(
        &self,
        key: TypedExpr,
        offset: TypedExpr,
        adds: bool,
    ) -> Result<(TypedExpr, TypedExpr)> {
        let is_wide = |atom: &Atom| matches!(atom, Atom::Int64 | Atom::UInt64);
        let to = match (&key.atom, &offset.atom) {
            (a, b) if a.is_float() || b.is_float() => Atom::Float64,
            (a, b) if a.is_integer() && b.is_integer() => match is_wide(a) || is_wide(b) {
                true => WIDE,
                false => Atom::Int64,
            },
            (a, b) => {
                let decimal = |value: TypedExpr| match value.atom.is_integer() {
                    true => self.cast_to(value, &WIDE, false),
                    false => Ok(value),
                };
                debug_assert!(!a.is_integer() || !b.is_integer());
                let (key, offset) = (decimal(key)?, decimal(offset)?);
                return self.sum(key, self.checked(offset)?, adds);
            }
        };
        let (key, offset) = (self.cast_to(key, &to, false)?, self.cast_to(offset, &to, false)?);
        let offset = self.checked(offset)?;
        match to {
            Atom::Float64 => self.double_limit(key, offset, adds),
            _ => self.sum(key, offset, adds),
        }
    }

    fn sum(&self, key: TypedExpr, offset: TypedExpr, adds: bool) -> Result<(TypedExpr, TypedExpr)> {
        let function = if adds { "add" } else { "sub" };
        let limit = self.arithmetic(function, key.clone(), offset)?;
        Ok((key, limit))
    }

    /// Returns the limit of a double. As in PostgreSQL, an infinite offset reaches from one
    /// infinity to the other.
    fn double_limit(
        &self,
        key: TypedExpr,
        offset: TypedExpr,
        adds: bool,
    ) -> Result<(TypedExpr, TypedExpr)> {
        let double = |value: f64| Expr::Constant(Scalar::Float(value), Atom::Float64);
        let end = if adds { f64::INFINITY } else { f64::NEG_INFINITY };
        let call = |function: &str, left: &Expr, right: Expr| {
            Expr::call(function, vec![left.clone(), right])
        };
        // The key from which on the sum is out of range.
        let last = match adds {
            true => call("sub", &double(f64::MAX), offset.expr.clone()),
            false => call("add", &double(f64::MIN), offset.expr.clone()),
        };
        let beyond = match adds {
            true => vec![call("gt", &key.expr, last), call("not_eq", &key.expr, double(f64::NAN))],
            false => vec![call("lt", &key.expr, last)],
        };
        let infinite = vec![
            call("eq", &offset.expr, double(f64::INFINITY)),
            call("eq", &key.expr, double(-end)),
        ];
        let (key, sum) = self.sum(key, offset, adds)?;
        let branches = vec![(Expr::Or(vec![Expr::all(beyond), Expr::all(infinite)]), double(end))];
        let limit = Expr::Case { branches, otherwise: Some(Box::new(sum.expr)) };
        Ok((key, TypedExpr::new(limit, Atom::Float64)))
    }

    /// Checks that an offset is neither NULL nor negative when it is computed.
    fn checked(&self, offset: TypedExpr) -> Result<TypedExpr> {
        self.call("frame_offset", vec![offset])
    }

    /// Returns the time of day, or the hours, minutes and seconds of an interval, in microseconds.
    fn microseconds(&self, value: TypedExpr) -> Result<TypedExpr> {
        let part = |name: &str| {
            let args = vec![TypedExpr::text(name), value.clone()];
            self.cast_to(self.function_call("extract", args)?, &Atom::Int64, false)
        };
        let times = |value, factor| self.arithmetic("mul", value, TypedExpr::int64(factor));
        let minutes = self.arithmetic("add", times(part("hour")?, 60)?, part("minute")?)?;
        self.arithmetic("add", times(minutes, 60_000_000)?, part("microseconds")?)
    }
}
