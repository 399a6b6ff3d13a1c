//! Scans of text formats: files are cut into blocks, each a morsel, at the ends of records.
//!
//! A record belongs to the block that its first byte lies in. Where a block begins inside quotes is found by counting
//! quotes in the blocks before it, once each, by whoever has its bytes first.

pub(crate) mod cells;
mod quotes;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use tessera_encodings::{CHUNK_ROWS, Column};
use tessera_types::{Error, Result, Tuple, quote_name};

use crate::context::{Context, RangeReader, Read, Reservation, Run};
use crate::operator::{Collected, Reader, Source, SourceRun, Step};
use crate::scan::file::{
    Conjunct, FileScan, RunConjunct, check_nulls, filter_and_project, read_now, start_conjuncts,
};
use crate::stream_util::{Cutter, Packer};

use cells::Cells;
use quotes::{Block, Counting, Quotes};

/// Bytes of a block: enough to be worth a morsel, few enough to share a small file out.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// The longest record.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 20;
/// Rows that are converted at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// Bytes that are read at once beyond a block, to complete its last record.
const BEYOND_BYTES: u64 = 64 << 10;
/// Blocks of an object that are under way at once while quotes are counted.
const BLOCKS_AHEAD: usize = 8;

/// What tells one text format from another. Errors are texts: the caller names file and line.
pub(crate) trait TextFormat: Send + Sync + std::fmt::Debug {
    /// The byte that switches between inside and outside of quotes, where line ends inside are no ends of records.
    fn quote(&self) -> Option<u8>;

    /// Whether a file may be cut into blocks.
    fn may_split(&self) -> bool;

    /// The end of the record at `start` and the start of the next one; nothing where the bytes end first (and, at the
    /// end of the file, no byte is left).
    fn record_end(&self, bytes: &[u8], start: usize, at_end: bool) -> Option<(usize, usize)>;

    /// Looks at the start of a file: the bytes of its header, and where its fields go.
    fn layout(&self, head: &mut Head<'_>, columns: &Tuple, constants: &[Option<ArrayRef>]) -> Result<Layout>;

    /// Adds one cell of the record to each column (by position of `layout.read`), or none: a blank record.
    fn cells(&self, layout: &Layout, record: &[u8], cells: &mut [Cells]) -> Result<(), BadRecord>;

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
}

/// A record that cannot be read.
#[derive(Debug)]
pub(crate) struct BadRecord(pub(crate) String);

/// The start of a file, read as far as needed.
pub(crate) struct Head<'a> {
    reader: &'a dyn RangeReader,
    context: Option<&'a Arc<dyn Context>>,
    bytes: Vec<u8>,
}

impl<'a> Head<'a> {
    pub(crate) fn new(reader: &'a dyn RangeReader, context: Option<&'a Arc<dyn Context>>) -> Self {
        Head { reader, context, bytes: Vec::new() }
    }

    /// The name of the file.
    pub(crate) fn path(&self) -> &str {
        self.reader.path()
    }

    /// What has been read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether all has been read.
    pub(crate) fn at_end(&self) -> bool {
        self.bytes.len() as u64 == self.reader.len()
    }

    /// Reads more, at least up to `len` bytes or the end.
    pub(crate) fn read_to(&mut self, len: usize) -> Result<()> {
        let end = (len as u64).min(self.reader.len());
        if (self.bytes.len() as u64) < end {
            let more = read_now(self.reader, self.bytes.len() as u64..end, self.context)?;
            self.bytes.extend_from_slice(&more);
        }
        Ok(())
    }

    /// The first record at or after `start`: its end and the start of the next.
    pub(crate) fn record(&mut self, format: &dyn TextFormat, start: usize) -> Result<Option<(usize, usize)>> {
        loop {
            if let Some(ends) = format.record_end(&self.bytes, start, self.at_end()) {
                return Ok(Some(ends));
            }
            if self.at_end() {
                return Ok(None);
            }
            if self.bytes.len() - start.min(self.bytes.len()) > RECORD_BYTES_MAX {
                return Err(too_long(self.path(), start as u64));
            }
            let len = (self.bytes.len() * 2).max(BEYOND_BYTES as usize);
            self.read_to(len)?;
        }
    }

