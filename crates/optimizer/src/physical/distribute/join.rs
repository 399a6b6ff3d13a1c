//! Distributed joins: bringing the stream and the table together.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::value::Value;
use tessera_types::Result;

use super::place::{Class, Placement};
use super::{Distributor, PlacedNode};

/// The maximum number of tuples of a table that is replicated.
const COPIED_ROWS_MAX: f64 = 8e6;

/// Returns the name in a parameter value.
pub(super) fn name(value: &Value) -> Option<&str> {
    match value {
        Value::Name(name) => Some(name),
        _ => None,
    }
}

/// The partitioning exchanges of both sides of a join. A side may be split among workers if the
/// other side is replicated.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinExchanges {
    stream: NodeId,
    table: NodeId,
    /// Whether the stream and the table may be split.
    may_split: (bool, bool),
}

/// Allows the exchanges of joins to leave heavy partitions of one side split and to replicate the
/// matching partitions of the other side, if no other node depends on their partitioning. The
/// parameter `meets` links both exchanges of a join.
pub(super) fn allow_heavy(
    plan: &mut Plan,
    join_exchanges: &[JoinExchanges],
    relied_on: &HashSet<NodeId>,
) {
    let consumers = plan.consumers();
    for (number, JoinExchanges { stream, table, may_split }) in join_exchanges.iter().enumerate() {
        let sides = [(stream, may_split.0, may_split.1), (table, may_split.1, may_split.0)];
        if sides.iter().any(|(id, ..)| relied_on.contains(id) || consumers[id.index()].len() != 1) {
            continue;
        }
        for (id, may_split, may_be_copied) in sides {
            let how = match (may_split, may_be_copied) {
                (true, true) => "either",
                (true, false) => "split",
                (false, true) => "copied",
                (false, false) => continue,
            };
            let params = &mut plan.nodes[id.index()].params;
            params.set("heavy", Value::name(how));
            params.set("meets", Value::name(format!("join_{}", number + 1)));
        }
    }
}

/// Whether a kind of join yields build tuples depending on whether any tuple of the whole stream
/// matches them.
pub(super) fn emits_build(join: &str) -> bool {
    matches!(join, "right" | "full" | "build_semi" | "build_anti")
}

