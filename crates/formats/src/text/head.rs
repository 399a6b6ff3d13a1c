//! The head of a text file, and line numbers.

use std::sync::Arc;

use tessera_context::{Context, Interrupt, RangeReader, Reservation, interrupt};
use tessera_types::{Error, Result};

use super::{BEYOND_BYTES, BLOCK_BYTES, Layout, PIECE_BYTES, RECORD_BYTES_MAX, TextFormat};
use crate::file::read_now;

/// The bytes at the start of a file that tell its encoding and compression.
const MARK_BYTES: usize = 10;

/// The head of a file, read as far as needed. Its bytes count against the memory budget of the
/// query.
pub(crate) struct Head<'a> {
    reader: &'a dyn RangeReader,
    context: Option<Arc<dyn Context>>,
    reservation: Option<Reservation>,
    /// The bytes of the file from `base` on.
    bytes: Vec<u8>,
    base: u64,
}

impl<'a> Head<'a> {
    /// Opens the head for the query of `context`, or for the current thread's query.
    pub(crate) fn new(reader: &'a dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Self {
        let context = context.cloned().or_else(interrupt::work);
        let reservation = context.clone().map(Reservation::new);
        Head { reader, context, reservation, bytes: Vec::new(), base: 0 }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &str {
        self.reader.path()
    }

    /// The bytes that were read and not dropped.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the file offset of the byte at `position`.
    pub(crate) fn offset(&self, position: usize) -> u64 {
        self.base + position as u64
    }

    /// Whether the whole file was read.
    pub(crate) fn at_end(&self) -> bool {
        self.base + self.bytes.len() as u64 == self.reader.len()
    }

    /// Reads until at least `len` bytes are present or the file ends.
    pub(crate) fn read_to(&mut self, len: usize) -> Result<()> {
        let from = self.base + self.bytes.len() as u64;
        let end = self.base.saturating_add(len as u64).min(self.reader.len());
        if from >= end {
            return Ok(());
        }
        let more = (end - from) as usize;
        if let Some(reservation) = &mut self.reservation {
            reservation.resize(copied_bytes(&self.bytes, more))?;
        }
        self.bytes.reserve_exact(more);
        let mut start = from;
        while start < end {
            interrupt::check_here()?;
            let piece_end = end.min(start + PIECE_BYTES);
            let piece = read_now(self.reader, start..piece_end, self.context.as_ref())?;
            self.bytes.extend_from_slice(&piece);
            start = piece_end;
        }
        if let Some(reservation) = &mut self.reservation {
            reservation.resize(self.bytes.capacity())?;
        }
        Ok(())
    }

    /// Drops the bytes before `position` if they are worth it, and returns the new position.
    pub(crate) fn passed(&mut self, position: usize) -> usize {
        if position < BLOCK_BYTES as usize || position < self.bytes.len() / 2 {
            return position;
        }
        self.bytes.drain(..position);
        self.base += position as u64;
        0
    }

    /// Returns the end of the first record at or after `start`, and the start of the next.
    pub(crate) fn record(
        &mut self,
        format: &dyn TextFormat,
        start: usize,
    ) -> Result<Option<(usize, usize)>> {
        loop {
            if let Some(ends) =
                format.record_end(&Layout::default(), &self.bytes, start, self.at_end())
            {
                return Ok(Some(ends));
            }
            if self.at_end() {
                return Ok(None);
            }
            if self.bytes.len() - start.min(self.bytes.len()) > RECORD_BYTES_MAX {
                return Err(too_long(self.path(), self.offset(start), RECORD_BYTES_MAX));
            }
            let len = (self.bytes.len() * 2).max(BEYOND_BYTES as usize);
            self.read_to(len)?;
        }
    }

    /// Returns the start of the line after the one at `start`, or the end of the file.
    pub(crate) fn line_after(&mut self, start: usize) -> Result<usize> {
        loop {
            let rest = self.bytes.get(start..).unwrap_or_default();
            match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(at) if rest[at] == b'\r' && rest.get(at + 1) == Some(&b'\n') => {
                    return Ok(start + at + 2);
                }
                Some(at) if self.at_end() || at + 1 < rest.len() => return Ok(start + at + 1),
                None if self.at_end() => return Ok(self.bytes.len()),
                _ => {}
            }
            if rest.len() > RECORD_BYTES_MAX {
                return Err(too_long(self.path(), self.offset(start), RECORD_BYTES_MAX));
            }
            self.read_to((self.bytes.len() * 2).max(BEYOND_BYTES as usize))?;
        }
    }

