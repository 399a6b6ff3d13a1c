//! `content_scan`: files as a whole, one row a file: `filename`, `content`, `size`,
//! `last_modified`. The declared type of `content` says whether it is a text or bytes.
//!
//! A file is a morsel. Predicates that do not read the content are tested before it is read. The
//! bytes of a file that is read in one piece are not copied.
//!
//! Memory, counted: for each worker, the bytes of one file.

mod format;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::builder::make_view;
use arrow::array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow::array::{
    ArrayRef, GenericByteViewArray, Int64Array, StringViewArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow::buffer::Buffer;

use tessera_context::{RangeReader, Read, ReadBuffer, Reservation, Run};
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Code, Error, Field, Result, TimeUnit, Tuple, quote_name};
use tessera_vector::Column;

use crate::file::{
    self, Conjunct, FileScan, RunConjunct, conjuncts, filter_and_project, start_conjuncts,
};

pub use self::format::{Blob, Text};

/// The bytes read at once; a statement can be cancelled in between.
const PIECE_BYTES: u64 = 8 << 20;
/// The pieces of an object that are fetched at once.
const PIECES_AHEAD: u64 = 8;
/// The most bytes of one value.
const CONTENT_BYTES_MAX: u64 = i32::MAX as u64;

/// The columns of files whose content has this type.
fn columns(content: &Atom) -> Tuple {
    Tuple::new(vec![
        Field::new("filename", Atom::String),
        Field::new("content", content.clone()),
        Field::new("size", Atom::Int64),
        Field::nullable("last_modified", modified_atom()),
    ])
}

fn modified_atom() -> Atom {
    Atom::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")))
}

/// What a column of the scan has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Text,
    Bytes,
    Size,
    Modified,
    /// A constant of each file.
    Partition,
}

impl Part {
    fn is_content(self) -> bool {
        matches!(self, Part::Text | Part::Bytes)
    }

    /// Whether the file must be opened.
    fn is_of_file(self) -> bool {
        !matches!(self, Part::Name | Part::Partition)
    }
}

/// The sub-operator `content_scan`.
#[derive(Debug)]
pub struct ContentScan;

impl Descriptor for ContentScan {
    tessera_operator::describe!(
        "content_scan",
        "Yields a tuple for each file: its name, content, size and time of the last change.",
        ["paths", "columns", "fields", "filter", "partitions"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let scan = FileScan::new(node)?;
        parts(&scan)?;
        file::derive_scan(&scan, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        Pushes::SCAN
    }
}

/// Returns what each column has.
///
/// # Errors
/// A column has an unknown name or another type.
fn parts(scan: &FileScan) -> Result<Vec<Part>> {
    let part = |field: &Field| {
        let is_partition = |constants: &Vec<(Arc<str>, _, _)>| {
            constants.iter().any(|(name, ..)| *name == field.name)
        };
        if !scan.partitions.is_empty() && scan.partitions.iter().all(is_partition) {
            return Ok(Part::Partition);
        }
        match (&*field.name, field.atom()) {
            ("filename", Some(Atom::String)) => Ok(Part::Name),
            ("content", Some(Atom::String)) => Ok(Part::Text),
            ("content", Some(Atom::Bytes)) => Ok(Part::Bytes),
            ("size", Some(Atom::Int64)) => Ok(Part::Size),
            ("last_modified", Some(atom)) if *atom == modified_atom() && field.nullable => {
                Ok(Part::Modified)
            }
            _ => Err(Error::semantic(format!(
                "content_scan has no column {} of type {}; expected some of {}",
                quote_name(&field.name),
                field.item,
                columns(&Atom::String)
            ))),
        }
    };
    scan.columns.fields().iter().map(part).collect()
}

impl SubOperator for ContentScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let parts = parts(&scan)?;
        let mut conjuncts = conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?;
        let reads_content =
            |conjunct: &Conjunct| conjunct.columns.iter().any(|column| parts[*column].is_content());
        if !conjuncts.iter().any(|conjunct| conjunct.bound.can_raise()) {
            conjuncts.sort_by_key(reads_content);
        }
        let early = conjuncts.iter().take_while(|conjunct| !reads_content(conjunct)).count();
        Ok(Operator::Source(Arc::new(ContentScanOperator {
            scan: Arc::new(scan),
            parts: parts.into(),
            conjuncts: conjuncts.into(),
            early,
        })))
    }
}

