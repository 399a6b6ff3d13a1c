//! Sub-operators that transform tuples (architecture §5, data).

mod cartesian_product;
mod filter;
mod limit;
mod map;
mod parametrized_map;
mod projection;
mod projector;
mod reduce;
pub(crate) mod reduce_by_key;
mod union;
mod unnest;
mod values;
mod zip;

pub use cartesian_product::CartesianProduct;
pub use filter::Filter;
pub use limit::Limit;
pub use map::Map;
pub use parametrized_map::ParametrizedMap;
pub use projection::Projection;
pub use reduce::Reduce;
pub use reduce_by_key::ReduceByKey;
pub use union::Union;
pub use unnest::Unnest;
pub use values::Values;
pub use zip::Zip;

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(registry: &mut Registry) {
    registry.register(CartesianProduct);
    registry.register(Filter);
    registry.register(Limit);
    registry.register(Map);
    registry.register(ParametrizedMap);
    registry.register(Projection);
    registry.register(Union);
    registry.register(Unnest);
    registry.register(Values);
    registry.register(Zip);
    registry.register(Reduce);
    registry.register(ReduceByKey);
}
