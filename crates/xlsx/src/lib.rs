//! Workbooks of Excel: the sub-operator `xlsx_scan` reads the table of a sheet in workbooks of
//! Excel.
//!
//! A file is a morsel. It is held whole, with the texts that its cells share; the sheet is inflated
//! while it is read. Options: `sheet`, `header`, `range`, `empty_as_varchar`, `stop_at_empty`,
//! `ignore_errors`. A column has the type of its first cell. Columns of text have numbers as the
//! file writes them.
//!
//! Memory, counted: for each worker, the bytes of a file, and its shared texts. Order: the
//! source's.

#![forbid(unsafe_code)]

mod archive;
mod book;
mod format;
mod range;
mod sheet;
mod table;
pub mod testing;
#[cfg(test)]
mod tests;
mod xml;

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use tessera_context::{Context, RangeReader, Read, ReadBuffer, Reservation, Run};
use tessera_operator::stream_util::{Cutter, Packer};
use tessera_operator::{
    Lowering, Operator, Reader, Registry, Source, SourceRun, Step, SubOperator,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Result, quote_name};
use tessera_vector::{CHUNK_ROWS, Column};

use tessera_formats::file::{
    self, Conjunct, FilePredicate, FileScan, RunConjunct, filter_and_project, joined_conjuncts,
    read_now, start_conjuncts,
};
use tessera_formats::text::cells::Cells;

pub use format::Xlsx;

use book::Book;
use range::cell_name;
use table::{Options, Table, TableRows, cell, push};

/// Registers the sub-operator and the file format.
pub fn register(registry: &mut Registry) {
    registry.register_format(Xlsx);
}

/// The bytes read at once; a statement can be cancelled in between.
const PIECE_BYTES: u64 = 8 << 20;
/// The bytes of cells that are converted at once.
const BATCH_BYTES: usize = 4 << 20;

/// The sub-operator `xlsx_scan`.
#[derive(Debug)]
pub struct XlsxScan;

impl Descriptor for XlsxScan {
    tessera_operator::describe!(
        "xlsx_scan",
        "Reads the tuples of a sheet in workbooks of Excel.",
        [
            "paths",
            "columns",
            "fields",
            "filter",
            "partitions",
            "sheet",
            "header",
            "range",
            "empty_as_varchar",
            "stop_at_empty",
            "ignore_errors",
            "checked"
        ],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Options::new(&node.params)?;
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        Pushes::SCAN
    }
}

impl SubOperator for XlsxScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        let files = FilePredicate::new(&scan, lowering)?;
        let options = Options::new(&node.params)?;
        Ok(Operator::Source(Arc::new(XlsxScanOperator {
            scan: Arc::new(scan),
            conjuncts,
            files,
            options,
        })))
    }
}

/// Reserves the memory of a file.
fn reserve(source: &dyn RangeReader, memory: &mut Reservation) -> Result<()> {
    let path = source.path();
    let len = usize::try_from(source.len()).unwrap_or(usize::MAX);
    memory.resize(len).map_err(|error| error.context(format!("'{path}'")))
}

/// Reads a whole file. Only for planning.
///
/// # Errors
/// It cannot be read, or there is not enough memory.
fn whole(
    source: &dyn RangeReader,
    context: Option<&Arc<dyn Context>>,
) -> Result<(Bytes, Option<Reservation>)> {
    let mut memory = context.cloned().map(Reservation::new);
    if let Some(memory) = &mut memory {
        reserve(source, memory)?;
    }
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < source.len() {
        let start = bytes.len() as u64;
        let end = (start + PIECE_BYTES).min(source.len());
        bytes.extend_from_slice(&read_now(source, start..end, context)?);
    }
    Ok((Bytes::from(bytes), memory))
}

