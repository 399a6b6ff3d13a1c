//! Literals and NULLs without a type among operands and arguments. They become what PostgreSQL's
//! tables say; so a call that PostgreSQL knows, of arguments that it does not take, is an error.

use tessera_types::{Atom, Error, Result, SqlState, TimeUnit};

use super::Binder;
use super::coerce::number_atom;
use super::typed::Typed;
use crate::postgres::{self, Given, Kind, Outcome, Type};

/// Functions that take more types here than in PostgreSQL, as `docs/dialect.md` says or as DuckDB's
/// of that name do.
const TAKE_MORE: [&str; 2] = ["array_length", "isfinite"];

/// Functions of bytes that take text, too: its bytes.
const TAKE_TEXTS: [&str; 4] = ["sha224", "sha256", "sha384", "sha512"];

/// Functions that take lists, too, as DuckDB's do.
const TAKE_LISTS: [&str; 3] = ["char_length", "character_length", "length"];

impl Binder<'_> {
    /// The operands of an operator of PostgreSQL's: those without a type have one, if there is such
    /// an operator.
    pub(super) fn operands_typed(
        &self,
        operator: &str,
        operands: Vec<Typed>,
    ) -> Result<Vec<Typed>> {
        if !operands.iter().any(is_untyped) {
            return Ok(operands);
        }
        let given: Vec<Given> = operands.iter().map(given).collect();
        match postgres::operator(operator, &given) {
            Outcome::Found(call) => self.found(operands, &call.args),
            // The result is NULL whichever operator is meant, as in DuckDB.
            _ if operands.iter().any(Typed::is_null) => Ok(operands),
            Outcome::Ambiguous | Outcome::Indeterminate => {
                let message = format!(
                    "{} can mean several operators; cast the literal",
                    shown(operator, &given)
                );
                Err(Error::semantic(message).with_state(SqlState::AMBIGUOUS_FUNCTION))
            }
            // A struct, or an operator of another origin.
            _ if given.iter().any(|given| given.ty == Type::Other) => Ok(operands),
            Outcome::NoMatch | Outcome::NotFound | Outcome::Cast(_) => {
                let message =
                    format!("there is no operator {}; cast an operand", shown(operator, &given));
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    /// The two operands of an operator.
    pub(super) fn pair_typed(
        &self,
        operator: &str,
        left: Typed,
        right: Typed,
    ) -> Result<(Typed, Typed)> {
        let [left, right] =
            <[Typed; 2]>::try_from(self.operands_typed(operator, vec![left, right])?)
                .map_err(|_| Error::internal("two operands are not"))?;
        Ok((left, right))
    }

    /// The operand of an operator in front of it.
    pub(super) fn single_typed(&self, operator: &str, operand: Typed) -> Result<Typed> {
        self.operands_typed(operator, vec![operand])?
            .pop()
            .ok_or_else(|| Error::internal("an operand is lost"))
    }

    /// The arguments of a function: those without a type have one. An error where PostgreSQL has
    /// functions of that name, and none takes them.
    pub(super) fn arguments_typed(
        &self,
        name: &str,
        kind: Kind,
        args: Vec<Typed>,
    ) -> Result<Vec<Typed>> {
        let all: Vec<Given> = args.iter().map(given).collect();
        let has_null = args.iter().any(Typed::is_null);
        let state = match postgres::function(name, &[kind], &all) {
            Outcome::Found(call) => return self.found(args, &call.args),
            Outcome::NotFound | Outcome::Cast(_) => None,
            Outcome::Ambiguous if !has_null => Some(SqlState::AMBIGUOUS_FUNCTION),
            Outcome::Indeterminate if !has_null => Some(SqlState::DATATYPE_MISMATCH),
            Outcome::Ambiguous | Outcome::Indeterminate => None,
            Outcome::NoMatch if TAKE_MORE.contains(&name) => None,
            Outcome::NoMatch
                if TAKE_TEXTS.contains(&name) && all.iter().all(|arg| arg.ty == Type::Text) =>
            {
                None
            }
            Outcome::NoMatch
                if TAKE_LISTS.contains(&name) && all.iter().all(|arg| arg.is_array()) =>
            {
                None
            }
            Outcome::NoMatch => {
                let wide: Vec<Given> = all.iter().map(|given| wide(*given)).collect();
                let is_known = matches!(
                    postgres::function(name, &[kind], &wide),
                    Outcome::Found(_) | Outcome::Ambiguous | Outcome::Cast(_)
                );
                (!is_known && !all.iter().any(|given| given.ty == Type::Other))
                    .then_some(SqlState::UNDEFINED_FUNCTION)
            }
        };
        let types = || all.iter().map(Given::to_string).collect::<Vec<_>>().join(", ");
        match state {
            None => Ok(args.into_iter().map(Typed::known).collect()),
            Some(state) => {
                let message = match state {
                    SqlState::UNDEFINED_FUNCTION => {
                        format!("{name} does not take ({}); cast the arguments", types())
                    }
                    _ => {
                        format!("{name}({}) can mean several functions; cast the literals", types())
                    }
                };
                Err(Error::semantic(message).with_state(state))
            }
        }
    }

    /// Values as the types that were found; those that have a type keep it.
    fn found(&self, values: Vec<Typed>, types: &[Given]) -> Result<Vec<Typed>> {
        let others: Vec<(Given, Atom)> = values
            .iter()
            .filter(|value| !is_untyped(value))
            .map(|value| (Given::of_atom(&value.atom), value.atom.clone()))
            .collect();
        let typed = |(value, ty): (Typed, &Given)| {
            if !is_untyped(&value) {
                return Ok(value);
            }
            // Beside a value of that type it is read as one of the same digits.
            let beside = others.iter().find(|(other, _)| other == ty).map(|(_, atom)| atom);
            match (beside, atom_of(*ty, &value)) {
                (Some(atom), _) if value.unknown => self.beside(value, atom),
                (Some(atom), _) => self.cast_to(value, atom, false),
                (None, Some(atom)) => self.cast_to(value, &atom, false),
                (None, None) => Ok(value.known()),
            }
        };
        values.into_iter().zip(types).map(typed).collect()
    }
}

fn is_untyped(value: &Typed) -> bool {
    value.unknown || value.is_null()
}

fn given(value: &Typed) -> Given {
    if value.unknown { Given::of(Type::Unknown) } else { Given::of_atom(&value.atom) }
}

/// The type that stands for all numbers of its kind: our functions give wider integers and more
/// doubles than PostgreSQL's.
fn wide(given: Given) -> Given {
    match given.ty {
        Type::Int2 | Type::Int4 | Type::Int8 => Given::of(Type::Int4),
        Type::Float4 | Type::Float8 => Given::of(Type::Numeric),
        _ => given,
    }
}

fn shown(operator: &str, operands: &[Given]) -> String {
    match operands {
        [left, right] => format!("{left} {operator} {right}"),
        [only] => format!("{operator} {only}"),
        _ => operator.to_string(),
    }
}

/// The type that a literal is read as where PostgreSQL finds this one; none where it keeps its own.
fn atom_of(ty: Given, literal: &Typed) -> Option<Atom> {
    Some(match ty.ty {
        Type::Bool => Atom::Boolean,
        Type::Int2 => Atom::Int16,
        Type::Int4 => Atom::Int32,
        Type::Int8 => Atom::Int64,
        Type::Numeric => {
            let texts: Vec<&str> = literal.literal().into_iter().collect();
            number_atom(&[Atom::Decimal(1, 0)], &texts)
        }
        Type::Float4 => Atom::Float32,
        Type::Float8 => Atom::Float64,
        Type::Text | Type::Varchar | Type::Bpchar => Atom::String,
        Type::Bytea => Atom::Bytes,
        Type::Date => Atom::Date,
        Type::Time => Atom::Time(TimeUnit::Microsecond),
        Type::Timestamp => Atom::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamptz => Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Interval => Atom::Interval,
        Type::Array => super::table_function::list_of(atom_of(ty.elements()?, literal)?),
        _ => return None,
    })
}
