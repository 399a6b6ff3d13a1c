//! Sorted runs in memory, and their merge.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::row::Rows;

use tessera_context::{Context, Reservation};
use tessera_state::loser_tree::LoserTree;
use tessera_types::Result;
use tessera_vector::{Chunk, Column, interleave_columns};

use super::TASK_ROWS_MIN;
use crate::data::sort_keys::KeyEncoder;

/// Approximate bytes of an output chunk.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Keys sampled for each border between tasks: enough that tasks get about equal shares.
const SAMPLES_PER_BORDER: usize = 64;
/// Bytes of a key that are compared without reading the key itself.
pub(super) const PREFIX_BYTES: usize = 16;

/// A tuple: the prefix of its key, and its location.
#[derive(Debug, Clone, Copy)]
pub(in crate::data) struct Entry {
    pub(super) prefix: [u64; 2],
    pub(super) run: u32,
    pub(super) row: u32,
}

/// The tuples of a morsel, and their sorted order.
#[derive(Debug)]
pub(super) struct SortedRun {
    pub(super) position: u64,
    /// The number of the run among those of its morsel.
    pub(super) sequence: u32,
    pub(super) tuples: Chunk,
    /// The keys; `None` if prefixes hold the whole key.
    pub(super) keys: Option<Rows>,
    pub(super) entries: Vec<Entry>,
    pub(super) memory: Reservation,
}

/// The first bytes of a key as numbers with the same order; zero-padded.
pub(super) fn prefix(key: &[u8]) -> [u64; 2] {
    let mut bytes = [0; PREFIX_BYTES];
    let len = key.len().min(PREFIX_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    let number = u128::from_be_bytes(bytes);
    [(number >> 64) as u64, number as u64]
}

/// The rest of a run in a merge.
struct Cursor<'a> {
    run: u32,
    entries: &'a [Entry],
}

impl Cursor<'_> {
    fn peek(&self) -> Option<Entry> {
        self.entries.first().map(|entry| Entry { run: self.run, ..*entry })
    }

    fn take(&mut self) -> Option<Entry> {
        let (first, rest) = self.entries.split_first()?;
        self.entries = rest;
        Some(Entry { run: self.run, ..*first })
    }
}

/// All runs, in the order of the source.
#[derive(Debug)]
pub(in crate::data) struct SortedRuns {
    runs: Vec<SortedRun>,
    encoder: Arc<KeyEncoder>,
    pub(super) context: Arc<dyn Context>,
}

impl SortedRuns {
    pub(super) fn new(
        mut runs: Vec<SortedRun>,
        encoder: &Arc<KeyEncoder>,
        context: &Arc<dyn Context>,
    ) -> SortedRuns {
        runs.sort_by_key(|run| (run.position, run.sequence));
        SortedRuns { runs, encoder: encoder.clone(), context: context.clone() }
    }

