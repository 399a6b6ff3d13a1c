//! Pieces that many implementations share: streams of one chunk in, one chunk out; sources over
//! chunks; packing of small chunks.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{ArrayRef, Int64Array};
use tessera_context::{Token, lock};
use tessera_functions::growth::in_piece;
use tessera_rows::{Collected, KeptChunk};
use tessera_types::{Error, Result};
use tessera_vector::{CHUNK_ROWS, CHUNK_ROWS_MAX, Chunk, Column, concat_chunks, repeat_value};

use crate::{Reader, SourceRun, Step, StreamRun, StreamWorker};

/// How many chunks of a finished collection make a morsel: enough work to be worth a trip to the
/// scheduler, little enough to share out.
pub const MORSEL_CHUNKS: usize = 16;

/// A stream without state that gives at most one chunk for each: what it does to a chunk, in one
/// run.
pub trait Transform: Send + Sync + Debug {
    /// The output for a chunk; an empty one is dropped.
    fn apply(&self, chunk: Chunk) -> Result<Chunk>;

    /// Of how many tuples at once, where the output for a whole chunk may take too much memory.
    fn piece_rows(&self, _chunk: &Chunk) -> Option<usize> {
        None
    }

    /// As [`StreamRun::passes_lying`].
    fn passes_lying(&self) -> bool {
        false
    }
}

/// The run of a [`Transform`].
pub fn transform_run(transform: impl Transform + 'static) -> Arc<dyn StreamRun> {
    Arc::new(TransformRun { transform: Arc::new(transform), pack_rows: None })
}

/// The run of a [`Transform`] that leaves few tuples of many: its outputs are packed into chunks of
/// `chunk_rows`.
pub fn packed_transform_run(
    transform: impl Transform + 'static,
    chunk_rows: usize,
) -> Arc<dyn StreamRun> {
    Arc::new(TransformRun { transform: Arc::new(transform), pack_rows: Some(chunk_rows) })
}

#[derive(Debug)]
struct TransformRun {
    transform: Arc<dyn Transform>,
    pack_rows: Option<usize>,
}

struct TransformWorker {
    transform: Arc<dyn Transform>,
    packer: Packer,
    /// The rest of a chunk that is transformed in pieces of so many tuples.
    rest: Option<(Chunk, usize)>,
}

impl StreamRun for TransformRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let packer = Packer::new(self.pack_rows.unwrap_or(0));
        Ok(Box::new(TransformWorker { transform: self.transform.clone(), packer, rest: None }))
    }

    fn passes_lying(&self) -> bool {
        self.transform.passes_lying()
    }
}

impl StreamWorker for TransformWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        match self.transform.piece_rows(&chunk) {
            None => self.packer.push(self.transform.apply(chunk)?),
            Some(piece) => {
                self.rest = Some((chunk, piece));
                Ok(())
            }
        }
    }

    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(chunk) = self.packer.pop() {
                return Ok(Step::HasOutput(chunk));
            }
            let Some((chunk, piece)) = self.rest.take() else { return Ok(Step::NeedInput) };
            let taken = piece.min(chunk.rows());
            if taken < chunk.rows() {
                self.rest = Some((chunk.slice(taken, chunk.rows() - taken), piece));
            }
            self.packer.push(in_piece(|| self.transform.apply(chunk.slice(0, taken)))?)?;
        }
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

/// Packs chunks that have become small, so that what comes after does not pay its costs per chunk
/// for a few tuples.
///
/// Chunks that are at least an eighth full pass as they are (a copy would cost more than it saves);
/// order is kept. With `chunk_rows` = 0 everything passes.
#[derive(Debug)]
pub struct Packer {
    chunk_rows: usize,
    held: Vec<Chunk>,
    held_rows: usize,
    ready: VecDeque<Chunk>,
}

impl Packer {
    /// A packer towards chunks of this many tuples.
    pub fn new(chunk_rows: usize) -> Self {
        Packer { chunk_rows, held: Vec::new(), held_rows: 0, ready: VecDeque::new() }
    }

