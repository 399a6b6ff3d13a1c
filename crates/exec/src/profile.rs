//! Where time, tuples and bytes went, per sub-operator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_ops::Counters;
use tessera_plan::NodeId;

/// Figures of one node, added to by all workers.
#[derive(Debug, Default)]
pub(crate) struct NodeFigures {
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
    pub(crate) counters: Arc<Counters>,
}

/// A worker's figures of one node for one morsel, added to the shared ones at its end.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LocalFigures {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) nanoseconds: u64,
}

impl NodeFigures {
    pub(crate) fn add(&self, local: LocalFigures) {
        self.rows.fetch_add(local.rows, Ordering::Relaxed);
        self.bytes.fetch_add(local.bytes, Ordering::Relaxed);
        self.nanoseconds.fetch_add(local.nanoseconds, Ordering::Relaxed);
    }
}

/// The profile of a program after a run: one entry per node, nested plans inside.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// One entry per node of the plan, in order.
    pub nodes: Vec<NodeProfile>,
}

/// The profile of one node.
#[derive(Debug, Clone)]
pub struct NodeProfile {
    /// The node.
    pub id: NodeId,
    /// Tuples it yielded (all runs of a nested plan together).
    pub rows: u64,
    /// Bytes of those tuples.
    pub bytes: u64,
    /// Time workers spent in it, added up over workers.
    pub nanoseconds: u64,
    /// What else it counted.
    pub counters: BTreeMap<&'static str, u64>,
    /// The profiles of its nested plans.
    pub nested: Vec<Profile>,
}

impl Profile {
    /// The sum of a counter over all nodes, nested ones included.
    pub fn total(&self, counter: &str) -> u64 {
        self.nodes
            .iter()
            .map(|node| {
                node.counters.get(counter).copied().unwrap_or(0)
                    + node.nested.iter().map(|nested| nested.total(counter)).sum::<u64>()
            })
            .sum()
    }
}
