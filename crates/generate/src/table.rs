//! Tables: a schema and chunks that can be generated in any order, on any thread.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

/// The target number of rows of a chunk, which is a row group: large enough for dictionaries to pay
/// off, small enough that a table of a million rows uses every core (49 row groups in `lineitem` at
/// scale factor 1).
pub(crate) const CHUNK_ROWS: u64 = 122_880;

/// The number of rows of a batch inside a chunk.
pub(crate) const BATCH_ROWS: usize = 8_192;

/// The batches of one chunk.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// A table of a suite.
pub(crate) struct Table {
    /// The name.
    pub(crate) name: &'static str,
    /// The columns.
    pub(crate) schema: SchemaRef,
    /// The number of chunks, at least one.
    pub(crate) chunks: u32,
    /// The number of rows; an estimate for tables with a random number of lines per order.
    pub(crate) rows_expected: u64,
    /// Generates the chunk with this zero-based number.
    pub(crate) batches: Box<dyn Fn(u32) -> Batches + Sync>,
}

impl Table {
    /// Declares all columns nullable or not nullable.
    pub(crate) fn declare(&mut self, nullable: bool) {
        let fields =
            self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(nullable));
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    }
}

/// Returns the number of chunks of [`CHUNK_ROWS`] that hold `rows`.
pub(crate) fn chunks_for(rows: u64) -> u32 {
    u32::try_from(rows.div_ceil(CHUNK_ROWS).max(1)).unwrap_or(u32::MAX)
}
