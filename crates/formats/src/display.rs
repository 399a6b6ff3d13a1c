//! Values as text, the same in every text format: ISO dates, exact decimals, hexadecimal bytes.

use std::fmt::{self, Write};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int64Type,
    TimeUnit,
};
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

use tessera_types::{Atom, Error, Result};
use tessera_values::digits::{Text, push_decimal, push_whole};
use tessera_values::format::{decimal_text, format_array, quote_element, write_date};
use tessera_values::format_float::{FloatStyle, write_double, write_single};

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_duration_format(DurationFormat::Pretty);

/// The values of one column of a batch (in plain forms) as text.
pub struct ColumnText<'a> {
    array: &'a ArrayRef,
    form: Form<'a>,
    nulls: Option<NullBuffer>,
}

enum Form<'a> {
    Strings,
    /// Integers, converted to 64 bits.
    Integers(ArrayRef),
    Dates,
    /// Decimals and their scale.
    Decimals64(u32),
    Decimals128(u32),
    Bytes,
    /// Values as casts to string write them.
    Cast(ArrayRef),
    Float32,
    Float64,
    /// The items of lists, and the offset of each list.
    List(Box<ColumnText<'a>>, &'a [i32]),
    /// The fields of structs, with their names.
    Struct(Vec<(&'a str, ColumnText<'a>)>),
    /// The keys and values of maps, and the offset of each map.
    Map(Box<[ColumnText<'a>; 2]>, &'a [i32]),
    Other(ArrayFormatter<'a>),
    /// Like [`Form::Other`] inside the calendar range of the library, and as casts to string
    /// outside.
    OutOfCalendar {
        formatter: ArrayFormatter<'a>,
        texts: ArrayRef,
        is_outside: BooleanBuffer,
    },
}

impl fmt::Debug for ColumnText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnText").field("array", self.array).finish_non_exhaustive()
    }
}

impl<'a> ColumnText<'a> {
    /// Prepares a column.
    ///
    /// # Errors
    /// Its type has no text form.
    pub fn new(array: &'a ArrayRef) -> Result<Self> {
        let form = match array.data_type() {
            DataType::Utf8View => Form::Strings,
            DataType::BinaryView => Form::Bytes,
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32 => Form::Integers(cast(array, &DataType::Int64)?),
            DataType::Date32 => Form::Dates,
            DataType::Decimal64(_, scale @ 1..=19) => Form::Decimals64(*scale as u32),
            DataType::Decimal128(_, scale @ 1..=19) => Form::Decimals128(*scale as u32),
            DataType::Interval(_) | DataType::Duration(_) => {
                Form::Cast(format_array(array, &Atom::from_arrow(array.data_type())?)?)
            }
            DataType::Float32 => Form::Float32,
            DataType::Float64 => Form::Float64,
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Form::List(Box::new(ColumnText::new(list.values())?), list.value_offsets())
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns = columns
                    .map(|(field, column)| Ok((field.name().as_str(), ColumnText::new(column)?)));
                Form::Struct(columns.collect::<Result<_>>()?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Form::Map(
                    Box::new([ColumnText::new(map.keys())?, ColumnText::new(map.values())?]),
                    map.value_offsets(),
                )
            }
            _ => {
                let formatter = ArrayFormatter::try_new(array, &OPTIONS)?;
                match outside_calendar(array) {
                    Some(is_outside) => {
                        let texts = format_array(array, &Atom::from_arrow(array.data_type())?)?;
                        Form::OutOfCalendar { formatter, texts, is_outside }
                    }
                    None => Form::Other(formatter),
                }
            }
        };
        let nulls = array.logical_nulls();
        Ok(ColumnText { array, form, nulls })
    }

