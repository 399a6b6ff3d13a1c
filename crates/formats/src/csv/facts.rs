//! `sniff_csv`: what is found of a CSV file from a sample.

use tessera_context::RangeReader;
use tessera_functions::duckdb_name;
use tessera_operator::format::TableFiles;
use tessera_plan::{FileFacts, Params, Scalar, Value};
use tessera_types::{Atom, Error, Result, Slot, Tuple, quote_text};

use super::{CsvOptions, infer};
use crate::text::Head;

/// The function.
pub(super) const SNIFF: &str = "sniff_csv";
/// The text of an option that a file does not need.
const NONE: &str = "(empty)";

/// Returns the dialect and the columns of one file.
///
/// # Errors
/// There are several files, or the file is not CSV.
pub(super) fn sniffed(files: &TableFiles<'_>) -> Result<FileFacts> {
    let [path] = files.paths else {
        return Err(Error::unsupported(format!(
            "{SNIFF} takes one file, but the pattern matches {}; name one of them",
            files.paths.len()
        )));
    };
    let readers = (files.open)(files.paths)?;
    let (tuple, params) = infer(&readers, files.params)?;
    let options = CsvOptions::new(&params)?;
    let newline = line_end(&*readers[0])?;
    let has_moments = |wanted: fn(&Atom) -> bool| {
        tuple.fields().iter().any(|field| field.atom().is_some_and(wanted))
    };
    let format = |found: bool, format: &str| match found {
        true => text(format),
        false => Scalar::Null,
    };
    let named =
        |byte: Option<u8>| byte.map_or(NONE.to_string(), |byte| char::from(byte).to_string());
    let has_header = options.header.unwrap_or(true);
    let escape = options.escape.filter(|_| options.escape != options.quote);
    let columns = tuple.fields().iter().map(|field| {
        let name = field.atom().map(duckdb_name).unwrap_or_default();
        Scalar::Nested([text(&field.name), text(&name)].into())
    });
    let given = given(files.params);
    let row = vec![
        text(&named(Some(options.delimiter))),
        text(&named(options.quote)),
        text(&named(escape)),
        text(newline),
        text(&named(options.comment)),
        Scalar::Integer(options.skip as i128),
        Scalar::Boolean(has_header),
        Scalar::Nested(columns.collect()),
        format(has_moments(|atom| *atom == Atom::Date), "%Y-%m-%d"),
        format(has_moments(|atom| matches!(atom, Atom::Timestamp(..))), "%Y-%m-%d %H:%M:%S"),
        if given.is_empty() { Scalar::Null } else { text(&given) },
        text(&prompt(path, &options, has_header, &tuple)),
    ];
    let column = Atom::Struct(
        ["name", "type"].map(|name| (name.into(), Slot::nullable(Atom::String))).to_vec().into(),
    );
    let columns = vec![
        ("Delimiter", Atom::String),
        ("Quote", Atom::String),
        ("Escape", Atom::String),
        ("NewLineDelimiter", Atom::String),
        ("Comment", Atom::String),
        ("SkipRows", Atom::Int64),
        ("HasHeader", Atom::Boolean),
        ("Columns", Atom::List(Box::new(Slot::nullable(column)))),
        ("DateFormat", Atom::String),
        ("TimestampFormat", Atom::String),
        ("UserArguments", Atom::String),
        ("Prompt", Atom::String),
    ];
    Ok(FileFacts { columns, rows: vec![row] })
}

/// How a file is read, for the table of scans that have rejects.
pub(super) fn described(
    options: &CsvOptions,
    reader: &dyn RangeReader,
    columns: &Tuple,
) -> Result<Vec<(&'static str, Option<String>)>> {
    let named =
        |byte: Option<u8>| Some(byte.map_or(NONE.to_string(), |byte| char::from(byte).to_string()));
    let escape = options.escape.filter(|_| options.escape != options.quote);
    Ok(vec![
        ("delimiter", named(Some(options.delimiter))),
        ("quote", named(options.quote)),
        ("escape", named(escape)),
        ("newline_delimiter", Some(line_end(reader)?.to_string())),
        ("skip_rows", Some(options.skip.to_string())),
        ("has_header", Some(options.header.unwrap_or(true).to_string())),
        ("columns", Some(format!("{{{}}}", names_and_types(columns).join(",")))),
    ])
}

/// Names and types of columns, as the option `columns` has them.
fn names_and_types(tuple: &Tuple) -> Vec<String> {
    let columns = tuple.fields().iter().map(|field| {
        let name = field.atom().map(duckdb_name).unwrap_or_default();
        format!("{}: {}", quote_text(&field.name), quote_text(&name))
    });
    columns.collect()
}

fn text(text: &str) -> Scalar {
    Scalar::String(text.into())
}

/// The end of the first line.
fn line_end(reader: &dyn RangeReader) -> Result<&'static str> {
    let mut head = Head::new(reader, None);
    let end = head.line_after(0)?;
    let line = &head.bytes()[..end];
    Ok(match line {
        _ if line.ends_with(b"\r\n") => "\\r\\n",
        _ if line.ends_with(b"\r") => "\\r",
        _ => "\\n",
    })
}

/// The options that the caller has given.
fn given(params: &Params) -> String {
    let options = params.iter().filter_map(|(name, value)| match value {
        Value::String(text) | Value::Name(text) => Some(format!("{name}={text}")),
        Value::Boolean(flag) => Some(format!("{name}={flag}")),
        Value::Integer(number) => Some(format!("{name}={number}")),
        _ => None,
    });
    options.collect::<Vec<_>>().join(", ")
}

/// The call that reads the file with these options.
fn prompt(path: &str, options: &CsvOptions, has_header: bool, tuple: &Tuple) -> String {
    let byte = |byte: Option<u8>| {
        quote_text(&byte.map_or_else(String::new, |byte| char::from(byte).to_string()))
    };
    let mut call = format!(
        "FROM read_csv({}, delim={}, quote={}, escape={}, skip={}, header={has_header}",
        quote_text(path),
        byte(Some(options.delimiter)),
        byte(options.quote),
        byte(options.escape),
        options.skip,
    );
    if options.comment.is_some() {
        call.push_str(&format!(", comment={}", byte(options.comment)));
    }
    let columns = names_and_types(tuple);
    call.push_str(&format!(", columns={{{}}});", columns.join(", ")));
    call
}
