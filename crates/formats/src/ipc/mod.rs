//! `ipc_scan` (and, in `write`, `ipc_materialize`): Arrow IPC, the file format and the stream
//! format, compressed or not.
//!
//! A record batch of a file is a morsel; a stream is one morsel. Dictionaries stay encoded where
//! their keys have 32 bits. A file's footer and dictionaries are read when the scan starts, once,
//! and that waits; nothing later does. Of each batch only the columns that are wanted are decoded.
//!
//! Memory: the bytes of one message for each worker and what it is decompressed to, counted.

mod stream;
mod write;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, MessageHeader, root_as_footer};

use tessera_context::guard::guarded;
use tessera_context::{Context, RangeReader, Read, ReadBuffer, Reservation, Run, file_changed};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_rows::ipc::message;
use tessera_rows::ipc::message::{Decoder, Layout, Prefix};
use tessera_types::{Atom, Error, Result, Tuple, quote_name};
use tessera_vector::{CHUNK_ROWS, Column};

use crate::file::{
    self, Conjunct, FileScan, RunConjunct, check_nulls, check_type, column_atom, convert,
    filter_and_project, joined_conjuncts, read_now, readable_tuple, start_conjuncts,
    statement_tuple, unreadable,
};

use self::stream::{Next, Stream};
pub use self::write::IpcMaterialize;

/// Bytes that stand behind a file's footer: its length and the magic word.
const TRAILER_BYTES: u64 = 10;
/// Rows that are filtered at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// Bytes that a value takes at most when runs are written out; those of texts stay where they are.
const RUN_VALUE_BYTES: usize = 16;

/// The scan.
#[derive(Debug)]
pub struct IpcScan;

impl Descriptor for IpcScan {
    tessera_operator::describe!(
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
            let reader = run.open(path)?;
            let found = open(&*reader, Some(&run.context))?;
            let columns = self.columns(position, &found, path)?;
            let blocks = match &found.blocks {
                Some(blocks) => {
                    morsels.extend((0..blocks.batches.len()).map(|batch| (position, Some(batch))));
                    Some(blocks.decoder(&found.layout, &columns.wanted, &*reader, run)?)
                }
                None => {
                    morsels.push((position, None));
                    None
                }
            };
            files.push(IpcFile { len: reader.len(), layout: found.layout, columns, blocks });
        }
        let (scan, conjuncts) = (self.scan.clone(), start_conjuncts(&self.conjuncts, run));
        Ok(Arc::new(OpenRun(Arc::new(IpcRun {
            scan,
            conjuncts,
            run: run.clone(),
            files,
            morsels,
        }))))
    }
}

