//! `csv_scan`: the tuples of files of comma-separated values (RFC 4180).
//!
//! Options: `header` (default true), `delimiter` (`,`), `quote` (`"`; empty for none), `escape`
//! (the quote), `null` (more texts that stand for NULL), `names` (the fields in order, whatever a
//! header says), `skip` (lines before the header), `comment` (lines that begin with this
//! character are no records). An empty field is NULL, a quoted one (`""`) the empty string. A
//! record with too many or too few fields is an error, as is a value that is not of the declared
//! type: nothing is lost or cast silently. One more field that is empty, behind a delimiter at the
//! end, is none. A blank line is a record only where a record has one
//! field.
//!
//! Memory: one block per worker. Order: the source's.

mod header;
mod infer;
mod preamble;
mod sniff;
mod tokenizer;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::RangeReader;
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Params, Role, Value};
use tessera_types::{Atom, Error, Result, Tuple, quote_name, unique_names};

use crate::file::{self, FileScan, joined_conjuncts};
use crate::text::cells::Cells;
use crate::text::quotes::Transition;
use crate::text::{BadRecord, Head, Layout, TextFormat, TextScan};

pub(crate) use header::header_names;
pub use infer::infer;
pub(crate) use infer::{Kinds, SAMPLE_ROWS, WHOLE_BYTES_MAX, wants_everything};
pub(crate) use tokenizer::{fields, record_end};
pub use write::{CsvMaterialize, write_batch, write_header};

/// The sub-operator.
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
            "comment"
        ],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        CsvOptions::new(&node.params)?;
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for CsvScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        let format = Arc::new(CsvOptions::new(&node.params)?);
        Ok(Operator::Source(Arc::new(TextScan { scan, conjuncts, format })))
    }
}

/// The options of reading that SQL may set.
pub const SCAN_OPTIONS: [&str; 8] =
    ["header", "delimiter", "quote", "escape", "null", "sample", "skip", "comment"];
/// The options of writing that SQL may set.
pub const MATERIALIZE_OPTIONS: [&str; 5] = ["header", "delimiter", "quote", "escape", "null"];

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// Whether there is a header; not known before a file has been looked into.
    pub(crate) header: Option<bool>,
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    /// What stands for NULL besides nothing.
    pub(crate) nulls: Vec<Arc<str>>,
    pub(crate) names: Vec<Arc<str>>,
    /// Lines before the first record.
    pub(crate) skip: usize,
    /// What a line that is no record begins with.
    pub(crate) comment: Option<u8>,
}

impl CsvOptions {
    /// Reads options, written as values or as text (as SQL hands them on).
    ///
    /// # Errors
    /// One has a value it cannot have.
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

/// A boolean option: `true`, or `'true'`, `'1'`, `'off'` … as text.
pub(crate) fn flag(params: &Params, name: &str) -> Result<Option<bool>> {
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

/// A number of lines, or its text.
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
        // Quotes in comments would be counted with those of fields.
        let is_whole = self.comment.is_some();
        let header_bytes = header_bytes as u64;
        let mut layout = Layout { header_bytes, has_bytes, is_whole, ..Default::default() };
        // Without names, fields are columns in order.
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
        // A blank line is a record only where a record has one field: then that is NULL.
        if record.is_empty() && layout.targets.len() != 1 || self.is_comment(record) {
            return Ok(false);
        }
        layout.check_text(record)?;
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
        result.map_err(BadRecord)?;
        check_count(position, is_empty, expected).map_err(BadRecord)?;
        debug_assert!(cells.iter().all(|cells| cells.len() == before + 1));
        Ok(true)
    }

    fn hint(&self) -> &'static str {
        "declare the column as string, or, where its type was inferred from the first rows, set the option sample to all"
    }
}

impl CsvOptions {
    /// Where the records of a file begin, its header among them.
    fn start(&self, head: &mut Head<'_>) -> Result<usize> {
        let mut start = head.mark_bytes()?;
        for _ in 0..self.skip {
            start = head.line_after(start)?;
        }
        Ok(start)
    }

    /// The first record that is no comment, nor blank unless `blank`, from `start` on: its start,
    /// its end and the start of the next.
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

    /// The names of fields: those that the option gives to the first ones, and these.
    fn named(&self, others: Vec<String>) -> Vec<String> {
        let given = self.names.iter().map(ToString::to_string);
        unique_names(given.chain(others.into_iter().skip(self.names.len())))
    }

    /// The names of a file's fields, and the bytes before its first record.
    fn field_names(
        &self,
        head: &mut Head<'_>,
        start: usize,
    ) -> Result<(Option<Vec<String>>, usize)> {
        let named =
            (!self.names.is_empty()).then(|| self.names.iter().map(ToString::to_string).collect());
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

/// A record must have so many fields. One more that is empty is what a delimiter at its end leaves.
fn check_count(found: usize, is_last_empty: bool, expected: usize) -> Result<(), String> {
    let relation = match found {
        _ if found == expected || found == expected + 1 && is_last_empty && expected > 1 => {
            return Ok(());
        }
        _ if found > expected => "too many",
        _ => "too few",
    };
    Err(format!("{relation} fields: {found} where {expected} are expected"))
}

/// Which field of a file's records each column is, from 0; nothing where the file begins in another
/// way than with a header, or with records, of lines that end in `\n`: others may read it
/// otherwise.
///
/// # Errors
/// The file cannot be read, or has no such column.
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
    found.map(Some).ok_or_else(|| Error::internal("a column of a CSV file that is no field"))
}
