//! What materialise sub-operators of file formats have in common: chunks arrive in any order, are kept by the
//! position of their morsel, and one task writes the file in the source's order. The file appears whole or not at all.
//!
//! Memory: the encoded output, counted.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};

use tessera_encodings::Chunk;
use tessera_plan::{Edge, Inputs, Node};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::context::{Output, Reservation, Run};
use crate::describe;
use crate::operator::{Collected, Finish, Sink, SinkRun, SinkWorker, Task, downcast_workers};
use crate::stream_util::DeferredSource;

/// How tuples become bytes of one format.
pub(crate) trait Encoder: Send + Sync + std::fmt::Debug {
    /// Bytes of a batch that can be made apart from the others; empty where all are made at the end.
    fn encode(&self, _batch: &RecordBatch, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    /// Whether [`Encoder::encode`] does all the work, so that batches need not be kept.
    fn is_text(&self) -> bool;

    /// Writes the file: the pieces of text, or the batches, in order.
    fn write(&self, out: &mut Watched<'_>, pieces: Vec<Piece>) -> Result<()>;
}

/// What one morsel gave.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    position: u64,
    /// Encoded text.
    pub(crate) text: Vec<u8>,
    /// Batches, where they cannot be encoded by themselves.
    pub(crate) batches: Vec<RecordBatch>,
    rows: usize,
}

/// A lowered materialise sub-operator of a file format.
#[derive(Debug)]
pub(crate) struct FileSink {
    pub(crate) path: Arc<str>,
    pub(crate) tuple: Tuple,
    pub(crate) encoder: Arc<dyn Encoder>,
}

#[derive(Debug)]
struct FileSinkRun {
    path: Arc<str>,
    tuple: Tuple,
    encoder: Arc<dyn Encoder>,
    run: Run,
    /// The file being written; taken by the task that completes it.
    output: Mutex<Option<Box<dyn Output>>>,
}

struct FileSinkWorker {
    tuple: Tuple,
    encoder: Arc<dyn Encoder>,
    run: Run,
    reservation: Reservation,
    pieces: Vec<Piece>,
}

/// The edge out of a materialise sub-operator of a file format.
///
/// # Errors
/// No path is given, the input is split among workers, or a field holds a collection.
pub(crate) fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = describe::edge(inputs)?;
    describe::wants_all(edge, 0)?;
    node.params.string("path")?;
    edge.tuple.arrow_schema()?;
    if edge.tuple.is_empty() {
        return Err(Error::semantic(
            "a file of tuples without fields cannot be written; yield at least one field",
        ));
    }
    let tuple = Tuple::new(vec![Field::new("path", Atom::String), Field::new("rows", Atom::Int64)]);
    Ok(describe::gives_one(edge, tuple, tessera_plan::Order::Source))
}

impl Sink for FileSink {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        // Made at once, so that a place that cannot be written is known before the work is done.
        let output = run.context.create(&self.path)?;
        Ok(Arc::new(FileSinkRun {
            path: self.path.clone(),
            tuple: self.tuple.clone(),
            encoder: self.encoder.clone(),
            run: run.clone(),
            output: Mutex::new(Some(output)),
        }))
    }
}

impl SinkRun for FileSinkRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(FileSinkWorker {
            tuple: self.tuple.clone(),
            encoder: self.encoder.clone(),
            reservation: Reservation::new(self.run.context.clone()),
            run: self.run.clone(),
            pieces: Vec::new(),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut pieces = Vec::new();
        let mut reservations = Vec::new();
        for worker in downcast_workers::<FileSinkWorker>(workers)? {
            pieces.extend(worker.pieces);
            reservations.push(worker.reservation);
        }
        pieces.sort_by_key(|piece| piece.position);
        let output = DeferredSource::new(1, self.run.context.chunk_rows());
        let filled = output.clone();
        let task: Task = Box::new(move || {
            let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
            let file = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
            let file = file.ok_or_else(|| Error::internal("a file was written twice"))?;
            write_file(&*self.encoder, &self.path, file, pieces)?;
            drop(reservations);
            let path: ArrayRef = Arc::new(StringViewArray::from(vec![&*self.path]));
            let rows: ArrayRef = Arc::new(Int64Array::from(vec![rows as i64]));
            filled.fill(0, vec![Chunk::from_arrays(vec![path, rows])])
        });
        Ok(Finish { tasks: vec![task], output })
    }
}

