//! PostgreSQL's types, casts, operators and functions, and its rules for resolving calls: chapter
//! 10 of its manual, as its parser implements them (`parse_func.c`, `parse_oper.c`,
//! `parse_coerce.c`).
//!
//! [`operator`] and [`function`] take a name of the catalog (`<>`, `~~` for LIKE, `lower`) and the
//! types of the arguments. String literals and NULL have type [`Type::Unknown`]:
//!
//! ```
//! use tessera_overloads::{Outcome, Type, ValueType, operator};
//! use tessera_types::Atom;
//!
//! // 1::smallint + '2'
//! let given = [ValueType::of_atom(&Atom::Int16), ValueType::of(Type::Unknown)];
//! match operator("+", &given) {
//!     // The operands are converted to (int2, int2).
//!     Outcome::Found(call) => assert_eq!(call.args, [ValueType::of(Type::Int2); 2]),
//!     // `text(1)`, a call with a type's name, is a cast; an operator never is.
//!     Outcome::Cast(to) => panic!("{to}"),
//!     // SQLSTATE 42883. `NotFound`: PostgreSQL lacks the name, but another library may have it.
//!     Outcome::NotFound | Outcome::NoMatch => panic!("undefined function"),
//!     // 42725
//!     Outcome::Ambiguous => panic!("ambiguous function"),
//!     // 42804: a polymorphic function of literals only.
//!     Outcome::Indeterminate => panic!("datatype mismatch"),
//! }
//! ```
//!
//! `tables` holds the contents of the catalog; `crates/overloads/postgres_tables.py` generates it.

#![forbid(unsafe_code)]

mod casts;
mod polymorphic;
mod resolve;
mod table;
mod tables;

use std::fmt;

use tessera_types::Atom;

/// The short name in the generated tables.
use ValueType as Given;
use casts::Context;
use casts::common_type;
pub use resolve::{Call, Outcome, function, operator};
pub use table::Kind;

/// A type of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `numeric`.
    Numeric,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `text`.
    Text,
    /// `character varying`.
    Varchar,
    /// `character`.
    Bpchar,
    /// `bytea`.
    Bytea,
    /// `bit`.
    Bit,
    /// `bit varying`.
    Varbit,
    /// `date`.
    Date,
    /// `time without time zone`.
    Time,
    /// `time with time zone`.
    Timetz,
    /// `timestamp without time zone`.
    Timestamp,
    /// `timestamp with time zone`.
    Timestamptz,
    /// `interval`.
    Interval,
    /// `uuid`.
    Uuid,
    /// The type of a string literal or NULL until its context gives it another.
    Unknown,
    /// An array of any type.
    Array,
    /// A struct or a map, which only polymorphic functions take.
    Other,
    /// In the tables: a type that Tessera lacks. No value has it.
    Foreign,
    /// In the tables, like the variants below: a pseudo-type. It takes any value.
    Any,
    /// `anyelement`.
    AnyElement,
    /// `anyarray`.
    AnyArray,
    /// `anynonarray`.
    AnyNonArray,
    /// `anycompatible`.
    AnyCompatible,
    /// `anycompatiblearray`.
    AnyCompatibleArray,
}

/// Type categories, which choose between candidates for untyped literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Category {
    Array,
    BitString,
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

/// The type of an argument, operand or result, with the element type of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// The base type.
    pub ty: Type,
    /// The element type of an array. An element that is an array has no element type of its own.
    pub element: Option<Type>,
}

impl ValueType {
    /// Creates a type that is not an array.
    pub const fn of(ty: Type) -> Self {
        ValueType { ty, element: None }
    }

    /// Creates an array type.
    pub const fn array(element: Type) -> Self {
        ValueType { ty: Type::Array, element: Some(element) }
    }

    /// Returns the PostgreSQL type that determines the rules for an atom.
    pub fn of_atom(atom: &Atom) -> Self {
        ValueType::of(match atom {
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
            Atom::Bits => Type::Bit,
            Atom::Date => Type::Date,
            Atom::Time(_) => Type::Time,
            Atom::TimeTz => Type::Timetz,
            Atom::Timestamp(_, None) => Type::Timestamp,
            Atom::Timestamp(_, Some(_)) => Type::Timestamptz,
            Atom::Duration(_) | Atom::Interval => Type::Interval,
            Atom::Uuid => Type::Uuid,
            Atom::List(slot) => {
                return match ValueType::of_atom(&slot.atom).ty {
                    // A list of literals is a list of text.
                    Type::Unknown => ValueType::array(Type::Text),
                    element => ValueType::array(element),
                };
            }
            Atom::Enum(_) | Atom::Struct(_) | Atom::Map(..) => Type::Other,
        })
    }

    /// Returns the element type of an array.
    pub fn elements(self) -> Option<ValueType> {
        self.element.map(ValueType::of)
    }

    /// Returns the type of an array of this type.
    pub(crate) const fn in_array(self) -> Self {
        ValueType::array(self.ty)
    }

    /// Returns whether it is an array type.
    pub fn is_array(self) -> bool {
        self.ty == Type::Array
    }

    /// Returns whether it is the type of an untyped literal.
    pub(crate) fn is_unknown(self) -> bool {
        self.ty == Type::Unknown
    }

    /// Returns the type category.
    pub(crate) fn category(self) -> Category {
        tables::of_type(self.ty).category
    }

    /// Returns whether it is the preferred type of its category.
    pub(crate) fn is_preferred(self) -> bool {
        tables::of_type(self.ty).preferred
    }
}

/// Writes the name used in PostgreSQL's messages: `double precision`, `integer[]`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => write!(f, "{}[]", tables::of_type(element).shown),
            None => f.write_str(tables::of_type(self.ty).shown),
        }
    }
}

#[cfg(test)]
mod tests;
