//! Sorted runs in memory, and their merge.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::row::Rows;

use tessera_context::{Context, Reservation};
use tessera_state::loser_tree::LoserTree;
use tessera_types::Result;
use tessera_vector::{Chunk, Column, interleave_columns};

use super::TASK_ROWS_MIN;
use super::partition::PartitionLimit;
use crate::data::sort_keys::KeyEncoder;

/// Approximate bytes of an output chunk.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Keys sampled for each border between tasks: enough that tasks get about equal shares.
const SAMPLES_PER_BORDER: usize = 64;
/// Bytes of a word of a prefix.
const WORD_BYTES: usize = size_of::<u64>();
/// The fewest and the most words of a prefix.
const WORDS_MIN: usize = 2;
pub(super) const WORDS_MAX: usize = 4;

/// A tuple: the prefix of its key, and its location. The prefix has as many words as a whole key,
/// if keys are short: they are then compared without reading the keys themselves.
#[derive(Debug, Clone, Copy)]
pub(in crate::data) struct Entry<const W: usize> {
    pub(super) prefix: [u64; W],
    pub(super) run: u32,
    pub(super) row: u32,
}

/// The tuples of a morsel, and their sorted order.
#[derive(Debug)]
pub(super) struct SortedRun<const W: usize> {
    pub(super) position: u64,
    /// The number of the run among those of its morsel.
    pub(super) sequence: u32,
    pub(super) tuples: Chunk,
    /// The keys; `None` if prefixes hold the whole key.
    pub(super) keys: Option<Rows>,
    pub(super) entries: Vec<Entry<W>>,
    pub(super) memory: Reservation,
}

/// The words of a prefix for keys of this length; `None` if their length differs.
pub(super) fn prefix_words(key_bytes: Option<usize>) -> usize {
    let words = key_bytes.map_or(WORDS_MIN, |bytes| bytes.div_ceil(WORD_BYTES));
    if words <= WORDS_MAX { words.max(WORDS_MIN) } else { WORDS_MIN }
}

/// Whether a prefix of `words` words holds keys of this length.
pub(super) fn is_whole(key_bytes: Option<usize>, words: usize) -> bool {
    key_bytes.is_some_and(|bytes| bytes <= words * WORD_BYTES)
}

