//! `ipc_scan` (and, in `write`, `ipc_materialize`): Arrow IPC in the file format and the stream
//! format, compressed or not.
//!
//! A record batch of a file is a morsel; a stream is one morsel. Dictionaries with 32-bit keys stay
//! encoded. A file's footer and dictionaries are read once when the scan starts, which blocks; no
//! later read blocks. Only the required columns of a batch are decoded.
//!
//! Memory, counted: for each worker, the bytes of one message and its decompressed form.

mod format;
mod open;
mod stream;
mod write;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use arrow::ipc::Block;

use tessera_context::guard::guarded;
use tessera_context::{RangeReader, Read, ReadBuffer, Reservation, Run, file_changed};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role};
use tessera_rows::Collected;
use tessera_rows::ipc::message::{Decoder, Layout};
use tessera_types::{Atom, Error, Result, quote_name};
use tessera_vector::{CHUNK_ROWS, Column};

use crate::file::{
    self, Conjunct, FilePredicate, FileScan, RunConjunct, check_nulls, check_type, convert,
    filter_and_project, joined_conjuncts, readable_tuple, start_conjuncts, unreadable,
};

pub use self::format::Ipc;
pub use self::open::discover;
use self::open::{FileHead, damaged, open, range_of};
use self::stream::{Next, Stream};
pub use self::write::IpcMaterialize;

/// The rows filtered at once.
const BATCH_ROWS: usize = CHUNK_ROWS;
/// The most bytes per value when runs are expanded; text values are views.
const RUN_VALUE_BYTES: usize = 16;

/// The sub-operator `ipc_scan`.
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

    fn pushes(&self) -> Pushes {
        Pushes::SCAN
    }
}

impl SubOperator for IpcScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        let files = FilePredicate::new(&scan, lowering)?;
        Ok(Operator::Source(Arc::new(IpcScanOperator { scan: Arc::new(scan), conjuncts, files })))
    }
}

#[derive(Debug)]
struct IpcScanOperator {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
    files: FilePredicate,
}

#[derive(Debug)]
struct IpcRun {
    scan: Arc<FileScan>,
    conjuncts: Arc<[RunConjunct]>,
    run: Run,
    files: Vec<IpcFile>,
    /// The file, and the record batch within it; `None` for a stream.
    morsels: Vec<(usize, Option<usize>)>,
}

impl Source for IpcScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let mut morsels = Vec::new();
        let mut files = Vec::with_capacity(self.scan.paths.len());
        for position in self.files.wanted(&self.scan, run)? {
            run.context.check()?;
            let path = &self.scan.paths[position];
            let number = files.len();
            let reader = run.open(path)?;
            let found = open(&*reader, Some(&run.context))?;
            let columns = self.columns(position, &found, path)?;
            let blocks = match &found.blocks {
                Some(blocks) => {
                    morsels.extend((0..blocks.batches.len()).map(|batch| (number, Some(batch))));
                    Some(blocks.decoder(&found.layout, &columns.wanted, &*reader, run)?)
                }
                None => {
                    morsels.push((number, None));
                    None
                }
            };
            let (path, len) = (path.clone(), reader.len());
            files.push(IpcFile { path, len, layout: found.layout, columns, blocks });
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

impl IpcScanOperator {
    /// Maps the columns of the scan to those of a file.
    fn columns(&self, position: usize, found: &FileHead, path: &str) -> Result<FileColumns> {
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
                Atom::of_field(&found.layout.schema.fields()[place])
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
        let &(file, batch) =
            run.morsels.get(morsel).ok_or_else(|| Error::internal("the morsel does not exist"))?;
        let IpcFile { path, len, layout, columns, .. } = &run.files[file];
        let source = run.run.open(path)?;
        if source.len() != *len {
            return Err(file_changed(path));
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
    /// A whole stream.
    Stream(Box<Stream>),
}

/// A decoded record batch; its rows before `start` were returned.
struct Decoded {
    columns: Vec<Column>,
    start: usize,
    rows: usize,
}

/// A file of the scan.
#[derive(Debug)]
struct IpcFile {
    path: Arc<str>,
    len: u64,
    layout: Layout,
    columns: FileColumns,
    /// The decoder of the file's record batches, and their locations; `None` for a stream.
    blocks: Option<(Decoder, Arc<[Block]>)>,
}

/// The columns of a scan in one file.
#[derive(Debug)]
struct FileColumns {
    /// Constants from hive partitions.
    constants: Vec<Option<ArrayRef>>,
    /// For each column, its position among the decoded columns.
    places: Vec<Option<usize>>,
    /// The positions in the file of the decoded columns.
    wanted: Vec<usize>,
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
                        blocks.ok_or_else(|| Error::internal("a stream has no batch locations"))?;
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
                // Arrow may panic on values that no writer produces; this is reported as a damaged
                // file.
                let decoded = guarded(|| self.decoded(&batch));
                let wrong = || damaged(self.source.path(), "a record batch cannot be converted");
                self.decoded = Some(decoded.ok_or_else(wrong)??);
            }
        }
    }
}

impl IpcReader {
    /// Converts a batch to the columns of the scan.
    fn decoded(&mut self, batch: &RecordBatch) -> Result<Decoded> {
        let run = self.run.clone();
        let (path, rows) = (&run.files[self.file].path, batch.num_rows());
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
                    let found =
                        found.ok_or_else(|| Error::internal("a decoded column has no field"))?;
                    let found = Atom::of_field(found)?;
                    check_type(path, &field.name, &found, declared, false)?;
                    let is_null = *array.data_type() == DataType::Null && found != *declared;
                    if is_null || holds_runs(array.data_type()) {
                        // A few bytes may encode a very long run.
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

    /// Returns chunks of the next rows of the current batch, or `None` at its end.
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
        // A NULL among the dictionary's values would not be recognized.
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
