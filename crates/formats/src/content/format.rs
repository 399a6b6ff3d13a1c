//! The formats text and blob, as the rooms above see them.

use tessera_operator::Registry;
use tessera_operator::format::{FirstRead, Format, FormatEntry, TableDescription, TableFiles};
use tessera_plan::Statistics;
use tessera_types::{Atom, Result};

use super::{ContentScan, columns};

/// Files of any format as texts: a row is a file.
#[derive(Debug, Clone, Copy)]
pub struct Text;

/// Files of any format as bytes: a row is a file.
#[derive(Debug, Clone, Copy)]
pub struct Blob;

static TEXT: FormatEntry = FormatEntry {
    name: "text",
    label: "text",
    summary: "Files of any format as texts, one row a file: name, text, size, time of the last \
              change. A file that is not UTF-8 is an error.",
    functions: &["read_text"],
    ..WHOLE_FILES
};

static BLOB: FormatEntry = FormatEntry {
    name: "blob",
    label: "blob",
    summary: "Files of any format as bytes, one row a file, with the columns of text.",
    functions: &["read_blob"],
    ..WHOLE_FILES
};

/// What the formats share.
const WHOLE_FILES: FormatEntry = FormatEntry {
    name: "",
    label: "",
    summary: "",
    // No file is read so because of its name.
    extensions: &[],
    aliases: &[],
    functions: &[],
    scan: "content_scan",
    materialize: None,
    magic: &[],
    first_read: FirstRead { head: true, tail: false },
    declares_types: false,
    counts_rows: true,
    read_options: &[],
    write_options: &[],
};

fn describe(files: &TableFiles<'_>, content: &Atom) -> Result<TableDescription> {
    let statistics = Statistics { rows: Some(files.paths.len() as f64), columns: Vec::new() };
    Ok(TableDescription { columns: columns(content), statistics, params: files.params.clone() })
}

impl Format for Text {
    fn entry(&self) -> &'static FormatEntry {
        &TEXT
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(ContentScan);
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        describe(files, &Atom::String)
    }
}

impl Format for Blob {
    fn entry(&self) -> &'static FormatEntry {
        &BLOB
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(ContentScan);
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        describe(files, &Atom::Bytes)
    }
}
