//! The output of a grouping: each partition is merged when it is read.

use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Error, Result};
use tessera_vector::Column;

use super::grouping::Spec;
use super::spilled::{Part, SpilledGroups, SpilledReader};
use super::store::Store;
use super::table::{Hits, Table};

/// Rows of a partition that are merged at a time.
const MERGE_ROWS: usize = 2_048;

/// Merges all groups of a store into a table.
pub(super) fn merge_into(spec: &Spec, table: &mut Table, other: &mut Store) -> Result<()> {
    other.seal()?;
    let flat = spec.program.is_flat();
    let mut hits = Hits::default();
    let rows = other.groups();
    for from in (0..rows).step_by(MERGE_ROWS) {
        let to = (from + MERGE_ROWS).min(rows);
        hits.into.clear();
        hits.rows.clear();
        if flat {
            table.absorb(other, from, to, &mut hits)?;
        } else {
            table.assign(other, from, to, &mut hits.into)?;
            hits.rows.extend(from as u32..to as u32);
        }
        table.store.merge_states(&hits.into, other, &hits.rows)?;
    }
    Ok(())
}

/// The output: one morsel per partition, merged when it is opened.
#[derive(Debug)]
pub(super) struct Partitions {
    pub(super) spec: Arc<Spec>,
    pub(super) run: Run,
    pub(super) parts: Vec<Mutex<Vec<Store>>>,
    /// The workers' reservations for the parts.
    pub(super) reservation: Mutex<Vec<Reservation>>,
    /// The spilled partitions.
    pub(super) spilled: Arc<SpilledGroups>,
    /// The parts in reading order.
    pub(super) order: OnceLock<Vec<usize>>,
}

impl Partitions {
    /// Returns the part to read as this morsel: parts in memory come first, to free memory for the
    /// others.
    fn part(&self, morsel: usize) -> Result<usize> {
        let by_place = || {
            let mut order: Vec<usize> = (0..self.parts.len()).collect();
            order.sort_by_key(|part| self.spilled.has(*part));
            self.spilled.reserve_merge_memory();
            order
        };
        let part = self.order.get_or_init(by_place).get(morsel);
        part.copied().ok_or_else(|| Error::internal("a morsel that does not exist"))
    }

    /// Releases the reservations of parts that have been read.
    fn release(&self, mut bytes: usize) -> Result<()> {
        let mut held = lock(&self.reservation);
        for reservation in held.iter_mut() {
            let part = reservation.bytes().min(bytes);
            reservation.resize(reservation.bytes() - part)?;
            bytes -= part;
        }
        Ok(())
    }
}

impl SourceRun for Partitions {
    fn morsels(&self) -> usize {
        self.parts.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let part = self.part(morsel)?;
        let mut stores = std::mem::take(&mut *lock(&self.parts[part]));
        let mut reservation = Reservation::new(self.run.context.clone());
        let held: usize = stores.iter().map(Store::memory).sum();
        let (blocks, raw) = self.spilled.take(part)?;
        if !blocks.is_empty() || !raw.is_empty() {
            self.release(held)?;
            let part = Part { stores, blocks, raw, depth: 0 };
            let (spec, spilled) = (self.spec.clone(), self.spilled.clone());
            return Ok(Box::new(SpilledReader::new(spec, spilled, part)?));
        }
        let chunk = match (stores.len(), self.parts.len()) {
            (0, _) => None,
            // A single run that was never flushed has distinct keys.
            (1, 1) => stores.pop().map(|mut store| store.finish()).transpose()?,
            _ => {
                let groups = stores.iter().map(Store::groups).sum();
                let mut table =
                    Table::new(self.spec.layout.clone(), self.spec.program.clone(), groups)?;
                for mut store in stores {
                    self.run.context.check()?;
                    reservation.resize(table.memory())?;
                    merge_into(&self.spec, &mut table, &mut store)?;
                }
                reservation.resize(table.memory())?;
                Some(table.store.finish()?)
            }
        };
        if let Some(chunk) = &chunk {
            reservation.resize(chunk.stored().iter().map(Column::memory_bytes).sum())?;
        }
        self.release(held)?;
        let chunks = ChunksReader::new(chunk.into_iter().collect(), self.run.context.chunk_rows());
        Ok(Box::new(PartitionReader { chunks, _reservation: reservation }))
    }
}

struct PartitionReader {
    chunks: ChunksReader,
    _reservation: Reservation,
}

impl Reader for PartitionReader {
    fn step(&mut self) -> Result<Step> {
        self.chunks.step()
    }
}
