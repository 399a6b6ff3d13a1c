//! Support for the compiled tier: inputs of compiled code, and compiled predicates.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, AsArray, StringViewArray, UInt32Array, downcast_primitive_array,
};
use arrow::datatypes::DataType;
use tessera_codegen::{InputCode, MAX_CODE_SIZE, Promise, RawInput, Select, SelectCode};
use tessera_context::{Run, lock};
use tessera_types::Result;
use tessera_vector::{CHUNK_ROWS_MAX, Chunk, Column};

use super::BoundExpr;
use super::code::{Coder, Origin};
use super::evaluate::is_raised;

/// Validity bitmap of a chunk without NULLs, at any bit offset.
static ALL_VALID: [u8; CHUNK_ROWS_MAX / 8 + 1] = [u8::MAX; CHUNK_ROWS_MAX / 8 + 1];

/// The positions of a chunk in which every tuple is selected.
static ALL_POSITIONS: [u32; CHUNK_ROWS_MAX] = {
    let mut positions = [0; CHUNK_ROWS_MAX];
    let mut at = 0;
    while at < CHUNK_ROWS_MAX {
        positions[at] = at as u32;
        at += 1;
    }
    positions
};

/// The positions from `first` to the end of the largest chunk.
pub fn positions_from(first: usize) -> &'static [u32] {
    ALL_POSITIONS.get(first..).unwrap_or_default()
}

/// The maximum number of specialized codes per node (by nullability and location of inputs). Beyond
/// it, columns that may contain NULLs share one code.
const VARIANTS_MAX: usize = 8;

/// The inputs that compiled code reads from a chunk.
#[derive(Debug)]
pub struct Inputs {
    raw: Vec<RawInput>,
    /// Addresses of the data buffers of string views.
    _buffers: Vec<Box<[*const u8]>>,
    /// Keeps the memory alive that `raw` points to.
    _arrays: Vec<ArrayRef>,
}

impl Inputs {
    /// Reads the inputs of all stored tuples. Returns `None` if the vectorized tier has to process
    /// the chunk: it is too long for compiled code, or evaluating an input raised an error.
    ///
    /// # Errors
    /// Errors that are not raised by values.
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

    /// Inputs of a lazy chunk and their locations; `None` if some input must be a column.
    fn of_lazy_tuples(
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
            let (place, raw) = chunk.lazy_tuples()?.input(*field, &mut arrays)?;
            found.push(InputCode { place, ..*code });
            all.push(raw);
        }
        Some((found, Inputs { raw: all, _buffers: Vec::new(), _arrays: arrays }))
    }

    /// Whether inputs that the code assumes to be free of NULLs are so.
    fn match_codes(&self, codes: &[InputCode], declared: &[InputCode]) -> bool {
        let matches = |((code, declared), raw): ((&InputCode, &InputCode), &RawInput)| {
            code.nullable || !declared.nullable || is_all_valid(raw)
        };
        codes.iter().zip(declared).zip(&self.raw).all(matches)
    }

    /// Adds an input with one non-NULL value for all tuples.
    pub fn with_value(mut self, value: ArrayRef) -> Inputs {
        self.raw.push(raw(&value));
        self._arrays.push(value);
        self
    }

    /// The addresses of the inputs.
    pub fn raw(&self) -> &[RawInput] {
        &self.raw
    }
}

/// Code promised by a compiler, one entry per combination of input locations and nullability.
#[derive(Debug)]
pub struct CodeVariants<T: ?Sized>(Mutex<Vec<(Vec<InputCode>, CodePromise<T>)>>);

type CodePromise<T> = Option<Arc<dyn Promise<T>>>;

impl<T: ?Sized> Default for CodeVariants<T> {
    fn default() -> Self {
        CodeVariants(Mutex::default())
    }
}

impl<T: ?Sized> CodeVariants<T> {
    /// Returns the promise of code for these inputs; requests it if it is new.
    pub fn promise(
        &self,
        inputs: &[InputCode],
        request: impl FnOnce(&[InputCode]) -> CodePromise<T>,
    ) -> CodePromise<T> {
        let mut variants = lock(&self.0);
        if let Some((_, promise)) = variants.iter().find(|(others, _)| others == inputs) {
            return promise.clone();
        }
        let promise = request(inputs);
        variants.push((inputs.to_vec(), promise.clone()));
        promise
    }

    /// Whether some code is ready. Before the first chunk, requests code for inputs without NULLs.
    pub fn is_ready(
        &self,
        inputs: &[InputCode],
        request: impl FnOnce(&[InputCode]) -> CodePromise<T>,
    ) -> bool {
        let mut variants = lock(&self.0);
        if variants.is_empty() {
            let usual: Vec<_> =
                inputs.iter().map(|input| InputCode { nullable: false, ..*input }).collect();
            let promise = request(&usual);
            variants.push((usual, promise));
        }
        let is_there = |promise: &CodePromise<T>| {
            promise.as_ref().is_some_and(|promise| matches!(promise.get(0), Ok(Some(_))))
        };
        variants.iter().any(|(_, promise)| is_there(promise))
    }

