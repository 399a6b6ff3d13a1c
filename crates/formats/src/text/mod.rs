//! Scans of text formats. Files are split at record boundaries into blocks, each a morsel.
//!
//! A record belongs to the block that contains its first byte. The tokenizer state at the start of
//! a block, such as inside quotes, follows from the blocks before it; each block is examined once.

pub mod cells;
mod first_error;
mod head;
#[cfg(test)]
pub(crate) mod in_memory;
mod leniency;
pub(crate) mod quotes;
mod reader;
mod skipped;
pub(crate) mod times;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::interrupt::is_utf8;
use tessera_context::{Compression, RangeReader, RejectFile, RejectKind, RejectScan, Run};
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun};
use tessera_plan::Node;
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple, quote_name};
use tessera_vector::{CHUNK_ROWS, Column};

use crate::file::{
    Conjunct, FilePredicate, FileScan, RunConjunct, check_nulls, joined_conjuncts, start_conjuncts,
};

use cells::Cells;
pub use head::count_lines;
pub(crate) use head::{Head, line_ends, too_long};
pub(crate) use leniency::{IGNORE_ERRORS, Leniency, MAX_LINE_SIZE, REJECTS};
use quotes::{Quotes, Transition};
use reader::TextReader;

/// The bytes of a block: enough for a morsel, few enough to parallelize small files.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// The longest record.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 20;
/// The rows converted at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// The bytes read at once after a block, to complete its last record.
const BEYOND_BYTES: u64 = 64 << 10;
/// The most bytes of a long record read at once.
const PIECE_BYTES: u64 = 16 << 20;
/// The number of blocks of a remote object that are fetched at once to count quotes.
const BLOCKS_AHEAD: usize = 8;

/// A text format. Errors are texts without a position; the caller adds file and line.
pub(crate) trait TextFormat: Send + Sync + std::fmt::Debug {
    /// Whether records may contain line ends, so that the state at the start of a block matters.
    fn has_states(&self) -> bool;

    /// Returns the effect of bytes on the state. Only for formats that have states.
    fn transition(&self, bytes: &[u8]) -> Transition;

    /// Returns the start of the first record in `bytes[1..]`, which begins in `state`; `bytes[0]`
    /// is the byte before. Returns `None` if the bytes end first.
    fn first_record(&self, bytes: &[u8], state: u8, at_end: bool) -> Option<usize>;

    /// Returns the end of the record at `start` and the start of the next one. Returns `None` if
    /// the bytes end first, or at the end of the file.
    fn record_end(
        &self,
        layout: &Layout,
        bytes: &[u8],
        start: usize,
        at_end: bool,
    ) -> Option<(usize, usize)>;

    /// Reads the head of a file: the length of its header, and the mapping of its fields.
    fn layout(
        &self,
        head: &mut Head<'_>,
        columns: &Tuple,
        constants: &[Option<ArrayRef>],
    ) -> Result<Layout>;

    /// Adds one cell of the record to each column (by position in `layout.read`). Returns `false`
    /// and adds none for a blank record.
    fn cells(&self, layout: &Layout, record: &[u8], cells: &mut [Cells])
    -> Result<bool, BadRecord>;

    /// Returns advice for a value that does not fit its type.
    fn hint(&self) -> &'static str;

    /// Returns the state after these bytes, with which a record starts.
    fn state_after(&self, _start: &[u8]) -> u8 {
        0
    }

    /// Returns the start of a field in a record.
    fn field_start(&self, _record: &[u8], _field: usize) -> Option<usize> {
        None
    }

    /// Returns how a file is read, for the table of scans that have rejects: names and texts.
    fn described(
        &self,
        _reader: &dyn RangeReader,
        _columns: &Tuple,
    ) -> Result<Vec<(&'static str, Option<String>)>> {
        Ok(Vec::new())
    }
}

