//! Reads the records of one block of a text file.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use tessera_context::{RangeReader, Read, ReadBuffer, RejectKind, Reservation, file_changed};
use tessera_operator::stream_util::{Cutter, Packer};
use tessera_operator::{Reader, Step};
use tessera_types::{Error, Result};

use super::cells::Cells;
use super::first_error::first_error;
use super::head::{copied_bytes, line_of, too_long};
use super::quotes::{Block, BlockClaims};
use super::skipped::{BadValue, Skipped};
use super::{
    BATCH_ROWS, BEYOND_BYTES, BLOCK_BYTES, BLOCKS_AHEAD, BadRecord, ConversionError, PIECE_BYTES,
    TextFile, TextRun, block_of,
};
use crate::file::filter_and_project;

/// A reader of one block.
pub(super) struct TextReader {
    run: Arc<TextRun>,
    file: usize,
    range: Range<u64>,
    source: Option<Arc<dyn RangeReader>>,
    /// The bytes of the file from `base` on.
    bytes: Vec<u8>,
    base: u64,
    /// The start of the next record in `bytes`; `None` before the first record is found.
    position: Option<usize>,
    /// The file offsets of the records in `cells`.
    starts: Vec<u64>,
    cells: Vec<Cells>,
    counting: BlockClaims,
    packer: Packer,
    reservation: Reservation,
    cutter: Cutter,
    skipped: Skipped,
    done: bool,
}

/// The reason to stop before there is output.
enum Stop {
    Blocked(tessera_context::Token),
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

impl TextReader {
    /// Creates a reader of the records that begin in `range` of the file at position `file`.
    pub(super) fn new(run: Arc<TextRun>, file: usize, range: Range<u64>) -> TextReader {
        let TextFile { layout, quotes, .. } = &run.files[file];
        let cells = vec![Cells::default(); layout.read.len()];
        let mut counting = BlockClaims::new(quotes.clone());
        if run.format.has_states() && !layout.is_whole {
            counting.claim(block_of(layout, &range));
        }
        TextReader {
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
            skipped: Skipped::new(Reservation::new(run.run.context.clone())),
            done: false,
            run,
            file,
            range,
        }
    }

    fn source(&mut self) -> Result<Arc<dyn RangeReader>> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let file = &self.run.files[self.file];
        let source = self.run.run.open_as(&file.path, file.compression)?;
        if source.len() != file.len {
            return Err(file_changed(&file.path));
        }
        self.source = Some(source.clone());
        Ok(source)
    }

    fn fetch(&mut self, range: Range<u64>) -> Result<Bytes, Stop> {
        match self.source()?.read_into(range, ReadBuffer::default())? {
            Read::Ready(buffer) => Ok(buffer.into_bytes()),
            Read::Blocked(token) => Err(Stop::Blocked(token)),
        }
    }

    fn at_end(&self) -> bool {
        self.base + self.bytes.len() as u64 == self.run.files[self.file].len
    }

    /// Reads more of the file. Returns whether there was more.
    fn extend(&mut self, bytes: u64) -> Result<bool, Stop> {
        let start = self.base + self.bytes.len() as u64;
        let end = start.saturating_add(bytes).min(self.run.files[self.file].len);
        if start == end {
            return Ok(false);
        }
        self.reservation.resize(copied_bytes(&self.bytes, (end - start) as usize))?;
        // A remote object is read in one request, which can be interrupted; a local file is read in
        // pieces, with an interrupt check before each.
        let step = if self.run.files[self.file].is_remote { end - start } else { PIECE_BYTES };
        let mut from = start;
        while from < end {
            self.run.run.context.check()?;
            let to = end.min(from + step);
            let piece = self.fetch(from..to)?;
            self.bytes.reserve_exact((end - from) as usize);
            self.bytes.extend_from_slice(&piece);
            from = to;
        }
        self.reservation.resize(self.bytes.capacity())?;
        Ok(true)
    }

