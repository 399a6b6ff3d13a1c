//! Implicit conversions: types of literals, and common types of several values.
//!
//! As in chapter 10 of PostgreSQL's manual, a string literal has no type until its context gives it
//! one. Values that form one column take the type that all of them convert to; `docs/dialect.md`
//! lists the rules for decimals.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, Result, SqlState, TimeUnit};
use tessera_values::cast::check_cast;
use tessera_values::types::common_type;

use super::Binder;
use super::typed::TypedExpr;

impl Binder<'_> {
    /// Casts a value to a type. With `safe`, a failing cast yields NULL.
    pub(super) fn cast_to(&self, value: TypedExpr, to: &Atom, safe: bool) -> Result<TypedExpr> {
        if value.is_null() {
            return Ok(TypedExpr::new(Expr::null(to.clone()), to.clone()));
        }
        if let Some(typed) = self.inferred(&value, to) {
            return Ok(typed);
        }
        if value.atom == *to {
            return Ok(TypedExpr { unknown: false, ..value });
        }
        if let Some(zoned) = self.in_zone_of_session(&value, to, safe)? {
            return Ok(zoned);
        }
        check_cast(&value.atom, to)?;
        let expr = Expr::Cast { input: Box::new(value.expr), to: to.clone(), safe };
        Ok(TypedExpr::new(expr, to.clone()))
    }

    /// Converts a value to the type that its context requires: a literal is parsed, other values
    /// convert only without loss.
    pub(super) fn implicitly(&self, value: TypedExpr, to: &Atom, place: &str) -> Result<TypedExpr> {
        let fits = value.unknown
            || value.is_null()
            || value.atom == *to
            || common_type(&value.atom, to).as_ref() == Some(to);
        match fits {
            true => self.cast_to(value, to, false),
            false => {
                let message = format!("{place} must be {to}, not {}; cast it", value.atom);
                Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH))
            }
        }
    }

    /// Converts the values of a column to their common type.
    pub(super) fn unified(
        &self,
        values: Vec<TypedExpr>,
        construct: &str,
    ) -> Result<(Vec<TypedExpr>, Atom)> {
        let atom = self.common(&values.iter().collect::<Vec<_>>(), construct)?;
        let values =
            values.into_iter().map(|value| self.retyped(value, &atom)).collect::<Result<_>>()?;
        Ok((values, atom))
    }

    /// Converts two values to their common type.
    pub(super) fn unified_pair(
        &self,
        left: TypedExpr,
        right: TypedExpr,
        construct: &str,
    ) -> Result<(TypedExpr, TypedExpr, Atom)> {
        let atom = self.common(&[&left, &right], construct)?;
        Ok((self.retyped(left, &atom)?, self.retyped(right, &atom)?, atom))
    }

    /// Converts a value to a common type; integer constants are converted while planning.
    pub(super) fn retyped(&self, value: TypedExpr, to: &Atom) -> Result<TypedExpr> {
        match (&value.expr, &value.atom) {
            (Expr::Constant(Scalar::Integer(number), from), _)
                if from.is_integer() && to.is_integer() =>
            {
                Ok(TypedExpr::new(Expr::Constant(Scalar::Integer(*number), to.clone()), to.clone()))
            }
            _ => self.cast_to(value, to, false),
        }
    }

    /// Returns the common type of values.
    pub(super) fn common(&self, values: &[&TypedExpr], construct: &str) -> Result<Atom> {
        let mut known: Vec<Atom> = Vec::new();
        for value in values.iter().filter(|value| !value.unknown && value.atom != Atom::Null) {
            if !known.contains(&value.atom) {
                known.push(value.atom.clone());
            }
        }
        let texts: Vec<&str> = values.iter().filter_map(|value| value.literal()).collect();
        if known.is_empty() {
            return Ok(if texts.is_empty() { Atom::Null } else { Atom::String });
        }
        if !texts.is_empty() {
            let literal = literal_atom(&known, &texts);
            if !known.contains(&literal) {
                known.push(literal);
            }
        }
        column_atom(&known).ok_or_else(|| {
            let types = known.iter().map(Atom::to_string).collect::<Vec<_>>().join(" and ");
            let message = format!("{construct} mixes {types}; cast them to one type");
            Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH)
        })
    }
}

/// Returns the type of a column with values of these types: the type in which they are compared,
/// except that decimals and integers beside `real` become `real`.
fn column_atom(atoms: &[Atom]) -> Option<Atom> {
    let (first, rest) = atoms.split_first()?;
    let common = rest.iter().try_fold(first.clone(), |common, atom| common_type(&common, atom))?;
    match common {
        Atom::Float64 if !atoms.contains(&Atom::Float64) => Some(Atom::Float32),
        common => Some(common),
    }
}

/// Returns the type of untyped literals beside values of these types.
fn literal_atom(atoms: &[Atom], texts: &[&str]) -> Atom {
    if atoms.iter().all(Atom::is_numeric) {
        return number_atom(atoms, texts);
    }
    if atoms.iter().all(|atom| matches!(atom, Atom::Timestamp(..) | Atom::Date))
        && let Some(Atom::Timestamp(unit, zone)) = column_atom(atoms)
    {
        return Atom::Timestamp(at_least_micros(unit), zone);
    }
    atoms.first().cloned().unwrap_or(Atom::String)
}

/// Returns the type of untyped literals beside numbers; decimals keep all digits of the literals.
pub(super) fn number_atom(atoms: &[Atom], texts: &[&str]) -> Atom {
    if atoms.iter().any(Atom::is_float) {
        return column_atom(atoms).unwrap_or(Atom::Float64);
    }
    if atoms.iter().all(Atom::is_integer) {
        return column_atom(atoms).unwrap_or(Atom::Int64);
    }
    let scale = |atom: &Atom| match atom {
        Atom::Decimal(_, scale) => i16::from(*scale),
        _ => 0,
    };
    let fraction = |text: &&str| {
        let digits = text.split(['e', 'E']).next().and_then(|text| text.split_once('.'));
        digits.map_or(0, |(_, digits)| digits.trim_end().len().min(37) as i16)
    };
    let scale = atoms.iter().map(scale).chain(texts.iter().map(fraction)).max().unwrap_or(0);
    Atom::Decimal(DECIMAL_PRECISION_MAX, scale as i8)
}

pub(super) fn at_least_micros(unit: TimeUnit) -> TimeUnit {
    match unit {
        TimeUnit::Second | TimeUnit::Millisecond => TimeUnit::Microsecond,
        other => other,
    }
}
