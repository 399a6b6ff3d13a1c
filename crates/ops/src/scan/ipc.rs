//! `ipc_scan` and `ipc_materialize`: Arrow IPC, the file format and the stream format, compressed or not.
//!
//! A record batch of a file is a morsel; a stream is one morsel. Dictionaries stay encoded where their keys have 32 bits.
//! A file's footer and dictionaries are read when the scan starts and when a morsel is opened; these reads wait.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::ipc::writer::FileWriter;

use tessera_encodings::Column;
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Atom, Error, Result, Tuple, quote_name};

use crate::context::{Context, RangeReader, Run};
use crate::operator::{Collected, Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use crate::scan::file::{
    self, Conjunct, FileScan, check_nulls, check_type, conjuncts, convert, filter_and_project, read_now,
};
use crate::scan::output::{self, Encoder, FileSink, Piece, Watched};
use crate::stream_util::ChunksReader;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Rows that are filtered at once.
const BATCH_ROWS: usize = 2_048;

/// The scan.
#[derive(Debug)]
pub struct IpcScan;

impl Descriptor for IpcScan {
    crate::describe!(
        "ipc_scan",
        "Reads the tuples of Arrow IPC files and streams.",
        ["paths", "columns", "fields", "filter", "partitions"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for IpcScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        Ok(Operator::Source(Arc::new(LoweredScan { scan: Arc::new(scan), conjuncts })))
    }
}

#[derive(Debug)]
struct LoweredScan {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
}

#[derive(Debug)]
struct IpcRun {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
    run: Run,
    /// File, and record batch within it; none for a stream.
    morsels: Vec<(usize, Option<usize>)>,
}

impl Source for LoweredScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut morsels = Vec::new();
        for (file, path) in self.scan.paths.iter().enumerate() {
            run.context.check()?;
            match open(run.context.open(path)?, Some(&run.context))? {
                Batches::File(reader) => {
                    morsels.extend((0..reader.num_batches()).map(|batch| (file, Some(batch))))
                }
                Batches::Stream(_) => morsels.push((file, None)),
            }
        }
        let (scan, conjuncts) = (self.scan.clone(), self.conjuncts.clone());
        Ok(Arc::new(OpenRun(Arc::new(IpcRun { scan, conjuncts, run: run.clone(), morsels }))))
    }
}

#[derive(Debug)]
struct OpenRun(Arc<IpcRun>);

impl SourceRun for OpenRun {
    fn morsels(&self) -> usize {
        self.0.morsels.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = &self.0;
        let &(file, batch) =
            run.morsels.get(morsel).ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let path = &run.scan.paths[file];
        let mut batches = open(run.run.context.open(path)?, Some(&run.run.context))?;
        if let (Batches::File(reader), Some(batch)) = (&mut batches, batch) {
            reader.set_index(batch).map_err(|error| damaged(path, error))?;
        }
        let constants = run.scan.constants(file)?;
        let single = batch.is_some();
        Ok(Box::new(IpcReader {
            run: run.clone(),
            file,
            batches,
            constants,
            single,
            chunks: None,
            done: false,
        }))
    }
}

struct IpcReader {
    run: Arc<IpcRun>,
    file: usize,
    batches: Batches,
    constants: Vec<Option<ArrayRef>>,
    /// Whether only one record batch is wanted.
    single: bool,
    chunks: Option<ChunksReader>,
    done: bool,
}

enum Batches {
    File(Box<FileReader<BufReader<Cursor>>>),
    Stream(Box<StreamReader<BufReader<Cursor>>>),
}

impl Batches {
    fn schema(&self) -> Arc<Schema> {
        match self {
            Batches::File(reader) => reader.schema(),
            Batches::Stream(reader) => reader.schema(),
        }
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        match self {
            Batches::File(reader) => reader.next(),
            Batches::Stream(reader) => reader.next(),
        }
    }
}

impl Reader for IpcReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(chunks) = &mut self.chunks {
                match chunks.step()? {
                    Step::Done => self.chunks = None,
                    step => return Ok(step),
                }
            }
            if self.done {
                return Ok(Step::Done);
            }
            self.run.run.context.check()?;
            let run = self.run.clone();
            let path = &run.scan.paths[self.file];
            match self.batches.next() {
                None => self.done = true,
                Some(batch) => {
                    self.done = self.single;
                    let batch = batch.map_err(|error| damaged(path, error))?;
                    self.chunks = Some(self.chunks_of(&batch)?);
                }
            }
        }
    }
}

