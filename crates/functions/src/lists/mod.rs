//! PostgreSQL's array functions on lists: shape, search, replacement and removal of items.

mod choose;
mod maps;
mod search;
mod shape;

use std::sync::Arc;

use tessera_types::{Atom, Result};

use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The names of the functions. `array_length` with one argument is DuckDB's.
pub(crate) const NAMES: &[&str] = &[
    "array_dims",
    "array_distinct",
    "array_grade_up",
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
    "array_select",
    "array_upper",
    "array_where",
    "element_at",
    "grade_up",
    "list_dims",
    "list_distinct",
    "list_grade_up",
    "list_indexof",
    "list_ndims",
    "list_position",
    "list_positions",
    "list_remove",
    "list_remove_all",
    "list_replace",
    "list_replace_all",
    "list_select",
    "list_where",
    "map_concat",
    "map_extract",
    "map_from_entries",
    "trim_array",
];

/// Resolves a call if the name and the number of arguments match.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match (name, args.len()) {
        ("array_length", 2) => shape::length(name, args),
        ("array_upper", _) => shape::length(name, args),
        ("array_lower", _) => shape::lower(name, args),
        ("array_ndims" | "list_ndims", _) => shape::dimensions(name, args),
        ("array_dims" | "list_dims", _) => shape::bounds(name, args),
        ("trim_array", _) => shape::trim(name, args),
        ("array_position" | "list_position" | "array_indexof" | "list_indexof", _) => {
            search::position(name, args)
        }
        ("array_positions" | "list_positions", _) => search::positions(name, args),
        ("array_remove" | "array_remove_all" | "list_remove" | "list_remove_all", _) => {
            search::remove(name, args)
        }
        ("array_replace" | "array_replace_all" | "list_replace" | "list_replace_all", _) => {
            search::replace(name, args)
        }
        ("list_where" | "array_where" | "list_select" | "array_select", _) => {
            choose::chosen(name, args)
        }
        ("list_grade_up" | "array_grade_up" | "grade_up", 1..) => choose::graded(name, args),
        ("map_from_entries", _) => maps::from_entries(name, args),
        ("map_concat", _) => maps::concatenated(name, args),
        ("map_extract" | "element_at", _) => search::map_extract(name, args),
        _ => return None,
    })
}

/// Wraps a call so that NULLs are removed from its result lists.
pub(crate) fn without_nulls(call: ResolvedCall) -> ResolvedCall {
    ResolvedCall { kernel: Arc::new(search::WithoutNulls(call.kernel)), ..call }
}

/// The type of the first argument, which must be a list.
fn list_type(name: &str, args: &[Arg<'_>]) -> Result<Atom> {
    match args.first().map(|arg| arg.atom) {
        Some(atom @ (Atom::List(_) | Atom::Null)) => Ok(atom.clone()),
        _ => Err(wrong_arguments(name, args, "the first argument must be a list")),
    }
}
