//! Rows as people and programs read them.

mod csv;
mod table;

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use tessera_ops::scan::parquet::Written;
use tessera_session::{Error, QueryResult};
use tessera_types::unique_names;

use crate::arguments::Format;

/// Why rows were not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader has gone, which is none of our business.
    Closed,
    /// Another reason, to be shown.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Error(Error::io(format!("cannot write the result: {error}"))),
        }
    }
}

impl From<arrow::error::ArrowError> for Failure {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::IoError(_, source) => source.into(),
            other => Failure::Error(other.into()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => (*source).into(),
                Err(source) => Failure::Error(Error::data(format!("cannot write Parquet: {source}"))),
            },
            other => Failure::Error(Error::data(format!("cannot write Parquet: {other}"))),
        }
    }
}

/// Writes results one after the other in one format.
#[derive(Debug)]
pub(crate) struct Printer<W> {
    out: W,
    format: Format,
    /// The most rows of a table; the rest is only counted.
    pub(crate) rows_max: usize,
    written: usize,
}

impl<W: Write + Send> Printer<W> {
    pub(crate) fn new(out: W, format: Format) -> Self {
        Printer { out, format, rows_max: usize::MAX, written: 0 }
    }

    /// Writes rows and flushes.
    ///
    /// # Errors
    /// The output is closed or cannot be written; or a second result for a format that holds one.
    pub(crate) fn rows(&mut self, result: &QueryResult) -> Result<(), Failure> {
        if self.format.is_binary() && self.written > 0 {
            return Err(Failure::Error(Error::unsupported(format!(
                "a second result with --format {}: the output holds one; run one query at a time",
                self.format.name()
            ))));
        }
        self.written += 1;
        match self.format {
            Format::Table => table::write(&mut self.out, result, self.rows_max)?,
            Format::Csv => csv::write(&mut self.out, result)?,
            Format::Json => {
                let mut writer = arrow::json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, arrow::json::writer::LineDelimited>(&mut self.out);
                for batch in renamed(result) {
                    writer.write(&batch?)?;
                }
                writer.finish()?;
            }
            Format::Arrow => {
                let mut writer = arrow::ipc::writer::StreamWriter::try_new(&mut self.out, &distinct(result))?;
                for batch in renamed(result) {
                    writer.write(&batch?)?;
                }
                writer.finish()?;
            }
            Format::Parquet => {
                let written = Written::new(distinct(result));
                let (schema, options) = (written.schema().clone(), written.options()?);
                let mut writer = ArrowWriter::try_new_with_options(&mut self.out, schema, options)?;
                for batch in renamed(result) {
                    writer.write(&written.batch(batch?)?)?;
                }
                writer.close()?;
            }
        }
        Ok(self.out.flush()?)
    }

    /// Writes text for people; programs that read rows see it too, as there is nothing else to see.
    ///
    /// # Errors
    /// The output is closed or cannot be written.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out.flush()?)
    }

    /// Says what a statement without rows did, where a person reads.
    ///
    /// # Errors
    /// The output is closed or cannot be written.
    pub(crate) fn done(&mut self, text: &str) -> Result<(), Failure> {
        if self.format == Format::Table && !text.is_empty() { self.text(text) } else { Ok(()) }
    }
}

/// The schema with a number behind names that repeat: readers of these formats look columns up by name.
fn distinct(result: &QueryResult) -> SchemaRef {
    let schema = result.schema();
    let fields = schema.fields().iter().zip(unique_names(result.names()));
    Arc::new(Schema::new(
        fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
    ))
}

fn renamed(result: &QueryResult) -> impl Iterator<Item = Result<RecordBatch, Failure>> + '_ {
    let schema = distinct(result);
    result.batches().map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    })
}
