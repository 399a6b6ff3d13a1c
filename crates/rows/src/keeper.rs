//! Rows that are kept until they are read: they leave memory when the query's budget is spoken for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_context::{Reservation, Run};
use tessera_types::Result;

use super::{RowLayout, Rows, RowsBuilder};
use crate::spill::{SpillFile, spillable, write_rows};

/// So many bytes are held only where the budget has room for them.
const ABOVE_ANY_FLOOR: usize = usize::MAX / 2;

/// What all workers that keep rows of one layout have in common.
#[derive(Debug)]
pub struct KeepingRows {
    layout: Arc<RowLayout>,
    run: Run,
    file: Arc<SpillFile>,
    can_leave: bool,
    /// Bytes that all workers hold.
    held_bytes: AtomicUsize,
}

impl KeepingRows {
    /// Rows of this layout, as part of the state of a run.
    pub fn new(layout: Arc<RowLayout>, run: &Run) -> Arc<KeepingRows> {
        Arc::new(KeepingRows {
            can_leave: spillable(layout.tuple()),
            layout,
            run: run.clone(),
            file: SpillFile::new(run),
            held_bytes: AtomicUsize::new(0),
        })
    }

    /// What one worker keeps.
    pub fn keeper(self: &Arc<Self>) -> RowsKeeper {
        RowsKeeper {
            keeping: self.clone(),
            position: 0,
            builder: None,
            builder_bytes: 0,
            sealed_bytes: 0,
            kept: Vec::new(),
            written: 0,
        }
    }

    /// The rows of all workers, in the order of their morsels.
    ///
    /// # Errors
    /// The scratch directory is exhausted; those of [`Rows::concat`].
    pub fn collect(&self, keepers: impl IntoIterator<Item = RowsKeeper>) -> Result<Rows> {
        let mut kept = Vec::new();
        for mut keeper in keepers {
            keeper.end();
            // Nested plans may leave one such collection for each of many tuples, none of which is
            // more than a state may always hold.
            if self.can_leave && !self.run.context.may_hold(ABOVE_ANY_FLOOR, 0) {
                keeper.leave()?;
            }
            kept.append(&mut keeper.kept);
        }
        kept.sort_by_key(|(position, _)| *position);
        Rows::concat(self.layout.clone(), kept.into_iter().map(|(_, rows)| rows))
    }
}

/// The rows that one worker keeps, by morsel.
#[derive(Debug)]
pub struct RowsKeeper {
    keeping: Arc<KeepingRows>,
    position: u64,
    builder: Option<RowsBuilder>,
    builder_bytes: usize,
    sealed_bytes: usize,
    kept: Vec<(u64, Rows)>,
    /// So many of `kept` have left memory.
    written: usize,
}

impl RowsKeeper {
    /// What comes next belongs to the morsel of this position.
    pub fn begin(&mut self, position: u64) {
        self.end();
        self.position = position;
    }

    /// The morsel has ended.
    pub fn end(&mut self) {
        if let Some(builder) = self.builder.take() {
            self.sealed_bytes += self.builder_bytes;
            self.builder_bytes = 0;
            self.kept.push((self.position, builder.seal()));
        }
    }

    /// Adds tuples of about so many bytes.
    ///
    /// # Errors
    /// The memory budget or the scratch directory is exhausted, or `append` fails.
    pub fn append(
        &mut self,
        bytes: usize,
        append: impl FnOnce(&mut RowsBuilder) -> Result<()>,
    ) -> Result<()> {
        let keeping = self.keeping.clone();
        let held = &keeping.held_bytes;
        if keeping.can_leave && !keeping.run.context.may_hold(held.load(Ordering::Relaxed), bytes) {
            self.leave()?;
        }
        let new = || {
            RowsBuilder::new(keeping.layout.clone(), Reservation::new(keeping.run.context.clone()))
        };
        let builder = self.builder.get_or_insert_with(new);
        append(builder)?;
        let after = builder.memory_bytes();
        held.fetch_add(after, Ordering::Relaxed);
        held.fetch_sub(std::mem::replace(&mut self.builder_bytes, after), Ordering::Relaxed);
        Ok(())
    }

    /// All rows leave memory.
    fn leave(&mut self) -> Result<()> {
        self.end();
        let KeepingRows { layout, file, held_bytes, .. } = &*self.keeping;
        for (_, rows) in &mut self.kept[self.written..] {
            let mut blocks = Vec::new();
            write_rows(file, rows, &mut blocks)?;
            *rows = Rows::in_file(layout.clone(), file, blocks);
        }
        self.written = self.kept.len();
        held_bytes.fetch_sub(std::mem::take(&mut self.sealed_bytes), Ordering::Relaxed);
        Ok(())
    }
}
