//! Sub-operators that run nested plans.

#[cfg(test)]
mod executor_tests;
mod nested_map;
mod parameter_lookup;
mod repeat;

pub use nested_map::NestedMap;
pub use parameter_lookup::ParameterLookup;
pub use repeat::Loop;

use tessera_operator::Registry;
use tessera_operator::platform::{Exchange, Executor};

/// Registers the orchestration sub-operators. A platform replaces the abstract executor and
/// exchange ([`PlatformOperator`](tessera_operator::platform::PlatformOperator)) by its own.
pub fn register(registry: &mut Registry) {
    registry.register(Exchange);
    registry.register(Executor::default());
    registry.register(Loop);
    registry.register(NestedMap);
    registry.register(ParameterLookup);
}
