//! Types that values take where none is written: literals, and columns of several values.
//!
//! As in chapter 10 of PostgreSQL's manual, a literal of text has no type until something gives it
//! one. Values that become one column have the type that all of them convert to without loss of
//! kind; `docs/dialect.md` says which that is for decimals.

use tessera_functions::cast::check_cast;
use tessera_functions::common_type;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, Result, SqlState, TimeUnit};

use super::Binder;
use super::typed::Typed;

impl Binder<'_> {
    /// The value converted to a type, as a cast does it.
    pub(super) fn cast_to(&self, value: Typed, to: &Atom, safe: bool) -> Result<Typed> {
        if value.is_null() {
            return Ok(Typed::new(Expr::null(to.clone()), to.clone()));
        }
        if value.atom == *to {
            return Ok(Typed { unknown: false, ..value });
        }
        check_cast(&value.atom, to)?;
        let expr = Expr::Cast { input: Box::new(value.expr), to: to.clone(), safe };
        Ok(Typed::new(expr, to.clone()))
    }

    /// The value as a type that its place asks for: a literal is read as one, other values only
    /// where none is lost.
    pub(super) fn implicitly(&self, value: Typed, to: &Atom, place: &str) -> Result<Typed> {
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

    /// Values of one column.
    pub(super) fn unified(
        &self,
        values: Vec<Typed>,
        construct: &str,
    ) -> Result<(Vec<Typed>, Atom)> {
        let atom = self.common(&values.iter().collect::<Vec<_>>(), construct)?;
        let values =
            values.into_iter().map(|value| self.retyped(value, &atom)).collect::<Result<_>>()?;
        Ok((values, atom))
    }

    /// Two values of one type.
    pub(super) fn unified_pair(
        &self,
        left: Typed,
        right: Typed,
        construct: &str,
    ) -> Result<(Typed, Typed, Atom)> {
        let atom = self.common(&[&left, &right], construct)?;
        Ok((self.retyped(left, &atom)?, self.retyped(right, &atom)?, atom))
    }

    /// A value as the type that it has in common with others; whole constants keep their value.
    pub(super) fn retyped(&self, value: Typed, to: &Atom) -> Result<Typed> {
        match (&value.expr, &value.atom) {
            (Expr::Constant(Scalar::Integer(number), from), _)
                if from.is_integer() && to.is_integer() =>
            {
                Ok(Typed::new(Expr::Constant(Scalar::Integer(*number), to.clone()), to.clone()))
            }
            _ => self.cast_to(value, to, false),
        }
    }

    /// The type of a column of these values.
    pub(super) fn common(&self, values: &[&Typed], construct: &str) -> Result<Atom> {
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

/// The type of a column that has values of these types: the one in which they are compared, but
/// decimals and whole numbers beside `real` become `real`.
fn column_atom(atoms: &[Atom]) -> Option<Atom> {
    let (first, rest) = atoms.split_first()?;
    let common = rest.iter().try_fold(first.clone(), |common, atom| common_type(&common, atom))?;
    match common {
        Atom::Float64 if !atoms.contains(&Atom::Float64) => Some(Atom::Float32),
        common => Some(common),
    }
}

/// The type of literals of text beside values of these types.
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

/// The type of literals beside numbers of these types; decimals keep all digits of the literals.
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
