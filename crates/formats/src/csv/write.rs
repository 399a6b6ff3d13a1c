//! `csv_materialize`: writes tuples to a CSV file.
//!
//! There is a header line. NULL is empty, the empty string is `""`; dates are ISO, decimals exact;
//! nested values are JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Schema;

use tessera_context::{Compression, Run};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result};

use super::CsvOptions;
use crate::display::ColumnText;
use crate::json::json_texts;
use crate::output::{self, Encoder, FileWriter, Part, TextFile, TrackedOutput};
use crate::text::cells::shown;

/// The sub-operator `csv_materialize`.
#[derive(Debug)]
pub struct CsvMaterialize;

impl Descriptor for CsvMaterialize {
    tessera_operator::describe!(
        "csv_materialize",
        "Writes tuples to a CSV file.",
        ["path", "partitions", "header", "delimiter", "quote", "escape", "null", "compression"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        CsvOptions::new(&node.params)?;
        output::written_compression(node)?;
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for CsvMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        output::lower(node, lowering, |tuple| {
            let options = CsvOptions::new(&node.params)?;
            let compression = output::written_compression(node)?;
            Ok(CsvEncoder { options, schema: Arc::new(tuple.arrow_schema()?), compression })
        })
    }
}

#[derive(Debug)]
pub(crate) struct CsvEncoder {
    options: CsvOptions,
    schema: Arc<Schema>,
    compression: Option<Compression>,
}

impl Encoder for CsvEncoder {
    fn part(&self, batch: RecordBatch) -> Result<Part> {
        let mut text = Vec::new();
        write_rows(&batch, &self.options, Nested::Json, &mut text)?;
        Ok(Part::Text(text))
    }

    fn begin(&self, out: TrackedOutput, run: &Run) -> Result<Box<dyn FileWriter>> {
        let mut head = Vec::new();
        if self.options.header != Some(false) {
            write_names(&self.schema, &self.options, &mut head)?;
        }
        TextFile::begin(out, self.compression, run, &head)
    }
}

/// Appends the header line in the default dialect.
///
/// # Errors
/// Never fails in this dialect.
pub fn write_header(schema: &Schema, out: &mut Vec<u8>) -> Result<()> {
    write_names(schema, &default_options(), out)
}

/// Appends the rows of a batch (in plain forms) in the default dialect, without a header. Nested
/// values are written for people to read.
///
/// # Errors
/// A value has no text form.
pub fn write_batch(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    write_rows(batch, &default_options(), Nested::Display, out)
}

/// The form of lists, structs and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nested {
    /// JSON, for programs; not every map can be written as JSON.
    Json,
    /// The form in which values are displayed to people.
    Display,
}

fn default_options() -> CsvOptions {
    CsvOptions {
        header: None,
        delimiter: b',',
        quote: Some(b'"'),
        escape: Some(b'"'),
        nulls: Vec::new(),
        skip: 0,
        comment: None,
        names: Vec::new(),
        is_union: false,
        ignores: false,
    }
}

fn write_names(schema: &Schema, options: &CsvOptions, out: &mut Vec<u8>) -> Result<()> {
    let special = SpecialBytes::new(options);
    for (position, field) in schema.fields().iter().enumerate() {
        if position > 0 {
            out.push(options.delimiter);
        }
        let name = field.name();
        // Otherwise the name could be split into several, or lose spaces.
        let sniffed = name.bytes().any(|byte| super::sniff::DELIMITERS.contains(&byte));
        match options.quote {
            Some(quote) if sniffed || name.trim() != name => {
                write_quoted(name, quote, options, out)
            }
            _ => write_field(name, options, &special, out)?,
        }
    }
    out.push(b'\n');
    Ok(())
}

/// A column prepared for writing as text.
struct Column<'a> {
    values: Values<'a>,
    nulls: Option<NullBuffer>,
}

enum Values<'a> {
    Strings(&'a StringViewArray),
    /// Values that never need quotes.
    Plain(ColumnText<'a>),
    Text(ColumnText<'a>),
    Json(Vec<Option<String>>),
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef, nested: Nested, plain_are_special: bool) -> Result<Self> {
        let values = match array.as_string_view_opt() {
            Some(strings) => Values::Strings(strings),
            None if nested == Nested::Json && array.data_type().is_nested() => {
                Values::Json(json_texts(array)?)
            }
            None => {
                let texts = ColumnText::new(array)?;
                match texts.is_plain() && !plain_are_special {
                    true => Values::Plain(texts),
                    false => Values::Text(texts),
                }
            }
        };
        Ok(Column { values, nulls: array.logical_nulls() })
    }
}

fn write_rows(
    batch: &RecordBatch,
    options: &CsvOptions,
    nested: Nested,
    out: &mut Vec<u8>,
) -> Result<()> {
    let special = SpecialBytes::new(options);
    let plain_are_special =
        options.nulls.iter().any(|null| !null.is_empty()) || special.any_plain();
    let columns = batch.columns().iter().map(|array| Column::new(array, nested, plain_are_special));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let null = options.nulls.first().map(AsRef::as_ref).unwrap_or_default().as_bytes();
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                out.push(options.delimiter);
            }
            if column.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                out.extend_from_slice(null);
                continue;
            }
            match &column.values {
                Values::Strings(strings) => {
                    write_field(strings.value(row), options, &special, out)?
                }
                Values::Plain(texts) => {
                    texts.append_plain(row, out);
                }
                Values::Text(texts) => {
                    text.clear();
                    texts.append(row, &mut text)?;
                    write_field(&text, options, &special, out)?;
                }
                Values::Json(texts) => {
                    let text = texts.get(row).and_then(Option::as_deref).unwrap_or_default();
                    write_field(text, options, &special, out)?;
                }
            }
        }
        out.push(b'\n');
    }
    Ok(())
}

