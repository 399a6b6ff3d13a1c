//! The format XLSX, as the rooms above see it.

use tessera_context::interrupt;
use tessera_operator::Registry;
use tessera_operator::format::{
    FirstRead, Format, FormatEntry, FormatOption, OptionKind, ReadOptions, TEXT, TableDescription,
    TableFiles,
};
use tessera_types::{Field, Result, Tuple};

use crate::table::Options;
use crate::{XlsxScan, table_of, whole};
use tessera_formats::table::sampled;

/// Workbooks of Excel.
#[derive(Debug, Clone, Copy)]
pub struct Xlsx;

static ENTRY: FormatEntry = FormatEntry {
    name: "xlsx",
    label: "XLSX",
    summary: "A sheet of a workbook of Excel.",
    extensions: &["xlsx"],
    aliases: &["xlsm"],
    functions: &["read_xlsx"],
    scan: "xlsx_scan",
    materialize: None,
    magic: &[b"PK\x03\x04"],
    first_read: FirstRead { head: true, tail: false },
    declares_types: true,
    counts_rows: false,
    read_options: &[
        option("sheet", "the name of the sheet; absent: the first one"),
        option(
            "header",
            "whether the first row has the names of the columns; absent: if all its cells are texts",
        ),
        option(
            "range",
            "the cells to read, such as `A1:C10`, `A:C` or `5:10`; absent: from the first row that has cells, in its columns",
        ),
        FormatOption {
            kind: OptionKind::AllText,
            ..option("all_varchar", "whether all columns are text: numbers as the file writes them")
        },
        option(
            "empty_as_varchar",
            "whether a column whose first cell is empty is text; absent: it is double",
        ),
        option(
            "stop_at_empty",
            "whether the table ends before the first row without cells; absent: yes, unless a range is given",
        ),
        option("ignore_errors", "whether a cell that is not of its column's type is NULL"),
    ],
    write_options: &[],
};

const fn option(name: &'static str, help: &'static str) -> FormatOption {
    FormatOption { name, aliases: &[], help, default: None, kind: TEXT }
}

impl Format for Xlsx {
    fn entry(&self) -> &'static FormatEntry {
        &ENTRY
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(XlsxScan);
    }

    fn check_options(&self, options: &mut ReadOptions) -> Result<()> {
        Options::new(&options.params).map(drop)
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        let options = Options::new(files.params)?;
        // The first file has the columns of all.
        let (readers, statistics) = sampled(files, false)?;
        let context = interrupt::work();
        let (bytes, _memory) = whole(&*readers[0], context.as_ref())?;
        let (_, table) = table_of(readers[0].path(), bytes, &options, context.as_ref())?;
        let fields = table.names.iter().zip(&table.types);
        let fields = fields.map(|(name, atom)| Field::nullable(name.as_str(), atom.clone()));
        let (columns, params) = (Tuple::new(fields.collect::<Vec<_>>()), files.params.clone());
        Ok(TableDescription { columns, statistics, params })
    }
}
