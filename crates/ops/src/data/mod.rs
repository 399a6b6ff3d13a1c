//! Sub-operators that transform tuples (architecture §5, data).

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(_registry: &mut Registry) {}
