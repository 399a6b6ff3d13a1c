//! Joins: where stream and table meet.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::value::Value;
use tessera_types::Result;

use super::place::{Class, Place};
use super::{Distributing, Placed};

/// A table of more tuples than this is not copied to every worker.
const COPIED_ROWS_MAX: f64 = 8e6;

/// The name that a parameter holds.
pub(super) fn name(value: &Value) -> Option<&str> {
    match value {
        Value::Name(name) => Some(name),
        _ => None,
    }
}

/// The exchanges by keys of both sides of a join, and which of them may be divided among workers
/// where the other is at all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meeting {
    stream: NodeId,
    table: NodeId,
    /// Of stream, of table.
    may_split: (bool, bool),
}

/// Says of exchanges whose tuples only meet in their join that those of heavy partitions may stay
/// split, and those that they meet be copied to all workers instead. `meets` names the join, so
/// that each finds the other.
pub(super) fn allow_heavy(plan: &mut Plan, meetings: &[Meeting], relied_on: &HashSet<NodeId>) {
    let consumers = plan.consumers();
    for (number, Meeting { stream, table, may_split }) in meetings.iter().enumerate() {
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

/// Whether a kind of join yields tuples of the side because nothing, or something, of the whole
/// stream matched them.
pub(super) fn emits_build(join: &str) -> bool {
    matches!(join, "right" | "full" | "build_semi" | "build_anti")
}

impl Distributing<'_> {
    pub(super) fn probe(&mut self, mut node: Node) -> Result<Placed> {
        let mut build = self.plan.node(node.inputs[0]).clone();
        if &*build.operator != "build" {
            return self.on_first(node);
        }
        let (stream, table) = (self.input(node.inputs[1])?, self.input(build.inputs[0])?);
        let join: Arc<str> = node.params.get("join").and_then(name).unwrap_or("inner").into();
        let (stream_keys, table_keys) = (node.params.names("keys")?, build.params.names("keys")?);
        let once = |place: &Place| matches!(place, Place::First | Place::Copied);
        let (stream, table, place) = match (&stream.place, &table.place) {
            (Place::Copied, Place::Copied) if !emits_build(&join) => (stream, table, Place::Copied),
            (a, b) if once(a) && once(b) => (stream, table, Place::First),
            // Every tuple of the table meets the whole stream where it is.
            (Place::Copied, _)
                if matches!(&*join, "inner" | "right" | "build_semi" | "build_anti") =>
            {
                let table = match table.place {
                    Place::Keyed(_) => table,
                    _ => self.keyed(table, &table_keys),
                };
                let place = table.place.clone();
                (stream, table, place)
            }
            (a, _) if once(a) => {
                let (stream, table) = (self.gathered(stream), self.gathered(table));
                (stream, table, Place::First)
            }
            _ if node.params.flag("null_aware")?
                || self.is_small(&node, &build, &stream, &table) =>
            {
                let place = stream.place.clone();
                (stream, self.copied(table), place)
            }
            _ => {
                let (stream, table, positions) =
                    self.together(&join, (stream, &stream_keys), (table, &table_keys));
                let of_stream: Vec<Class> = match &stream.place {
                    Place::Keyed(classes) => classes.clone(),
                    _ => Vec::new(),
                };
                let of_table =
                    positions.iter().map(|at| Class::from([table_keys[*at].clone()])).collect();
                let place = match &*join {
                    "full" => Place::Split,
                    "right" | "build_semi" | "build_anti" => Place::Keyed(of_table),
                    _ => Place::Keyed(of_stream),
                };
                (stream, table, place)
            }
        };
        build.inputs[0] = table.id;
        node.inputs = vec![self.out.push(build), stream.id];
        let place = match place {
            Place::Keyed(classes) if &*join == "inner" => {
                Place::Keyed(with_equals(classes, &stream_keys, &table_keys))
            }
            place => place,
        };
        Ok(Placed { id: self.out.push(node), place })
    }

    /// Whether it costs less to copy the table to every worker than to send both to where their
    /// keys say.
    fn is_small(&self, node: &Node, build: &Node, stream: &Placed, table: &Placed) -> bool {
        let join = node.params.get("join").and_then(name).unwrap_or("inner");
        if emits_build(join) {
            return false;
        }
        if matches!(table.place, Place::First | Place::Copied) {
            return true;
        }
        let rows = |node: &Node| {
            node.params.integer_opt("expected_rows").ok().flatten().map(|rows| rows as f64)
        };
        let (Some(table_rows), Some(stream_rows)) = (rows(build), rows(node)) else { return false };
        let (stream_keys, table_keys) = (node.params.names("keys"), build.params.names("keys"));
        let is_there = |placed: &Placed, keys: Result<Vec<Arc<str>>>| {
            keys.is_ok_and(|keys| placed.place.positions(&keys).is_some())
        };
        let sent = (if is_there(table, table_keys) { 0.0 } else { table_rows })
            + (if is_there(stream, stream_keys) { 0.0 } else { stream_rows });
        table_rows <= COPIED_ROWS_MAX
            && table_rows * (self.workers - 1.0) <= sent * (1.0 - 1.0 / self.workers)
    }

    /// Both where the hash of equal keys brings them, and of which keys it is.
    fn together(
        &mut self,
        join: &str,
        (stream, stream_keys): (Placed, &[Arc<str>]),
        (table, table_keys): (Placed, &[Arc<str>]),
    ) -> (Placed, Placed, Vec<usize>) {
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
                let table = self.keyed(table, &of(table_keys, &here));
                (stream, table, here)
            }
            (None, Some(there)) => {
                self.rely_on(table.id);
                let stream = self.keyed(stream, &of(stream_keys, &there));
                (stream, table, there)
            }
            (None, None) => {
                let (stream, table) =
                    (self.keyed(stream, stream_keys), self.keyed(table, table_keys));
                // Who is split meets all of the other side; a row that is copied must not come out
                // more than once.
                let may_split = match join {
                    "inner" => (true, true),
                    "full" => (false, false),
                    join => (!emits_build(join), emits_build(join)),
                };
                self.meetings.push(Meeting { stream: stream.id, table: table.id, may_split });
                (stream, table, (0..stream_keys.len()).collect())
            }
        }
    }
}

/// Classes to which the keys that an inner join found equal have been added.
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