    /// Bytes of a byte order mark at the start.
    pub(crate) fn mark_bytes(&mut self) -> Result<usize> {
        self.read_to(3)?;
        Ok(if self.bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 })
    }
}

fn too_long(path: &str, offset: u64) -> Error {
    Error::new(
        tessera_types::Code::Limit,
        format!(
            "the record of '{path}' that starts at byte {offset} is longer than {RECORD_BYTES_MAX} bytes \
             (RECORD_BYTES_MAX); is a closing quote missing?"
        ),
    )
}

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
                    constants[column] = Some(crate::scan::file::null_constant(atom));
                }
            }
            let len = reader.len();
            let step = if self.format.may_split() { BLOCK_BYTES } else { u64::MAX };
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

    /// Else a reader would fetch all blocks before its own, to count their quotes, before others read them.
    fn in_order(&self) -> bool {
        self.0.format.quote().is_some() && self.0.files.iter().any(|file| file.is_remote)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = self.0.clone();
        let (file, range) = run
            .morsels
            .get(morsel)
            .cloned()
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let TextFile { layout, quotes, .. } = &run.files[file];
        let cells = vec![Cells::default(); layout.read.len()];
        let mut counting = Counting::new(quotes.clone());
        if run.format.quote().is_some() && run.format.may_split() {
            counting.claim(block_of(layout, &range));
        }
        Ok(Box::new(TextReader {
            source: None,
            bytes: Vec::new(),
            base: range.start,
            position: None,
            starts: Vec::new(),
            cells,
            counting,
            packer: Packer::new(run.run.context.chunk_rows()),
            reservation: Reservation::new(run.run.context.clone()),
            cutter: Cutter::default(),
            done: false,
            run,
            file,
            range,
        }))
    }
}

struct TextReader {
    run: Arc<TextRun>,
    file: usize,
    range: Range<u64>,
    source: Option<Arc<dyn RangeReader>>,
    /// Bytes of the file from `base` on.
    bytes: Vec<u8>,
    base: u64,
    /// Where the next record starts in `bytes`; nothing before the first is found.
    position: Option<usize>,
    /// Where the records in `cells` start in the file.
    starts: Vec<u64>,
    cells: Vec<Cells>,
    counting: Counting,
    packer: Packer,
    reservation: Reservation,
    cutter: Cutter,
    done: bool,
}

/// Why work stops before there is output.
enum Stop {
    Blocked(crate::context::Token),
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

impl TextReader {
    fn source(&mut self) -> Result<Arc<dyn RangeReader>> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let file = &self.run.files[self.file];
        let source = self.run.run.open(&file.path)?;
        if source.len() != file.len {
            return Err(Error::data(format!("'{}' changed while it was read", file.path)));
        }
        self.source = Some(source.clone());
        Ok(source)
    }

    fn fetch(&mut self, range: Range<u64>) -> Result<Bytes, Stop> {
        match self.source()?.read(range)? {
            Read::Bytes(bytes) => Ok(bytes),
            Read::Blocked(token) => Err(Stop::Blocked(token)),
        }
    }

    fn at_end(&self) -> bool {
        self.base + self.bytes.len() as u64 == self.run.files[self.file].len
    }

    /// Reads more of the file, and says whether there was more.
    fn extend(&mut self, bytes: u64) -> Result<bool, Stop> {
        let start = self.base + self.bytes.len() as u64;
        let end = start.saturating_add(bytes).min(self.run.files[self.file].len);
        if start == end {
            return Ok(false);
        }
        let more = self.fetch(start..end)?;
        self.reservation.resize(self.bytes.len() + more.len())?;
        self.bytes.extend_from_slice(&more);
        Ok(true)
    }

