//! `ipc_scan` (and, in `write`, `ipc_materialize`): Arrow IPC, the file format and the stream format, compressed or not.
//!
//! A record batch of a file is a morsel; a stream is one morsel. Dictionaries stay encoded where their keys have 32 bits.
//! A file's footer and dictionaries are read when the scan starts, once, and that waits; nothing later does.

mod write;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow::ipc::{Block, root_as_footer};

use tessera_encodings::{CHUNK_ROWS, Column};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Atom, Error, Result, Tuple, quote_name};

use crate::context::{Context, RangeReader, Read, Reservation, Run};
use crate::operator::{Collected, Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use crate::scan::file::{
    self, Conjunct, FileScan, RunConjunct, check_nulls, check_type, convert, filter_and_project,
    joined_conjuncts, read_now, start_conjuncts,
};
use crate::stream_util::ChunksReader;

pub use self::write::IpcMaterialize;

/// Bytes of a stream that are read at once.
const STREAM_BYTES: u64 = 1 << 20;
/// Reads of a stream that are under way at once.
const STREAM_READS: u64 = 8;
/// Bytes that stand behind a file's footer: its length and the magic word.
const TRAILER_BYTES: u64 = 10;
/// Rows that are filtered at once.
const BATCH_ROWS: usize = CHUNK_ROWS;

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
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
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
    conjuncts: Arc<[RunConjunct]>,
    run: Run,
    files: Vec<IpcFile>,
    /// File, and record batch within it; none for a stream.
    morsels: Vec<(usize, Option<usize>)>,
}

impl Source for LoweredScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut morsels = Vec::new();
        let mut files = Vec::with_capacity(self.scan.paths.len());
        for (position, path) in self.scan.paths.iter().enumerate() {
            run.context.check()?;
            let file = open(&*run.open(path)?, Some(&run.context))?;
            match &file.blocks {
                Some(blocks) => {
                    morsels.extend((0..blocks.batches.len()).map(|batch| (position, Some(batch))))
                }
                None => morsels.push((position, None)),
            }
            files.push(file);
        }
        let (scan, conjuncts) = (self.scan.clone(), start_conjuncts(&self.conjuncts, run));
        Ok(Arc::new(OpenRun(Arc::new(IpcRun { scan, conjuncts, run: run.clone(), files, morsels }))))
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
        let source = run.run.open(&run.scan.paths[file])?;
        if source.len() != run.files[file].len {
            return Err(Error::data(format!("'{}' changed while it was read", run.scan.paths[file])));
        }
        let batches = match batch {
            Some(batch) => Batches::File(batch),
            None => Batches::Stream(Box::new(Stream::new(source.len()))),
        };
        Ok(Box::new(IpcReader {
            constants: run.scan.constants(file)?,
            reservation: Reservation::new(run.run.context.clone()),
            run: run.clone(),
            file,
            source,
            batches,
            chunks: None,
            done: false,
        }))
    }
}

struct IpcReader {
    run: Arc<IpcRun>,
    file: usize,
    source: Arc<dyn RangeReader>,
    batches: Batches,
    constants: Vec<Option<ArrayRef>>,
    reservation: Reservation,
    chunks: Option<ChunksReader>,
    done: bool,
}

enum Batches {
    /// One record batch of a file.
    File(usize),
    /// A stream, all of it.
    Stream(Box<Stream>),
}

/// How far a stream has been read.
struct Stream {
    decoder: StreamDecoder,
    len: u64,
    position: u64,
    buffer: Buffer,
}

impl Stream {
    fn new(len: u64) -> Stream {
        Stream { decoder: StreamDecoder::new(), len, position: 0, buffer: Buffer::default() }
    }

    /// The next bytes.
    fn next(&self) -> Range<u64> {
        self.position..(self.position + STREAM_BYTES).min(self.len)
    }

    /// The next bytes and those that are asked for with them.
    fn ahead(&self) -> Vec<Range<u64>> {
        let start = |read: u64| (self.position + read * STREAM_BYTES).min(self.len);
        (0..STREAM_READS).map(|read| start(read)..start(read + 1)).collect()
    }

    /// Takes bytes that have come.
    fn push(&mut self, bytes: bytes::Bytes) {
        self.position += bytes.len() as u64;
        self.buffer = Buffer::from(bytes);
    }
}

/// A file that has been looked into.
#[derive(Debug)]
struct IpcFile {
    len: u64,
    schema: Arc<Schema>,
    /// Where its record batches lie; none for a stream.
    blocks: Option<Blocks>,
}

