//! Helpers for the integration tests and the doctests of several rooms.
//!
//! Unit tests of rooms that this crate depends on cannot use it: they would get each type twice.

#![forbid(unsafe_code)]

use std::sync::Arc;

use tessera_functions::Library;
use tessera_operator::Registry;

/// Returns a registry with the platform-independent sub-operators and the whole function library.
pub fn standard_registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Library::default()));
    tessera_operators::register(&mut registry);
    tessera_formats::register(&mut registry);
    tessera_xlsx::register(&mut registry);
    registry
}

/// Runs the nodes of a plan in text form, of which `%result` is the last, and returns its tuples as
/// text, one each. For the examples of sub-operators.
///
/// ```
/// let rows = tessera_testing::run_text(
///     "%result = values() {columns = <x: int64?, s: string>, rows = [[1, 'a'], [NULL::int64, 'b']]}",
/// );
/// assert_eq!(rows, ["1 a", "NULL b"]);
/// ```
///
/// # Panics
/// The plan is invalid, its run fails, or its result holds collections.
pub fn run_text(nodes: &str) -> Vec<String> {
    tessera_operator::testing::run_text(&standard_registry(), nodes)
        .unwrap_or_else(|error| panic!("{error}\n{nodes}"))
}
