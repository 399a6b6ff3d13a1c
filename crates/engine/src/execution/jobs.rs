//! The jobs of a run: morsels, finishing tasks, and what a finished job changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tessera_context::{Token, lock};
use tessera_operator::{SinkRun, SinkWorker, stream_workers};
use tessera_plan::NodeId;
use tessera_types::{Error, Result};

use crate::lane::{Lane, LaneContext, LaneOutcome};
use crate::last_job::Kind;
use crate::pipeline::{ChainRun, Job, Phase};

use super::{Execution, SLICE};

impl Execution {
    pub(super) fn do_job(&self, job: Job, longest: &mut Option<(NodeId, Duration)>) -> Result<()> {
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
                let reader = match chain_run.streams.is_empty() && sink_run.accepts_long_chunks() {
                    true => chain_run.source.open_long(morsel)?,
                    false => chain_run.source.open(morsel)?,
                };
                let position = chain_run.positions.start + morsel as u64;
                lane.begin(reader, position);
                sink.begin(position)?;
                self.drive(pipeline, lane, sink, longest)
            }
            Job::Resume { pipeline, lane, sink } => self.drive(pipeline, lane, sink, longest),
        }
    }

    pub(super) fn chain(
        &self,
        pipeline: usize,
        chain: usize,
    ) -> Result<(Arc<ChainRun>, Arc<dyn SinkRun>)> {
        let state = lock(&self.state);
        let pipeline = &state.pipelines[pipeline];
        match (pipeline.chains.get(chain), &pipeline.sink) {
            (Some(chain), Some(sink)) => Ok((chain.clone(), sink.clone())),
            _ => Err(Error::internal("a morsel of a pipeline that was not started")),
        }
    }

    pub(super) fn drive(
        &self,
        pipeline: usize,
        mut lane: Lane,
        mut sink: Box<dyn SinkWorker>,
        longest: &mut Option<(NodeId, Duration)>,
    ) -> Result<()> {
        let (chain_run, sink_run) = self.chain(pipeline, lane.chain)?;
        // The sink may have become full while the lane waited for its source.
        if let Some(token) = sink.blocked().filter(|token| !token.is_ready()) {
            lock(&self.state).pipelines[pipeline].park_for_sink(token, lane, sink);
            return Ok(());
        }
        let stopped = || self.failed.load(Ordering::Relaxed);
        let (signal, started) = (self.signal.get(), Instant::now());
        let yields = || signal.is_some_and(|signal| signal.crowded()) && started.elapsed() >= SLICE;
        let around = LaneContext {
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
        if matches!(driven, LaneOutcome::Morsel) {
            sink.end()?;
            self.record.morsels.done.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = lock(&self.state);
        let pipeline = &mut state.pipelines[pipeline];
        match driven {
            LaneOutcome::Morsel => {
                pipeline.free_lanes.push(lane);
                pipeline.free_sinks.push(sink);
            }
            LaneOutcome::Satisfied => {
                pipeline.satisfied = true;
                pipeline.free_sinks.push(sink);
            }
            LaneOutcome::Yielded => {
                let token = Token::new();
                token.set_ready();
                pipeline.parked.push((token, lane, sink));
            }
            LaneOutcome::Parked(token) => pipeline.parked.push((token, lane, sink)),
            LaneOutcome::SinkParked(token) => pipeline.park_for_sink(token, lane, sink),
        }
        pipeline.satisfied |= sink_run.satisfied();
        Ok(())
    }

    pub(super) fn finish_job(&self, index: usize, done: Result<()>) {
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

    pub(super) fn notify(&self) {
        if let Some(signal) = self.signal.get() {
            signal.notify();
        }
    }
}