    /// Finds the first record of the block.
    fn find_start(&mut self) -> Result<usize, Stop> {
        if self.bytes.is_empty() {
            let first = self.range.start == self.run.files[self.file].layout.header_bytes;
            // The byte before the block tells whether a record starts with the block.
            self.base = self.range.start - u64::from(!first);
            if self.run.format.may_split() {
                // With what completes the last record, in one request where that is dear.
                let len = self.run.files[self.file].len;
                let beyond = (self.range.end + BEYOND_BYTES).min(len);
                self.source()?.prefetch(&[self.base..beyond])?;
                self.extend(self.range.end - self.base)?;
                // Before anything else is waited for: others may wait for this.
                if let Some(quote) = self.run.format.quote() {
                    let block = block_of(&self.run.files[self.file].layout, &self.range);
                    self.counting.counted(block, is_odd(&self.bytes[usize::from(!first)..], quote));
                }
            } else {
                self.extend(BLOCK_BYTES)?;
            }
            if first {
                return Ok(0);
            }
        }
        let mut inside = self.inside_quotes()?;
        let quote = self.run.format.quote();
        // The byte before the block is a line end, or stands for nothing: the count already includes it.
        if !inside && self.bytes.first() == Some(&b'\n') {
            return Ok(1);
        }
        let block_end = (self.range.end - self.base) as usize;
        let mut position = 1;
        loop {
            for (offset, byte) in self.bytes.iter().enumerate().skip(position) {
                if Some(*byte) == quote {
                    inside = !inside;
                } else if *byte == b'\n' && !inside {
                    return Ok(offset + 1);
                }
            }
            position = self.bytes.len();
            if position >= block_end {
                return Ok(position);
            }
            if !self.extend(BEYOND_BYTES)? {
                return Ok(position);
            }
        }
    }

    /// Whether the block starts inside quotes.
    fn inside_quotes(&mut self) -> Result<bool, Stop> {
        let Some(quote) = self.run.format.quote() else { return Ok(false) };
        let first = self.run.files[self.file].layout.header_bytes;
        let blocks = block_of(&self.run.files[self.file].layout, &self.range);
        let block_range = |block: usize| {
            let start = first + block as u64 * BLOCK_BYTES;
            start..start + BLOCK_BYTES
        };
        let (mut inside, mut block) = (false, 0);
        while block < blocks {
            let remote = self.run.files[self.file].is_remote;
            let mine = self.counting.counts(block);
            match self.run.files[self.file].quotes.block(block) {
                Block::Counted(odd) => {
                    inside ^= odd;
                    block += 1;
                    continue;
                }
                Block::Counting(token) if remote && !mine => return Err(Stop::Blocked(token)),
                Block::Unknown if remote => {
                    let mut claimed = (block..blocks).take(BLOCKS_AHEAD).collect::<Vec<_>>();
                    claimed.retain(|ahead| self.counting.claim(*ahead));
                    let ranges: Vec<_> = claimed.into_iter().map(block_range).collect();
                    self.source()?.prefetch(&ranges)?;
                    continue;
                }
                // To read a local file again is cheaper than to wait.
                Block::Counting(_) | Block::Unknown => {}
            }
            self.run.run.context.check()?;
            let odd = is_odd(&self.fetch(block_range(block))?, quote);
            self.counting.counted(block, odd);
        }
        Ok(inside)
    }

    /// Collects records until there are enough for a batch, or the block ends.
    fn collect(&mut self) -> Result<bool, Stop> {
        let mut position = match self.position {
            Some(position) => position,
            None => {
                let position = self.find_start()?;
                self.position = Some(position);
                position
            }
        };
        while self.starts.len() < BATCH_ROWS {
            if self.base + position as u64 >= self.range.end {
                return Ok(true);
            }
            let run = self.run.clone();
            let Some((end, next)) = run.format.record_end(&self.bytes, position, self.at_end()) else {
                if self.bytes.len() - position > RECORD_BYTES_MAX {
                    return Err(too_long(&run.files[self.file].path, self.base + position as u64).into());
                }
                // What has been read is dropped before a file that is not cut grows the buffer.
                if !run.format.may_split() && position > 0 {
                    self.bytes.drain(..position);
                    self.base += position as u64;
                    position = 0;
                    self.position = Some(0);
                }
                let more = if run.format.may_split() { BEYOND_BYTES } else { BLOCK_BYTES };
                if !self.extend(more)? {
                    return Ok(true);
                }
                continue;
            };
            let file = &run.files[self.file];
            let before = self.cells.first().map_or(0, Cells::len);
            let offset = self.base + position as u64;
            let mut counted = self.starts.len();
            if let Err(BadRecord(what)) =
                run.format.cells(&file.layout, &self.bytes[position..end], &mut self.cells)
            {
                return Err(self.at_line(offset, &what).into());
            }
            // A file of which no column is read still has records.
            let added = match self.cells.first() {
                Some(cells) => cells.len() > before,
                None => end > position,
            };
            if added {
                self.starts.push(offset);
                counted += 1;
            }
            debug_assert_eq!(counted, self.starts.len());
            position = next;
            self.position = Some(position);
        }
        Ok(false)
    }

