//! Appends tuples to rows with compiled code.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

use tessera_codegen::{FieldCode, InputCode, MachineType, Promise, RawInput, WriteCode, WriteRows};
use tessera_context::Run;
use tessera_functions::{CodeVariants, Inputs, Origin, TierCounters, positions_from};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::layout::{HASH_OFFSET, Kind, RowLayout};
use super::memory::Pages;
use super::range::RowRange;
use super::resolved_columns::ResolvedColumns;

/// The most fields of a row: one bit each of two words.
const FIELDS_MAX: usize = 128;

/// The compilation request for the rows of a node, shared by all runs: a nested plan has many.
pub type WriteRequestCell = OnceLock<Option<Arc<WriteRequest>>>;

#[derive(Debug)]
pub struct WriteRequest {
    /// For rows with a hash, the last field is the hash, read from a column.
    code: WriteCode,
    has_hash: bool,
    origins: Vec<Origin>,
    /// Fields that the code does not write.
    others: Vec<usize>,
    /// Whether the code writes all words of a row.
    is_whole: bool,
    variants: CodeVariants<dyn WriteRows>,
}

/// Writes tuples as rows, in one run.
#[derive(Debug, Clone)]
pub struct RowWriter(Option<Arc<Compiled>>);

#[derive(Debug)]
struct Compiled {
    request: Arc<WriteRequest>,
    figures: TierCounters,
}

/// The tuples of a chunk, to append to rows.
#[derive(Debug)]
pub struct Tuples<'a> {
    pub(super) chunk: &'a Chunk,
    incoming: OnceCell<ResolvedColumns>,
    prepared: Option<PreparedCode<'a>>,
    /// Columns of the fields that the code does not write.
    others: OnceCell<ResolvedColumns>,
}

/// Code for a chunk, and its inputs.
#[derive(Debug)]
struct PreparedCode<'a> {
    request: &'a WriteRequest,
    promise: Arc<dyn Promise<dyn WriteRows>>,
    inputs: Inputs,
}

impl WriteRequest {
    /// Creates a request for rows of a layout, with or without hashes; `None` if no field is
    /// compiled.
    fn new(layout: &RowLayout, has_hash: bool) -> Option<WriteRequest> {
        let mut code = WriteCode {
            inputs: Vec::new(),
            fields: Vec::new(),
            validity: None,
            stride: layout.stride_bytes(),
        };
        let (mut origins, mut others) = (Vec::new(), Vec::new());
        for (number, (place, field)) in
            layout.fields.iter().zip(layout.tuple().fields()).enumerate()
        {
            let machine = match &place.kind {
                Kind::Value(physical, _) if physical.is_coded() => {
                    field.atom().and_then(MachineType::from_atom)
                }
                _ => None,
            };
            let Some(machine) = machine else {
                others.push(number);
                continue;
            };
            code.inputs.push(InputCode::column(machine, field.nullable));
            code.fields.push(FieldCode { number, offset: place.offset });
            origins.push(Origin::Field(number));
        }
        let count = layout.fields.len();
        code.validity = layout.validity_offset().map(|first| (first, count.div_ceil(8)));
        let is_coded = !origins.is_empty() && count <= FIELDS_MAX && !layout.has_packed();
        let has_hash = has_hash && layout.is_hashed();
        let is_whole = is_whole(&code, has_hash);
        is_coded.then(|| WriteRequest {
            code,
            has_hash,
            origins,
            others,
            is_whole,
            variants: CodeVariants::default(),
        })
    }

    /// Returns the code to request for tuples with these inputs.
    fn with_inputs(&self, inputs: &[InputCode]) -> WriteCode {
        let mut code = WriteCode { inputs: inputs.to_vec(), ..self.code.clone() };
        if self.has_hash {
            code.inputs
                .push(InputCode::column(MachineType::Integer { bits: 64, signed: false }, false));
            code.fields.push(FieldCode { number: 0, offset: HASH_OFFSET });
        }
        code
    }
}

/// Returns whether the code writes every word of a row, as the start or end of a field, the
/// validity bits or the hash.
fn is_whole(code: &WriteCode, has_hash: bool) -> bool {
    let hash = has_hash.then_some((HASH_OFFSET, 8));
    let fields = code.fields.iter().zip(&code.inputs);
    let places = fields.map(|(field, input)| (field.offset, input.machine.bytes()));
    let mut is_written = vec![false; code.stride / 8];
    for (first, bytes) in places.chain(code.validity).chain(hash) {
        is_written[first / 8..(first + bytes).div_ceil(8)].fill(true);
    }
    is_written.into_iter().all(|word| word)
}

impl RowWriter {
    /// Starts a writer for rows of a layout in a run; `has_hash` says whether hashes are given.
    pub fn start(
        request: &WriteRequestCell,
        layout: &RowLayout,
        has_hash: bool,
        run: &Run,
    ) -> RowWriter {
        RowWriter(run.context.compiler().and_then(|_| {
            let request = request
                .get_or_init(|| WriteRequest::new(layout, has_hash).map(Arc::new))
                .clone()?;
            Some(Arc::new(Compiled { request, figures: TierCounters::new(run) }))
        }))
    }