    /// Takes a chunk.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        let rows = chunk.rows();
        if rows == 0 {
            return Ok(());
        }
        let small = rows < self.chunk_rows / 8;
        if !small || self.held_rows + rows > self.chunk_rows {
            self.flush()?;
        }
        if small {
            self.held_rows += rows;
            // Gathered now: held as it is, the few tuples would keep the whole chunk alive.
            self.held.push(chunk.compact()?);
        } else {
            self.ready.push_back(chunk);
        }
        Ok(())
    }

    /// Moves what is held to the output.
    pub fn flush(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.ready.push_back(concat_chunks(&self.held)?);
            self.held.clear();
            self.held_rows = 0;
        }
        Ok(())
    }

    /// The next chunk that is ready.
    pub fn pop(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }
}

/// The most morsels that tuples with collections are cut into. Each such tuple may be the work of a
/// whole nested plan, so that few of them are shared out one by one.
const HANDLE_MORSELS_MAX: usize = 256;

/// A source of chunks that are there: some chunks a morsel, in order; chunks larger than
/// `chunk_rows` are sliced.
pub fn chunks_source(chunks: impl Into<Arc<[Chunk]>>, chunk_rows: usize) -> Arc<dyn SourceRun> {
    let chunks = chunks.into();
    let holds_handles =
        |chunk: &Chunk| chunk.stored().iter().any(|c| matches!(c, Column::Handles(_)));
    if !chunks.first().is_some_and(holds_handles) {
        let chunks = chunks.iter().cloned().map(KeptChunk::from).collect();
        return Arc::new(ChunksRun { chunks, chunk_rows, morsel_chunks: MORSEL_CHUNKS });
    }
    let rows: usize = chunks.iter().map(Chunk::rows).sum();
    let piece = rows.div_ceil(HANDLE_MORSELS_MAX).clamp(1, chunk_rows.max(1));
    let pieces = |chunk: &Chunk| {
        let chunk = chunk.clone();
        let starts = (0..chunk.rows()).step_by(piece);
        starts
            .map(move |start| chunk.slice(start, piece.min(chunk.rows() - start)))
            .collect::<Vec<_>>()
    };
    let chunks: Vec<KeptChunk> = chunks.iter().flat_map(pieces).map(KeptChunk::from).collect();
    let morsel_chunks = chunks.len().div_ceil(HANDLE_MORSELS_MAX).max(1);
    Arc::new(ChunksRun { chunks: chunks.into(), chunk_rows, morsel_chunks })
}

/// A source of one morsel, which `open` reads.
pub fn one_morsel(
    open: impl Fn() -> Result<Box<dyn Reader>> + Send + Sync + 'static,
) -> Arc<dyn SourceRun> {
    Arc::new(OneMorsel { open: Box::new(open) })
}

struct OneMorsel {
    open: Box<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>,
}

impl Debug for OneMorsel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneMorsel").finish_non_exhaustive()
    }
}

impl SourceRun for OneMorsel {
    fn morsels(&self) -> usize {
        1
    }

    fn open(&self, _morsel: usize) -> Result<Box<dyn Reader>> {
        (self.open)()
    }
}

/// How many tuples a chunk has at most where nothing but one loop goes over it; fewer where
/// somebody wants them shorter than usual.
pub fn long_chunk_rows(chunk_rows: usize) -> usize {
    if chunk_rows < CHUNK_ROWS { chunk_rows } else { CHUNK_ROWS_MAX }
}

/// A source of the tuples of a complete input.
pub fn collected_source(collected: &Collected, chunk_rows: usize) -> Arc<dyn SourceRun> {
    if let Some(chunks) =
        collected.kept().iter().map(|kept| kept.in_memory().cloned()).collect::<Option<Vec<_>>>()
    {
        return chunks_source(chunks, chunk_rows);
    }
    Arc::new(ChunksRun {
        chunks: collected.kept().into(),
        chunk_rows,
        morsel_chunks: MORSEL_CHUNKS,
    })
}

#[derive(Debug)]
struct ChunksRun {
    chunks: Arc<[KeptChunk]>,
    chunk_rows: usize,
    morsel_chunks: usize,
}

impl SourceRun for ChunksRun {
    fn morsels(&self) -> usize {
        self.chunks.len().div_ceil(self.morsel_chunks)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, self.chunk_rows)))
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, long_chunk_rows(self.chunk_rows))))
    }
}

impl ChunksRun {
    fn reader(&self, morsel: usize, chunk_rows: usize) -> ChunksReader {
        let first = (morsel * self.morsel_chunks).min(self.chunks.len());
        let last = (first + self.morsel_chunks).min(self.chunks.len());
        ChunksReader::of_kept(self.chunks[first..last].to_vec(), chunk_rows)
    }
}

