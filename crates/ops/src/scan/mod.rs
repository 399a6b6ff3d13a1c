//! Sub-operators that read and write physical formats, one pair per format (rule R2).

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(_registry: &mut Registry) {}