    /// Converts, filters and packs what was collected.
    fn emit(&mut self) -> Result<()> {
        let rows = self.starts.len();
        let run = self.run.clone();
        let file = &run.files[self.file];
        let mut columns: Vec<Column> = Vec::with_capacity(run.columns.len());
        for (position, field) in run.columns.fields().iter().enumerate() {
            if let Some(constant) = &file.constants[position] {
                columns.push(Column::Constant(constant.clone(), rows));
                continue;
            }
            let source = file.layout.read.iter().position(|column| *column == position);
            let (Some(source), Some(atom)) = (source, field.atom()) else {
                return Err(Error::internal("a column of a text file that is not read"));
            };
            let array = self.cells[source].to_array(atom).map_err(|error| {
                let offset = self.starts.get(error.row).copied().unwrap_or(self.base);
                let name = quote_name(&field.name);
                self.at_line(offset, &format!("column {name}: {}; {}", error.what, run.format.hint()))
            })?;
            check_nulls(array.as_ref(), field.nullable, &file.path, &field.name)?;
            columns.push(Column::new(array));
        }
        let chunk = filter_and_project(&columns, rows, &run.conjuncts, &run.fields)?;
        self.cells.iter_mut().for_each(Cells::clear);
        self.starts.clear();
        self.packer.push(chunk)
    }

    /// An error with the line that the record at `offset` starts on.
    fn at_line(&self, offset: u64, what: &str) -> Error {
        let path = &self.run.files[self.file].path;
        match line_of(self.source.as_deref(), offset) {
            Some(line) => Error::data(format!("'{path}', line {line}: {what}")),
            None => Error::data(format!("'{path}', byte {offset}: {what}")),
        }
    }

    fn advance(&mut self) -> Result<Step, Stop> {
        let limit = self.run.run.context.chunk_rows();
        loop {
            if let Some(piece) = self.cutter.pop(limit) {
                return Ok(Step::HasOutput(piece));
            }
            if let Some(chunk) = self.packer.pop() {
                self.cutter.put(chunk);
                continue;
            }
            if self.done {
                return Ok(Step::Done);
            }
            self.run.run.context.check()?;
            self.done = self.collect()?;
            if !self.starts.is_empty() {
                self.emit()?;
            }
            if self.done {
                self.packer.flush()?;
            }
        }
    }
}

impl Reader for TextReader {
    fn step(&mut self) -> Result<Step> {
        match self.advance() {
            Ok(step) => Ok(step),
            Err(Stop::Blocked(token)) => Ok(Step::Blocked(token)),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}

/// The number, within its file, of the block that a morsel is.
fn block_of(layout: &Layout, range: &Range<u64>) -> usize {
    ((range.start - layout.header_bytes) / BLOCK_BYTES) as usize
}

fn is_odd(bytes: &[u8], quote: u8) -> bool {
    bytes.iter().filter(|byte| **byte == quote).count() % 2 == 1
}

/// The line, from 1, that byte `offset` of a file lies on.
fn line_of(reader: Option<&dyn RangeReader>, offset: u64) -> Option<u64> {
    let reader = reader?;
    let mut line = 1;
    let mut start = 0;
    while start < offset {
        let end = (start + BLOCK_BYTES).min(offset);
        let bytes = read_now(reader, start..end, None).ok()?;
        line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        start = end;
    }
    Some(line)
}
