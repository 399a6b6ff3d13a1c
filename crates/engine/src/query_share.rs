//! The part of a query that one of several processes runs: each reads a share of the morsels.

use std::sync::Arc;

use tessera_codegen::Compiler;
use tessera_context::{
    Compression, Context, FolderMode, Output, OutputFolder, Place, RangeReader, Rejects, Scratch,
    Share,
};
use tessera_operator::{Reader, SourceRun};
use tessera_types::Result;

/// Fails when another process has ended the query.
type Check = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// The context of a distributed plan's sub-operators: a query with this process's share, which
/// other processes can end.
pub struct QueryShare {
    query: Arc<dyn Context>,
    share: Share,
    check: Check,
}

impl QueryShare {
    /// The context of this process's share of a query. `check` fails when another process has ended
    /// the query.
    pub fn context(
        query: Arc<dyn Context>,
        share: Share,
        check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Arc<dyn Context> {
        Arc::new(QueryShare { query, share, check: Box::new(check) })
    }
}

impl std::fmt::Debug for QueryShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryShare")
            .field("query", &self.query)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Context for QueryShare {
    fn grow(&self, place: Place, bytes: usize) -> Result<()> {
        self.query.grow(place, bytes)
    }

    fn shrink(&self, place: Place, bytes: usize) {
        self.query.shrink(place, bytes);
    }

    fn check(&self) -> Result<()> {
        self.query.check()?;
        (self.check)()
    }

    fn chunk_rows(&self) -> usize {
        self.query.chunk_rows()
    }

    fn workers(&self) -> usize {
        self.query.workers()
    }

    fn lanes(&self) -> usize {
        self.query.lanes()
    }

    fn memory_bytes(&self) -> usize {
        self.query.memory_bytes()
    }

    fn may_hold(&self, held: usize, more: usize) -> bool {
        self.query.may_hold(held, more)
    }

    fn begin_spillable_state(&self) {
        self.query.begin_spillable_state();
    }

    fn scratch(&self) -> Result<Arc<dyn Scratch>> {
        self.query.scratch()
    }

    fn compiler(&self) -> Option<&Arc<dyn Compiler>> {
        self.query.compiler()
    }

    fn share(&self) -> Share {
        self.share
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        self.query.open(path)
    }

    fn open_as(
        &self,
        path: &str,
        compression: Option<Compression>,
    ) -> Result<Arc<dyn RangeReader>> {
        self.query.open_as(path, compression)
    }

    fn rejects(&self) -> Option<&Rejects> {
        self.query.rejects()
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        self.query.create(path)
    }

    fn create_folder(&self, path: &str, mode: FolderMode) -> Result<Box<dyn OutputFolder>> {
        self.query.create_folder(path, mode)
    }
}

#[derive(Debug)]
struct Part {
    whole: Arc<dyn SourceRun>,
    share: Share,
}

/// The morsels of a source that belong to a share: every `count`-th, so that every process reads
/// from all over a file.
pub(crate) fn part(whole: Arc<dyn SourceRun>, share: Share) -> Arc<dyn SourceRun> {
    if share == Share::default() { whole } else { Arc::new(Part { whole, share }) }
}

impl SourceRun for Part {
    fn morsels(&self) -> usize {
        let Share { index, count } = self.share;
        if index >= count { 0 } else { (self.whole.morsels() + count - 1 - index) / count }
    }

    fn in_order(&self) -> bool {
        self.whole.in_order()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.whole.open(morsel * self.share.count + self.share.index)
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.whole.open_long(morsel * self.share.count + self.share.index)
    }
}