#[derive(Debug)]
struct ContentScanOperator {
    scan: Arc<FileScan>,
    parts: Arc<[Part]>,
    conjuncts: Arc<[Conjunct]>,
    /// The number of conjuncts that are tested before the content is read.
    early: usize,
}

#[derive(Debug)]
struct ContentRun {
    scan: Arc<FileScan>,
    parts: Arc<[Part]>,
    conjuncts: Arc<[RunConjunct]>,
    early: usize,
    run: Run,
}

impl Source for ContentScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(OpenRun(Arc::new(ContentRun {
            scan: self.scan.clone(),
            parts: self.parts.clone(),
            conjuncts: start_conjuncts(&self.conjuncts, run),
            early: self.early,
            run: run.clone(),
        }))))
    }
}

#[derive(Debug)]
struct OpenRun(Arc<ContentRun>);

impl SourceRun for OpenRun {
    fn morsels(&self) -> usize {
        self.0.scan.paths.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let run = self.0.clone();
        if morsel >= run.scan.paths.len() {
            return Err(Error::internal("the morsel does not exist"));
        }
        let reservation = Reservation::new(run.run.context.clone());
        Ok(Box::new(ContentReader { run, file: morsel, reservation, state: State::Unopened }))
    }
}

/// Reads one file.
struct ContentReader {
    run: Arc<ContentRun>,
    file: usize,
    reservation: Reservation,
    state: State,
}

enum State {
    Unopened,
    /// The columns other than the content, and the bytes of it so far.
    Reading {
        source: Arc<dyn RangeReader>,
        columns: Vec<Column>,
        bytes: Vec<u8>,
    },
    Done,
}

impl Reader for ContentReader {
    fn step(&mut self) -> Result<Step> {
        self.run.run.context.check()?;
        match std::mem::replace(&mut self.state, State::Done) {
            State::Unopened => self.open(),
            State::Reading { source, columns, bytes } => self.read(source, columns, bytes),
            State::Done => {
                self.reservation.resize(0)?;
                Ok(Step::Done)
            }
        }
    }
}

