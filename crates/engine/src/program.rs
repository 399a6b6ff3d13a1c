//! A plan lowered for running: operators bound, pipelines cut, nested plans lowered inside.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::{Board, Context, Counters, Run, lock};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Lowering, NestedPlan, Operator, Reader, Registry};
use tessera_plan::pipeline::{Pipelines, Start, cut};
use tessera_plan::{Edge, Locality, NodeId, Order, Plan, Verified, verify};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use crate::engine::Shared;
use crate::execution::Execution;
use crate::last::LastJob;
use crate::profile::{NodeFigures, NodeProfile, Profile};
use crate::query_run::{QueryRun, RunReader};

/// A plan that can run; it keeps the figures of all its runs.
#[derive(Debug)]
pub struct Program {
    pub(crate) parameters: Tuple,
    pub(crate) operators: Vec<Operator>,
    pub(crate) pipelines: Pipelines,
    pub(crate) root: NodeId,
    pub(crate) edges: Vec<Edge>,
    /// Leaves of which each of several processes sees a part.
    pub(crate) parted: Vec<bool>,
    pub(crate) figures: Vec<NodeFigures>,
    /// Of the runs that other processes told of.
    elsewhere: Vec<NodeFigures>,
    pub(crate) morsels: Morsels,
    /// What was done last in a run that failed.
    pub(crate) last: Mutex<Option<LastJob>>,
    names: Vec<Arc<str>>,
    nested: Vec<Vec<Arc<Nested>>>,
}

/// Morsels of all pipelines that have begun, in all runs.
#[derive(Debug, Default)]
pub(crate) struct Morsels {
    pub(crate) total: AtomicU64,
    pub(crate) done: AtomicU64,
}

impl Program {
    /// Verifies a plan, binds its sub-operators and cuts it into pipelines.
    ///
    /// # Errors
    /// Whatever the verifier or a lowering finds wrong, with the sub-operator named.
    pub fn lower(plan: &Plan, registry: &Registry) -> Result<Arc<Program>> {
        let verified = verify(plan, registry.catalogue())?;
        Program::lower_verified(plan, &verified, registry)
    }

    /// As [`Program::lower`], for a plan that has been verified already.
    ///
    /// # Errors
    /// Whatever a lowering finds wrong.
    pub fn lower_verified(plan: &Plan, verified: &Verified, registry: &Registry) -> Result<Arc<Program>> {
        let mut operators = Vec::with_capacity(plan.nodes.len());
        let mut nested_programs = Vec::with_capacity(plan.nodes.len());
        for id in plan.ids() {
            let node = plan.node(id);
            let mut nested = Vec::new();
            let mut nested_outputs = Vec::new();
            for (inner, inner_verified) in node.nested.iter().zip(&verified.nested[id.index()]) {
                nested_outputs.push(inner_verified.edges[inner.root.index()].clone());
                nested.push(Arc::new(Nested {
                    program: Program::lower_verified(inner, inner_verified, registry)?,
                }));
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
                nested: nested.iter().map(|nested| nested.clone() as Arc<dyn NestedPlan>).collect(),
                nested_outputs,
                position: id.index(),
                library: registry.library(),
            };
            let operator = registry
                .implementation(&node.operator)
                .and_then(|implementation| implementation.lower(node, &lowering))
                .map_err(|error| error.context(format!("sub-operator {} (%{})", node.operator, id.0)))?;
            operators.push(operator);
            nested_programs.push(nested);
        }
        Ok(Arc::new(Program {
            parameters: plan.parameters.clone(),
            operators,
            pipelines: cut(plan, registry.catalogue())?,
            root: plan.root,
            edges: verified.edges.clone(),
            parted: plan
                .nodes
                .iter()
                .map(|node| node.inputs.is_empty() && verified.start.locality == Locality::Worker)
                .collect(),
            figures: plan.nodes.iter().map(|_| NodeFigures::default()).collect(),
            elsewhere: plan.nodes.iter().map(|_| NodeFigures::default()).collect(),
            morsels: Morsels::default(),
            last: Mutex::default(),
            names: plan.nodes.iter().map(|node| node.operator.clone()).collect(),
            nested: nested_programs,
        }))
    }

    /// Whether it is nothing but a sub-operator with a plan of its own.
    pub(crate) fn is_executor(&self) -> bool {
        let alone = match &self.pipelines.pipelines[..] {
            [pipeline] => &pipeline.chains[..],
            _ => &[],
        };
        let [chain] = alone else { return false };
        let holds_a_plan = |node: NodeId| !self.nested[node.index()].is_empty();
        chain.streams.is_empty() && matches!(chain.start, Start::Node(node) if holds_a_plan(node))
    }

    /// The type of the tuples it yields.
    pub fn tuple(&self) -> &Tuple {
        &self.edges[self.root.index()].tuple
    }

    /// How many pipelines it was cut into, those of nested plans counted once each.
    pub fn pipeline_count(&self) -> usize {
        let nested = self.nested.iter().flatten().map(|nested| nested.program.pipeline_count());
        self.pipelines.pipelines.len() + nested.sum::<usize>()
    }

    /// How many of its sub-operators have state that can leave memory, those of nested plans counted once each.
    pub(crate) fn spilling_states(&self) -> usize {
        let spills = |operator: &&Operator| matches!(operator, Operator::Sink(sink) if sink.spills());
        let nested = self.nested.iter().flatten().map(|nested| nested.program.spilling_states());
        self.operators.iter().filter(spills).count() + nested.sum::<usize>()
    }

