//! The phases of a pipeline: its start, the chains of what its streams have left, its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tessera_context::{Run, lock};
use tessera_operator::{NestedPlans, Operator, SinkRun, SourceRun, StreamRun};
use tessera_plan::NodeId;
use tessera_plan::pipeline::{ChainStart, PipelineEnd};
use tessera_rows::Collected;
use tessera_types::{Error, Result};

use crate::collect::Collect;
use crate::compiled_plan::CompiledPlan;
use crate::pipeline::{ChainRun, Phase, PipelineState, after};
use crate::query_share::part;
use crate::ranges::MorselRanges;
use crate::results::ResultSink;

use super::{Execution, State};

impl Execution {
    /// Starts a pipeline: its sources, streams and sink.
    pub(super) fn start(&self, index: usize) -> Result<()> {
        let pipeline = &self.plan.pipelines.pipelines[index];
        let mut streams: HashMap<NodeId, Arc<dyn StreamRun>> = HashMap::new();
        let mut chains = Vec::new();
        let (sink, collect): (Arc<dyn SinkRun>, _) = match pipeline.end {
            PipelineEnd::Sink(node) => match &self.plan.operators[node.index()] {
                Operator::Sink(sink) => (sink.start(&self.run(node), &self.sides(node)?)?, None),
                _ => return Err(wrong_kind(&self.plan, node)),
            },
            PipelineEnd::Collect(node) => match &self.results {
                Some(queue) if index + 1 == self.plan.pipelines.pipelines.len() => {
                    (Arc::new(ResultSink::new(self.context.clone(), queue.clone())), None)
                }
                _ => {
                    let collect = Arc::new(Collect::new(&self.run(node)));
                    (collect.clone(), Some(collect))
                }
            },
        };
        // Must come first: it decides the order in which the sink needs its input.
        let early = sink.early_output(self.has_one_reader(index));
        for chain in &pipeline.chains {
            let (source, node) = match chain.start {
                ChainStart::Node(node) => match &self.plan.operators[node.index()] {
                    Operator::Source(source) => {
                        let started = source.start(&self.run(node), &self.sides(node)?)?;
                        let parted = self.plan.parted[node.index()];
                        (
                            if parted { part(started, self.context.share()) } else { started },
                            Some(node),
                        )
                    }
                    _ => return Err(wrong_kind(&self.plan, node)),
                },
                ChainStart::Pipeline(other) => (self.output(other)?, None),
            };
            let mut chain_streams = Vec::new();
            for &node in &chain.streams {
                let stream = match streams.get(&node) {
                    Some(stream) => stream.clone(),
                    None => match &self.plan.operators[node.index()] {
                        Operator::Stream(stream) => {
                            stream.start(&self.run(node), &self.sides(node)?)?
                        }
                        _ => return Err(wrong_kind(&self.plan, node)),
                    },
                };
                streams.insert(node, stream.clone());
                chain_streams.push((node, stream));
            }
            let nodes =
                self.level_nodes(index, node.or(self.sink_behind(chain.start)), &chain.streams);
            let first = after(&chains);
            chains.push(Arc::new(self.chain_run(
                source,
                first,
                chain_streams,
                nodes,
                sink.in_order(),
            )));
        }
        let mut ordered: Vec<_> = streams.into_iter().collect();
        ordered.sort_by_key(|(node, _)| *node);
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[index];
        pipeline.streams = ordered;
        pipeline.chains = chains;
        pipeline.sink = Some(sink);
        pipeline.collect = collect;
        pipeline.phase = Phase::Running;
        if early.is_some() {
            pipeline.is_early = true;
            pipeline.output = early;
            self.start_reader(&mut state, index)?;
        }
        drop(state);
        self.notify();
        Ok(())
    }

    /// The pipeline whose only chain reads the output of this pipeline, if it is the only reader.
    pub(super) fn only_reader(&self, state: &State, index: usize) -> Option<usize> {
        let [reader] = state.pipelines[index].read_by[..] else { return None };
        let chains = &self.plan.pipelines.pipelines[reader].chains;
        let reading =
            chains.iter().filter(|chain| chain.start == ChainStart::Pipeline(index)).count();
        (reading == 1).then_some(reader)
    }

    pub(super) fn has_one_reader(&self, index: usize) -> bool {
        self.only_reader(&lock(&self.state), index).is_some()
    }

    /// Lets the reader of a pipeline start before the pipeline has finished.
    pub(super) fn start_reader(&self, state: &mut State, index: usize) -> Result<()> {
        let Some(reader) = self.only_reader(state, index) else {
            return Err(Error::internal(
                "an output that is read while it comes has several readers",
            ));
        };
        let reader = &mut state.pipelines[reader];
        reader.running_before += 1;
        reader.waits_less();
        Ok(())
    }

    pub(super) fn chain_run(
        &self,
        source: Arc<dyn SourceRun>,
        first: u64,
        streams: Vec<(NodeId, Arc<dyn StreamRun>)>,
        nodes: Vec<Option<NodeId>>,
        in_order: bool,
    ) -> ChainRun {
        let count = source.morsels();
        self.record.morsels.total.fetch_add(count as u64, Ordering::Relaxed);
        let one_range = in_order || source.in_order() || source.order().is_some();
        let morsels = MorselRanges::new(count, self.workers, one_range);
        ChainRun { source, positions: first..first + count as u64, morsels, streams, nodes }
    }

