//! Result types of window functions.

use tessera_plan::Functions;
use tessera_types::{Atom, Error, Result, SqlState};

/// The window functions that are not aggregates.
pub const WINDOW_FUNCTIONS: [&str; 11] = [
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Returns the result type of a window function, and whether the result can be NULL.
///
/// # Errors
/// The function does not take arguments of these types, or it is unknown.
pub fn window_type(
    functions: &dyn Functions,
    name: &str,
    args: &[(Atom, bool)],
    distinct: bool,
) -> Result<(Atom, bool)> {
    let wrong = |hint: &str| {
        let types = args.iter().map(|(atom, _)| atom.to_string()).collect::<Vec<_>>().join(", ");
        let message = format!("window function {name} does not take ({types}); {hint}");
        Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
    };
    let is_integer = |arg: &(Atom, bool)| arg.0.is_integer() || arg.0 == Atom::Null;
    match (name, args) {
        ("row_number" | "rank" | "dense_rank", []) => Ok((Atom::Int64, false)),
        ("percent_rank" | "cume_dist", []) => Ok((Atom::Float64, false)),
        ("row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist", _) => {
            wrong("it takes no arguments")
        }
        ("ntile", [count]) if is_integer(count) => Ok((Atom::Int32, true)),
        ("ntile", _) => wrong("it takes the number of buckets"),
        ("lag" | "lead", [value, offset, default]) if is_integer(offset) => match default {
            (atom, _) if *atom == value.0 || *atom == Atom::Null => Ok((value.0.clone(), true)),
            _ => wrong("cast the default to the type of the value"),
        },
        ("lag" | "lead", [value]) => Ok((value.0.clone(), true)),
        ("lag" | "lead", [value, offset]) if is_integer(offset) => Ok((value.0.clone(), true)),
        ("lag" | "lead", _) => wrong("it takes a value, and optionally an offset and a default"),
        ("first_value" | "last_value", [value]) => Ok((value.0.clone(), true)),
        ("first_value" | "last_value", _) => wrong("it takes one value"),
        ("nth_value", [value, position]) if is_integer(position) => Ok((value.0.clone(), true)),
        ("nth_value", _) => wrong("it takes a value and its position"),
        _ => {
            // A frame can be empty, for which only counts are not NULL.
            let (atom, nullable) = functions.aggregate(name, args, distinct)?;
            Ok((atom, nullable || name != "count"))
        }
    }
}
