//! Sorted runs in memory, and the merge of what lies between two borders.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::row::{Row, Rows};

use tessera_context::{Context, Reservation};
use tessera_types::Result;
use tessera_vector::{Chunk, Column, interleave_columns};

use super::packed::Packed;
use super::partition::{PartitionKeys, PartitionLimit};
use crate::data::sort_keys::KeyEncoder;

/// Approximate bytes of an output chunk.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
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
#[inline]
pub(in crate::data) fn prefix<const W: usize>(key: &[u8]) -> [u64; W] {
    let (words, rest) = key.as_chunks::<WORD_BYTES>();
    std::array::from_fn(|word| match words.get(word) {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None if word == words.len() => rest.iter().enumerate().fold(0, |sum, (place, byte)| {
            sum | u64::from(*byte) << (u64::BITS - 8 - 8 * place as u32)
        }),
        None => 0,
    })
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

/// A place between sorted tuples: in front of those with a key that are not before a place in the
/// source.
#[derive(Debug)]
pub(super) struct Border<const W: usize> {
    prefix: [u64; W],
    /// The whole key, unless prefixes hold it.
    key: Option<Box<[u8]>>,
    /// The run and the row.
    place: (u32, u32),
}

impl<const W: usize> Border<W> {
    pub(super) fn compare(&self, other: &Border<W>) -> Ordering {
        compare_prefixes(&self.prefix, &other.prefix)
            .then_with(|| (&self.key, self.place).cmp(&(&other.key, other.place)))
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

    /// The number of runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Compares two tuples of any runs by their keys.
    #[inline(always)]
    fn compare(&self, a: &Entry<W>, b: &Entry<W>) -> Ordering {
        compare_prefixes(&a.prefix, &b.prefix).then_with(|| self.key(a).cmp(&self.key(b)))
    }

    /// The key of a tuple, if its prefix does not hold it.
    fn key(&self, entry: &Entry<W>) -> Option<Row<'_>> {
        let keys = self.runs[entry.run as usize].keys.as_ref();
        keys.map(|keys| keys.row(entry.row as usize))
    }

    /// The entries of a run.
    fn of_run(
        &self,
        run: usize,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Entry<W>> + '_ {
        self.runs[run].entries[range].iter().map(move |entry| Entry { run: run as u32, ..*entry })
    }

    /// Returns about `count` tuples that are evenly spread over each run, in order.
    pub(super) fn samples(&self, count: usize) -> Vec<Entry<W>> {
        let step = (self.rows() / count.max(1)).max(1);
        let of_run = |run: usize| {
            let rows = self.runs[run].entries.len();
            self.of_run(run, (step / 2).min(rows)..rows).step_by(step)
        };
        let mut samples: Vec<Entry<W>> = (0..self.runs.len()).flat_map(of_run).collect();
        samples.sort_by(|a, b| self.compare(a, b));
        samples
    }

    /// The border in front of a tuple.
    pub(super) fn border(&self, entry: &Entry<W>) -> Border<W> {
        let key = self.key(entry).map(|key| key.data().into());
        Border { prefix: entry.prefix, key, place: (entry.run, entry.row) }
    }

    /// The border in front of a tuple's partition; `None` if all tuples are one partition.
    pub(super) fn partition_border(
        &self,
        entry: &Entry<W>,
        keys: &PartitionKeys,
    ) -> Result<Option<Border<W>>> {
        let key = keys.key(&self.gather(std::slice::from_ref(entry))?)?;
        let prefix = prefix(&key);
        let is_whole = is_whole(self.encoder.fixed_bytes(), W);
        let border = (!key.is_empty()).then(|| Border {
            prefix,
            key: (!is_whole).then_some(key),
            place: (0, 0),
        });
        Ok(border)
    }

    /// Returns whether a tuple comes before a border.
    fn is_before(&self, entry: &Entry<W>, border: &Border<W>) -> bool {
        let keys = || self.key(entry).as_ref().map(Row::data).cmp(&border.key.as_deref());
        compare_prefixes(&entry.prefix, &border.prefix)
            .then_with(keys)
            .then((entry.run, entry.row).cmp(&border.place))
            .is_lt()
    }

    /// Sorts the tuples of several runs.
    fn sorted(&self, mut entries: Vec<Entry<W>>) -> Vec<Entry<W>> {
        if is_whole(self.encoder.fixed_bytes(), W)
            && let Some(order) =
                Packed::default().order(entries.iter().map(|entry| &entry.prefix), true)
        {
            return order.map(|place| entries[place as usize]).collect();
        }
        entries.sort_by(|a, b| self.compare(a, b));
        entries
    }

    /// Merges the tuples from one border up to, not including, the next. Sorting finds the runs and
    /// merges them in pairs: in the cache, that is faster than a tree over all runs.
    pub(super) fn merge(
        &self,
        from: Option<&Border<W>>,
        upto: Option<&Border<W>>,
    ) -> Result<Vec<Entry<W>>> {
        self.context.check()?;
        let range = |(run, sorted): (usize, &SortedRun<W>)| {
            let place = |border: &Border<W>| {
                let before =
                    |entry: &Entry<W>| self.is_before(&Entry { run: run as u32, ..*entry }, border);
                sorted.entries.partition_point(before)
            };
            from.map_or(0, place)..upto.map_or(sorted.entries.len(), place)
        };
        let ranges: Vec<_> = self.runs.iter().enumerate().map(range).collect();
        let mut merged = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).sum());
        let mut pieces = 0;
        for (run, range) in ranges.into_iter().enumerate() {
            pieces += usize::from(!range.is_empty());
            merged.extend(self.of_run(run, range));
        }
        if pieces > 1 {
            merged = self.sorted(merged);
        }
        if let Some(limit) = &self.limit {
            limit.retain_of_prefixes(&mut merged);
        }
        Ok(merged)
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
