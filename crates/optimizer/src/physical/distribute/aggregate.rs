//! Distributed aggregation: partial aggregates and their merge.

use std::sync::Arc;

use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, NodeId};
use tessera_plan::rule::Rule;
use tessera_plan::value::{Params, Value};
use tessera_types::Result;

use super::place::{Class, Placement, contains};
use super::{Distributor, PlacedNode};
use crate::merging::Merging;

impl Distributor<'_> {
    pub(super) fn reduce(&mut self, id: NodeId, mut node: Node) -> Result<PlacedNode> {
        let input = self.input(node.inputs[0])?;
        let parts = match input.place {
            Placement::First | Placement::Replicated => None,
            Placement::Split | Placement::Partitioned(_) => self.in_parts(id, &node),
        };
        let Some((partial, merged)) = parts else { return self.on_first(node) };
        node.params.set("aggregates", partial);
        node.params.set("partial", true);
        node.estimated_rows = None;
        node.inputs[0] = input.id;
        let part = PlacedNode { id: self.out.push(node), place: Placement::Split };
        // The partial results are few, so replicating them is cheap and avoids a later broadcast.
        let parts = self.broadcast(part);
        let id = self.out.add("reduce", &[parts.id], Params::new().with("aggregates", merged));
        Ok(PlacedNode { id, place: Placement::Replicated })
    }

    pub(super) fn reduce_by_key(&mut self, id: NodeId, mut node: Node) -> Result<PlacedNode> {
        let input = self.input(node.inputs[0])?;
        let keys = node.params.names("keys")?;
        let place = match &input.place {
            Placement::First | Placement::Replicated => return self.on_first(node),
            Placement::Partitioned(classes) if contains(classes, &keys) => {
                self.rely_on(input.id);
                let kept = |class: &Class| {
                    class.iter().filter(|name| keys.contains(name)).cloned().collect()
                };
                Placement::Partitioned(classes.iter().map(kept).collect())
            }
            _ if keys.is_empty() => return self.on_first(node),
            _ => {
                let mut parts = input;
                if let Some((partial, merged)) = self.in_parts(id, &node) {
                    let mut part = node.clone();
                    part.inputs = vec![parts.id];
                    part.params.set("aggregates", partial);
                    part.params.set("partial", true);
                    part.estimated_rows = None;
                    parts = PlacedNode { id: self.out.push(part), place: Placement::Split };
                    node.params.set("aggregates", merged);
                }
                let together = self.partition(parts, &keys);
                node.inputs[0] = together.id;
                return Ok(PlacedNode { id: self.out.push(node), place: together.place });
            }
        };
        node.inputs[0] = input.id;
        Ok(PlacedNode { id: self.out.push(node), place })
    }

    /// Splits the aggregates of a node into partial aggregates and those that merge them; `None` if
    /// one of them needs all values.
    fn in_parts(&self, id: NodeId, node: &Node) -> Option<(Value, Value)> {
        if !self.rules.has(Rule::PartialAggregates) {
            return None;
        }
        let output = &self.edges[id.index()].tuple;
        let calls: &[(Arc<str>, Value)] = match node.param("aggregates") {
            None => &[],
            Some(Value::Record(calls)) => calls,
            Some(_) => return None,
        };
        let taken = |name: &str| output.fields().iter().any(|field| &*field.name == name);
        let mut partial: Vec<(Arc<str>, Value)> = Vec::new();
        let mut merged = Vec::new();
        for (name, call) in calls {
            let Value::Record(entries) = call else { return None };
            let entry =
                |key: &str| entries.iter().find(|(name, _)| &**name == key).map(|(_, value)| value);
            let needs_all = |key: &str| !matches!(entry(key), None | Some(Value::Boolean(false)));
            if needs_all("distinct") || needs_all("order_by") {
                return None;
            }
            let function = match entry("function")? {
                Value::Name(name) | Value::String(name) | Value::Expr(Expr::Field(name)) => {
                    name.clone()
                }
                _ => return None,
            };
            let Merging { parts, merge } = Merging::of(&function, output.field(name)?.atom()?)?;
            let mut args = Vec::new();
            for part in parts {
                let mut of_part = entries.clone();
                set(&mut of_part, "function", Value::name(part.function));
                if let Some(position) = part.arg {
                    let Some(Value::List(all)) = entry("args") else { return None };
                    set(&mut of_part, "args", Value::List(vec![all.get(position)?.clone()]));
                }
                let same =
                    partial.iter().find(|(_, other)| *other == Value::Record(of_part.clone()));
                let name = match same {
                    Some((name, _)) => name.clone(),
                    None => {
                        let is_free = |name: &String| {
                            !taken(name) && partial.iter().all(|(other, _)| **other != **name)
                        };
                        let name: Arc<str> =
                            (0..).map(|n| format!("part_{n}")).find(is_free)?.into();
                        partial.push((name.clone(), Value::Record(of_part)));
                        name
                    }
                };
                args.push(Value::Expr(Expr::Field(name)));
            }
            let call = vec![
                (Arc::from("function"), Value::name(merge)),
                (Arc::from("args"), Value::List(args)),
            ];
            merged.push((name.clone(), Value::Record(call)));
        }
        Some((Value::Record(partial), Value::Record(merged)))
    }
}

fn set(entries: &mut [(Arc<str>, Value)], key: &str, value: Value) {
    if let Some((_, entry)) = entries.iter_mut().find(|(name, _)| &**name == key) {
        *entry = value;
    }
}
