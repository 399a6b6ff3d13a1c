//! The division of a plan into pipelines.
//!
//! A pipeline ends at a materialization point: a sub-operator that consumes its input completely,
//! an operator with several consumers, or an input that must be complete before its consumer starts
//! (a *side*). In between it is a tree (Modularis §2.3.1 step 4): one or, below a union, several
//! chains that flow into one end.

use std::collections::HashMap;

use tessera_types::Result;

use crate::graph::{NodeId, Plan};
use crate::operator_catalog::{OperatorCatalog, Role};

/// The source of a chain's tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainStart {
    /// A source sub-operator.
    Node(NodeId),
    /// The output of another pipeline, given by position.
    Pipeline(usize),
}

/// A sequence of streaming sub-operators that starts at one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The source of the tuples.
    pub start: ChainStart,
    /// The streaming sub-operators, in order.
    pub streams: Vec<NodeId>,
}

/// The end of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineEnd {
    /// A sub-operator that consumes its input completely.
    Sink(NodeId),
    /// A buffer that collects the output of this node for its consumers.
    Collect(NodeId),
}

/// Chains that flow into one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The chains; where order is kept, tuples of earlier chains come first.
    pub chains: Vec<Chain>,
    /// The end.
    pub end: PipelineEnd,
}

/// The pipelines of a plan, each after those it depends on; the last one yields the plan's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipelines {
    /// The pipelines.
    pub pipelines: Vec<Pipeline>,
    /// For each node with sides: the input positions and the pipelines that collect them.
    pub sides: HashMap<NodeId, Vec<(usize, usize)>>,
}

/// Divides a verified plan into pipelines.
///
/// # Errors
/// A sub-operator is not in the catalog.
pub fn cut(plan: &Plan, catalog: &OperatorCatalog) -> Result<Pipelines> {
    let mut cutter = Cutter {
        plan,
        catalog,
        shared: plan.consumers().iter().map(|list| list.len() > 1).collect(),
        out: Pipelines { pipelines: Vec::new(), sides: HashMap::new() },
        sinks: HashMap::new(),
        collected: HashMap::new(),
    };
    cutter.collect(plan.root)?;
    Ok(cutter.out)
}

struct Cutter<'a> {
    plan: &'a Plan,
    catalog: &'a OperatorCatalog,
    shared: Vec<bool>,
    out: Pipelines,
    sinks: HashMap<NodeId, usize>,
    collected: HashMap<NodeId, usize>,
}

impl Cutter<'_> {
    fn collect(&mut self, node: NodeId) -> Result<usize> {
        if let Some(&pipeline) = self.collected.get(&node) {
            return Ok(pipeline);
        }
        let chains = self.produce(node)?;
        let pipeline = self.push(chains, PipelineEnd::Collect(node));
        self.collected.insert(node, pipeline);
        Ok(pipeline)
    }

    fn push(&mut self, chains: Vec<Chain>, end: PipelineEnd) -> usize {
        self.out.pipelines.push(Pipeline { chains, end });
        self.out.pipelines.len() - 1
    }

    /// The chains that deliver the output of `node` to one consumer.
    fn consume(&mut self, node: NodeId) -> Result<Vec<Chain>> {
        if !self.shared[node.index()] {
            return self.produce(node);
        }
        let pipeline = self.collect(node)?;
        Ok(vec![Chain { start: ChainStart::Pipeline(pipeline), streams: Vec::new() }])
    }

    fn produce(&mut self, node: NodeId) -> Result<Vec<Chain>> {
        let inputs = self.plan.node(node).inputs.clone();
        let role =
            self.catalog.descriptor(&self.plan.node(node).operator)?.role(self.plan.node(node));
        match role {
            Role::Source => {
                self.sides(node, &inputs, None)?;
                Ok(vec![Chain { start: ChainStart::Node(node), streams: Vec::new() }])
            }
            Role::Stream(input) => {
                self.sides(node, &inputs, Some(input))?;
                let mut chains = self.consume(inputs[input])?;
                chains.iter_mut().for_each(|chain| chain.streams.push(node));
                Ok(chains)
            }
            Role::Union => {
                let mut chains = Vec::new();
                for input in inputs {
                    chains.extend(self.consume(input)?);
                }
                Ok(chains)
            }
            Role::Sink(input) => {
                let pipeline = match self.sinks.get(&node) {
                    Some(&pipeline) => pipeline,
                    None => {
                        self.sides(node, &inputs, Some(input))?;
                        let chains = self.consume(inputs[input])?;
                        let pipeline = self.push(chains, PipelineEnd::Sink(node));
                        self.sinks.insert(node, pipeline);
                        pipeline
                    }
                };
                Ok(vec![Chain { start: ChainStart::Pipeline(pipeline), streams: Vec::new() }])
            }
        }
    }

    fn sides(&mut self, node: NodeId, inputs: &[NodeId], streaming: Option<usize>) -> Result<()> {
        if self.out.sides.contains_key(&node) {
            return Ok(());
        }
        let mut sides = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            if Some(position) != streaming {
                sides.push((position, self.collect(*input)?));
            }
        }
        if !sides.is_empty() {
            self.out.sides.insert(node, sides);
        }
        Ok(())
    }
}
