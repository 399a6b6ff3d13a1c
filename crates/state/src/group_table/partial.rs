//! Partial grouping: a stream that reduces the tuples that other workers will group.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::{ChunksReader, Cutter};
use tessera_operator::{Reader, SourceRun, Step, Stream, StreamRun, StreamWorker};
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column};

use super::cache_table::CacheTable;
use super::compiled::GroupFinder;
use super::grouping::{Grouping, Spec};
use crate::aggregate::Compiled;

/// Groups the tuples of a worker in a table that fits its cache, and emits the groups when it is
/// full, so that a key can occur again. Its memory is small for any number of keys, and its cost is
/// low when tuples rarely share keys.
#[derive(Debug)]
pub struct PartialGrouping {
    spec: Arc<Spec>,
}

impl PartialGrouping {
    /// Creates the partial grouping that precedes `grouping`.
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
    /// The tables of all workers.
    tables: Mutex<Vec<Arc<Mutex<WorkerTable>>>>,
}

/// A worker's table.
#[derive(Debug)]
struct WorkerTable {
    cache_table: CacheTable,
    reservation: Reservation,
}

impl WorkerTable {
    /// Returns all groups as one chunk, and clears the table.
    fn emit(&mut self, run: &Run) -> Result<Chunk> {
        let chunk = self.cache_table.table.store.finish()?;
        self.cache_table.restart()?;
        self.reservation.resize(self.cache_table.memory() + bytes(&chunk))?;
        run.counters.add("passed_on", chunk.rows() as u64);
        Ok(chunk)
    }
}

fn bytes(chunk: &Chunk) -> usize {
    chunk.stored().iter().map(Column::memory_bytes).sum()
}

impl StreamRun for PartialRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let cache_table =
            CacheTable::new(&self.spec, &self.run)?.compiled(&self.compiled, &self.finder);
        let reservation = Reservation::new(self.run.context.clone());
        let worker_table = Arc::new(Mutex::new(WorkerTable { cache_table, reservation }));
        lock(&self.tables).push(worker_table.clone());
        Ok(Box::new(PartialWorker { run: self.run.clone(), worker_table, out: Cutter::default() }))
    }

    /// Returns the groups that remain in the tables.
    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let mut tables = std::mem::take(&mut *lock(&self.tables));
        tables.retain(|worker_table| lock(worker_table).cache_table.table.store.groups() > 0);
        let rest = Rest { run: self.run.clone(), tables };
        Ok((!rest.tables.is_empty()).then(|| Arc::new(rest) as Arc<dyn SourceRun>))
    }
}

/// The groups that workers hold at the end, one morsel per table.
#[derive(Debug)]
struct Rest {
    run: Run,
    tables: Vec<Arc<Mutex<WorkerTable>>>,
}

impl SourceRun for Rest {
    fn morsels(&self) -> usize {
        self.tables.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let worker_table = self
            .tables
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let chunk = lock(worker_table).emit(&self.run)?;
        Ok(Box::new(ChunksReader::new(vec![chunk], self.run.context.chunk_rows())))
    }
}

struct PartialWorker {
    run: Run,
    worker_table: Arc<Mutex<WorkerTable>>,
    out: Cutter,
}

impl StreamWorker for PartialWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let mut worker_table = lock(&self.worker_table);
        worker_table.cache_table.take(&chunk)?;
        if worker_table.cache_table.is_full() {
            self.out.put(worker_table.emit(&self.run)?);
            return Ok(());
        }
        let bytes = worker_table.cache_table.memory();
        if bytes != worker_table.reservation.bytes() {
            worker_table.reservation.resize(bytes)
        } else {
            Ok(())
        }
    }

    fn step(&mut self) -> Result<Step> {
        let piece = self.out.pop(self.run.context.chunk_rows());
        Ok(piece.map_or(Step::NeedInput, Step::HasOutput))
    }
}
