//! Files in memory, as the context of a run.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use tessera_context::testing::TestContext;
use tessera_context::{Context, Output, Place, RangeReader, Read, ReadBuffer, Token, lock};
use tessera_types::{Error, Result};

/// A context whose files are in memory.
#[derive(Debug)]
pub(super) struct MemoryFiles {
    context: Arc<TestContext>,
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
    /// Whether the first read of each range is answered by a token, as in a store.
    later: bool,
}

impl MemoryFiles {
    pub(super) fn new((chunk_rows, workers): (usize, usize)) -> Arc<MemoryFiles> {
        let context = TestContext::new(chunk_rows, workers);
        Arc::new(MemoryFiles { context, files: Arc::default(), later: false })
    }

    /// The same files, in chunks of another size.
    pub(super) fn with(&self, (chunk_rows, workers): (usize, usize)) -> Arc<MemoryFiles> {
        let context = TestContext::new(chunk_rows, workers);
        Arc::new(MemoryFiles { context, files: self.files.clone(), later: self.later })
    }

    /// The same files, in a store that answers later.
    pub(super) fn answering_later(&self, later: bool) -> Arc<MemoryFiles> {
        Arc::new(MemoryFiles { context: self.context.clone(), files: self.files.clone(), later })
    }

    /// A copy of the files.
    pub(super) fn copy(&self) -> Arc<MemoryFiles> {
        let files = Arc::new(Mutex::new(lock(&self.files).clone()));
        Arc::new(MemoryFiles { context: self.context.clone(), files, later: self.later })
    }

    /// The same files, with this budget of memory.
    pub(super) fn limited_to(&self, budget: usize) -> Arc<MemoryFiles> {
        let (chunk_rows, workers) = (self.chunk_rows(), self.workers());
        let context = TestContext::with_budget(chunk_rows, workers, budget);
        Arc::new(MemoryFiles { context, files: self.files.clone(), later: self.later })
    }

    pub(super) fn put(&self, path: &str, bytes: &[u8]) {
        lock(&self.files).insert(path.to_string(), Bytes::copy_from_slice(bytes));
    }

    pub(super) fn bytes(&self, path: &str) -> Bytes {
        lock(&self.files).get(path).cloned().unwrap_or_default()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        lock(&self.files).contains_key(path)
    }

    /// The bytes of memory that are reserved.
    pub(super) fn used(&self) -> usize {
        self.context.used()
    }
}

impl Context for MemoryFiles {
    fn grow(&self, place: Place, bytes: usize) -> Result<()> {
        self.context.grow(place, bytes)
    }

    fn shrink(&self, place: Place, bytes: usize) {
        self.context.shrink(place, bytes);
    }

    fn check(&self) -> Result<()> {
        self.context.check()
    }

    fn chunk_rows(&self) -> usize {
        self.context.chunk_rows()
    }

    fn workers(&self) -> usize {
        self.context.workers()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        let bytes = lock(&self.files).get(path).cloned();
        let bytes = bytes.ok_or_else(|| Error::io(format!("'{path}' does not exist")))?;
        let (path, asked) = (path.to_string(), Mutex::default());
        Ok(Arc::new(MemoryFile { path, bytes, later: self.later, asked }))
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        let (path, files) = (path.to_string(), self.files.clone());
        Ok(Box::new(MemoryOutput { path, files, bytes: Vec::new() }))
    }
}

/// A file that is read.
#[derive(Debug)]
struct MemoryFile {
    path: String,
    bytes: Bytes,
    later: bool,
    /// The ranges that were answered by a token.
    asked: Mutex<HashSet<Range<u64>>>,
}

impl RangeReader for MemoryFile {
    fn path(&self) -> &str {
        &self.path
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn is_remote(&self) -> bool {
        self.later
    }

    fn read_into(&self, range: Range<u64>, mut buffer: ReadBuffer) -> Result<Read> {
        let path = &self.path;
        let bytes = self.bytes.get(range.start as usize..range.end as usize);
        let bytes = bytes.ok_or_else(|| Error::data(format!("'{path}' has no bytes {range:?}")))?;
        if self.later && lock(&self.asked).insert(range) {
            let token = Token::new();
            token.set_ready();
            return Ok(Read::Blocked(token));
        }
        buffer.reserve(bytes.len()).extend_from_slice(bytes);
        Ok(Read::Ready(buffer))
    }
}

/// A file that is written.
#[derive(Debug)]
struct MemoryOutput {
    path: String,
    bytes: Vec<u8>,
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Output for MemoryOutput {
    fn commit(self: Box<Self>) -> Result<()> {
        lock(&self.files).insert(self.path, self.bytes.into());
        Ok(())
    }
}