    /// Creates a writer that uses the vectorized tier only.
    pub fn vectorized() -> RowWriter {
        RowWriter(None)
    }

    /// Prepares the tuples of a chunk.
    ///
    /// # Errors
    /// Those of compiling.
    pub fn tuples<'a>(&'a self, chunk: &'a Chunk) -> Result<Tuples<'a>> {
        let prepared = match &self.0 {
            // Consecutive rows are copied whole.
            Some(compiled) if chunk.lazy_as::<RowRange>().is_none_or(|range| !range.is_whole()) => {
                let prepared = compiled.find(chunk)?;
                compiled
                    .figures
                    .count(chunk.rows(), if prepared.is_some() { chunk.rows() } else { 0 });
                prepared
            }
            _ => None,
        };
        Ok(Tuples { prepared, ..Tuples::of(chunk) })
    }
}

impl Compiled {
    fn find<'a>(&'a self, chunk: &Chunk) -> Result<Option<PreparedCode<'a>>> {
        let (request, run) = (&*self.request, self.figures.run());
        let Some(compiler) = run.context.compiler() else { return Ok(None) };
        let compile = |inputs: &[InputCode]| compiler.write(request.with_inputs(inputs));
        let of = (&request.origins[..], &request.code.inputs[..]);
        let prepared = request.variants.find(of, (chunk, chunk.rows()), run, compile)?;
        Ok(prepared.map(|(promise, inputs)| PreparedCode { request, promise, inputs }))
    }
}

/// Resolves the columns of a chunk once.
fn resolved<'a>(once: &'a OnceCell<ResolvedColumns>, chunk: &Chunk) -> Result<&'a ResolvedColumns> {
    if let Some(incoming) = once.get() {
        return Ok(incoming);
    }
    let incoming = ResolvedColumns::of_chunk(chunk)?;
    Ok(once.get_or_init(|| incoming))
}

impl<'a> Tuples<'a> {
    /// Prepares the tuples of a chunk for the vectorized tier.
    pub fn of(chunk: &'a Chunk) -> Tuples<'a> {
        Tuples { chunk, incoming: OnceCell::new(), prepared: None, others: OnceCell::new() }
    }

    /// Returns the tuples as columns.
    pub(super) fn incoming(&self) -> Result<&ResolvedColumns> {
        resolved(&self.incoming, self.chunk)
    }

    /// Returns columns of the fields that the code does not write.
    pub(super) fn others(&self, others: &[usize]) -> Result<&ResolvedColumns> {
        match self.others.get() {
            Some(columns) => Ok(columns),
            None => resolved(&self.others, &self.chunk.project(others)),
        }
    }

    /// Writes the tuples at the positions of `selection`, or all, to `len` allocated rows from
    /// `start`, and sets `has_nulls` for fields with NULLs. Hashes are by position. Returns the
    /// fields that remain to be written, or `None` if nothing was written.
    ///
    /// # Errors
    /// Those of compiling.
    pub(super) fn write(
        &self,
        (pages, start, len): (&mut Pages, usize, usize),
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
        has_nulls: &mut [bool],
    ) -> Result<Option<&[usize]>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let Some(code) = prepared.promise.get(0)? else { return Ok(None) };
        let mut inputs = prepared.inputs.raw().to_vec();
        if prepared.request.has_hash {
            let Some(hashes) = hashes.filter(|hashes| hashes.len() >= self.chunk.rows_stored())
            else {
                return Ok(None);
            };
            inputs.push(RawInput::column(hashes.as_ptr().cast(), std::ptr::null(), (0, 0)));
        }
        if !prepared.request.is_whole {
            pages.allocate(start + len);
        }
        let mut nulls = [0; FIELDS_MAX / 64];
        let mut done = 0;
        while done < len {
            let (place, rows) = pages.place_mut(start + done, len - done);
            let positions = match selection {
                Some(selection) => selection[done..].as_ptr(),
                None if done == 0 => std::ptr::null(),
                None => positions_from(done).as_ptr(),
            };
            // SAFETY: the inputs are those of the code, in its order, with a value for each tuple
            // that the chunk stores, and validity of their own or for as many as a chunk can store;
            // the caller has checked that the positions are of those tuples, of which there are
            // `len`. `place` has memory for `rows` rows of the layout's stride, and there are as
            // many bits of NULLs as fields.
            if !unsafe { code.run(&inputs, positions, rows, place, nulls.as_mut_ptr()) } {
                return Ok(None);
            }
            done += rows;
        }
        // SAFETY: the code has written all words of these rows, or they were allocated above; the
        // rows before them were initialized already.
        unsafe { pages.assume_written(start + len) };
        for (field, has_nulls) in has_nulls.iter_mut().enumerate() {
            *has_nulls |= nulls[field / 64] >> (field % 64) & 1 == 1;
        }
        Ok(Some(&prepared.request.others))
    }
}
