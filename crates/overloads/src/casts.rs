//! Conversions between types.

use super::table::CastMethod;
use super::{Category, Type, ValueType, polymorphic, tables};

/// The contexts that allow a conversion. A conversion allowed in one context is allowed in all
/// later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Context {
    /// Any expression, such as a function argument.
    Implicit,
    /// Storing a value in a column.
    Assignment,
    /// An explicit cast.
    Explicit,
}

/// Returns the first context that allows a conversion, or `None`.
pub(crate) fn can_cast(from: ValueType, to: ValueType) -> Option<Context> {
    if from.is_unknown() {
        return Some(Context::Implicit);
    }
    path(from, to).map(|(context, _)| context)
}

/// Returns the common type of several values, as UNION, CASE, COALESCE, VALUES and ARRAY choose it.
/// `None` means SQLSTATE 42804 (or 42846 if a value cannot be converted).
pub(crate) fn common_type(types: &[ValueType]) -> Option<ValueType> {
    let chosen = chosen_type(types)?;
    types.iter().all(|ty| is_implicit(*ty, chosen)).then_some(chosen)
}

/// Like `common_type`, without checking that all values can be converted.
fn chosen_type(types: &[ValueType]) -> Option<ValueType> {
    let mut chosen = *types.first()?;
    for ty in types.iter().copied().filter(|ty| !ty.is_unknown()) {
        if chosen.is_unknown() {
            chosen = ty;
        } else if ty.category() != chosen.category() {
            return None;
        } else if !chosen.is_preferred() && is_implicit(chosen, ty) && !is_implicit(ty, chosen) {
            chosen = ty;
        }
    }
    Some(if chosen.is_unknown() { ValueType::of(Type::Text) } else { chosen })
}

fn is_implicit(from: ValueType, to: ValueType) -> bool {
    can_cast(from, to) == Some(Context::Implicit)
}

/// Returns whether arguments of these types match a declaration.
pub(super) fn can_pass(given: &[ValueType], declared: &[ValueType]) -> bool {
    let passes = given.iter().zip(declared).all(|(given, declared)| {
        given == declared
            || declared.category() == Category::Pseudo
            || is_implicit(*given, *declared)
    });
    passes && polymorphic::solve(given, declared).is_some()
}

/// Returns the type that a call `name(value)` casts to: the type with this name, if no function
/// performs the conversion.
pub(super) fn cast_called(name: &str, from: ValueType) -> Option<ValueType> {
    let facts = |ty: &Type| tables::of_type(*ty);
    let ty = Type::NAMED.iter().find(|ty| facts(ty).name == name)?;
    let to = ValueType::of(*ty);
    let is_cast = match path(from, to) {
        _ if from.is_unknown() => true,
        Some((_, CastMethod::Binary)) => true,
        Some((_, CastMethod::InOut)) => from.ty != Type::Other,
        _ => false,
    };
    is_cast.then_some(to)
}

/// Returns the first context that allows a conversion, and its method; arrays are converted by
/// element.
fn path(from: ValueType, to: ValueType) -> Option<(Context, CastMethod)> {
    if from == to || to.ty == Type::Any {
        return Some((Context::Implicit, CastMethod::Binary));
    }
    if to.category() == Category::Pseudo || to.ty == Type::Foreign {
        return None;
    }
    if let Some(cast) = tables::CASTS.iter().find(|cast| cast.from == from.ty && cast.to == to.ty) {
        return Some((cast.context, cast.by));
    }
    if let (Some(from), Some(to)) = (from.elements(), to.elements())
        && let Some((context, _)) = path(from, to)
    {
        return Some((context, CastMethod::Function));
    }
    if to.category() == Category::String {
        Some((Context::Assignment, CastMethod::InOut))
    } else if from.category() == Category::String {
        Some((Context::Explicit, CastMethod::InOut))
    } else {
        None
    }
}

impl Type {
    /// The types that have a function-style cast, `name(value)`.
    pub(super) const NAMED: [Type; 20] = [
        Type::Bool,
        Type::Int2,
        Type::Int4,
        Type::Int8,
        Type::Numeric,
        Type::Float4,
        Type::Float8,
        Type::Text,
        Type::Varchar,
        Type::Bpchar,
        Type::Bytea,
        Type::Bit,
        Type::Varbit,
        Type::Date,
        Type::Time,
        Type::Timetz,
        Type::Timestamp,
        Type::Timestamptz,
        Type::Interval,
        Type::Uuid,
    ];
}
