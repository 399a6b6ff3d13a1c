//! Updates aggregate states with compiled code.

use std::sync::Arc;

use arrow::datatypes::DataType;
use tessera_codegen::{
    Compiler, InputCode, MAX_CODE_SIZE, MachineType, Op, Promise, StageCode, StateCode, StepCode,
    Update, UpdateCode, ValueCode,
};
use tessera_context::Run;
use tessera_functions::{CodeVariants, Coder, Origin, TierCounters, positions_from};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::area::Area;
use super::extreme::ExtremeKind;
use super::groups::{Groups, Shape};
use super::program::{Program, State};
use super::{Function, sum};

/// The compilation request of a program, shared by all runs: a nested plan has many.
#[derive(Debug)]
pub(super) struct UpdateRequest {
    code: UpdateCode,
    origins: Vec<Origin>,
    /// For each state of the program, whether the code updates it.
    states: Vec<bool>,
    variants: CodeVariants<dyn Update>,
}

impl UpdateRequest {
    /// Requests the code for some inputs.
    fn code_for(
        &self,
        compiler: &dyn Compiler,
        inputs: &[InputCode],
    ) -> Arc<dyn Promise<dyn Update>> {
        compiler.update(UpdateCode { inputs: inputs.to_vec(), ..self.code.clone() })
    }
}

/// The compiled code of a program in one run.
#[derive(Debug)]
pub struct Compiled {
    request: Arc<UpdateRequest>,
    figures: TierCounters,
}

impl Compiled {
    /// Requests code for a program over tuples of this many fields; `None` without a compiler, or
    /// if no state is compiled.
    pub fn start(
        program: &Program,
        fields: usize,
        grouped: bool,
        run: &Run,
    ) -> Option<Arc<Compiled>> {
        run.context.compiler()?;
        let request = program
            .request
            .get_or_init(|| request_for(program, fields, grouped).map(Arc::new))
            .clone();
        let left = match &request {
            Some(request) => request.states.iter().filter(|covered| !**covered).count(),
            None => program.len(),
        };
        if left > 0 {
            run.counters.add("not_compiled_aggregates", left as u64);
        }
        Some(Arc::new(Compiled { request: request?, figures: TierCounters::new(run) }))
    }

    /// Returns whether the code is ready.
    pub fn is_ready(&self) -> bool {
        let Some(compiler) = self.figures.run().context.compiler() else { return false };
        let compile = |inputs: &[InputCode]| Some(self.request.code_for(&**compiler, inputs));
        self.request.variants.is_ready(&self.request.code.inputs, compile)
    }

    /// Returns whether the code updates all states and reads fields only: then tuples need not be
    /// columns.
    pub fn accepts_lazy(&self) -> bool {
        let reads_lists =
            self.figures.run().context.compiler().is_some_and(|compiler| compiler.reads_lists());
        reads_lists && self.is_all()
    }

    /// Returns whether ready code does all the work for a tuple.
    pub fn is_all(&self) -> bool {
        let UpdateRequest { states, origins, .. } = &*self.request;
        let are_fields = origins.iter().all(|origin| matches!(origin, Origin::Field(_)));
        are_fields && states.iter().all(|state| *state) && self.is_ready()
    }

    /// For each state of the program, whether the code updates it.
    pub(super) fn states(&self) -> &[bool] {
        &self.request.states
    }

    /// Updates the states of a chunk's tuples, from the first on; returns how many. Stops early if
    /// the code is not ready, or at a tuple that may raise an error, which the vectorized tier must
    /// report.
    pub(super) fn update(
        &self,
        area: &mut Area,
        chunk: &Chunk,
        groups: &Groups<'_>,
    ) -> Result<usize> {
        let done = self.run_code(area, chunk, groups)?;
        self.figures.count(groups.rows, done);
        Ok(done)
    }

