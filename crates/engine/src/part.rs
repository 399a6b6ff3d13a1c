//! A part of a query: of several processes that run one plan, each reads some of the morsels.

use std::sync::Arc;

use tessera_codegen::Compiler;
use tessera_context::{Context, Output, Place, RangeReader, Scratch, Share};
use tessera_operator::{Reader, SourceRun};
use tessera_types::Result;

/// What else can end a query's part in this process; fails when it has.
type Check = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// A query as the sub-operators of a distributed plan see it: with the share of this process, and
/// ended from elsewhere too.
pub struct InShare {
    query: Arc<dyn Context>,
    share: Share,
    check: Check,
}

impl InShare {
    /// This process's share of a query; `check` fails when another process has ended it.
    pub fn context(
        query: Arc<dyn Context>,
        share: Share,
        check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Arc<dyn Context> {
        Arc::new(InShare { query, share, check: Box::new(check) })
    }
}

impl std::fmt::Debug for InShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InShare")
            .field("query", &self.query)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Context for InShare {
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

    fn memory_bytes(&self) -> usize {
        self.query.memory_bytes()
    }

    fn may_hold(&self, held: usize, more: usize) -> bool {
        self.query.may_hold(held, more)
    }

    fn state_begins(&self) {
        self.query.state_begins();
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

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        self.query.create(path)
    }
}

#[derive(Debug)]
struct Part {
    whole: Arc<dyn SourceRun>,
    share: Share,
}

/// The morsels of a source that are this share's: every `count`-th, so that all read from all over
/// a file.
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
