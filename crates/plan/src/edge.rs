//! What an edge of the plan carries: a stream of tuples of one type, with four traits and an order.

use std::sync::Arc;

use tessera_types::Tuple;

/// Which kind of device the tuples are processed on (HetExchange, Table 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// CPU cores.
    Cpu,
    /// A GPU.
    Gpu,
}

/// How many instances produce the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parallelism {
    /// One.
    One,
    /// Many at once.
    Many,
}

/// Whose tuples an instance can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Locality {
    /// Each worker holds a part that the others cannot see, split in no particular way.
    Worker,
    /// Whatever belongs together is in one place: shared memory, or partitioned or copied by an
    /// exchange.
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

/// The four traits of an edge. Exactly one sub-operator kind converts each (architecture §5).
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
    /// One CPU instance that sees everything: where every plan starts and ends.
    pub const DRIVER: Traits = Traits {
        device: Device::Cpu,
        parallelism: Parallelism::One,
        locality: Locality::All,
        granularity: Granularity::Chunk,
    };
}

/// A key of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The field.
    pub field: Arc<str>,
    /// Largest first.
    pub descending: bool,
    /// NULLs before everything else.
    pub nulls_first: bool,
}

/// What is promised about the order of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    None,
    /// That of the source.
    Source,
    /// Sorted by these keys.
    Sorted(Vec<SortKey>),
}

/// The type of a stream, its traits and its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The type of the tuples.
    pub tuple: Tuple,
    /// The four traits.
    pub traits: Traits,
    /// The promised order.
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