    /// The number of tuples.
    pub(in crate::data) fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.entries.len()).sum()
    }

    /// Tuples in an output chunk: fewer if they are long.
    pub(super) fn chunk_rows(&self) -> usize {
        let tuple_bytes = (self.bytes() / self.rows().max(1)).max(1);
        self.context.chunk_rows().min((OUTPUT_BYTES_MAX / tuple_bytes).max(1))
    }

    /// Bytes held.
    pub(in crate::data) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.memory.bytes()).sum()
    }

    /// The key of a tuple followed by its place in the source: orders all tuples of all runs.
    pub(in crate::data) fn whole_key(&self, entry: &Entry) -> Vec<u8> {
        let run = &self.runs[entry.run as usize];
        let prefix =
            (u128::from(entry.prefix[0]) << 64 | u128::from(entry.prefix[1])).to_be_bytes();
        let mut bytes = match &run.keys {
            Some(keys) => keys.row(entry.row as usize).data().to_vec(),
            None => prefix[..self.encoder.fixed_bytes().unwrap_or(0).min(PREFIX_BYTES)].to_vec(),
        };
        bytes.extend(run.position.to_be_bytes());
        bytes.extend(run.sequence.to_be_bytes());
        bytes.extend(entry.row.to_be_bytes());
        bytes
    }

    /// Returns whether the key of a tuple begins with these bytes.
    pub(super) fn begins_with(&self, entry: &Entry, bytes: &[u8]) -> bool {
        match &self.runs[entry.run as usize].keys {
            Some(keys) => keys.row(entry.row as usize).data().starts_with(bytes),
            None => {
                let prefix = u128::from(entry.prefix[0]) << 64 | u128::from(entry.prefix[1]);
                prefix.to_be_bytes().starts_with(bytes)
            }
        }
    }

    /// Compares two tuples of any runs by their keys, then by run and position.
    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        a.prefix.cmp(&b.prefix).then_with(|| {
            let key = |entry: &Entry| {
                let keys = self.runs[entry.run as usize].keys.as_ref();
                keys.map(|keys| keys.row(entry.row as usize))
            };
            key(a).cmp(&key(b))
        })
    }

    /// The entries of a run.
    pub(super) fn of_run(
        &self,
        run: usize,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Entry> + '_ {
        self.runs[run].entries[range].iter().map(move |entry| Entry { run: run as u32, ..*entry })
    }

    /// Returns keys that split all tuples into about equal parts.
    pub(super) fn borders(&self, parts: usize) -> Arc<[Entry]> {
        let step = (self.rows() / (parts * SAMPLES_PER_BORDER)).max(1);
        let mut samples: Vec<Entry> = if parts > 1 {
            let run = |run: usize| self.of_run(run, 0..self.runs[run].entries.len()).step_by(step);
            (0..self.runs.len()).flat_map(run).collect()
        } else {
            Vec::new()
        };
        samples.sort_by(|a, b| self.compare(a, b));
        (1..parts).filter_map(|part| samples.get(part * samples.len() / parts).copied()).collect()
    }

    /// Merges the tuples from one border up to, not including, the next.
    pub(in crate::data) fn merge(
        &self,
        from: Option<&Entry>,
        upto: Option<&Entry>,
    ) -> Result<Vec<Entry>> {
        let mut cursors = Vec::new();
        for (run, sorted) in self.runs.iter().enumerate() {
            let place = |border: &Entry| {
                let before = |entry: &Entry| {
                    self.compare(&Entry { run: run as u32, ..*entry }, border) == Ordering::Less
                };
                sorted.entries.partition_point(before)
            };
            let range = from.map_or(0, place)..upto.map_or(sorted.entries.len(), place);
            if !range.is_empty() {
                cursors.push(Cursor { run: run as u32, entries: &sorted.entries[range] });
            }
        }
        self.merge_cursors(cursors)
    }

    /// Merges with a tree of losers: each tuple is compared only with the heads of other runs,
    /// whose keys stay in the cache. Sorting again would fetch every key in each of its passes.
    fn merge_cursors(&self, mut cursors: Vec<Cursor<'_>>) -> Result<Vec<Entry>> {
        let count = cursors.len();
        let mut merged =
            Vec::with_capacity(cursors.iter().map(|cursor| cursor.entries.len()).sum());
        if count < 2 {
            merged
                .extend(cursors.iter_mut().flat_map(|cursor| std::iter::from_fn(|| cursor.take())));
            return Ok(merged);
        }
        let mut tree = LoserTree::new(count, |a, b| self.is_first(&cursors, a, b));
        while let Some(entry) = cursors[tree.winner()].take() {
            merged.push(entry);
            if merged.len() % TASK_ROWS_MIN == 0 {
                self.context.check()?;
            }
            tree.replay(|a, b| self.is_first(&cursors, a, b));
        }
        Ok(merged)
    }

    /// Returns whether the next tuple of cursor `a` comes before that of `b`; the earlier run wins
    /// ties.
    fn is_first(&self, cursors: &[Cursor<'_>], a: usize, b: usize) -> bool {
        match (cursors[a].peek(), cursors[b].peek()) {
            (Some(x), Some(y)) => self.compare(&x, &y).then(a.cmp(&b)) == Ordering::Less,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Gathers the tuples of these entries.
    pub(in crate::data) fn gather(&self, entries: &[Entry]) -> Result<Chunk> {
        let mut runs: Vec<u32> = entries.iter().map(|entry| entry.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let place =
            |entry: &Entry| (runs.partition_point(|run| *run < entry.run), entry.row as usize);
        let places: Vec<(usize, usize)> = entries.iter().map(place).collect();
        let width = runs.first().map_or(0, |run| self.runs[*run as usize].tuples.width());
        let column = |index: usize| {
            let parts: Vec<Column> = runs
                .iter()
                .map(|run| self.runs[*run as usize].tuples.stored()[index].clone())
                .collect();
            interleave_columns(&parts, &places)
        };
        Ok(Chunk::new((0..width).map(column).collect::<Result<_>>()?, entries.len()))
    }
}
