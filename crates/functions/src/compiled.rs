//! The compiled tier's side of expressions: what compiled code reads, and predicates.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, AsArray, StringViewArray, UInt32Array, downcast_primitive_array,
};
use arrow::datatypes::DataType;
use tessera_codegen::{InputCode, Promise, RawInput, SIZE_MAX, Select, SelectCode};
use tessera_context::{Run, lock};
use tessera_types::Result;
use tessera_vector::{CHUNK_ROWS_MAX, Chunk, Column};

use super::Bound;
use super::code::{Coder, Origin};
use super::evaluate::is_raised;

/// Validity of a chunk without NULLs, wherever in a byte it begins.
static ALL_VALID: [u8; CHUNK_ROWS_MAX / 8 + 1] = [u8::MAX; CHUNK_ROWS_MAX / 8 + 1];

/// Positions of a chunk all of whose tuples count.
static ALL_POSITIONS: [u32; CHUNK_ROWS_MAX] = {
    let mut positions = [0; CHUNK_ROWS_MAX];
    let mut at = 0;
    while at < CHUNK_ROWS_MAX {
        positions[at] = at as u32;
        at += 1;
    }
    positions
};

/// The positions of a chunk from one on.
pub fn positions_from(first: usize) -> &'static [u32] {
    ALL_POSITIONS.get(first..).unwrap_or_default()
}

/// Codes of a node for columns with and without NULLs and for other places, at most: then columns
/// that may have NULLs share one.
const VARIANTS_MAX: usize = 8;

/// What compiled code reads of a chunk.
#[derive(Debug)]
pub struct Inputs {
    raw: Vec<RawInput>,
    /// Where the buffers of texts begin.
    _buffers: Vec<Box<[*const u8]>>,
    /// Keeps alive what `raw` points to.
    _arrays: Vec<ArrayRef>,
}

