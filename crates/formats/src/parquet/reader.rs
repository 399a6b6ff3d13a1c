//! Reads a morsel: some rows of a row group.
//!
//! Rows go in batches. Columns that the predicate reads come first; conjuncts over one
//! dictionary-encoded column are looked up in a mask of its dictionary, the others are evaluated
//! one after the other on what is left. The remaining columns are decoded only for batches in which
//! a row is left, and their bytes fetched only when the first such batch comes (late
//! materialisation).
//!
//! Where the bytes of a local file are too many for the budget, they are not fetched before: each
//! page is read when its column comes to it. Pages that are too many are closed (see `open_pages`).

mod open_pages;
mod tested;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::DataType;

use tessera_context::guard::guarded;
use tessera_context::{RangeReader, Read, ReadBuffer, Reservation, Token, file_changed};
use tessera_operator::stream_util::{Cutter, Packer};
use tessera_operator::{Reader, Step};
use tessera_state::sideways::Heard;
use tessera_types::{Error, Result, quote_name};
use tessera_vector::{CHUNK_ROWS, Chunk, Column};

use super::fetch::{Fetched, coalesce, gap_bytes_max};
use super::flat::{Decoded, FlatColumn, Pages, RowGroupShared, is_supported};
use super::metadata::damaged;
use super::nested::NestedColumn;
use super::{FileState, ScanRun, SourceColumn};
use crate::file::{check_nulls, convert};
use open_pages::OpenPages;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// Values that are decoded at once: fewer rows of a thousand columns.
const BATCH_VALUES: usize = 256 * CHUNK_ROWS;
/// As few rows as that may be: less work than this is not worth opening a page for.
const BATCH_ROWS_MIN: usize = CHUNK_ROWS / 8;
/// The part of the budget that a chunk takes at most, where values have this many bytes. What is
/// decoded at once is cut to it.
const CHUNK_SHARE: usize = 16;
const VALUE_BYTES: usize = 16;
const CHUNK_ROWS_MIN: usize = 256;
/// The part of the budget that all workers together fetch of the compressed bytes of local files.
const FETCHED_SHARE: usize = 4;

/// Rows of a row group, to be read by one worker.
#[derive(Debug, Clone)]
pub(super) struct Morsel {
    pub(super) file: usize,
    pub(super) group: usize,
    /// Rows of the group, ascending.
    pub(super) ranges: Arc<[Range<usize>]>,
    pub(super) shared: Arc<RowGroupShared>,
}

pub(super) struct MorselReader {
    scan: Arc<ScanRun>,
    morsel: Morsel,
    source: Option<Arc<dyn RangeReader>>,
    fetched: Arc<Fetched>,
    /// Columns (and their roots in the file) whose bytes are being fetched.
    opening: Vec<(usize, usize)>,
    /// What of these bytes has not come yet, the first range last.
    pending: Vec<Range<u64>>,
    reservation: Reservation,
    columns: Vec<ColumnState>,
    open_pages: OpenPages,
    batch_rows: usize,
    chunk_rows: usize,
    /// Range and row within the row group that come next.
    next: (usize, usize),
    batch: Option<Batch>,
    /// Filters of keys, and room for hashes.
    filters: Vec<Heard>,
    hashes: Vec<u64>,
    /// Rows that were decoded in vain.
    dropped: u64,
    /// What decompressing and decoding has taken.
    decoding: Duration,
    packer: Packer,
    cutter: Cutter,
    done: bool,
}

enum ColumnState {
    Waiting,
    /// Its bytes are there. It is opened when it is read: its dictionary alone may be large.
    Closed,
    Flat(Box<FlatColumn>),
    Nested(Box<NestedColumn>),
}

/// A batch whose predicate columns have been read.
struct Batch {
    start: usize,
    rows: usize,
    selection: Option<Vec<u32>>,
    /// What the predicate has read.
    loaded: Vec<Option<Loaded>>,
}