/// Pairs of tuples: row `row` of one chunk with all rows of the other; fields of `left` first. Both
/// without a selection.
///
/// # Errors
/// There is no such row.
pub fn pairs_with_row(left: &Chunk, right: &Chunk, repeat_left: bool, row: usize) -> Result<Chunk> {
    let (short, long) = if repeat_left { (left, right) } else { (right, left) };
    let repeated = short.stored().iter().map(|column| repeat_value(column, row, long.rows()));
    let repeated = repeated.collect::<Result<Vec<Column>>>()?;
    let (mut columns, behind) = match repeat_left {
        true => (repeated, long.stored().to_vec()),
        false => (long.stored().to_vec(), repeated),
    };
    columns.extend(behind);
    Ok(Chunk::new(columns, long.rows()))
}

/// Cuts chunks into pieces.
#[derive(Debug, Default)]
pub struct Cutter {
    /// A chunk, and the first row that has not been given out.
    rest: Option<(Chunk, usize)>,
}

impl Cutter {
    /// Takes a chunk, when the one before has been given out.
    pub fn put(&mut self, chunk: Chunk) {
        debug_assert!(self.rest.is_none());
        self.rest = Some((chunk, 0));
    }

    /// The next piece, of at most `rows_max` tuples.
    pub fn pop(&mut self, rows_max: usize) -> Option<Chunk> {
        let (chunk, start) = self.rest.take()?;
        let len = rows_max.max(1).min(chunk.rows() - start);
        if len == chunk.rows() {
            return Some(chunk);
        }
        let piece = chunk.slice(start, len);
        if start + len < chunk.rows() {
            self.rest = Some((chunk, start + len));
        }
        Some(piece)
    }
}

/// Reads chunks, sliced to at most `chunk_rows` tuples.
#[derive(Debug)]
pub struct ChunksReader {
    chunks: std::vec::IntoIter<KeptChunk>,
    cutter: Cutter,
    chunk_rows: usize,
}

impl ChunksReader {
    /// A reader of these chunks.
    pub fn new(chunks: Vec<Chunk>, chunk_rows: usize) -> Self {
        ChunksReader::of_kept(chunks.into_iter().map(KeptChunk::from).collect(), chunk_rows)
    }

    /// A reader of chunks of which some may have left memory.
    pub fn of_kept(chunks: Vec<KeptChunk>, chunk_rows: usize) -> Self {
        ChunksReader { chunks: chunks.into_iter(), cutter: Cutter::default(), chunk_rows }
    }
}

impl Reader for ChunksReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(piece) = self.cutter.pop(self.chunk_rows) {
                return Ok(Step::HasOutput(piece));
            }
            match self.chunks.next() {
                None => return Ok(Step::Done),
                Some(chunk) if chunk.is_empty() => {}
                Some(kept) => self.cutter.put(kept.chunk()?),
            }
        }
    }
}

/// Numbers the tuples of a stream in the order of its source, where several processes read every
/// n-th morsel of it.
#[derive(Debug)]
pub struct SourcePositions {
    process: u64,
    processes: u64,
    morsel: u64,
    rows: u64,
}

impl SourcePositions {
    /// Bits of a position that number the tuples of a morsel; those above number the morsels of all
    /// processes.
    pub const ROW_BITS: u32 = 36;

    /// Positions for one of so many processes.
    pub fn new(process: usize, processes: usize) -> Self {
        SourcePositions { process: process as u64, processes: processes as u64, morsel: 0, rows: 0 }
    }

    /// A morsel of this process begins.
    pub fn begin(&mut self, position: u64) {
        (self.morsel, self.rows) = (position * self.processes + self.process, 0);
    }

    /// The tuples of a chunk of the morsel, with their positions as a field in front.
    ///
    /// # Errors
    /// Those of [`Chunk::compact`].
    pub fn before(&mut self, chunk: Chunk) -> Result<Chunk> {
        let chunk = chunk.compact()?;
        let rows = chunk.rows();
        let first = (self.morsel << Self::ROW_BITS | self.rows) as i64;
        self.rows += rows as u64;
        let positions: ArrayRef =
            Arc::new(Int64Array::from_iter_values(first..first + rows as i64));
        let columns = [Column::Plain(positions)].into_iter().chain(chunk.stored().iter().cloned());
        Ok(Chunk::new(columns.collect(), rows))
    }
}

