//! Edges of a plan: the type, the four traits and the order of a stream of tuples.

use std::sync::Arc;

use tessera_types::Tuple;

/// The kind of device that processes the tuples (HetExchange, Table 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// CPU cores.
    Cpu,
    /// A GPU.
    Gpu,
}

/// The number of instances that produce the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parallelism {
    /// One instance.
    One,
    /// Several instances at once.
    Many,
}

/// The part of the tuples that an instance can access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Locality {
    /// Each worker holds a part that other workers cannot access, partitioned arbitrarily.
    Worker,
    /// All tuples that belong together are in one place: in shared memory, or partitioned or copied
    /// by an exchange.
    All,
}

/// The unit in which the tuples flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Chunks.
    Chunk,
    /// Packets: handles to chunks.
    Packet,
}

/// The four traits of an edge. One kind of sub-operator converts each (`docs/architecture.md` §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traits {
    /// Converted by DeviceCross.
    pub device: Device,
    /// Converted by Executor (one → many), Router, and Merge (many → one).
    pub parallelism: Parallelism,
    /// Converted by Exchange and MemMove.
    pub locality: Locality,
    /// Converted by Pack and Unpack.
    pub granularity: Granularity,
}

impl Traits {
    /// One CPU instance that can access all tuples: the traits at the start and end of every plan.
    pub const DRIVER: Traits = Traits {
        device: Device::Cpu,
        parallelism: Parallelism::One,
        locality: Locality::All,
        granularity: Granularity::Chunk,
    };
}

/// A sort key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The field.
    pub field: Arc<str>,
    /// Whether the largest value comes first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

/// The guaranteed order of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// No order.
    None,
    /// The order of the source.
    Source,
    /// Sorted by these keys.
    Sorted(Vec<SortKey>),
}

/// The type, the traits and the order of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The type of the tuples.
    pub tuple: Tuple,
    /// The four traits.
    pub traits: Traits,
    /// The guaranteed order.
    pub order: Order,
}

macro_rules! display {
    ($($type:ident { $($variant:ident => $name:literal),* })*) => {
        $(impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($type::$variant => $name),* })
            }
        })*
    };
}

display! {
    Device { Cpu => "cpu", Gpu => "gpu" }
    Parallelism { One => "one", Many => "many" }
    Locality { Worker => "worker", All => "all" }
    Granularity { Chunk => "chunk", Packet => "packet" }
}

impl std::fmt::Display for Traits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}", self.device, self.parallelism, self.locality, self.granularity)
    }
}
