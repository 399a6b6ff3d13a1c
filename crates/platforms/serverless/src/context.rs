//! A query as the sub-operators of a distributed plan see it: with this worker's share, and ended when nobody wants it any more.

use std::sync::Arc;

use tessera_ops::{Context, Output, RangeReader, Share};
use tessera_types::Result;

use crate::task::Task;

#[derive(Debug)]
pub(crate) struct OnWorker {
    pub(crate) query: Arc<dyn Context>,
    pub(crate) task: Arc<Task>,
}

impl Context for OnWorker {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.query.grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.query.shrink(bytes);
    }

    fn check(&self) -> Result<()> {
        self.query.check()?;
        self.task.stop.check()
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

    fn share(&self) -> Share {
        Share { index: self.task.order.index, count: self.task.order.workers }
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        self.query.open(path)
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        self.query.create(path)
    }
}
