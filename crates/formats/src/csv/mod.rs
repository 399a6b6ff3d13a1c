//! `csv_scan`: reads files of comma-separated values (RFC 4180).
//!
//! Options: `header` (default true), `delimiter` (`,`), `quote` (`"`; empty for none), `escape`
//! (the quote), `null` (more texts that represent NULL), `names` (the fields in order, regardless
//! of a header), `skip` (lines before the header), `comment` (lines that begin with this character
//! are skipped), `compression`, `max_line_size`. An empty field is NULL, a quoted one (`""`) the
//! empty string. A record with too many or too few fields is an error, as is a value that is not of
//! the declared type: nothing is dropped or cast silently. One more empty field, after a delimiter
//! at the end, is ignored. A blank line is a record only in files of one field. With
//! `ignore_errors`, what would be an error of a record skips it; with `store_rejects` and the names
//! of two tables, it is listed.
//!
//! Memory: one block per worker. Order: the source's.

mod facts;
mod format;
mod header;
mod infer;
mod preamble;
mod sniff;
mod tokenizer;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::{RangeReader, RejectKind};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{ColumnPush, Descriptor, Edge, Inputs, Node, Params, Pushes, Role, Value};
use tessera_types::{Atom, Error, Result, Tuple, quote_name, unique_names};

use crate::file::{self, FileScan, UNION};
use crate::text::cells::Cells;
use crate::text::quotes::Transition;
use crate::text::{BadRecord, Head, IGNORE_ERRORS, Layout, Leniency, TextFormat, TextScanOperator};

pub use format::{Csv, Tsv};
pub(crate) use header::header_names;
use header::unnamed;
pub use infer::infer;
pub(crate) use infer::{Kinds, SAMPLE_ROWS, WHOLE_BYTES_MAX, samples_whole_file};
pub(crate) use tokenizer::{fields, record_end};
pub use write::{CsvMaterialize, write_batch, write_header};

/// The sub-operator `csv_scan`.
#[derive(Debug)]
pub struct CsvScan;

impl Descriptor for CsvScan {
    tessera_operator::describe!(
        "csv_scan",
        "Reads the tuples of CSV files.",
        [
            "paths",
            "columns",
            "fields",
            "filter",
            "partitions",
            "header",
            "delimiter",
            "quote",
            "escape",
            "null",
            "names",
            "sample",
            "skip",
            "comment",
            "union_by_name",
            "compression",
            "max_line_size",
            "ignore_errors",
            "store_rejects",
            "rejects_scan",
            "rejects_table",
            "rejects_limit",
            "checked"
        ],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        CsvOptions::new(&node.params)?;
        Leniency::new(&node.params)?;
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        // A file without a header identifies columns by position, so the scan needs all of them.
        Pushes { columns: ColumnPush::Output, ..Pushes::SCAN }
    }
}

impl SubOperator for CsvScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let format = Arc::new(CsvOptions::new(&node.params)?);
        TextScanOperator::lowered((scan, node), lowering, format)
    }
}

/// The dialect of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// Whether there is a header; `None` before the file has been examined.
    pub(crate) header: Option<bool>,
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    /// Texts that represent NULL besides an empty field.
    pub(crate) nulls: Vec<Arc<str>>,
    pub(crate) names: Vec<Arc<str>>,
    /// The number of lines before the first record.
    pub(crate) skip: usize,
    /// The first character of lines that are comments.
    pub(crate) comment: Option<u8>,
    /// Whether a file may lack columns of other files.
    pub(crate) is_union: bool,
    /// Whether records that cannot be read are skipped.
    pub(crate) ignores: bool,
}

