//! Scans of text formats: files are cut into blocks, each a morsel, at the ends of records.
//!
//! A record belongs to the block that its first byte lies in. The state that a block begins in
//! (inside quotes, say) follows from the blocks before it, each of which is looked at once.

pub(crate) mod cells;
mod first_error;
mod head;
#[cfg(test)]
pub(crate) mod in_memory;
pub(crate) mod quotes;
mod reader;
pub(crate) mod times;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::Run;
use tessera_context::interrupt::is_utf8;
use tessera_operator::{Reader, Source, SourceRun};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple, quote_name};
use tessera_vector::{CHUNK_ROWS, Column};

use crate::file::{Conjunct, FileScan, RunConjunct, check_nulls, start_conjuncts};

use cells::Cells;
pub(crate) use head::{Head, line_ends, too_long};
use quotes::{Quotes, Transition};
use reader::TextReader;

/// Bytes of a block: enough to be worth a morsel, few enough to share a small file out.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// The longest record.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 20;
/// Rows that are converted at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// Bytes that are read at once beyond a block, to complete its last record.
const BEYOND_BYTES: u64 = 64 << 10;
/// The most bytes of a long record that are read at once.
const PIECE_BYTES: u64 = 16 << 20;
/// Blocks of an object that are under way at once while quotes are counted.
const BLOCKS_AHEAD: usize = 8;

/// What tells one text format from another. Errors are texts: the caller names file and line.
pub(crate) trait TextFormat: Send + Sync + std::fmt::Debug {
    /// Whether line ends may stand inside records, so that the state at the start of a block
    /// matters.
    fn has_states(&self) -> bool;

    /// What bytes do to the state; of a format that has states.
    fn transition(&self, bytes: &[u8]) -> Transition;

    /// The start of the first record in `bytes[1..]`, which begins in `state`; `bytes[0]` is the
    /// byte before. Nothing where the bytes end first.
    fn first_record(&self, bytes: &[u8], state: u8, at_end: bool) -> Option<usize>;

    /// The end of the record at `start` and the start of the next one; nothing where the bytes end
    /// first (and, at the end of the file, no byte is left).
    fn record_end(
        &self,
        layout: &Layout,
        bytes: &[u8],
        start: usize,
        at_end: bool,
    ) -> Option<(usize, usize)>;

    /// Looks at the start of a file: the bytes of its header, and where its fields go.
    fn layout(
        &self,
        head: &mut Head<'_>,
        columns: &Tuple,
        constants: &[Option<ArrayRef>],
    ) -> Result<Layout>;

    /// Adds one cell of the record to each column (by position of `layout.read`), or none of a
    /// blank record; whether it is one that counts.
    fn cells(&self, layout: &Layout, record: &[u8], cells: &mut [Cells])
    -> Result<bool, BadRecord>;

    /// What to do about a value that does not fit.
    fn hint(&self) -> &'static str;
}

/// Where the fields of one file go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Bytes before the first record.
    pub(crate) header_bytes: u64,
    /// For each field of a record, the position in `read` it goes to.
    pub(crate) targets: Vec<Option<usize>>,
    /// The columns (of the scan) that are read, in order.
    pub(crate) read: Vec<usize>,
    /// Names of the fields, for formats that name them in each record.
    pub(crate) names: Vec<Arc<str>>,
    /// Whether a record may hold bytes that are not UTF-8, since a column takes bytes.
    pub(crate) has_bytes: bool,
    /// Whether records are not lines, so that the file cannot be cut into blocks.
    pub(crate) is_whole: bool,
    /// Whether records are the elements of one list.
    pub(crate) is_list: bool,
}

impl Layout {
    /// Refuses a record that is not text.
    pub(crate) fn check_text(&self, record: &[u8]) -> Result<(), BadRecord> {
        if self.has_bytes || is_utf8(record) {
            return Ok(());
        }
        Err(BadRecord("the record is not valid UTF-8; convert the file to UTF-8".to_string()))
    }
}

/// A record that cannot be read.
#[derive(Debug)]
pub(crate) struct BadRecord(pub(crate) String);

/// A lowered scan of a text format.
#[derive(Debug)]
pub(crate) struct TextScan {
    pub(crate) scan: FileScan,
    pub(crate) conjuncts: Arc<[Conjunct]>,
    pub(crate) format: Arc<dyn TextFormat>,
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
}

#[derive(Debug)]
struct TextFile {
    path: Arc<str>,
    len: u64,
    is_remote: bool,
    layout: Layout,
    constants: Vec<Option<ArrayRef>>,
    quotes: Arc<Quotes>,
}

/// Why cells are no columns.
enum Unfit {
    /// A value, by its row, is not of its column's type.
    Cell(usize, String),
    Other(Error),
}

impl TextRun {
    /// The cells of some records of a file as columns of the scan.
    fn columns_of(
        &self,
        file: &TextFile,
        cells: &[Cells],
        rows: usize,
    ) -> Result<Vec<Column>, Unfit> {
        let mut columns: Vec<Column> = Vec::with_capacity(self.columns.len());
        for (position, field) in self.columns.fields().iter().enumerate() {
            if let Some(constant) = &file.constants[position] {
                columns.push(Column::Constant(constant.clone(), rows));
                continue;
            }
            let source = file.layout.read.iter().position(|column| *column == position);
            let (Some(cells), Some(atom)) =
                (source.and_then(|source| cells.get(source)), field.atom())
            else {
                return Err(Unfit::Other(Error::internal(
                    "a column of a text file that is not read",
                )));
            };
            let array = cells.to_array(atom).map_err(|error| {
                let name = quote_name(&field.name);
                Unfit::Cell(
                    error.row,
                    format!("column {name}: {}; {}", error.what, self.format.hint()),
                )
            })?;
            check_nulls(array.as_ref(), field.nullable, &file.path, &field.name)
                .map_err(Unfit::Other)?;
            columns.push(Column::new(array));
        }
        Ok(columns)
    }
}

impl Source for TextScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut files = Vec::with_capacity(self.scan.paths.len());
        let mut morsels = Vec::new();
        for (position, path) in self.scan.paths.iter().enumerate() {
            run.context.check()?;
            let reader = run.open(path)?;
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
                morsels.push((position, start..end));
                start = end;
            }
            let blocks = len.div_ceil(BLOCK_BYTES) as usize + 1;
            files.push(TextFile {
                path: path.clone(),
                len,
                is_remote: reader.is_remote(),
                layout,
                constants,
                quotes: Quotes::new(blocks),
            });
        }
        Ok(Arc::new(OpenTextRun(Arc::new(TextRun {
            run: run.clone(),
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

    /// Else a reader would fetch all blocks before its own, to count their quotes, before others
    /// read them.
    fn in_order(&self) -> bool {
        self.0.format.has_states() && self.0.files.iter().any(|file| file.is_remote)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = self.0.clone();
        let (file, range) = run
            .morsels
            .get(morsel)
            .cloned()
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        Ok(Box::new(TextReader::new(run, file, range)))
    }
}

/// The number, within its file, of the block that a morsel is.
fn block_of(layout: &Layout, range: &Range<u64>) -> usize {
    ((range.start - layout.header_bytes) / BLOCK_BYTES) as usize
}
