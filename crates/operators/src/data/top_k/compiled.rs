//! Which tuples are not behind a threshold, in compiled code: of first keys of fixed width.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef};

use tessera_codegen::{
    Comparison, InputCode, InputPlace, Machine, Op, Select, SelectCode, ValueCode,
};
use tessera_context::Run;
use tessera_functions::{Figures, Origin, Variants, positions_of};
use tessera_plan::SortKey;
use tessera_types::{Field, Result};
use tessera_vector::Chunk;

/// What was asked of a compiler for a node. All runs share it: a nested plan has many.
pub(super) type AskedThreshold = OnceLock<Option<Arc<Asked>>>;

#[derive(Debug)]
pub(super) struct Asked {
    key: InputCode,
    origin: Origin,
    predicate: ValueCode,
    variants: Variants<dyn Select>,
}

/// Compares with a threshold, in one run.
#[derive(Debug)]
pub(super) struct CompiledThreshold {
    asked: Arc<Asked>,
    figures: Figures,
}

impl Asked {
    /// For a key that is this field of the tuples; none where it has no code.
    fn new(key: &SortKey, number: usize, field: &Field) -> Option<Asked> {
        let machine = field.atom().and_then(Machine::of)?;
        let input = |number, nullable| ValueCode { op: Op::Input(number), machine, nullable };
        let truth = |op| ValueCode { op, machine: Machine::Boolean, nullable: field.nullable };
        let comparison = if key.descending { Comparison::GtEq } else { Comparison::LtEq };
        let operands = Box::new([input(0, field.nullable), input(1, false)]);
        let mut predicate = truth(Op::Compare(comparison, operands));
        if key.nulls_first && field.nullable {
            let is_null = truth(Op::IsNull(Box::new(input(0, true))));
            predicate = truth(Op::Or(vec![is_null, predicate]));
        }
        let (key, origin) = (InputCode::column(machine, field.nullable), Origin::Field(number));
        Some(Asked { key, origin, predicate, variants: Variants::default() })
    }
}

impl CompiledThreshold {
    /// None where there is no compiler, or no code for the key.
    pub(super) fn start(
        asked: &AskedThreshold,
        (key, number, field): (&SortKey, usize, &Field),
        run: &Run,
    ) -> Option<Arc<CompiledThreshold>> {
        run.context.compiler()?;
        let asked = asked.get_or_init(|| Asked::new(key, number, field).map(Arc::new)).clone()?;
        Some(Arc::new(CompiledThreshold { asked, figures: Figures::new(run) }))
    }

    /// The positions of the tuples of a chunk, of those that count, that are not behind a value;
    /// none where the vectorised tier is to say.
    ///
    /// # Errors
    /// Those of compiling.
    pub(super) fn within(&self, chunk: &Chunk, value: &ArrayRef) -> Result<Option<Vec<u32>>> {
        let found = self.run_code(chunk, value)?;
        self.figures.count(chunk.rows(), if found.is_some() { chunk.rows() } else { 0 });
        Ok(found)
    }

    fn run_code(&self, chunk: &Chunk, value: &ArrayRef) -> Result<Option<Vec<u32>>> {
        let Asked { key, origin, predicate, variants } = &*self.asked;
        let run = self.figures.run();
        let Some(compiler) = run.context.compiler().filter(|_| value.is_valid(0)) else {
            return Ok(None);
        };
        let ask = |inputs: &[InputCode]| {
            let once =
                InputCode { place: InputPlace::Once, ..InputCode::column(key.machine, false) };
            let inputs = inputs.iter().copied().chain([once]).collect();
            Some(compiler.select(SelectCode { inputs, predicate: predicate.clone() }))
        };
        let of = (std::slice::from_ref(origin), std::slice::from_ref(key));
        let Some((promise, inputs)) = variants.find(of, (chunk, chunk.rows()), run, ask)? else {
            return Ok(None);
        };
        let Some(code) = promise.get(0)? else { return Ok(None) };
        let inputs = inputs.with_value(value.clone());
        // SAFETY: the key and the value are the inputs of the code, and the key was read of the
        // chunk.
        Ok(unsafe { positions_of(code, &inputs, chunk) })
    }
}
