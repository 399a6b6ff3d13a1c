//! The byte ranges of column chunks: which ones a morsel needs, and their fetched bytes.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use tessera_context::{RangeReader, lock};
use tessera_types::Error;

use crate::file::read_now;

/// The largest gap between ranges that are read as one.
pub(super) const GAP_BYTES_MAX: u64 = 64 << 10;
/// The same for object stores, where a request takes about as long as transferring a megabyte.
const REMOTE_GAP_BYTES_MAX: u64 = 1 << 20;
/// The bytes read for a page header; most headers are shorter.
const HEADER_BYTES: u64 = 1 << 10;
/// The length beyond which ranges are not joined.
const JOINED_BYTES_MAX: u64 = 16 << 20;

/// FetchedRanges parts of a file, by offset.
#[derive(Debug, Clone, Default)]
pub(super) struct FetchedRanges {
    file_len: u64,
    /// Sorted by offset.
    parts: Vec<(u64, Bytes)>,
    on_demand: Option<OnDemandFile>,
}

/// A local file whose other pages are read on demand.
#[derive(Debug, Clone)]
struct OnDemandFile {
    file: Arc<dyn RangeReader>,
    /// The first read error, stored here because the Parquet library's readers cannot return it.
    failure: Arc<Mutex<Option<Error>>>,
}

impl OnDemandFile {
    fn read(&self, range: Range<u64>) -> Result<Bytes, ParquetError> {
        let range = range.start..range.end.min(self.file.len());
        if range.start >= range.end {
            return Err(ParquetError::EOF(format!(
                "a page at byte {} lies outside the file",
                range.start
            )));
        }
        // The bytes of a local file are available without waiting.
        read_now(&*self.file, range, None).map_err(|error| {
            let text = error.to_string();
            lock(&self.failure).get_or_insert(error);
            ParquetError::General(text)
        })
    }
}

impl FetchedRanges {
    /// Creates an empty set of parts of a file of this length.
    pub(super) fn new(file_len: u64) -> FetchedRanges {
        FetchedRanges { file_len, parts: Vec::new(), on_demand: None }
    }

    /// Lets all other bytes be read from a local file on demand.
    pub(super) fn read_on_demand_from(&mut self, file: Arc<dyn RangeReader>) {
        self.on_demand.get_or_insert_with(|| OnDemandFile { file, failure: Arc::default() });
    }

    /// Returns the read error of the file, if any.
    pub(super) fn take_failure(&self) -> Option<Error> {
        self.on_demand.as_ref().and_then(|on_demand| lock(&on_demand.failure).take())
    }

    /// Adds a part.
    pub(super) fn add(&mut self, offset: u64, bytes: Bytes) {
        let position = self.parts.partition_point(|(start, _)| *start < offset);
        self.parts.insert(position, (offset, bytes));
    }

    /// Returns the bytes from `start` on, from the part that reaches furthest. Parts may overlap,
    /// because a later fetch joins ranges across the parts of an earlier one.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let before = self.parts.partition_point(|(offset, _)| *offset <= start);
        let furthest =
            self.parts[..before].iter().max_by_key(|(offset, bytes)| offset + bytes.len() as u64);
        match furthest {
            Some((offset, bytes)) if start - offset <= bytes.len() as u64 => {
                Ok(bytes.slice((start - offset) as usize..))
            }
            _ => Err(ParquetError::EOF(format!("a page at byte {start} lies outside its column"))),
        }
    }
}

impl Length for FetchedRanges {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl ChunkReader for FetchedRanges {
    type T = PageRead;

    fn get_read(&self, start: u64) -> Result<PageRead, ParquetError> {
        match (self.from(start), &self.on_demand) {
            (Ok(bytes), Some(_)) if !bytes.is_empty() => {
                Ok(PageRead { bytes, next: start, on_demand: None })
            }
            (_, Some(on_demand)) => Ok(PageRead {
                bytes: Bytes::new(),
                next: start,
                on_demand: Some(on_demand.clone()),
            }),
            (Ok(bytes), None) => Ok(PageRead { bytes, next: start, on_demand: None }),
            (Err(error), None) => Err(error),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let outside =
            || ParquetError::EOF(format!("a page at byte {start} ends outside its column"));
        let end = start
            .checked_add(length as u64)
            .filter(|end| *end <= self.file_len)
            .ok_or_else(outside)?;
        match (self.from(start), &self.on_demand) {
            (Ok(bytes), _) if bytes.len() >= length => Ok(bytes.slice(..length)),
            (_, Some(_)) if length == 0 => Ok(Bytes::new()),
            (_, Some(on_demand)) => {
                let bytes = on_demand.read(start..end)?;
                if bytes.len() == length { Ok(bytes) } else { Err(outside()) }
            }
            (Ok(_), None) => Err(outside()),
            (Err(error), None) => Err(error),
        }
    }
}

/// A reader at a position of a file. Callers read only a page header.
#[derive(Debug)]
pub(super) struct PageRead {
    bytes: Bytes,
    /// The position after `bytes`.
    next: u64,
    on_demand: Option<OnDemandFile>,
}

impl std::io::Read for PageRead {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if let (true, false, Some(on_demand)) =
            (self.bytes.is_empty(), out.is_empty(), &self.on_demand)
            && self.next < on_demand.file.len()
        {
            let read = on_demand.read(self.next..self.next.saturating_add(HEADER_BYTES));
            self.bytes = read.map_err(std::io::Error::other)?;
            self.next += self.bytes.len() as u64;
        }
        let len = out.len().min(self.bytes.len());
        self.bytes.split_to(len).copy_to_slice(&mut out[..len]);
        Ok(len)
    }
}

/// Returns the largest gap between ranges of a file that are read as one.
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
        let mut fetched = FetchedRanges::new(100);
        fetched.add(40, Bytes::from_static(b"abcd"));
        fetched.add(10, Bytes::from_static(b"xyz"));
        assert_eq!(&fetched.get_bytes(41, 2).unwrap()[..], b"bc");
        assert!(fetched.get_bytes(41, 4).is_err());
        fetched.add(38, Bytes::from_static(b"--abcdef"));
        assert_eq!(&fetched.get_bytes(41, 4).unwrap()[..], b"bcde");
        assert!(fetched.get_bytes(5, 1).is_err() && fetched.get_bytes(20, 1).is_err());
    }
}
