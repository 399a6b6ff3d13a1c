//! Binary output: Arrow streams and Parquet.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use tessera_formats::parquet::WriterSchema;
use tessera_session::ResultStream;
use tessera_types::unique_names;

use super::Failure;

/// Writes one result in a binary format. Repeated column names get a number, because readers look
/// up columns by name.
pub(super) enum RowWriter<'a, W: Write + Send> {
    Arrow(Box<StreamWriter<&'a mut W>>, SchemaRef),
    Parquet(Box<ArrowWriter<&'a mut W>>, WriterSchema, SchemaRef),
}

impl<'a, W: Write + Send> RowWriter<'a, W> {
    /// Starts a result as Parquet or as an Arrow stream.
    pub(super) fn new(
        out: &'a mut W,
        is_parquet: bool,
        rows: &ResultStream,
    ) -> Result<Self, Failure> {
        let schema = unique_schema(rows);
        if !is_parquet {
            return Ok(RowWriter::Arrow(Box::new(StreamWriter::try_new(out, &schema)?), schema));
        }
        let conversion = WriterSchema::new(schema.clone());
        let writer = ArrowWriter::try_new_with_options(
            out,
            conversion.schema().clone(),
            conversion.options()?,
        )?;
        Ok(RowWriter::Parquet(Box::new(writer), conversion, schema))
    }

    pub(super) fn write(&mut self, batch: RecordBatch) -> Result<(), Failure> {
        match self {
            RowWriter::Arrow(writer, schema) => writer.write(&renamed(batch, schema)?)?,
            RowWriter::Parquet(writer, conversion, schema) => {
                writer.write(&conversion.batch(renamed(batch, schema)?)?)?;
            }
        }
        Ok(())
    }

    /// Flushes complete data.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            RowWriter::Arrow(writer, _) => writer.flush()?,
            // The writer flushes full row groups itself.
            RowWriter::Parquet(..) => {}
        }
        Ok(())
    }

    /// Ends the result.
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

/// The schema with unique column names.
pub(super) fn unique_schema(rows: &ResultStream) -> SchemaRef {
    let schema = rows.schema();
    let fields = schema.fields().iter().zip(unique_names(rows.names()));
    Arc::new(Schema::new(
        fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>(),
    ))
}

/// The batch with the column names of a schema.
pub(super) fn renamed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}
