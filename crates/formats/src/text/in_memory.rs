//! In-memory files for tests.

use std::ops::Range;

use tessera_context::{RangeReader, Read, ReadBuffer};
use tessera_types::Result;

/// A file with these bytes.
#[derive(Debug)]
pub(crate) struct InMemoryFile(pub(crate) Vec<u8>);

impl RangeReader for InMemoryFile {
    fn path(&self) -> &str {
        "x"
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_into(&self, range: Range<u64>, mut buffer: ReadBuffer) -> Result<Read> {
        let bytes = &self.0[range.start as usize..range.end as usize];
        buffer.reserve(bytes.len()).extend_from_slice(bytes);
        Ok(Read::Ready(buffer))
    }
}
