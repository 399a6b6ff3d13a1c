//! A part of a source: of several processes that run one plan, each reads some of the morsels.

use std::sync::Arc;

use tessera_ops::{Reader, Share, SourceRun};
use tessera_types::Result;

#[derive(Debug)]
struct Part {
    whole: Arc<dyn SourceRun>,
    share: Share,
}

/// The morsels of a source that are this share's: every `count`-th, so that all read from all over a file.
pub(crate) fn part(whole: Arc<dyn SourceRun>, share: Share) -> Arc<dyn SourceRun> {
    if share.count <= 1 { whole } else { Arc::new(Part { whole, share }) }
}

impl SourceRun for Part {
    fn morsels(&self) -> usize {
        (self.whole.morsels() + self.share.count - 1 - self.share.index) / self.share.count
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.whole.open(morsel * self.share.count + self.share.index)
    }
}