/// The mapping of one file's fields to columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// The bytes before the first record.
    pub(crate) header_bytes: u64,
    /// For each field of a record, its position in `read`.
    pub(crate) targets: Vec<Option<usize>>,
    /// The scan columns that are read, in order.
    pub(crate) read: Vec<usize>,
    /// The names of the fields, for formats with names in each record.
    pub(crate) names: Vec<Arc<str>>,
    /// Whether a record may contain bytes that are not UTF-8, because a column holds bytes.
    pub(crate) has_bytes: bool,
    /// Whether records are not lines, so that the file cannot be split into blocks.
    pub(crate) is_whole: bool,
    /// Whether records are the elements of one list.
    pub(crate) is_list: bool,
}

impl Layout {
    /// Rejects a record that is not UTF-8.
    pub(crate) fn check_text(&self, record: &[u8]) -> Result<(), BadRecord> {
        if self.has_bytes || is_utf8(record) {
            return Ok(());
        }
        let what = "the record is not valid UTF-8; convert the file to UTF-8".to_string();
        Err(BadRecord { kind: RejectKind::Encoding, what, field: None })
    }
}

/// The error of a malformed record.
#[derive(Debug)]
pub(crate) struct BadRecord {
    pub(crate) kind: RejectKind,
    pub(crate) what: String,
    /// The number of the field, from 0, if the error is about one.
    pub(crate) field: Option<usize>,
}

impl From<String> for BadRecord {
    fn from(what: String) -> BadRecord {
        BadRecord { kind: RejectKind::State, what, field: None }
    }
}

/// A lowered scan of a text format.
#[derive(Debug)]
pub(crate) struct TextScanOperator {
    scan: FileScan,
    conjuncts: Arc<[Conjunct]>,
    files: FilePredicate,
    format: Arc<dyn TextFormat>,
    leniency: Leniency,
}

impl TextScanOperator {
    /// Reads the parameters that scans of all text formats have.
    pub(crate) fn lowered(
        (scan, node): (FileScan, &Node),
        lowering: &Lowering<'_>,
        format: Arc<dyn TextFormat>,
    ) -> Result<Operator> {
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        let files = FilePredicate::new(&scan, lowering)?;
        let leniency = Leniency::new(&node.params)?;
        Ok(Operator::Source(Arc::new(TextScanOperator {
            scan,
            conjuncts,
            files,
            format,
            leniency,
        })))
    }
}

#[derive(Debug)]
struct TextRun {
    run: Run,
    columns: Tuple,
    fields: Vec<usize>,
    conjuncts: Arc<[RunConjunct]>,
    format: Arc<dyn TextFormat>,
    files: Vec<TextFile>,
    morsels: Vec<(usize, Range<u64>)>,
    leniency: Leniency,
    /// The list of what is skipped, if it is kept.
    rejects: Option<Arc<RejectScan>>,
}

#[derive(Debug)]
struct TextFile {
    path: Arc<str>,
    compression: Option<Compression>,
    len: u64,
    is_remote: bool,
    layout: Layout,
    constants: Vec<Option<ArrayRef>>,
    quotes: Arc<Quotes>,
}

/// The reason why cells cannot be converted to columns.
enum ConversionError {
    /// A value, given by its row, is not of its column's type.
    Cell(usize, String),
    /// A column that is declared NOT NULL holds NULL.
    Null(Error),
    Other(Error),
}

impl From<Error> for ConversionError {
    fn from(error: Error) -> ConversionError {
        ConversionError::Other(error)
    }
}

impl TextRun {
    /// Converts the cells of some records to columns of the scan.
    fn columns_of(
        &self,
        file: &TextFile,
        cells: &[Cells],
        rows: usize,
    ) -> Result<Vec<Column>, ConversionError> {
        self.each_column(file, cells, rows, |cells, atom, field| {
            let array = cells.to_array(atom).map_err(|error| {
                let name = quote_name(&field.name);
                ConversionError::Cell(
                    error.row,
                    format!("column {name}: {}; {}", error.what, self.format.hint()),
                )
            })?;
            check_nulls(array.as_ref(), field.nullable, &file.path, &field.name)
                .map_err(ConversionError::Null)?;
            Ok(array)
        })
    }

