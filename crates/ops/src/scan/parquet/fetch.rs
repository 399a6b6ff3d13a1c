//! Bytes of column chunks: which ranges a morsel needs, and how they are held once they are there.

use std::ops::Range;

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::context::RangeReader;

/// Ranges closer than this are read as one.
pub(super) const GAP_BYTES_MAX: u64 = 64 << 10;
/// The same for a store: a request takes about as long as a megabyte.
const REMOTE_GAP_BYTES_MAX: u64 = 1 << 20;
/// Ranges are not joined beyond this length.
const JOINED_BYTES_MAX: u64 = 16 << 20;

/// Parts of a file, by offset.
#[derive(Debug, Clone, Default)]
pub(super) struct Fetched {
    file_len: u64,
    /// Sorted by offset.
    parts: Vec<(u64, Bytes)>,
}

impl Fetched {
    /// Nothing yet of a file of this length.
    pub(super) fn new(file_len: u64) -> Fetched {
        Fetched { file_len, parts: Vec::new() }
    }

    /// Adds a part.
    pub(super) fn add(&mut self, offset: u64, bytes: Bytes) {
        let position = self.parts.partition_point(|(start, _)| *start < offset);
        self.parts.insert(position, (offset, bytes));
    }

    /// The bytes from `start` on, out of the part that reaches furthest: a later fetch joins ranges across what an
    /// earlier one has brought, so parts may overlap.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let before = self.parts.partition_point(|(offset, _)| *offset <= start);
        let furthest = self.parts[..before].iter().max_by_key(|(offset, bytes)| offset + bytes.len() as u64);
        match furthest {
            Some((offset, bytes)) if start - offset <= bytes.len() as u64 => {
                Ok(bytes.slice((start - offset) as usize..))
            }
            _ => Err(ParquetError::EOF(format!("a page at byte {start} lies outside its column"))),
        }
    }
}

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl ChunkReader for Fetched {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("a page at byte {start} ends outside its column")));
        }
        Ok(bytes.slice(..length))
    }
}

/// The gap up to which ranges of a file are read as one.
pub(super) fn gap_bytes_max(reader: &dyn RangeReader) -> u64 {
    if reader.is_remote() { REMOTE_GAP_BYTES_MAX } else { GAP_BYTES_MAX }
}

/// Joins ranges that overlap or are at most `gap_bytes_max` apart.
pub(super) fn coalesce(mut ranges: Vec<Range<u64>>, gap_bytes_max: u64) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if range.start < last.end
                    || (range.start - last.end <= gap_bytes_max
                        && range.end - last.start <= JOINED_BYTES_MAX) =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_when_close() {
        let far = GAP_BYTES_MAX + 1_000;
        let ranges = vec![50..60, 0..10, 5..20, far..far + 1, 3..3];
        assert_eq!(coalesce(ranges.clone(), GAP_BYTES_MAX), [0..60, far..far + 1]);
        assert_eq!(coalesce(ranges, REMOTE_GAP_BYTES_MAX), [0..far + 1]);
        let big = JOINED_BYTES_MAX;
        assert_eq!(coalesce(vec![0..big, big..big + 1], GAP_BYTES_MAX), [0..big, big..big + 1]);
    }

    #[test]
    fn parts_are_found() {
        let mut fetched = Fetched::new(100);
        fetched.add(40, Bytes::from_static(b"abcd"));
        fetched.add(10, Bytes::from_static(b"xyz"));
        assert_eq!(&fetched.get_bytes(41, 2).unwrap()[..], b"bc");
        assert!(fetched.get_bytes(41, 4).is_err());
        fetched.add(38, Bytes::from_static(b"--abcdef"));
        assert_eq!(&fetched.get_bytes(41, 4).unwrap()[..], b"bcde");
        assert!(fetched.get_bytes(5, 1).is_err() && fetched.get_bytes(20, 1).is_err());
    }
}