    /// Specializes the input codes for a chunk: inputs without NULLs need no validity. Beyond
    /// [`VARIANTS_MAX`] variants, returns `codes` unchanged.
    fn specialize(&self, codes: &[InputCode], has_nulls: impl Fn(usize) -> bool) -> Vec<InputCode> {
        let narrow = |(at, code): (usize, &InputCode)| InputCode {
            nullable: code.nullable && has_nulls(at),
            ..*code
        };
        let specialized: Vec<_> = codes.iter().enumerate().map(narrow).collect();
        let variants = lock(&self.0);
        match variants.len() < VARIANTS_MAX
            || variants.iter().any(|(others, _)| *others == specialized)
        {
            true => specialized,
            false => codes.to_vec(),
        }
    }

    /// Finds ready code and its inputs for a chunk, first for lazy tuples, then for columns.
    /// Returns `None` if the vectorized tier has to process the chunk; `rows` tuples are selected.
    ///
    /// # Errors
    /// As [`Inputs::read`], or compilation fails.
    pub fn find(
        &self,
        (origins, codes): (&[Origin], &[InputCode]),
        (chunk, rows): (&Chunk, usize),
        run: &Run,
        request: impl Fn(&[InputCode]) -> CodePromise<T>,
    ) -> Result<Option<(Arc<dyn Promise<T>>, Inputs)>> {
        let reads_lists =
            run.context.compiler().as_ref().is_some_and(|compiler| compiler.reads_lists());
        if reads_lists
            && chunk.is_lazy()
            && let Some((codes, inputs)) = Inputs::of_lazy_tuples(origins, codes, chunk)
            && let codes = self.specialize(&codes, |at| !is_all_valid(&inputs.raw[at]))
            && let Some(promise) = self.promise(&codes, &request)
            && promise.get(rows)?.is_some()
        {
            return Ok(Some((promise, inputs)));
        }
        let specialized = self.specialize(codes, |at| match &origins[at] {
            Origin::Field(field) if !chunk.is_lazy() => chunk.stored()[*field].has_nulls(),
            _ => true,
        });
        let Some(promise) = self.promise(&specialized, &request) else { return Ok(None) };
        if promise.get(rows)?.is_none() {
            return Ok(None);
        }
        let inputs = Inputs::read(origins, chunk, run)?;
        Ok(inputs
            .filter(|inputs| inputs.match_codes(&specialized, codes))
            .map(|inputs| (promise, inputs)))
    }
}

/// Whether compiled code can read an array.
pub fn is_readable(array: &ArrayRef) -> bool {
    !raw(array).values.is_null()
}

/// Whether some string input is dictionary-encoded. The vectorized tier then evaluates an
/// expression once per dictionary entry.
pub(super) fn reads_dictionary(origins: &[Origin], chunk: &Chunk) -> bool {
    let is_of_texts = |dictionary: &ArrayRef| matches!(dictionary.data_type(), DataType::Dictionary(_, values) if **values == DataType::Utf8View);
    origins.iter().any(|origin| match origin {
        Origin::Field(field) => {
            matches!(&chunk.stored()[*field], Column::Dictionary(of) if is_of_texts(of))
        }
        Origin::Part(..) => false,
    })
}

/// The addresses of an array's values and validity, for at most [`CHUNK_ROWS_MAX`] tuples.
pub fn raw(array: &ArrayRef) -> RawInput {
    let (validity, validity_offset) = validity(array);
    let (values, values_offset) = downcast_primitive_array!(
        array => (array.values().inner().as_ptr(), 0),
        _ => match array.as_boolean_opt() {
            Some(booleans) => (booleans.values().values().as_ptr(), booleans.values().offset()),
            // Compiled code cannot read other types.
            None => (std::ptr::null(), 0),
        }
    );
    RawInput::column(values, validity, (values_offset as u64, validity_offset as u64))
}

/// Whether an input has no NULLs.
fn is_all_valid(input: &RawInput) -> bool {
    input.validity == ALL_VALID.as_ptr()
}

fn validity(array: &dyn Array) -> (*const u8, usize) {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => (nulls.buffer().as_ptr(), nulls.offset()),
        None => (ALL_VALID.as_ptr(), 0),
    }
}

