//! Logical types of tuples, independent of their physical layout.
//!
//! The type system is recursive (Modularis §2.3.3): `tuple := ⟨field: item, …⟩` and `item := atom |
//! collection⟨tuple⟩`. Atoms are SQL's scalar types, including lists, structs and maps; a
//! *collection* is any physical format that holds tuples of one type. Encodings (dictionary,
//! constant, …) affect cost but not the type, so they are not part of it.
//!
//! Each atom has one *plain* Arrow type ([`Atom::arrow`]); scans and kernel calls convert the other
//! Arrow types to it.
//!
//! ```
//! use tessera_types::{Atom, Field, Tuple};
//! let tuple = Tuple::new(vec![
//!     Field::new("l_orderkey", Atom::Int64),
//!     Field::nullable("l_comment", Atom::String),
//! ]);
//! assert_eq!(tuple.to_string(), "<l_orderkey: int64, l_comment: string?>");
//! assert_eq!("<l_orderkey: int64, l_comment: string?>".parse::<Tuple>().unwrap(), tuple);
//! ```

#![forbid(unsafe_code)]

mod atom;
mod enum_type;
mod error;
mod io_cause;
mod nearest;
mod parse;
mod redact;
mod sql_state;
mod timeout;
mod tuple;

pub use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
pub use atom::{
    Atom, DECIMAL_PRECISION_MAX, DECIMAL64_PRECISION_MAX, Slot, TimeUnit, UUID_BYTES,
    UUID_EXTENSION,
};
pub use enum_type::{ENUM_LABELS_MAX, EnumType};
pub use error::{Code, Error, Result, Span};
pub use io_cause::io_cause;
pub use nearest::{did_you_mean, edit_distance, nearest, suggest};
pub use parse::{TypeParser, is_plain_name, quote_name, quote_text};
pub use redact::redact;
pub use sql_state::SqlState;
pub use timeout::parse_timeout;
pub use tuple::{Collection, Field, Format, Item, Tuple, unique_names};

/// The maximum nesting depth of a type (lists in structs in collections …) that parsers and
/// verifiers accept.
pub const TYPE_DEPTH_MAX: usize = 32;
