//! Sub-operators that run nested plans, and the abstract ones that platforms implement (architecture §5).

pub mod exchange;
pub mod executor;

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(_registry: &mut Registry) {}