    /// Finds the first record of the block.
    fn find_start(&mut self) -> Result<usize, Stop> {
        let file = &self.run.files[self.file];
        let (len, is_whole) = (file.len, file.layout.is_whole);
        let is_first = self.range.start == file.layout.header_bytes;
        let block = block_of(&file.layout, &self.range);
        if self.bytes.is_empty() {
            // The byte before the block decides whether a record starts with the block.
            self.base = self.range.start - u64::from(!is_first);
            if is_whole {
                self.extend(BLOCK_BYTES)?;
            } else {
                // The bytes that complete the last record are part of the request, since requests
                // can be slow.
                let beyond = (self.range.end + BEYOND_BYTES).min(len);
                self.source()?.prefetch(&[self.base..beyond])?;
                self.extend(self.range.end - self.base)?;
                // Counted before any wait, because other readers may wait for this count.
                if self.run.format.has_states() {
                    let transition =
                        self.run.format.transition(&self.bytes[usize::from(!is_first)..]);
                    self.counting.store(block, transition);
                }
            }
        }
        if is_first {
            return Ok(0);
        }
        let state = if self.run.format.has_states() { self.state_before(block)? } else { 0 };
        let block_end = (self.range.end - self.base) as usize;
        loop {
            if let Some(start) = self.run.format.first_record(&self.bytes, state, self.at_end()) {
                return Ok(start);
            }
            // A record that begins after the block belongs to another reader.
            if self.bytes.len() >= block_end || !self.extend(BEYOND_BYTES)? {
                return Ok(self.bytes.len());
            }
        }
    }

