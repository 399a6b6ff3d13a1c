//! Tuples that wait for the end of their partition or of their peers.

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_rows::SpillableChunk;
use tessera_rows::spill::{SpillFile, write_tuples};
use tessera_types::Result;
use tessera_vector::Chunk;

/// Chunks in their order; spilled if the budget is exhausted and a file is given.
pub(super) struct Waiting {
    run: Run,
    file: Option<Arc<SpillFile>>,
    chunks: Vec<SpillableChunk>,
    memory: Reservation,
}

impl Waiting {
    pub(super) fn new(run: &Run, file: Option<Arc<SpillFile>>) -> Waiting {
        let memory = Reservation::new(run.context.clone());
        Waiting { run: run.clone(), file, chunks: Vec::new(), memory }
    }

    pub(super) fn push(&mut self, chunk: Chunk) -> Result<()> {
        let bytes = chunk.value_bytes();
        match self.file.clone() {
            Some(file) if !self.run.context.may_hold(self.memory.bytes(), bytes) => {
                for waiting in &mut self.chunks {
                    if let Some(chunk) = waiting.in_memory() {
                        *waiting = SpillableChunk::in_file(&file, write_tuples(&file, chunk)?);
                    }
                }
                self.memory.resize(0)?;
                let block = write_tuples(&file, &chunk)?;
                self.chunks.push(SpillableChunk::in_file(&file, block));
            }
            _ => {
                self.memory.grow(bytes)?;
                self.chunks.push(chunk.into());
            }
        }
        Ok(())
    }

    /// Returns the chunks, and the bytes of them that lie in memory, which the caller now holds.
    pub(super) fn take(&mut self) -> Result<(Vec<SpillableChunk>, usize)> {
        let bytes = self.memory.bytes();
        self.memory.resize(0)?;
        Ok((std::mem::take(&mut self.chunks), bytes))
    }
}
