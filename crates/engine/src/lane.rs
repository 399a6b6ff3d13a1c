//! A lane: one instance of a chain of sub-operators, driven over one morsel at a time.

use std::sync::Arc;
use std::time::Instant;

use tessera_context::{Context, Token};
use tessera_operator::{Reader, SinkRun, SinkWorker, Step, StreamWorker};
use tessera_plan::NodeId;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::profile::{LocalFigures, NodeFigures};

/// A chain of sub-operators with the state of one worker, and its current morsel.
pub(crate) struct Lane {
    pub(crate) chain: usize,
    reader: Option<Box<dyn Reader>>,
    streams: Vec<Box<dyn StreamWorker>>,
    /// The level to call next: level 0 is the reader, level i + 1 is stream i.
    level: usize,
    /// Set when the reader is done: streams `0..ended` know that the morsel ends.
    ended: Option<usize>,
    /// Figures by level. The last entry belongs to the sink.
    figures: Vec<LocalFigures>,
    /// End of the last call while the lane runs. The next call begins then.
    at: Instant,
    /// The longest call since the morsel began: level and nanoseconds.
    pub(crate) longest: (usize, u64),
}

/// The outcome of running a lane.
pub(crate) enum LaneOutcome {
    /// The morsel is complete.
    Morsel,
    /// The sink needs no more input from this pipeline.
    Satisfied,
    /// The lane could continue, but other runs wait for a worker.
    Yielded,
    /// The lane waits for the token.
    Parked(Token),
    /// The sink waits for the token.
    SinkParked(Token),
}

/// What a running lane needs from its pipeline.
pub(crate) struct LaneContext<'a> {
    pub(crate) context: &'a Arc<dyn Context>,
    pub(crate) sink: &'a dyn SinkRun,
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// Whether the lane must give up its worker now.
    pub(crate) yields: &'a dyn Fn() -> bool,
}

impl Lane {
    pub(crate) fn new(chain: usize, streams: Vec<Box<dyn StreamWorker>>) -> Self {
        let figures = vec![LocalFigures::default(); streams.len() + 2];
        Lane {
            chain,
            reader: None,
            streams,
            level: 0,
            ended: None,
            figures,
            at: Instant::now(),
            longest: (0, 0),
        }
    }

    pub(crate) fn begin(&mut self, reader: Box<dyn Reader>, position: u64) {
        self.reader = Some(reader);
        self.streams.iter_mut().for_each(|stream| stream.begin(position));
        self.level = 0;
        self.ended = None;
        self.longest = (0, 0);
    }

    /// Runs until the morsel is complete or something waits.
    pub(crate) fn drive(
        &mut self,
        sink: &mut dyn SinkWorker,
        around: &LaneContext<'_>,
    ) -> Result<LaneOutcome> {
        self.at = Instant::now();
        loop {
            around.context.check()?;
            if (around.stopped)() {
                return Ok(LaneOutcome::Satisfied);
            }
            if (around.yields)() {
                return Ok(LaneOutcome::Yielded);
            }
            match self.ask()? {
                Step::HasOutput(chunk) => {
                    let figures = &mut self.figures[self.level];
                    figures.rows += chunk.rows() as u64;
                    figures.bytes += chunk.value_bytes() as u64;
                    if !chunk.is_empty()
                        && let Some(stopped) = self.deliver(chunk, sink, around)?
                    {
                        return Ok(stopped);
                    }
                }
                Step::Again => {}
                Step::Blocked(token) => return Ok(LaneOutcome::Parked(token)),
                Step::NeedInput if self.level > 0 && self.ended != Some(self.level) => {
                    self.level -= 1
                }
                Step::NeedInput if self.level == 0 => {
                    return Err(Error::internal("a source asked for input"));
                }
                // The morsel ends at this level. Only later levels can produce output now.
                Step::NeedInput | Step::Done => {
                    let ended = self.level;
                    if ended == self.streams.len() {
                        self.reader = None;
                        return Ok(LaneOutcome::Morsel);
                    }
                    self.streams[ended].end()?;
                    self.level = ended + 1;
                    self.ended = Some(self.level);
                }
            }
        }
    }

    fn ask(&mut self) -> Result<Step> {
        let step = match (self.level, &mut self.reader) {
            (0, Some(reader)) => reader.step(),
            (0, None) => Err(Error::internal("a lane without a morsel was driven")),
            (level, _) => self.streams[level - 1].step(),
        };
        self.took(self.level);
        step
    }

    /// Records the duration of a call that ends now.
    fn took(&mut self, level: usize) {
        let now = Instant::now();
        let nanoseconds = now.duration_since(self.at).as_nanos() as u64;
        self.at = now;
        self.figures[level].nanoseconds += nanoseconds;
        if nanoseconds > self.longest.1 {
            self.longest = (level, nanoseconds);
        }
    }

    /// Passes a chunk to the next level. Returns how the lane stops if the sink takes no more
    /// input, or none now.
    fn deliver(
        &mut self,
        chunk: Chunk,
        sink: &mut dyn SinkWorker,
        around: &LaneContext<'_>,
    ) -> Result<Option<LaneOutcome>> {
        match self.streams.get_mut(self.level) {
            Some(stream) => {
                stream.push(chunk)?;
                self.level += 1;
                self.took(self.level);
                Ok(None)
            }
            None => {
                sink.push(chunk)?;
                self.took(self.level + 1);
                if around.sink.satisfied() {
                    return Ok(Some(LaneOutcome::Satisfied));
                }
                Ok(sink.blocked().filter(|token| !token.is_ready()).map(LaneOutcome::SinkParked))
            }
        }
    }

    /// Adds the figures of the morsel to the figures of the nodes (`nodes[0]` is the source).
    pub(crate) fn report(&mut self, nodes: &[Option<NodeId>], figures: &[NodeFigures]) {
        for (local, node) in self.figures.iter_mut().zip(nodes) {
            let local = std::mem::take(local);
            if let Some(node) = node {
                figures[node.index()].add(local);
            }
        }
    }
}
