//! Decodes records that an object store selects and sends as text, in pieces, into Arrow batches of
//! the requested columns.
//!
//! The text has no header; its fields are the columns in order (CSV) or by name (JSON lines). The
//! tokenizers and conversions of `csv_scan` and `json_scan` read it, with the differences that
//! stores have: dates are cut short (`1994T` is January 1), and an empty field of a NOT NULL column
//! is the empty string. A value that a store cannot represent exactly is an error, never another
//! value.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;

use tessera_plan::Params;
use tessera_types::{Atom, Code, Error, Result, Tuple, quote_name};

use super::csv::{self, CsvOptions};
use super::file::check_nulls;
use super::json::{self, Kind};
use super::text::cells::{Cells, shown};

/// The longest record.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// Integers from here on are not all exact as doubles.
const EXACT_MAX: u64 = 1 << 53;

/// The text format of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    /// RFC 4180, without a header.
    Csv,
    /// One object per line.
    Json,
}

/// Decodes batches of records incrementally.
#[derive(Debug)]
pub struct RecordDecoder {
    format: RecordFormat,
    tuple: Tuple,
    schema: Arc<Schema>,
    /// The source of the records, for messages.
    source: String,
    options: CsvOptions,
    bytes: Vec<u8>,
    /// The start of the next record in `bytes`.
    position: usize,
    cells: Vec<Cells>,
    rows: usize,
    /// The number of records before those in `cells`.
    rows_before: u64,
}

impl RecordDecoder {
    /// Creates a decoder of records of these columns that come from `source`.
    ///
    /// # Errors
    /// A column holds collections.
    pub fn new(format: RecordFormat, tuple: Tuple, source: &str) -> Result<RecordDecoder> {
        Ok(RecordDecoder {
            format,
            schema: Arc::new(tuple.arrow_schema()?),
            cells: vec![Cells::default(); tuple.len()],
            tuple,
            source: source.to_string(),
            options: CsvOptions::new(&Params::new())?,
            bytes: Vec::new(),
            position: 0,
            rows: 0,
            rows_before: 0,
        })
    }

    /// Adds the next bytes, which may end within a record.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.position);
        self.position = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next batch of `rows` records, or a smaller last one if `at_end` says that no
    /// more bytes come. Returns `None` if more bytes are needed.
    ///
    /// # Errors
    /// A record is malformed, or a value is not of its column's type or not exact; names the
    /// source, record and column.
    pub fn next(&mut self, rows: usize, at_end: bool) -> Result<Option<RecordBatch>> {
        while self.rows < rows {
            let ends = match self.format {
                RecordFormat::Csv => {
                    csv::record_end(&self.options, &self.bytes, self.position, at_end)
                }
                RecordFormat::Json => json::record_end(&self.bytes, self.position, at_end),
            };
            let Some((end, next)) = ends else {
                if self.bytes.len() - self.position > RECORD_BYTES_MAX {
                    let message =
                        format!("is longer than {RECORD_BYTES_MAX} bytes (RECORD_BYTES_MAX)");
                    return Err(Error::new(Code::Limit, self.at(self.rows, &message)));
                }
                break;
            };
            if let Err(what) = self.record(end) {
                return Err(Error::data(self.at(self.rows, &what)));
            }
            self.position = next;
        }
        if self.rows == rows || (at_end && self.rows > 0) {
            self.batch().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Describes an error of a record; `row` is its position in the current batch.
    fn at(&self, row: usize, what: &str) -> String {
        let number = self.rows_before + row as u64 + 1;
        format!(
            "record {number} that the store selects from '{}': {what}; SET smart_storage = off reads the object itself",
            self.source
        )
    }

    fn record(&mut self, end: usize) -> Result<(), String> {
        let record = &self.bytes[self.position..end];
        match self.format {
            // In a file of one column, a blank line is a NULL; elsewhere it is skipped.
            RecordFormat::Csv if record.is_empty() && self.cells.len() != 1 => return Ok(()),
            RecordFormat::Json if record.iter().all(u8::is_ascii_whitespace) => return Ok(()),
            RecordFormat::Csv => csv_cells(&self.options, record, &self.tuple, &mut self.cells)?,
            RecordFormat::Json => json_cells(record, &self.tuple, &mut self.cells)?,
        }
        self.rows += 1;
        Ok(())
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.cells.len());
        for (cells, field) in self.cells.iter().zip(self.tuple.fields()) {
            let atom = field
                .atom()
                .ok_or_else(|| Error::internal("a record column has a collection type"))?;
            let array = cells.to_array(atom).map_err(|bad| {
                let what = format!("column {}: {}", quote_name(&field.name), bad.what);
                Error::data(self.at(bad.row, &what))
            })?;
            check_nulls(array.as_ref(), field.nullable, &self.source, &field.name)?;
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        self.cells.iter_mut().for_each(Cells::clear);
        self.rows_before += self.rows as u64;
        self.rows = 0;
        Ok(batch)
    }
}

fn csv_cells(
    options: &CsvOptions,
    record: &[u8],
    tuple: &Tuple,
    cells: &mut [Cells],
) -> Result<(), String> {
    let mut position = 0;
    csv::fields(options, record, &mut |text, quoted| {
        if let (Some(field), Some(cells)) = (tuple.fields().get(position), cells.get_mut(position))
        {
            let is_text = field.atom() == Some(&Atom::String);
            match text {
                [] if is_text && (quoted || !field.nullable) => cells.push(text),
                [] => cells.push_null(),
                text => push(cells, field.atom(), text),
            }
        }
        position += 1;
    })?;
    match position == tuple.len() {
        true => Ok(()),
        false => Err(format!("it has {position} fields; expected {}", tuple.len())),
    }
}

fn json_cells(record: &[u8], tuple: &Tuple, cells: &mut [Cells]) -> Result<(), String> {
    let before = cells.first().map_or(0, Cells::len);
    let mut expected = 0;
    json::members(record, &mut |key, kind, value| {
        // Records mostly have the same keys in the same order.
        let same = |name: &str| name.as_bytes() == key;
        let column = match tuple.fields().get(expected) {
            Some(field) if same(&field.name) => Some(expected),
            _ => tuple.fields().iter().position(|field| same(&field.name)),
        };
        let name = || shown(&String::from_utf8_lossy(key));
        let Some(column) = column else {
            return Err(format!("unexpected key {}", name()));
        };
        expected = column + 1;
        let (Some(cells), Some(atom)) = (cells.get_mut(column), tuple.fields()[column].atom())
        else {
            return Ok(());
        };
        if cells.len() > before {
            return Err(format!("duplicate key {}", name()));
        }
        let inexact = || {
            let value = shown(&String::from_utf8_lossy(value));
            Err(format!("column {}: the store may have rounded or rewritten {value}", name()))
        };
        match kind {
            Kind::Null => cells.push_null(),
            Kind::String if *atom == Atom::String => {
                let mut result = Ok(());
                cells.push_with(|out| result = json::unescape(value, out));
                result?;
            }
            Kind::String => {
                let mut text = Vec::new();
                json::unescape(value, &mut text)?;
                push(cells, Some(atom), &text);
            }
            Kind::Number if atom.is_numeric() => {
                if atom.is_integer() && !is_exact(value) {
                    return inexact();
                }
                cells.push(value);
            }
            Kind::Boolean if *atom == Atom::Boolean => cells.push(value),
            // A string in the object may have been a number in the store's response.
            _ => return inexact(),
        }
        Ok(())
    })?;
    cells.iter_mut().filter(|cells| cells.len() == before).for_each(Cells::push_null);
    Ok(())
}

/// Whether a number is unchanged after a conversion to double and back.
fn is_exact(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse::<u64>().ok())
        .is_some_and(|n| n < EXACT_MAX)
}

/// Adds a value; a truncated date is completed.
fn push(cells: &mut Cells, atom: Option<&Atom>, text: &[u8]) {
    match (atom, text.strip_suffix(b"T")) {
        (Some(Atom::Date), Some(date)) => {
            let missing: &[u8] = match date.iter().skip(1).filter(|byte| **byte == b'-').count() {
                0 => b"-01-01",
                1 => b"-01",
                _ => b"",
            };
            cells.push_with(|out| {
                out.extend_from_slice(date);
                out.extend_from_slice(missing);
            });
        }
        _ => cells.push(text),
    }
}

#[cfg(test)]
mod tests {
    use tessera_types::Field;

