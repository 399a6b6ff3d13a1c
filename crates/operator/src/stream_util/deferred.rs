//! Sources whose chunks are produced after the source exists.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Token, lock};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use super::{ChunksReader, MORSEL_CHUNKS, chunks_source};
use crate::{Reader, SourceRun};

/// The function that produces the chunks of a [`PendingSource`].
type MakeChunks = Box<dyn FnOnce() -> Result<Vec<Chunk>> + Send>;

/// A source whose tuples are produced once, when its token is ready.
pub struct PendingSource {
    token: Token,
    chunk_rows: usize,
    make: Mutex<Option<MakeChunks>>,
    made: OnceLock<Result<Arc<dyn SourceRun>>>,
}

impl PendingSource {
    /// Creates a source of the chunks that `make` returns when `token` is ready. Values owned by
    /// `make` are dropped after its call, or with the source.
    pub fn source(
        token: Token,
        chunk_rows: usize,
        make: impl FnOnce() -> Result<Vec<Chunk>> + Send + 'static,
    ) -> Arc<dyn SourceRun> {
        let make = Mutex::new(Some(Box::new(make) as MakeChunks));
        Arc::new(PendingSource { token, chunk_rows, make, made: OnceLock::new() })
    }

    fn made(&self) -> &Result<Arc<dyn SourceRun>> {
        self.made.get_or_init(|| {
            let make = lock(&self.make).take();
            let make =
                make.ok_or_else(|| Error::internal("the chunks of a source were requested twice"))?;
            Ok(chunks_source(make()?, self.chunk_rows))
        })
    }
}

impl Debug for PendingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingSource").field("token", &self.token).finish_non_exhaustive()
    }
}

impl SourceRun for PendingSource {
    fn ready(&self) -> Option<Token> {
        Some(self.token.clone())
    }

    fn morsels(&self) -> usize {
        // A source that failed has one morsel, so that opening it reports the error.
        self.made().as_ref().map_or(1, |source| source.morsels())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.made().clone()?.open(morsel)
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.made().clone()?.open_long(morsel)
    }
}

/// The output of a sink whose parts are produced by tasks. Each task fills one part; parts are read
/// in order.
#[derive(Debug)]
pub struct DeferredSource {
    parts: Vec<OnceLock<Vec<Chunk>>>,
    morsels: OnceLock<Vec<(usize, usize)>>,
    chunk_rows: usize,
}

impl DeferredSource {
    /// Creates an output of `parts` empty parts.
    pub fn new(parts: usize, chunk_rows: usize) -> Arc<Self> {
        let parts = std::iter::repeat_with(OnceLock::new).take(parts).collect();
        Arc::new(DeferredSource { parts, morsels: OnceLock::new(), chunk_rows })
    }

    /// Fills a part. Each part is filled once.
    ///
    /// # Errors
    /// The part was filled before or does not exist, which is a fault of the sink.
    pub fn fill(&self, part: usize, chunks: Vec<Chunk>) -> Result<()> {
        let filled = self.parts.get(part).is_some_and(|cell| cell.set(chunks).is_ok());
        if filled {
            Ok(())
        } else {
            Err(Error::internal(format!(
                "part {part} of an output is unknown or was filled before"
            )))
        }
    }

    /// The part and the first chunk of each morsel.
    fn ranges(&self) -> &[(usize, usize)] {
        self.morsels.get_or_init(|| {
            let starts = |part: usize| {
                let chunks = self.parts[part].get().map_or(0, Vec::len);
                (0..chunks).step_by(MORSEL_CHUNKS).map(move |first| (part, first))
            };
            (0..self.parts.len()).flat_map(starts).collect()
        })
    }
}

impl SourceRun for DeferredSource {
    fn morsels(&self) -> usize {
        self.ranges().len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let &(part, first) = self
            .ranges()
            .get(morsel)
            .ok_or_else(|| Error::internal("the morsel does not exist"))?;
        let chunks = self.parts[part].get().map_or(&[][..], Vec::as_slice);
        let last = (first + MORSEL_CHUNKS).min(chunks.len());
        Ok(Box::new(ChunksReader::new(chunks[first..last].to_vec(), self.chunk_rows)))
    }
}
