//! The state of one pipeline of a run, and its jobs.

use std::ops::Range;
use std::sync::Arc;

use tessera_context::Token;
use tessera_operator::{SinkRun, SinkWorker, SourceRun, StreamRun, Task};
use tessera_plan::NodeId;
use tessera_plan::pipeline::{ChainStart, PipelineEnd};
use tessera_types::{Error, Result};

use crate::collect::Collect;
use crate::compiled_plan::CompiledPlan;
use crate::lane::Lane;
use crate::last_job::Kind;
use crate::ranges::MorselRanges;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting,
    Ready,
    Running,
    /// A worker is starting the pipeline or moving it to its next phase.
    Advancing,
    Tasks,
    Done,
}

pub(crate) struct PipelineState {
    pub(crate) phase: Phase,
    /// The number of pipelines whose end it waits for.
    pub(crate) waiting_for: usize,
    /// The number of running pipelines whose output it reads.
    pub(crate) running_before: usize,
    /// The pipelines whose output it reads.
    pub(crate) reads: Vec<usize>,
    pub(crate) read_by: Vec<usize>,
    /// Readers that have not finished. The output is dropped at zero.
    pub(crate) readers_left: usize,
    pub(crate) active: usize,
    pub(crate) satisfied: bool,
    pub(crate) chains: Vec<Arc<ChainRun>>,
    pub(crate) sink: Option<Arc<dyn SinkRun>>,
    pub(crate) collect: Option<Arc<Collect>>,
    pub(crate) free_lanes: Vec<Lane>,
    pub(crate) free_sinks: Vec<Box<dyn SinkWorker>>,
    pub(crate) parked: Vec<(Token, Lane, Box<dyn SinkWorker>)>,
    /// A full sink's token. No morsel starts until it is ready.
    pub(crate) sink_waits: Option<Token>,
    /// Streams in topological order, and how many have returned what they have left.
    pub(crate) streams: Vec<(NodeId, Arc<dyn StreamRun>)>,
    pub(crate) rested: usize,
    pub(crate) tasks: Vec<Task>,
    /// What the output waits for after the finishing tasks.
    pub(crate) after: Option<Token>,
    pub(crate) output: Option<Arc<dyn SourceRun>>,
    /// Whether the output is read while the pipeline runs.
    pub(crate) is_early: bool,
}

pub(crate) struct ChainRun {
    pub(crate) source: Arc<dyn SourceRun>,
    /// The positions of its morsels. They are dense over all chains, so that a sink can tell which
    /// prefix is complete.
    pub(crate) positions: Range<u64>,
    pub(crate) morsels: MorselRanges,
    pub(crate) streams: Vec<(NodeId, Arc<dyn StreamRun>)>,
    /// The node of each level and of the sink, for the profile. `None` for the output of another
    /// pipeline and for collecting.
    pub(crate) nodes: Vec<Option<NodeId>>,
}

pub(crate) enum Job {
    Start(usize),
    /// The last running pipeline whose output it reads has ended.
    Advance(usize),
    Morsel {
        pipeline: usize,
        chain: usize,
        morsel: usize,
        lane: Option<Lane>,
        sink: Option<Box<dyn SinkWorker>>,
    },
    Resume {
        pipeline: usize,
        lane: Lane,
        sink: Box<dyn SinkWorker>,
    },
    Task {
        pipeline: usize,
        task: Task,
    },
}

impl Job {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Job::Start(_) => Kind::Start,
            Job::Advance(_) => Kind::Advance,
            Job::Morsel { .. } | Job::Resume { .. } => Kind::Morsel,
            Job::Task { .. } => Kind::Task,
        }
    }

    pub(crate) fn pipeline(&self) -> usize {
        match self {
            Job::Start(pipeline)
            | Job::Advance(pipeline)
            | Job::Morsel { pipeline, .. }
            | Job::Resume { pipeline, .. }
            | Job::Task { pipeline, .. } => *pipeline,
        }
    }
}

impl PipelineState {
    /// One pipeline less to wait for.
    pub(crate) fn waits_less(&mut self) {
        self.waiting_for -= 1;
        if self.waiting_for == 0 {
            self.phase = Phase::Ready;
        }
    }

    /// A finishing task, or an empty task if the output has become ready after all tasks.
    pub(crate) fn find_task(&mut self, index: usize) -> Option<Job> {
        let task = match (self.tasks.pop(), &self.after) {
            (Some(task), _) => task,
            (None, Some(token)) if token.is_ready() => {
                self.after = None;
                Box::new(|| Ok(()))
            }
            (None, _) => return None,
        };
        Some(Job::Task { pipeline: index, task })
    }