impl Inputs {
    /// The inputs, each with a value for every tuple that the chunk stores; none where the
    /// vectorised tier is to do the chunk: it is longer than code takes, or perhaps there is an
    /// error to be told.
    ///
    /// # Errors
    /// Those of evaluation that no tuple raises.
    pub fn read(origins: &[Origin], chunk: &Chunk, run: &Run) -> Result<Option<Inputs>> {
        if chunk.rows_stored() > CHUNK_ROWS_MAX {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(origins.len());
        for origin in origins {
            match origin.values(chunk, &run.parameters) {
                Ok(values) => arrays.push(values),
                Err(error) if is_raised(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let (mut all, mut buffers) = (Vec::with_capacity(arrays.len()), Vec::new());
        for array in &arrays {
            all.push(match array.as_string_view_opt() {
                Some(texts) => views(texts, &mut buffers),
                None => raw(array),
            });
        }
        Ok(Some(Inputs { raw: all, _buffers: buffers, _arrays: arrays }))
    }

    /// The inputs of a chunk whose tuples are no columns yet, and where they are; none where one
    /// must be a column.
    fn lying(
        origins: &[Origin],
        codes: &[InputCode],
        chunk: &Chunk,
    ) -> Option<(Vec<InputCode>, Inputs)> {
        if chunk.rows_stored() > CHUNK_ROWS_MAX {
            return None;
        }
        let (mut found, mut all, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (origin, code) in origins.iter().zip(codes) {
            let Origin::Field(field) = origin else { return None };
            let (place, raw) = chunk.place()?.input(*field, &mut arrays)?;
            found.push(InputCode { place, ..*code });
            all.push(raw);
        }
        Some((found, Inputs { raw: all, _buffers: Vec::new(), _arrays: arrays }))
    }

    /// Whether none is NULL of those that code takes to be none.
    fn keep(&self, codes: &[InputCode], declared: &[InputCode]) -> bool {
        let is_kept = |((code, declared), raw): ((&InputCode, &InputCode), &RawInput)| {
            code.nullable || !declared.nullable || is_all_valid(raw)
        };
        codes.iter().zip(declared).zip(&self.raw).all(is_kept)
    }

    /// The same and one value for all tuples, which is not NULL.
    pub fn with_value(mut self, value: ArrayRef) -> Inputs {
        self.raw.push(raw(&value));
        self._arrays.push(value);
        self
    }

    /// Where they lie.
    pub fn raw(&self) -> &[RawInput] {
        &self.raw
    }
}

/// What was asked of a compiler, for inputs in one place or another.
#[derive(Debug)]
pub struct Variants<T: ?Sized>(Mutex<Vec<(Vec<InputCode>, Asked<T>)>>);

type Asked<T> = Option<Arc<dyn Promise<T>>>;

impl<T: ?Sized> Default for Variants<T> {
    fn default() -> Self {
        Variants(Mutex::default())
    }
}

impl<T: ?Sized> Variants<T> {
    /// The promise of the code for some inputs.
    pub fn promise(
        &self,
        inputs: &[InputCode],
        ask: impl FnOnce(&[InputCode]) -> Asked<T>,
    ) -> Asked<T> {
        let mut asked = lock(&self.0);
        if let Some((_, promise)) = asked.iter().find(|(others, _)| others == inputs) {
            return promise.clone();
        }
        let promise = ask(inputs);
        asked.push((inputs.to_vec(), promise.clone()));
        promise
    }

    /// Whether code is there for the inputs of some chunks; before any was seen, for those without
    /// NULLs.
    pub fn is_ready(
        &self,
        inputs: &[InputCode],
        ask: impl FnOnce(&[InputCode]) -> Asked<T>,
    ) -> bool {
        let mut asked = lock(&self.0);
        if asked.is_empty() {
            let usual: Vec<_> =
                inputs.iter().map(|input| InputCode { nullable: false, ..*input }).collect();
            let promise = ask(&usual);
            asked.push((usual, promise));
        }
        let is_there = |promise: &Asked<T>| {
            promise.as_ref().is_some_and(|promise| matches!(promise.get(0), Ok(Some(_))))
        };
        asked.iter().any(|(_, promise)| is_there(promise))
    }

    /// The codes of the inputs of a chunk; those that have no NULL there read no validity, while
    /// there are few such codes.
    fn narrowed(&self, codes: &[InputCode], has_nulls: impl Fn(usize) -> bool) -> Vec<InputCode> {
        let narrow = |(at, code): (usize, &InputCode)| InputCode {
            nullable: code.nullable && has_nulls(at),
            ..*code
        };
        let narrowed: Vec<_> = codes.iter().enumerate().map(narrow).collect();
        let asked = lock(&self.0);
        match asked.len() < VARIANTS_MAX || asked.iter().any(|(others, _)| *others == narrowed) {
            true => narrowed,
            false => codes.to_vec(),
        }
    }

    /// Code for the inputs of a chunk where they lie, or else in columns, whichever there is, and
    /// the inputs; none where the vectorised tier is to do the chunk, of which `rows` tuples count.
    ///
    /// # Errors
    /// As [`Inputs::read`], and those of compiling.
    pub fn find(
        &self,
        (origins, codes): (&[Origin], &[InputCode]),
        (chunk, rows): (&Chunk, usize),
        run: &Run,
        ask: impl Fn(&[InputCode]) -> Asked<T>,
    ) -> Result<Option<(Arc<dyn Promise<T>>, Inputs)>> {
        let reads_lists =
            run.context.compiler().as_ref().is_some_and(|compiler| compiler.reads_lists());
        if reads_lists
            && chunk.is_lying()
            && let Some((codes, inputs)) = Inputs::lying(origins, codes, chunk)
            && let codes = self.narrowed(&codes, |at| !is_all_valid(&inputs.raw[at]))
            && let Some(promise) = self.promise(&codes, &ask)
            && promise.get(rows)?.is_some()
        {
            return Ok(Some((promise, inputs)));
        }
        let narrowed = self.narrowed(codes, |at| match &origins[at] {
            Origin::Field(field) if !chunk.is_lying() => chunk.stored()[*field].has_nulls(),
            _ => true,
        });
        let Some(promise) = self.promise(&narrowed, &ask) else { return Ok(None) };
        if promise.get(rows)?.is_none() {
            return Ok(None);
        }
        let inputs = Inputs::read(origins, chunk, run)?;
        Ok(inputs.filter(|inputs| inputs.keep(&narrowed, codes)).map(|inputs| (promise, inputs)))
    }
}

/// Whether compiled code reads an array.
pub fn lies_at(array: &ArrayRef) -> bool {
    !raw(array).values.is_null()
}

/// Whether some of the texts that are read lie in a dictionary: what is said of those, the
/// vectorised tier says once for each.
pub(super) fn reads_dictionary(origins: &[Origin], chunk: &Chunk) -> bool {
    let is_of_texts = |dictionary: &ArrayRef| matches!(dictionary.data_type(), DataType::Dictionary(_, values) if **values == DataType::Utf8View);
    origins.iter().any(|origin| match origin {
        Origin::Field(field) => {
            matches!(&chunk.stored()[*field], Column::Dictionary(of) if is_of_texts(of))
        }
        Origin::Part(..) => false,
    })
}

/// Where an array's values and validity lie; those of at most [`CHUNK_ROWS_MAX`] tuples.
pub fn raw(array: &ArrayRef) -> RawInput {
    let (validity, validity_offset) = validity(array);
    let (values, values_offset) = downcast_primitive_array!(
        array => (array.values().inner().as_ptr(), 0),
        _ => match array.as_boolean_opt() {
            Some(booleans) => (booleans.values().values().as_ptr(), booleans.values().offset()),
            // Nothing else has a form that code reads.
            None => (std::ptr::null(), 0),
        }
    );
    RawInput::column(values, validity, (values_offset as u64, validity_offset as u64))
}

/// Whether an input has no NULL.
fn is_all_valid(input: &RawInput) -> bool {
    input.validity == ALL_VALID.as_ptr()
}

fn validity(array: &dyn Array) -> (*const u8, usize) {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => (nulls.buffer().as_ptr(), nulls.offset()),
        None => (ALL_VALID.as_ptr(), 0),
    }
}

/// Where views lie, and the buffers of the long ones, whose addresses are put into `buffers`.
fn views(texts: &StringViewArray, buffers: &mut Vec<Box<[*const u8]>>) -> RawInput {
    // Short ones refer to no buffer, and there may be none: code asks for the first one's address
    // all the same.
    let none = std::iter::once(std::ptr::null()).filter(|_| texts.data_buffers().is_empty());
    let starts: Box<[_]> =
        texts.data_buffers().iter().map(|buffer| buffer.as_ptr()).chain(none).collect();
    let (validity, validity_offset) = validity(texts);
    let values = texts.views().inner().as_ptr();
    let input = RawInput::column(values, validity, (0, validity_offset as u64));
    let input = RawInput { list: starts.as_ptr().cast(), ..input };
    buffers.push(starts);
    input
}

/// How many tuples went through compiled code, and how many did not; told to the profile at the
/// end.
#[derive(Debug)]
pub struct Figures {
    run: Run,
    compiled: AtomicU64,
    vectorized: AtomicU64,
}

impl Figures {
    /// Of a node in a run.
    pub fn new(run: &Run) -> Figures {
        Figures { run: run.clone(), compiled: AtomicU64::new(0), vectorized: AtomicU64::new(0) }
    }

    /// Of so many tuples, the first ones were done by compiled code.
    pub fn count(&self, rows: usize, compiled: usize) {
        self.compiled.fetch_add(compiled as u64, Ordering::Relaxed);
        self.vectorized.fetch_add((rows - compiled) as u64, Ordering::Relaxed);
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        for (name, rows) in
            [("compiled_rows", &self.compiled), ("vectorized_rows", &self.vectorized)]
        {
            let rows = rows.load(Ordering::Relaxed);
            if rows > 0 {
                self.run.counters.add(name, rows);
            }
        }
    }
}

/// A predicate in one run, in whichever tier.
#[derive(Debug, Clone)]
pub struct Predicate {
    bound: Bound,
    run: Run,
    compiled: Option<Arc<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    asked: Arc<AskedPredicate>,
    figures: Figures,
}

/// What was asked of a compiler for a predicate. All runs share it: a nested plan has many.
#[derive(Debug)]
pub(super) struct AskedPredicate {
    code: SelectCode,
    origins: Arc<[Origin]>,
    variants: Variants<dyn Select>,
}

impl AskedPredicate {
    /// None where the predicate has no code.
    fn new(bound: &Bound) -> Option<Arc<AskedPredicate>> {
        let (code, origins) = code_of(bound, true)?;
        Some(Arc::new(AskedPredicate { code, origins, variants: Variants::default() }))
    }
}

/// A predicate's code, which reads texts or does not, and where its inputs come from.
pub(super) fn code_of(bound: &Bound, texts: bool) -> Option<(SelectCode, Arc<[Origin]>)> {
    // Nothing is shared with other expressions.
    let mut coder = Coder::new(usize::MAX).with_texts(texts);
    let predicate = coder.value(bound, true)?;
    // What is evaluated first, for all tuples, would be evaluated here for those alone that other
    // conjuncts leave.
    let reads_parts = coder.origins.iter().any(|origin| matches!(origin, Origin::Part(..)));
    if reads_parts || predicate.size() > SIZE_MAX {
        return None;
    }
    Some((SelectCode { inputs: coder.inputs, predicate }, coder.origins.into()))
}

impl Predicate {
    /// A predicate as a run has it.
    pub fn start(bound: &Bound, run: &Run) -> Predicate {
        let compiled = run.context.compiler().and_then(|_| {
            let asked = bound.asked.get_or_init(|| AskedPredicate::new(bound)).clone()?;
            Some(Arc::new(Compiled { asked, figures: Figures::new(run) }))
        });
        Predicate { bound: bound.clone(), run: run.clone(), compiled }
    }

    /// The predicate itself.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// The tuples for which it is true.
    ///
    /// # Errors
    /// As [`Bound::select`].
    pub fn select(&self, chunk: Chunk) -> Result<Chunk> {
        let Some(compiled) = &self.compiled else { return self.bound.select(chunk, &self.run) };
        let selected = compiled.select(&chunk)?;
        compiled.figures.count(chunk.rows(), if selected.is_some() { chunk.rows() } else { 0 });
        match selected {
            None => self.bound.select(chunk, &self.run),
            Some(positions) if positions.len() == chunk.rows() => Ok(chunk),
            Some(positions) => Ok(chunk.select(Arc::new(UInt32Array::from(positions)))),
        }
    }
}

impl Compiled {
    /// The positions of the tuples for which the predicate is true; none where the vectorised tier
    /// is to say.
    fn select(&self, chunk: &Chunk) -> Result<Option<Vec<u32>>> {
        let AskedPredicate { code, origins, variants } = &*self.asked;
        let run = self.figures.run();
        let Some(compiler) = run.context.compiler().filter(|_| !reads_dictionary(origins, chunk))
        else {
            return Ok(None);
        };
        let ask = |inputs: &[InputCode]| {
            Some(compiler.select(SelectCode { inputs: inputs.to_vec(), ..code.clone() }))
        };
        let found = variants.find((origins, &code.inputs), (chunk, chunk.rows()), run, ask)?;
        let Some((promise, inputs)) = found else { return Ok(None) };
        let Some(code) = promise.get(0)? else { return Ok(None) };
        // SAFETY: the inputs are those of the code, in its order, and of the chunk.
        Ok(unsafe { positions_of(code, &inputs, chunk) })
    }
}

/// The positions of the tuples of a chunk, of those that count, for which a predicate is true; none
/// where the vectorised tier is to say.
///
/// # Safety
/// The inputs are those of the code, in its order, and were read of the chunk.
pub unsafe fn positions_of(code: &dyn Select, inputs: &Inputs, chunk: &Chunk) -> Option<Vec<u32>> {
    let positions =
        chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
    let mut found: Vec<u32> = Vec::with_capacity(chunk.rows());
    // SAFETY: the inputs are the code's, with a value for each tuple that the chunk stores, and
    // validity of their own or for as many as a chunk can store; the positions are of those tuples.
    // There is room for all of them in `found`, of which as many are written as the code says.
    unsafe {
        let len = code.run(inputs.raw(), positions, chunk.rows(), found.as_mut_ptr())?;
        found.set_len(len);
    }
    Some(found)
}
