//! Common code of sub-operators that write files. Chunks arrive in any order and are written in the
//! source's order, each as soon as all chunks before it are written. A file appears completely or
//! not at all; a stream appears as it is written.
//!
//! Memory, counted: chunks that wait for earlier ones. A worker that is too far ahead waits.

mod compressed;
mod partitioned;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};

use tessera_context::{Compression, Output, Reservation, Run, Token, lock};
use tessera_operator::stream_util::DeferredSource;
use tessera_operator::{
    Finish, Lowering, Operator, ReorderBuffer, Sink, SinkRun, SinkWorker, Task, describe,
    downcast_workers,
};
use tessera_plan::{Edge, Inputs, Node};
use tessera_rows::Collected;
use tessera_types::{Atom, Code, Error, Field, Result, Tuple, io_cause};
use tessera_vector::Chunk;

use compressed::TextOutput;
pub(crate) use compressed::written_compression;
use partitioned::{PartitionRun, PartitionedFiles, Partitioning};

/// The divisor of the memory budget for chunks that wait for earlier ones.
const WAITING_SHARE: usize = 16;

/// Encodes tuples as a file of one format.
pub(crate) trait Encoder: Send + Sync + std::fmt::Debug {
    /// Does the part of the encoding that is independent of earlier batches, on any worker.
    fn part(&self, batch: RecordBatch) -> Result<Part>;

    /// Begins a file.
    fn begin(&self, out: TrackedOutput, run: &Run) -> Result<Box<dyn FileWriter>>;
}

/// A partly encoded batch of a file.
#[derive(Debug)]
pub(crate) enum Part {
    Text(Vec<u8>),
    Batch(RecordBatch),
    /// Parts of several files, in the order of the source.
    Runs(Vec<PartitionRun>),
}

/// A part and its memory reservation.
pub(crate) type PendingPart = (Part, Reservation);

/// A file under construction.
pub(crate) trait FileWriter: Send + Sync + std::fmt::Debug {
    /// Takes the next parts, in the source's order; calls never overlap. The returned groups can be
    /// written while more parts are taken.
    fn take(&self, parts: Vec<PendingPart>) -> Result<Vec<Group>>;

    /// Writes a group that [`FileWriter::take`] returned.
    fn write(&self, _group: Group) -> Result<()> {
        Ok(())
    }

    /// Closes the file after all parts were taken and all groups written.
    fn close(&self) -> Result<()>;
}

/// Batches that are encoded and written together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The number of the group in the file, from 0.
    pub(crate) number: u64,
    pub(crate) batches: Vec<(RecordBatch, Reservation)>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl Group {
    /// Adds a batch.
    pub(crate) fn push(&mut self, part: PendingPart) -> Result<()> {
        let (Part::Batch(batch), memory) = part else {
            return Err(Error::internal("a batch was expected, not text"));
        };
        self.rows += batch.num_rows();
        self.bytes += memory.bytes();
        self.batches.push((batch, memory));
        Ok(())
    }

    /// Returns the group unless it is empty, and begins the next one.
    pub(crate) fn take(&mut self) -> Option<Group> {
        let number = self.number + 1;
        (self.rows > 0).then(|| std::mem::replace(self, Group { number, ..Group::default() }))
    }
}

/// A lowered materialize sub-operator of a file format.
#[derive(Debug)]
pub(crate) struct FileSink {
    path: Arc<str>,
    tuple: Tuple,
    encoder: Arc<dyn Encoder>,
    /// Where tuples go if there are several files.
    partitioning: Option<Arc<Partitioning>>,
}

/// Lowers a materialize sub-operator; `encoder` gets the columns that a file has.
///
/// # Errors
/// A parameter is missing or malformed.
pub(crate) fn lower<E: Encoder + 'static>(
    node: &Node,
    lowering: &Lowering<'_>,
    encoder: impl FnOnce(&Tuple) -> Result<E>,
) -> Result<Operator> {
    let (path, tuple) = (node.params.string("path")?.clone(), lowering.inputs[0].tuple.clone());
    let partitioning = Partitioning::new(node, &tuple)?.map(Arc::new);
    let encoder = match &partitioning {
        None => encoder(&tuple)?,
        Some(partitioning) => encoder(&partitioning.files_tuple(&tuple))?,
    };
    Ok(Operator::Sink(Arc::new(FileSink { path, tuple, encoder: Arc::new(encoder), partitioning })))
}

#[derive(Debug)]
struct FileSinkRun {
    file: Arc<WrittenFile>,
}

/// The state of the file, shared by all workers.
#[derive(Debug)]
struct WrittenFile {
    path: Arc<str>,
    tuple: Tuple,
    encoder: Arc<dyn Encoder>,
    partitioning: Option<Arc<Partitioning>>,
    run: Run,
    /// `None` if there are several files, which the writer completes itself.
    output: Option<TrackedOutput>,
    writer: Box<dyn FileWriter>,
    /// Parts by the position of their morsel.
    parts: ReorderBuffer<PendingPart>,
    rows: AtomicUsize,
}