impl IpcReader {
    fn chunks_of(&self, batch: &RecordBatch) -> Result<ChunksReader> {
        let run = &self.run;
        let path = &run.scan.paths[self.file];
        let rows = batch.num_rows();
        let mut columns = Vec::with_capacity(run.scan.columns.len());
        for (field, constant) in run.scan.columns.fields().iter().zip(&self.constants) {
            columns.push(match (constant, batch.column_by_name(&field.name), field.atom()) {
                (Some(constant), ..) => Column::Constant(constant.clone(), rows),
                (None, Some(array), Some(declared)) => {
                    let found = Atom::from_arrow(array.data_type())?;
                    check_type(path, &field.name, &found, declared)?;
                    check_nulls(array.as_ref(), field.nullable, path, &field.name)?;
                    column(array, &found, declared).map_err(|error| {
                        error.context(format!("column {} of '{path}'", quote_name(&field.name)))
                    })?
                }
                (None, None, Some(atom)) if field.nullable && run.scan.paths.len() > 1 => {
                    Column::Constant(file::null_constant(atom), rows)
                }
                _ => return Err(Error::data(format!("'{path}' has no column {}", quote_name(&field.name)))),
            });
        }
        let mut chunks = Vec::with_capacity(rows.div_ceil(BATCH_ROWS));
        for start in (0..rows).step_by(BATCH_ROWS) {
            let len = BATCH_ROWS.min(rows - start);
            let columns: Vec<Column> = columns.iter().map(|column| column.slice(start, len)).collect();
            chunks.push(filter_and_project(&columns, len, &run.conjuncts, &run.scan.fields, &run.run)?);
        }
        Ok(ChunksReader::new(chunks, run.run.context.chunk_rows()))
    }
}

fn column(array: &ArrayRef, found: &Atom, declared: &Atom) -> Result<Column> {
    let keeps = match array.data_type() {
        DataType::Dictionary(key, values) => {
            found == declared
                && **values == declared.arrow()
                && matches!(**key, DataType::Int32 | DataType::UInt32)
        }
        _ => false,
    };
    if keeps {
        Ok(Column::Dictionary(array.clone()))
    } else {
        convert(array.clone(), found, declared).map(Column::Plain)
    }
}

/// The columns of an Arrow IPC file or stream.
///
/// # Errors
/// The file cannot be read, is no Arrow IPC, or has types that are not supported.
pub fn discover(reader: Arc<dyn RangeReader>) -> Result<Tuple> {
    let path = reader.path().to_string();
    let batches = open(reader, None)?;
    let tuple = Tuple::from_arrow_schema(&batches.schema()).and_then(|tuple| tuple.check().map(|()| tuple));
    tuple.map_err(|error| error.context(format!("'{path}'")))
}

fn damaged(path: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!(
        "cannot read '{path}' as Arrow IPC: {error}; the file is damaged or was not written completely"
    ))
}

fn open(reader: Arc<dyn RangeReader>, context: Option<&Arc<dyn Context>>) -> Result<Batches> {
    let path = reader.path().to_string();
    let magic = read_now(&*reader, 0..reader.len().min(6), context)?;
    let cursor =
        BufReader::with_capacity(BUFFER_BYTES, Cursor { reader, context: context.cloned(), position: 0 });
    if &magic[..] == b"ARROW1" {
        let reader = FileReader::try_new(cursor, None).map_err(|error| damaged(&path, error))?;
        Ok(Batches::File(Box::new(reader)))
    } else {
        let reader = StreamReader::try_new(cursor, None).map_err(|error| damaged(&path, error))?;
        Ok(Batches::Stream(Box::new(reader)))
    }
}

/// A range reader as a file.
struct Cursor {
    reader: Arc<dyn RangeReader>,
    context: Option<Arc<dyn Context>>,
    position: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = (self.position + buffer.len() as u64).min(self.reader.len()).max(self.position);
        let bytes =
            read_now(&*self.reader, self.position..end, self.context.as_ref()).map_err(io::Error::other)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.position = end;
        Ok(bytes.len())
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.reader.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let inside = position.filter(|position| *position <= self.reader.len());
        self.position = inside.ok_or_else(|| io::Error::other("a position outside the file"))?;
        Ok(self.position)
    }
}

/// The materialise sub-operator: the file format, compressed with LZ4.
#[derive(Debug)]
pub struct IpcMaterialize;

impl Descriptor for IpcMaterialize {
    crate::describe!("ipc_materialize", "Writes tuples to an Arrow IPC file.", ["path"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for IpcMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (path, tuple) = (node.params.string("path")?.clone(), lowering.inputs[0].tuple.clone());
        let schema = Arc::new(tuple.arrow_schema()?);
        Ok(Operator::Sink(Arc::new(FileSink { path, tuple, encoder: Arc::new(IpcEncoder { schema }) })))
    }
}

#[derive(Debug)]
struct IpcEncoder {
    schema: Arc<Schema>,
}

impl Encoder for IpcEncoder {
    fn is_text(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Watched<'_>, pieces: Vec<Piece>) -> Result<()> {
        let options = arrow::ipc::writer::IpcWriteOptions::default()
            .try_with_compression(Some(arrow::ipc::CompressionType::LZ4_FRAME))?;
        let mut writer = FileWriter::try_new_with_options(out, &self.schema, options)?;
        for batches in output::combined(pieces, &self.schema) {
            writer.write(&batches?)?;
        }
        Ok(writer.finish()?)
    }
}
