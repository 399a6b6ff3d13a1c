//! PostgreSQL's functions of arrays, over lists: their shape, and items that are found, replaced or
//! taken out.

mod search;
mod shape;

use std::sync::Arc;

use tessera_types::{Atom, Result};

use super::types::{Arg, Resolved, wrong_arguments};

/// The functions, by name. `array_length` of one argument is DuckDB's.
pub(crate) const NAMES: &[&str] = &[
    "array_dims",
    "array_distinct",
    "array_indexof",
    "array_length",
    "array_lower",
    "array_ndims",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_replace",
    "array_replace_all",
    "array_upper",
    "element_at",
    "list_dims",
    "list_distinct",
    "list_indexof",
    "list_ndims",
    "list_position",
    "list_positions",
    "list_remove",
    "list_remove_all",
    "list_replace",
    "list_replace_all",
    "map_extract",
    "trim_array",
];

/// Types a call, if the function is one of these and takes so many arguments.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<Resolved>> {
    Some(match (name, args.len()) {
        ("array_length", 2) => shape::length(name, args),
        ("array_upper", _) => shape::length(name, args),
        ("array_lower", _) => shape::lower(name, args),
        ("array_ndims" | "list_ndims", _) => shape::dimensions(name, args),
        ("array_dims" | "list_dims", _) => shape::bounds(name, args),
        ("trim_array", _) => shape::trimmed(name, args),
        ("array_position" | "list_position" | "array_indexof" | "list_indexof", _) => {
            search::position(name, args)
        }
        ("array_positions" | "list_positions", _) => search::positions(name, args),
        ("array_remove" | "array_remove_all" | "list_remove" | "list_remove_all", _) => {
            search::removed(name, args)
        }
        ("array_replace" | "array_replace_all" | "list_replace" | "list_replace_all", _) => {
            search::replaced(name, args)
        }
        ("map_extract" | "element_at", _) => search::of_key(name, args),
        _ => return None,
    })
}

/// The same call, whose lists lose their NULLs.
pub(crate) fn without_nulls(call: Resolved) -> Resolved {
    Resolved { kernel: Arc::new(search::WithoutNulls(call.kernel)), ..call }
}

/// The type of the first argument, which is a list.
fn list_type(name: &str, args: &[Arg<'_>]) -> Result<Atom> {
    match args.first().map(|arg| arg.atom) {
        Some(atom @ (Atom::List(_) | Atom::Null)) => Ok(atom.clone()),
        _ => Err(wrong_arguments(name, args, "its first argument is a list")),
    }
}
