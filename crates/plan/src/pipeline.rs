//! The cut of a plan into pipelines.
//!
//! A pipeline ends at a materialisation point: a sub-operator that consumes its input whole, an
//! operator with several consumers, or an input that must be complete before its consumer starts (a
//! *side*). In between it is a tree (Modularis §2.3.1 step 4): several chains, more than one only
//! below a union, flowing into one end.

use std::collections::HashMap;

use tessera_types::Result;

use crate::catalogue::{Catalogue, Role};
use crate::graph::{NodeId, Plan};

/// Where a chain's tuples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A sub-operator that starts a pipeline.
    Node(NodeId),
    /// What another pipeline (by position) has produced.
    Pipeline(usize),
}

/// A run of streaming sub-operators from one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Where the tuples come from.
    pub start: Start,
    /// The sub-operators they pass, in order.
    pub streams: Vec<NodeId>,
}

/// Where a pipeline ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In a sub-operator that consumes its input whole.
    Sink(NodeId),
    /// In a collection of the output of this node, for its consumers.
    Collect(NodeId),
}

/// Chains that flow into one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The chains; tuples of an earlier one come first where order is kept.
    pub chains: Vec<Chain>,
    /// Where they end.
    pub end: End,
}

/// A plan cut into pipelines, each after those it needs; the last one yields the plan's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipelines {
    /// The pipelines.
    pub pipelines: Vec<Pipeline>,
    /// For each node with sides: input position and the pipeline that collects it.
    pub sides: HashMap<NodeId, Vec<(usize, usize)>>,
}

/// Cuts a verified plan.
///
/// # Errors
/// A sub-operator is not in the catalogue.
pub fn cut(plan: &Plan, catalogue: &Catalogue) -> Result<Pipelines> {
    let mut cutter = Cutter {
        plan,
        catalogue,
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
    catalogue: &'a Catalogue,
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
        let pipeline = self.push(chains, End::Collect(node));
        self.collected.insert(node, pipeline);
        Ok(pipeline)
    }

    fn push(&mut self, chains: Vec<Chain>, end: End) -> usize {
        self.out.pipelines.push(Pipeline { chains, end });
        self.out.pipelines.len() - 1
    }

    /// The chains that carry the output of `node` to one consumer.
    fn consume(&mut self, node: NodeId) -> Result<Vec<Chain>> {
        if !self.shared[node.index()] {
            return self.produce(node);
        }
        let pipeline = self.collect(node)?;
        Ok(vec![Chain { start: Start::Pipeline(pipeline), streams: Vec::new() }])
    }

    fn produce(&mut self, node: NodeId) -> Result<Vec<Chain>> {
        let inputs = self.plan.node(node).inputs.clone();
        let role =
            self.catalogue.descriptor(&self.plan.node(node).operator)?.role(self.plan.node(node));
        match role {
            Role::Source => {
                self.sides(node, &inputs, None)?;
                Ok(vec![Chain { start: Start::Node(node), streams: Vec::new() }])
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
                        let pipeline = self.push(chains, End::Sink(node));
                        self.sinks.insert(node, pipeline);
                        pipeline
                    }
                };
                Ok(vec![Chain { start: Start::Pipeline(pipeline), streams: Vec::new() }])
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
