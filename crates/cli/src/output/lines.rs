//! CSV and JSON output. Several threads encode batches, which are written in order.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
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
type Pending = VecDeque<(Receiver<Result<Vec<u8>, Failure>>, usize)>;

/// Writes all rows, beginning with the batch `first`.
pub(super) fn write(
    out: &mut (impl Write + Send),
    lines: &LineFormat,
    first: Option<RecordBatch>,
    mut rows: ResultStream,
) -> Result<(), Failure> {
    out.write_all(&lines.header(&rows)?)?;
    let mut written = match first {
        None => return Ok(()),
        Some(batch) => {
            for part in parts(&batch) {
                out.write_all(&lines.text(part, Vec::new())?)?;
            }
            out.flush()?;
            batch.num_rows()
        }
    };
    let Some(second) = rows.next() else { return Ok(()) };
    let encoders = std::thread::available_parallelism().map_or(1, usize::from).min(ENCODERS_MAX);
    let pool = &BufferPool::default();
    std::thread::scope(|scope| {
        let (work, todo) = sync_channel::<EncodeJob>(encoders);
        let todo = std::sync::Arc::new(Mutex::new(todo));
        for _ in 0..encoders {
            let todo = todo.clone();
            scope.spawn(move || {
                loop {
                    let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((batch, done)) = next else { break };
                    // The writer may have stopped because of an error.
                    drop(done.send(lines.text(batch, pool.take())));
                }
            });
        }
        drop(todo);
        let mut pending = Pending::new();
        let mut flushed = Instant::now();
        let mut waited = Instant::now();
        for batch in std::iter::once(second).chain(rows) {
            let is_slow = waited.elapsed() >= SLOW;
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    written += write_pending(out, pool, &mut pending, 0)?;
                    out.flush()?;
                    return Err(Failure::Query(error, written));
                }
            };
            for part in parts(&batch) {
                let (done, text) = sync_channel(1);
                pending.push_back((text, part.num_rows()));
                if work.send((part, done)).is_err() {
                    return Err(Failure::Error(Error::internal(
                        "the encoder threads have ended early",
                    )));
                }
                written +=
                    write_pending(out, pool, &mut pending, if is_slow { 0 } else { encoders })?;
            }
            if is_slow || flushed.elapsed() >= FLUSH_INTERVAL {
                out.flush()?;
                flushed = Instant::now();
            }
            waited = Instant::now();
        }
        write_pending(out, pool, &mut pending, 0)?;
        Ok(())
    })
}

/// Splits a batch into parts of one text each.
fn parts(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let (rows, step) = (batch.num_rows(), (TEXT_VALUES_MAX / batch.num_columns().max(1)).max(1));
    (0..rows).step_by(step).map(move |start| batch.slice(start, step.min(rows - start)))
}

/// Writes pending texts in order until `left` remain. Returns the number of rows.
fn write_pending(
    out: &mut impl Write,
    pool: &BufferPool,
    pending: &mut Pending,
    left: usize,
) -> Result<usize, Failure> {
    let mut rows = 0;
    while pending.len() > left {
        let Some((text, count)) = pending.pop_front() else { break };
        let text =
            text.recv().map_err(|_| Error::internal("an encoder thread has ended early"))??;
        out.write_all(&text)?;
        pool.put(text);
        rows += count;
    }
    Ok(rows)
}
