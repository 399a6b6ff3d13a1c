//! Stateless streams of one chunk in, one chunk out, and the packing of small chunks.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use tessera_functions::growth::in_piece;
use tessera_types::Result;
use tessera_vector::{Chunk, concat_chunks};

use crate::{Step, StreamRun, StreamWorker};

/// A stateless stream that produces at most one chunk per input chunk.
pub trait Transform: Send + Sync + Debug {
    /// Transforms a chunk. An empty result is dropped.
    fn apply(&self, chunk: Chunk) -> Result<Chunk>;

    /// The number of tuples to transform at once, if the output for a whole chunk may need too much
    /// memory.
    fn piece_rows(&self, _chunk: &Chunk) -> Option<usize> {
        None
    }

    /// Like [`StreamRun::passes_lazy`].
    fn passes_lazy(&self) -> bool {
        false
    }
}

/// Runs a [`Transform`].
pub fn transform_run(transform: impl Transform + 'static) -> Arc<dyn StreamRun> {
    Arc::new(TransformRun { transform: Arc::new(transform), pack_rows: None })
}

/// Runs a selective [`Transform`]: its small outputs are packed into chunks of `chunk_rows` tuples.
pub fn packed_transform_run(
    transform: impl Transform + 'static,
    chunk_rows: usize,
) -> Arc<dyn StreamRun> {
    Arc::new(TransformRun { transform: Arc::new(transform), pack_rows: Some(chunk_rows) })
}

#[derive(Debug)]
struct TransformRun {
    transform: Arc<dyn Transform>,
    pack_rows: Option<usize>,
}

struct TransformWorker {
    transform: Arc<dyn Transform>,
    packer: Packer,
    /// The rest of a chunk that is transformed in pieces, and the tuples of a piece.
    rest: Option<(Chunk, usize)>,
}

impl StreamRun for TransformRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let packer = Packer::new(self.pack_rows.unwrap_or(0));
        Ok(Box::new(TransformWorker { transform: self.transform.clone(), packer, rest: None }))
    }

    fn passes_lazy(&self) -> bool {
        self.transform.passes_lazy()
    }
}

impl StreamWorker for TransformWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        match self.transform.piece_rows(&chunk) {
            None => self.packer.push(self.transform.apply(chunk)?),
            Some(piece) => {
                self.rest = Some((chunk, piece));
                Ok(())
            }
        }
    }

    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(chunk) = self.packer.pop() {
                return Ok(Step::HasOutput(chunk));
            }
            let Some((chunk, piece)) = self.rest.take() else { return Ok(Step::NeedInput) };
            let taken = piece.min(chunk.rows());
            if taken < chunk.rows() {
                self.rest = Some((chunk.slice(taken, chunk.rows() - taken), piece));
            }
            self.packer.push(in_piece(|| self.transform.apply(chunk.slice(0, taken)))?)?;
        }
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

/// Packs small chunks together, so that later operators do not pay their cost per chunk for a few
/// tuples.
///
/// A chunk that is at least one eighth full passes unchanged, because a copy would cost more than
/// it saves. The order of tuples does not change. With `chunk_rows` = 0, every chunk passes.
#[derive(Debug)]
pub struct Packer {
    chunk_rows: usize,
    held: Vec<Chunk>,
    held_rows: usize,
    ready: VecDeque<Chunk>,
}

impl Packer {
    /// Creates a packer whose output chunks have about `chunk_rows` tuples.
    pub fn new(chunk_rows: usize) -> Self {
        Packer { chunk_rows, held: Vec::new(), held_rows: 0, ready: VecDeque::new() }
    }

    /// Takes a chunk.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let rows = chunk.rows();
        if rows == 0 {
            return Ok(());
        }
        let small = rows < self.chunk_rows / 8;
        if !small || self.held_rows + rows > self.chunk_rows {
            self.flush()?;
        }
        if small {
            self.held_rows += rows;
            // Compacted now: a sparse chunk would keep all of its columns in memory.
            self.held.push(chunk.compact()?);
        } else {
            self.ready.push_back(chunk);
        }
        Ok(())
    }

    /// Moves the held tuples to the output.
    pub fn flush(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.ready.push_back(concat_chunks(&self.held)?);
            self.held.clear();
            self.held_rows = 0;
        }
        Ok(())
    }

    /// Returns the next packed chunk.
    pub fn pop(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }
}
