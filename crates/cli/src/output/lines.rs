//! CSV and JSON output. Several threads encode batches, which are written in order.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::json::writer::{LineDelimited, WriterBuilder};
use tessera_formats::csv::{write_batch, write_header};
use tessera_session::ResultStream;
use tessera_types::Error;

use super::Failure;
use super::writer::{renamed, unique_schema};

/// The maximum number of encoder threads.
const ENCODERS_MAX: usize = 4;
/// The maximum capacity of a pooled buffer.
const POOLED_BYTES_MAX: usize = 4 << 20;
/// The maximum number of values in one text.
const TEXT_VALUES_MAX: usize = 1 << 18;
/// If the next batch takes longer than this, pending text is written before waiting again.
const SLOW: Duration = Duration::from_millis(20);
/// The approximate maximum time that rows stay in the output buffer.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The format of lines.
#[derive(Debug, Clone)]
pub(super) enum LineFormat {
    /// CSV with a header line. NULL is an empty field, the empty string is `""`.
    Csv,
    /// One JSON object per line, with the names of the schema.
    Json(SchemaRef),
}

impl LineFormat {
    /// JSON with unique names: repeated names get a number.
    pub(super) fn json(rows: &ResultStream) -> LineFormat {
        LineFormat::Json(unique_schema(rows))
    }

    fn header(&self, rows: &ResultStream) -> Result<Vec<u8>, Failure> {
        let mut text = Vec::new();
        if matches!(self, LineFormat::Csv) {
            write_header(&rows.schema(), &mut text)?;
        }
        Ok(text)
    }

    /// Encodes rows into the buffer `text`.
    fn text(&self, batch: RecordBatch, mut text: Vec<u8>) -> Result<Vec<u8>, Failure> {
        text.clear();
        match self {
            LineFormat::Csv => {
                write_batch(&batch, &mut text)?;
                Ok(text)
            }
            LineFormat::Json(schema) => {
                let builder = WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = builder.build::<_, LineDelimited>(text);
                writer.write(&renamed(batch, schema)?)?;
                writer.finish()?;
                Ok(writer.into_inner())
            }
        }
    }
}

/// A pool of text buffers. A new allocation for each batch takes longer than writing its text.
#[derive(Debug, Default)]
struct BufferPool(Mutex<Vec<Vec<u8>>>);

impl BufferPool {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put(&self, text: Vec<u8>) {
        if text.capacity() <= POOLED_BYTES_MAX {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }
}

/// A batch to encode, and the channel for its text.
type EncodeJob = (RecordBatch, SyncSender<Result<Vec<u8>, Failure>>);

/// The channels of pending texts, in order, with their row counts.
type PendingTexts = VecDeque<(Receiver<Result<Vec<u8>, Failure>>, usize)>;

/// Writes all rows, beginning with the batch `first`.
pub(super) fn write(
    out: &mut (impl Write + Send),
    lines: &LineFormat,
    first: Option<RecordBatch>,
    mut rows: ResultStream,
) -> Result<(), Failure> {
    out.write_all(&lines.header(&rows)?)?;
    let Some(first) = first else { return Ok(()) };
    for part in parts(&first) {
        out.write_all(&lines.text(part, Vec::new())?)?;
    }
    out.flush()?;
    let Some(second) = rows.next() else { return Ok(()) };
    let encoders = std::thread::available_parallelism().map_or(1, usize::from).min(ENCODERS_MAX);
    let pool = &BufferPool::default();
    std::thread::scope(|scope| {
        let (jobs, received) = sync_channel::<EncodeJob>(encoders);
        let received = Arc::new(Mutex::new(received));
        for _ in 0..encoders {
            let received = received.clone();
            scope.spawn(move || encode(lines, pool, &received));
        }
        drop(received);
        let mut queue =
            EncodeQueue { out, pool, jobs, pending: VecDeque::new(), written: first.num_rows() };
        queue.write_all(encoders, std::iter::once(second).chain(rows))
    })
}

/// Encodes batches until the writer drops the channel.
fn encode(lines: &LineFormat, pool: &BufferPool, jobs: &Mutex<Receiver<EncodeJob>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((batch, done)) = next else { break };
        // The writer may have stopped because of an error.
        drop(done.send(lines.text(batch, pool.take())));
    }
}

/// Batches that encoders turn into text, and the output, which gets the texts in order.
struct EncodeQueue<'a, W> {
    out: &'a mut W,
    pool: &'a BufferPool,
    jobs: SyncSender<EncodeJob>,
    pending: PendingTexts,
    /// The number of rows written.
    written: usize,
}

impl<W: Write> EncodeQueue<'_, W> {
    /// Writes all batches. At most `encoders` texts are pending.
    fn write_all(
        &mut self,
        encoders: usize,
        batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    ) -> Result<(), Failure> {
        let mut flushed = Instant::now();
        let mut waited = Instant::now();
        for batch in batches {
            let is_slow = waited.elapsed() >= SLOW;
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    self.write_pending(0)?;
                    self.out.flush()?;
                    return Err(Failure::Query(error, self.written));
                }
            };
            for part in parts(&batch) {
                self.push(part)?;
                self.write_pending(if is_slow { 0 } else { encoders })?;
            }
            if is_slow || flushed.elapsed() >= FLUSH_INTERVAL {
                self.out.flush()?;
                flushed = Instant::now();
            }
            waited = Instant::now();
        }
        self.write_pending(0)
    }

    fn push(&mut self, batch: RecordBatch) -> Result<(), Failure> {
        let (done, text) = sync_channel(1);
        self.pending.push_back((text, batch.num_rows()));
        let sent = self.jobs.send((batch, done));
        sent.map_err(|_| Failure::Error(encoders_ended()))
    }

    /// Writes pending texts in order until `left` remain.
    fn write_pending(&mut self, left: usize) -> Result<(), Failure> {
        while self.pending.len() > left {
            let Some((text, rows)) = self.pending.pop_front() else { break };
            let text = text.recv().map_err(|_| encoders_ended())??;
            self.out.write_all(&text)?;
            self.pool.put(text);
            self.written += rows;
        }
        Ok(())
    }
}

fn encoders_ended() -> Error {
    Error::internal("the encoder threads have ended early")
}

/// Splits a batch into parts of one text each.
fn parts(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let (rows, step) = (batch.num_rows(), (TEXT_VALUES_MAX / batch.num_columns().max(1)).max(1));
    (0..rows).step_by(step).map(move |start| batch.slice(start, step.min(rows - start)))
}