    /// The figures of all runs so far, here and in other processes.
    pub fn profile(&self) -> Profile {
        self.profile_with(true)
    }

    /// The figures of the runs in this process.
    pub fn own_profile(&self) -> Profile {
        self.profile_with(false)
    }

    fn profile_with(&self, elsewhere: bool) -> Profile {
        let node = |id: usize| {
            let both = [&self.figures[id], &self.elsewhere[id]];
            let chosen = if elsewhere { &both[..] } else { &both[..1] };
            let sum = |value: fn(&NodeFigures) -> &AtomicU64| {
                chosen.iter().map(|figures| value(figures).load(Ordering::Relaxed)).sum()
            };
            let mut counters = BTreeMap::new();
            for (name, value) in chosen.iter().flat_map(|figures| figures.counters.get()) {
                *counters.entry(name).or_default() += value;
            }
            NodeProfile {
                id: NodeId(id as u32),
                rows: sum(|figures| &figures.rows),
                bytes: sum(|figures| &figures.bytes),
                nanoseconds: sum(|figures| &figures.nanoseconds),
                counters,
                nested: self.nested[id].iter().map(|nested| nested.program.profile_with(elsewhere)).collect(),
            }
        };
        Profile { nodes: (0..self.figures.len()).map(node).collect() }
    }

    /// A line for each node, nested ones after the one they stand in.
    fn write_figures(&self, lines: &mut String) {
        for (figures, nested) in self.figures.iter().zip(&self.nested) {
            *lines += &figures.line();
            *lines += "\n";
            nested.iter().for_each(|nested| nested.program.write_figures(lines));
        }
    }

    fn read_figures(&self, lines: &mut std::str::Lines<'_>) -> Result<()> {
        for (elsewhere, nested) in self.elsewhere.iter().zip(&self.nested) {
            let added = lines.next().and_then(|line| elsewhere.add_line(line));
            added.ok_or_else(|| Error::internal("figures of another plan"))?;
            nested.iter().try_for_each(|nested| nested.program.read_figures(lines))?;
        }
        Ok(())
    }

    /// Morsels done, and morsels there are, in all pipelines that have begun; nested plans counted.
    pub fn progress(&self) -> (u64, u64) {
        let own = (self.morsels.done.load(Ordering::Relaxed), self.morsels.total.load(Ordering::Relaxed));
        self.nested
            .iter()
            .flatten()
            .map(|nested| nested.program.progress())
            .fold(own, |sum, inner| (sum.0 + inner.0, sum.1 + inner.1))
    }

    /// What was done last in a run that failed or was cancelled, of nested plans' runs where there are some: who looks for
    /// what holds up an end finds it here.
    pub fn last_job(&self) -> Option<String> {
        let nested = self.nested.iter().flatten().find_map(|nested| nested.program.last_job());
        let own = || {
            let last = lock(&self.last);
            last.as_ref().map(|last| last.describe(self))
        };
        nested.or_else(own)
    }

    pub(crate) fn name(&self, id: NodeId) -> &str {
        &self.names[id.index()]
    }

    /// What a node's sub-operator gets when a run starts.
    pub(crate) fn run(
        &self,
        id: NodeId,
        parameters: &Chunk,
        context: &Arc<dyn Context>,
        board: &Arc<Board>,
    ) -> Run {
        let counters: Arc<Counters> = self.figures[id.index()].counters.clone();
        Run {
            context: context.clone(),
            parameter_tuple: self.parameters.clone(),
            parameters: parameters.clone(),
            counters,
            board: board.clone(),
        }
    }
}

/// A nested plan, lowered: run by the sub-operator that holds it.
#[derive(Debug)]
struct Nested {
    program: Arc<Program>,
}

impl Nested {
    /// Runs it for one parameter tuple with all workers; the calling worker takes part.
    fn run_parallel(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        match Shared::of_this_thread() {
            Some((shared, worker)) => {
                let workers = shared.worker_count();
                let execution =
                    Execution::new(self.program.clone(), parameters, context.clone(), workers, None)?;
                match worker {
                    Some(worker) => shared.run_taking_part(&execution, worker)?,
                    None => shared.run_waiting(&execution),
                }
                unwrap_collected(execution.take_result()?)
            }
            None => self.run(parameters, context),
        }
    }
}

impl NestedPlan for Nested {
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        let execution = Execution::new(self.program.clone(), parameters, context.clone(), 1, None)?;
        execution.run_alone()?;
        unwrap_collected(execution.take_result()?)
    }

    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>> {
        match Shared::of_this_thread() {
            Some((shared, None)) => {
                let run = QueryRun::start(&shared, &self.program, parameters, context.clone(), false)?;
                Ok(Box::new(RunReader(run)))
            }
            _ => {
                let collected = self.run_parallel(parameters, context)?;
                Ok(Box::new(ChunksReader::of_kept(collected.kept().to_vec(), context.chunk_rows())))
            }
        }
    }

    fn figures(&self) -> String {
        let mut lines = String::new();
        self.program.write_figures(&mut lines);
        lines
    }

    fn add_figures(&self, figures: &str) -> Result<()> {
        self.program.read_figures(&mut figures.lines())
    }
}

fn unwrap_collected(collected: Arc<Collected>) -> Result<Collected> {
    Ok(Arc::try_unwrap(collected).unwrap_or_else(|shared| (*shared).clone()))
}

/// The operator at a place where the pipeline cut promises another kind.
pub(crate) fn wrong_kind(program: &Program, id: NodeId) -> Error {
    Error::internal(format!(
        "sub-operator {} was lowered to another kind than its role says",
        program.name(id)
    ))
}
