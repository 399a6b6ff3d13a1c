//! Rows for programs, a batch at a time.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{LineDelimited, Writer, WriterBuilder};
use parquet::arrow::ArrowWriter;
use tessera_ops::scan::csv::{write_batch, write_header};
use tessera_ops::scan::parquet::Written;
use tessera_session::ResultStream;
use tessera_types::unique_names;

use super::Failure;
use crate::arguments::Format;

/// Writes the batches of one result. The schema of all but CSV has a number behind names that repeat: readers of these
/// formats look columns up by name.
pub(super) enum RowWriter<'a, W: Write + Send> {
    /// A header line; NULL is nothing, the empty string `""`.
    Csv(&'a mut W, Vec<u8>),
    Json(Writer<&'a mut W, LineDelimited>, SchemaRef),
    Arrow(StreamWriter<&'a mut W>, SchemaRef),
    Parquet(Box<ArrowWriter<&'a mut W>>, Written, SchemaRef),
}

impl<'a, W: Write + Send> RowWriter<'a, W> {
    /// Begins a result. The table for people is written elsewhere.
    pub(super) fn new(out: &'a mut W, format: Format, rows: &ResultStream) -> Result<Self, Failure> {
        let schema = distinct(rows);
        Ok(match format {
            Format::Csv | Format::Table => {
                let mut text = Vec::new();
                write_header(&rows.schema(), &mut text)?;
                out.write_all(&text)?;
                RowWriter::Csv(out, text)
            }
            Format::Json => {
                RowWriter::Json(WriterBuilder::new().with_explicit_nulls(true).build(out), schema)
            }
            Format::Arrow => RowWriter::Arrow(StreamWriter::try_new(out, &schema)?, schema),
            Format::Parquet => {
                let written = Written::new(schema.clone());
                let writer =
                    ArrowWriter::try_new_with_options(out, written.schema().clone(), written.options()?)?;
                RowWriter::Parquet(Box::new(writer), written, schema)
            }
        })
    }

    pub(super) fn write(&mut self, batch: RecordBatch) -> Result<(), Failure> {
        match self {
            RowWriter::Csv(out, text) => {
                text.clear();
                write_batch(&batch, text)?;
                out.write_all(text)?;
            }
            RowWriter::Json(writer, schema) => writer.write(&renamed(batch, schema)?)?,
            RowWriter::Arrow(writer, schema) => writer.write(&renamed(batch, schema)?)?,
            RowWriter::Parquet(writer, written, schema) => {
                writer.write(&written.batch(renamed(batch, schema)?)?)?;
            }
        }
        Ok(())
    }

    /// Passes on what is complete.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            RowWriter::Csv(out, _) => out.flush()?,
            RowWriter::Json(writer, _) => writer.get_mut().flush()?,
            RowWriter::Arrow(writer, _) => writer.flush()?,
            // Row groups are written when they are large enough.
            RowWriter::Parquet(..) => {}
        }
        Ok(())
    }

    /// No more batches come.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            RowWriter::Csv(..) => {}
            RowWriter::Json(mut writer, _) => writer.finish()?,
            RowWriter::Arrow(mut writer, _) => writer.finish()?,
            RowWriter::Parquet(writer, ..) => {
                writer.close()?;
            }
        }
        Ok(())
    }
}

fn distinct(rows: &ResultStream) -> SchemaRef {
    let schema = rows.schema();
    let fields = schema.fields().iter().zip(unique_names(rows.names()));
    Arc::new(Schema::new(
        fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
    ))
}

fn renamed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}
