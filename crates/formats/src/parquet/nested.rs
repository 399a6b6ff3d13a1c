//! Decodes columns that the flat decoder does not support (nested columns, rare encodings and
//! types) through the Arrow reader.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::reader::{ChunkReader, Length};
use tessera_vector::CHUNK_ROWS;

use super::fetch::FetchedRanges;
use super::metadata::Metadata;

/// The rows decoded at once.
const BATCH_ROWS: usize = CHUNK_ROWS;

/// A root column of a row group. Errors are texts; the caller adds file and column.
pub(super) struct NestedColumn {
    reader: ParquetRecordBatchReader,
    /// The row ranges that the reader decodes.
    ranges: Arc<[Range<usize>]>,
    /// The number of rows that were consumed.
    passed: usize,
    current: Option<ArrayRef>,
}

/// Shared bytes in the form that the Arrow reader requires.
struct SharedBytes(Arc<FetchedRanges>);

impl Length for SharedBytes {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for SharedBytes {
    type T = <FetchedRanges as ChunkReader>::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        self.0.get_bytes(start, length)
    }
}

impl NestedColumn {
    /// Creates a decoder of the rows in `ranges`.
    pub(super) fn new(
        fetched: Arc<FetchedRanges>,
        metadata: &Metadata,
        group: usize,
        root: usize,
        ranges: Arc<[Range<usize>]>,
    ) -> Result<NestedColumn, String> {
        let rows = metadata.parquet.row_group(group).num_rows() as usize;
        let schema = metadata.parquet.file_metadata().schema_descr();
        let selection = RowSelection::from_consecutive_ranges(ranges.iter().cloned(), rows);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
            SharedBytes(fetched),
            metadata.arrow.clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(ProjectionMask::roots(schema, [root]))
        .with_batch_size(BATCH_ROWS)
        .with_row_selection(selection)
        .build()
        .map_err(|error| error.to_string())?;
        Ok(NestedColumn { reader, ranges, passed: 0, current: None })
    }

    /// Moves to `row`.
    pub(super) fn seek(&mut self, row: usize) -> Result<(), String> {
        let ordinal: usize =
            self.ranges.iter().map(|range| range.end.min(row).saturating_sub(range.start)).sum();
        while self.passed < ordinal {
            let current = self.current()?;
            let passed = current.len().min(ordinal - self.passed);
            self.current = Some(current.slice(passed, current.len() - passed));
            self.passed += passed;
        }
        Ok(())
    }

    /// Decodes the next `rows` rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<ArrayRef, String> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut missing = rows;
        while missing > 0 {
            let current = self.current()?;
            let taken = current.len().min(missing);
            parts.push(current.slice(0, taken));
            self.current = Some(current.slice(taken, current.len() - taken));
            missing -= taken;
        }
        self.passed += rows;
        match &parts[..] {
            [part] => Ok(part.clone()),
            _ => {
                let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
                concat(&parts).map_err(|error| error.to_string())
            }
        }
    }

    /// Returns decoded rows that were not consumed; not empty.
    fn current(&mut self) -> Result<ArrayRef, String> {
        loop {
            if let Some(current) = self.current.take()
                && !current.is_empty()
            {
                return Ok(current);
            }
            match self.reader.next() {
                Some(Ok(batch)) if batch.num_columns() == 1 => {
                    self.current = Some(batch.column(0).clone())
                }
                Some(Ok(_)) => return Err("the column is missing".to_string()),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err(format!("the column ends after {} rows", self.passed)),
            }
        }
    }
}
