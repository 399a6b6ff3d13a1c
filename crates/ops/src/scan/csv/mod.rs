//! `csv_scan`: the tuples of files of comma-separated values (RFC 4180).
//!
//! Options: `header` (default true), `delimiter` (`,`), `quote` (`"`; empty for none), `escape` (the quote), `null` (more
//! text that stands for NULL), `names` (the fields in order, for files without a header). An empty field is NULL, a
//! quoted one (`""`) the empty string. A record with too many or too few fields is an error, as is a value that is not of
//! the declared type: nothing is lost or cast silently.
//!
//! Memory: one block per worker. Order: the source's.

mod infer;
mod tokenizer;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Params, Role, Value};
use tessera_types::{Error, Result, Tuple, quote_name, unique_names};

use crate::context::RangeReader;
use crate::operator::{Lowering, Operator, SubOperator};
use crate::scan::file::{self, FileScan, joined_conjuncts};
use crate::scan::text::cells::Cells;
use crate::scan::text::{BadRecord, Head, Layout, TextFormat, TextScan};

pub use infer::infer;
pub(crate) use infer::{SAMPLE_ROWS, WHOLE_BYTES_MAX, wants_everything};
pub(crate) use tokenizer::{fields, record_end};
pub use write::{CsvMaterialize, write_batch, write_header};

/// The sub-operator.
#[derive(Debug)]
pub struct CsvScan;

impl Descriptor for CsvScan {
    crate::describe!(
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
            "sample"
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

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// Whether there is a header; not known before a file has been looked into.
    pub(crate) header: Option<bool>,
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) null: Option<Arc<str>>,
    pub(crate) names: Vec<Arc<str>>,
}

impl CsvOptions {
    /// Reads options, written as values or as text (as SQL hands them on).
    ///
    /// # Errors
    /// One has a value it cannot have.
    pub(crate) fn new(params: &Params) -> Result<CsvOptions> {
        let quote = byte(params, "quote", Some(b'"'))?;
        let delimiter = byte(params, "delimiter", Some(b','))?;
        let Some(delimiter) = delimiter.filter(|d| Some(*d) != quote && !matches!(d, b'\n' | b'\r')) else {
            return Err(Error::semantic(
                "option delimiter must be one character other than the quote and line ends",
            ));
        };
        let names = match params.get("names") {
            None => Vec::new(),
            Some(_) => params.strings("names")?,
        };
        Ok(CsvOptions {
            header: flag(params, "header")?,
            delimiter,
            quote,
            escape: byte(params, "escape", quote)?,
            null: match params.get("null") {
                None => None,
                Some(_) => Some(params.string("null")?.clone()),
            },
            names,
        })
    }

    fn is_null(&self, text: &[u8]) -> bool {
        text.is_empty() || self.null.as_ref().is_some_and(|null| null.as_bytes() == text)
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
            crate::scan::text::cells::parse_boolean(text).map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
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
        _ => Err(Error::semantic(format!("option {name} must be one ASCII character, not '{text}'"))),
    }
}

impl TextFormat for CsvOptions {
    fn quote(&self) -> Option<u8> {
        self.quote
    }

    fn may_split(&self) -> bool {
        // A quote that is escaped by another character cannot be told by counting.
        self.quote.is_none() || self.escape == self.quote
    }

    fn record_end(&self, bytes: &[u8], start: usize, at_end: bool) -> Option<(usize, usize)> {
        tokenizer::record_end(self, bytes, start, at_end)
    }

    fn layout(&self, head: &mut Head<'_>, columns: &Tuple, constants: &[Option<ArrayRef>]) -> Result<Layout> {
        let start = head.mark_bytes()?;
        let (names, header_bytes) = self.field_names(head, start)?;
        let of_file: Vec<usize> = (0..columns.len()).filter(|&column| constants[column].is_none()).collect();
        let mut layout = Layout { header_bytes: header_bytes as u64, ..Default::default() };
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

    fn cells(&self, layout: &Layout, record: &[u8], cells: &mut [Cells]) -> Result<(), BadRecord> {
        // A blank line is a record only where a record has one field: then that is NULL.
        if record.is_empty() && layout.targets.len() != 1 {
            return Ok(());
        }
        let before = cells.first().map_or(0, Cells::len);
        let mut position = 0;
        let result = tokenizer::fields(self, record, &mut |text, quoted| {
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
        let expected = layout.targets.len();
        if position != expected {
            let relation = if position > expected { "too many" } else { "too few" };
            return Err(BadRecord(format!("{relation} fields: {position} where {expected} are expected")));
        }
        debug_assert!(cells.iter().all(|cells| cells.len() == before + 1));
        Ok(())
    }

    fn hint(&self) -> &'static str {
        "declare the column as string, or, where its type was inferred from the first rows, set the option sample to all"
    }
}

impl CsvOptions {
    /// The names of a file's fields, and the bytes before its first record.
    fn field_names(&self, head: &mut Head<'_>, start: usize) -> Result<(Option<Vec<String>>, usize)> {
        let named = (!self.names.is_empty()).then(|| self.names.iter().map(ToString::to_string).collect());
        if self.header == Some(false) {
            return Ok((named, start));
        }
        let Some((end, next)) = head.record(self, start)? else { return Ok((named, start)) };
        let header = header_names(self, &head.bytes()[start..end])
            .map_err(|what| Error::data(format!("'{}', line 1: {what}", head.path())))?;
        Ok((Some(header), next))
    }
}

/// Which field of a file's records each column is, from 0.
///
/// # Errors
/// The file cannot be read, or has no such column.
pub fn field_positions(reader: &dyn RangeReader, params: &Params, columns: &Tuple) -> Result<Vec<usize>> {
    let options = CsvOptions::new(params)?;
    let layout = options.layout(&mut Head::new(reader, None), columns, &vec![None; columns.len()])?;
    let position = |column: usize| {
        layout
            .targets
            .iter()
            .position(|target| target.and_then(|read| layout.read.get(read)) == Some(&column))
    };
    let found: Option<Vec<usize>> = (0..columns.len()).map(position).collect();
    found.ok_or_else(|| Error::internal("a column of a CSV file that is no field"))
}

/// The names in a header; those that are empty or repeated get one that is unique.
pub(crate) fn header_names(options: &CsvOptions, record: &[u8]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut invalid = None;
    tokenizer::fields(options, record, &mut |text, _| {
        let text = std::str::from_utf8(text).unwrap_or_else(|_| {
            invalid = Some("the header is not valid UTF-8");
            ""
        });
        names.push(if text.is_empty() { format!("column{}", names.len()) } else { text.to_string() });
    })?;
    match invalid {
        Some(what) => Err(what.to_string()),
        None => Ok(unique_names(names)),
    }
}
