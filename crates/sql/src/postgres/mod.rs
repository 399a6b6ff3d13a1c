//! PostgreSQL's types, casts, operators and functions, and the rules by which it finds what a call
//! means: chapter 10 of its manual, as its parser does it (`parse_func.c`, `parse_oper.c`,
//! `parse_coerce.c`).
//!
//! [`operator`] and [`function`] take a name as the catalog has it (`<>`, `~~` for LIKE, `lower`)
//! and the types that are [`Given`], where a literal in quotes and NULL are [`Type::Unknown`]:
//!
//! ```ignore
//! // 1::smallint + '2'
//! let given = [Given::of_atom(&Atom::Int16), Given::of(Type::Unknown)];
//! match operator("+", &given) {
//!     // The operands become what `call.args` says: (int2, int2); so is the result.
//!     Outcome::Found(call) => bind(call),
//!     // `text(1)`, a call of a type's name, is a cast; operators never are.
//!     Outcome::Cast(to) => cast(to),
//!     // SQLSTATE 42883; `NotFound` knows no such name: a function of another origin may take it.
//!     Outcome::NotFound | Outcome::NoMatch => undefined_function(),
//!     // 42725
//!     Outcome::Ambiguous => ambiguous_function(),
//!     // 42804: a polymorphic function of literals only.
//!     Outcome::Indeterminate => datatype_mismatch(),
//! }
//! ```
//!
//! What the catalog holds is in `tables`, which `crates/sql/postgres_tables.py` writes.

mod casts;
mod polymorphic;
mod resolve;
mod table;
mod tables;

use std::fmt;

use tessera_types::Atom;

pub(crate) use casts::Context;
use casts::common_type;
pub(crate) use resolve::{Outcome, function, operator};
pub(crate) use table::Kind;

/// A type of PostgreSQL's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Varchar,
    Bpchar,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    /// The type of a literal in quotes and of NULL, before its place gives it another.
    Unknown,
    /// A list of whatever type.
    Array,
    /// A struct or a map: only polymorphic functions take them.
    Other,
    /// In the tables: a type that we do not have. No value is of it.
    Foreign,
    /// In the tables, as the following: any value.
    Any,
    AnyElement,
    AnyArray,
    AnyNonArray,
    AnyCompatible,
    AnyCompatibleArray,
}

/// The kinds of types between which literals are undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Category {
    Array,
    Boolean,
    Composite,
    DateTime,
    Foreign,
    Number,
    Pseudo,
    String,
    Timespan,
    User,
    Unknown,
}

/// The type of an argument, operand or result; of an array also that of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Given {
    /// The type.
    pub(crate) ty: Type,
    /// The type of an array's elements. An array that is an element itself does not say.
    pub(crate) element: Option<Type>,
}

impl Given {
    /// A type that is no array.
    pub(crate) const fn of(ty: Type) -> Self {
        Given { ty, element: None }
    }

    /// The array of a type.
    pub(crate) const fn array(element: Type) -> Self {
        Given { ty: Type::Array, element: Some(element) }
    }

    /// The type whose rules an atom follows.
    pub(crate) fn of_atom(atom: &Atom) -> Self {
        Given::of(match atom {
            Atom::Null => Type::Unknown,
            Atom::Boolean => Type::Bool,
            Atom::Int8 | Atom::UInt8 | Atom::Int16 => Type::Int2,
            Atom::UInt16 | Atom::Int32 => Type::Int4,
            Atom::UInt32 | Atom::Int64 => Type::Int8,
            Atom::UInt64 | Atom::Decimal(..) => Type::Numeric,
            Atom::Float32 => Type::Float4,
            Atom::Float64 => Type::Float8,
            Atom::String => Type::Text,
            Atom::Bytes => Type::Bytea,
            Atom::Date => Type::Date,
            Atom::Time(_) => Type::Time,
            Atom::Timestamp(_, None) => Type::Timestamp,
            Atom::Timestamp(_, Some(_)) => Type::Timestamptz,
            Atom::Duration(_) | Atom::Interval => Type::Interval,
            Atom::List(slot) => {
                return match Given::of_atom(&slot.atom).ty {
                    // A list of literals is one of text.
                    Type::Unknown => Given::array(Type::Text),
                    element => Given::array(element),
                };
            }
            Atom::Struct(_) | Atom::Map(..) => Type::Other,
        })
    }

    /// The type of an array's elements.
    pub(crate) fn elements(self) -> Option<Given> {
        self.element.map(Given::of)
    }

    /// The array of this type.
    pub(crate) const fn in_array(self) -> Self {
        Given::array(self.ty)
    }

    /// Whether it is an array.
    pub(crate) fn is_array(self) -> bool {
        self.ty == Type::Array
    }

    /// Whether it is the type of a literal that has none yet.
    pub(crate) fn is_unknown(self) -> bool {
        self.ty == Type::Unknown
    }

    /// Its category.
    pub(crate) fn category(self) -> Category {
        tables::of_type(self.ty).category
    }

    /// Whether literals of its category rather have this type.
    pub(crate) fn is_preferred(self) -> bool {
        tables::of_type(self.ty).preferred
    }
}

/// As PostgreSQL's messages call it: `double precision`, `integer[]`.
impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => write!(f, "{}[]", tables::of_type(element).shown),
            None => f.write_str(tables::of_type(self.ty).shown),
        }
    }
}

#[cfg(test)]
mod tests;