impl SinkWorker for FileSinkWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.pieces.push(Piece { position, ..Default::default() });
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        if self.pieces.is_empty() {
            self.pieces.push(Piece::default());
        }
        let batch = chunk.to_batch(&self.tuple)?;
        let Some(piece) = self.pieces.last_mut() else { return Ok(()) };
        piece.rows += batch.num_rows();
        if self.encoder.is_text() {
            let before = piece.text.len();
            self.encoder.encode(&batch, &mut piece.text)?;
            self.reservation.grow(piece.text.len() - before)
        } else {
            self.reservation.grow(chunk.value_bytes())?;
            piece.batches.push(batch);
            Ok(())
        }
    }
}

/// Writes pieces of text one after the other.
pub(crate) fn write_texts(out: &mut Watched<'_>, head: &[u8], pieces: Vec<Piece>) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(format!("cannot write: {error}"));
    out.write_all(head).map_err(failed)?;
    for piece in pieces {
        out.write_all(&piece.text).map_err(failed)?;
    }
    out.flush().map_err(failed)
}

/// The batches of all pieces, joined to batches of a useful size.
pub(crate) fn combined<'a>(
    pieces: Vec<Piece>,
    schema: &'a Arc<arrow::datatypes::Schema>,
) -> impl Iterator<Item = Result<RecordBatch>> + 'a {
    const COMBINED_ROWS: usize = 65_536;
    let mut batches = pieces.into_iter().flat_map(|piece| piece.batches).peekable();
    std::iter::from_fn(move || {
        batches.peek()?;
        let mut group = Vec::new();
        let mut rows = 0;
        while let Some(batch) = batches.next_if(|batch| rows == 0 || rows + batch.num_rows() <= COMBINED_ROWS)
        {
            rows += batch.num_rows();
            group.push(batch);
        }
        Some(arrow::compute::concat_batches(schema, &group).map_err(Error::from))
    })
}

/// An output that remembers why it could not be written: formats wrap the reason in words of their own.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    out: &'a mut dyn Output,
    failure: Option<std::io::Error>,
}

impl Watched<'_> {
    fn keep<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            kind.into()
        })
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.out.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.out.flush();
        self.keep(done)
    }
}

/// Writes a file whole; an error says which file, and what to do.
fn write_file(
    encoder: &dyn Encoder,
    path: &str,
    mut file: Box<dyn Output>,
    pieces: Vec<Piece>,
) -> Result<()> {
    let mut watched = Watched { out: &mut *file, failure: None };
    let written = encoder.write(&mut watched, pieces);
    let failure = watched.failure.take();
    match (failure, written) {
        (Some(error), _) => {
            let cause = match error.kind() {
                std::io::ErrorKind::StorageFull => {
                    "the disk is full; free some space or write elsewhere".to_string()
                }
                _ => error.to_string(),
            };
            Err(Error::io(format!("cannot write '{path}': {cause}. Nothing was kept")))
        }
        (None, Err(error)) => Err(error.context(format!("writing '{path}'"))),
        (None, Ok(())) => file.commit(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full from the first byte on.
    #[derive(Debug)]
    struct Full;

    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Output for Full {
        fn commit(self: Box<Self>) -> Result<()> {
            panic!("what was not written must not appear")
        }
    }

    /// Hides the reason, as libraries do.
    #[derive(Debug)]
    struct Vague;

    impl Encoder for Vague {
        fn is_text(&self) -> bool {
            true
        }

        fn write(&self, out: &mut Watched<'_>, _pieces: Vec<Piece>) -> Result<()> {
            out.write_all(b"x").map_err(|_| Error::io("it did not work"))
        }
    }

    #[test]
    fn a_full_disk_is_told_with_the_path() {
        let error = write_file(&Vague, "there/x.parquet", Box::new(Full), Vec::new()).unwrap_err();
        let expected = "cannot write 'there/x.parquet': the disk is full; free some space or write elsewhere. Nothing was kept";
        assert_eq!(error.message(), expected);
    }
}
