//! Sub-operators that transform tuples ([`data`]) or run nested plans ([`orchestration`]), one file
//! each.
//!
//! # Unsafe code
//!
//! `data::top_k::compiled` calls compiled code.

pub mod data;
pub mod orchestration;
#[cfg(test)]
mod testing;

use tessera_operator::Registry;

/// Registers all sub-operators of this crate.
pub fn register(registry: &mut Registry) {
    orchestration::register(registry);
    data::register(registry);
}
