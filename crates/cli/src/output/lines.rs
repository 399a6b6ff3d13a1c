//! Rows as lines of text for programs: CSV and JSON. Batches become text on several threads, and
//! are written in their order.

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
use super::writer::{distinct, renamed};

/// The most threads that make text.
const ENCODERS_MAX: usize = 4;
/// A text of more bytes gives its memory back once it is written.
const SPARE_BYTES_MAX: usize = 4 << 20;
/// Values that become one text: fewer rows of many columns.
const TEXT_VALUES_MAX: usize = 1 << 18;
/// Where rows come more slowly than this, each is written before the next ones are waited for.
const SLOW: Duration = Duration::from_millis(20);
/// Rows do not stay in a buffer for longer than about this.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// What lines are written as.
#[derive(Debug, Clone)]
pub(super) enum Lines {
    /// A header line; NULL is nothing, the empty string `""`.
    Csv,
    /// An object a line, with these names.
    Json(SchemaRef),
}

impl Lines {
    /// JSON with a number behind names that repeat: readers look fields up by name.
    pub(super) fn json(rows: &ResultStream) -> Lines {
        Lines::Json(distinct(rows))
    }

    fn header(&self, rows: &ResultStream) -> Result<Vec<u8>, Failure> {
        let mut text = Vec::new();
        if matches!(self, Lines::Csv) {
            write_header(&rows.schema(), &mut text)?;
        }
        Ok(text)
    }

    /// The rows' text, in the memory of a text that was written.
    fn text(&self, batch: RecordBatch, mut text: Vec<u8>) -> Result<Vec<u8>, Failure> {
        text.clear();
        match self {
            Lines::Csv => {
                write_batch(&batch, &mut text)?;
                Ok(text)
            }
            Lines::Json(schema) => {
                let builder = WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = builder.build::<_, LineDelimited>(text);
                writer.write(&renamed(batch, schema)?)?;
                writer.finish()?;
                Ok(writer.into_inner())
            }
        }
    }
}

/// Memory of texts that were written, for the next ones: getting it from the system for each batch
/// takes longer than writing the text.
#[derive(Debug, Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put(&self, text: Vec<u8>) {
        if text.capacity() <= SPARE_BYTES_MAX {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }
}

/// A batch on its way to an encoder, and where its text goes.
type Work = (RecordBatch, SyncSender<Result<Vec<u8>, Failure>>);

/// Text that is under way, in order, and how many rows it has.
type Pending = VecDeque<(Receiver<Result<Vec<u8>, Failure>>, usize)>;

/// Writes all rows, of which `first` are the first ones.
pub(super) fn write(
    out: &mut (impl Write + Send),
    lines: &Lines,
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
    let spare = &Spare::default();
    std::thread::scope(|scope| {
        let (work, todo) = sync_channel::<Work>(encoders);
        let todo = std::sync::Arc::new(Mutex::new(todo));
        for _ in 0..encoders {
            let todo = todo.clone();
            scope.spawn(move || {
                loop {
                    let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((batch, done)) = next else { break };
                    // The writer may have stopped because of an error.
                    drop(done.send(lines.text(batch, spare.take())));
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
                    written += write_pending(out, spare, &mut pending, 0)?;
                    out.flush()?;
                    return Err(Failure::Query(error, written));
                }
            };
            for part in parts(&batch) {
                let (done, text) = sync_channel(1);
                pending.push_back((text, part.num_rows()));
                if work.send((part, done)).is_err() {
                    return Err(Failure::Error(Error::internal(
                        "the threads that write rows have ended",
                    )));
                }
                written +=
                    write_pending(out, spare, &mut pending, if is_slow { 0 } else { encoders })?;
            }
            if is_slow || flushed.elapsed() >= FLUSH_INTERVAL {
                out.flush()?;
                flushed = Instant::now();
            }
            waited = Instant::now();
        }
        write_pending(out, spare, &mut pending, 0)?;
        Ok(())
    })
}

/// A batch in parts of which each becomes one text.
fn parts(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let (rows, step) = (batch.num_rows(), (TEXT_VALUES_MAX / batch.num_columns().max(1)).max(1));
    (0..rows).step_by(step).map(move |start| batch.slice(start, step.min(rows - start)))
}

/// Writes what is under way, in order, but for so many texts; gives how many rows that were.
fn write_pending(
    out: &mut impl Write,
    spare: &Spare,
    pending: &mut Pending,
    left: usize,
) -> Result<usize, Failure> {
    let mut rows = 0;
    while pending.len() > left {
        let Some((text, count)) = pending.pop_front() else { break };
        let text =
            text.recv().map_err(|_| Error::internal("a thread that writes rows has ended"))??;
        out.write_all(&text)?;
        spare.put(text);
        rows += count;
    }
    Ok(rows)
}
