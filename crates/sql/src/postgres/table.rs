//! What the rows of the tables are.

use super::{Category, Context, Given, Type};

/// What a call of a form gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A value for each row; operators too.
    Scalar,
    /// A set of rows.
    Set,
    /// A value for a group.
    Aggregate,
    /// A value for a group in an order: `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`.
    OrderedSet,
    /// The place that a row would have in a group: `rank(5) WITHIN GROUP (ORDER BY x)`.
    HypotheticalSet,
    /// A value for a row among others.
    Window,
}

/// An operator or function with the types that it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The name.
    pub(crate) name: &'static str,
    /// The types it takes. Of WITHIN GROUP also those, behind the others.
    pub(crate) args: &'static [Given],
    /// The type it gives.
    pub(crate) result: Given,
    /// What a call gives.
    pub(crate) kind: Kind,
    /// The type of all arguments from the last one on, where there may be more.
    pub(crate) variadic: Option<Given>,
    /// How many of the last arguments may be left out.
    pub(crate) defaults: u8,
}

pub(super) const fn operator(name: &'static str, args: &'static [Given], result: Given) -> Form {
    function(name, args, result, Kind::Scalar, None, 0)
}

pub(super) const fn function(
    name: &'static str,
    args: &'static [Given],
    result: Given,
    kind: Kind,
    variadic: Option<Given>,
    defaults: u8,
) -> Form {
    Form { name, args, result, kind, variadic, defaults }
}

/// How a cast is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// It changes nothing but the type.
    Binary,
    /// By a function.
    Function,
    /// By the text of the value.
    InOut,
}

/// A cast of the catalog.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) from: Type,
    pub(super) to: Type,
    pub(super) context: Context,
    pub(super) by: By,
}

pub(super) const fn cast(from: Type, to: Type, context: Context, by: By) -> Cast {
    Cast { from, to, context, by }
}

/// What the catalog says of a type.
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
