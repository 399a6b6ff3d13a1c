//! Types of untyped literals and NULLs in operands and arguments, resolved with PostgreSQL's
//! catalog. A call that PostgreSQL knows with arguments that it does not take is an error.

use tessera_types::{Atom, Error, Result, SqlState, TimeUnit};

use super::Binder;
use super::coerce::number_atom;
use super::typed::TypedExpr;
use tessera_overloads::{Kind, Outcome, Type, ValueType};

/// Functions that take more types here than in PostgreSQL, as `docs/dialect.md` says or as in
/// DuckDB.
const TAKE_MORE: [&str; 7] =
    ["array_length", "bit_count", "decode", "encode", "isfinite", "make_timestamp", "timezone"];

/// Functions over bytes that also take text.
const TAKE_TEXTS: [&str; 4] = ["sha224", "sha256", "sha384", "sha512"];

/// Functions that also take bit strings, mostly as in DuckDB.
const TAKE_BITS: [&str; 3] = ["char_length", "character_length", "substr"];

/// Functions that also take lists, as in DuckDB.
const TAKE_LISTS: [&str; 3] = ["char_length", "character_length", "length"];

impl Binder<'_> {
    /// Types the untyped operands of a PostgreSQL operator.
    pub(super) fn operands_typed(
        &self,
        operator: &str,
        operands: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        if !operands.iter().any(is_untyped) {
            return Ok(operands);
        }
        let given: Vec<ValueType> = operands.iter().map(value_type).collect();
        match tessera_overloads::operator(operator, &given) {
            Outcome::Found(call) => self.cast_to_signature(operands, &call.args),
            // The result is NULL for every operator, as in DuckDB.
            _ if operands.iter().any(TypedExpr::is_null) => Ok(operands),
            Outcome::Ambiguous | Outcome::Indeterminate => {
                let message =
                    format!("operator {} is ambiguous; cast the literal", shown(operator, &given));
                Err(Error::semantic(message).with_state(SqlState::AMBIGUOUS_FUNCTION))
            }
            // A struct, or an operator that PostgreSQL does not have.
            _ if given.iter().any(|given| given.ty == Type::Other) => Ok(operands),
            Outcome::NoMatch | Outcome::NotFound | Outcome::Cast(_) => {
                let message =
                    format!("unknown operator {}; cast an operand", shown(operator, &given));
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    /// Types the operands of a binary operator.
    pub(super) fn pair_typed(
        &self,
        operator: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<(TypedExpr, TypedExpr)> {
        let [left, right] =
            <[TypedExpr; 2]>::try_from(self.operands_typed(operator, vec![left, right])?)
                .map_err(|_| Error::internal("expected two operands"))?;
        Ok((left, right))
    }

    /// Types the operand of a prefix operator.
    pub(super) fn single_typed(&self, operator: &str, operand: TypedExpr) -> Result<TypedExpr> {
        self.operands_typed(operator, vec![operand])?
            .pop()
            .ok_or_else(|| Error::internal("expected one operand"))
    }

    /// Types the untyped arguments of a function.
    ///
    /// # Errors
    /// PostgreSQL has functions with this name, but none takes the arguments.
    pub(super) fn arguments_typed(
        &self,
        name: &str,
        kind: Kind,
        args: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        let all: Vec<ValueType> = args.iter().map(value_type).collect();
        let has_null = args.iter().any(TypedExpr::is_null);
        let state = match tessera_overloads::function(name, &[kind], &all) {
            Outcome::Found(call) => return self.cast_to_signature(args, &call.args),
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
                if TAKE_BITS.contains(&name) && all.iter().any(|arg| arg.ty == Type::Bit) =>
            {
                None
            }
            Outcome::NoMatch
                if TAKE_LISTS.contains(&name) && all.iter().all(|arg| arg.is_array()) =>
            {
                None
            }
            Outcome::NoMatch => {
                let wide: Vec<ValueType> = all.iter().map(|given| wide(*given)).collect();
                let is_known = matches!(
                    tessera_overloads::function(name, &[kind], &wide),
                    Outcome::Found(_) | Outcome::Ambiguous | Outcome::Cast(_)
                );
                (!is_known && !all.iter().any(|given| given.ty == Type::Other))
                    .then_some(SqlState::UNDEFINED_FUNCTION)
            }
        };
        let types = || all.iter().map(ValueType::to_string).collect::<Vec<_>>().join(", ");
        match state {
            None => Ok(args.into_iter().map(TypedExpr::known).collect()),
            Some(state) => {
                let message = match state {
                    SqlState::UNDEFINED_FUNCTION => {
                        format!("function {name} does not take ({}); cast the arguments", types())
                    }
                    _ => {
                        format!("function {name}({}) is ambiguous; cast the literals", types())
                    }
                };
                Err(Error::semantic(message).with_state(state))
            }
        }
    }

    /// Casts untyped values to the types of a signature; other values keep their type.
    fn cast_to_signature(
        &self,
        values: Vec<TypedExpr>,
        types: &[ValueType],
    ) -> Result<Vec<TypedExpr>> {
        let others: Vec<(ValueType, Atom)> = values
            .iter()
            .filter(|value| !is_untyped(value))
            .map(|value| (ValueType::of_atom(&value.atom), value.atom.clone()))
            .collect();
        let typed = |(value, ty): (TypedExpr, &ValueType)| {
            if !is_untyped(&value) {
                return Ok(value);
            }
            // Use the digits of another value with the same type.
            let beside = others.iter().find(|(other, _)| other == ty).map(|(_, atom)| atom);
            match (beside, atom_of(*ty, &value)) {
                (Some(atom), _) if value.unknown => self.adapt_literal(value, atom),
                (Some(atom), _) => self.cast_to(value, atom, false),
                (None, Some(atom)) => self.cast_to(value, &self.localized(&atom), false),
                (None, None) => Ok(value.known()),
            }
        };
        values.into_iter().zip(types).map(typed).collect()
    }
}

fn is_untyped(value: &TypedExpr) -> bool {
    value.unknown || value.is_null()
}

fn value_type(value: &TypedExpr) -> ValueType {
    if value.unknown { ValueType::of(Type::Unknown) } else { ValueType::of_atom(&value.atom) }
}

/// Generalizes a number type: native functions return wider integers and more doubles than
/// PostgreSQL's.
fn wide(given: ValueType) -> ValueType {
    match given.ty {
        Type::Int2 | Type::Int4 | Type::Int8 => ValueType::of(Type::Int4),
        Type::Float4 | Type::Float8 => ValueType::of(Type::Numeric),
        _ => given,
    }
}

fn shown(operator: &str, operands: &[ValueType]) -> String {
    match operands {
        [left, right] => format!("{left} {operator} {right}"),
        [only] => format!("{operator} {only}"),
        _ => operator.to_string(),
    }
}

/// Returns the type of a literal for a PostgreSQL type, or `None` if the literal keeps its own
/// type.
fn atom_of(ty: ValueType, literal: &TypedExpr) -> Option<Atom> {
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
        Type::Bit | Type::Varbit => Atom::Bits,
        Type::Date => Atom::Date,
        Type::Time => Atom::Time(TimeUnit::Microsecond),
        Type::Timetz => Atom::TimeTz,
        Type::Timestamp => Atom::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamptz => Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Interval => Atom::Interval,
        Type::Uuid => Atom::Uuid,
        Type::Array => super::table_function::list_of(atom_of(ty.elements()?, literal)?),
        _ => return None,
    })
}
