//! Collects rows until they are read; spills them when the query's budget is exhausted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_context::{Reservation, Run};
use tessera_types::Result;

use super::{RowLayout, Rows, RowsBuilder};
use crate::spill::{SpillFile, spillable, write_rows};

/// More bytes than any state is always granted: `may_hold` allows them only if the budget has room.
const ABOVE_ANY_FLOOR: usize = usize::MAX / 2;

/// State shared by all workers that collect rows of one layout.
#[derive(Debug)]
pub struct RowsCollector {
    layout: Arc<RowLayout>,
    run: Run,
    file: Arc<SpillFile>,
    can_spill: bool,
    /// Bytes held by all workers.
    held_bytes: AtomicUsize,
}

impl RowsCollector {
    /// Creates an empty collector of rows of this layout, as part of the state of a run.
    pub fn new(layout: Arc<RowLayout>, run: &Run) -> Arc<RowsCollector> {
        Arc::new(RowsCollector {
            can_spill: spillable(layout.tuple()),
            layout,
            run: run.clone(),
            file: SpillFile::new(run),
            held_bytes: AtomicUsize::new(0),
        })
    }

    /// Creates the state of one worker.
    pub fn worker(self: &Arc<Self>) -> RowsCollectorWorker {
        RowsCollectorWorker {
            collector: self.clone(),
            position: 0,
            builder: None,
            builder_bytes: 0,
            sealed_bytes: 0,
            collected: Vec::new(),
            written: 0,
        }
    }

    /// Returns the rows of all workers, in the order of their morsels.
    ///
    /// # Errors
    /// The scratch directory is full; those of [`Rows::concat`].
    pub fn collect(&self, workers: impl IntoIterator<Item = RowsCollectorWorker>) -> Result<Rows> {
        let mut collected = Vec::new();
        for mut worker in workers {
            worker.end();
            // Nested plans may return one such collection for each of many tuples. Each is below
            // the size that a state is always granted, so the total must be checked here.
            if self.can_spill && !self.run.context.may_hold(ABOVE_ANY_FLOOR, 0) {
                worker.spill()?;
            }
            collected.append(&mut worker.collected);
        }
        collected.sort_by_key(|(position, _)| *position);
        Rows::concat(self.layout.clone(), collected.into_iter().map(|(_, rows)| rows))
    }
}

/// The rows that one worker has collected, by morsel.
#[derive(Debug)]
pub struct RowsCollectorWorker {
    collector: Arc<RowsCollector>,
    position: u64,
    builder: Option<RowsBuilder>,
    builder_bytes: usize,
    sealed_bytes: usize,
    collected: Vec<(u64, Rows)>,
    /// The number of entries of `collected` that are spilled.
    written: usize,
}

impl RowsCollectorWorker {
    /// Starts the morsel at this position.
    pub fn begin(&mut self, position: u64) {
        self.end();
        self.position = position;
    }

    /// Ends the morsel.
    pub fn end(&mut self) {
        if let Some(builder) = self.builder.take() {
            self.sealed_bytes += self.builder_bytes;
            self.builder_bytes = 0;
            self.collected.push((self.position, builder.seal()));
        }
    }

    /// Appends tuples of about this many bytes.
    ///
    /// # Errors
    /// The memory budget or the scratch directory is exhausted, or `append` fails.
    pub fn append(
        &mut self,
        bytes: usize,
        append: impl FnOnce(&mut RowsBuilder) -> Result<()>,
    ) -> Result<()> {
        let collector = self.collector.clone();
        let held = &collector.held_bytes;
        if collector.can_spill
            && !collector.run.context.may_hold(held.load(Ordering::Relaxed), bytes)
        {
            self.spill()?;
        }
        let new = || {
            RowsBuilder::new(
                collector.layout.clone(),
                Reservation::new(collector.run.context.clone()),
            )
        };
        let builder = self.builder.get_or_insert_with(new);
        append(builder)?;
        let after = builder.memory_bytes();
        held.fetch_add(after, Ordering::Relaxed);
        held.fetch_sub(std::mem::replace(&mut self.builder_bytes, after), Ordering::Relaxed);
        Ok(())
    }

    /// Spills all rows.
    fn spill(&mut self) -> Result<()> {
        self.end();
        let RowsCollector { layout, file, held_bytes, .. } = &*self.collector;
        for (_, rows) in &mut self.collected[self.written..] {
            let mut blocks = Vec::new();
            write_rows(file, rows, &mut blocks)?;
            *rows = Rows::in_file(layout.clone(), file, blocks);
        }
        self.written = self.collected.len();
        held_bytes.fetch_sub(std::mem::take(&mut self.sealed_bytes), Ordering::Relaxed);
        Ok(())
    }
}