struct FileSinkWorker {
    file: Arc<WrittenFile>,
    position: u64,
}

/// Derives the output edge of a materialize sub-operator of a file format.
///
/// # Errors
/// The path is missing, the input is partitioned among workers, or a field holds a collection.
pub(crate) fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = describe::edge(inputs)?;
    describe::require_all(edge, 0)?;
    node.params.string("path")?;
    Partitioning::new(node, &edge.tuple)?;
    edge.tuple.arrow_schema()?;
    if edge.tuple.is_empty() {
        return Err(Error::semantic(
            "cannot write a file without fields; yield at least one field",
        ));
    }
    let tuple = Tuple::new(vec![Field::new("path", Atom::String), Field::new("rows", Atom::Int64)]);
    Ok(describe::single_edge(edge, tuple, tessera_plan::Order::Source))
}

impl Sink for FileSink {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        // Created at once, so that an unwritable path fails before any work is done.
        let (output, writer) = match &self.partitioning {
            None => {
                let output = TrackedOutput::new(run.context.create(&self.path)?);
                let writer = self.encoder.begin(output.clone(), run);
                let writer = output.explain(&self.path, writer)?;
                (Some(output), writer)
            }
            Some(partitioning) => {
                let begun = PartitionedFiles::begin(&self.path, partitioning, &self.encoder, run);
                (None, begun?)
            }
        };
        let file = WrittenFile {
            path: self.path.clone(),
            tuple: self.tuple.clone(),
            encoder: self.encoder.clone(),
            partitioning: self.partitioning.clone(),
            run: run.clone(),
            output,
            writer,
            parts: ReorderBuffer::default(),
            rows: AtomicUsize::new(0),
        };
        Ok(Arc::new(FileSinkRun { file: Arc::new(file) }))
    }
}

impl WrittenFile {
    /// Writes all parts that are next.
    fn write(&self) -> Result<()> {
        let written = self.write_next();
        self.explain(written)
    }

    fn write_next(&self) -> Result<()> {
        while let Some(groups) = self.parts.next(|parts| self.writer.take(parts)) {
            groups?.into_iter().try_for_each(|group| self.writer.write(group))?;
        }
        Ok(())
    }

    fn complete(&self) -> Result<()> {
        if !self.parts.is_empty() {
            return Err(Error::internal("a morsel of a file is missing"));
        }
        self.explain(self.writer.close())?;
        self.output.as_ref().map_or(Ok(()), TrackedOutput::commit)
    }

    fn explain<T>(&self, done: Result<T>) -> Result<T> {
        match &self.output {
            Some(output) => output.explain(&self.path, done),
            None => done,
        }
    }
}

impl SinkRun for FileSinkRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(FileSinkWorker { file: self.file.clone(), position: 0 }))
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(downcast_workers::<FileSinkWorker>(workers)?);
        let output = DeferredSource::new(1, self.file.run.context.chunk_rows());
        let filled = output.clone();
        let task: Task = Box::new(move || {
            let file = &self.file;
            file.complete()?;
            let path: ArrayRef = Arc::new(StringViewArray::from(vec![&*file.path]));
            let rows: ArrayRef =
                Arc::new(Int64Array::from(vec![file.rows.load(Ordering::Relaxed) as i64]));
            filled.fill(0, vec![Chunk::from_arrays(vec![path, rows])])
        });
        Ok(Finish { tasks: vec![task], output })
    }
}

impl SinkWorker for FileSinkWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let file = &self.file;
        file.run.context.check()?;
        let mut memory = Reservation::new(file.run.context.clone());
        memory.grow(chunk.value_bytes())?;
        let batch = chunk.to_batch(&file.tuple)?;
        file.rows.fetch_add(batch.num_rows(), Ordering::Relaxed);
        let part = match &file.partitioning {
            None => file.encoder.part(batch)?,
            Some(partitioning) => {
                let held =
                    std::mem::replace(&mut memory, Reservation::new(file.run.context.clone()));
                Part::Runs(partitioning.runs(&batch, &*file.encoder, held, &file.run)?)
            }
        };
        let bytes = match &part {
            Part::Text(text) => {
                memory.resize(text.len())?;
                memory.bytes()
            }
            Part::Batch(_) => memory.bytes(),
            Part::Runs(runs) => runs.iter().map(PartitionRun::bytes).sum(),
        };
        file.parts.put(self.position, (part, memory), bytes);
        file.write()
    }

    fn blocked(&self) -> Option<Token> {
        let bytes_max = self.file.run.context.memory_bytes() / WAITING_SHARE;
        self.file.parts.blocked(self.position, bytes_max)
    }

    fn end(&mut self) -> Result<()> {
        self.file.parts.end(self.position);
        self.file.write()
    }
}