impl MorselReader {
    pub(super) fn new(scan: Arc<ScanRun>, morsel: Morsel, filters: Vec<Heard>) -> MorselReader {
        let start = morsel.ranges.first().map_or(0, |range| range.start);
        let context = scan.run.context.clone();
        let columns = scan.what.fields.len().max(1);
        let chunk_rows = context.memory_bytes() / CHUNK_SHARE / VALUE_BYTES / columns;
        let chunk_rows = chunk_rows.max(CHUNK_ROWS_MIN).min(context.chunk_rows());
        MorselReader {
            source: None,
            fetched: Arc::new(Fetched::new(scan.files[morsel.file].len)),
            opening: Vec::new(),
            pending: Vec::new(),
            reservation: Reservation::new(context.clone()),
            columns: scan.what.columns.fields().iter().map(|_| ColumnState::Waiting).collect(),
            open_pages: OpenPages::new(context.clone(), scan.what.columns.fields().len()),
            batch_rows: (BATCH_VALUES / columns).clamp(BATCH_ROWS_MIN, BATCH_ROWS),
            chunk_rows,
            next: (0, start),
            batch: None,
            packer: Packer::new(chunk_rows),
            cutter: Cutter::default(),
            done: false,
            filters,
            hashes: Vec::new(),
            dropped: 0,
            decoding: Duration::ZERO,
            scan,
            morsel,
        }
    }

    fn file(&self) -> &FileState {
        &self.scan.files[self.morsel.file]
    }

