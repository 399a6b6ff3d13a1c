//! One run of a compiled plan: which pipelines are ready, which jobs there are, what has failed.
//!
//! A pipeline goes through [`Phase`]s: it waits for what it reads, is started, runs the morsels of
//! its chains, then those of what its streams have left over (unmatched build tuples), then the
//! finishing tasks of its sink. The state is under one lock that is taken once per job, never per
//! chunk.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tessera_context::{Board, Context, Run, Token, interrupt, lock};
use tessera_operator::{
    ByteQueue, NestedPlan, NestedPlans, Operator, SinkRun, SinkWorker, SourceRun, StreamRun,
    stream_workers,
};
use tessera_plan::NodeId;
use tessera_plan::pipeline::{End, Start};
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;

use crate::collect::Collect;
use crate::compiled_plan::CompiledPlan;
use crate::lane::{Driven, Lane, Surroundings};
use crate::last::{Kind, LastJob};
use crate::part::part;
use crate::pipeline::{ChainRun, Job, Phase, PipelineState, after, dependencies};
use crate::ranges::MorselRanges;
use crate::record::RunRecord;
use crate::results::ResultSink;
use crate::work_signal::WorkSignal;

/// How long a worker that finds only parked lanes waits before it looks again.
const PARKED_WAIT: Duration = Duration::from_micros(200);

/// How often a thread that waits for workers to end its run asks whether it was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How long a lane goes on while others wait for a turn. A morsel can be long: a row group through
/// many joins.
const SLICE: Duration = Duration::from_millis(10);

/// Lanes of a pipeline that may wait at once, for each worker: what is ahead of the workers'
/// reading. Each has state of its own in every stream and in the sink.
const PARKED_LANES_MAX: usize = 8;

/// Gives the nested plan of a record as a sub-operator runs it.
pub(crate) type MakeNested = fn(&Arc<RunRecord>) -> Arc<dyn NestedPlan>;

pub(crate) struct Execution {
    plan: Arc<CompiledPlan>,
    record: Arc<RunRecord>,
    make_nested: MakeNested,
    parameters: Chunk,
    context: Arc<dyn Context>,
    board: Arc<Board>,
    workers: usize,
    /// Where the result goes, if it is read while it comes.
    results: Option<ByteQueue>,
    failed: AtomicBool,
    state: Mutex<State>,
    finished: Condvar,
    /// Wakes the workers, where several work on this run.
    signal: OnceLock<Arc<WorkSignal>>,
}

struct State {
    pipelines: Vec<PipelineState>,
    jobs_running: usize,
    error: Option<Error>,
    finished: bool,
    /// To be told that it has.
    ended: Vec<Token>,
    result: Option<Arc<Collected>>,
}

/// What looking for a job found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worked {
    /// A job was done.
    Job,
    /// There is nothing to do now.
    Nothing,
    /// There is nothing to do but to wait for parked lanes.
    Parked,
    /// The run has ended.
    Finished,
}

