//! The sorted tuples in memory, as morsels.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Error, Result};

use super::partition::PartitionKeys;
use super::runs::{Entry, SortedRuns};

/// Output chunks in a morsel.
const MORSEL_CHUNKS: usize = 16;

/// The sorted tuples, as entries.
#[derive(Debug)]
pub(super) struct Output<const W: usize> {
    /// The entries of each range of keys, in order.
    pub(super) parts: Vec<OnceLock<Vec<Entry<W>>>>,
    /// The entries of each morsel, counted over all parts.
    pub(super) morsels: OnceLock<Result<Vec<Range<usize>>>>,
    /// The keys that no border between morsels may separate.
    pub(super) partition: Option<Arc<PartitionKeys>>,
    pub(super) sorted: Arc<SortedRuns<W>>,
}

impl<const W: usize> Output<W> {
    fn part(&self, part: usize) -> &[Entry<W>] {
        self.parts.get(part).and_then(OnceLock::get).map_or(&[], Vec::as_slice)
    }

    /// Iterates over the parts that overlap a range, cut to it.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[Entry<W>]> {
        let mut before = 0;
        (0..self.parts.len()).filter_map(move |part| {
            let entries = self.part(part);
            let first = range.start.max(before) - before;
            let last = range.end.clamp(before, before + entries.len()) - before;
            before += entries.len();
            (first < last).then(|| &entries[first..last])
        })
    }

    fn entry(&self, position: usize) -> Option<&Entry<W>> {
        self.pieces(position..position + 1).next().and_then(<[Entry<W>]>::first)
    }

    fn rows(&self) -> usize {
        (0..self.parts.len()).map(|part| self.part(part).len()).sum()
    }

    fn ranges(&self) -> Result<Vec<Range<usize>>> {
        let morsel_rows = MORSEL_CHUNKS * self.sorted.context.chunk_rows();
        let rows = self.rows();
        let (mut ranges, mut start) = (Vec::new(), 0);
        while start < rows {
            let mut end = rows.min(start + morsel_rows);
            if end < rows
                && let Some(keys) = &self.partition
            {
                end = self.partition_end(keys, end - 1)?;
            }
            ranges.push(start..end);
            start = end;
        }
        Ok(ranges)
    }

    /// Returns the end of the partition of the tuple at `position`.
    fn partition_end(&self, keys: &PartitionKeys, position: usize) -> Result<usize> {
        let entry =
            self.entry(position).ok_or_else(|| Error::internal("a sorted tuple is missing"))?;
        let key = keys.key(&self.sorted.gather(std::slice::from_ref(entry))?)?;
        let mut end = position;
        for entries in self.pieces(position..self.rows()) {
            let inside = entries.partition_point(|entry| self.sorted.begins_with(entry, &key));
            end += inside;
            if inside < entries.len() {
                break;
            }
        }
        Ok(end)
    }

    fn morsel_ranges(&self) -> &Result<Vec<Range<usize>>> {
        self.morsels.get_or_init(|| self.ranges())
    }
}

impl<const W: usize> SourceRun for Output<W> {
    fn morsels(&self) -> usize {
        // An error is reported when the only morsel is opened.
        self.morsel_ranges().as_ref().map_or(1, Vec::len)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let ranges = self.morsel_ranges().as_ref().map_err(Clone::clone)?;
        let range =
            ranges.get(morsel).ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let entries = self.pieces(range.clone()).flatten().copied().collect();
        Ok(Box::new(SortReader { sorted: self.sorted.clone(), entries, next: 0 }))
    }
}

struct SortReader<const W: usize> {
    sorted: Arc<SortedRuns<W>>,
    entries: Vec<Entry<W>>,
    next: usize,
}

impl<const W: usize> Reader for SortReader<W> {
    fn step(&mut self) -> Result<Step> {
        self.sorted.context.check()?;
        let rows = self.sorted.chunk_rows().min(self.entries.len() - self.next);
        if rows == 0 {
            return Ok(Step::Done);
        }
        let chunk = self.sorted.gather(&self.entries[self.next..self.next + rows])?;
        self.next += rows;
        Ok(Step::HasOutput(chunk))
    }
}
