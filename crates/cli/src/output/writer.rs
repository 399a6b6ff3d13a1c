//! Rows for programs in binary formats, a batch at a time.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use tessera_formats::parquet::Written;
use tessera_session::ResultStream;
use tessera_types::unique_names;

use super::Failure;

/// Writes the batches of one result in a binary format. The schema has a number behind names that
/// repeat: readers look columns up by name.
pub(super) enum RowWriter<'a, W: Write + Send> {
    Arrow(Box<StreamWriter<&'a mut W>>, SchemaRef),
    Parquet(Box<ArrowWriter<&'a mut W>>, Written, SchemaRef),
}

impl<'a, W: Write + Send> RowWriter<'a, W> {
    /// Begins a result as Parquet, or as an Arrow stream.
    pub(super) fn new(
        out: &'a mut W,
        is_parquet: bool,
        rows: &ResultStream,
    ) -> Result<Self, Failure> {
        let schema = distinct(rows);
        if !is_parquet {
            return Ok(RowWriter::Arrow(Box::new(StreamWriter::try_new(out, &schema)?), schema));
        }
        let written = Written::new(schema.clone());
        let writer =
            ArrowWriter::try_new_with_options(out, written.schema().clone(), written.options()?)?;
        Ok(RowWriter::Parquet(Box::new(writer), written, schema))
    }

    pub(super) fn write(&mut self, batch: RecordBatch) -> Result<(), Failure> {
        match self {
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
            RowWriter::Arrow(writer, _) => writer.flush()?,
            // Row groups are written when they are large enough.
            RowWriter::Parquet(..) => {}
        }
        Ok(())
    }

    /// No more batches come.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            RowWriter::Arrow(mut writer, _) => writer.finish()?,
            RowWriter::Parquet(writer, ..) => {
                writer.close()?;
            }
        }
        Ok(())
    }
}

pub(super) fn distinct(rows: &ResultStream) -> SchemaRef {
    let schema = rows.schema();
    let fields = schema.fields().iter().zip(unique_names(rows.names()));
    Arc::new(Schema::new(
        fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
    ))
}

pub(super) fn renamed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}
