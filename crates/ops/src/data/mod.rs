//! Sub-operators that transform tuples (architecture §5, data).

mod build;
mod cartesian_product;
mod filter;
mod group_by;
mod limit;
mod local_histogram;
mod local_partition;
mod map;
mod merge;
mod merge_join;
mod nested_loop;
mod parametrized_map;
mod partition;
mod partitions;
mod probe;
mod projection;
mod projector;
mod reduce;
pub(crate) mod reduce_by_key;
mod remember;
mod round_robin;
mod sort;
mod sort_keys;
mod top_k;
mod union;
mod unnest;
mod values;
mod zip;

pub use build::{Build, HASH_TABLE, TABLE_FIELD};
pub use cartesian_product::CartesianProduct;
pub use filter::Filter;
pub use group_by::GroupBy;
pub use limit::Limit;
pub use local_histogram::LocalHistogram;
pub use local_partition::LocalPartition;
pub use map::Map;
pub use merge::Merge;
pub use merge_join::MergeJoin;
pub use nested_loop::NestedLoop;
pub use parametrized_map::ParametrizedMap;
pub use partition::Partition;
pub use partitions::{Partitioning, partitions_tuple};
pub use probe::Probe;
pub use projection::Projection;
pub use reduce::Reduce;
pub use reduce_by_key::ReduceByKey;
pub use remember::Remember;
pub use round_robin::RoundRobin;
pub use sort::Sort;
pub use top_k::TopK;
pub use union::Union;
pub use unnest::Unnest;
pub use values::Values;
pub use zip::Zip;

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(registry: &mut Registry) {
    registry.register(Build);
    registry.register(CartesianProduct);
    registry.register(Filter);
    registry.register(GroupBy);
    registry.register(Limit);
    registry.register(LocalHistogram);
    registry.register(LocalPartition);
    registry.register(Map);
    registry.register(Merge);
    registry.register(MergeJoin);
    registry.register(NestedLoop);
    registry.register(ParametrizedMap);
    registry.register(Probe);
    registry.register(Partition);
    registry.register(Projection);
    registry.register(Remember);
    registry.register(RoundRobin);
    registry.register(Sort);
    registry.register(TopK);
    registry.register(Union);
    registry.register(Unnest);
    registry.register(Values);
    registry.register(Zip);
    registry.register(Reduce);
    registry.register(ReduceByKey);
}
