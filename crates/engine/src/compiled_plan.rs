//! A plan compiled for running: operators bound, pipelines cut, nested plans compiled.

use std::sync::Arc;

use tessera_operator::{Lowering, Operator, Registry};
use tessera_plan::pipeline::{ChainStart, Pipelines, cut};
use tessera_plan::{Edge, Locality, NodeId, Order, Plan, VerifiedPlan, verify};
use tessera_types::{Result, Tuple};

/// A plan that can run. It is immutable, except for values that operators compute once for all runs
/// (compiled code, footers of files). Any number of runs share it; their figures are in a
/// [`RunRecord`](crate::RunRecord).
#[derive(Debug)]
pub struct CompiledPlan {
    pub(crate) parameters: Tuple,
    pub(crate) operators: Vec<Operator>,
    pub(crate) pipelines: Pipelines,
    pub(crate) root: NodeId,
    pub(crate) edges: Vec<Edge>,
    /// Leaves whose morsels are divided among processes.
    pub(crate) parted: Vec<bool>,
    /// The nested plans of each node.
    pub(crate) nested: Vec<Vec<Arc<CompiledPlan>>>,
    names: Vec<Arc<str>>,
}

impl CompiledPlan {
    /// Verifies a plan, binds its sub-operators and cuts it into pipelines.
    ///
    /// # Errors
    /// Whatever the verifier or a lowering finds wrong, with the sub-operator named.
    pub fn lower(plan: &Plan, registry: &Registry) -> Result<Arc<CompiledPlan>> {
        let verified = verify(plan, registry.catalog())?;
        CompiledPlan::lower_verified(plan, &verified, registry)
    }

    /// As [`CompiledPlan::lower`], for a plan that has been verified already.
    ///
    /// # Errors
    /// Whatever a lowering finds wrong.
    pub fn lower_verified(
        plan: &Plan,
        verified: &VerifiedPlan,
        registry: &Registry,
    ) -> Result<Arc<CompiledPlan>> {
        let mut operators = Vec::with_capacity(plan.nodes.len());
        let mut nested = Vec::with_capacity(plan.nodes.len());
        for id in plan.ids() {
            let node = plan.node(id);
            let mut inner_plans = Vec::with_capacity(node.nested.len());
            let mut nested_outputs = Vec::with_capacity(node.nested.len());
            for (inner, inner_verified) in node.nested.iter().zip(&verified.nested[id.index()]) {
                nested_outputs.push(inner_verified.edges[inner.root.index()].clone());
                inner_plans.push(CompiledPlan::lower_verified(inner, inner_verified, registry)?);
            }
            let mut inputs: Vec<Edge> =
                node.inputs.iter().map(|input| verified.edges[input.index()].clone()).collect();
            if inputs.is_empty() {
                let tuple = plan.parameters.clone();
                inputs.push(Edge { tuple, traits: verified.start, order: Order::Source });
            }
            let lowering = Lowering {
                inputs: &inputs,
                output: &verified.edges[id.index()],
                parameters: &plan.parameters,
                nested_outputs,
                position: id.index(),
                library: registry.library(),
            };
            let operator = registry
                .implementation(&node.operator)
                .and_then(|implementation| implementation.lower(node, &lowering))
                .map_err(|error| {
                    error.context(format!("sub-operator {} (%{})", node.operator, id.0))
                })?;
            operators.push(operator);
            nested.push(inner_plans);
        }
        Ok(Arc::new(CompiledPlan {
            parameters: plan.parameters.clone(),
            operators,
            pipelines: cut(plan, registry.catalog())?,
            root: plan.root,
            edges: verified.edges.clone(),
            parted: plan
                .nodes
                .iter()
                .map(|node| node.inputs.is_empty() && verified.start.locality == Locality::Worker)
                .collect(),
            nested,
            names: plan.nodes.iter().map(|node| node.operator.clone()).collect(),
        }))
    }

    /// Whether the plan is a single sub-operator with a nested plan.
    pub(crate) fn is_executor(&self) -> bool {
        let alone = match &self.pipelines.pipelines[..] {
            [pipeline] => &pipeline.chains[..],
            _ => &[],
        };
        let [chain] = alone else { return false };
        let holds_a_plan = |node: NodeId| !self.nested[node.index()].is_empty();
        chain.streams.is_empty()
            && matches!(chain.start, ChainStart::Node(node) if holds_a_plan(node))
    }

    /// The type of the result's tuples.
    pub fn tuple(&self) -> &Tuple {
        &self.edges[self.root.index()].tuple
    }

    /// The number of pipelines, those of nested plans included.
    pub fn pipeline_count(&self) -> usize {
        let nested = self.nested.iter().flatten().map(|nested| nested.pipeline_count());
        self.pipelines.pipelines.len() + nested.sum::<usize>()
    }

    /// The number of sub-operators whose state can leave memory, those of nested plans included.
    pub(crate) fn spilling_states(&self) -> usize {
        let spills =
            |operator: &&Operator| matches!(operator, Operator::Sink(sink) if sink.spills());
        let nested = self.nested.iter().flatten().map(|nested| nested.spilling_states());
        self.operators.iter().filter(spills).count() + nested.sum::<usize>()
    }

    pub(crate) fn name(&self, id: NodeId) -> &str {
        &self.names[id.index()]
    }
}