/// What makes the tuples of a [`Later`] source.
type Make = Box<dyn FnOnce() -> Result<Vec<Chunk>> + Send>;

/// A source whose tuples come from elsewhere: they are made, once, when its token is ready.
pub struct Later {
    token: Token,
    chunk_rows: usize,
    make: Mutex<Option<Make>>,
    made: OnceLock<Result<Arc<dyn SourceRun>>>,
}

impl Later {
    /// A source of what `make` gives when `token` is ready. What it owns is dropped with it, or
    /// with the source.
    pub fn source(
        token: Token,
        chunk_rows: usize,
        make: impl FnOnce() -> Result<Vec<Chunk>> + Send + 'static,
    ) -> Arc<dyn SourceRun> {
        let make = Mutex::new(Some(Box::new(make) as Make));
        Arc::new(Later { token, chunk_rows, make, made: OnceLock::new() })
    }

    fn made(&self) -> &Result<Arc<dyn SourceRun>> {
        self.made.get_or_init(|| {
            let make = lock(&self.make).take();
            let make = make.ok_or_else(|| Error::internal("a source was made twice"))?;
            Ok(chunks_source(make()?, self.chunk_rows))
        })
    }
}

impl Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Later").field("token", &self.token).finish_non_exhaustive()
    }
}

impl SourceRun for Later {
    fn ready(&self) -> Option<Token> {
        Some(self.token.clone())
    }

    fn morsels(&self) -> usize {
        // One morsel to say what went wrong.
        self.made().as_ref().map_or(1, |source| source.morsels())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.made().clone()?.open(morsel)
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.made().clone()?.open_long(morsel)
    }
}

/// The output of a sink whose parts are made by tasks: each task fills its own part, the parts are
/// read in order.
#[derive(Debug)]
pub struct DeferredSource {
    parts: Vec<OnceLock<Vec<Chunk>>>,
    morsels: OnceLock<Vec<(usize, usize)>>,
    chunk_rows: usize,
}

impl DeferredSource {
    /// An output of this many parts, all still to be filled.
    pub fn new(parts: usize, chunk_rows: usize) -> Arc<Self> {
        let parts = std::iter::repeat_with(OnceLock::new).take(parts).collect();
        Arc::new(DeferredSource { parts, morsels: OnceLock::new(), chunk_rows })
    }

    /// Fills a part; once for each.
    ///
    /// # Errors
    /// It was filled before, or there is no such part: a mistake of the sink.
    pub fn fill(&self, part: usize, chunks: Vec<Chunk>) -> Result<()> {
        let filled = self.parts.get(part).is_some_and(|cell| cell.set(chunks).is_ok());
        if filled {
            Ok(())
        } else {
            Err(Error::internal(format!("part {part} of an output filled twice")))
        }
    }

    /// Part and first chunk of each morsel.
    fn ranges(&self) -> &[(usize, usize)] {
        self.morsels.get_or_init(|| {
            let starts = |part: usize| {
                let chunks = self.parts[part].get().map_or(0, Vec::len);
                (0..chunks).step_by(MORSEL_CHUNKS).map(move |first| (part, first))
            };
            (0..self.parts.len()).flat_map(starts).collect()
        })
    }
}

impl SourceRun for DeferredSource {
    fn morsels(&self) -> usize {
        self.ranges().len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let &(part, first) = self
            .ranges()
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let chunks = self.parts[part].get().map_or(&[][..], Vec::as_slice);
        let last = (first + MORSEL_CHUNKS).min(chunks.len());
        Ok(Box::new(ChunksReader::new(chunks[first..last].to_vec(), self.chunk_rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_long_for_who_takes_such_unless_all_are_to_be_short() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let first = |chunk_rows: usize, open: fn(&dyn SourceRun) -> Result<Box<dyn Reader>>| {
            let source = chunks_source(vec![Chunk::from_arrays(vec![numbers.clone()])], chunk_rows);
            let step = open(&*source).and_then(|mut reader| reader.step());
            match step.unwrap() {
                Step::HasOutput(chunk) => chunk.rows(),
                _ => 0,
            }
        };
        assert_eq!(first(CHUNK_ROWS, |source| source.open(0)), CHUNK_ROWS);
        assert_eq!(first(CHUNK_ROWS, |source| source.open_long(0)), CHUNK_ROWS_MAX);
        assert_eq!(first(61, |source| source.open_long(0)), 61);
    }
}
