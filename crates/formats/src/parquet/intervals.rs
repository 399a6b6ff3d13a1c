//! Intervals and UUIDs in written Parquet files, which store months, days and milliseconds as
//! non-negative numbers. Arrow's writer does not support them: it gets a schema in which they are
//! bytes, and the file's schema has their logical types.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, ListArray, MapArray, RecordBatch,
    RecordBatchOptions, StructArray,
};
use arrow::datatypes::{
    DataType, FieldRef, Fields, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Schema,
};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;

use tessera_types::{Error, Result, SqlState, Tuple};
use tessera_values::hidden_values::clear_hidden_values;
use tessera_values::plain::PARQUET_INTERVAL_BYTES;

use crate::file::{uuids, with_types};

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;

/// The schemas of columns written to a Parquet file.
#[derive(Debug, Clone)]
pub struct WriterSchema {
    /// The schema for Arrow's writer, in which intervals are bytes.
    schema: Arc<Schema>,
    /// The logical schema; `None` if it equals that of Arrow's writer.
    logical: Option<Arc<Schema>>,
}

impl WriterSchema {
    /// Prepares columns of these types.
    pub fn new(schema: Arc<Schema>) -> WriterSchema {
        WriterSchema::of_logical(schema.clone(), &schema)
    }

    /// Prepares the columns of a tuple.
    ///
    /// # Errors
    /// A field holds a collection.
    pub(crate) fn of_tuple(tuple: &Tuple) -> Result<WriterSchema> {
        Ok(WriterSchema::of_logical(uuids::written_schema(tuple)?, &tuple.arrow_schema()?))
    }

    fn of_logical(logical: Arc<Schema>, plain: &Schema) -> WriterSchema {
        let stored_fields: Fields = logical.fields().iter().map(stored_field).collect();
        match stored_fields == *plain.fields() {
            true => WriterSchema { schema: logical, logical: None },
            false => WriterSchema {
                schema: Arc::new(Schema::new(stored_fields)),
                logical: Some(logical),
            },
        }
    }

    /// The schema for Arrow's writer.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the options of Arrow's writer for a file with these columns.
    ///
    /// # Errors
    /// A type has no Parquet form.
    pub fn options(&self) -> Result<ArrowWriterOptions> {
        let options = ArrowWriterOptions::new();
        match &self.logical {
            None => Ok(options),
            Some(logical) => ArrowSchemaConverter::new()
                .convert(logical)
                .and_then(|types| uuids::with_logical_types(&types, logical))
                .map(|types| options.with_parquet_schema(types))
                .map_err(|error| Error::io(format!("cannot write Parquet: {error}"))),
        }
    }

    /// Converts a batch to the schema of Arrow's writer.
    ///
    /// # Errors
    /// Parquet cannot represent an interval.
    pub fn batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.logical.is_none() {
            return Ok(batch);
        }
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns =
            columns.map(|(column, field)| match column.data_type() == field.data_type() {
                true => Ok(column.clone()),
                // Values behind NULLs may have no Parquet form, so they are cleared.
                false => stored(&clear_hidden_values(column)?, field.data_type()),
            });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

fn stored_field(field: &FieldRef) -> FieldRef {
    with_types(field, &|field| {
        let is_interval = *field.data_type() == DataType::Interval(IntervalUnit::MonthDayNano);
        is_interval.then_some(DataType::FixedSizeBinary(PARQUET_INTERVAL_BYTES))
    })
}

/// Converts values to the form in which files store them.
pub(crate) fn stored(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match to {
        _ if array.data_type() == to => Ok(array.clone()),
        DataType::List(item) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = stored(&values, item.data_type())?;
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?))
        }
        DataType::Map(entries, ordered) => {
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let pairs: ArrayRef = Arc::new(pairs);
            let pairs = stored(&pairs, entries.data_type())?.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *ordered)?))
        }
        DataType::Struct(fields) => {
            let (_, columns, nulls) = array.as_struct().clone().into_parts();
            let columns =
                columns.iter().zip(fields).map(|(column, field)| stored(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                array.len(),
            )?))
        }
        _ if *to == uuids::STORED => uuids::stored_values(array),
        _ => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            let mut bytes =
                FixedSizeBinaryBuilder::with_capacity(array.len(), PARQUET_INTERVAL_BYTES);
            for interval in intervals {
                match interval {
                    Some(interval) => bytes.append_value(stored_interval(interval)?)?,
                    None => bytes.append_null(),
                }
            }
            Ok(Arc::new(bytes.finish()))
        }
    }
}

/// Encodes an interval for Parquet. Hours whose milliseconds exceed 32 bits become days.
fn stored_interval(interval: IntervalMonthDayNano) -> Result<[u8; 12]> {
    let fails = |why: &str| {
        let what = format!("an interval {why} cannot be written to Parquet; cast it to varchar");
        Error::data(what).with_state(SqlState::INTERVAL_FIELD_OVERFLOW)
    };
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    if nanoseconds % 1_000_000 != 0 {
        return Err(fails("with parts of a millisecond"));
    }
    let mut days = i64::from(days);
    let mut milliseconds = nanoseconds / 1_000_000;
    if milliseconds > i64::from(u32::MAX) {
        days += milliseconds / DAY_MILLISECONDS;
        milliseconds %= DAY_MILLISECONDS;
    }
    let mut bytes = [0; 12];
    for (part, bytes) in
        [i64::from(months), days, milliseconds].into_iter().zip(bytes.chunks_exact_mut(4))
    {
        let part = u32::try_from(part).map_err(|_| fails("with a negative part"))?;
        bytes.copy_from_slice(&part.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_parquet_can_hold() {
        let hour = 3_600_000_000_000;
        let parts = |months, days, nanoseconds| {
            let bytes = stored_interval(IntervalMonthDayNano::new(months, days, nanoseconds))?;
            let parts = bytes.chunks_exact(4).filter_map(|bytes| bytes.first_chunk::<4>());
            Ok::<_, Error>(parts.map(|bytes| u32::from_le_bytes(*bytes)).collect::<Vec<_>>())
        };
        assert_eq!(parts(13, 2, 1_500_000_000).unwrap(), [13, 2, 1_500]);
        assert_eq!(parts(0, 1, 30 * hour).unwrap(), [0, 1, 108_000_000]);
        assert_eq!(parts(0, 1, 2_000 * hour).unwrap(), [0, 84, 28_800_000]);
        for (months, days, nanoseconds) in [(-1, 0, 0), (0, -1, 0), (0, 0, -hour), (0, 0, 1_000)] {
            assert!(parts(months, days, nanoseconds).is_err());
        }
    }
}