    use super::*;

    fn tuple() -> Tuple {
        Tuple::new(vec![
            Field::new("n", Atom::Int64),
            Field::nullable("t", Atom::String),
            Field::new("s", Atom::String),
            Field::nullable("d", Atom::Date),
        ])
    }

    /// All rows, pushed in pieces of `step` bytes.
    fn decoded(format: RecordFormat, text: &str, step: usize) -> Result<String> {
        let mut decoder = RecordDecoder::new(format, tuple(), "x")?;
        let (mut out, mut batches) = (Vec::new(), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            decoder.push(piece);
            while let Some(batch) = decoder.next(2, false)? {
                batches.push(batch);
            }
        }
        while let Some(batch) = decoder.next(2, true)? {
            batches.push(batch);
        }
        for batch in batches {
            csv::write_batch(&batch, &mut out)?;
        }
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn csv_in_pieces() {
        let text = "1,a,b,1994T\n2,,,1994-02T\n3,\"\",\"x,\"\"y\",1994-02-03T\n4,\"l\nm\",c,\n5,e,f,1994-02-03";
        let expected = "1,a,b,1994-01-01\n2,,\"\",1994-02-01\n3,\"\",\"x,\"\"y\",1994-02-03\n4,\"l\nm\",c,\n5,e,f,1994-02-03\n";
        for step in [1, 2, 7, 1_000] {
            assert_eq!(decoded(RecordFormat::Csv, text, step).unwrap(), expected, "{step}");
        }
        let error = decoded(RecordFormat::Csv, "1,a,b,\n2,a\n", 9).unwrap_err();
        assert!(error.message().contains("record 2 that the store selects from 'x'"), "{error}");
        let error = decoded(RecordFormat::Csv, "1,a,b,\nx,a,b,\n", 9).unwrap_err();
        assert!(
            error.message().contains("record 2") && error.message().contains("column n"),
            "{error}"
        );
    }

    #[test]
    fn json_in_pieces() {
        let text = "{\"n\":1,\"t\":\"a\",\"s\":\"\\u003cb\",\"d\":\"1994T\"}\n{\"s\":\"\",\"n\":\"2\"}\n\n{\"n\":3,\"t\":null,\"s\":\"c\"}";
        for step in [1, 5, 1_000] {
            let expected = "1,a,<b,1994-01-01\n2,,\"\",\n3,,c,\n";
            assert_eq!(decoded(RecordFormat::Json, text, step).unwrap(), expected, "{step}");
        }
    }

    #[test]
    fn what_a_store_cannot_say_exactly_is_an_error() {
        for text in [
            "{\"n\":9007199254740993,\"s\":\"\"}",
            "{\"n\":1,\"s\":1.5}",
            "{\"n\":1,\"s\":\"\",\"u\":1}",
        ] {
            let error = decoded(RecordFormat::Json, text, 100).unwrap_err();
            assert!(error.message().contains("SET smart_storage = off"), "{error}");
        }
    }
}
