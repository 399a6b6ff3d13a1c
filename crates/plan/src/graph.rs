//! Plans as graphs, and the builder that makes them.

use std::sync::Arc;

use tessera_types::Tuple;

use crate::value::{Params, Value};

/// A node of a plan, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The position in [`Plan::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One sub-operator in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Which sub-operator: a name of the catalogue.
    pub operator: Arc<str>,
    /// The nodes whose output it reads.
    pub inputs: Vec<NodeId>,
    /// Its parameters.
    pub params: Params,
    /// Its nested plans.
    pub nested: Vec<Plan>,
    /// The output type its author expects; the verifier rejects the plan when it derives another.
    pub expected: Option<Tuple>,
    /// How many tuples the planner expects it to yield, for people to compare and for passes that
    /// choose what pays; part of no text form.
    pub estimated_rows: Option<u64>,
}

impl Node {
    /// A node of whose output nothing is expected.
    pub fn new(
        operator: impl Into<Arc<str>>,
        inputs: Vec<NodeId>,
        params: Params,
        nested: Vec<Plan>,
    ) -> Node {
        Node {
            operator: operator.into(),
            inputs,
            params,
            nested,
            expected: None,
            estimated_rows: None,
        }
    }
}

/// A DAG of sub-operators. Nodes stand in topological order: inputs before their consumers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The parameter tuple: what ParameterLookup yields and `$name` reads. Empty at the top.
    pub parameters: Tuple,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The node whose output is the plan's result.
    pub root: NodeId,
}

/// Builds a plan node by node.
///
/// ```
/// use tessera_plan::{Builder, Expr, Params};
/// use tessera_types::{Atom, Field, Tuple};
/// let mut plan = Builder::new(Tuple::empty());
/// let schema = Tuple::new(vec![Field::new("x", Atom::Int64)]);
/// let scan = plan.add("parquet_scan", &[], Params::new().with("columns", schema));
/// let positive = Expr::call("gt", vec![Expr::field("x"), Expr::int64(0)]);
/// let filter = plan.add("filter", &[scan], Params::new().with("predicate", positive));
/// assert_eq!(plan.finish(filter).nodes.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    parameters: Tuple,
    nodes: Vec<Node>,
}

impl Node {
    /// A parameter, where given.
    pub fn param(&self, name: &str) -> Option<&Value> {
        self.params.get(name)
    }
}

impl Plan {
    /// A node by id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Ids in topological order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The consumers of each node; the plan's result counts for none.
    pub fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut consumers = vec![Vec::new(); self.nodes.len()];
        for id in self.ids() {
            for input in &self.node(id).inputs {
                if let Some(list) = consumers.get_mut(input.index()) {
                    list.push(id);
                }
            }
        }
        consumers
    }
}

impl Builder {
    /// Starts a plan with this parameter tuple.
    pub fn new(parameters: Tuple) -> Self {
        Builder { parameters, nodes: Vec::new() }
    }

    /// Adds a sub-operator.
    pub fn add(&mut self, operator: &str, inputs: &[NodeId], params: Params) -> NodeId {
        self.add_nested(operator, inputs, params, Vec::new())
    }

    /// Adds a sub-operator with nested plans.
    pub fn add_nested(
        &mut self,
        operator: &str,
        inputs: &[NodeId],
        params: Params,
        nested: Vec<Plan>,
    ) -> NodeId {
        self.push(Node::new(operator, inputs.to_vec(), params, nested))
    }

    /// Adds a node as it is.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// The parameter tuple.
    pub fn parameters(&self) -> &Tuple {
        &self.parameters
    }

    /// The nodes so far.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node so far, to be changed.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())
    }

    /// Adds every node of another plan (same parameters assumed), and gives the new id of its root.
    pub fn append(&mut self, plan: Plan) -> NodeId {
        let offset = self.nodes.len() as u32;
        let root = NodeId(plan.root.0 + offset);
        self.nodes.extend(plan.nodes.into_iter().map(|mut node| {
            node.inputs.iter_mut().for_each(|input| input.0 += offset);
            node
        }));
        root
    }

    /// The plan that yields the output of `root`.
    pub fn finish(self, root: NodeId) -> Plan {
        Plan { parameters: self.parameters, nodes: self.nodes, root }
    }
}
