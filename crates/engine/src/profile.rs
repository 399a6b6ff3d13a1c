//! Time, tuples and bytes of each sub-operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_context::Counters;
use tessera_plan::NodeId;

/// Figures of one node. All workers add to them.
#[derive(Debug, Default)]
pub(crate) struct NodeFigures {
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
    pub(crate) counters: Arc<Counters>,
}

impl NodeFigures {
    /// The figures as a line: three numbers, then names and numbers, separated by tabs.
    pub(crate) fn line(&self) -> String {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let mut line =
            format!("{}\t{}\t{}", load(&self.rows), load(&self.bytes), load(&self.nanoseconds));
        for (name, value) in self.counters.get() {
            line += &format!("\t{name}\t{value}");
        }
        line
    }

    /// Adds the figures of a line; `None` if the line is malformed.
    pub(crate) fn add_line(&self, line: &str) -> Option<()> {
        let mut words = line.split('\t');
        let mut number = || words.next()?.parse().ok();
        self.add(LocalFigures { rows: number()?, bytes: number()?, nanoseconds: number()? });
        while let Some(name) = words.next() {
            self.counters.add_by_name(name, words.next()?.parse().ok()?);
        }
        Some(())
    }
}

/// One worker's figures of one node for one morsel. They are added to the shared figures at its
/// end.
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

/// The profile of a plan after a run: one entry per node, nested plans inside.
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
    /// Tuples that it yielded, in all runs of a nested plan.
    pub rows: u64,
    /// Bytes of those tuples.
    pub bytes: u64,
    /// Time of all workers in it.
    pub nanoseconds: u64,
    /// Its other counters.
    pub counters: BTreeMap<&'static str, u64>,
    /// The profiles of its nested plans.
    pub nested: Vec<Profile>,
}

impl Profile {
    /// The sum of a counter over all nodes. A node's counter includes those of its nested plans.
    pub fn total(&self, counter: &str) -> u64 {
        let inside =
            |node: &NodeProfile| node.nested.iter().map(|nested| nested.total(counter)).sum();
        self.nodes
            .iter()
            .map(|node| node.counters.get(counter).copied().unwrap_or_else(|| inside(node)))
            .sum()
    }

    /// The names of all counters.
    pub fn counters(&self) -> BTreeSet<&'static str> {
        let of = |node: &NodeProfile| {
            let inside = node.nested.iter().flat_map(Profile::counters);
            node.counters.keys().copied().chain(inside).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_cross_as_lines() {
        let (here, there) = (NodeFigures::default(), NodeFigures::default());
        there.add(LocalFigures { rows: 3, bytes: 40, nanoseconds: 500 });
        there.counters.add("all requests", 6);
        here.counters.add("all requests", 1);
        for _ in 0..2 {
            here.add_line(&there.line()).unwrap();
        }
        assert_eq!(here.line(), "6\t80\t1000\tall requests\t13");
        for broken in ["", "1\t2", "1\t2\tx", "1\t2\t3\trequests", "1\t2\t3\trequests\tx"] {
            assert!(NodeFigures::default().add_line(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn what_a_node_counts_has_its_nested_plans_in_it() {
        let node = |counters: &[(&'static str, u64)], nested: Vec<Profile>| NodeProfile {
            id: NodeId(0),
            rows: 0,
            bytes: 0,
            nanoseconds: 0,
            counters: counters.iter().copied().collect(),
            nested,
        };
        let inside =
            Profile { nodes: vec![node(&[("a", 1), ("b", 2)], vec![]), node(&[("b", 3)], vec![])] };
        let profile =
            Profile { nodes: vec![node(&[("a", 10)], vec![inside]), node(&[("b", 20)], vec![])] };
        assert_eq!((profile.total("a"), profile.total("b"), profile.total("c")), (10, 25, 0));
        assert_eq!(profile.counters().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
