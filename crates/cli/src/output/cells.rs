//! Values as text: dates ISO, decimals exact, bytes in hexadecimal.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use tessera_session::{Error, Result};

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_duration_format(DurationFormat::Pretty);

/// Writes the values of one column of a batch.
pub(super) enum Cells<'a> {
    Strings(&'a ArrayRef),
    Bytes(&'a ArrayRef),
    Other(&'a ArrayRef, ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    pub(super) fn new(array: &'a ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Utf8View => Cells::Strings(array),
            DataType::BinaryView => Cells::Bytes(array),
            _ => Cells::Other(array, ArrayFormatter::try_new(array, &OPTIONS)?),
        })
    }

    /// Whether the value is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            Cells::Strings(array) | Cells::Bytes(array) => array.is_null(row),
            Cells::Other(array, _) => array.is_null(row) || *array.data_type() == DataType::Null,
        }
    }

    /// Appends the value, which is not NULL.
    pub(super) fn append(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Cells::Strings(array) => out.push_str(array.as_string_view().value(row)),
            Cells::Bytes(array) => {
                out.push_str("\\x");
                for byte in array.as_binary_view().value(row) {
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Cells::Other(_, formatter) => {
                formatter.value(row).write(out).map_err(|error| Error::data(error.to_string()))?;
            }
        }
        Ok(())
    }
}

/// Whether values of a type line up at their last digit.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}