impl CsvOptions {
    /// Reads options, given as values or as text (as SQL passes them).
    ///
    /// # Errors
    /// An option has an invalid value.
    pub(crate) fn new(params: &Params) -> Result<CsvOptions> {
        let quote = byte(params, "quote", Some(b'"'))?;
        let delimiter = byte(params, "delimiter", Some(b','))?;
        let Some(delimiter) =
            delimiter.filter(|d| Some(*d) != quote && !matches!(d, b'\n' | b'\r'))
        else {
            return Err(Error::semantic(
                "option delimiter must be one character other than the quote and line ends",
            ));
        };
        let escape = byte(params, "escape", quote)?;
        let is_line_end = |byte: Option<u8>| matches!(byte, Some(b'\n' | b'\r'));
        if is_line_end(quote) || is_line_end(escape) || escape == Some(delimiter) {
            return Err(Error::semantic(
                "options quote and escape must be characters other than the delimiter and line ends",
            ));
        }
        let comment = byte(params, "comment", None)?;
        if comment.is_some()
            && (is_line_end(comment) || comment == quote || comment == Some(delimiter))
        {
            return Err(Error::semantic(
                "option comment must be a character other than the quote, the delimiter and line ends",
            ));
        }
        let names = match params.get("names") {
            None => Vec::new(),
            Some(_) => params.strings("names")?,
        };
        Ok(CsvOptions {
            header: flag(params, "header")?,
            delimiter,
            quote,
            escape,
            nulls: match params.get("null") {
                None => Vec::new(),
                Some(Value::List(_)) => params.strings("null")?,
                Some(_) => vec![params.string("null")?.clone()],
            },
            names,
            skip: lines(params, "skip")?,
            comment,
            is_union: flag(params, UNION)? == Some(true),
            ignores: flag(params, IGNORE_ERRORS.name)? == Some(true),
        })
    }

    /// Whether a record is a comment.
    fn is_comment(&self, record: &[u8]) -> bool {
        self.comment.is_some() && record.first().copied() == self.comment
    }

    fn is_null(&self, text: &[u8]) -> bool {
        text.is_empty() || self.nulls.iter().any(|null| null.as_bytes() == text)
    }
}

