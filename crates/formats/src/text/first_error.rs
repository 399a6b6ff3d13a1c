//! Finds the first record of a file that cannot be read. Parallel readers each stop at the first
//! error of their own block.

use tessera_context::RangeReader;

use super::cells::Cells;
use super::{BATCH_ROWS, BLOCK_BYTES, BadRecord, ConversionError, TextFile, TextRun};
use crate::file::read_now;

/// Returns the start and the error of the first malformed record before byte `end`. Returns `None`
/// if there is none, or if the search would take too long.
pub(super) fn first_error(
    run: &TextRun,
    file: &TextFile,
    reader: &dyn RangeReader,
    end: u64,
) -> Option<(u64, String)> {
    if reader.is_remote() || file.layout.is_whole {
        return None;
    }
    let mut records = Records { base: file.layout.header_bytes, bytes: Vec::new(), position: 0 };
    let mut cells = vec![Cells::default(); file.layout.read.len()];
    let mut starts: Vec<u64> = Vec::new();
    loop {
        let next = records.next(run, file, reader).filter(|(start, _)| *start < end);
        let mut failed = None;
        if let Some((start, record)) = next {
            match run.format.cells(&file.layout, record, &mut cells) {
                Ok(true) => starts.push(start),
                Ok(false) => {}
                Err(BadRecord { what, .. }) => failed = Some((start, what)),
            }
        }
        let is_last = next.is_none() || failed.is_some();
        if is_last || starts.len() == BATCH_ROWS {
            run.run.context.check().ok()?;
            // Cells of the failed record may be present; they have no entry in `starts`.
            if let Err(ConversionError::Cell(row, what)) =
                run.columns_of(file, &cells, starts.len())
                && let Some(start) = starts.get(row)
            {
                return Some((*start, what));
            }
            cells.iter_mut().for_each(Cells::clear);
            starts.clear();
        }
        if is_last {
            return failed;
        }
    }
}

/// The records of a file, in sequence.
struct Records {
    /// The bytes of the file from `base` on.
    bytes: Vec<u8>,
    base: u64,
    position: usize,
}

impl Records {
    /// Returns start and text of the next record, or `None` at the end or on a read error.
    fn next(
        &mut self,
        run: &TextRun,
        file: &TextFile,
        reader: &dyn RangeReader,
    ) -> Option<(u64, &[u8])> {
        loop {
            let at_end = self.base + self.bytes.len() as u64 == file.len;
            if let Some((end, next)) =
                run.format.record_end(&file.layout, &self.bytes, self.position, at_end)
            {
                let start = std::mem::replace(&mut self.position, next);
                return Some((self.base + start as u64, &self.bytes[start..end]));
            }
            if at_end || self.bytes.len() > super::RECORD_BYTES_MAX {
                return None;
            }
            self.bytes.drain(..self.position);
            self.base += std::mem::take(&mut self.position) as u64;
            let start = self.base + self.bytes.len() as u64;
            let more = read_now(reader, start..(start + BLOCK_BYTES).min(file.len), None).ok()?;
            self.bytes.extend_from_slice(&more);
        }
    }
}
