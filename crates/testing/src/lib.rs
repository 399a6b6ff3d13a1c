//! Helpers for the integration tests of several rooms.
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
    registry
}
