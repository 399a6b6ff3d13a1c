//! Sub-operators that transform tuples ([`data`]) or run nested plans ([`orchestration`]), one file
//! each.

pub mod data;
pub mod orchestration;
#[cfg(test)]
mod testing;

use tessera_operator::Registry;

/// Registers the sub-operators of this room.
pub fn register(registry: &mut Registry) {
    orchestration::register(registry);
    data::register(registry);
}
