//! Reads an object by ranges.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tessera_context::{Interrupt, RangeReader, Read, ReadBuffer, Traffic, lock};
use tessera_types::{Error, Result};

use crate::fetch::{Cost, Fetch};
use crate::object::{EDGE_BYTES, Object};

/// A reader of an object for one worker or one lookup. Dropping it cancels its requests.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    object: Arc<Object>,
    /// Ends callers that wait for bytes by polling.
    interrupt: Arc<Interrupt>,
    /// Requested ranges that were not read to their end.
    fetches: Mutex<Vec<Arc<Fetch>>>,
    cost: Arc<Cost>,
}

impl ObjectReader {
    pub(crate) fn new(object: Arc<Object>, interrupt: Arc<Interrupt>) -> ObjectReader {
        ObjectReader { object, interrupt, fetches: Mutex::default(), cost: Arc::default() }
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        if range.start <= range.end && range.end <= self.object.len {
            return Ok(());
        }
        Err(Error::data(format!(
            "'{}' ends at byte {}, but bytes {} to {} are needed: the object is truncated or damaged",
            self.object.address, self.object.len, range.start, range.end
        )))
    }

    /// Returns the range to request for some bytes: a short range at the start or end is extended
    /// to the whole edge.
    fn widened(&self, range: &Range<u64>) -> Range<u64> {
        let inside =
            |edge: Range<u64>| (range.start >= edge.start && range.end <= edge.end).then_some(edge);
        let len = range.end - range.start;
        let edge = match range.end == self.object.len {
            _ if len >= EDGE_BYTES => None,
            true => inside(self.object.edge_range(true)),
            false => (range.start == 0).then(|| inside(self.object.edge_range(false))).flatten(),
        };
        edge.unwrap_or_else(|| range.clone())
    }
}

impl RangeReader for ObjectReader {
    fn path(&self) -> &str {
        &self.object.address
    }

    fn len(&self) -> u64 {
        self.object.len
    }

    fn modified(&self) -> Option<SystemTime> {
        // A server without this header.
        Some(self.object.changed).filter(|changed| *changed != SystemTime::UNIX_EPOCH)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn read_into(&self, range: Range<u64>, _buffer: ReadBuffer) -> Result<Read> {
        self.check(&range)?;
        if range.is_empty() {
            return Ok(Read::Ready(ReadBuffer::default()));
        }
        if let Some(bytes) = self.object.edge(&range) {
            return Ok(Read::Ready(ReadBuffer::adopt(bytes)));
        }
        let mut fetches = lock(&self.fetches);
        let covers =
            |fetch: &Arc<Fetch>| fetch.range.start <= range.start && range.end <= fetch.range.end;
        let position = match fetches.iter().position(covers) {
            Some(position) => position,
            None => {
                let fetch =
                    Fetch::start(self.object.clone(), self.widened(&range), self.cost.clone())?;
                fetches.push(fetch);
                fetches.len() - 1
            }
        };
        let fetch = fetches[position].clone();
        let Some(result) = fetch.result() else {
            self.interrupt.check()?;
            return Ok(Read::Blocked(fetch.token.clone()));
        };
        // Ranges are read in order, so a fetch whose end was read is complete. An error is returned
        // once. A short range is kept, because earlier ranges may have been fetched with it.
        let short = fetch.range.end - fetch.range.start <= EDGE_BYTES;
        let all = result.is_err() || (range.end == fetch.range.end && !short);
        if all {
            fetches.swap_remove(position);
            fetch.end();
        }
        let bytes = result?;
        self.object.keep_edge(&fetch.range, &bytes);
        let from = (range.start - fetch.range.start) as usize;
        let bytes = bytes.slice(from..from + (range.end - range.start) as usize);
        Ok(Read::Ready(ReadBuffer::adopt(bytes)))
    }

    fn prefetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        let mut fetches = lock(&self.fetches);
        for range in ranges {
            self.check(range)?;
            let known =
                fetches.iter().any(|f| f.range.start <= range.start && range.end <= f.range.end);
            if !range.is_empty() && !known && self.object.edge(range).is_none() {
                fetches.push(Fetch::start(
                    self.object.clone(),
                    self.widened(range),
                    self.cost.clone(),
                )?);
            }
        }
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.cost.traffic()
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        lock(&self.fetches).drain(..).for_each(|fetch| fetch.end());
    }
}