impl State {
    fn end(&mut self) {
        self.finished = true;
        self.ended.drain(..).for_each(|token| token.set_ready());
    }
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl Execution {
    /// A run whose result is collected.
    pub(crate) fn new(
        record: &Arc<RunRecord>,
        parameters: Chunk,
        context: Arc<dyn Context>,
        workers: usize,
        make_nested: MakeNested,
    ) -> Result<Arc<Execution>> {
        Execution::with_results(record, (parameters, context), workers, make_nested, None)
    }

    /// A run whose result goes to a queue, where there is one.
    pub(crate) fn with_results(
        record: &Arc<RunRecord>,
        (parameters, context): (Chunk, Arc<dyn Context>),
        workers: usize,
        make_nested: MakeNested,
        results: Option<ByteQueue>,
    ) -> Result<Arc<Execution>> {
        let pipelines = dependencies(record.plan())?;
        let state = State {
            pipelines,
            jobs_running: 0,
            error: None,
            finished: false,
            ended: Vec::new(),
            result: None,
        };
        Ok(Arc::new(Execution {
            plan: record.plan().clone(),
            record: record.clone(),
            make_nested,
            parameters,
            context,
            board: Arc::default(),
            workers,
            results,
            failed: AtomicBool::new(false),
            state: Mutex::new(state),
            finished: Condvar::new(),
            signal: OnceLock::new(),
        }))
    }

    /// Wakes the workers of this signal when there is new work.
    pub(crate) fn attach(&self, signal: &Arc<WorkSignal>) {
        self.signal.get_or_init(|| signal.clone());
    }

    /// Runs everything on the calling thread.
    pub(crate) fn run_alone(&self) -> Result<()> {
        loop {
            match self.work_once(0) {
                Worked::Job => {}
                Worked::Finished => return Ok(()),
                Worked::Parked => self.parked_token().unwrap_or_default().wait(PARKED_WAIT),
                Worked::Nothing => {
                    return Err(Error::internal("a run has neither work nor an end"));
                }
            }
        }
    }

    /// Waits for the end; for threads that are no workers. A run that gets none, since others have
    /// them all, can be cancelled, too.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while !state.finished {
            if matches!(self.parked(&mut state), Worked::Finished) {
                break;
            }
            let waited = self.finished.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Ends the run where it was cancelled and no worker does anything for it.
    pub(crate) fn check(&self) {
        let mut state = lock(&self.state);
        if !state.finished {
            self.parked(&mut state);
        }
    }

    /// Ends the run before its time, and waits until no job of it runs.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        if !state.finished {
            self.failed.store(true, Ordering::Relaxed);
            state.error.get_or_insert_with(|| {
                Error::new(Code::Cancelled, "the result was not read to its end")
            });
            if state.jobs_running == 0 {
                self.clear(&mut state);
            }
        }
        while !state.finished {
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.pipelines.clear();
    }

    /// What some parked lane waits for.
    pub(crate) fn parked_token(&self) -> Option<Token> {
        let state = lock(&self.state);
        state
            .pipelines
            .iter()
            .find_map(|pipeline| pipeline.parked.first().map(|(token, ..)| token.clone()))
    }

    /// Ready when the run has ended.
    pub(crate) fn ended(&self) -> Token {
        let (token, mut state) = (Token::new(), lock(&self.state));
        match state.finished {
            true => token.set_ready(),
            false => state.ended.push(token.clone()),
        }
        token
    }

