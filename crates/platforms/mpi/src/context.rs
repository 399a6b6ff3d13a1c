//! A query as the sub-operators of a distributed plan see it: with this rank's share, and ended by any rank's failure.

use std::sync::Arc;

use tessera_ops::{Context, Output, RangeReader, Share};
use tessera_types::Result;

use crate::link::Link;

#[derive(Debug)]
pub(crate) struct OnRank {
    pub(crate) query: Arc<dyn Context>,
    pub(crate) link: Arc<Link>,
}

impl Context for OnRank {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.query.grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.query.shrink(bytes);
    }

    fn check(&self) -> Result<()> {
        self.query.check()?;
        self.link.check()
    }

    fn chunk_rows(&self) -> usize {
        self.query.chunk_rows()
    }

    fn workers(&self) -> usize {
        self.query.workers()
    }

    fn share(&self) -> Share {
        Share { index: self.link.rank(), count: self.link.ranks() }
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        self.query.open(path)
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        self.query.create(path)
    }
}
