//! The formats CSV and TSV, as the rooms above see them.

use tessera_operator::Registry;
use tessera_operator::format::{
    COMPRESSION, ColumnTypes, FirstRead, Format, FormatEntry, FormatOption, OptionKind,
    ReadOptions, StartMatch, TEXT, TableDescription, TableFiles, WRITTEN_COMPRESSION,
};
use tessera_plan::{FileFacts, Value};
use tessera_types::{Error, Result};

use super::{CsvMaterialize, CsvScan, facts, flag, infer};
use crate::file::UNION;
use crate::table::{SAMPLE, UNION_BY_NAME, sampled, text_start};
use crate::text::{IGNORE_ERRORS, Leniency, MAX_LINE_SIZE, REJECTS};

/// Comma-separated values, or with another delimiter.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

/// Tab-separated values: CSV whose delimiter is a tab unless an option says otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Tsv;

static CSV: FormatEntry = FormatEntry {
    name: "csv",
    label: "CSV",
    summary: "Comma-separated values, or with another delimiter.",
    extensions: &["csv"],
    aliases: &[],
    functions: &["read_csv", "read_csv_auto"],
    scan: "csv_scan",
    materialize: Some("csv_materialize"),
    magic: &[],
    first_read: FirstRead { head: true, tail: false },
    declares_types: true,
    counts_rows: false,
    read_options: &READ_OPTIONS,
    write_options: &WRITE_OPTIONS,
};

static TSV: FormatEntry = FormatEntry {
    name: "tsv",
    summary: "Tab-separated values: CSV with another default delimiter.",
    extensions: &["tsv"],
    functions: &[],
    read_options: &TSV_READ_OPTIONS,
    write_options: &TSV_WRITE_OPTIONS,
    ..CSV
};

const HEADER: FormatOption =
    literal("header", &["has_header"], "whether the first record has the names of the columns");
const DELIMITER: FormatOption =
    literal("delimiter", &["delim", "sep"], "the character between fields");
const TAB: FormatOption = FormatOption { default: Some("\t"), ..DELIMITER };
const QUOTE: FormatOption = literal("quote", &[], "the character around fields; empty for none");
const ESCAPE: FormatOption = literal("escape", &[], "the character before a quote in a field");
const WRITTEN_NULL: FormatOption = literal("null", &NULL_ALIASES, "the text of NULL");
const NULL_ALIASES: [&str; 2] = ["nullstr", "null_value"];
const NULL: FormatOption = FormatOption {
    help: "a text or several that are NULL, as an empty field without quotes is",
    kind: OptionKind::Strings,
    ..WRITTEN_NULL
};
const SKIP: FormatOption = literal("skip", &[], "the number of lines before the first record");
const COMMENT: FormatOption = literal("comment", &[], "the first character of lines to leave out");
const COLUMNS: FormatOption =
    typed("columns", &[], "names and types of all columns", OptionKind::Columns);
const TYPES: FormatOption = typed(
    "types",
    &["dtypes", "column_types"],
    "types of columns by name, or of the first ones in order",
    OptionKind::Types,
);
const NAMES: FormatOption = typed("names", &[], "names of the columns", OptionKind::Names);
const ALL_VARCHAR: FormatOption =
    typed("all_varchar", &[], "whether all columns are text", OptionKind::AllText);

static READ_OPTIONS: [FormatOption; 20] = read_options(DELIMITER);
static TSV_READ_OPTIONS: [FormatOption; 20] = read_options(TAB);
static WRITE_OPTIONS: [FormatOption; 6] = write_options(DELIMITER);
static TSV_WRITE_OPTIONS: [FormatOption; 6] = write_options(TAB);

const fn read_options(delimiter: FormatOption) -> [FormatOption; 20] {
    let [store, scans, errors, limit] = REJECTS;
    [
        HEADER,
        delimiter,
        QUOTE,
        ESCAPE,
        NULL,
        SAMPLE,
        SKIP,
        COMMENT,
        COLUMNS,
        TYPES,
        NAMES,
        ALL_VARCHAR,
        UNION_BY_NAME,
        COMPRESSION,
        MAX_LINE_SIZE,
        IGNORE_ERRORS,
        store,
        scans,
        errors,
        limit,
    ]
}

const fn write_options(delimiter: FormatOption) -> [FormatOption; 6] {
    [HEADER, delimiter, QUOTE, ESCAPE, WRITTEN_NULL, WRITTEN_COMPRESSION]
}

const fn literal(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
) -> FormatOption {
    FormatOption { name, aliases, help, default: None, kind: TEXT }
}

const fn typed(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    kind: OptionKind,
) -> FormatOption {
    FormatOption { name, aliases, help, default: None, kind }
}

impl Format for Csv {
    fn entry(&self) -> &'static FormatEntry {
        &CSV
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(CsvScan);
        registry.register(CsvMaterialize);
    }

    fn matches_start(&self, start: &[u8]) -> StartMatch {
        match text_start(start) {
            Some(_) => StartMatch::Possible,
            None => StartMatch::No,
        }
    }

    fn check_options(&self, options: &mut ReadOptions) -> Result<()> {
        Leniency::check(options)?;
        let Some(columns) = &options.columns else { return Ok(()) };
        if options.types != ColumnTypes::Inferred || options.params.get("names").is_some() {
            let message = "option columns gives names and types of all columns; remove names, types and all_varchar";
            return Err(Error::semantic(message));
        }
        let names = columns.iter().map(|field| Value::string(field.name.clone()));
        options.params.set("names", names.collect::<Vec<_>>());
        Ok(())
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        let is_union = flag(files.params, UNION)? == Some(true);
        let (readers, statistics) = sampled(files, is_union)?;
        let (columns, mut params) = infer(&readers, files.params)?;
        // Without a header, declared columns name the fields in order, like the option `columns`.
        // One more field is allowed: a delimiter may end the records. Otherwise the record is
        // reported as an error when it is read.
        let is_named = files.params.get("names").is_some();
        let more = usize::from(params.get("header") == Some(&Value::Boolean(false)));
        if let (Some(declared), Some(_)) = (files.declared, params.get("names")) {
            if (declared.len()..=declared.len() + more).contains(&columns.len()) {
                let names = declared.iter().map(|field| Value::string(field.name.clone()));
                params.set("names", names.collect::<Vec<_>>());
            } else if is_named {
                return Err(Error::semantic(format!(
                    "option columns names {} columns, but records of '{}' have {} fields",
                    declared.len(),
                    files.paths[0],
                    columns.len()
                )));
            }
        }
        Ok(TableDescription { columns, statistics, params })
    }

    fn fact_functions(&self) -> &'static [&'static str] {
        &[facts::SNIFF]
    }

    fn facts(&self, _function: &str, files: &TableFiles<'_>) -> Result<FileFacts> {
        facts::sniffed(files)
    }
}

impl Format for Tsv {
    fn entry(&self) -> &'static FormatEntry {
        &TSV
    }

    fn register(&self, registry: &mut Registry) {
        Csv.register(registry);
    }

    fn check_options(&self, options: &mut ReadOptions) -> Result<()> {
        Csv.check_options(options)
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        Csv.describe(files)
    }
}
