//! What reading costs a node.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use tessera_types::Result;

use crate::context::{Counters, RangeReader, Read, Traffic};
use crate::read_buffer::ReadBuffer;

/// A reader that adds its traffic to the node's counters when it is dropped.
#[derive(Debug)]
pub(crate) struct CountingReader {
    pub(crate) reader: Arc<dyn RangeReader>,
    pub(crate) counters: Arc<Counters>,
}

impl RangeReader for CountingReader {
    fn path(&self) -> &str {
        self.reader.path()
    }

    fn len(&self) -> u64 {
        self.reader.len()
    }

    fn modified(&self) -> Option<SystemTime> {
        self.reader.modified()
    }

    fn is_remote(&self) -> bool {
        self.reader.is_remote()
    }

    fn read_into(&self, range: Range<u64>, buffer: ReadBuffer) -> Result<Read> {
        self.reader.read_into(range, buffer)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        self.reader.prefetch(ranges)
    }

    fn traffic(&self) -> Traffic {
        self.reader.traffic()
    }
}

impl Drop for CountingReader {
    fn drop(&mut self) {
        let traffic = self.reader.traffic();
        if traffic != Traffic::default() {
            self.counters.add("store_requests", traffic.requests);
            self.counters.add("store_bytes", traffic.bytes);
            self.counters.add("store_wait_nanoseconds", traffic.wait_nanoseconds);
        }
    }
}
