//! Plans as graphs, and their builder.

use std::sync::Arc;

use tessera_types::Tuple;

use crate::value::{Params, Value};

/// The position of a node in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The index into [`Plan::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A sub-operator in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name of the sub-operator in the catalog.
    pub operator: Arc<str>,
    /// The nodes that produce its inputs.
    pub inputs: Vec<NodeId>,
    /// The parameters.
    pub params: Params,
    /// The nested plans.
    pub nested: Vec<Plan>,
    /// The declared output type; the verifier rejects the plan if the derived type differs.
    pub expected: Option<Tuple>,
    /// The planner's estimate of the output tuples, for EXPLAIN and for cost-based passes. The text
    /// form omits it.
    pub estimated_rows: Option<u64>,
}

impl Node {
    /// Creates a node without a declared type or an estimate.
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

/// A DAG of sub-operators in topological order: inputs precede their consumers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The parameter tuple, which ParameterLookup yields and `$name` reads. Empty for a top-level
    /// plan.
    pub parameters: Tuple,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The node that produces the result of the plan.
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
    /// Returns the parameter `name`, if present.
    pub fn param(&self, name: &str) -> Option<&Value> {
        self.params.get(name)
    }
}

impl Plan {
    /// Returns the node `id`.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the ids in topological order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Returns the consumers of each node. The plan's result is not counted as a consumer.
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

    /// Adds a node.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// The parameter tuple.
    pub fn parameters(&self) -> &Tuple {
        &self.parameters
    }

    /// The nodes added so far.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns a mutable reference to an added node.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())
    }

    /// Adds all nodes of another plan with the same parameters, and returns the new id of its root.
    pub fn append(&mut self, plan: Plan) -> NodeId {
        let offset = self.nodes.len() as u32;
        let root = NodeId(plan.root.0 + offset);
        self.nodes.extend(plan.nodes.into_iter().map(|mut node| {
            node.inputs.iter_mut().for_each(|input| input.0 += offset);
            node
        }));
        root
    }

    /// Returns the plan with the output of `root` as its result.
    pub fn finish(self, root: NodeId) -> Plan {
        Plan { parameters: self.parameters, nodes: self.nodes, root }
    }
}
