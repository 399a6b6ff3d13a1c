//! Writes chunks to Parquet files: several threads encode them, they are appended in order, and the
//! files become visible only when all are complete.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use tessera_files::AtomicFile;

use crate::table::Table;
use crate::{Error, Options, Report, TableReport};

/// The number of encoded chunks per thread that may wait for an earlier chunk. It bounds memory if
/// one chunk is slow.
const CHUNKS_AHEAD: usize = 2;

/// Writes all tables to `out`, or none.
pub(crate) fn write(tables: &[Table], out: &Path, options: &Options<'_>) -> Result<Report, Error> {
    let directory = Directory::open(out)?;
    let outputs = tables
        .iter()
        .map(|table| OutputFile::create(table, out, options.overwrite))
        .collect::<Result<Vec<_>, _>>()?;
    let outputs = GeneratorRun::new(tables, outputs, options).finish()?;
    let tables = publish(outputs, options.overwrite)?;
    directory.keep();
    Ok(Report { tables })
}

/// Gives all files their final names. If one rename fails, the files already renamed are removed,
/// unless they replaced older files, which cannot be restored.
fn publish(outputs: Vec<OutputFile>, overwrite: bool) -> Result<Vec<TableReport>, Error> {
    let closed = outputs.into_iter().map(OutputFile::close).collect::<Result<Vec<_>, _>>()?;
    let mut published: Vec<(TableReport, PathBuf)> = Vec::with_capacity(closed.len());
    for file in closed {
        match file.publish(overwrite) {
            Ok(table) => published.push(table),
            Err(failure) => {
                for (_, place) in published.iter().filter(|_| !overwrite) {
                    let _ = std::fs::remove_file(place);
                }
                return Err(failure);
            }
        }
    }
    Ok(published.into_iter().map(|(table, _)| table).collect())
}

/// The output directory. Dropping it removes the directories it created, unless `keep` was called.
struct Directory {
    created: Vec<PathBuf>,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, Error> {
        let created = path
            .ancestors()
            .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
            .map(Path::to_owned)
            .collect();
        std::fs::create_dir_all(path).map_err(|source| Error::io(path, source))?;
        Ok(Directory { created })
    }

    fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Innermost first. A directory that another process wrote to is not empty and stays.
        for path in &self.created {
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// A Parquet file that is being written.
struct OutputFile {
    table: &'static str,
    path: PathBuf,
    writer: SerializedFileWriter<AtomicFile>,
    rows: u64,
}

impl OutputFile {
    fn create(table: &Table, out: &Path, overwrite: bool) -> Result<Self, Error> {
        let path = out.join(format!("{}.parquet", table.name));
        if !overwrite && path.exists() {
            return Err(Error::Exists(path));
        }
        let text = path
            .to_str()
            .ok_or_else(|| Error::io(&path, std::io::Error::other("the file name is not UTF-8")))?;
        let file = AtomicFile::create(text)
            .map_err(|error| Error::Refused(error.message().to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(true)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(concat!("tessera-generate ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowSchemaConverter::new()
            .convert(&table.schema)
            .and_then(|schema| {
                SerializedFileWriter::new(file, schema.root_schema_ptr(), Arc::new(properties))
            })
            .map_err(|source| Error::parquet(table.name, &path, source))?;
        Ok(OutputFile { table: table.name, path, writer, rows: 0 })
    }

    fn append(&mut self, chunk: Chunk) -> Result<(), Error> {
        self.rows += chunk.rows;
        let result = (|| {
            let mut group = self.writer.next_row_group()?;
            for column in chunk.columns {
                column.append_to_row_group(&mut group)?;
            }
            group.close().map(|_| ())
        })();
        result.map_err(|source| Error::parquet(self.table, &self.path, source))
    }

    /// Writes the footer.
    fn close(self) -> Result<CompleteFile, Error> {
        let OutputFile { table, path, writer, rows } = self;
        let file = writer.into_inner().map_err(|source| Error::parquet(table, &path, source))?;
        Ok(CompleteFile { table, path, file, rows })
    }
}

/// A complete Parquet file under its temporary name.
struct CompleteFile {
    table: &'static str,
    path: PathBuf,
    file: AtomicFile,
    rows: u64,
}

impl CompleteFile {
    /// Gives the file its final name; returns the report and the path after resolving links.
    fn publish(self, overwrite: bool) -> Result<(TableReport, PathBuf), Error> {
        let CompleteFile { table, path, file, rows } = self;
        let place = file.publish(overwrite).map_err(|refused| match refused.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists(path.clone()),
            _ => Error::io(&path, refused),
        })?;
        let bytes = std::fs::metadata(&place).map_err(|source| Error::io(&path, source))?.len();
        Ok((TableReport { name: table, path, rows, bytes }, place))
    }
}

/// An encoded row group.
struct Chunk {
    columns: Vec<ArrowColumnChunk>,
    rows: u64,
}

/// A unit of work: a chunk of a table.
#[derive(Clone, Copy)]
struct Job {
    table: usize,
    chunk: u32,
}

/// A run that generates, encodes and writes all chunks of all tables.
struct GeneratorRun<'a> {
    tables: &'a [Table],
    encoders: Vec<ArrowRowGroupWriterFactory>,
    options: &'a Options<'a>,
    state: Mutex<RunState>,
    /// Signals that a job was appended or the run failed.
    progressed: Condvar,
}

/// RunState shared by all threads of a run. Jobs are assigned and appended in one global order.
struct RunState {
    outputs: Vec<OutputFile>,
    /// The next job to assign; `None` after the last one.
    next: Option<Job>,
    /// The number of assigned jobs.
    assigned: usize,
    /// The number of appended jobs.
    appended: usize,
    /// Encoded chunks that wait for an earlier job, by job number.
    waiting: BTreeMap<usize, (Job, Chunk)>,
    failure: Option<Error>,
}

/// Stops the other threads if one panics; the scope propagates the panic.
struct StopOnPanic<'a>(&'a GeneratorRun<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().failure.get_or_insert(Error::Cancelled);
            self.0.progressed.notify_all();
        }
    }
}

impl<'a> GeneratorRun<'a> {
    fn new(tables: &'a [Table], outputs: Vec<OutputFile>, options: &'a Options<'a>) -> Self {
        let encoders = tables
            .iter()
            .zip(&outputs)
            .map(|(table, output)| {
                ArrowRowGroupWriterFactory::new(&output.writer, Arc::clone(&table.schema))
            })
            .collect();
        let state = RunState {
            outputs,
            next: Some(Job { table: 0, chunk: 0 }),
            assigned: 0,
            appended: 0,
            waiting: BTreeMap::new(),
            failure: None,
        };
        GeneratorRun {
            tables,
            encoders,
            options,
            state: Mutex::new(state),
            progressed: Condvar::new(),
        }
    }

