//! Reads a morsel: some rows of a row group.
//!
//! Rows are processed in batches. The predicate's columns are decoded first. A conjunct over one
//! dictionary-encoded column becomes a mask of its dictionary; other conjuncts are evaluated one
//! after the other on the remaining rows. Other columns are decoded only for batches with remaining
//! rows, and their bytes are fetched when the first such batch is reached (late materialization).
//!
//! If the bytes of a local file exceed the memory budget, they are not fetched in advance: each
//! page is read when it is decoded. Pages that exceed the budget are closed (see `open_pages`).

mod column_bytes;
mod open_pages;
mod selection;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::datatypes::DataType;

use tessera_context::guard::guarded;
use tessera_context::{RangeReader, Reservation};
use tessera_operator::stream_util::{Cutter, Packer};
use tessera_operator::{Reader, Step};
use tessera_state::sideways::ReceivedFilter;
use tessera_types::{Error, Result, quote_name};
use tessera_vector::{CHUNK_ROWS, Chunk, Column};

use super::fetch::FetchedRanges;
use super::flat::{Decoded, FlatColumn, RowGroupState, is_supported};
use super::metadata::damaged;
use super::nested::NestedColumn;
use super::{FileState, ScanRun, SourceColumn};
use crate::file::{check_nulls, convert};
use open_pages::OpenPages;

/// The rows decoded at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// The values decoded at once, which limits the rows of wide tables.
const BATCH_VALUES: usize = 256 * CHUNK_ROWS;
/// The fewest rows decoded at once: fewer would not be worth opening a page.
const BATCH_ROWS_MIN: usize = CHUNK_ROWS / 8;
/// The divisor of the memory budget for one chunk, assuming values of `VALUE_BYTES`. It limits the
/// rows decoded at once.
const CHUNK_SHARE: usize = 16;
const VALUE_BYTES: usize = 16;
const CHUNK_ROWS_MIN: usize = 256;

/// Rows of a row group, read by one worker.
#[derive(Debug, Clone)]
pub(super) struct Morsel {
    pub(super) file: usize,
    pub(super) group: usize,
    /// Rows of the group, ascending.
    pub(super) ranges: Arc<[Range<usize>]>,
    pub(super) shared: Arc<RowGroupState>,
}

pub(super) struct MorselReader {
    scan: Arc<ScanRun>,
    morsel: Morsel,
    source: Option<Arc<dyn RangeReader>>,
    fetched: Arc<FetchedRanges>,
    /// The columns (and their roots in the file) whose bytes are being fetched.
    opening: Vec<(usize, usize)>,
    /// The ranges that have not arrived, the first one last.
    pending: Vec<Range<u64>>,
    reservation: Reservation,
    columns: Vec<ColumnState>,
    open_pages: OpenPages,
    batch_rows: usize,
    chunk_rows: usize,
    /// The next range, and the next row within the row group.
    next: (usize, usize),
    batch: Option<Batch>,
    /// Key filters, and a buffer for hashes.
    filters: Vec<ReceivedFilter>,
    hashes: Vec<u64>,
    /// The number of rows that were decoded and then dropped by filters.
    dropped: u64,
    /// The time spent on decompressing and decoding.
    decoding: Duration,
    packer: Packer,
    cutter: Cutter,
    done: bool,
}

enum ColumnState {
    Waiting,
    /// The bytes are present. The column is opened when it is read, because its dictionary may be
    /// large.
    Closed,
    Flat(Box<FlatColumn>),
    Nested(Box<NestedColumn>),
}

/// A batch whose predicate columns were decoded.
struct Batch {
    start: usize,
    rows: usize,
    selection: Option<Vec<u32>>,
    /// The columns that the predicate has decoded.
    loaded: Vec<Option<BatchColumn>>,
}