/// The first bytes of a key as numbers with the same order; zero-padded.
pub(super) fn prefix<const W: usize>(key: &[u8]) -> [u64; W] {
    let mut bytes = [0; WORDS_MAX * WORD_BYTES];
    let len = key.len().min(W * WORD_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    let (words, _) = bytes.as_chunks::<WORD_BYTES>();
    std::array::from_fn(|word| u64::from_be_bytes(words[word]))
}

/// The bytes of a prefix.
fn prefix_bytes<const W: usize>(prefix: &[u64; W]) -> [u8; WORDS_MAX * WORD_BYTES] {
    let mut bytes = [0; WORDS_MAX * WORD_BYTES];
    for (place, word) in bytes.chunks_exact_mut(WORD_BYTES).zip(prefix) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// Whether `a` is smaller than `b`: a subtraction with borrow, because a branch for each word would
/// be mispredicted.
#[inline(always)]
pub(super) fn is_less<const W: usize>(a: &[u64; W], b: &[u64; W]) -> bool {
    let mut borrow = false;
    for word in (0..W).rev() {
        let (difference, first) = a[word].overflowing_sub(b[word]);
        borrow = first | (difference < u64::from(borrow));
    }
    borrow
}

/// Compares prefixes.
#[inline(always)]
pub(super) fn compare_prefixes<const W: usize>(a: &[u64; W], b: &[u64; W]) -> Ordering {
    match (is_less(a, b), is_less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// The rest of a run in a merge.
struct Cursor<'a, const W: usize> {
    run: u32,
    entries: &'a [Entry<W>],
}

impl<const W: usize> Cursor<'_, W> {
    fn take(&mut self) -> Option<Entry<W>> {
        let (first, rest) = self.entries.split_first()?;
        self.entries = rest;
        Some(Entry { run: self.run, ..*first })
    }
}

/// All runs, in the order of the source.
#[derive(Debug)]
pub(in crate::data) struct SortedRuns<const W: usize> {
    runs: Vec<SortedRun<W>>,
    encoder: Arc<KeyEncoder>,
    /// What a merge keeps of each partition.
    limit: Option<Arc<PartitionLimit>>,
    pub(super) context: Arc<dyn Context>,
}

impl<const W: usize> SortedRuns<W> {
    pub(super) fn new(
        mut runs: Vec<SortedRun<W>>,
        encoder: &Arc<KeyEncoder>,
        limit: Option<&Arc<PartitionLimit>>,
        context: &Arc<dyn Context>,
    ) -> SortedRuns<W> {
        runs.sort_by_key(|run| (run.position, run.sequence));
        let (encoder, context) = (encoder.clone(), context.clone());
        SortedRuns { runs, encoder, limit: limit.cloned(), context }
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
    pub(in crate::data) fn whole_key(&self, entry: &Entry<W>) -> Vec<u8> {
        let run = &self.runs[entry.run as usize];
        let mut bytes = match &run.keys {
            Some(keys) => keys.row(entry.row as usize).data().to_vec(),
            None => prefix_bytes(&entry.prefix)[..self.encoder.fixed_bytes().unwrap_or(0)].to_vec(),
        };
        bytes.extend(run.position.to_be_bytes());
        bytes.extend(run.sequence.to_be_bytes());
        bytes.extend(entry.row.to_be_bytes());
        bytes
    }

    /// Returns whether the key of a tuple begins with these bytes.
    pub(super) fn begins_with(&self, entry: &Entry<W>, bytes: &[u8]) -> bool {
        match &self.runs[entry.run as usize].keys {
            Some(keys) => keys.row(entry.row as usize).data().starts_with(bytes),
            None => prefix_bytes(&entry.prefix).starts_with(bytes),
        }
    }

    /// Compares two tuples of any runs by their keys.
    #[inline(always)]
    fn compare(&self, (a_run, a): (u32, &Entry<W>), (b_run, b): (u32, &Entry<W>)) -> Ordering {
        compare_prefixes(&a.prefix, &b.prefix).then_with(|| {
            let key = |run: u32, entry: &Entry<W>| {
                let keys = self.runs[run as usize].keys.as_ref();
                keys.map(|keys| keys.row(entry.row as usize))
            };
            key(a_run, a).cmp(&key(b_run, b))
        })
    }

    /// The entries of a run.
    pub(super) fn of_run(
        &self,
        run: usize,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Entry<W>> + '_ {
        self.runs[run].entries[range].iter().map(move |entry| Entry { run: run as u32, ..*entry })
    }

    /// Returns keys that split all tuples into about equal parts.
    pub(super) fn borders(&self, parts: usize) -> Arc<[Entry<W>]> {
        let step = (self.rows() / (parts * SAMPLES_PER_BORDER)).max(1);
        let mut samples: Vec<Entry<W>> = if parts > 1 {
            let run = |run: usize| self.of_run(run, 0..self.runs[run].entries.len()).step_by(step);
            (0..self.runs.len()).flat_map(run).collect()
        } else {
            Vec::new()
        };
        samples.sort_by(|a, b| self.compare((a.run, a), (b.run, b)));
        (1..parts).filter_map(|part| samples.get(part * samples.len() / parts).copied()).collect()
    }

    /// Merges the tuples from one border up to, not including, the next.
    pub(in crate::data) fn merge(
        &self,
        from: Option<&Entry<W>>,
        upto: Option<&Entry<W>>,
    ) -> Result<Vec<Entry<W>>> {
        let mut cursors = Vec::new();
        for (run, sorted) in self.runs.iter().enumerate() {
            let place = |border: &Entry<W>| {
                let before = |entry: &Entry<W>| {
                    self.compare((run as u32, entry), (border.run, border)) == Ordering::Less
                };
                sorted.entries.partition_point(before)
            };
            let range = from.map_or(0, place)..upto.map_or(sorted.entries.len(), place);
            if !range.is_empty() {
                cursors.push(Cursor { run: run as u32, entries: &sorted.entries[range] });
            }
        }
        let mut merged = self.merge_cursors(cursors)?;
        if let Some(limit) = &self.limit {
            limit.retain_of_prefixes(&mut merged);
        }
        Ok(merged)
    }

    /// Merges with a tree of losers: each tuple is compared only with the heads of other runs,
    /// whose keys stay in the cache. Sorting again would fetch every key in each of its passes.
    fn merge_cursors(&self, mut cursors: Vec<Cursor<'_, W>>) -> Result<Vec<Entry<W>>> {
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
    #[inline(always)]
    fn is_first(&self, cursors: &[Cursor<'_, W>], a: usize, b: usize) -> bool {
        let (x, y) = (&cursors[a], &cursors[b]);
        match (x.entries.first(), y.entries.first()) {
            (Some(first), Some(second)) => {
                self.compare((x.run, first), (y.run, second)).then(a.cmp(&b)) == Ordering::Less
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Gathers the tuples of these entries. Keys that entries hold are read from them: the tuples
    /// are anywhere in memory.
    pub(in crate::data) fn gather(&self, entries: &[Entry<W>]) -> Result<Chunk> {
        let is_whole = is_whole(self.encoder.fixed_bytes(), W);
        let mut numbers: Vec<Option<usize>> = vec![None; self.runs.len()];
        let mut runs: Vec<u32> = Vec::new();
        let mut place = |entry: &Entry<W>| {
            let number = numbers[entry.run as usize].get_or_insert_with(|| {
                runs.push(entry.run);
                runs.len() - 1
            });
            (*number, entry.row as usize)
        };
        let places: Vec<(usize, usize)> = entries.iter().map(&mut place).collect();
        let width = runs.first().map_or(0, |run| self.runs[*run as usize].tuples.width());
        let column = |index: usize| {
            if let Some(decoder) = self.encoder.decoder(index).filter(|_| is_whole)
                && let Some(values) = decoder.values(entries.iter().map(|entry| &entry.prefix))?
            {
                return Ok(Column::Plain(values));
            }
            let parts: Vec<Column> = runs
                .iter()
                .map(|run| self.runs[*run as usize].tuples.stored()[index].clone())
                .collect();
            interleave_columns(&parts, &places)
        };
        Ok(Chunk::new((0..width).map(column).collect::<Result<_>>()?, entries.len()))
    }
}