impl Distributor<'_> {
    pub(super) fn probe(&mut self, mut node: Node) -> Result<PlacedNode> {
        let mut build = self.plan.node(node.inputs[0]).clone();
        if &*build.operator != "build" {
            return self.on_first(node);
        }
        let (stream, table) = (self.input(node.inputs[1])?, self.input(build.inputs[0])?);
        let join: Arc<str> = node.params.get("join").and_then(name).unwrap_or("inner").into();
        let (stream_keys, table_keys) = (node.params.names("keys")?, build.params.names("keys")?);
        let once = |place: &Placement| matches!(place, Placement::First | Placement::Replicated);
        let (stream, table, place) = match (&stream.place, &table.place) {
            (Placement::Replicated, Placement::Replicated) if !emits_build(&join) => {
                (stream, table, Placement::Replicated)
            }
            (a, b) if once(a) && once(b) => (stream, table, Placement::First),
            // Every worker has the whole stream, so the table may stay partitioned.
            (Placement::Replicated, _)
                if matches!(&*join, "inner" | "right" | "build_semi" | "build_anti") =>
            {
                let table = match table.place {
                    Placement::Partitioned(_) => table,
                    _ => self.partition(table, &table_keys),
                };
                let place = table.place.clone();
                (stream, table, place)
            }
            (a, _) if once(a) => {
                let (stream, table) = (self.gather(stream), self.gather(table));
                (stream, table, Placement::First)
            }
            _ if node.params.flag("null_aware")?
                || self.is_small(&node, &build, &stream, &table) =>
            {
                let place = stream.place.clone();
                (stream, self.broadcast(table), place)
            }
            _ => {
                let (stream, table, positions) =
                    self.co_partition(&join, (stream, &stream_keys), (table, &table_keys));
                let of_stream: Vec<Class> = match &stream.place {
                    Placement::Partitioned(classes) => classes.clone(),
                    _ => Vec::new(),
                };
                let of_table =
                    positions.iter().map(|at| Class::from([table_keys[*at].clone()])).collect();
                let place = match &*join {
                    "full" => Placement::Split,
                    "right" | "build_semi" | "build_anti" => Placement::Partitioned(of_table),
                    _ => Placement::Partitioned(of_stream),
                };
                (stream, table, place)
            }
        };
        build.inputs[0] = table.id;
        node.inputs = vec![self.out.push(build), stream.id];
        let place = match place {
            Placement::Partitioned(classes) if &*join == "inner" => {
                Placement::Partitioned(with_equals(classes, &stream_keys, &table_keys))
            }
            place => place,
        };
        Ok(PlacedNode { id: self.out.push(node), place })
    }

    /// Whether replicating the table is cheaper than partitioning both sides.
    fn is_small(&self, node: &Node, build: &Node, stream: &PlacedNode, table: &PlacedNode) -> bool {
        let join = node.params.get("join").and_then(name).unwrap_or("inner");
        if emits_build(join) {
            return false;
        }
        if matches!(table.place, Placement::First | Placement::Replicated) {
            return true;
        }
        let rows = |node: &Node| {
            node.params.integer_opt("expected_rows").ok().flatten().map(|rows| rows as f64)
        };
        let (Some(table_rows), Some(stream_rows)) = (rows(build), rows(node)) else { return false };
        let (stream_keys, table_keys) = (node.params.names("keys"), build.params.names("keys"));
        let is_there = |placed: &PlacedNode, keys: Result<Vec<Arc<str>>>| {
            keys.is_ok_and(|keys| placed.place.positions(&keys).is_some())
        };
        let sent = (if is_there(table, table_keys) { 0.0 } else { table_rows })
            + (if is_there(stream, stream_keys) { 0.0 } else { stream_rows });
        table_rows <= COPIED_ROWS_MAX
            && table_rows * (self.workers - 1.0) <= sent * (1.0 - 1.0 / self.workers)
    }

    /// Partitions both sides by the same keys; returns the positions of these keys.
    fn co_partition(
        &mut self,
        join: &str,
        (stream, stream_keys): (PlacedNode, &[Arc<str>]),
        (table, table_keys): (PlacedNode, &[Arc<str>]),
    ) -> (PlacedNode, PlacedNode, Vec<usize>) {
        let of = |keys: &[Arc<str>], positions: &[usize]| -> Vec<Arc<str>> {
            positions.iter().map(|at| keys[*at].clone()).collect()
        };
        match (stream.place.positions(stream_keys), table.place.positions(table_keys)) {
            (Some(here), Some(there)) if here == there => {
                self.rely_on(stream.id);
                self.rely_on(table.id);
                (stream, table, here)
            }
            (Some(here), _) => {
                self.rely_on(stream.id);
                let table = self.partition(table, &of(table_keys, &here));
                (stream, table, here)
            }
            (None, Some(there)) => {
                self.rely_on(table.id);
                let stream = self.partition(stream, &of(stream_keys, &there));
                (stream, table, there)
            }
            (None, None) => {
                let (stream, table) =
                    (self.partition(stream, stream_keys), self.partition(table, table_keys));
                // Tuples of a split side meet all tuples of the other side, but a replicated row
                // must be emitted only once.
                let may_split = match join {
                    "inner" => (true, true),
                    "full" => (false, false),
                    join => (!emits_build(join), emits_build(join)),
                };
                self.join_exchanges.push(JoinExchanges {
                    stream: stream.id,
                    table: table.id,
                    may_split,
                });
                (stream, table, (0..stream_keys.len()).collect())
            }
        }
    }
}

/// Adds the keys that an inner join equates to the classes.
fn with_equals(
    mut classes: Vec<Class>,
    stream_keys: &[Arc<str>],
    table_keys: &[Arc<str>],
) -> Vec<Class> {
    for class in &mut classes {
        for (a, b) in stream_keys.iter().zip(table_keys) {
            if class.contains(a) || class.contains(b) {
                class.extend([a.clone(), b.clone()]);
            }
        }
    }
    classes
}
