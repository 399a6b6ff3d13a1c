//! Bytes as a file, for tests.

use std::ops::Range;

use bytes::Bytes;

use tessera_types::Result;

use crate::context::{RangeReader, Read};

/// A file of these bytes.
#[derive(Debug)]
pub(crate) struct InMemory(pub(crate) Vec<u8>);

impl RangeReader for InMemory {
    fn path(&self) -> &str {
        "x"
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Read> {
        let range = range.start as usize..range.end as usize;
        Ok(Read::Bytes(Bytes::copy_from_slice(&self.0[range])))
    }
}
