//! Sub-operators that run nested plans (architecture §5).

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

/// Registers the sub-operators of this folder. A platform puts an executor and an exchange that run
/// ([`OnPlatform`](tessera_operator::platform::OnPlatform)) in the place of the abstract ones.
pub fn register(registry: &mut Registry) {
    registry.register(Exchange);
    registry.register(Executor);
    registry.register(Loop);
    registry.register(NestedMap);
    registry.register(ParameterLookup);
}