/// Opens a workbook and finds the table of its sheet.
///
/// # Errors
/// The file is not a workbook, it is damaged, or it has no such sheet; the message names the file.
fn table_of(
    path: &str,
    bytes: Bytes,
    options: &Options,
    context: Option<&Arc<dyn Context>>,
) -> Result<(Book, Table)> {
    let open = || {
        let book = Book::open(bytes, context)?;
        let table = Table::of(&book, options)?;
        Ok((book, table))
    };
    open().map_err(|error: Error| error.context(format!("'{path}'")))
}

#[derive(Debug)]
struct XlsxScanOperator {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
    files: FilePredicate,
    options: Options,
}

#[derive(Debug)]
struct XlsxRun {
    scan: Arc<FileScan>,
    /// The positions of the files that are read.
    files: Vec<usize>,
    conjuncts: Arc<[RunConjunct]>,
    options: Options,
    run: Run,
}

impl Source for XlsxScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(OpenRun(Arc::new(XlsxRun {
            scan: self.scan.clone(),
            files: self.files.wanted(&self.scan, run)?,
            conjuncts: start_conjuncts(&self.conjuncts, run),
            options: self.options.clone(),
            run: run.clone(),
        }))))
    }
}

#[derive(Debug)]
struct OpenRun(Arc<XlsxRun>);

impl SourceRun for OpenRun {
    fn morsels(&self) -> usize {
        self.0.files.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = self.0.clone();
        let file =
            *run.files.get(morsel).ok_or_else(|| Error::internal("the morsel does not exist"))?;
        let context = run.run.context.clone();
        Ok(Box::new(XlsxReader {
            packer: Packer::new(context.chunk_rows()),
            memory: Reservation::new(context),
            cutter: Cutter::default(),
            state: State::Unopened,
            run,
            file,
        }))
    }
}

/// Reads one file.
struct XlsxReader {
    run: Arc<XlsxRun>,
    file: usize,
    memory: Reservation,
    packer: Packer,
    cutter: Cutter,
    state: State,
}

enum State {
    Unopened,
    /// The bytes of the file so far.
    Reading(Arc<dyn RangeReader>, Vec<u8>),
    Open(Box<OpenTable>),
    Done,
}

/// A table that is read.
struct OpenTable {
    book: Book,
    table: Table,
    rows: TableRows,
    /// For each column of the scan, its position in the table, or its constant.
    sources: Vec<SourceColumn>,
}

enum SourceColumn {
    Table(usize, Atom),
    Constant(ArrayRef),
}

impl Reader for XlsxReader {
    fn step(&mut self) -> Result<Step> {
        let context = self.run.run.context.clone();
        context.check()?;
        let limit = context.chunk_rows();
        loop {
            if let Some(piece) = self.cutter.pop_packed(&mut self.packer, limit) {
                return Ok(Step::HasOutput(piece));
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Unopened => {
                    let source = self.run.run.open(&self.run.scan.paths[self.file])?;
                    reserve(&*source, &mut self.memory)?;
                    self.state = State::Reading(source, Vec::new());
                }
                State::Reading(source, bytes) => return self.read(source, bytes),
                State::Open(mut table) => {
                    match self.convert(&mut table)? {
                        true => self.packer.flush()?,
                        false => self.state = State::Open(table),
                    }
                    return Ok(Step::Again);
                }
                State::Done => {
                    self.memory.resize(0)?;
                    return Ok(Step::Done);
                }
            }
        }
    }
}

