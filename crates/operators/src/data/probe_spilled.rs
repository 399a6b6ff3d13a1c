//! Joins spilled partitions: each is built and probed by itself, by the next bits of the hash.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Reader, SourceRun, Step, StreamRun, StreamWorker};
use tessera_rows::spill::{DEPTH_MAX, SpillFile, TupleBlock, read_tuples};
use tessera_state::join::{
    BuildBuffers, JoinTable, PendingTable, SpilledBuild, SpilledStream, TableBuild,
};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use super::probe::{BuildTuples, ProbeRun, ProbeSpec};
use super::probe_rounds::{Rounds, Stream};

/// The rest of a probe: the output of its own rest, then a morsel for each spilled partition.
#[derive(Debug)]
pub(super) struct SpilledJoin {
    rest: Option<Arc<dyn SourceRun>>,
    spec: Arc<ProbeSpec>,
    spilled_stream: Arc<SpilledStream>,
    all: BuildTuples,
    run: Run,
    /// Build tuples that are in memory.
    resident_rows: usize,
    partitions: Vec<usize>,
}

impl SpilledJoin {
    pub(super) fn source(
        rest: Option<Arc<dyn SourceRun>>,
        spec: &Arc<ProbeSpec>,
        spilled_stream: &Arc<SpilledStream>,
        (all, resident_rows): (BuildTuples, usize),
        run: &Run,
    ) -> Arc<dyn SourceRun> {
        let (spec, spilled_stream, run) = (spec.clone(), spilled_stream.clone(), run.clone());
        let partitions = spilled_stream.partitions().collect();
        Arc::new(SpilledJoin { rest, spec, spilled_stream, all, run, resident_rows, partitions })
    }

    /// Opens a reader that joins a partition.
    fn reader(&self, partition: usize) -> Result<Box<dyn Reader>> {
        let parent = self.spilled_stream.build();
        let spilled = parent
            .spilled
            .as_ref()
            .ok_or_else(|| Error::internal("a build without spilled partitions"))?;
        let (blocks, stream_blocks) =
            (spilled.blocks(partition)?, self.spilled_stream.blocks(partition)?);
        let rows: usize = blocks.iter().map(|block| block.rows).sum();
        // A partition that hardly shrank when it was subdivided has few distinct keys: subdividing
        // it again would not help.
        let is_stuck =
            parent.depth > 0 && rows * 4 >= 3 * (self.resident_rows + spilled.rows() as usize);
        if is_stuck || parent.depth == DEPTH_MAX {
            let parts = (&self.spec, &self.spilled_stream, self.all, &self.run);
            return Ok(Box::new(Rounds::new(parts, parent.clone(), blocks, stream_blocks)?));
        }
        let build = Arc::new(TableBuild {
            depth: parent.depth + 1,
            spilled: Some(SpilledBuild::new(&self.run, &parent.layout, &parent.keys)),
            ..parent.in_memory()
        });
        let table = table_of(&build, spilled.file(), blocks)?;
        let run = ProbeRun::new(&self.spec, table, &self.run, Some(self.all))?;
        Ok(Box::new(PartitionReader::new(
            run,
            &self.spilled_stream,
            stream_blocks,
            Stream::Plain,
            &self.run,
        )?))
    }
}

/// Builds the table of these tuples; spills those that exceed the budget.
pub(super) fn table_of(
    build: &Arc<TableBuild>,
    file: &SpillFile,
    blocks: Vec<TupleBlock>,
) -> Result<Arc<JoinTable>> {
    let mut buffers = BuildBuffers::new(build.clone());
    for block in blocks {
        buffers.push(read_tuples(file, &block)?)?;
    }
    let (pending, tasks) = PendingTable::new(build.clone(), vec![buffers])?;
    tasks.into_iter().try_for_each(|task| task())?;
    pending.finish()
}

impl SourceRun for SpilledJoin {
    fn morsels(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.morsels()) + self.partitions.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let before = self.rest.as_ref().map_or(0, |rest| rest.morsels());
        if let Some(rest) = self.rest.as_ref().filter(|_| morsel < before) {
            return rest.open(morsel);
        }
        let partition = self.partitions.get(morsel - before);
        self.reader(*partition.ok_or_else(|| Error::internal("a morsel that does not exist"))?)
    }
}

/// Joins the tuples of one partition.
pub(super) struct PartitionReader {
    worker: Box<dyn StreamWorker>,
    spilled_stream: Arc<SpilledStream>,
    blocks: std::vec::IntoIter<TupleBlock>,
    stream: Stream,
    /// The number of tuples read so far.
    taken: usize,
    chunks: ChunksReader,
    chunk_rows: usize,
    stage: Stage,
}

enum Stage {
    /// Reads stream tuples.
    Probe(ProbeRun),
    /// Drains the worker after the last stream tuple.
    Ended(ProbeRun),
    /// Reads the morsels of the probe's own rest, from this number on.
    Rest(Arc<dyn SourceRun>, usize, Option<Box<dyn Reader>>),
    Done,
}

impl PartitionReader {
    pub(super) fn new(
        probe: ProbeRun,
        spilled_stream: &Arc<SpilledStream>,
        blocks: Vec<TupleBlock>,
        stream: Stream,
        run: &Run,
    ) -> Result<PartitionReader> {
        let chunk_rows = run.context.chunk_rows();
        Ok(PartitionReader {
            worker: probe.worker()?,
            spilled_stream: spilled_stream.clone(),
            blocks: blocks.into_iter(),
            stream,
            taken: 0,
            chunks: ChunksReader::new(Vec::new(), chunk_rows),
            chunk_rows,
            stage: Stage::Probe(probe),
        })
    }

    /// Reads the next stream tuples.
    fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Step::HasOutput(chunk) = self.chunks.step()? {
                return Ok(Some(chunk));
            }
            let Some(block) = self.blocks.next() else { return Ok(None) };
            let chunk =
                self.stream.take(read_tuples(self.spilled_stream.file(), &block)?, self.taken);
            self.taken += block.rows;
            self.chunks = ChunksReader::new(vec![chunk], self.chunk_rows);
        }
    }
}

impl Reader for PartitionReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Probe(run) => {
                    let step = self.worker.step()?;
                    let Step::NeedInput = step else {
                        self.stage = Stage::Probe(run);
                        return Ok(step);
                    };
                    self.stage = match self.next()? {
                        Some(chunk) => {
                            self.worker.push(chunk)?;
                            Stage::Probe(run)
                        }
                        None => {
                            self.worker.end()?;
                            Stage::Ended(run)
                        }
                    };
                }
                Stage::Ended(run) => {
                    let step = self.worker.step()?;
                    let Step::NeedInput = step else {
                        self.stage = Stage::Ended(run);
                        return Ok(step);
                    };
                    self.stage = run.rest()?.map_or(Stage::Done, |rest| Stage::Rest(rest, 0, None));
                }
                Stage::Rest(rest, next, Some(mut reader)) => {
                    let step = reader.step()?;
                    let over = matches!(step, Step::Done);
                    self.stage = Stage::Rest(rest, next, (!over).then_some(reader));
                    if !over {
                        return Ok(step);
                    }
                }
                Stage::Rest(rest, next, None) if next < rest.morsels() => {
                    let reader = rest.open(next)?;
                    self.stage = Stage::Rest(rest, next + 1, Some(reader));
                }
                Stage::Rest(..) | Stage::Done => return Ok(Step::Done),
            }
        }
    }
}