impl MorselReader {
    pub(super) fn new(
        scan: Arc<ScanRun>,
        morsel: Morsel,
        filters: Vec<ReceivedFilter>,
    ) -> MorselReader {
        let start = morsel.ranges.first().map_or(0, |range| range.start);
        let context = scan.run.context.clone();
        let columns = scan.parameters.fields.len().max(1);
        let chunk_rows = context.memory_bytes() / CHUNK_SHARE / VALUE_BYTES / columns;
        let chunk_rows = chunk_rows.max(CHUNK_ROWS_MIN).min(context.chunk_rows());
        MorselReader {
            source: None,
            fetched: Arc::new(FetchedRanges::new(scan.files[morsel.file].len)),
            opening: Vec::new(),
            pending: Vec::new(),
            reservation: Reservation::new(context.clone()),
            columns: scan
                .parameters
                .columns
                .fields()
                .iter()
                .map(|_| ColumnState::Waiting)
                .collect(),
            open_pages: OpenPages::new(context.clone(), scan.parameters.columns.fields().len()),
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

    fn open_column(&self, root: usize) -> Result<ColumnState, String> {
        let metadata = &self.file().metadata;
        let group = metadata.parquet.row_group(self.morsel.group);
        let (arrow, atom) =
            (metadata.arrow.schema().field(root).data_type(), metadata.tuple.fields()[root].atom());
        let atom = atom.ok_or("the column has no value type")?;
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
        let name = quote_name(&self.scan.parameters.columns.fields()[column].name);
        damaged(
            &self.file().path,
            format!("column {name} in row group {}: {error}", self.morsel.group),
        )
    }

    /// Decodes rows of an open column.
    fn decode(&mut self, column: usize, start: usize, rows: usize) -> Result<BatchColumn> {
        self.timed(|reader| reader.loaded(column, start, rows))
    }

    /// Adds the duration of `work` to the decoding time.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let begun = Instant::now();
        let done = work(self);
        self.decoding += begun.elapsed();
        done
    }

    fn loaded(&mut self, column: usize, start: usize, rows: usize) -> Result<BatchColumn> {
        let scan = self.scan.clone();
        let file = &scan.files[self.morsel.file];
        let field = &scan.parameters.columns.fields()[column];
        let found = match &file.columns[column] {
            SourceColumn::Constant(value) => {
                return Ok(BatchColumn::Column(Column::Constant(value.clone(), rows)));
            }
            SourceColumn::RowNumber => {
                let first = file.metadata.rows_before(self.morsel.group) + start as i64;
                let numbers = Int64Array::from_iter_values(first..first + rows as i64);
                return Ok(BatchColumn::Column(Column::new(Arc::new(numbers))));
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
                        return Ok(BatchColumn::Flat(decoded));
                    }
                    Ok(decoded) if Some(found) == field.atom() && !decoded.has_nulls() => {
                        return Ok(BatchColumn::Flat(decoded));
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
            field.atom().ok_or_else(|| Error::internal("a file column has a collection type"))?;
        let array = convert(array, found, declared).map_err(|error| {
            error.context(format!("column {} of '{}'", quote_name(&field.name), file.path))
        })?;
        check_nulls(array.as_ref(), field.nullable, &file.path, &field.name)?;
        Ok(BatchColumn::Column(Column::new(array)))
    }

    fn finish(&mut self, column: usize, loaded: BatchColumn) -> Result<Column> {
        self.timed(|reader| match (loaded, &reader.columns[column]) {
            (BatchColumn::Column(column), _) => Ok(column),
            (BatchColumn::Flat(decoded), ColumnState::Flat(flat)) => {
                flat.finish(decoded).map_err(|error| reader.failed(column, error))
            }
            _ => Err(Error::internal("a column was finished by another decoder")),
        })
    }

    /// Closes a column whose pages exceed the budget, after copying its values out of the pages.
    fn settle(&mut self, column: usize, values: Column) -> Result<Column> {
        let ColumnState::Flat(flat) = &self.columns[column] else { return Ok(values) };
        if self.open_pages.keep(column, flat.open_bytes()) {
            return Ok(values);
        }
        flat.drop_dictionary();
        self.columns[column] = ColumnState::Closed;
        Ok(Column::Plain(without_pages(values.plain()?)))
    }

    /// Decodes the remaining columns of a batch. If many rows were dropped, only the others are
    /// decoded, so that later sub-operators never touch the dropped rows.
    fn complete(&mut self, batch: Batch) -> Result<()> {
        let Batch { start, rows, selection, mut loaded } = batch;
        let scan = self.scan.clone();
        let few = selection.as_ref().filter(|selection| selection.len() * 4 <= rows * 3);
        let positions = few.map(|few| UInt32Array::from(few.clone()));
        let mut yielded = Vec::with_capacity(scan.parameters.fields.len());
        for &column in &scan.parameters.fields {
            let value = match loaded[column].take() {
                Some(value) => value,
                None => self.decode(column, start, rows)?,
            };
            let value = match (value, &positions) {
                (BatchColumn::Flat(decoded), Some(positions)) => {
                    BatchColumn::Flat(decoded.keep(positions.values()))
                }
                (BatchColumn::Column(column), Some(positions)) => {
                    BatchColumn::Column(column.take(positions)?)
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
            if let Some(piece) = self.cutter.pop_packed(&mut self.packer, self.chunk_rows) {
                return Ok(Step::HasOutput(piece));
            }
            if self.done {
                return Ok(Step::Done);
            }
            self.scan.run.context.check()?;
            let scan = self.scan.clone();
            if self.batch.is_none() {
                if let Some(token) = self.open_filter_columns()? {
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
                Some(batch) => match self.open(&scan.parameters.fields)? {
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

/// Copies strings out of their pages; other values do not refer to pages.
fn without_pages(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// A column of a batch: decoded, or in its final form.
enum BatchColumn {
    Flat(Decoded),
    Column(Column),
}

impl Reader for MorselReader {
    fn step(&mut self) -> Result<Step> {
        // The decompression and Arrow libraries may panic on bytes that no writer produces; this is
        // reported as a damaged file.
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