/// A text file: a head, all parts with separators between them, and a tail.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// The output, and whether it has a part.
    out: Mutex<(TextOutput, bool)>,
    separator: &'static [u8],
    tail: &'static [u8],
    run: Run,
}

impl TextFile {
    pub(crate) fn begin(
        out: TrackedOutput,
        compression: Option<Compression>,
        run: &Run,
        head: &[u8],
    ) -> Result<Box<dyn FileWriter>> {
        TextFile::separated(out, compression, run, head, [b"", b""])
    }

    pub(crate) fn separated(
        out: TrackedOutput,
        compression: Option<Compression>,
        run: &Run,
        head: &[u8],
        [separator, tail]: [&'static [u8]; 2],
    ) -> Result<Box<dyn FileWriter>> {
        let mut out = TextOutput::new(out, compression, run)?;
        out.write_all(head).map_err(unwritten)?;
        let out = Mutex::new((out, false));
        Ok(Box::new(TextFile { out, separator, tail, run: run.clone() }))
    }
}

fn unwritten(error: std::io::Error) -> Error {
    Error::io(format!("cannot write: {error}"))
}

impl FileWriter for TextFile {
    fn take(&self, parts: Vec<PendingPart>) -> Result<Vec<Group>> {
        let mut out = lock(&self.out);
        let (out, has_part) = &mut *out;
        for (part, _memory) in parts {
            let Part::Text(text) = part else {
                return Err(Error::internal("text was expected, not a batch"));
            };
            if text.is_empty() {
                continue;
            }
            // Many parts may have waited, and compressing takes time.
            self.run.context.check()?;
            if std::mem::replace(has_part, true) {
                out.write_all(self.separator).map_err(unwritten)?;
            }
            out.write_all(&text).map_err(unwritten)?;
        }
        Ok(Vec::new())
    }

    fn close(&self) -> Result<()> {
        let (out, _) = &mut *lock(&self.out);
        out.write_all(self.tail).and_then(|()| out.finish()).map_err(unwritten)
    }
}

/// An output that stores its first write error, because format libraries replace it by errors of
/// their own.
#[derive(Debug, Clone)]
pub(crate) struct TrackedOutput(Arc<Mutex<Target>>);

#[derive(Debug)]
struct Target {
    /// `None` after the output was completed.
    output: Option<Box<dyn Output>>,
    /// Whether written bytes cannot be withdrawn.
    is_stream: bool,
    failure: Option<std::io::Error>,
}

impl TrackedOutput {
    fn new(output: Box<dyn Output>) -> TrackedOutput {
        let is_stream = output.is_stream();
        TrackedOutput(Arc::new(Mutex::new(Target {
            output: Some(output),
            is_stream,
            failure: None,
        })))
    }

    /// Whether written bytes are visible to readers at once.
    pub(crate) fn is_stream(&self) -> bool {
        lock(&self.0).is_stream
    }

    fn using<T>(
        &self,
        act: impl FnOnce(&mut dyn Output) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let mut target = lock(&self.0);
        let Some(output) = &mut target.output else {
            return Err(std::io::Error::other("the file was already completed"));
        };
        act(&mut **output).map_err(|error| {
            let kind = error.kind();
            target.failure.get_or_insert(error);
            kind.into()
        })
    }

    /// Adds the path and the consequence to an error.
    fn explain<T>(&self, path: &str, done: Result<T>) -> Result<T> {
        let (failure, is_stream) = {
            let mut target = lock(&self.0);
            (target.failure.take(), target.is_stream)
        };
        match (failure, done) {
            (Some(error), _) => {
                // A cancellation while waiting for a store is not an error of the store.
                if let Some(ended) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
                    && ended.code() == Code::Cancelled
                {
                    return Err(ended.clone());
                }
                let cause = io_cause(&error);
                let consequence = match is_stream {
                    true => "The reader of the stream has received a part",
                    false => "No file was written",
                };
                Err(Error::io(format!("cannot write '{path}': {cause}. {consequence}"))
                    .caused_by(error))
            }
            (None, Err(error)) if matches!(error.code(), Code::Cancelled | Code::Limit) => {
                Err(error)
            }
            (None, Err(error)) => Err(error.context(format!("writing '{path}'"))),
            (None, Ok(done)) => Ok(done),
        }
    }

    fn commit(&self) -> Result<()> {
        let output = lock(&self.0).output.take();
        output.ok_or_else(|| Error::internal("a file was written twice"))?.commit()
    }
}

impl Write for TrackedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.using(|out| out.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.using(|out| out.flush())
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

    #[test]
    fn a_full_disk_is_told_with_the_path() {
        let mut out = TrackedOutput::new(Box::new(Full));
        // Hides the reason, as libraries do.
        let written = out.write_all(b"x").map_err(|_| Error::io("it did not work"));
        let error = out.explain("there/x.parquet", written).unwrap_err();
        let expected = "cannot write 'there/x.parquet': the disk is full; free some space or name another place. No file was written";
        assert_eq!(error.message(), expected);
    }
}
