//! What integration tests of several rooms share.
//!
//! Unit tests of the rooms below it cannot use it: they would see each type twice.

use std::sync::Arc;

use tessera_functions::Library;
use tessera_operator::Registry;

/// A registry with every sub-operator that no platform forces to differ, and the whole function
/// library.
pub fn standard_registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Library::default()));
    tessera_operators::register(&mut registry);
    tessera_formats::register(&mut registry);
    registry
}
