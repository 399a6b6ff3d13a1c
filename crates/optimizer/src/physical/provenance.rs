//! The provenance of fields: follows a stream up through nodes that process it tuple by tuple.

use std::sync::Arc;

use tessera_plan::edge::Edge;
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::operator_catalog::Functions;
use tessera_plan::rewrite::{can_raise, expressions, is_volatile, readers};
use tessera_plan::typing::Scope;
use tessera_plan::value::Value;
use tessera_types::{Item, Tuple};

/// The joins for which dropping a stream tuple drops only the output of this tuple.
const STREAM_JOINS: [&str; 5] = ["inner", "left", "semi", "anti", "mark"];
/// The same for build tuples.
const BUILD_JOINS: [&str; 4] = ["inner", "right", "build_semi", "build_anti"];

/// Fields in the output of a node.
#[derive(Debug, Clone)]
pub(super) struct NodeFields {
    pub(super) node: NodeId,
    pub(super) fields: Vec<Arc<str>>,
}

/// A plan with the information needed to follow its streams.
pub(super) struct Provenance<'a> {
    pub(super) plan: &'a Plan,
    edges: &'a [Edge],
    functions: &'a dyn Functions,
    readers: Vec<usize>,
}

impl<'a> Provenance<'a> {
    pub(super) fn new(plan: &'a Plan, edges: &'a [Edge], functions: &'a dyn Functions) -> Self {
        Provenance { plan, edges, functions, readers: readers(plan) }
    }

    /// Whether tuples may be dropped from the output of a node: it has one consumer, and neither
    /// errors nor other tuples depend on the dropped ones.
    pub(super) fn may_lose_tuples(&self, id: NodeId) -> bool {
        let node = self.plan.node(id);
        self.readers[id.index()] == 1 && (node.inputs.is_empty() || self.is_safe(node))
    }

    /// Returns the input fields from which a streaming node takes these fields unchanged, if all
    /// are from one input.
    pub(super) fn source_of(&self, place: &NodeFields) -> Option<NodeFields> {
        let node = self.plan.node(place.node);
        let input = |position: usize| node.inputs.get(position).copied();
        let same = |node: NodeId| Some(NodeFields { node, fields: place.fields.clone() });
        match &*node.operator {
            "filter" | "projection" | "exchange" | "merge" | "semi_join_filter" => {
                same(input(node.inputs.len().checked_sub(1)?)?)
            }
            "map" => {
                let exprs = node.params.exprs("exprs").ok()?;
                let before =
                    |field: &Arc<str>| match exprs.iter().find(|(name, _)| name == field)?.1 {
                        Expr::Field(before) => Some(before.clone()),
                        _ => None,
                    };
                let fields = place.fields.iter().map(before).collect::<Option<Vec<_>>>()?;
                Some(NodeFields { node: input(0)?, fields })
            }
            "cartesian_product" => same(input(1)?).filter(|place| self.has(place)),
            "probe" | "nested_loop" | "inequality_join" => {
                let Some(Value::Name(join)) = node.param("join") else { return None };
                let stream = same(input(1)?).filter(|place| self.has(place));
                match stream {
                    Some(stream) => STREAM_JOINS.contains(&&**join).then_some(stream),
                    None if &*node.operator == "probe" && BUILD_JOINS.contains(&&**join) => {
                        let build = input(0)?;
                        let is_build = &*self.plan.node(build).operator == "build"
                            && self.readers[build.index()] == 1;
                        let tuples =
                            self.plan.node(build).inputs.first().copied().filter(|_| is_build)?;
                        same(tuples).filter(|place| self.has(place))
                    }
                    None => None,
                }
            }
            _ => None,
        }
    }

    /// Returns these fields in the inputs of a union.
    pub(super) fn branches_of(&self, place: &NodeFields) -> Vec<NodeFields> {
        let inputs = self.plan.node(place.node).inputs.iter();
        inputs.map(|node| NodeFields { node: *node, fields: place.fields.clone() }).collect()
    }

    fn has(&self, place: &NodeFields) -> bool {
        let tuple = &self.edges[place.node.index()].tuple;
        place.fields.iter().all(|field| tuple.index_of(field).is_some())
    }

    /// Whether no expression of the node can raise an error or is volatile.
    fn is_safe(&self, node: &Node) -> bool {
        let mut fields = Vec::new();
        for input in &node.inputs {
            let tuple = &self.edges[input.index()].tuple;
            fields.extend(tuple.fields().iter().cloned());
            // A join condition also reads the tuples inside of the hash table.
            let inside = tuple.fields().iter().filter_map(|field| match &field.item {
                Item::Collection(collection) => Some(collection.tuple.fields()),
                Item::Atom(_) => None,
            });
            fields.extend(inside.flatten().cloned());
        }
        let tuple = Tuple::new(fields);
        let scope =
            Scope { tuple: &tuple, parameters: &self.plan.parameters, functions: self.functions };
        let mut safe = true;
        for (_, value) in node.params.iter() {
            expressions(value, &mut |expr| {
                safe &= !(is_volatile(expr, self.functions) || can_raise(expr, scope));
            });
        }
        safe
    }
}
