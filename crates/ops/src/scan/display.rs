//! Values as text, the same in every text format: dates ISO, decimals exact, bytes in hexadecimal.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

use tessera_types::{Error, Result};

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_duration_format(DurationFormat::Pretty);

/// The values of one column of a batch, as text.
pub(crate) enum Texts<'a> {
    Strings(&'a ArrayRef),
    Bytes(&'a ArrayRef),
    Other(&'a ArrayRef, ArrayFormatter<'a>),
}

impl<'a> Texts<'a> {
    pub(crate) fn new(array: &'a ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Utf8View => Texts::Strings(array),
            DataType::BinaryView => Texts::Bytes(array),
            _ => Texts::Other(array, ArrayFormatter::try_new(array, &OPTIONS)?),
        })
    }

    /// Whether the value is NULL.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Texts::Strings(array) | Texts::Bytes(array) => array.is_null(row),
            Texts::Other(array, _) => array.is_null(row) || *array.data_type() == DataType::Null,
        }
    }

    /// Appends the value, which is not NULL.
    pub(crate) fn append(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Texts::Strings(array) => out.push_str(array.as_string_view().value(row)),
            Texts::Bytes(array) => {
                out.push_str("\\x");
                for byte in array.as_binary_view().value(row) {
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Texts::Other(_, formatter) => {
                formatter.value(row).write(out).map_err(|error| Error::data(error.to_string()))?;
            }
        }
        Ok(())
    }
}