    /// Parks a lane until its sink has room. No morsel starts until then.
    pub(crate) fn park_for_sink(&mut self, token: Token, lane: Lane, sink: Box<dyn SinkWorker>) {
        self.sink_waits = Some(token.clone());
        self.parked.push((token, lane, sink));
    }

    pub(crate) fn find_morsel(
        &mut self,
        index: usize,
        worker: usize,
        parked_max: usize,
    ) -> Option<Job> {
        if let Some(ready) = self.parked.iter().position(|(token, ..)| token.is_ready()) {
            let (_, lane, sink) = self.parked.swap_remove(ready);
            return Some(Job::Resume { pipeline: index, lane, sink });
        }
        let is_full = self.sink_waits.as_ref().is_some_and(|token| !token.is_ready());
        if self.satisfied || is_full || self.parked.len() >= parked_max {
            return None;
        }
        let (chain, morsel) = self
            .chains
            .iter()
            .enumerate()
            .find_map(|(i, chain)| Some((i, chain.morsels.take(worker)?)))?;
        let lane = self.free_lanes.iter().position(|lane| lane.chain == chain);
        let lane = lane.map(|at| self.free_lanes.swap_remove(at));
        Some(Job::Morsel { pipeline: index, chain, morsel, lane, sink: self.free_sinks.pop() })
    }

    /// Whether no job of this phase is running, parked or left.
    pub(crate) fn phase_is_over(&self) -> bool {
        let nothing_left = || match self.phase {
            Phase::Running => {
                let no_morsel = || self.chains.iter().all(|chain| chain.morsels.is_empty());
                self.running_before == 0 && (self.satisfied || no_morsel())
            }
            Phase::Tasks => self.tasks.is_empty() && self.after.is_none(),
            _ => false,
        };
        // Called for every job: the cheap conditions come first.
        self.active == 0 && self.parked.is_empty() && nothing_left()
    }

    /// Drops everything that holds memory.
    pub(crate) fn clear(&mut self) {
        self.drop_input();
        self.sink = None;
        self.collect = None;
        self.free_sinks.clear();
        self.parked.clear();
        self.tasks.clear();
        self.after = None;
        self.output = None;
    }

    /// Drops the input of a pipeline that needs no more input, once no job reads it. The pipeline
    /// that writes the input waits until its output is read or dropped. Every job calls this at its
    /// end, so that the last job drops the input.
    pub(crate) fn drop_unwanted_input(&mut self) {
        if self.phase == Phase::Running
            && self.satisfied
            && self.active == 0
            && self.parked.is_empty()
        {
            self.drop_input();
        }
    }

    /// Drops the readers of its input.
    pub(crate) fn drop_input(&mut self) {
        self.free_lanes.clear();
        self.chains.clear();
        self.streams.clear();
    }
}

/// The first position after all chains.
pub(crate) fn after(chains: &[Arc<ChainRun>]) -> u64 {
    chains.last().map_or(0, |chain| chain.positions.end)
}

/// The initial state of each pipeline, with the pipelines that it reads.
pub(crate) fn dependencies(plan: &CompiledPlan) -> Result<Vec<PipelineState>> {
    let cut = &plan.pipelines;
    let mut states = Vec::new();
    for pipeline in &cut.pipelines {
        let mut reads = Vec::new();
        let mut nodes = Vec::new();
        for chain in &pipeline.chains {
            match chain.start {
                ChainStart::Pipeline(other) => reads.push(other),
                ChainStart::Node(node) => nodes.push(node),
            }
            nodes.extend(&chain.streams);
        }
        if let PipelineEnd::Sink(node) = pipeline.end {
            nodes.push(node);
        }
        for node in nodes {
            reads.extend(cut.sides.get(&node).into_iter().flatten().map(|(_, pipeline)| *pipeline));
        }
        reads.sort_unstable();
        reads.dedup();
        let phase = if reads.is_empty() { Phase::Ready } else { Phase::Waiting };
        states.push(PipelineState {
            phase,
            waiting_for: reads.len(),
            running_before: 0,
            reads,
            read_by: Vec::new(),
            readers_left: 0,
            active: 0,
            satisfied: false,
            chains: Vec::new(),
            sink: None,
            collect: None,
            free_lanes: Vec::new(),
            free_sinks: Vec::new(),
            parked: Vec::new(),
            sink_waits: None,
            streams: Vec::new(),
            rested: 0,
            tasks: Vec::new(),
            after: None,
            output: None,
            is_early: false,
        });
    }
    for index in 0..states.len() {
        for read in states[index].reads.clone() {
            let Some(read) = states.get_mut(read) else {
                return Err(Error::internal("a pipeline reads one that does not exist"));
            };
            read.read_by.push(index);
            read.readers_left += 1;
        }
    }
    Ok(states)
}