/// Reads a boolean option: `true`, or text such as `'true'`, `'1'`, `'off'`.
pub fn flag(params: &Params, name: &str) -> Result<Option<bool>> {
    let wrong = || Error::semantic(format!("option {name} must be true or false"));
    match params.get(name) {
        None => Ok(None),
        Some(Value::Boolean(flag)) => Ok(Some(*flag)),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("auto") => Ok(None),
        Some(Value::String(text)) => {
            crate::text::cells::parse_boolean(text).map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// Reads a number of lines, or its text.
fn lines(params: &Params, name: &str) -> Result<usize> {
    let found = match params.get(name) {
        None => Some(0),
        Some(Value::Integer(number)) => usize::try_from(*number).ok(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    found.ok_or_else(|| Error::semantic(format!("option {name} must be a number of lines")))
}

fn byte(params: &Params, name: &str, otherwise: Option<u8>) -> Result<Option<u8>> {
    if params.get(name).is_none() {
        return Ok(otherwise);
    }
    let text = params.string(name)?;
    match text.as_bytes() {
        [] => Ok(None),
        b"\\t" => Ok(Some(b'\t')),
        [byte] if byte.is_ascii() => Ok(Some(*byte)),
        _ => {
            Err(Error::semantic(format!("option {name} must be one ASCII character, not '{text}'")))
        }
    }
}

impl TextFormat for CsvOptions {
    fn has_states(&self) -> bool {
        self.quote.is_some()
    }

    fn transition(&self, bytes: &[u8]) -> Transition {
        tokenizer::transition(self, bytes)
    }

    fn first_record(&self, bytes: &[u8], state: u8, at_end: bool) -> Option<usize> {
        tokenizer::first_record(self, bytes, state, at_end)
    }

    fn record_end(
        &self,
        _layout: &Layout,
        bytes: &[u8],
        start: usize,
        at_end: bool,
    ) -> Option<(usize, usize)> {
        tokenizer::record_end(self, bytes, start, at_end)
    }

    fn layout(
        &self,
        head: &mut Head<'_>,
        columns: &Tuple,
        constants: &[Option<ArrayRef>],
    ) -> Result<Layout> {
        let start = self.start(head)?;
        let (names, header_bytes) = self.field_names(head, start)?;
        let of_file: Vec<usize> =
            (0..columns.len()).filter(|&column| constants[column].is_none()).collect();
        let has_bytes =
            of_file.iter().any(|&column| columns.fields()[column].atom() == Some(&Atom::Bytes));
        // Quotes in comments would be counted as quotes of fields.
        let is_whole = self.comment.is_some();
        let header_bytes = header_bytes as u64;
        let mut layout = Layout { header_bytes, has_bytes, is_whole, ..Default::default() };
        // Without names, the fields are the columns in order.
        let Some(names) = names else {
            layout.targets = (0..of_file.len()).map(Some).collect();
            layout.read = of_file;
            return Ok(layout);
        };
        layout.targets = vec![None; names.len()];
        for column in of_file {
            let name = &columns.fields()[column].name;
            match names.iter().position(|found| **found == **name) {
                Some(position) => {
                    layout.targets[position] = Some(layout.read.len());
                    layout.read.push(column);
                }
                // It is NULL in this file.
                None if self.is_union => {}
                None => {
                    return Err(Error::data(format!(
                        "'{}' has no column {}; its header names {}",
                        head.path(),
                        quote_name(name),
                        names.join(", ")
                    )));
                }
            }
        }
        Ok(layout)
    }

    fn cells(
        &self,
        layout: &Layout,
        record: &[u8],
        cells: &mut [Cells],
    ) -> Result<bool, BadRecord> {
        // A blank line is a record only in files of one field, where it is NULL.
        if record.is_empty() && layout.targets.len() != 1 || self.is_comment(record) {
            return Ok(false);
        }
        layout
            .check_text(record)
            .map_err(|bad| BadRecord { field: invalid_field(self, record), ..bad })?;
        let before = cells.first().map_or(0, Cells::len);
        let expected = layout.targets.len();
        let (mut position, mut is_empty) = (0, false);
        let result = tokenizer::fields(self, record, &mut |text, quoted| {
            is_empty = text.is_empty() && !quoted;
            if let Some(target) =
                layout.targets.get(position).copied().flatten().and_then(|t| cells.get_mut(t))
            {
                match text {
                    _ if !quoted && self.is_null(text) => target.push_null(),
                    _ => target.push(text),
                }
            }
            position += 1;
        });
        result.map_err(|what| BadRecord {
            kind: RejectKind::UnquotedValue,
            what,
            field: Some(position),
        })?;
        check_count(position, is_empty, expected).map_err(|what| BadRecord {
            kind: match position > expected {
                true => RejectKind::TooManyColumns,
                false => RejectKind::MissingColumns,
            },
            what,
            field: Some(position.min(expected)),
        })?;
        debug_assert!(cells.iter().all(|cells| cells.len() == before + 1));
        Ok(true)
    }

    fn hint(&self) -> &'static str {
        "declare the column as string, or, where its type was inferred from the first rows, set the option sample to all"
    }

    fn state_after(&self, start: &[u8]) -> u8 {
        match self.is_comment(start) {
            true => tokenizer::UNQUOTED,
            false => tokenizer::transition(self, start)[0],
        }
    }

    fn field_start(&self, record: &[u8], field: usize) -> Option<usize> {
        tokenizer::field_start(self, record, field)
    }

    fn described(
        &self,
        reader: &dyn RangeReader,
        columns: &Tuple,
    ) -> Result<Vec<(&'static str, Option<String>)>> {
        facts::described(self, reader, columns)
    }
}

/// Returns the first field of a record that is not UTF-8.
fn invalid_field(options: &CsvOptions, record: &[u8]) -> Option<usize> {
    let (mut position, mut found) = (0, None);
    // The error of a quote comes after the fields before it.
    let _ = tokenizer::fields(options, record, &mut |text, _| {
        if found.is_none() && std::str::from_utf8(text).is_err() {
            found = Some(position);
        }
        position += 1;
    });
    found
}

impl CsvOptions {
    /// Returns where the records of a file begin, including the header.
    fn start(&self, head: &mut Head<'_>) -> Result<usize> {
        let mut start = head.mark_bytes()?;
        for _ in 0..self.skip {
            start = head.line_after(start)?;
        }
        Ok(start)
    }

    /// Returns the start and end of the first record from `start` on that is not a comment (nor
    /// blank, unless `blank`), and the start of the next record.
    fn first_of(
        &self,
        head: &mut Head<'_>,
        start: usize,
        blank: bool,
    ) -> Result<Option<(usize, usize, usize)>> {
        let mut position = start;
        while let Some((end, next)) = head.record(self, position)? {
            if (end > position || blank) && !self.is_comment(&head.bytes()[position..end]) {
                return Ok(Some((position, end, next)));
            }
            position = next;
        }
        Ok(None)
    }

    /// The names of fields: the first ones from the option `names`, then `others`.
    fn named(&self, others: Vec<String>) -> Vec<String> {
        let named = self.names.iter().map(ToString::to_string);
        unique_names(named.chain(others.into_iter().skip(self.names.len())))
    }

    /// Returns the names of a file's fields, and the number of bytes before its first record.
    fn field_names(
        &self,
        head: &mut Head<'_>,
        start: usize,
    ) -> Result<(Option<Vec<String>>, usize)> {
        let named =
            (!self.names.is_empty()).then(|| self.names.iter().map(ToString::to_string).collect());
        if self.header == Some(false) && self.is_union {
            // The file may have fewer fields than others.
            let names = match self.first_of(head, start, true)? {
                Some((first, end, _)) => unnamed(self, &head.bytes()[first..end])
                    .map_err(|what| Error::data(format!("'{}', line 1: {what}", head.path())))?,
                None => Vec::new(),
            };
            let count = names.len();
            return Ok((Some(self.named(names).into_iter().take(count).collect()), start));
        }
        if self.header == Some(false) {
            return Ok((named, start));
        }
        let Some((header, end, next)) = self.first_of(head, start, false)? else {
            return Ok((named, start));
        };
        let names = header_names(self, &head.bytes()[header..end])
            .map_err(|what| Error::data(format!("'{}', line 1: {what}", head.path())))?;
        Ok((Some(self.named(names)), next))
    }
}

/// Checks the number of fields of a record. One more empty field comes from a delimiter at the end.
fn check_count(found: usize, is_last_empty: bool, expected: usize) -> Result<(), String> {
    let relation = match found {
        _ if found == expected || found == expected + 1 && is_last_empty && expected > 1 => {
            return Ok(());
        }
        _ if found > expected => "too many",
        _ => "too few",
    };
    Err(format!("{relation} fields: {found}, expected {expected}"))
}

/// Returns the field number, from 0, of each column in a file's records. Returns `None` unless the
/// file begins with a header or records, and its lines end in `\n`: other readers may interpret
/// other files differently.
///
/// # Errors
/// The file cannot be read or lacks a column.
pub fn field_positions(
    reader: &dyn RangeReader,
    params: &Params,
    columns: &Tuple,
) -> Result<Option<Vec<usize>>> {
    let options = CsvOptions::new(params)?;
    let mut head = Head::new(reader, None);
    let layout = options.layout(&mut head, columns, &vec![None; columns.len()])?;
    if options.skip > 0 || options.comment.is_some() {
        return Ok(None);
    }
    let start = options.start(&mut head)?;
    if let Some((first, _, next)) = options.first_of(&mut head, start, false)?
        && (first > start || head.bytes()[..next].ends_with(b"\r"))
    {
        return Ok(None);
    }
    let position = |column: usize| {
        layout
            .targets
            .iter()
            .position(|target| target.and_then(|read| layout.read.get(read)) == Some(&column))
    };
    let found: Option<Vec<usize>> = (0..columns.len()).map(position).collect();
    found
        .map(Some)
        .ok_or_else(|| Error::internal("a column of a CSV file is not one of its fields"))
}
