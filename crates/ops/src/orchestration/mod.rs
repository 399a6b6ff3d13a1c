//! Sub-operators that run nested plans, and the abstract ones that platforms implement (architecture §5).

mod exchange;
mod executor;
mod heavy;
mod nested_map;
mod on_platform;
mod parameter_lookup;
mod repeat;

pub use exchange::Exchange;
pub use executor::{Executor, to_send};
pub use heavy::{Heavy, heavy_partitions};
pub use nested_map::NestedMap;
pub use on_platform::{OnPlatform, Runtime};
pub use parameter_lookup::ParameterLookup;
pub use repeat::Loop;

use crate::Registry;

/// Registers the sub-operators of this folder. Platforms put an executor and an exchange that run ([`OnPlatform`]) in the
/// place of the abstract ones.
pub fn register(registry: &mut Registry) {
    registry.register(Exchange);
    registry.register(Executor);
    registry.register(Loop);
    registry.register(NestedMap);
    registry.register(ParameterLookup);
}
