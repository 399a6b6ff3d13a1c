//! What a statement gives, complete.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

/// What a statement gives.
#[derive(Debug, Clone)]
pub enum StatementResult {
    /// Rows: of a query, `SHOW` or `DESCRIBE`.
    Rows(QueryResult),
    /// Text for people: of `EXPLAIN`.
    Text(String),
    /// What was done, in a few words: `COPY 25`. Empty where rows went to the standard output,
    /// which holds nothing else then.
    Done(String),
}

/// The columns of a result.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub(crate) tuple: Tuple,
    pub(crate) names: Vec<String>,
    pub(crate) schema: SchemaRef,
}

impl Columns {
    pub(crate) fn new(tuple: Tuple, names: Vec<String>) -> Result<Columns> {
        let plain = tuple.arrow_schema()?;
        let fields = plain.fields().iter().zip(&names);
        let schema = Schema::new(
            fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
        );
        Ok(Columns { tuple, names, schema: Arc::new(schema) })
    }

    /// A chunk's rows in plain forms.
    pub(crate) fn batch(&self, chunk: &Chunk) -> Result<RecordBatch> {
        let arrays =
            (0..chunk.width()).map(|i| chunk.column(i)?.plain()).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }
}

/// The rows of a query, complete.
#[derive(Debug, Clone)]
pub struct QueryResult {
    columns: Columns,
    chunks: Arc<[Chunk]>,
    /// From the statement's text to its last row.
    pub elapsed: Duration,
}

impl QueryResult {
    pub(crate) fn new(columns: Columns, chunks: Vec<Chunk>, elapsed: Duration) -> Self {
        QueryResult { columns, chunks: chunks.into(), elapsed }
    }

    /// The type of the rows; field names are unique.
    pub fn tuple(&self) -> &Tuple {
        &self.columns.tuple
    }

    /// The names the columns are shown under; may repeat.
    pub fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// The Arrow schema of the batches, with the names that are shown.
    pub fn schema(&self) -> SchemaRef {
        self.columns.schema.clone()
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.chunks.iter().map(Chunk::rows).sum()
    }

    /// The rows, in order, as Arrow batches in plain forms.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.chunks.iter().filter(|chunk| !chunk.is_empty()).map(|chunk| self.columns.batch(chunk))
    }
}
