//! All sorted tuples, cut into parts that are merged one at a time.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tessera_types::Result;

use super::partition::PartitionKeys;
use super::runs::{Border, Entry, SortedRuns};

/// Output chunks in a morsel.
const MORSEL_CHUNKS: usize = 16;
/// Chunks in a part: usually its entries fit into the cache of a core.
const PART_CHUNKS: usize = 4;
/// The fewest tuples of each run in a part, on average.
const PIECE_ROWS_MIN: usize = 64;
/// Tuples sampled for each part: enough that parts have about the same length.
const SAMPLES_PER_PART: usize = 16;
/// With fewer morsels for each worker than this, parts are merged before they are read.
const MORSELS_PER_WORKER_MIN: usize = 2;

/// The tuples of some runs in parts of about the same length, and the parts of each morsel. A part
/// is merged when it is read: its tuples are gathered while their keys are in the cache, and no
/// list of all tuples is ever made.
#[derive(Debug)]
pub(in crate::data) struct Parts<const W: usize> {
    pub(in crate::data) runs: SortedRuns<W>,
    /// Where each part begins, except the first.
    borders: Vec<Border<W>>,
    /// The parts of each morsel.
    morsels: Vec<Range<usize>>,
    /// Parts that were merged before they are read.
    merged: Vec<OnceLock<Arc<Vec<Entry<W>>>>>,
}

impl<const W: usize> Parts<W> {
    /// Cuts the tuples of runs. Morsels do not share partitions.
    pub(in crate::data) fn new(
        runs: SortedRuns<W>,
        partition: Option<&PartitionKeys>,
    ) -> Result<Parts<W>> {
        let (rows, chunk_rows) = (runs.rows(), runs.context.chunk_rows());
        let part_rows = (PART_CHUNKS * chunk_rows).max(PIECE_ROWS_MIN * runs.len());
        let samples = &runs.samples(rows.div_ceil(part_rows) * SAMPLES_PER_PART);
        // Samples that cut all tuples into stretches of about so many.
        let cuts = |rows_of_one: usize| {
            let count = rows.div_ceil(rows_of_one);
            (1..count).filter_map(move |cut| samples.get(cut * samples.len() / count))
        };
        let mut borders: Vec<Border<W>> = cuts(part_rows).map(|entry| runs.border(entry)).collect();
        borders.dedup_by(|a, b| a.compare(b).is_eq());
        let morsel_rows = MORSEL_CHUNKS * chunk_rows;
        let starts: Vec<usize> = match partition {
            None => {
                let parts = (morsel_rows / part_rows).max(1);
                (parts..borders.len() + 1).step_by(parts).collect()
            }
            Some(keys) => {
                let mut starts = Vec::new();
                for entry in cuts(morsel_rows) {
                    starts.extend(runs.partition_border(entry, keys)?);
                }
                insert(&mut borders, starts)
            }
        };
        let ends = starts.iter().copied().chain([borders.len() + 1]);
        let begins = std::iter::once(0).chain(starts.iter().copied());
        let morsels = begins.zip(ends).map(|(begin, end)| begin..end).collect();
        let merged = (0..=borders.len()).map(|_| OnceLock::new()).collect();
        Ok(Parts { runs, borders, morsels, merged })
    }

    /// The number of parts.
    pub(in crate::data) fn len(&self) -> usize {
        self.borders.len() + 1
    }

    /// The parts of each morsel.
    pub(super) fn morsels(&self) -> &[Range<usize>] {
        &self.morsels
    }

    /// Returns whether too few workers would merge if each merged what it reads.
    pub(super) fn merges_ahead(&self) -> bool {
        let workers = self.runs.context.workers();
        workers > 1 && self.len() > 1 && self.morsels.len() < MORSELS_PER_WORKER_MIN * workers
    }

    /// Merges a part before it is read.
    pub(super) fn merge_ahead(&self, part: usize) -> Result<()> {
        let _ = self.merged[part].set(self.merge(part)?);
        Ok(())
    }

    /// Returns the tuples of a part in order.
    pub(in crate::data) fn entries(&self, part: usize) -> Result<Arc<Vec<Entry<W>>>> {
        match self.merged[part].get() {
            Some(entries) => Ok(entries.clone()),
            None => self.merge(part),
        }
    }

    fn merge(&self, part: usize) -> Result<Arc<Vec<Entry<W>>>> {
        let from = part.checked_sub(1).map(|before| &self.borders[before]);
        self.runs.merge(from, self.borders.get(part)).map(Arc::new)
    }
}

/// Inserts more borders into sorted ones, and returns their places, counted from 1.
fn insert<const W: usize>(borders: &mut Vec<Border<W>>, more: Vec<Border<W>>) -> Vec<usize> {
    let old = std::mem::take(borders).into_iter().map(|border| (border, false));
    let mut all: Vec<_> = old.chain(more.into_iter().map(|border| (border, true))).collect();
    all.sort_by(|(a, _), (b, _)| a.compare(b));
    all.dedup_by(|(a, a_starts), (b, b_starts)| {
        let is_same = a.compare(b).is_eq();
        *b_starts |= is_same && *a_starts;
        is_same
    });
    let starts = (1..).zip(&all).filter(|(_, (_, starts))| *starts).map(|(place, _)| place);
    let starts = starts.collect();
    borders.extend(all.into_iter().map(|(border, _)| border));
    starts
}
