//! The row types of the generated catalog tables.

use super::{Category, Context, Type, ValueType};

/// The kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Returns a value per row; includes operators.
    Scalar,
    /// Returns a set of rows.
    Set,
    /// Returns a value per group.
    Aggregate,
    /// Returns a value per ordered group: `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`.
    OrderedSet,
    /// Returns the rank of a hypothetical row in a group: `rank(5) WITHIN GROUP (ORDER BY x)`.
    HypotheticalSet,
    /// Returns a value per row within a window.
    Window,
}

/// A signature of an operator or function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The name of the operator or function.
    pub(crate) name: &'static str,
    /// The argument types; those of WITHIN GROUP come last.
    pub(crate) args: &'static [ValueType],
    /// The result type.
    pub(crate) result: ValueType,
    /// The kind of the function.
    pub(crate) kind: Kind,
    /// For a variadic function, the type of the last argument and any further ones.
    pub(crate) variadic: Option<ValueType>,
    /// The number of trailing arguments that may be omitted.
    pub(crate) defaults: u8,
}

pub(super) const fn operator(
    name: &'static str,
    args: &'static [ValueType],
    result: ValueType,
) -> Form {
    function(name, args, result, Kind::Scalar, None, 0)
}

pub(super) const fn function(
    name: &'static str,
    args: &'static [ValueType],
    result: ValueType,
    kind: Kind,
    variadic: Option<ValueType>,
    defaults: u8,
) -> Form {
    Form { name, args, result, kind, variadic, defaults }
}

/// The short name in the generated tables.
pub(super) use CastMethod as By;

/// The method of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CastMethod {
    /// Reinterprets the value.
    Binary,
    /// Calls a function.
    Function,
    /// Converts by way of text.
    InOut,
}

/// A cast of the catalog.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) from: Type,
    pub(super) to: Type,
    pub(super) context: Context,
    pub(super) by: CastMethod,
}

pub(super) const fn cast(from: Type, to: Type, context: Context, by: CastMethod) -> Cast {
    Cast { from, to, context, by }
}

/// Catalog data of a type.
#[derive(Debug)]
pub(super) struct Facts {
    /// The name in the catalog.
    pub(super) name: &'static str,
    /// The name in messages.
    pub(super) shown: &'static str,
    pub(super) category: Category,
    pub(super) preferred: bool,
}

pub(super) const fn facts(
    name: &'static str,
    shown: &'static str,
    category: Category,
    preferred: bool,
) -> Facts {
    Facts { name, shown, category, preferred }
}
