//! Tuples appended to rows by compiled code: which fields have some, and the chunks it is given.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

use tessera_codegen::{FieldCode, InputCode, Machine, Promise, RawInput, WriteCode, WriteRows};
use tessera_context::Run;
use tessera_functions::{Figures, Inputs, Origin, Variants, positions_from};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::incoming::Incoming;
use super::layout::{HASH_OFFSET, Kind, RowLayout};
use super::memory::Pages;
use super::range::RowRange;

/// Fields of a row, at most: bits of two words.
const FIELDS_MAX: usize = 128;

/// What was asked of a compiler for the rows of a node. All runs share it: a nested plan has many.
pub type AskedWrite = OnceLock<Option<Arc<Asked>>>;

#[derive(Debug)]
pub struct Asked {
    /// Of rows with a hash its last field is that, which lies in a column.
    code: WriteCode,
    has_hash: bool,
    origins: Vec<Origin>,
    /// Fields that code does not write.
    others: Vec<usize>,
    /// Whether it writes all words of a row.
    is_whole: bool,
    variants: Variants<dyn WriteRows>,
}

/// Writes tuples as rows, in one run.
#[derive(Debug, Clone)]
pub struct RowWriter(Option<Arc<Compiled>>);

#[derive(Debug)]
struct Compiled {
    asked: Arc<Asked>,
    figures: Figures,
}

/// The tuples of a chunk, to be appended to rows.
#[derive(Debug)]
pub struct Tuples<'a> {
    pub(super) chunk: &'a Chunk,
    incoming: OnceCell<Incoming>,
    found: Option<Found<'a>>,
    /// The fields that code does not write.
    others: OnceCell<Incoming>,
}

/// Code for a chunk, and what it reads.
#[derive(Debug)]
struct Found<'a> {
    asked: &'a Asked,
    promise: Arc<dyn Promise<dyn WriteRows>>,
    inputs: Inputs,
}

impl Asked {
    /// For tuples as rows of a layout, with hashes or not; none where no field has code.
    fn new(layout: &RowLayout, has_hash: bool) -> Option<Asked> {
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
                    field.atom().and_then(Machine::of)
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
        is_coded.then(|| Asked {
            code,
            has_hash,
            origins,
            others,
            is_whole,
            variants: Variants::default(),
        })
    }

    /// What is asked for tuples with inputs in these places.
    fn with_inputs(&self, inputs: &[InputCode]) -> WriteCode {
        let mut code = WriteCode { inputs: inputs.to_vec(), ..self.code.clone() };
        if self.has_hash {
            code.inputs
                .push(InputCode::column(Machine::Integer { bits: 64, signed: false }, false));
            code.fields.push(FieldCode { number: 0, offset: HASH_OFFSET });
        }
        code
    }
}

/// Whether code writes every word of a row: those that a field of it, its validity or its hash
/// begins or ends in.
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
    /// For rows of a layout, as a run has it; `has_hash` where hashes are given.
    pub fn start(asked: &AskedWrite, layout: &RowLayout, has_hash: bool, run: &Run) -> RowWriter {
        RowWriter(run.context.compiler().and_then(|_| {
            let asked = asked.get_or_init(|| Asked::new(layout, has_hash).map(Arc::new)).clone()?;
            Some(Arc::new(Compiled { asked, figures: Figures::new(run) }))
        }))
    }

    /// For rows that are written in the vectorised tier.
    pub fn vectorized() -> RowWriter {
        RowWriter(None)
    }

    /// The tuples of a chunk.
    ///
    /// # Errors
    /// Those of compiling.
    pub fn tuples<'a>(&'a self, chunk: &'a Chunk) -> Result<Tuples<'a>> {
        let found = match &self.0 {
            // Rows that lie one behind the other are copied whole.
            Some(compiled)
                if chunk.elsewhere::<RowRange>().is_none_or(|range| !range.is_whole()) =>
            {
                let found = compiled.find(chunk)?;
                compiled
                    .figures
                    .count(chunk.rows(), if found.is_some() { chunk.rows() } else { 0 });
                found
            }
            _ => None,
        };
        Ok(Tuples { found, ..Tuples::of(chunk) })
    }
}

impl Compiled {
    fn find<'a>(&'a self, chunk: &Chunk) -> Result<Option<Found<'a>>> {
        let (asked, run) = (&*self.asked, self.figures.run());
        let Some(compiler) = run.context.compiler() else { return Ok(None) };
        let ask = |inputs: &[InputCode]| compiler.write(asked.with_inputs(inputs));
        let of = (&asked.origins[..], &asked.code.inputs[..]);
        let found = asked.variants.find(of, (chunk, chunk.rows()), run, ask)?;
        Ok(found.map(|(promise, inputs)| Found { asked, promise, inputs }))
    }
}

/// The columns of a chunk, resolved once.
fn resolved<'a>(once: &'a OnceCell<Incoming>, chunk: &Chunk) -> Result<&'a Incoming> {
    if let Some(incoming) = once.get() {
        return Ok(incoming);
    }
    let incoming = Incoming::of_chunk(chunk)?;
    Ok(once.get_or_init(|| incoming))
}

impl<'a> Tuples<'a> {
    /// The tuples of a chunk where there is no code.
    pub fn of(chunk: &'a Chunk) -> Tuples<'a> {
        Tuples { chunk, incoming: OnceCell::new(), found: None, others: OnceCell::new() }
    }

    /// Them as columns.
    pub(super) fn incoming(&self) -> Result<&Incoming> {
        resolved(&self.incoming, self.chunk)
    }

    /// Columns of those fields alone that code does not write.
    pub(super) fn others(&self, others: &[usize]) -> Result<&Incoming> {
        match self.others.get() {
            Some(columns) => Ok(columns),
            None => resolved(&self.others, &self.chunk.project(others)),
        }
    }

    /// Writes those at the positions of `selection`, or all, to `len` rows from `start`, for which
    /// there is memory, and what of their fields is NULL to `has_nulls`. Gives the fields that are
    /// left; none where that was not done. Hashes are by position.
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
        let Some(found) = &self.found else { return Ok(None) };
        let Some(code) = found.promise.get(0)? else { return Ok(None) };
        let mut inputs = found.inputs.raw().to_vec();
        if found.asked.has_hash {
            let Some(hashes) = hashes.filter(|hashes| hashes.len() >= self.chunk.rows_stored())
            else {
                return Ok(None);
            };
            inputs.push(RawInput::column(hashes.as_ptr().cast(), std::ptr::null(), (0, 0)));
        }
        if !found.asked.is_whole {
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
        // SAFETY: code has written all words of these rows, or they were allocated above; those
        // before them were there.
        unsafe { pages.assume_written(start + len) };
        for (field, has_nulls) in has_nulls.iter_mut().enumerate() {
            *has_nulls |= nulls[field / 64] >> (field % 64) & 1 == 1;
        }
        Ok(Some(&found.asked.others))
    }
}