/// The addresses of string views; the addresses of their data buffers are added to `buffers`.
fn views(texts: &StringViewArray, buffers: &mut Vec<Box<[*const u8]>>) -> RawInput {
    // Short strings need no data buffer, but the code always loads the address of the first one.
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

/// Counts the tuples processed by compiled code and by the vectorized tier; added to the profile
/// when dropped.
#[derive(Debug)]
pub struct TierCounters {
    run: Run,
    compiled: AtomicU64,
    vectorized: AtomicU64,
}

impl TierCounters {
    /// Creates counters for a node in a run.
    pub fn new(run: &Run) -> TierCounters {
        TierCounters {
            run: run.clone(),
            compiled: AtomicU64::new(0),
            vectorized: AtomicU64::new(0),
        }
    }

    /// Counts `rows` tuples, of which compiled code processed the first `compiled`.
    pub fn count(&self, rows: usize, compiled: usize) {
        self.compiled.fetch_add(compiled as u64, Ordering::Relaxed);
        self.vectorized.fetch_add((rows - compiled) as u64, Ordering::Relaxed);
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl Drop for TierCounters {
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

/// A predicate in one run, in either tier.
#[derive(Debug, Clone)]
pub struct Predicate {
    bound: BoundExpr,
    run: Run,
    compiled: Option<Arc<CompiledPredicate>>,
}

#[derive(Debug)]
struct CompiledPredicate {
    code: Arc<PredicateCode>,
    counters: TierCounters,
}

/// The code of a predicate, shared by all runs because a nested plan has many.
#[derive(Debug)]
pub(super) struct PredicateCode {
    code: SelectCode,
    origins: Arc<[Origin]>,
    variants: CodeVariants<dyn Select>,
}

impl PredicateCode {
    /// Returns `None` if the predicate cannot be compiled.
    fn new(bound: &BoundExpr) -> Option<Arc<PredicateCode>> {
        let (code, origins) = code_of(bound, true)?;
        Some(Arc::new(PredicateCode { code, origins, variants: CodeVariants::default() }))
    }
}

/// The code of a predicate and the origins of its inputs. `texts` allows code that reads strings.
pub(super) fn code_of(bound: &BoundExpr, texts: bool) -> Option<(SelectCode, Arc<[Origin]>)> {
    // A single expression has no shared subexpressions.
    let mut coder = Coder::new(usize::MAX).with_texts(texts);
    let predicate = coder.value(bound, true)?;
    // A part is evaluated for all tuples before the code runs, but here it must be evaluated only
    // for tuples that the other conjuncts accept.
    let reads_parts = coder.origins.iter().any(|origin| matches!(origin, Origin::Part(..)));
    if reads_parts || predicate.size() > MAX_CODE_SIZE {
        return None;
    }
    Some((SelectCode { inputs: coder.inputs, predicate }, coder.origins.into()))
}

impl Predicate {
    /// Prepares the predicate for a run.
    pub fn start(bound: &BoundExpr, run: &Run) -> Predicate {
        let compiled = run.context.compiler().and_then(|_| {
            let code = bound.predicate_code.get_or_init(|| PredicateCode::new(bound)).clone()?;
            Some(Arc::new(CompiledPredicate { code, counters: TierCounters::new(run) }))
        });
        Predicate { bound: bound.clone(), run: run.clone(), compiled }
    }

    /// The bound expression.
    pub fn bound(&self) -> &BoundExpr {
        &self.bound
    }

    /// Selects the tuples for which the predicate is true.
    ///
    /// # Errors
    /// As [`BoundExpr::select`].
    pub fn select(&self, chunk: Chunk) -> Result<Chunk> {
        let Some(compiled) = &self.compiled else { return self.bound.select(chunk, &self.run) };
        let selected = compiled.select(&chunk)?;
        compiled.counters.count(chunk.rows(), if selected.is_some() { chunk.rows() } else { 0 });
        match selected {
            None => self.bound.select(chunk, &self.run),
            Some(positions) if positions.len() == chunk.rows() => Ok(chunk),
            Some(positions) => Ok(chunk.select(Arc::new(UInt32Array::from(positions)))),
        }
    }
}

impl CompiledPredicate {
    /// The positions of the tuples for which the predicate is true; `None` if the vectorized tier
    /// has to evaluate it.
    fn select(&self, chunk: &Chunk) -> Result<Option<Vec<u32>>> {
        let PredicateCode { code, origins, variants } = &*self.code;
        let run = self.counters.run();
        let Some(compiler) = run.context.compiler().filter(|_| !reads_dictionary(origins, chunk))
        else {
            return Ok(None);
        };
        let request = |inputs: &[InputCode]| {
            Some(compiler.select(SelectCode { inputs: inputs.to_vec(), ..code.clone() }))
        };
        let found = variants.find((origins, &code.inputs), (chunk, chunk.rows()), run, request)?;
        let Some((promise, inputs)) = found else { return Ok(None) };
        let Some(code) = promise.get(0)? else { return Ok(None) };
        // SAFETY: `find` returned the inputs of this chunk for this code, in the order of the code.
        Ok(unsafe { positions_of(code, &inputs, chunk) })
    }
}

/// The positions of the selected tuples for which a predicate is true; `None` if the vectorized
/// tier has to evaluate it.
///
/// # Safety
/// The inputs are those of the code, in its order, and were read from the chunk.
pub unsafe fn positions_of(code: &dyn Select, inputs: &Inputs, chunk: &Chunk) -> Option<Vec<u32>> {
    let positions =
        chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
    let mut found: Vec<u32> = Vec::with_capacity(chunk.rows());
    // SAFETY: the inputs match the code and have a value for each stored tuple; their validity is
    // their own or covers the largest chunk; the positions refer to stored tuples. `found` has
    // capacity for all selected tuples, and the code writes as many positions as it returns.
    unsafe {
        let len = code.run(inputs.raw(), positions, chunk.rows(), found.as_mut_ptr())?;
        found.set_len(len);
    }
    Some(found)
}