    /// Returns the columns of some rows: constants, and what `convert` makes of the cells of the
    /// others.
    fn each_column<E: From<Error>>(
        &self,
        file: &TextFile,
        cells: &[Cells],
        rows: usize,
        convert: impl Fn(&Cells, &Atom, &Field) -> Result<ArrayRef, E>,
    ) -> Result<Vec<Column>, E> {
        let column = |(position, field): (usize, &Field)| {
            if let Some(constant) = &file.constants[position] {
                return Ok(Column::Constant(constant.clone(), rows));
            }
            let source = file.layout.read.iter().position(|column| *column == position);
            let cells = source.and_then(|source| cells.get(source));
            match (cells, field.atom()) {
                (Some(cells), Some(atom)) => convert(cells, atom, field).map(Column::new),
                _ => Err(Error::internal("a column of a text file was not read").into()),
            }
        };
        self.columns.fields().iter().enumerate().map(column).collect()
    }
}

impl Source for TextScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut files = Vec::with_capacity(self.scan.paths.len());
        let (mut morsels, mut described) = (Vec::new(), Vec::new());
        for position in self.files.wanted(&self.scan, run)? {
            run.context.check()?;
            let path = &self.scan.paths[position];
            let compression = match &self.scan.compression {
                Some(compression) => *compression,
                None => Compression::of_path(path),
            };
            let reader = run.open_as(path, compression)?;
            let mut constants = self.scan.constants(position)?;
            let mut head = Head::new(&*reader, Some(&run.context));
            let layout = self.format.layout(&mut head, &self.scan.columns, &constants)?;
            for (column, field) in self.scan.columns.fields().iter().enumerate() {
                let lacking = constants[column].is_none() && !layout.read.contains(&column);
                if lacking {
                    let name = quote_name(&field.name);
                    let Some(atom) = field.atom().filter(|_| field.nullable) else {
                        return Err(Error::data(format!("'{path}' has no column {name}")));
                    };
                    constants[column] = Some(crate::file::null_constant(atom));
                }
            }
            let len = reader.len();
            let step = if layout.is_whole { u64::MAX } else { BLOCK_BYTES };
            let mut start = layout.header_bytes;
            while start < len {
                let end = start.saturating_add(step).min(len);
                morsels.push((files.len(), start..end));
                start = end;
            }
            let blocks = len.div_ceil(BLOCK_BYTES) as usize + 1;
            if self.leniency.rejects.is_some() {
                let options = self.format.described(&*reader, &self.scan.columns)?;
                described.push(RejectFile { path: path.clone(), compression, options });
            }
            files.push(TextFile {
                path: path.clone(),
                compression,
                len,
                is_remote: reader.is_remote(),
                layout,
                constants,
                quotes: Quotes::new(blocks),
            });
        }
        let rejects = self.leniency.begin(described, &*run.context);
        Ok(Arc::new(OpenTextRun(Arc::new(TextRun {
            run: run.clone(),
            leniency: self.leniency.clone(),
            rejects,
            columns: self.scan.columns.clone(),
            fields: self.scan.fields.clone(),
            conjuncts: start_conjuncts(&self.conjuncts, run),
            format: self.format.clone(),
            files,
            morsels,
        }))))
    }
}

#[derive(Debug)]
struct OpenTextRun(Arc<TextRun>);

impl SourceRun for OpenTextRun {
    fn morsels(&self) -> usize {
        self.0.morsels.len()
    }

    /// In order, because each reader of a remote file needs the quote counts of all earlier blocks,
    /// and would fetch them all if other readers had not.
    fn in_order(&self) -> bool {
        self.0.format.has_states() && self.0.files.iter().any(|file| file.is_remote)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = self.0.clone();
        let (file, range) = run
            .morsels
            .get(morsel)
            .cloned()
            .ok_or_else(|| Error::internal("the morsel does not exist"))?;
        Ok(Box::new(TextReader::new(run, file, range)))
    }
}

/// The number of a morsel's block within its file.
fn block_of(layout: &Layout, range: &Range<u64>) -> usize {
    ((range.start - layout.header_bytes) / BLOCK_BYTES) as usize
}
