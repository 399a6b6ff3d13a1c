//! Fetches the bytes of the columns that a morsel reads.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::page_index::offset_index::PageLocation;

use tessera_context::{RangeReader, Read, ReadBuffer, Token, file_changed};
use tessera_types::Result;

use super::super::SourceColumn;
use super::super::fetch::{coalesce, gap_bytes_max};
use super::super::flat::Pages;
use super::{ColumnState, MorselReader};

/// The divisor of the memory budget for compressed bytes of local files, for all workers together.
const FETCHED_SHARE: usize = 4;

impl MorselReader {
    /// Fetches the bytes of columns. Returns a token while they are in flight.
    pub(super) fn open(&mut self, wanted: &[usize]) -> Result<Option<Token>> {
        let missing = self.waiting(wanted);
        if missing.is_empty() {
            return Ok(None);
        }
        let source = self.source()?;
        if self.opening.is_empty() {
            self.opening = match source.is_remote() {
                true => self.with_small_rest(missing, gap_bytes_max(&*source)),
                false => missing,
            };
            let ranges = self.opening.iter().flat_map(|(_, root)| self.ranges(*root)).collect();
            self.pending = coalesce(ranges, gap_bytes_max(&*source));
            let bytes: u64 = self.pending.iter().map(|range| range.end - range.start).sum();
            if !source.is_remote() && bytes as usize > self.fetched_bytes_max() {
                Arc::make_mut(&mut self.fetched).read_on_demand_from(source.clone());
                self.pending.clear();
            } else {
                // Counted before the request, because the bytes may arrive at any time after it.
                self.reservation.grow(bytes as usize)?;
                source.prefetch(&self.pending)?;
                self.pending.reverse();
            }
        }
        while let Some(range) = self.pending.last() {
            match source.read_into(range.clone(), ReadBuffer::default())? {
                Read::Ready(buffer) => {
                    Arc::make_mut(&mut self.fetched).add(range.start, buffer.into_bytes());
                    self.pending.pop();
                }
                Read::Blocked(token) => return Ok(Some(token)),
            }
        }
        for (column, _) in std::mem::take(&mut self.opening) {
            self.columns[column] = ColumnState::Closed;
        }
        Ok(None)
    }

    /// The most bytes of a local file that are fetched in advance.
    fn fetched_bytes_max(&self) -> usize {
        let context = &self.scan.run.context;
        context.memory_bytes() / FETCHED_SHARE / context.workers().max(1)
    }

    fn source(&mut self) -> Result<Arc<dyn RangeReader>> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let file = &self.scan.files[self.morsel.file];
        let source = self.scan.run.open(&file.path)?;
        if source.len() != file.len {
            return Err(file_changed(&file.path));
        }
        self.source = Some(source.clone());
        Ok(source)
    }

    /// Returns those columns that are not open yet, with their roots in the file.
    pub(super) fn waiting(&self, wanted: &[usize]) -> Vec<(usize, usize)> {
        let columns = &self.file().columns;
        let root = |&column: &usize| match (&self.columns[column], &columns[column]) {
            (ColumnState::Waiting, SourceColumn::File { root, .. }) => Some((column, *root)),
            _ => None,
        };
        wanted.iter().filter_map(root).collect()
    }

    /// Adds all other columns of the morsel if they are too small for a request of their own.
    fn with_small_rest(&self, first: Vec<(usize, usize)>, bytes_max: u64) -> Vec<(usize, usize)> {
        let mut all = first.clone();
        all.extend(self.waiting(&self.scan.parameters.fields));
        all.sort_unstable();
        all.dedup();
        let bytes = |columns: &[(usize, usize)]| -> u64 {
            columns
                .iter()
                .flat_map(|(_, root)| self.ranges(*root))
                .map(|range| range.end - range.start)
                .sum()
        };
        if bytes(&all) - bytes(&first) <= bytes_max { all } else { first }
    }

    /// Returns the byte ranges of a root column that the morsel needs.
    fn ranges(&self, root: usize) -> Vec<Range<u64>> {
        let metadata = &self.file().metadata;
        let group = metadata.parquet.row_group(self.morsel.group);
        let mut ranges = Vec::new();
        for leaf in metadata.first_leaf[root]..metadata.first_leaf[root + 1] {
            let chunk = group.column(leaf);
            let (start, len) = chunk.byte_range();
            match self.pages(leaf) {
                Some(pages) if !pages.locations.is_empty() => {
                    let from = pages.locations.first().map_or(0, |page| page.offset) as u64;
                    let to = pages
                        .locations
                        .last()
                        .map_or(0, |p| p.offset + i64::from(p.compressed_page_size))
                        as u64;
                    if pages.dictionary {
                        let locations = self.page_locations(leaf);
                        let first = locations
                            .and_then(|pages| pages.first())
                            .map_or(start, |page| page.offset as u64);
                        ranges.push(start..first);
                    }
                    ranges.push(from..to);
                }
                _ => ranges.push(start..start + len),
            }
        }
        ranges
    }

    fn page_locations(&self, leaf: usize) -> Option<&[PageLocation]> {
        self.file().metadata.locations(self.morsel.group, leaf)
    }

    /// Returns the pages of a leaf that contain the morsel's rows, if there is a page index.
    pub(super) fn pages(&self, leaf: usize) -> Option<Pages> {
        let group = self.file().metadata.parquet.row_group(self.morsel.group);
        let first = self.morsel.ranges.first()?.start;
        let end = self.morsel.ranges.last()?.end;
        let start = group.column(leaf).byte_range().0;
        Some(Pages::of_rows(
            self.page_locations(leaf)?,
            start,
            (first, end),
            group.num_rows() as usize,
        ))
    }
}
