//! Computed expressions of a map in one run, in either tier.

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use tessera_codegen::{Compute, ComputeCode, InputCode, MAX_CODE_SIZE, MachineType, Op};
use tessera_context::Run;
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column};

use super::BoundExpr;
use super::code::{Coder, Origin};
use super::compiled::{CodeVariants, TierCounters, reads_dictionary};

/// The code of an expression, shared by all runs because a nested plan has many.
#[derive(Debug)]
pub(super) struct ComputationCode {
    code: ComputeCode,
    origins: Vec<Origin>,
    variants: CodeVariants<dyn Compute>,
}

/// An expression in one run.
#[derive(Debug)]
pub struct Computation {
    bound: BoundExpr,
    run: Run,
    compiled: Option<CompiledComputation>,
}

#[derive(Debug)]
struct CompiledComputation {
    code: Arc<ComputationCode>,
    counters: TierCounters,
}

impl ComputationCode {
    /// Returns `None` if the expression cannot be compiled or computes nothing.
    fn new(bound: &BoundExpr) -> Option<ComputationCode> {
        // A single expression has no shared subexpressions.
        let mut coder = Coder::new(usize::MAX).with_texts(true);
        let value = coder.value(bound, true)?;
        let computes =
            value.size() > 1 && value.size() <= MAX_CODE_SIZE && !matches!(value.op, Op::Input(_));
        let are_fields = coder.origins.iter().all(|origin| matches!(origin, Origin::Field(_)));
        (computes && are_fields && !coder.origins.is_empty()).then(|| ComputationCode {
            code: ComputeCode { inputs: coder.inputs, value },
            origins: coder.origins,
            variants: CodeVariants::default(),
        })
    }
}

impl Computation {
    /// Prepares the expression for a run.
    pub fn start(bound: &BoundExpr, run: &Run) -> Computation {
        let compiled = run.context.compiler().and_then(|_| {
            let create = || ComputationCode::new(bound).map(Arc::new);
            let code = bound.computation_code.get_or_init(create).clone()?;
            Some(CompiledComputation { code, counters: TierCounters::new(run) })
        });
        Computation { bound: bound.clone(), run: run.clone(), compiled }
    }

    /// Computes the value for each tuple of a chunk.
    ///
    /// # Errors
    /// As [`BoundExpr::evaluate`], or compilation fails.
    pub fn evaluate(&self, chunk: &Chunk) -> Result<Column> {
        if let Some(compiled) = self.compiled.as_ref().filter(|_| chunk.selection().is_none()) {
            let found = compiled.evaluate(&self.bound, chunk)?;
            compiled.counters.count(chunk.rows(), if found.is_some() { chunk.rows() } else { 0 });
            if let Some(found) = found {
                return Ok(Column::Plain(found));
            }
        }
        self.bound.evaluate(chunk, &self.run)
    }
}

impl CompiledComputation {
    /// Computes the values; `None` if the vectorized tier has to evaluate the expression.
    fn evaluate(&self, bound: &BoundExpr, chunk: &Chunk) -> Result<Option<ArrayRef>> {
        let ComputationCode { code, origins, variants } = &*self.code;
        let (run, rows) = (self.counters.run(), chunk.rows());
        let Some(compiler) = run.context.compiler().filter(|_| !reads_dictionary(origins, chunk))
        else {
            return Ok(None);
        };
        let request = |inputs: &[InputCode]| {
            compiler.compute(ComputeCode { inputs: inputs.to_vec(), ..code.clone() })
        };
        let Some((promise, inputs)) =
            variants.find((origins, &code.inputs), (chunk, rows), run, request)?
        else {
            return Ok(None);
        };
        let Some(compiled) = promise.get(0)? else { return Ok(None) };
        let mut values = MutableBuffer::new(rows * code.value.machine.bytes());
        let mut valid: Vec<u8> = Vec::with_capacity(rows);
        // SAFETY: the inputs match the code and have a value for each stored tuple; their validity
        // is their own or covers the largest chunk. `values` and `valid` have capacity for `rows`
        // results, all of which are written (`valid` only if the result may be NULL); buffers are
        // aligned to 64 bytes.
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
            MachineType::Boolean => is_set(&values).into_inner(),
            _ => values.into(),
        };
        let data = ArrayData::builder(bound.atom().0.arrow()).len(rows).add_buffer(values);
        let data = data.nulls(nulls.filter(|nulls| nulls.null_count() > 0)).build();
        Ok(Some(make_array(data.map_err(Error::from)?)))
    }
}
