//! Expressions of a map in one run, in whichever tier.

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use tessera_codegen::{Compute, ComputeCode, InputCode, Machine, Op, SIZE_MAX};
use tessera_context::Run;
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column};

use super::Bound;
use super::code::{Coder, Origin};
use super::compiled::{Figures, Variants, reads_dictionary};

/// What was asked of a compiler for an expression. All runs share it: a nested plan has many.
#[derive(Debug)]
pub(super) struct AskedComputation {
    code: ComputeCode,
    origins: Vec<Origin>,
    variants: Variants<dyn Compute>,
}

/// An expression in one run.
#[derive(Debug)]
pub struct Computation {
    bound: Bound,
    run: Run,
    compiled: Option<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    asked: Arc<AskedComputation>,
    figures: Figures,
}

impl AskedComputation {
    /// None where an expression has no code, or computes nothing.
    fn new(bound: &Bound) -> Option<AskedComputation> {
        // Nothing is shared with other expressions.
        let mut coder = Coder::new(usize::MAX).with_texts(true);
        let value = coder.value(bound, true)?;
        let computes =
            value.size() > 1 && value.size() <= SIZE_MAX && !matches!(value.op, Op::Input(_));
        let are_fields = coder.origins.iter().all(|origin| matches!(origin, Origin::Field(_)));
        (computes && are_fields && !coder.origins.is_empty()).then(|| AskedComputation {
            code: ComputeCode { inputs: coder.inputs, value },
            origins: coder.origins,
            variants: Variants::default(),
        })
    }
}

impl Computation {
    /// An expression as a run has it.
    pub fn start(bound: &Bound, run: &Run) -> Computation {
        let compiled = run.context.compiler().and_then(|_| {
            let asked = || AskedComputation::new(bound).map(Arc::new);
            let asked = bound.computation.get_or_init(asked).clone()?;
            Some(Compiled { asked, figures: Figures::new(run) })
        });
        Computation { bound: bound.clone(), run: run.clone(), compiled }
    }

    /// Its value for each tuple of a chunk, all of which count.
    ///
    /// # Errors
    /// As [`Bound::evaluate`], and those of compiling.
    pub fn evaluate(&self, chunk: &Chunk) -> Result<Column> {
        if let Some(compiled) = self.compiled.as_ref().filter(|_| chunk.selection().is_none()) {
            let found = compiled.evaluate(&self.bound, chunk)?;
            compiled.figures.count(chunk.rows(), if found.is_some() { chunk.rows() } else { 0 });
            if let Some(found) = found {
                return Ok(Column::Plain(found));
            }
        }
        self.bound.evaluate(chunk, &self.run)
    }
}

impl Compiled {
    /// The values; none where the vectorised tier is to say.
    fn evaluate(&self, bound: &Bound, chunk: &Chunk) -> Result<Option<ArrayRef>> {
        let AskedComputation { code, origins, variants } = &*self.asked;
        let (run, rows) = (self.figures.run(), chunk.rows());
        let Some(compiler) = run.context.compiler().filter(|_| !reads_dictionary(origins, chunk))
        else {
            return Ok(None);
        };
        let ask = |inputs: &[InputCode]| {
            compiler.compute(ComputeCode { inputs: inputs.to_vec(), ..code.clone() })
        };
        let Some((promise, inputs)) =
            variants.find((origins, &code.inputs), (chunk, rows), run, ask)?
        else {
            return Ok(None);
        };
        let Some(compiled) = promise.get(0)? else { return Ok(None) };
        let mut values = MutableBuffer::new(rows * code.value.machine.bytes());
        let mut valid: Vec<u8> = Vec::with_capacity(rows);
        // SAFETY: the inputs are those of the code, in its order, with a value for each tuple that
        // the chunk stores, and validity of their own or for as many as a chunk can store. There is
        // room for as many values and bytes, of which all are written, bytes where the value may be
        // NULL; buffers begin at multiples of 64.
        unsafe {
            if !compiled.run(inputs.raw(), rows, values.as_mut_ptr(), valid.as_mut_ptr()) {
                return Ok(None);
            }
            values.set_len(rows * code.value.machine.bytes());
            valid.set_len(if code.value.nullable { rows } else { 0 });
        }
        let is_set = |bytes: &[u8]| BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0);
        let nulls = code.value.nullable.then(|| NullBuffer::new(is_set(&valid)));
        let values = match code.value.machine {
            Machine::Boolean => is_set(&values).into_inner(),
            _ => values.into(),
        };
        let data = ArrayData::builder(bound.atom().0.arrow()).len(rows).add_buffer(values);
        let data = data.nulls(nulls.filter(|nulls| nulls.null_count() > 0)).build();
        Ok(Some(make_array(data.map_err(Error::from)?)))
    }
}