impl ContentReader {
    /// Opens the file, and tests what is known before its content is read.
    fn open(&mut self) -> Result<Step> {
        let run = self.run.clone();
        let path = &run.scan.paths[self.file];
        let source = match run.parts.iter().any(|part| part.is_of_file()) {
            true => Some(run.run.open(path)?),
            false => None,
        };
        let constants = run.scan.constants(self.file)?;
        let fields = run.scan.columns.fields().iter();
        let columns = fields.zip(&*run.parts).zip(constants);
        let columns = columns.map(|((field, part), constant)| {
            Ok(match (part, &source, constant) {
                (Part::Partition, _, Some(constant)) => Column::Constant(constant, 1),
                (Part::Name, ..) => Column::Plain(Arc::new(StringViewArray::from(vec![&**path]))),
                (Part::Size, Some(source), _) => {
                    Column::Plain(Arc::new(Int64Array::from(vec![source.len() as i64])))
                }
                (Part::Modified, Some(source), _) => Column::Plain(moment(source.modified())),
                // The content replaces it.
                (Part::Text | Part::Bytes, Some(_), _) => {
                    let atom = field.atom().unwrap_or(&Atom::Bytes);
                    Column::Plain(new_null_array(&atom.arrow(), 1))
                }
                _ => return Err(Error::internal("a column of a file has no value")),
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let tested = filter_and_project(&columns, 1, &run.conjuncts[..run.early], &[])?;
        match source {
            _ if tested.is_empty() => Ok(Step::Done),
            Some(source) if run.parts.iter().any(|part| part.is_content()) => {
                self.begin(&*source)?;
                self.state = State::Reading { source, columns, bytes: Vec::new() };
                Ok(Step::Again)
            }
            _ => Ok(Step::HasOutput(filter_and_project(&columns, 1, &[], &run.scan.fields)?)),
        }
    }

    /// Reserves the memory of the content.
    fn begin(&mut self, source: &dyn RangeReader) -> Result<()> {
        let (path, len) = (source.path(), source.len());
        if len > CONTENT_BYTES_MAX {
            return Err(Error::new(
                Code::Limit,
                format!(
                    "'{path}' has {len} bytes, but a value can have at most {CONTENT_BYTES_MAX}; leave its column \
                     content out"
                ),
            ));
        }
        self.reservation.resize(len as usize).map_err(|error| error.context(format!("'{path}'")))
    }

    /// Reads the next piece of the content.
    fn read(
        &mut self,
        source: Arc<dyn RangeReader>,
        columns: Vec<Column>,
        mut bytes: Vec<u8>,
    ) -> Result<Step> {
        let (start, len) = (bytes.len() as u64, source.len());
        if source.is_remote() {
            let starts = (0..PIECES_AHEAD).map(|piece| start + piece * PIECE_BYTES);
            let ranges = starts.filter(|start| *start < len);
            let ranges = ranges.map(|start| start..(start + PIECE_BYTES).min(len));
            source.prefetch(&ranges.collect::<Vec<_>>())?;
        }
        let end = (start + PIECE_BYTES).min(len);
        let piece = match source.read_into(start..end, ReadBuffer::default())? {
            Read::Ready(buffer) => buffer.into_bytes(),
            Read::Blocked(token) => {
                self.state = State::Reading { source, columns, bytes };
                return Ok(Step::Blocked(token));
            }
        };
        let content = match (start, end == len) {
            (0, true) => Buffer::from(piece),
            (_, is_last) => {
                bytes.reserve_exact((len - start) as usize);
                bytes.extend_from_slice(&piece);
                if !is_last {
                    self.state = State::Reading { source, columns, bytes };
                    return Ok(Step::Again);
                }
                Buffer::from(bytes)
            }
        };
        self.output(source.path(), columns, content)
    }

    /// Returns the row of a file, unless the remaining conjuncts reject it.
    fn output(&self, path: &str, mut columns: Vec<Column>, content: Buffer) -> Result<Step> {
        let run = &self.run;
        for (column, part) in columns.iter_mut().zip(&*run.parts) {
            match part {
                Part::Text => *column = Column::Plain(Arc::new(text(path, content.clone())?)),
                Part::Bytes => {
                    *column = Column::Plain(Arc::new(value::<BinaryViewType>(content.clone())?));
                }
                _ => {}
            }
        }
        let late = &run.conjuncts[run.early..];
        let chunk = filter_and_project(&columns, 1, late, &run.scan.fields)?;
        Ok(if chunk.is_empty() { Step::Again } else { Step::HasOutput(chunk) })
    }
}

/// An array of one value.
fn value<T: ByteViewType>(bytes: Buffer) -> Result<GenericByteViewArray<T>> {
    let view = make_view(&bytes, 0, 0);
    Ok(GenericByteViewArray::try_new(vec![view].into(), vec![bytes], None)?)
}

/// An array of one text.
///
/// # Errors
/// The bytes are not UTF-8.
fn text(path: &str, bytes: Buffer) -> Result<StringViewArray> {
    if let Err(error) = std::str::from_utf8(&bytes) {
        return Err(Error::data(format!(
            "cannot read '{path}' as text: byte {} is not UTF-8; read it with read_blob('{path}')",
            error.valid_up_to() + 1
        )));
    }
    value::<StringViewType>(bytes)
}

/// An array of one moment.
fn moment(time: Option<SystemTime>) -> ArrayRef {
    let microseconds = |length: Duration| i64::try_from(length.as_micros()).ok();
    let since_epoch = |time: SystemTime| match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => microseconds(after),
        Err(before) => microseconds(before.duration()).map(|length| -length),
    };
    let array = TimestampMicrosecondArray::from(vec![time.and_then(since_epoch)]);
    Arc::new(array.with_timezone("UTC"))
}

#[cfg(test)]
mod tests;
