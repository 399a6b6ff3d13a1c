//! A table as the writer sees it: a schema and chunks that can be made in any order, on any thread.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

/// Rows a chunk aims at, and so rows of a row group: large enough for dictionaries to pay, small
/// enough that a table of a million rows keeps every core busy (49 row groups in `lineitem` at
/// scale factor 1).
pub(crate) const CHUNK_ROWS: u64 = 122_880;

/// Rows of a batch inside a chunk.
pub(crate) const BATCH_ROWS: usize = 8_192;

/// The batches of one chunk.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// One table of a suite.
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its columns.
    pub(crate) schema: SchemaRef,
    /// How many chunks make it up; at least one.
    pub(crate) chunks: u32,
    /// Rows of all chunks; an estimate for tables with a random number of lines an order.
    pub(crate) rows_expected: u64,
    /// Makes the chunk of that number, from 0.
    pub(crate) batches: Box<dyn Fn(u32) -> Batches + Sync>,
}

impl Table {
    /// Declares that all columns may be NULL, or that none may.
    pub(crate) fn declare(&mut self, nullable: bool) {
        let fields =
            self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(nullable));
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    }
}

/// How many chunks of [`CHUNK_ROWS`] hold `rows`.
pub(crate) fn chunks_for(rows: u64) -> u32 {
    u32::try_from(rows.div_ceil(CHUNK_ROWS).max(1)).unwrap_or(u32::MAX)
}