impl XlsxReader {
    /// Reads the next piece of the file; after the last one, opens it.
    fn read(&mut self, source: Arc<dyn RangeReader>, mut bytes: Vec<u8>) -> Result<Step> {
        let (start, len) = (bytes.len() as u64, source.len());
        if source.is_remote() {
            let starts = (start..len).step_by(PIECE_BYTES as usize);
            let ranges = starts.map(|start| start..(start + PIECE_BYTES).min(len));
            source.prefetch(&ranges.collect::<Vec<_>>())?;
        }
        let end = (start + PIECE_BYTES).min(len);
        match source.read_into(start..end, ReadBuffer::default())? {
            Read::Ready(piece) => {
                bytes.reserve_exact((len - start) as usize);
                bytes.extend_from_slice(&piece);
            }
            Read::Blocked(token) => {
                self.state = State::Reading(source, bytes);
                return Ok(Step::Blocked(token));
            }
        }
        self.state = match bytes.len() as u64 >= len {
            true => State::Open(Box::new(self.open(source.path(), Bytes::from(bytes))?)),
            false => State::Reading(source, bytes),
        };
        Ok(Step::Again)
    }

    fn open(&self, path: &str, bytes: Bytes) -> Result<OpenTable> {
        let (scan, options) = (&self.run.scan, &self.run.options);
        let (book, table) = table_of(path, bytes, options, Some(&self.run.run.context))?;
        let constants = scan.constants(self.file)?;
        let sources = scan.columns.fields().iter().zip(constants).map(|(field, constant)| {
            if let Some(constant) = constant {
                return Ok(SourceColumn::Constant(constant));
            }
            let position = table.names.iter().position(|name| **name == *field.name);
            let (Some(position), Some(atom)) = (position, field.atom()) else {
                return Err(Error::data(format!(
                    "'{path}' has no column {}; its columns are {}",
                    quote_name(&field.name),
                    table.names.join(", ")
                )));
            };
            Ok(SourceColumn::Table(position, atom.clone()))
        });
        let sources = sources.collect::<Result<_>>()?;
        let rows = TableRows::new(&book, &table, options)?;
        Ok(OpenTable { book, table, rows, sources })
    }

    /// Converts the next rows. Returns whether they are the last ones.
    fn convert(&mut self, open: &mut OpenTable) -> Result<bool> {
        let run = self.run.clone();
        let path = &run.scan.paths[self.file];
        let OpenTable { book, table, rows, sources } = open;
        let mut columns: Vec<Cells> = vec![Cells::default(); sources.len()];
        let (mut numbers, mut bytes, mut is_last) = (Vec::new(), 0, false);
        while numbers.len() < CHUNK_ROWS && bytes < BATCH_BYTES {
            let next = rows.next(book, table);
            let Some((number, row)) = next.map_err(|error| error.context(format!("'{path}'")))?
            else {
                is_last = true;
                break;
            };
            for (cells, source) in columns.iter_mut().zip(&*sources) {
                if let SourceColumn::Table(position, atom) = source {
                    let before = cells.bytes();
                    push(cells, cell(&row, table.column(*position)), atom, book.is_1904);
                    bytes += cells.bytes() - before;
                }
            }
            numbers.push(number);
        }
        let rows = numbers.len();
        let converted = columns.iter_mut().zip(&*sources).zip(run.scan.columns.fields());
        let converted = converted.map(|((cells, source), field)| match source {
            SourceColumn::Constant(constant) => Ok(Column::Constant(constant.clone(), rows)),
            SourceColumn::Table(position, atom) => {
                if run.options.ignores {
                    cells.take_bad(atom);
                }
                let array = cells.to_array(atom).map_err(|bad| {
                    let row = numbers.get(bad.row).copied().unwrap_or(0);
                    Error::data(format!(
                        "'{path}', cell {}: {}, the type of the first cell of column {}; set the option all_varchar or ignore_errors",
                        cell_name(table.column(*position), row),
                        bad.what,
                        quote_name(&field.name)
                    ))
                })?;
                file::check_nulls(array.as_ref(), field.nullable, path, &field.name)?;
                Ok(Column::new(array))
            }
        });
        let converted = converted.collect::<Result<Vec<_>>>()?;
        if rows > 0 {
            let fields = &run.scan.fields;
            self.packer.push(filter_and_project(&converted, rows, &run.conjuncts, fields)?)?;
        }
        Ok(is_last)
    }
}
