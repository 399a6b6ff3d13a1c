//! Compiled comparison of first keys of fixed width with a threshold.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef};

use tessera_codegen::{
    Comparison, InputCode, InputPlace, MachineType, Op, Select, SelectCode, ValueCode,
};
use tessera_context::Run;
use tessera_functions::{CodeVariants, Origin, TierCounters, positions_of};
use tessera_plan::SortKey;
use tessera_types::{Field, Result};
use tessera_vector::Chunk;

/// The compilation request of a node, shared by all runs: a nested plan has many.
pub(super) type ThresholdRequestCell = OnceLock<Option<Arc<ThresholdRequest>>>;

#[derive(Debug)]
pub(super) struct ThresholdRequest {
    key: InputCode,
    origin: Origin,
    predicate: ValueCode,
    variants: CodeVariants<dyn Select>,
}

/// Compares keys with a threshold, in one run.
#[derive(Debug)]
pub(super) struct CompiledThreshold {
    request: Arc<ThresholdRequest>,
    figures: TierCounters,
}

impl ThresholdRequest {
    /// Creates a request for a key that is this field; `None` if its type is not compiled.
    fn new(key: &SortKey, number: usize, field: &Field) -> Option<ThresholdRequest> {
        let machine = field.atom().and_then(MachineType::from_atom)?;
        let input = |number, nullable| ValueCode { op: Op::Input(number), machine, nullable };
        let truth = |op| ValueCode { op, machine: MachineType::Boolean, nullable: field.nullable };
        let comparison = if key.descending { Comparison::GtEq } else { Comparison::LtEq };
        let operands = Box::new([input(0, field.nullable), input(1, false)]);
        let mut predicate = truth(Op::Compare(comparison, operands));
        if key.nulls_first && field.nullable {
            let is_null = truth(Op::IsNull(Box::new(input(0, true))));
            predicate = truth(Op::Or(vec![is_null, predicate]));
        }
        let (key, origin) = (InputCode::column(machine, field.nullable), Origin::Field(number));
        Some(ThresholdRequest { key, origin, predicate, variants: CodeVariants::default() })
    }
}

impl CompiledThreshold {
    /// Returns `None` without a compiler, or if the key is not compiled.
    pub(super) fn start(
        request: &ThresholdRequestCell,
        (key, number, field): (&SortKey, usize, &Field),
        run: &Run,
    ) -> Option<Arc<CompiledThreshold>> {
        run.context.compiler()?;
        let request = request
            .get_or_init(|| ThresholdRequest::new(key, number, field).map(Arc::new))
            .clone()?;
        Some(Arc::new(CompiledThreshold { request, figures: TierCounters::new(run) }))
    }

    /// Returns the positions of the selected tuples of a chunk that are not after a value, or
    /// `None` if the vectorized tier must compare them.
    ///
    /// # Errors
    /// Those of compiling.
    pub(super) fn within(&self, chunk: &Chunk, value: &ArrayRef) -> Result<Option<Vec<u32>>> {
        let found = self.run_code(chunk, value)?;
        self.figures.count(chunk.rows(), if found.is_some() { chunk.rows() } else { 0 });
        Ok(found)
    }

    fn run_code(&self, chunk: &Chunk, value: &ArrayRef) -> Result<Option<Vec<u32>>> {
        let ThresholdRequest { key, origin, predicate, variants } = &*self.request;
        let run = self.figures.run();
        let Some(compiler) = run.context.compiler().filter(|_| value.is_valid(0)) else {
            return Ok(None);
        };
        let compile = |inputs: &[InputCode]| {
            let once =
                InputCode { place: InputPlace::Constant, ..InputCode::column(key.machine, false) };
            let inputs = inputs.iter().copied().chain([once]).collect();
            Some(compiler.select(SelectCode { inputs, predicate: predicate.clone() }))
        };
        let of = (std::slice::from_ref(origin), std::slice::from_ref(key));
        let Some((promise, inputs)) = variants.find(of, (chunk, chunk.rows()), run, compile)?
        else {
            return Ok(None);
        };
        let Some(code) = promise.get(0)? else { return Ok(None) };
        let inputs = inputs.with_value(value.clone());
        // SAFETY: the key and the value are the inputs of the code, and the key was read of the
        // chunk.
        Ok(unsafe { positions_of(code, &inputs, chunk) })
    }
}
