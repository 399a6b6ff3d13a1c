//! The cells of a text format, and their conversion to typed columns.

mod bad;
mod through_text;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal64Array,
    Decimal128Array, ListArray, PrimitiveBuilder, StringViewBuilder, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options, concat};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

use tessera_context::interrupt::{SPAN_BYTES, is_utf8, spans};
use tessera_types::{Atom, DECIMAL64_PRECISION_MAX, Slot, TimeUnit};
use tessera_values::cast::cast;
use tessera_values::uuid;

use super::times::{parse_time, parse_timestamp};
use crate::json::{Kind, elements};

/// The cells of one column for several records: text or NULL.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    data: Vec<u8>,
    ends: Vec<usize>,
    valid: Vec<bool>,
}

/// A cell that is not a value of its column's type: its row and the error.
#[derive(Debug)]
pub struct BadCell {
    /// Its place among the cells.
    pub row: usize,
    /// What is wrong with it.
    pub what: String,
}

impl Cells {
    /// Adds a cell.
    pub fn push(&mut self, text: &[u8]) {
        self.data.reserve(text.len());
        spans(text).for_each(|piece| self.data.extend_from_slice(piece));
        self.ends.push(self.data.len());
        self.valid.push(true);
    }

    /// Adds a cell whose text `write` appends.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.data);
        self.ends.push(self.data.len());
        self.valid.push(true);
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.ends.push(self.data.len());
        self.valid.push(false);
    }

    /// The bytes of all cells.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all cells but the first ones.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.valid.truncate(len);
        self.data.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Removes all cells.
    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
        self.valid.clear();
    }

    fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().zip(&self.valid).map(move |(end, valid)| {
            let cell = &self.data[start..*end];
            start = *end;
            valid.then_some(cell)
        })
    }

    fn texts(&self) -> impl Iterator<Item = Result<Option<&str>, BadCell>> {
        self.iter().enumerate().map(|(row, cell)| match cell {
            None => Ok(None),
            // SAFETY: `is_utf8(cell)` was checked in this match arm's guard.
            Some(cell) if cell.len() > SPAN_BYTES && is_utf8(cell) => {
                Ok(Some(unsafe { std::str::from_utf8_unchecked(cell) }))
            }
            Some(cell) => std::str::from_utf8(cell).map(Some).map_err(|_| BadCell {
                row,
                what: format!("{} is not valid UTF-8", shown(&String::from_utf8_lossy(cell))),
            }),
        })
    }

    /// Converts the cells to values of a type, in its plain form.
    pub fn to_array(&self, atom: &Atom) -> Result<ArrayRef, BadCell> {
        match atom {
            _ if atom.has_bits() || atom.has_timetz() => self.through_text(atom),
            Atom::String => {
                let mut builder = StringViewBuilder::with_capacity(self.len());
                for text in self.texts() {
                    builder.append_option(text?);
                }
                Ok(Arc::new(builder.finish()))
            }
            Atom::Bytes => {
                let mut builder = BinaryViewBuilder::with_capacity(self.len());
                for cell in self.iter() {
                    match cell {
                        None => builder.append_null(),
                        Some(cell) => match hexadecimal(cell) {
                            Some(bytes) => builder.append_value(bytes),
                            None => builder.append_value(cell),
                        },
                    }
                }
                Ok(Arc::new(builder.finish()))
            }
            Atom::Boolean => {
                let mut builder = BooleanBuilder::with_capacity(self.len());
                for (row, text) in self.texts().enumerate() {
                    builder.append_option(parsed(row, text?, atom, parse_boolean)?);
                }
                Ok(Arc::new(builder.finish()))
            }
            Atom::Int8 => self.numbers::<Int8Type>(atom),
            Atom::Int16 => self.numbers::<Int16Type>(atom),
            Atom::Int32 => self.numbers::<Int32Type>(atom),
            Atom::Int64 => self.numbers::<Int64Type>(atom),
            Atom::UInt8 => self.numbers::<UInt8Type>(atom),
            Atom::UInt16 => self.numbers::<UInt16Type>(atom),
            Atom::UInt32 => self.numbers::<UInt32Type>(atom),
            Atom::UInt64 => self.numbers::<UInt64Type>(atom),
            Atom::Float32 => self.floats::<Float32Type>(atom, f32::is_finite),
            Atom::Float64 => self.floats::<Float64Type>(atom, f64::is_finite),
            Atom::Date => {
                let mut builder = Date32Builder::with_capacity(self.len());
                for (row, text) in self.texts().enumerate() {
                    builder.append_option(parsed(row, text?, atom, parse_date)?);
                }
                Ok(Arc::new(builder.finish()))
            }
            Atom::Time(TimeUnit::Microsecond) => {
                self.counts::<Time64MicrosecondType>(atom, parse_time)
            }
            Atom::Timestamp(TimeUnit::Microsecond, zone) => self.timestamps(atom, zone.clone()),
            Atom::Decimal(precision, scale) => self.decimals(atom, *precision, *scale),
            Atom::List(_) | Atom::Struct(_) | Atom::Map(..) => self.nested(atom),
            Atom::Uuid => self.uuids(atom),
            _ => self.cast(atom),
        }
    }

    fn numbers<T: ArrowPrimitiveType>(&self, atom: &Atom) -> Result<ArrayRef, BadCell>
    where
        T::Native: std::str::FromStr,
    {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            builder.append_option(parsed(row, text?, atom, |text| text.trim().parse().ok())?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Parses floating-point numbers. A number outside the type's range is an error; a written
    /// infinity is not.
    fn floats<T: ArrowPrimitiveType>(
        &self,
        atom: &Atom,
        is_finite: impl Fn(T::Native) -> bool,
    ) -> Result<ArrayRef, BadCell>
    where
        T::Native: std::str::FromStr,
    {
        let parse = |text: &str| {
            let value = text.trim().parse::<T::Native>().ok()?;
            (is_finite(value) || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(value)
        };
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            builder.append_option(parsed(row, text?, atom, parse)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn counts<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        atom: &Atom,
        parse: impl Fn(&str) -> Option<i64>,
    ) -> Result<ArrayRef, BadCell> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            builder.append_option(parsed(row, text?, atom, &parse)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Parses timestamps. Without a time zone in the type, they are local times as written; a zone
    /// other than UTC in the text would be lost and is an error.
    fn timestamps(&self, atom: &Atom, zone: Option<Arc<str>>) -> Result<ArrayRef, BadCell> {
        let mut builder = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            let parse = |text: &str| match parse_timestamp(text) {
                Some(written) if zone.is_some() => written.utc(),
                Some(written) => match written.offset_seconds {
                    None | Some(0) => Some(written.microseconds),
                    Some(_) => None,
                },
                None => parse_date(text).map(|days| i64::from(days) * 86_400_000_000),
            };
            builder.append_option(parsed(row, text?, atom, parse)?);
        }
        Ok(Arc::new(builder.finish().with_timezone_opt(zone)))
    }

    fn decimals(&self, atom: &Atom, precision: u8, scale: i8) -> Result<ArrayRef, BadCell> {
        let mut values: Vec<Option<i128>> = Vec::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            values.push(parsed(row, text?, atom, |text| {
                parse_decimal(text.trim(), precision, scale)
            })?);
        }
        let wrong = |error: arrow::error::ArrowError| BadCell { row: 0, what: error.to_string() };
        if precision <= DECIMAL64_PRECISION_MAX {
            let narrow = values.into_iter().map(|value| value.map(|value| value as i64));
            let array =
                Decimal64Array::from_iter(narrow).with_precision_and_scale(precision, scale);
            return Ok(Arc::new(array.map_err(wrong)?));
        }
        let array = Decimal128Array::from_iter(values).with_precision_and_scale(precision, scale);
        Ok(Arc::new(array.map_err(wrong)?))
    }

    fn uuids(&self, atom: &Atom) -> Result<ArrayRef, BadCell> {
        let parse = |text: &str| {
            let mut canonical = String::new();
            uuid::write(&uuid::parse(text)?, &mut canonical);
            Some(canonical)
        };
        let mut builder = StringViewBuilder::with_capacity(self.len());
        for (row, text) in self.texts().enumerate() {
            builder.append_option(parsed(row, text?, atom, parse)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn cast(&self, atom: &Atom) -> Result<ArrayRef, BadCell> {
        let texts = self.to_array(&Atom::String)?;
        let options = CastOptions { safe: true, ..Default::default() };
        let cast = cast_with_options(&texts, &atom.arrow(), &options).map_err(|error| BadCell {
            row: 0,
            what: format!("text cannot become {atom}: {error}"),
        })?;
        if cast.null_count() > texts.null_count() {
            let row =
                (0..cast.len()).find(|&row| cast.is_null(row) && texts.is_valid(row)).unwrap_or(0);
            let cell = self.iter().nth(row).flatten().unwrap_or_default();
            return Err(bad(row, &String::from_utf8_lossy(cell), atom));
        }
        Ok(cast)
    }

    /// Parses JSON values of a nested type.
    fn nested(&self, atom: &Atom) -> Result<ArrayRef, BadCell> {
        if let (Atom::List(item), true) = (atom, self.data.len() > SPAN_BYTES)
            && let Some(lists) = self.long_lists(item)
        {
            return Ok(lists);
        }
        let mut text = Vec::with_capacity(self.data.len() + self.len() * 8);
        for cell in self.iter() {
            text.extend_from_slice(b"{\"v\":");
            text.extend_from_slice(cell.unwrap_or(b"null"));
            text.extend_from_slice(b"}\n");
        }
        let decode = |text: &[u8], rows: usize| -> Result<ArrayRef, String> {
            let schema = Arc::new(Schema::new(vec![Field::new("v", atom.arrow(), true)]));
            let decoder = arrow::json::ReaderBuilder::new(schema)
                .with_strict_mode(true)
                .with_batch_size(rows.max(1));
            let mut decoder = decoder.build_decoder().map_err(|error| error.to_string())?;
            for piece in spans(text) {
                decoder.decode(piece).map_err(|error| error.to_string())?;
            }
            let batch = decoder.flush().map_err(|error| error.to_string())?;
            let array = batch
                .map_or_else(|| new_empty_array(&atom.arrow()), |batch| batch.column(0).clone());
            if !atom.has_uuids() {
                return Ok(array);
            }
            let read = cast(&array, &atom.without_uuids(), atom, false);
            read.map_err(|error| error.message().to_string())
        };
        match decode(&text, self.len()) {
            Ok(array) if array.len() == self.len() => Ok(array),
            Ok(_) => {
                Err(BadCell { row: 0, what: format!("text is not a JSON value of type {atom}") })
            }
            // Decodes cells one by one to find the failing one.
            Err(error) => {
                let line =
                    |cell: Option<&[u8]>| [b"{\"v\":", cell.unwrap_or(b"null"), b"}\n"].concat();
                let row = self.iter().position(|cell| decode(&line(cell), 1).is_err()).unwrap_or(0);
                let cell = self.iter().nth(row).flatten().unwrap_or_default();
                let what =
                    format!("{} is not a {atom}: {error}", shown(&String::from_utf8_lossy(cell)));
                Err(BadCell { row, what })
            }
        }
    }
}

impl Cells {
    /// Decodes JSON lists whose elements are converted in parts. Returns `None` if one is
    /// malformed.
    fn long_lists(&self, item: &Slot) -> Option<ArrayRef> {
        let (mut items, mut parts, mut count) = (Cells::default(), Vec::new(), 0);
        let (mut lengths, mut valid) =
            (Vec::with_capacity(self.len()), Vec::with_capacity(self.len()));
        for cell in self.iter().map(|cell| cell.unwrap_or(b"null").trim_ascii()) {
            // The text after the last element.
            let (before, mut rest) = (count, cell.get(1..)?);
            let mut add = |kind: Kind, text: &[u8]| {
                if items.data.len() > SPAN_BYTES {
                    parts.push(items.nested(&item.atom).map_err(|error| error.what)?);
                    items.clear();
                }
                match kind {
                    Kind::Null => items.push_null(),
                    Kind::String => items.push(&[b"\"", text, b"\""].concat()),
                    _ => items.push(text),
                }
                count += 1;
                let end = text.as_ptr_range().end.addr() - cell.as_ptr().addr();
                rest = &cell[end + usize::from(kind == Kind::String)..];
                Ok(())
            };
            let is_list = cell.starts_with(b"[");
            if is_list {
                elements(cell, &mut add).ok()?;
            }
            if cell != b"null" && !(is_list && rest.trim_ascii() == b"]") {
                return None;
            }
            valid.push(is_list);
            lengths.push(count - before);
        }
        parts.push(items.nested(&item.atom).ok()?);
        let values = concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>()).ok()?;
        i32::try_from(values.len()).ok()?;
        let DataType::List(field) = Atom::List(Box::new(item.clone())).arrow() else { return None };
        let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
        Some(Arc::new(ListArray::try_new(field, offsets, values, Some(nulls)).ok()?))
    }
}

fn parsed<T>(
    row: usize,
    text: Option<&str>,
    atom: &Atom,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, BadCell> {
    match text {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| bad(row, text, atom)),
    }
}

fn bad(row: usize, text: &str, atom: &Atom) -> BadCell {
    BadCell { row, what: format!("{} is not a value of type {atom}", shown(text)) }
}

/// Quotes a value for a message, truncated if it is long.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_CHARACTERS_MAX: usize = 80;
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    const TRUE: [&str; 6] = ["true", "t", "yes", "y", "on", "1"];
    const FALSE: [&str; 6] = ["false", "f", "no", "n", "off", "0"];
    let text = text.trim();
    let among = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if among(&TRUE) { Some(true) } else { among(&FALSE).then_some(false) }
}

/// Parses `YYYY-MM-DD` to days since 1970-01-01. A year may have a sign, or ` (BC)` may follow.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    let before_christ = text.strip_suffix(" (BC)").or_else(|| text.strip_suffix(" BC"));
    let text = before_christ.unwrap_or(text);
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let digits = text.strip_prefix('+').unwrap_or(digits);
    let mut parts = digits.split('-');
    let mut number = |least: usize, most: usize| -> Option<i32> {
        let part = parts.next()?;
        let fits =
            (least..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| part.parse().ok()).flatten()
    };
    let (year, month, day) = (number(4, 6)?, number(1, 2)?, number(1, 2)?);
    if parts.next().is_some() {
        return None;
    }
    let year = match before_christ {
        // The year 1 BC is the year 0.
        Some(_) => 1 - sign * year,
        None => sign * year,
    };
    let date = chrono::NaiveDate::from_ymd_opt(year, month as u32, day as u32)?;
    Some(date.signed_duration_since(chrono::NaiveDate::default()).num_days() as i32)
}

/// Returns the unscaled digits of a decimal, or `None` if digits would be lost.
pub(crate) fn parse_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
    }
    let shift = i32::from(scale) - fraction.len() as i32 + exponent;
    if value != 0 {
        if shift >= 0 {
            value = value.checked_mul(10i128.checked_pow(shift as u32)?)?;
        } else {
            let divisor = 10i128.checked_pow(shift.unsigned_abs())?;
            if value % divisor != 0 {
                return None;
            }
            value /= divisor;
        }
    }
    let fits = value < 10i128.checked_pow(precision.into())?;
    fits.then_some(if negative { -value } else { value })
}

/// Parses bytes written as `\x…`.
fn hexadecimal(cell: &[u8]) -> Option<Vec<u8>> {
    let digits = cell.strip_prefix(b"\\x")?;
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    (digits.len() % 2 == 0)
        .then(|| {
            digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
        })
        .flatten()
}

#[cfg(test)]
mod tests;