/// The bytes that make quotes necessary.
#[derive(Debug)]
struct SpecialBytes([u8; 4]);

impl SpecialBytes {
    fn new(options: &CsvOptions) -> Self {
        SpecialBytes([b'\n', b'\r', options.delimiter, options.quote.unwrap_or(options.delimiter)])
    }

    /// Whether a special byte occurs in the text.
    fn are_in(&self, text: &[u8]) -> bool {
        let [a, b, c, d] = self.0;
        let is_special = |byte: u8| (byte == a) | (byte == b) | (byte == c) | (byte == d);
        // Without a branch per byte, so that the compiler compares 16 bytes at once.
        let (blocks, rest) = text.as_chunks::<16>();
        let in_block =
            |block: &[u8; 16]| block.iter().fold(false, |found, byte| found | is_special(*byte));
        blocks.iter().any(in_block) || rest.iter().any(|byte| is_special(*byte))
    }

    /// Whether numbers and dates may contain a special byte.
    fn any_plain(&self) -> bool {
        self.0
            .iter()
            .any(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b' '))
    }
}

/// Writes a field, with quotes if the text would otherwise be read as something else.
fn write_field(
    text: &str,
    options: &CsvOptions,
    special: &SpecialBytes,
    out: &mut Vec<u8>,
) -> Result<()> {
    match options.quote {
        _ if !options.is_null(text.as_bytes()) && !special.are_in(text.as_bytes()) => {
            out.extend_from_slice(text.as_bytes());
        }
        Some(quote) => write_quoted(text, quote, options, out),
        None => {
            let text = shown(text);
            return Err(Error::data(format!(
                "{text} cannot be written to a CSV file without quotes: it would be read as something else; leave the \
                 option quote out"
            )));
        }
    }
    Ok(())
}

fn write_quoted(text: &str, quote: u8, options: &CsvOptions, out: &mut Vec<u8>) {
    let escape = options.escape.unwrap_or(quote);
    out.push(quote);
    for byte in text.bytes() {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn quotes_only_where_needed() {
        let written = |text: &str| {
            let mut out = Vec::new();
            write_field(text, &default_options(), &SpecialBytes::new(&default_options()), &mut out)
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written("a b"), "a b");
        assert_eq!(written(""), "\"\"");
        assert_eq!(written("a\"b,c"), "\"a\"\"b,c\"");
    }

    #[test]
    fn names_read_as_they_are() {
        let names = ["a", "b;c", " d", "e,f", "g\"h"];
        let fields = names.map(|name| {
            arrow::datatypes::Field::new(name, arrow::datatypes::DataType::Int64, true)
        });
        let mut out = Vec::new();
        write_header(&Schema::new(fields.to_vec()), &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "a,\"b;c\",\" d\",\"e,f\",\"g\"\"h\"\n");
        assert_eq!(
            super::super::header_names(&default_options(), out.trim_ascii_end()).unwrap(),
            names
        );
    }

    #[test]
    fn without_quotes_some_texts_cannot_be_written() {
        let options = CsvOptions { quote: None, escape: None, ..default_options() };
        for text in ["a,b", "a\nb", "a\rb", ""] {
            let error = write_field(text, &options, &SpecialBytes::new(&options), &mut Vec::new())
                .unwrap_err();
            assert!(error.message().contains("without quotes"), "{error}");
        }
        assert!(
            write_field("5\" pipe", &options, &SpecialBytes::new(&options), &mut Vec::new())
                .is_ok()
        );
    }

    #[test]
    fn lists_for_programs_and_for_people() {
        let lists = [Some(vec![Some(1), None]), None];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        let written = |nested| {
            let mut out = Vec::new();
            write_rows(&batch, &default_options(), nested, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Nested::Json), "\"[1,null]\"\n\n");
        assert_eq!(written(Nested::Display), "\"[1, NULL]\"\n\n");
    }
}