#[derive(Debug)]
struct Blocks {
    decoder: FileDecoder,
    batches: Vec<Block>,
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
            let batch = match &mut self.batches {
                Batches::File(batch) => {
                    let blocks = run.files[self.file].blocks.as_ref();
                    let blocks = blocks.ok_or_else(|| Error::internal("a batch of a stream"))?;
                    let block = &blocks.batches[*batch];
                    let range = range_of(path, block)?;
                    self.reservation.resize((range.end - range.start) as usize)?;
                    let bytes = match self.source.read(range)? {
                        Read::Bytes(bytes) => bytes,
                        Read::Blocked(token) => return Ok(Step::Blocked(token)),
                    };
                    self.done = true;
                    let decoded = blocks.decoder.read_record_batch(block, &Buffer::from(bytes));
                    decoded.map_err(|error| damaged(path, error))?
                }
                Batches::Stream(stream) => {
                    if stream.buffer.is_empty() && stream.position < stream.len {
                        self.source.prefetch(&stream.ahead())?;
                        match self.source.read(stream.next())? {
                            Read::Bytes(bytes) => stream.push(bytes),
                            Read::Blocked(token) => return Ok(Step::Blocked(token)),
                        }
                    }
                    let batch =
                        stream.decoder.decode(&mut stream.buffer).map_err(|error| damaged(path, error))?;
                    if batch.is_none() && stream.buffer.is_empty() && stream.position == stream.len {
                        stream.decoder.finish().map_err(|error| damaged(path, error))?;
                        self.done = true;
                    }
                    batch
                }
            };
            if let Some(batch) = batch {
                self.chunks = Some(self.chunks_of(&batch)?);
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
            chunks.push(filter_and_project(&columns, len, &run.conjuncts, &run.scan.fields)?);
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
    let schema = open(&*reader, None)?.schema;
    let tuple = Tuple::from_arrow_schema(&schema).and_then(|tuple| tuple.check().map(|()| tuple));
    tuple.map_err(|error| error.context(format!("'{}'", reader.path())))
}

fn damaged(path: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!(
        "cannot read '{path}' as Arrow IPC: {error}; the file is damaged or was not written completely"
    ))
}

/// Looks into a file: schema, and for the file format dictionaries and where the batches lie.
fn open(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<IpcFile> {
    let magic = read_now(reader, 0..reader.len().min(6), context)?;
    let (schema, blocks) = match &magic[..] {
        b"ARROW1" => open_file(reader, context).map(|(schema, blocks)| (schema, Some(blocks)))?,
        _ => (stream_schema(reader, context)?, None),
    };
    Ok(IpcFile { len: reader.len(), schema, blocks })
}

fn open_file(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<(Arc<Schema>, Blocks)> {
    let (path, len) = (reader.path(), reader.len());
    let Some(footer_end) = len.checked_sub(TRAILER_BYTES) else {
        return Err(damaged(path, format!("it has only {len} bytes")));
    };
    let trailer = read_now(reader, footer_end..len, context)?;
    let mut trailer_bytes = [0; TRAILER_BYTES as usize];
    trailer_bytes.copy_from_slice(&trailer);
    let footer_len = read_footer_length(trailer_bytes).map_err(|error| damaged(path, error))?;
    let Some(footer_start) = footer_end.checked_sub(footer_len as u64) else {
        return Err(damaged(path, format!("its footer is said to have {footer_len} bytes")));
    };
    let footer = read_now(reader, footer_start..footer_end, context)?;
    let footer = root_as_footer(&footer).map_err(|error| damaged(path, error))?;
    let schema = footer.schema().ok_or_else(|| damaged(path, "its footer has no schema"))?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(Error::unsupported(format!("'{path}' was written on a machine of another byte order")));
    }
    let schema = Arc::new(fb_to_schema(schema));
    let mut decoder = FileDecoder::new(schema.clone(), footer.version());
    let dictionaries: Vec<Block> = footer.dictionaries().iter().flatten().copied().collect();
    let ranges = dictionaries.iter().map(|block| range_of(path, block)).collect::<Result<Vec<_>>>()?;
    reader.prefetch(&ranges)?;
    for (block, range) in dictionaries.iter().zip(ranges) {
        let bytes = read_now(reader, range, context)?;
        decoder.read_dictionary(block, &Buffer::from(bytes)).map_err(|error| damaged(path, error))?;
    }
    let batches = footer.recordBatches().ok_or_else(|| damaged(path, "its footer names no batches"))?;
    Ok((schema, Blocks { decoder, batches: batches.iter().copied().collect() }))
}

/// The bytes of a block: its description and its body.
fn range_of(path: &str, block: &Block) -> Result<Range<u64>> {
    let part = |len: i64| u64::try_from(len).ok();
    let range = part(block.offset()).zip(part(block.metaDataLength().into())).zip(part(block.bodyLength()));
    let range =
        range.and_then(|((start, head), body)| Some(start..start.checked_add(head)?.checked_add(body)?));
    // A description begins with its own length.
    let range = range.filter(|_| block.metaDataLength() >= 8);
    range.ok_or_else(|| damaged(path, "a block lies outside the file"))
}

/// The schema at the start of a stream.
fn stream_schema(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<Arc<Schema>> {
    const STEP_BYTES: u64 = 64 << 10;
    let path = reader.path();
    let mut decoder = StreamDecoder::new();
    let mut position = 0;
    while position < reader.len() {
        let end = (position + STEP_BYTES).min(reader.len());
        let mut bytes = Buffer::from(read_now(reader, position..end, context)?);
        position = end;
        while !bytes.is_empty() {
            let batch = decoder.decode(&mut bytes).map_err(|error| damaged(path, error))?;
            if let Some(schema) = decoder.schema() {
                return Ok(schema);
            }
            if batch.is_none() {
                break;
            }
        }
    }
    Err(damaged(path, "it ends before its schema"))
}