    pub(super) fn level_nodes(
        &self,
        pipeline: usize,
        source: Option<NodeId>,
        streams: &[NodeId],
    ) -> Vec<Option<NodeId>> {
        let sink = match self.plan.pipelines.pipelines[pipeline].end {
            PipelineEnd::Sink(node) => Some(node),
            PipelineEnd::Collect(_) => None,
        };
        let streams = streams.iter().copied().map(Some);
        std::iter::once(source).chain(streams).chain(std::iter::once(sink)).collect()
    }

    /// The sink whose output is the source of a chain. The work of that source counts for this
    /// sub-operator.
    pub(super) fn sink_behind(&self, start: ChainStart) -> Option<NodeId> {
        match start {
            ChainStart::Pipeline(other) => match self.plan.pipelines.pipelines[other].end {
                PipelineEnd::Sink(node) => Some(node),
                PipelineEnd::Collect(_) => None,
            },
            ChainStart::Node(_) => None,
        }
    }

    /// Moves a pipeline to its next phase: what a stream has left becomes another chain; after the
    /// last chain the sink finishes.
    pub(super) fn advance(&self, index: usize) -> Result<()> {
        loop {
            let next = {
                let mut state = lock(&self.state);
                let pipeline = &mut state.pipelines[index];
                let next = pipeline.streams.get(pipeline.rested).cloned();
                pipeline.rested += 1;
                if pipeline.satisfied { None } else { next }
            };
            let Some((node, stream)) = next else { break };
            let Some(source) = stream.rest()? else { continue };
            if source.morsels() == 0 {
                continue;
            }
            let mut state = lock(&self.state);
            let pipeline = &mut state.pipelines[index];
            let behind = pipeline.chains.iter().find_map(|chain| {
                let at = chain.streams.iter().position(|(id, _)| *id == node)?;
                Some(chain.streams[at + 1..].to_vec())
            });
            let streams = behind.ok_or_else(|| Error::internal("a stream outside its chain"))?;
            let ids: Vec<_> = streams.iter().map(|(id, _)| *id).collect();
            let nodes = self.level_nodes(index, Some(node), &ids);
            let in_order = pipeline.sink.as_ref().is_some_and(|sink| sink.in_order());
            let first = after(&pipeline.chains);
            pipeline.chains.push(Arc::new(self.chain_run(source, first, streams, nodes, in_order)));
            pipeline.phase = Phase::Running;
            drop(state);
            self.notify();
            return Ok(());
        }
        self.finish_sink(index)
    }

    pub(super) fn finish_sink(&self, index: usize) -> Result<()> {
        let (sink, mut workers) = {
            let mut state = lock(&self.state);
            let pipeline = &mut state.pipelines[index];
            pipeline.drop_input();
            (pipeline.sink.take(), std::mem::take(&mut pipeline.free_sinks))
        };
        let sink = sink.ok_or_else(|| Error::internal("a pipeline without an end"))?;
        if workers.is_empty() {
            workers.push(sink.worker()?);
        }
        let finish = sink.finish(workers)?;
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[index];
        if !pipeline.is_early {
            pipeline.after = finish.output.ready();
            pipeline.output = Some(finish.output);
        }
        pipeline.tasks = finish.tasks;
        pipeline.phase = Phase::Tasks;
        drop(state);
        self.notify();
        Ok(())
    }

    pub(super) fn complete(&self, state: &mut State, index: usize) {
        let is_early = state.pipelines[index].is_early;
        for reader in state.pipelines[index].read_by.clone() {
            let reader = &mut state.pipelines[reader];
            match is_early {
                true => reader.running_before -= 1,
                false => reader.waits_less(),
            }
        }
        for read in state.pipelines[index].reads.clone() {
            let read = &mut state.pipelines[read];
            read.readers_left -= 1;
            if read.readers_left == 0 {
                read.clear();
            }
        }
        if index + 1 == state.pipelines.len() {
            state.result =
                state.pipelines[index].collect.as_ref().and_then(|collect| collect.collected());
            state.pipelines.iter_mut().for_each(PipelineState::clear);
            state.end();
        }
    }

    /// What the sub-operator of a node gets at its start.
    pub(super) fn run(&self, node: NodeId) -> Run {
        let nested = self.record.nested(node).iter().map(self.make_nested);
        Run {
            context: self.context.clone(),
            parameter_tuple: self.plan.parameters.clone(),
            parameters: self.parameters.clone(),
            counters: self.record.figures[node.index()].counters.clone(),
            board: self.board.clone(),
            nested: NestedPlans::of(nested.collect()),
        }
    }

    pub(super) fn sides(&self, node: NodeId) -> Result<Vec<Arc<Collected>>> {
        let Some(sides) = self.plan.pipelines.sides.get(&node) else { return Ok(Vec::new()) };
        let state = lock(&self.state);
        let collected = |(_, pipeline): &(usize, usize)| {
            let collect = state.pipelines[*pipeline].collect.as_ref();
            collect
                .and_then(|c| c.collected())
                .ok_or_else(|| Error::internal("a side that is not complete"))
        };
        sides.iter().map(collected).collect()
    }

    pub(super) fn output(&self, pipeline: usize) -> Result<Arc<dyn SourceRun>> {
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[pipeline];
        let output =
            if pipeline.is_early { pipeline.output.take() } else { pipeline.output.clone() };
        output.ok_or_else(|| Error::internal("the output of a pipeline that is not complete"))
    }
}

/// The error for an operator of the wrong kind at this place of a pipeline.
fn wrong_kind(plan: &CompiledPlan, id: NodeId) -> Error {
    let name = plan.name(id);
    Error::internal(format!("sub-operator {name} was lowered to another kind than its role says"))
}