    /// Whether the value is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether [`ColumnText::append_plain`] can append these values.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(
            self.form,
            Form::Integers(_) | Form::Dates | Form::Decimals64(_) | Form::Decimals128(_)
        )
    }

    /// Appends a non-NULL value that consists of digits, letters, signs, points and blanks only.
    /// Returns whether it did.
    pub(crate) fn append_plain(&self, row: usize, out: &mut impl Text) -> bool {
        match &self.form {
            Form::Integers(numbers) => {
                push_whole(out, numbers.as_primitive::<Int64Type>().value(row))
            }
            Form::Dates => {
                write_date(out, self.array.as_primitive::<Date32Type>().value(row).into())
            }
            Form::Decimals64(scale) => {
                let unscaled = self.array.as_primitive::<Decimal64Type>().value(row).into();
                write_decimal(out, unscaled, *scale);
            }
            Form::Decimals128(scale) => {
                write_decimal(out, self.array.as_primitive::<Decimal128Type>().value(row), *scale);
            }
            _ => return false,
        }
        true
    }

    /// Appends a value as part of a list, struct or map.
    fn append_element(&self, row: usize, out: &mut String) -> Result<()> {
        if self.is_null(row) {
            out.push_str("NULL");
            return Ok(());
        }
        let start = out.len();
        self.append(row, out)?;
        if !matches!(self.form, Form::List(..) | Form::Struct(_) | Form::Map(..)) {
            quote_element(out, start);
        }
        Ok(())
    }

    /// Appends a non-NULL value.
    ///
    /// # Errors
    /// The value has no text form, such as a date outside the calendar's range.
    pub fn append(&self, row: usize, out: &mut String) -> Result<()> {
        match &self.form {
            Form::Integers(_) | Form::Dates | Form::Decimals64(_) | Form::Decimals128(_) => {
                self.append_plain(row, out);
            }
            Form::Strings => out.push_str(self.array.as_string_view().value(row)),
            Form::Cast(texts) => out.push_str(texts.as_string_view().value(row)),
            Form::Bytes => {
                out.push_str("\\x");
                for byte in self.array.as_binary_view().value(row) {
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Form::Float32 => {
                write_single(
                    out,
                    self.array.as_primitive::<Float32Type>().value(row),
                    FloatStyle::WithPoint,
                );
            }
            Form::Float64 => {
                write_double(
                    out,
                    self.array.as_primitive::<Float64Type>().value(row),
                    FloatStyle::WithPoint,
                );
            }
            Form::List(items, offsets) => {
                out.push('[');
                for at in offsets[row]..offsets[row + 1] {
                    out.push_str(if at > offsets[row] { ", " } else { "" });
                    items.append_element(at as usize, out)?;
                }
                out.push(']');
            }
            Form::Struct(fields) => {
                out.push('{');
                for (index, (name, values)) in fields.iter().enumerate() {
                    let _ = write!(out, "{}{name}: ", if index > 0 { ", " } else { "" });
                    values.append_element(row, out)?;
                }
                out.push('}');
            }
            Form::Map(entries, offsets) => {
                out.push('{');
                for at in offsets[row]..offsets[row + 1] {
                    out.push_str(if at > offsets[row] { ", " } else { "" });
                    entries[0].append_element(at as usize, out)?;
                    out.push_str(": ");
                    entries[1].append_element(at as usize, out)?;
                }
                out.push('}');
            }
            Form::OutOfCalendar { texts, is_outside, .. } if is_outside.value(row) => {
                let text = texts.as_string_view().value(row);
                let (moment, era) = text.split_at(text.find(" BC").unwrap_or(text.len()));
                let hours_only = |tail: &[u8]| matches!(tail, [b'+' | b'-', hours @ ..] if hours.iter().all(u8::is_ascii_digit));
                // Zones are written as the library writes them.
                let zoned = matches!(self.array.data_type(), DataType::Timestamp(_, Some(_)));
                let minutes = zoned
                    && moment.as_bytes().last_chunk::<3>().is_some_and(|tail| hours_only(tail));
                out.extend([moment, if minutes { ":00" } else { "" }, era]);
            }
            Form::Other(formatter) | Form::OutOfCalendar { formatter, .. } => {
                formatter.value(row).write(out).map_err(|error| Error::data(error.to_string()))?;
            }
        }
        Ok(())
    }
}

fn write_decimal(out: &mut impl Text, unscaled: i128, scale: u32) {
    if !push_decimal(out, unscaled, scale) {
        out.push_str(&decimal_text(unscaled, scale as i8));
    }
}

/// Marks timestamps before the year 1 or after the year 9999, infinite ones, those in another zone
/// than UTC, whose last rules the library does not know, and the time 24:00. Returns `None` for
/// other types.
fn outside_calendar(array: &ArrayRef) -> Option<BooleanBuffer> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let near = match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => return None,
        DataType::Timestamp(_, Some(zone)) if &**zone != "UTC" => {
            return Some(BooleanBuffer::new_set(array.len()));
        }
        DataType::Timestamp(unit, _) => {
            -62_135_596_800 * per_second(unit)..253_402_300_800 * per_second(unit)
        }
        DataType::Time64(unit) => 0..86_400 * per_second(unit),
        _ => return None,
    };
    let numbers = cast(array, &DataType::Int64).ok()?;
    let values = numbers.as_primitive_opt::<Int64Type>()?.values();
    if values.iter().all(|value| near.contains(value)) {
        return None;
    }
    Some(values.iter().map(|value| !near.contains(value)).collect())
}