    /// Makes the bytes of columns ready; a token while they are under way.
    fn open(&mut self, wanted: &[usize]) -> Result<Option<Token>> {
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
                Arc::make_mut(&mut self.fetched).read_rest_from(source.clone());
                self.pending.clear();
            } else {
                // Counted before they are asked for: from then on they may come.
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

    /// How many bytes of a local file are fetched before they are decoded.
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

    /// Those of some columns that are not open yet, with their roots in the file.
    fn waiting(&self, wanted: &[usize]) -> Vec<(usize, usize)> {
        let columns = &self.file().columns;
        let root = |&column: &usize| match (&self.columns[column], &columns[column]) {
            (ColumnState::Waiting, SourceColumn::File { root, .. }) => Some((column, *root)),
            _ => None,
        };
        wanted.iter().filter_map(root).collect()
    }

    /// All columns that the morsel may need, where the rest of them is not worth a request of its
    /// own.
    fn with_small_rest(&self, first: Vec<(usize, usize)>, bytes_max: u64) -> Vec<(usize, usize)> {
        let mut all = first.clone();
        all.extend(self.waiting(&self.scan.what.fields));
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

    /// The bytes that the morsel needs of a root column.
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
                        let locations = self.scan_locations(leaf);
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

    fn scan_locations(
        &self,
        leaf: usize,
    ) -> Option<&[parquet::file::page_index::offset_index::PageLocation]> {
        self.file().metadata.locations(self.morsel.group, leaf)
    }

    /// The pages of a leaf that hold the morsel's rows, where there is a page index.
    fn pages(&self, leaf: usize) -> Option<Pages> {
        let group = self.file().metadata.parquet.row_group(self.morsel.group);
        let first = self.morsel.ranges.first()?.start;
        let end = self.morsel.ranges.last()?.end;
        let start = group.column(leaf).byte_range().0;
        Some(Pages::of_rows(
            self.scan_locations(leaf)?,
            start,
            (first, end),
            group.num_rows() as usize,
        ))
    }

    fn open_column(&self, root: usize) -> Result<ColumnState, String> {
        let metadata = &self.file().metadata;
        let group = metadata.parquet.row_group(self.morsel.group);
        let (arrow, atom) =
            (metadata.arrow.schema().field(root).data_type(), metadata.tuple.fields()[root].atom());
        let atom = atom.ok_or("a column that holds no values")?;
        match metadata.flat_leaf(root) {
            Some(leaf) if is_supported(group.column(leaf), arrow, atom) => {
                let column = FlatColumn::new(
                    self.fetched.clone(),
                    group.column(leaf),
                    self.pages(leaf),
                    group.num_rows() as usize,
                    (leaf, self.morsel.shared.clone()),
                    (arrow, atom),
                )?;
                Ok(ColumnState::Flat(Box::new(column)))
            }
            _ => {
                let ranges = self.morsel.ranges.clone();
                let column = NestedColumn::new(
                    self.fetched.clone(),
                    metadata,
                    self.morsel.group,
                    root,
                    ranges,
                )?;
                Ok(ColumnState::Nested(Box::new(column)))
            }
        }
    }

    fn failed(&self, column: usize, error: String) -> Error {
        if let Some(error) = self.fetched.take_failure() {
            return error;
        }
        let name = quote_name(&self.scan.what.columns.fields()[column].name);
        damaged(
            &self.file().path,
            format!("column {name} in row group {}: {error}", self.morsel.group),
        )
    }

    /// Decodes rows of a column that is open.
    fn decode(&mut self, column: usize, start: usize, rows: usize) -> Result<Loaded> {
        self.timed(|reader| reader.loaded(column, start, rows))
    }

    /// Counts what takes long as decoding.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let begun = Instant::now();
        let done = work(self);
        self.decoding += begun.elapsed();
        done
    }

    fn loaded(&mut self, column: usize, start: usize, rows: usize) -> Result<Loaded> {
        let scan = self.scan.clone();
        let file = &scan.files[self.morsel.file];
        let field = &scan.what.columns.fields()[column];
        let found = match &file.columns[column] {
            SourceColumn::Constant(value) => {
                return Ok(Loaded::Column(Column::Constant(value.clone(), rows)));
            }
            SourceColumn::File { found, root } => {
                if let ColumnState::Closed = &self.columns[column] {
                    scan.run.context.check()?;
                    self.columns[column] =
                        self.open_column(*root).map_err(|error| self.failed(column, error))?;
                }
                found
            }
        };
        let read = match &mut self.columns[column] {
            ColumnState::Flat(flat) => {
                let decoded = flat.seek(start).and_then(|()| flat.read(rows));
                match decoded {
                    Ok(decoded) if Some(found) == field.atom() && field.nullable => {
                        return Ok(Loaded::Flat(decoded));
                    }
                    Ok(decoded) if Some(found) == field.atom() && !decoded.has_nulls() => {
                        return Ok(Loaded::Flat(decoded));
                    }
                    Ok(decoded) => {
                        flat.finish(decoded).and_then(|c| c.plain().map_err(|e| e.to_string()))
                    }
                    Err(error) => Err(error),
                }
            }
            ColumnState::Nested(nested) => nested.seek(start).and_then(|()| nested.read(rows)),
            ColumnState::Waiting | ColumnState::Closed => {
                return Err(Error::internal("a column was read before it was opened"));
            }
        };
        let array = read.map_err(|error| self.failed(column, error))?;
        let declared =
            field.atom().ok_or_else(|| Error::internal("a column of collections in a file"))?;
        let array = convert(array, found, declared).map_err(|error| {
            error.context(format!("column {} of '{}'", quote_name(&field.name), file.path))
        })?;
        check_nulls(array.as_ref(), field.nullable, &file.path, &field.name)?;
        Ok(Loaded::Column(Column::new(array)))
    }

    fn finish(&mut self, column: usize, loaded: Loaded) -> Result<Column> {
        self.timed(|reader| match (loaded, &reader.columns[column]) {
            (Loaded::Column(column), _) => Ok(column),
            (Loaded::Flat(decoded), ColumnState::Flat(flat)) => {
                flat.finish(decoded).map_err(|error| reader.failed(column, error))
            }
            _ => Err(Error::internal("a column was finished by another")),
        })
    }

    /// Closes a column whose pages cannot be kept open. What it has given then holds none of them.
    fn settle(&mut self, column: usize, given: Column) -> Result<Column> {
        let ColumnState::Flat(flat) = &self.columns[column] else { return Ok(given) };
        if self.open_pages.keep(column, flat.open_bytes()) {
            return Ok(given);
        }
        flat.forget_dictionary();
        self.columns[column] = ColumnState::Closed;
        Ok(Column::Plain(without_pages(given.plain()?)))
    }

    /// Reads the remaining columns of a batch. Where many rows have fallen out, the others are
    /// gathered at once: what comes later then never touches those that are gone.
    fn complete(&mut self, batch: Batch) -> Result<()> {
        let Batch { start, rows, selection, mut loaded } = batch;
        let scan = self.scan.clone();
        let few = selection.as_ref().filter(|selection| selection.len() * 4 <= rows * 3);
        let positions = few.map(|few| UInt32Array::from(few.clone()));
        let mut yielded = Vec::with_capacity(scan.what.fields.len());
        for &column in &scan.what.fields {
            let value = match loaded[column].take() {
                Some(value) => value,
                None => self.decode(column, start, rows)?,
            };
            let value = match (value, &positions) {
                (Loaded::Flat(decoded), Some(positions)) => {
                    Loaded::Flat(decoded.keep(positions.values()))
                }
                (Loaded::Column(column), Some(positions)) => {
                    Loaded::Column(column.take(positions)?)
                }
                (value, None) => value,
            };
            let value = self.finish(column, value)?;
            yielded.push(self.settle(column, value)?);
        }
        let mut chunk =
            Chunk::new(yielded, positions.as_ref().map_or(rows, |positions| positions.len()));
        if let (Some(selection), None) = (selection, positions) {
            chunk = chunk.select(Arc::new(UInt32Array::from(selection)));
        }
        self.packer.push(chunk)
    }

    fn advance(&mut self) -> Result<Step> {
        loop {
            if let Some(piece) = self.cutter.pop(self.chunk_rows) {
                return Ok(Step::HasOutput(piece));
            }
            if let Some(chunk) = self.packer.pop() {
                self.cutter.put(chunk);
                continue;
            }
            if self.done {
                return Ok(Step::Done);
            }
            self.scan.run.context.check()?;
            let scan = self.scan.clone();
            if self.batch.is_none() {
                if let Some(token) = self.open_tested()? {
                    return Ok(Step::Blocked(token));
                }
                self.batch = self.filter_batch()?;
            }
            match self.batch.take() {
                None => {
                    self.done = true;
                    scan.run.counters.add("decoding_nanoseconds", self.decoding.as_nanos() as u64);
                    if self.dropped > 0 {
                        scan.run.counters.add("rows_dropped_without_match", self.dropped);
                    }
                    self.packer.flush()?;
                }
                Some(batch) if batch.selection.as_ref().is_some_and(Vec::is_empty) => {}
                Some(batch) => match self.open(&scan.what.fields)? {
                    Some(token) => {
                        self.batch = Some(batch);
                        return Ok(Step::Blocked(token));
                    }
                    None => self.complete(batch)?,
                },
            }
        }
    }
}

/// Strings copied out of the pages that they stand in; other values stand by themselves already.
fn without_pages(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// A column of a batch: decoded, or in its final form.
enum Loaded {
    Flat(Decoded),
    Column(Column),
}

impl Reader for MorselReader {
    fn step(&mut self) -> Result<Step> {
        // The decompression and Arrow libraries may panic on bytes that no writer makes; that is
        // the file's fault.
        match guarded(|| self.advance()) {
            Some(step) => step,
            None => {
                self.done = true;
                Err(damaged(
                    &self.file().path,
                    format!("row group {} cannot be decoded", self.morsel.group),
                ))
            }
        }
    }
}