    fn finish(self) -> Result<Vec<OutputFile>, Error> {
        std::thread::scope(|scope| {
            for _ in 1..self.options.threads.get() {
                scope.spawn(|| self.work());
            }
            self.work();
        });
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(failure) => Err(failure),
            None => Ok(state.outputs),
        }
    }

    /// Runs jobs until none is left or the run fails.
    fn work(&self) {
        let _guard = StopOnPanic(self);
        while let Some((number, job)) = self.take() {
            let result = self.encode(job).and_then(|chunk| self.append(number, job, chunk));
            if let Err(failure) = result {
                self.lock().failure.get_or_insert(failure);
                self.progressed.notify_all();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next job, after waiting until it is at most `limit` jobs ahead of the last
    /// appended one.
    fn take(&self) -> Option<(usize, Job)> {
        let limit = CHUNKS_AHEAD.saturating_mul(NonZeroUsize::get(self.options.threads));
        let mut state = self.lock();
        loop {
            if state.failure.is_some() {
                return None;
            }
            let job = state.next?;
            if state.assigned - state.appended < limit {
                let last = job.chunk + 1 == self.tables[job.table].chunks;
                state.next = match last {
                    false => Some(Job { chunk: job.chunk + 1, ..job }),
                    true if job.table + 1 < self.tables.len() => {
                        Some(Job { table: job.table + 1, chunk: 0 })
                    }
                    true => None,
                };
                state.assigned += 1;
                return Some((state.assigned - 1, job));
            }
            state = self.progressed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Generates and encodes a chunk.
    fn encode(&self, job: Job) -> Result<Chunk, Error> {
        let table = &self.tables[job.table];
        let failed = |source: ParquetError| Error::Encode { table: table.name, source };
        let mut columns =
            self.encoders[job.table].create_column_writers(job.chunk as usize).map_err(failed)?;
        let mut rows = 0;
        for batch in (table.batches)(job.chunk) {
            if (self.options.cancelled)() {
                return Err(Error::Cancelled);
            }
            let batch = batch.map_err(|source| failed(source.into()))?;
            rows += batch.num_rows() as u64;
            let fields = table.schema.fields().iter().zip(batch.columns());
            for (column, (field, array)) in columns.iter_mut().zip(fields) {
                for leaf in compute_leaves(field, array).map_err(failed)? {
                    column.write(&leaf).map_err(failed)?;
                }
            }
        }
        let columns = columns
            .into_iter()
            .map(|column| column.close())
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(Chunk { columns, rows })
    }

    /// Adds an encoded chunk and appends all chunks whose turn has come.
    fn append(&self, number: usize, job: Job, chunk: Chunk) -> Result<(), Error> {
        let mut state = self.lock();
        state.waiting.insert(number, (job, chunk));
        loop {
            let turn = state.appended;
            let Some((job, chunk)) = state.waiting.remove(&turn) else { break };
            let table = &self.tables[job.table];
            let output = &mut state.outputs[job.table];
            output.append(chunk)?;
            let (done, mut expected) = (output.rows, table.rows_expected.max(output.rows));
            if job.chunk + 1 == table.chunks {
                expected = done;
            }
            state.appended += 1;
            (self.options.progress)(table.name, done, expected);
        }
        drop(state);
        self.progressed.notify_all();
        Ok(())
    }
}
