//! Where one type may stand for another.

use super::table::By;
use super::{Category, Given, Type, polymorphic, tables};

/// Where a conversion may take place; what is allowed in one is allowed in the following.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Context {
    /// Everywhere: as the argument of a function.
    Implicit,
    /// Where a value is stored in a column.
    Assignment,
    /// Where a cast is written.
    Explicit,
}

/// The first context in which a value of one type may become one of the other, if there is any.
pub(crate) fn can_cast(from: Given, to: Given) -> Option<Context> {
    if from.is_unknown() {
        return Some(Context::Implicit);
    }
    path(from, to).map(|(context, _)| context)
}

/// The type of several values that become one column or one array, as UNION, CASE, COALESCE, VALUES
/// and ARRAY choose it. None where they have none, SQLSTATE 42804 (or 42846 where a value then
/// cannot be converted).
pub(crate) fn common_type(types: &[Given]) -> Option<Given> {
    let chosen = chosen_type(types)?;
    types.iter().all(|ty| is_implicit(*ty, chosen)).then_some(chosen)
}

/// As `common_type`, without a look at whether all can be converted to it.
fn chosen_type(types: &[Given]) -> Option<Given> {
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
    Some(if chosen.is_unknown() { Given::of(Type::Text) } else { chosen })
}

fn is_implicit(from: Given, to: Given) -> bool {
    can_cast(from, to) == Some(Context::Implicit)
}

/// Whether arguments of some types may be passed where others are declared.
pub(super) fn can_pass(given: &[Given], declared: &[Given]) -> bool {
    let passes = given.iter().zip(declared).all(|(given, declared)| {
        given == declared
            || declared.category() == Category::Pseudo
            || is_implicit(*given, *declared)
    });
    passes && polymorphic::solve(given, declared).is_some()
}

/// The type that a call `name(value)` casts to: one whose name this is, where no function does the
/// conversion.
pub(super) fn cast_called(name: &str, from: Given) -> Option<Given> {
    let facts = |ty: &Type| tables::of_type(*ty);
    let ty = Type::NAMED.iter().find(|ty| facts(ty).name == name)?;
    let to = Given::of(*ty);
    let is_cast = match path(from, to) {
        _ if from.is_unknown() => true,
        Some((_, By::Binary)) => true,
        Some((_, By::InOut)) => from.ty != Type::Other,
        _ => false,
    };
    is_cast.then_some(to)
}

/// The first context of a conversion, and how it is done; that of arrays converts each element.
fn path(from: Given, to: Given) -> Option<(Context, By)> {
    if from == to || to.ty == Type::Any {
        return Some((Context::Implicit, By::Binary));
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
        return Some((context, By::Function));
    }
    if to.category() == Category::String {
        Some((Context::Assignment, By::InOut))
    } else if from.category() == Category::String {
        Some((Context::Explicit, By::InOut))
    } else {
        None
    }
}

impl Type {
    /// The types whose names may be called.
    pub(super) const NAMED: [Type; 16] = [
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
        Type::Date,
        Type::Time,
        Type::Timestamp,
        Type::Timestamptz,
        Type::Interval,
    ];
}