    fn run_code(&self, area: &mut Area, chunk: &Chunk, groups: &Groups<'_>) -> Result<usize> {
        let Some(compiler) = self.figures.run().context.compiler() else { return Ok(0) };
        // Expressions over a whole chunk must not see tuples that are not selected.
        let is_part = |origin: &Origin| matches!(origin, Origin::Part(..));
        let chunk = match chunk.selection().is_some() && self.request.origins.iter().any(is_part) {
            true => &chunk.clone().compact()?,
            false => chunk,
        };
        let compile = |inputs: &[InputCode]| Some(self.request.code_for(&**compiler, inputs));
        let of = (&self.request.origins[..], &self.request.code.inputs[..]);
        let found =
            self.request.variants.find(of, (chunk, groups.rows), self.figures.run(), compile)?;
        let Some((promise, inputs)) = found else { return Ok(0) };
        let Some(code) = promise.get(0)? else { return Ok(0) };
        let (list, record) = match groups.shape {
            Shape::One(group) => (std::ptr::null(), group),
            Shape::Each(list) | Shape::Clustered { groups: list, .. } => (list.as_ptr(), 0),
        };
        let positions = match (chunk.selection(), list.is_null()) {
            (Some(selection), _) => selection.values().as_ptr(),
            (None, false) => positions_from(0).as_ptr(),
            (None, true) => std::ptr::null(),
        };
        let states = area.record_mut(record as usize).as_mut_ptr();
        // SAFETY: the inputs are those of the code, in its order, with a value for each tuple that
        // the chunk stores, and validity of their own or for as many as a chunk can store; the
        // positions are of those tuples. The groups were assigned in this area, whose stride is the
        // program's; the area is borrowed for as long as the call takes.
        let done = unsafe { code.run(inputs.raw(), positions, groups.rows, list, states) };
        done.ok_or_else(sum::overflow)
    }
}

/// Creates a request for the states that can be compiled.
fn request_for(program: &Program, fields: usize, grouped: bool) -> Option<UpdateRequest> {
    let mut coder = Coder::new(fields);
    let mut shared: Vec<Option<ValueCode>> = Vec::new();
    for bound in &program.shared {
        let code = coder.value(bound, true).filter(|code| uses_only(code, &shared));
        shared.push(code);
    }
    let mut size: usize = shared.iter().flatten().map(ValueCode::size).sum();
    let mut states = vec![false; program.states.len()];
    let mut stages = Vec::new();
    for (number, stage) in program.stages.iter().enumerate() {
        let filter = match &stage.filter {
            None => None,
            Some(filter) => match coder.value(filter, true).filter(|code| uses_only(code, &shared))
            {
                Some(code) => Some(code),
                None => continue,
            },
        };
        size += filter.as_ref().map_or(0, ValueCode::size);
        let mut codes = Vec::new();
        for (at, state) in
            program.states.iter().enumerate().filter(|(_, state)| state.stage == number)
        {
            let mut arg = |&arg: &usize| coder.value(&stage.args[arg], filter.is_none());
            let args = state.args.iter().map(&mut arg).collect::<Option<Vec<_>>>();
            let code = args.and_then(|args| state_code(state, args));
            size += code.iter().flat_map(|code| &code.args).map(ValueCode::size).sum::<usize>();
            if let Some(code) =
                code.filter(|code| code.args.iter().all(|arg| uses_only(arg, &shared)))
            {
                states[at] = true;
                codes.push(code);
            }
        }
        if !codes.is_empty() {
            stages.push(StageCode { filter, states: codes });
        }
    }
    // A shared value without code has no readers.
    let nothing = || ValueCode { op: Op::Null, machine: MachineType::Boolean, nullable: true };
    let shared = shared.into_iter().map(|code| code.unwrap_or_else(nothing)).collect();
    let update =
        UpdateCode { inputs: coder.inputs, shared, stages, stride: program.stride(), grouped };
    let worth = states.contains(&true) && size <= MAX_CODE_SIZE;
    worth.then(|| UpdateRequest {
        code: update,
        origins: coder.origins,
        states,
        variants: CodeVariants::default(),
    })
}

/// Returns whether all shared values that the code reads are compiled.
fn uses_only(code: &ValueCode, shared: &[Option<ValueCode>]) -> bool {
    let own =
        !matches!(code.op, Op::Shared(number) if shared.get(number).is_none_or(Option::is_none));
    let mut below = true;
    code.each_operand(&mut |operand| below &= uses_only(operand, shared));
    own && below
}

fn state_code(state: &State, args: Vec<ValueCode>) -> Option<StateCode> {
    let step = match &state.function {
        Function::Count { merged: false } => StepCode::Count,
        Function::Sum(_) if args.len() != 1 => return None,
        Function::Sum(DataType::Float32 | DataType::Float64) => StepCode::FloatSum,
        Function::Sum(data_type) => {
            MachineType::from_arrow(data_type).map(|_| StepCode::ExactSum)?
        }
        Function::Extreme(kind, data_type) => {
            let is_number = matches!(
                MachineType::from_arrow(data_type),
                Some(MachineType::Integer { .. } | MachineType::Float32 | MachineType::Float64)
            );
            match kind {
                ExtremeKind::Min if is_number => StepCode::Min,
                ExtremeKind::Max if is_number => StepCode::Max,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(StateCode { offset: state.offset, step, args })
}