    /// The result of a run that has ended.
    pub(crate) fn take_result(&self) -> Result<Arc<Collected>> {
        let mut state = lock(&self.state);
        state.pipelines.clear();
        match (state.error.take(), state.result.take()) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result),
            (None, None) => Err(Error::internal("a run ended without a result")),
        }
    }

    /// Finds a job and does it.
    pub(crate) fn work_once(&self, worker: usize) -> Worked {
        let job = {
            let mut state = lock(&self.state);
            if state.finished {
                return Worked::Finished;
            }
            match self.find_job(&mut state, worker) {
                Ok(job) => {
                    state.jobs_running += 1;
                    job
                }
                Err(Worked::Parked) => return self.parked(&mut state),
                Err(worked) => return worked,
            }
        };
        let (pipeline, kind, started) = (job.pipeline(), job.kind(), Instant::now());
        let mut longest = None;
        let done = self.guarded(|| self.do_job(job, &mut longest));
        self.note(&done, pipeline, kind, started, longest);
        self.finish_job(pipeline, done);
        Worked::Job
    }

    /// Does something in which long kernels hear of a cancellation; a panic becomes an error.
    fn guarded(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let done = catch_unwind(AssertUnwindSafe(|| interrupt::within(&self.context, work)));
        done.unwrap_or_else(|panic| Err(panic_error(&*panic)))
    }

    /// Nothing but to wait for parked lanes: no chunk is made meanwhile, so that this is where a
    /// cancelled query ends.
    fn parked(&self, state: &mut State) -> Worked {
        let Err(error) = self.context.check() else { return Worked::Parked };
        self.failed.store(true, Ordering::Relaxed);
        state.error.get_or_insert(error);
        if state.jobs_running > 0 {
            return Worked::Nothing;
        }
        self.clear(state);
        self.finished.notify_all();
        Worked::Finished
    }

    /// Keeps what was done last in a run that has failed.
    fn note(
        &self,
        done: &Result<()>,
        pipeline: usize,
        kind: Kind,
        started: Instant,
        longest: Option<(NodeId, Duration)>,
    ) {
        if done.is_err() || self.failed.load(Ordering::Relaxed) {
            let (took, cleared) = (started.elapsed(), Duration::ZERO);
            *lock(&self.record.last) = Some(LastJob { pipeline, kind, took, longest, cleared });
        }
    }

    /// Ends a run that has failed.
    fn clear(&self, state: &mut State) {
        let started = Instant::now();
        state.pipelines.iter_mut().for_each(PipelineState::clear);
        if let (Some(results), Some(error)) = (&self.results, &state.error) {
            results.fail(error.clone());
        }
        state.end();
        if let Some(last) = &mut *lock(&self.record.last) {
            last.cleared = started.elapsed();
        }
    }

    fn find_job(&self, state: &mut State, worker: usize) -> Result<Job, Worked> {
        if state.error.is_some() {
            return Err(Worked::Nothing);
        }
        let mut any_parked = false;
        for (index, pipeline) in state.pipelines.iter_mut().enumerate() {
            let job = match pipeline.phase {
                Phase::Ready => {
                    pipeline.phase = Phase::Advancing;
                    Some(Job::Start(index))
                }
                Phase::Tasks => pipeline.find_task(index),
                Phase::Running if pipeline.phase_is_over() => {
                    pipeline.phase = Phase::Advancing;
                    Some(Job::Advance(index))
                }
                Phase::Running => {
                    pipeline.find_morsel(index, worker, self.workers * PARKED_LANES_MAX)
                }
                Phase::Waiting | Phase::Advancing | Phase::Done => None,
            };
            any_parked |= !pipeline.parked.is_empty() || pipeline.after.is_some();
            if let Some(job) = job {
                pipeline.active += 1;
                return Ok(job);
            }
        }
        Err(if any_parked { Worked::Parked } else { Worked::Nothing })
    }

    fn do_job(&self, job: Job, longest: &mut Option<(NodeId, Duration)>) -> Result<()> {
        self.context.check()?;
        match job {
            Job::Start(pipeline) => self.start(pipeline),
            Job::Advance(pipeline) => self.advance(pipeline),
            Job::Task { task, .. } => task(),
            Job::Morsel { pipeline, chain, morsel, lane, sink } => {
                let (chain_run, sink_run) = self.chain(pipeline, chain)?;
                let mut sink = match sink {
                    Some(sink) => sink,
                    None => sink_run.worker()?,
                };
                let mut lane = match lane {
                    Some(lane) => lane,
                    None => {
                        let streams = chain_run.streams.iter().map(|(_, stream)| stream);
                        Lane::new(chain, stream_workers(streams, &*sink_run)?)
                    }
                };
                let morsel = match chain_run.source.order() {
                    Some(order) if !sink_run.in_order() => {
                        order.get(morsel).copied().unwrap_or(morsel)
                    }
                    _ => morsel,
                };
                lane.begin(match chain_run.streams.is_empty() && sink_run.takes_long() {
                    true => chain_run.source.open_long(morsel)?,
                    false => chain_run.source.open(morsel)?,
                });
                sink.begin(chain_run.positions.start + morsel as u64)?;
                self.drive(pipeline, lane, sink, longest)
            }
            Job::Resume { pipeline, lane, sink } => self.drive(pipeline, lane, sink, longest),
        }
    }

    fn chain(&self, pipeline: usize, chain: usize) -> Result<(Arc<ChainRun>, Arc<dyn SinkRun>)> {
        let state = lock(&self.state);
        let pipeline = &state.pipelines[pipeline];
        match (pipeline.chains.get(chain), &pipeline.sink) {
            (Some(chain), Some(sink)) => Ok((chain.clone(), sink.clone())),
            _ => Err(Error::internal("a morsel of a pipeline that was not started")),
        }
    }

    fn drive(
        &self,
        pipeline: usize,
        mut lane: Lane,
        mut sink: Box<dyn SinkWorker>,
        longest: &mut Option<(NodeId, Duration)>,
    ) -> Result<()> {
        let (chain_run, sink_run) = self.chain(pipeline, lane.chain)?;
        // A lane that has waited for its source may find that the sink is full now.
        if let Some(token) = sink.blocked().filter(|token| !token.is_ready()) {
            lock(&self.state).pipelines[pipeline].park_for_sink(token, lane, sink);
            return Ok(());
        }
        let stopped = || self.failed.load(Ordering::Relaxed);
        let (signal, started) = (self.signal.get(), Instant::now());
        let yields = || signal.is_some_and(|signal| signal.crowded()) && started.elapsed() >= SLICE;
        let around = Surroundings {
            context: &self.context,
            sink: &*sink_run,
            stopped: &stopped,
            yields: &yields,
        };
        let driven = lane.drive(&mut *sink, &around);
        lane.report(&chain_run.nodes, &self.record.figures);
        let (level, nanoseconds) = lane.longest;
        *longest = chain_run.nodes[level].map(|node| (node, Duration::from_nanos(nanoseconds)));
        let driven = driven?;
        if matches!(driven, Driven::Morsel) {
            sink.end()?;
            self.record.morsels.done.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[pipeline];
        match driven {
            Driven::Morsel => {
                pipeline.free_lanes.push(lane);
                pipeline.free_sinks.push(sink);
            }
            Driven::Satisfied => {
                pipeline.satisfied = true;
                pipeline.free_sinks.push(sink);
            }
            Driven::Yielded => {
                let token = Token::new();
                token.set_ready();
                pipeline.parked.push((token, lane, sink));
            }
            Driven::Parked(token) => pipeline.parked.push((token, lane, sink)),
            Driven::SinkParked(token) => pipeline.park_for_sink(token, lane, sink),
        }
        pipeline.satisfied |= sink_run.satisfied();
        Ok(())
    }

    fn finish_job(&self, index: usize, done: Result<()>) {
        let mut state = lock(&self.state);
        state.jobs_running -= 1;
        state.pipelines[index].active -= 1;
        if let Err(error) = done {
            self.failed.store(true, Ordering::Relaxed);
            state.error.get_or_insert(error);
        }
        state.pipelines[index].drop_unwanted_input();
        let advance = state.error.is_none() && state.pipelines[index].phase_is_over();
        if advance {
            state.pipelines[index].phase = match state.pipelines[index].phase {
                Phase::Tasks => Phase::Done,
                _ => Phase::Advancing,
            };
            if state.pipelines[index].phase == Phase::Done {
                self.complete(&mut state, index);
            } else {
                state.jobs_running += 1;
                state.pipelines[index].active += 1;
                drop(state);
                let started = Instant::now();
                let done = self.guarded(|| self.advance(index));
                self.note(&done, index, Kind::Advance, started, None);
                return self.finish_job(index, done);
            }
        }
        if state.error.is_some() && state.jobs_running == 0 {
            self.clear(&mut state);
        }
        let finished = state.finished;
        drop(state);
        if finished {
            self.finished.notify_all();
        }
        self.notify();
    }

    fn notify(&self) {
        if let Some(signal) = self.signal.get() {
            signal.notify();
        }
    }

    /// Starts a pipeline: its sources, streams and sink begin a run.
    fn start(&self, index: usize) -> Result<()> {
        let pipeline = &self.plan.pipelines.pipelines[index];
        let mut streams: HashMap<NodeId, Arc<dyn StreamRun>> = HashMap::new();
        let mut chains = Vec::new();
        let (sink, collect): (Arc<dyn SinkRun>, _) = match pipeline.end {
            End::Sink(node) => match &self.plan.operators[node.index()] {
                Operator::Sink(sink) => (sink.start(&self.run(node), &self.sides(node)?)?, None),
                _ => return Err(wrong_kind(&self.plan, node)),
            },
            End::Collect(node) => match &self.results {
                Some(queue) if index + 1 == self.plan.pipelines.pipelines.len() => {
                    (Arc::new(ResultSink::new(self.context.clone(), queue.clone())), None)
                }
                _ => {
                    let collect = Arc::new(Collect::new(&self.run(node)));
                    (collect.clone(), Some(collect))
                }
            },
        };
        // Asked first: it decides in which order the sink wants its input.
        let early = sink.early_output(self.has_one_reader(index));
        for chain in &pipeline.chains {
            let (source, node) = match chain.start {
                Start::Node(node) => match &self.plan.operators[node.index()] {
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
                Start::Pipeline(other) => (self.output(other)?, None),
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

    /// The pipeline whose one chain reads the output of this one, if no other does.
    fn only_reader(&self, state: &State, index: usize) -> Option<usize> {
        let [reader] = state.pipelines[index].read_by[..] else { return None };
        let chains = &self.plan.pipelines.pipelines[reader].chains;
        let reading = chains.iter().filter(|chain| chain.start == Start::Pipeline(index)).count();
        (reading == 1).then_some(reader)
    }

    fn has_one_reader(&self, index: usize) -> bool {
        self.only_reader(&lock(&self.state), index).is_some()
    }

    /// The output of a pipeline can be read while it runs: its reader waits for it no longer.
    fn start_reader(&self, state: &mut State, index: usize) -> Result<()> {
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

    fn chain_run(
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

    fn level_nodes(
        &self,
        pipeline: usize,
        source: Option<NodeId>,
        streams: &[NodeId],
    ) -> Vec<Option<NodeId>> {
        let sink = match self.plan.pipelines.pipelines[pipeline].end {
            End::Sink(node) => Some(node),
            End::Collect(_) => None,
        };
        let streams = streams.iter().copied().map(Some);
        std::iter::once(source).chain(streams).chain(std::iter::once(sink)).collect()
    }

    /// The sink whose output a chain starts with: what its source does counts for that
    /// sub-operator.
    fn sink_behind(&self, start: Start) -> Option<NodeId> {
        match start {
            Start::Pipeline(other) => match self.plan.pipelines.pipelines[other].end {
                End::Sink(node) => Some(node),
                End::Collect(_) => None,
            },
            Start::Node(_) => None,
        }
    }

    /// Between two phases: what a stream has left over becomes another chain; after the last, the
    /// sink finishes.
    fn advance(&self, index: usize) -> Result<()> {
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

    fn finish_sink(&self, index: usize) -> Result<()> {
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

    fn complete(&self, state: &mut State, index: usize) {
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

    /// What a node's sub-operator gets when it starts.
    fn run(&self, node: NodeId) -> Run {
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

    fn sides(&self, node: NodeId) -> Result<Vec<Arc<Collected>>> {
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

    fn output(&self, pipeline: usize) -> Result<Arc<dyn SourceRun>> {
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[pipeline];
        let output =
            if pipeline.is_early { pipeline.output.take() } else { pipeline.output.clone() };
        output.ok_or_else(|| Error::internal("the output of a pipeline that is not complete"))
    }
}

/// The operator at a place where the pipeline cut promises another kind.
fn wrong_kind(plan: &CompiledPlan, id: NodeId) -> Error {
    let name = plan.name(id);
    Error::internal(format!("sub-operator {name} was lowered to another kind than its role says"))
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> Error {
    if let Some(ended) = panic.downcast_ref::<Error>() {
        return ended.clone();
    }
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string());
    Error::internal(format!("a sub-operator panicked: {text}; please report this query"))
}
