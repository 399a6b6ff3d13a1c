//! Complete results of statements.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

/// The complete result of a statement.
#[derive(Debug, Clone)]
pub enum StatementResult {
    /// Rows of a query, `SHOW` or `DESCRIBE`.
    Rows(QueryResult),
    /// Text of `EXPLAIN`.
    Text(String),
    /// A summary of the work, such as `COPY 25`. Empty if `COPY` wrote rows to the standard output,
    /// which then contains only them.
    Done(String),
}

/// The columns of a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultColumns {
    pub(crate) tuple: Tuple,
    pub(crate) names: Vec<String>,
    pub(crate) schema: SchemaRef,
}

impl ResultColumns {
    pub(crate) fn new(tuple: Tuple, names: Vec<String>) -> Result<ResultColumns> {
        let plain = tuple.arrow_schema()?;
        let fields = plain.fields().iter().zip(&names);
        let schema = Schema::new(
            fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
        );
        Ok(ResultColumns { tuple, names, schema: Arc::new(schema) })
    }

    /// Converts a chunk to a batch of unencoded arrays.
    pub(crate) fn batch(&self, chunk: &Chunk) -> Result<RecordBatch> {
        let arrays =
            (0..chunk.width()).map(|i| chunk.column(i)?.plain()).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }
}

/// All rows of a query.
#[derive(Debug, Clone)]
pub struct QueryResult {
    columns: ResultColumns,
    chunks: Arc<[Chunk]>,
    /// The time from parsing the statement to its last row.
    pub elapsed: Duration,
}

impl QueryResult {
    pub(crate) fn new(columns: ResultColumns, chunks: Vec<Chunk>, elapsed: Duration) -> Self {
        QueryResult { columns, chunks: chunks.into(), elapsed }
    }

    /// The type of the rows. Field names are unique.
    pub fn tuple(&self) -> &Tuple {
        &self.columns.tuple
    }

    /// The column names to show. They may repeat.
    pub fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// The Arrow schema of the batches, with the names to show.
    pub fn schema(&self) -> SchemaRef {
        self.columns.schema.clone()
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.chunks.iter().map(Chunk::rows).sum()
    }

    /// The rows, in order, as Arrow batches of unencoded arrays.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.chunks.iter().filter(|chunk| !chunk.is_empty()).map(|chunk| self.columns.batch(chunk))
    }
}