impl LoweredScan {
    /// Where the columns of the scan are in a file.
    fn columns(&self, position: usize, found: &Found, path: &str) -> Result<FileColumns> {
        let tuple = readable_tuple(&found.layout.schema);
        let constants = self.scan.constants(position)?;
        let mut places = Vec::with_capacity(constants.len());
        for (field, constant) in self.scan.columns.fields().iter().zip(&constants) {
            if constant.is_some() {
                places.push(None);
                continue;
            }
            let place = tuple.index_of(&field.name);
            if let Some(place) = place {
                column_atom(&found.layout.schema.fields()[place])
                    .map_err(|error| unreadable(path, &field.name, error.message()))?;
            }
            places.push(place);
        }
        let mut wanted: Vec<usize> = places.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let place = |place: usize| wanted.binary_search(&place).ok();
        let places = places.into_iter().map(|found| found.and_then(place)).collect();
        Ok(FileColumns { constants, places, wanted })
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
        let &(file, batch) = run
            .morsels
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let source = run.run.open(&run.scan.paths[file])?;
        let IpcFile { len, layout, columns, .. } = &run.files[file];
        if source.len() != *len {
            return Err(file_changed(&run.scan.paths[file]));
        }
        let batches = match batch {
            Some(batch) => Batches::File(batch),
            None => Batches::Stream(Box::new(Stream::new(layout, &columns.wanted, *len))),
        };
        Ok(Box::new(IpcReader {
            reservation: Reservation::new(run.run.context.clone()),
            run: run.clone(),
            file,
            source,
            batches,
            decoded: None,
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
    reservation: Reservation,
    decoded: Option<Decoded>,
    chunks: Option<ChunksReader>,
    done: bool,
}

enum Batches {
    /// One record batch of a file.
    File(usize),
    /// A stream, all of it.
    Stream(Box<Stream>),
}

/// A record batch whose rows from `start` on have not been yielded.
struct Decoded {
    columns: Vec<Column>,
    start: usize,
    rows: usize,
}

/// A file that a scan reads.
#[derive(Debug)]
struct IpcFile {
    len: u64,
    layout: Layout,
    columns: FileColumns,
    /// What decodes its record batches, and where they lie; none for a stream.
    blocks: Option<(Decoder, Arc<[Block]>)>,
}

/// The columns of a scan in one file.
#[derive(Debug)]
struct FileColumns {
    /// Hive partitions.
    constants: Vec<Option<ArrayRef>>,
    /// Positions among the columns that are decoded.
    places: Vec<Option<usize>>,
    /// Positions, in the file, of the columns that are decoded.
    wanted: Vec<usize>,
}

/// A file that has been looked into.
struct Found {
    layout: Layout,
    /// Where its messages lie; none for a stream.
    blocks: Option<Blocks>,
}

struct Blocks {
    dictionaries: Vec<Block>,
    batches: Arc<[Block]>,
}

impl Blocks {
    /// A decoder of these columns, with their dictionaries.
    fn decoder(
        &self,
        layout: &Layout,
        wanted: &[usize],
        reader: &dyn RangeReader,
        run: &Run,
    ) -> Result<(Decoder, Arc<[Block]>)> {
        let mut decoder = Decoder::new(layout, wanted);
        if !decoder.has_dictionaries() {
            return Ok((decoder, self.batches.clone()));
        }
        let path = reader.path();
        let ranges = self.dictionaries.iter().map(|block| range_of(path, block, reader.len()));
        let ranges = ranges.collect::<Result<Vec<_>>>()?;
        reader.prefetch(&ranges)?;
        let mut reservation = Reservation::new(run.context.clone());
        for (block, range) in self.dictionaries.iter().zip(ranges) {
            reservation.resize((range.end - range.start) as usize)?;
            let failed = |error: String| {
                damaged(path, format!("dictionary at byte {}: {error}", range.start))
            };
            let bytes = Buffer::from(read_now(reader, range.clone(), Some(&run.context))?);
            reservation.grow(decoder.check(block, &bytes).map_err(failed)?)?;
            decoder.dictionary(block, &bytes).map_err(failed)?;
        }
        Ok((decoder, self.batches.clone()))
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
            self.run.run.context.check()?;
            if let Some(chunks) = self.next_chunks()? {
                self.chunks = Some(chunks);
                continue;
            }
            if self.done {
                return Ok(Step::Done);
            }
            let run = self.run.clone();
            let file = &run.files[self.file];
            let batch = match &mut self.batches {
                Batches::File(batch) => {
                    let blocks = file.blocks.as_ref();
                    let (decoder, blocks) =
                        blocks.ok_or_else(|| Error::internal("a batch of a stream"))?;
                    let (path, block) = (self.source.path(), &blocks[*batch]);
                    let range = range_of(path, block, file.len)?;
                    let (start, number) = (range.start, *batch);
                    let failed = |error: String| {
                        damaged(path, format!("record batch {number} at byte {start}: {error}"))
                    };
                    self.reservation.resize((range.end - range.start) as usize)?;
                    let bytes = match self.source.read_into(range, ReadBuffer::default())? {
                        Read::Ready(buffer) => Buffer::from(buffer.into_bytes()),
                        Read::Blocked(token) => return Ok(Step::Blocked(token)),
                    };
                    self.done = true;
                    self.reservation.grow(decoder.check(block, &bytes).map_err(failed)?)?;
                    decoder.batch(block, &bytes).map_err(failed)?
                }
                Batches::Stream(stream) => {
                    match stream.next(&*self.source, &mut self.reservation)? {
                        Next::Batch(batch) => Some(batch),
                        Next::Blocked(token) => return Ok(Step::Blocked(token)),
                        Next::End => {
                            self.done = true;
                            None
                        }
                    }
                }
            };
            if let Some(batch) = batch {
                // Arrow may panic on values that no writer makes; that is the file's fault.
                let decoded = guarded(|| self.decoded(&batch));
                let wrong = || damaged(self.source.path(), "a record batch cannot be converted");
                self.decoded = Some(decoded.ok_or_else(wrong)??);
            }
        }
    }
}

impl IpcReader {
    /// The columns of the scan.
    fn decoded(&mut self, batch: &RecordBatch) -> Result<Decoded> {
        let run = self.run.clone();
        let (path, rows) = (&run.scan.paths[self.file], batch.num_rows());
        let FileColumns { constants, places, .. } = &run.files[self.file].columns;
        let mut columns = Vec::with_capacity(run.scan.columns.len());
        for ((field, constant), place) in
            run.scan.columns.fields().iter().zip(constants).zip(places)
        {
            let array = place.and_then(|place| batch.columns().get(place));
            columns.push(match (constant, array, field.atom()) {
                (Some(constant), ..) => Column::Constant(constant.clone(), rows),
                (None, Some(array), Some(declared)) => {
                    let found = place.and_then(|place| batch.schema_ref().fields().get(place));
                    let found = found.ok_or_else(|| Error::internal("a column without a field"))?;
                    let found = column_atom(found)?;
                    check_type(path, &field.name, &found, declared)?;
                    let is_null = *array.data_type() == DataType::Null && found != *declared;
                    if is_null || holds_runs(array.data_type()) {
                        // A few bytes may say that there are very many values.
                        self.reservation.grow(rows.saturating_mul(RUN_VALUE_BYTES))?;
                    }
                    let column = column(array, &found, declared).map_err(|error| {
                        error.context(format!("column {} of '{path}'", quote_name(&field.name)))
                    })?;
                    let nulls =
                        |array: &ArrayRef| check_nulls(array, field.nullable, path, &field.name);
                    match &column {
                        Column::Plain(array) | Column::Dictionary(array) => nulls(array)?,
                        _ => {}
                    }
                    column
                }
                (None, None, Some(atom)) if field.nullable && run.scan.paths.len() > 1 => {
                    Column::Constant(file::null_constant(atom), rows)
                }
                _ => {
                    return Err(Error::data(format!(
                        "'{path}' has no column {}",
                        quote_name(&field.name)
                    )));
                }
            });
        }
        Ok(Decoded { columns, start: 0, rows })
    }

    /// Chunks of the next rows of the batch that is being read; nothing at its end.
    fn next_chunks(&mut self) -> Result<Option<ChunksReader>> {
        let Some(Decoded { columns, start, rows }) = &mut self.decoded else { return Ok(None) };
        let (from, len) = (*start, BATCH_ROWS.min(*rows - *start));
        if len == 0 {
            self.decoded = None;
            return Ok(None);
        }
        *start += len;
        let columns: Vec<Column> = columns.iter().map(|column| column.slice(from, len)).collect();
        let run = &self.run;
        let chunk = filter_and_project(&columns, len, &run.conjuncts, &run.scan.fields)?;
        Ok(Some(ChunksReader::new(vec![chunk], run.run.context.chunk_rows())))
    }
}

fn holds_runs(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_runs(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_runs(field.data_type())),
        _ => false,
    }
}

fn column(array: &ArrayRef, found: &Atom, declared: &Atom) -> Result<Column> {
    let keeps = match array.data_type() {
        // A NULL among the values would not be seen as one.
        DataType::Dictionary(key, values) => {
            found == declared
                && **values == declared.arrow()
                && matches!(**key, DataType::Int32 | DataType::UInt32)
                && array.as_any_dictionary().values().null_count() == 0
        }
        _ => false,
    };
    if keeps {
        Ok(Column::Dictionary(array.clone()))
    } else {
        convert(array.clone(), found, declared).map(Column::Plain)
    }
}

/// The columns of an Arrow IPC file or stream. One of a type that is not supported stands as NULLs,
/// and is an error where it is read.
///
/// # Errors
/// The file cannot be read or is no Arrow IPC.
pub fn discover(reader: Arc<dyn RangeReader>) -> Result<Tuple> {
    Ok(statement_tuple(&readable_tuple(&open(&*reader, None)?.layout.schema)))
}

fn damaged(path: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!(
        "cannot read '{path}' as Arrow IPC: {error}; the file is damaged or was not written completely"
    ))
}

/// Looks into a file: its schema, and for the file format where its messages lie.
fn open(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<Found> {
    let magic = read_now(reader, 0..reader.len().min(6), context)?;
    match &magic[..] {
        b"ARROW1" => open_file(reader, context),
        magic if magic.starts_with(b"FEA1") => Err(Error::unsupported(format!(
            "'{}' is a Feather file of version 1, which is not read; write it as Arrow IPC (Feather version 2)",
            reader.path()
        ))),
        _ => Ok(Found { layout: stream_layout(reader, context)?, blocks: None }),
    }
}

fn open_file(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<Found> {
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
    check_order(path, &schema)?;
    let schema = message::schema(schema).map_err(|error| damaged(path, error))?;
    let batches =
        footer.recordBatches().ok_or_else(|| damaged(path, "its footer names no batches"))?;
    let blocks = Blocks {
        dictionaries: footer.dictionaries().iter().flatten().copied().collect(),
        batches: batches.iter().copied().collect(),
    };
    Ok(Found { layout: Layout { schema, version: footer.version() }, blocks: Some(blocks) })
}

fn check_order(path: &str, schema: &arrow::ipc::Schema<'_>) -> Result<()> {
    if schema.endianness().equals_to_target_endianness() {
        return Ok(());
    }
    Err(Error::unsupported(format!("'{path}' was written on a machine of another byte order")))
}

/// The bytes of a block: its description and its body.
fn range_of(path: &str, block: &Block, len: u64) -> Result<Range<u64>> {
    let part = |len: i64| u64::try_from(len).ok();
    let range =
        part(block.offset()).zip(part(block.metaDataLength().into())).zip(part(block.bodyLength()));
    let range = range
        .and_then(|((start, head), body)| Some(start..start.checked_add(head)?.checked_add(body)?));
    // A description begins with its own length.
    let range = range.filter(|range| block.metaDataLength() >= 8 && range.end <= len);
    range.ok_or_else(|| damaged(path, "a block lies outside the file"))
}

/// The schema at the start of a stream.
fn stream_layout(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<Layout> {
    let (path, len) = (reader.path(), reader.len());
    let failed = |error: String| damaged(path, error);
    let start = read_now(reader, 0..len.min(8), context)?;
    let early = || damaged(path, "it ends before its schema");
    let Prefix { prefix, description } = Prefix::of(&start).map_err(failed)?.ok_or_else(early)?;
    let end = (prefix + description) as u64;
    if description == 0 || end > len {
        return Err(early());
    }
    let bytes = read_now(reader, 0..end, context)?;
    let message = message::message(&bytes).map_err(failed)?;
    let schema = match message.header_type() {
        MessageHeader::Schema => message.header_as_schema(),
        _ => None,
    };
    let schema = schema.ok_or_else(|| damaged(path, "it does not begin with a schema"))?;
    check_order(path, &schema)?;
    Ok(Layout { schema: message::schema(schema).map_err(failed)?, version: message.version() })
}