    /// Returns the number of bytes of a byte order mark at the start.
    ///
    /// # Errors
    /// The file is UTF-16, UTF-32 or compressed.
    pub(crate) fn mark_bytes(&mut self) -> Result<usize> {
        self.read_to(MARK_BYTES)?;
        let found = match self.bytes.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16; convert it to UTF-8 first",
            [0x1f, 0x8b, ..] => {
                "compressed with gzip; to read it, set the option compression, or rename it to end in .gz"
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                "compressed with Zstandard; to read it, set the option compression, or rename it to end in .zst"
            }
            [b'B', b'Z', b'h', _, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
                "compressed with bzip2; to read it, set the option compression, or rename it to end in .bz2"
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0x00, ..] => {
                "compressed with xz; to read it, set the option compression, or rename it to end in .xz"
            }
            [b'P', b'K', 0x03, 0x04, ..] => {
                "a ZIP archive; unpack it, or read it with read_xlsx if it is a workbook"
            }
            [0xef, 0xbb, 0xbf, ..] => return Ok(3),
            _ => return Ok(0),
        };
        Err(Error::data(format!("'{}' is {found}", self.path())))
    }
}

/// The bytes to count while `more` bytes are appended: a long record is temporarily copied, and
/// blocks are too short-lived to count.
pub(super) fn copied_bytes(bytes: &Vec<u8>, more: usize) -> usize {
    let together = bytes.len() + more;
    if together > 2 * BLOCK_BYTES as usize { 2 * together } else { together.max(bytes.capacity()) }
}

/// Counts the line ends in `bytes`: `\n`, `\r\n` or `\r`. `next` is the byte after them.
pub(crate) fn line_ends(bytes: &[u8], next: Option<u8>) -> usize {
    let (mut ends, mut passed) = (0, 0);
    for piece in interrupt::spans(bytes) {
        passed += piece.len();
        ends += line_ends_of(piece, bytes.get(passed).copied().or(next));
    }
    ends
}

fn line_ends_of(bytes: &[u8], next: Option<u8>) -> usize {
    let following = bytes.iter().skip(1).copied().map(Some).chain([next]);
    let ends = |(byte, next): &(&u8, Option<u8>)| match **byte {
        b'\n' => true,
        b'\r' => *next != Some(b'\n'),
        _ => false,
    };
    bytes.iter().zip(following).filter(ends).count()
}

/// The error of the record at byte `offset`.
pub(crate) fn too_long(path: &str, offset: u64, max: usize) -> Error {
    let limit = if max == RECORD_BYTES_MAX { "RECORD_BYTES_MAX" } else { "option max_line_size" };
    Error::new(
        tessera_types::Code::Limit,
        format!(
            "the record of '{path}' that starts at byte {offset} is longer than {max} bytes ({limit}); is a closing \
             quote missing?"
        ),
    )
}

/// Returns the number, from 1, of the line that contains byte `offset`.
pub(super) fn line_of(reader: Option<&dyn RangeReader>, offset: u64) -> Option<u64> {
    let reader = reader?;
    let mut line = 1;
    let mut start = 0;
    while start < offset {
        let end = (start + BLOCK_BYTES).min(offset);
        // Includes the byte after, which decides whether a carriage return ends a line.
        let bytes = read_now(reader, start..(end + 1).min(reader.len()), None).ok()?;
        let (bytes, behind) = bytes.split_at((end - start) as usize);
        line += line_ends(bytes, behind.first().copied()) as u64;
        start = end;
    }
    Some(line)
}

/// Returns the numbers, from 1, of the lines that contain the bytes at `offsets`, which are in
/// order.
///
/// # Errors
/// The file cannot be read, or the statement is cancelled.
pub fn count_lines(
    reader: &dyn RangeReader,
    offsets: impl IntoIterator<Item = u64>,
    interrupt: &Interrupt,
) -> Result<Vec<u64>> {
    let (mut line, mut start, mut lines) = (1, 0, Vec::new());
    for offset in offsets {
        while start < offset {
            interrupt.check()?;
            let end = (start + BLOCK_BYTES).min(offset);
            let bytes = read_now(reader, start..(end + 1).min(reader.len()), None)?;
            let (bytes, behind) = bytes.split_at(((end - start) as usize).min(bytes.len()));
            line += line_ends(bytes, behind.first().copied()) as u64;
            start = end;
        }
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::CsvOptions;
    use crate::text::in_memory::InMemoryFile;

    #[test]
    fn a_head_that_goes_through_a_file_holds_a_part_of_it() {
        let line = b"a line of some length that is repeated\n";
        let text = line.repeat(200_000);
        let file = InMemoryFile(text);
        let options = CsvOptions::new(&tessera_plan::Params::new()).unwrap();
        let (mut head, mut position, mut records) = (Head::new(&file, None), 0, 0);
        while let Some((end, next)) = head.record(&options, position).unwrap() {
            assert_eq!(head.offset(position), (records * line.len()) as u64);
            assert_eq!(&head.bytes()[position..end], &line[..line.len() - 1]);
            records += 1;
            position = head.passed(next);
            assert!(head.bytes().len() <= 4 * BLOCK_BYTES as usize);
        }
        assert!(head.at_end());
        assert_eq!(records, 200_000);
    }

    #[test]
    fn lines_end_in_three_ways() {
        assert_eq!(line_ends(b"a\nb\r\nc\rd", None), 3);
        assert_eq!((line_ends(b"a\r", Some(b'\n')), line_ends(b"a\r", Some(b'b'))), (0, 1));
        assert_eq!((line_ends(b"\r\r\n\n", None), line_ends(b"", None)), (3, 0));
    }
}