    /// Returns the state at the start of a block.
    fn state_before(&mut self, blocks: usize) -> Result<u8, Stop> {
        let first = self.run.files[self.file].layout.header_bytes;
        let block_range = |block: usize| {
            let start = first + block as u64 * BLOCK_BYTES;
            start..start + BLOCK_BYTES
        };
        let (mut state, mut block) = (0, 0);
        while block < blocks {
            let remote = self.run.files[self.file].is_remote;
            let mine = self.counting.has_claim(block);
            match self.run.files[self.file].quotes.block(block) {
                Block::Counted(transition) => {
                    state = transition.get(usize::from(state)).copied().unwrap_or_default();
                    block += 1;
                    continue;
                }
                Block::Claimed(token) if remote && !mine => return Err(Stop::Blocked(token)),
                Block::Uncounted if remote => {
                    let mut claimed = (block..blocks).take(BLOCKS_AHEAD).collect::<Vec<_>>();
                    claimed.retain(|ahead| self.counting.claim(*ahead));
                    let ranges: Vec<_> = claimed.into_iter().map(block_range).collect();
                    self.source()?.prefetch(&ranges)?;
                    continue;
                }
                // Reading a local file again is cheaper than waiting.
                Block::Claimed(_) | Block::Uncounted => {}
            }
            self.run.run.context.check()?;
            let bytes = self.fetch(block_range(block))?;
            self.counting.store(block, self.run.format.transition(&bytes));
        }
        Ok(state)
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
            let file = &run.files[self.file];
            let ends = run.format.record_end(&file.layout, &self.bytes, position, self.at_end());
            let max = run.leniency.record_bytes_max;
            let Some((end, next)) = ends else {
                if self.bytes.len() - position > max {
                    let offset = self.base + position as u64;
                    if !run.leniency.ignores {
                        return Err(too_long(&file.path, offset, max).into());
                    }
                    // The rows before it need the bytes that are dropped here.
                    if !self.starts.is_empty() {
                        return Ok(false);
                    }
                    self.skip_record(offset, position..self.bytes.len(), over_long(max))?;
                    position = self.pass_record(position)?;
                    self.position = Some(position);
                    continue;
                }
                if file.layout.is_whole && run.rejects.is_some() && !self.starts.is_empty() {
                    return Ok(false);
                }
                // Drops consumed bytes, so that the buffer of an unsplit file does not grow.
                if file.layout.is_whole && position > 0 {
                    self.bytes.drain(..position);
                    self.base += position as u64;
                    position = 0;
                    self.position = Some(0);
                }
                // Doubles the buffer, so that a long record is not searched again for each piece.
                let more = if file.layout.is_whole { BLOCK_BYTES } else { BEYOND_BYTES };
                if !self.extend(more.max((self.bytes.len() - position) as u64))? {
                    return Ok(true);
                }
                continue;
            };
            let offset = self.base + position as u64;
            let record = &self.bytes[position..end];
            let read = match record.len() > max {
                true => Err(over_long(max)),
                false => run.format.cells(&file.layout, record, &mut self.cells),
            };
            match read {
                Ok(true) => self.starts.push(offset),
                Ok(false) => {}
                Err(bad) if run.leniency.ignores => {
                    // Some of its cells may be there.
                    self.cells.iter_mut().for_each(|cells| cells.truncate(self.starts.len()));
                    self.skip_record(offset, position..end, bad)?;
                }
                Err(BadRecord { kind: RejectKind::LineSize, .. }) => {
                    return Err(too_long(&file.path, offset, max).into());
                }
                Err(BadRecord { what, .. }) => return Err(self.at_line(offset, what).into()),
            }
            position = next;
            self.position = Some(position);
        }
        Ok(false)
    }

    /// Lists a record that is skipped.
    fn skip_record(&mut self, offset: u64, range: Range<usize>, bad: BadRecord) -> Result<()> {
        match self.run.rejects {
            Some(_) => {
                let record = (offset, &self.bytes[range]);
                self.skipped.add_record(&self.run, self.file, record, bad)
            }
            None => Ok(()),
        }
    }

    /// Passes the rest of a record that is too long to be held. Returns the start of the next one.
    fn pass_record(&mut self, position: usize) -> Result<usize, Stop> {
        let run = self.run.clone();
        let mut state = run.format.state_after(&self.bytes[position..]);
        loop {
            // The byte before decides whether a record starts.
            let last = self.bytes.len().saturating_sub(1);
            self.bytes.drain(..last);
            self.bytes.shrink_to(BLOCK_BYTES as usize);
            self.base += last as u64;
            if !self.extend(BLOCK_BYTES)? {
                return Ok(self.bytes.len());
            }
            if let Some(next) = run.format.first_record(&self.bytes, state, self.at_end()) {
                return Ok(next);
            }
            let after = run.format.transition(&self.bytes[1..]);
            state = after.get(usize::from(state)).copied().unwrap_or_default();
        }
    }

    /// Converts, filters and packs the collected records.
    fn emit(&mut self) -> Result<()> {
        let rows = self.starts.len();
        let run = self.run.clone();
        let file = &run.files[self.file];
        let (columns, rows) = match run.columns_of(file, &self.cells, rows) {
            Ok(columns) => (columns, rows),
            Err(ConversionError::Cell(..) | ConversionError::Null(_)) if run.leniency.ignores => {
                let (columns, kept, bad) = run.good_columns(file, &mut self.cells, rows)?;
                if run.rejects.is_some() {
                    self.skip_values(bad)?;
                }
                (columns, kept)
            }
            Err(ConversionError::Cell(row, what)) => {
                let start = self.starts.get(row).copied().unwrap_or(self.base);
                return Err(self.at_line(start, what));
            }
            Err(ConversionError::Null(error) | ConversionError::Other(error)) => return Err(error),
        };
        let chunk = filter_and_project(&columns, rows, &run.conjuncts, &run.fields)?;
        self.cells.iter_mut().for_each(Cells::clear);
        self.starts.clear();
        self.packer.push(chunk)
    }

    /// Lists values for which their records are skipped.
    fn skip_values(&mut self, values: Vec<BadValue>) -> Result<()> {
        let run = self.run.clone();
        let layout = &run.files[self.file].layout;
        for value in values {
            let offset = self.starts.get(value.row).copied().unwrap_or(self.base);
            let start = (offset - self.base) as usize;
            let ends = run.format.record_end(layout, &self.bytes, start, self.at_end());
            let end = ends.map_or(self.bytes.len(), |(end, _)| end);
            let record = (offset, self.bytes.get(start..end).unwrap_or_default());
            self.skipped.add_value(&run, self.file, record, value)?;
        }
        Ok(())
    }

    /// The error of the record at `offset`, with its line. An earlier malformed record takes
    /// precedence: another reader may not have reached it, or it may have shifted this reader's
    /// start.
    fn at_line(&self, offset: u64, what: String) -> Error {
        let file = &self.run.files[self.file];
        let source = self.source.as_deref();
        let first = source.and_then(|source| first_error(&self.run, file, source, offset));
        let (offset, what) = first.unwrap_or((offset, what));
        match line_of(source, offset) {
            Some(line) => Error::data(format!("'{}', line {line}: {what}", file.path)),
            None => Error::data(format!("'{}', byte {offset}: {what}", file.path)),
        }
    }

    fn advance(&mut self) -> Result<Step, Stop> {
        let limit = self.run.run.context.chunk_rows();
        loop {
            if let Some(piece) = self.cutter.pop_packed(&mut self.packer, limit) {
                return Ok(Step::HasOutput(piece));
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
                self.skipped.flush(&self.run)?;
            }
        }
    }
}

/// The error of a record of more than `max` bytes.
fn over_long(max: usize) -> BadRecord {
    let what = format!("the record is longer than {max} bytes");
    BadRecord { kind: RejectKind::LineSize, what, field: None }
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
