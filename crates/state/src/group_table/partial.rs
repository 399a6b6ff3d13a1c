//! Groups of a part of the tuples, passed on: the stream that reduces what other workers will
//! group.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::{ChunksReader, Cutter};
use tessera_operator::{Reader, SourceRun, Step, Stream, StreamRun, StreamWorker};
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column};

use super::compiled::GroupFinder;
use super::filling::Filling;
use super::grouping::{Grouping, Spec};
use crate::aggregate::Compiled;

/// Groups what a worker sees in a table that fits its cache, and passes the groups on when it is
/// full; a key can come again. So it holds little however many keys there are, and costs little
/// where tuples have few in common.
#[derive(Debug)]
pub struct PartialGrouping {
    spec: Arc<Spec>,
}

impl PartialGrouping {
    /// Groups so before `grouping` does.
    pub fn new(grouping: Grouping) -> PartialGrouping {
        PartialGrouping { spec: grouping.inner }
    }
}

impl Stream for PartialGrouping {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let (spec, compiled, finder) =
            (self.spec.clone(), self.spec.compiled(run), self.spec.finder(run));
        Ok(Arc::new(PartialRun {
            spec,
            compiled,
            finder,
            run: run.clone(),
            tables: Mutex::default(),
        }))
    }
}

#[derive(Debug)]
struct PartialRun {
    spec: Arc<Spec>,
    compiled: Option<Arc<Compiled>>,
    finder: Option<Arc<GroupFinder>>,
    run: Run,
    /// Of all workers.
    tables: Mutex<Vec<Arc<Mutex<Held>>>>,
}

/// A worker's table.
#[derive(Debug)]
struct Held {
    filling: Filling,
    reservation: Reservation,
}

impl Held {
    /// All groups as one chunk; the table starts afresh.
    fn pass_on(&mut self, run: &Run) -> Result<Chunk> {
        let chunk = self.filling.table.store.finish()?;
        self.filling.restart()?;
        self.reservation.resize(self.filling.memory() + bytes(&chunk))?;
        run.counters.add("passed_on", chunk.rows() as u64);
        Ok(chunk)
    }
}

fn bytes(chunk: &Chunk) -> usize {
    chunk.stored().iter().map(Column::memory_bytes).sum()
}

impl StreamRun for PartialRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let filling = Filling::new(&self.spec, &self.run)?.compiled(&self.compiled, &self.finder);
        let reservation = Reservation::new(self.run.context.clone());
        let held = Arc::new(Mutex::new(Held { filling, reservation }));
        lock(&self.tables).push(held.clone());
        Ok(Box::new(PartialWorker { run: self.run.clone(), held, out: Cutter::default() }))
    }

    /// What is in the tables.
    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let mut tables = std::mem::take(&mut *lock(&self.tables));
        tables.retain(|held| lock(held).filling.table.store.groups() > 0);
        let rest = Rest { run: self.run.clone(), tables };
        Ok((!rest.tables.is_empty()).then(|| Arc::new(rest) as Arc<dyn SourceRun>))
    }
}

/// What workers hold in the end, a table a morsel.
#[derive(Debug)]
struct Rest {
    run: Run,
    tables: Vec<Arc<Mutex<Held>>>,
}

impl SourceRun for Rest {
    fn morsels(&self) -> usize {
        self.tables.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let held = self
            .tables
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let chunk = lock(held).pass_on(&self.run)?;
        Ok(Box::new(ChunksReader::new(vec![chunk], self.run.context.chunk_rows())))
    }
}

struct PartialWorker {
    run: Run,
    held: Arc<Mutex<Held>>,
    out: Cutter,
}

impl StreamWorker for PartialWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let mut held = lock(&self.held);
        held.filling.take(&chunk)?;
        if held.filling.is_full() {
            self.out.put(held.pass_on(&self.run)?);
            return Ok(());
        }
        let bytes = held.filling.memory();
        if bytes != held.reservation.bytes() { held.reservation.resize(bytes) } else { Ok(()) }
    }

    fn step(&mut self) -> Result<Step> {
        let piece = self.out.pop(self.run.context.chunk_rows());
        Ok(piece.map_or(Step::NeedInput, Step::HasOutput))
    }
}
