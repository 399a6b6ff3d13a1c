//! The sorted tuples in memory, as morsels.

use std::ops::Range;
use std::sync::Arc;

use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Error, Result};

use super::parts::Parts;
use super::runs::Entry;

/// The sorted tuples.
#[derive(Debug)]
pub(super) struct Output<const W: usize>(pub(super) Arc<Parts<W>>);

impl<const W: usize> SourceRun for Output<W> {
    fn morsels(&self) -> usize {
        self.0.morsels().len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let left = self.0.morsels().get(morsel).cloned();
        let left = left.ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let (parts, entries) = (self.0.clone(), Arc::default());
        Ok(Box::new(SortReader { parts, left, entries, next: 0 }))
    }
}

struct SortReader<const W: usize> {
    parts: Arc<Parts<W>>,
    /// The parts that follow.
    left: Range<usize>,
    /// The current part, and the first tuple that has not been read.
    entries: Arc<Vec<Entry<W>>>,
    next: usize,
}

impl<const W: usize> Reader for SortReader<W> {
    fn step(&mut self) -> Result<Step> {
        let runs = &self.parts.runs;
        while self.next == self.entries.len() {
            let Some(part) = self.left.next() else { return Ok(Step::Done) };
            (self.entries, self.next) = (self.parts.entries(part)?, 0);
        }
        runs.context.check()?;
        let rows = runs.chunk_rows().min(self.entries.len() - self.next);
        let chunk = runs.gather(&self.entries[self.next..self.next + rows])?;
        self.next += rows;
        Ok(Step::HasOutput(chunk))
    }
}
