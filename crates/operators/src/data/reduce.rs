//! `reduce`: aggregates over all tuples (Modularis §2.3.4).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{self as sync, AtomicBool, AtomicUsize};

use tessera_context::{Reservation, Run};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_rows::spill::SpillFile;
use tessera_state::aggregate::{
    Area, Call, Compiled, Groups, Pairs, Program, States, calls, output_fields,
};
use tessera_state::group_table::needed;
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column};

/// Aggregates over all tuples.
///
/// * **Input** any tuple; **output** one tuple with one field per aggregate, also for an empty
///   input (counts are then 0, other aggregates NULL).
/// * **Parameters** `aggregates` = `{name = {function = sum, args = [x], distinct = true, filter =
///   x > 0, order_by = [{field = y}], limit = 3}}`.
/// * **Memory** one state per aggregate and worker. The values that percentiles, `mode`, `DISTINCT`
///   and `ORDER BY` hold are spilled as sorted runs when the budget is exhausted, unless the result
///   contains all of them. **Blocks** until the input is complete. **Order** of the input matters
///   to functions such as `array_agg`: they see that of the source.
/// * **Errors** a sum out of range (`overflow`), and those of the arguments.
///
/// | in: x | `{s = {function = sum, args = [x]}, n = {function = count, args = []}}` |
/// |---|---|
/// | 1, 2, NULL, 4, 5 | s = 12, n = 5 |
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = reduce(%t) {aggregates = {n = {function = :count, args = []}, total = {function =
///        :sum, args = [x]}}}",
/// );
/// assert_eq!(rows, ["4 6"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Reduce;

impl Descriptor for Reduce {
    tessera_operator::describe!(
        "reduce",
        "Aggregates over all tuples into one tuple.",
        ["aggregates", "partial"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        describe::require_all_unless_partial(node, edge, 0)?;
        let fields = output_fields(&calls(node)?, &edge.tuple, inputs)?;
        Ok(describe::single_edge(edge, Tuple::new(fields), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Reduce {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let calls: Vec<Call> = calls(node)?;
        let (inputs, tuple) = needed(&[], &calls, &lowering.inputs[0].tuple);
        let outputs = lowering.output.tuple.fields();
        let program =
            Program::bind(&calls, outputs, &tuple, lowering.parameters, lowering.library, 0)?;
        Ok(Operator::Sink(Arc::new(ReduceOperator {
            inputs: inputs.into(),
            program: Arc::new(program),
        })))
    }
}

#[derive(Debug)]
struct ReduceOperator {
    inputs: Arc<[usize]>,
    program: Arc<Program>,
}

#[derive(Debug)]
struct ReduceRun {
    inputs: Arc<[usize]>,
    program: Arc<Program>,
    compiled: Option<Arc<Compiled>>,
    run: Run,
    /// The scratch file for values of states that exceed the budget.
    file: Arc<SpillFile>,
    /// Bytes held by all workers.
    held_bytes: Arc<AtomicUsize>,
    /// Whether any values have been spilled.
    has_spilled: Arc<AtomicBool>,
}

#[derive(Debug)]
struct ReduceWorker {
    inputs: Arc<[usize]>,
    program: Arc<Program>,
    compiled: Option<Arc<Compiled>>,
    run: Run,
    area: Area,
    states: States,
    reservation: Reservation,
    position: (u64, u64),
    file: Arc<SpillFile>,
    held_bytes: Arc<AtomicUsize>,
    has_spilled: Arc<AtomicBool>,
}

impl Sink for ReduceOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (inputs, program) = (self.inputs.clone(), self.program.clone());
        let compiled = Compiled::start(&program, inputs.len(), false, run);
        let (file, held_bytes, has_spilled) = (SpillFile::new(run), Arc::default(), Arc::default());
        let run = run.clone();
        Ok(Arc::new(ReduceRun { inputs, program, compiled, run, file, held_bytes, has_spilled }))
    }
}

impl ReduceRun {
    fn new_worker(&self) -> Result<ReduceWorker> {
        let mut area = Area::new(self.program.stride());
        area.add();
        Ok(ReduceWorker {
            inputs: self.inputs.clone(),
            program: self.program.clone(),
            compiled: self.compiled.clone(),
            run: self.run.clone(),
            area,
            states: self.program.make()?,
            reservation: Reservation::new(self.run.context.clone()),
            position: (0, 0),
            file: self.file.clone(),
            held_bytes: self.held_bytes.clone(),
            has_spilled: self.has_spilled.clone(),
        })
    }
}

impl SinkRun for ReduceRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(self.new_worker()?))
    }

    fn accepts_lazy(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.accepts_lazy())
    }

    fn accepts_long_chunks(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_all())
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut workers = downcast_workers::<ReduceWorker>(workers)?.into_iter();
        let mut all = match workers.next() {
            Some(first) => first,
            None => self.new_worker()?,
        };
        let has_spilled = self.has_spilled.load(sync::Ordering::Relaxed);
        if has_spilled {
            all.spill()?;
        }
        for mut worker in workers {
            // Merging spilled states copies no values.
            if has_spilled {
                worker.spill()?;
            }
            for (state, from) in all.states.iter_mut().zip(&mut worker.states) {
                from.seal(&worker.area)?;
                let from: &mut dyn Any = &mut **from;
                let pairs = Pairs { into: &[0], from: &worker.area, rows: &[0] };
                state.merge(&mut all.area, &pairs, from)?;
            }
        }
        let arrays = self.program.finish(&mut all.states, &mut all.area)?;
        let columns = arrays.into_iter().map(Column::Plain).collect();
        let chunk_rows = self.run.context.chunk_rows();
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![Chunk::new(columns, 1)], chunk_rows),
        })
    }
}

impl SinkWorker for ReduceWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.project(&self.inputs);
        let groups = Groups::one(0, chunk.rows(), self.position);
        let compiled = self.compiled.as_deref();
        self.program.update(
            compiled,
            &mut self.states,
            &mut self.area,
            &chunk,
            &groups,
            &self.run,
        )?;
        self.position.1 += chunk.rows() as u64;
        self.account()
    }
}

impl ReduceWorker {
    /// Accounts for the memory of the states; spills their values if the budget is exceeded.
    fn account(&mut self) -> Result<()> {
        let (before, after) = (self.reservation.bytes(), self.bytes());
        let held = self.held_bytes.load(sync::Ordering::Relaxed);
        if after > before && !self.run.context.may_hold(held, after - before) {
            return self.spill();
        }
        self.hold(after)
    }

    /// Spills the values that states hold, as far as they support it.
    fn spill(&mut self) -> Result<()> {
        self.states.iter_mut().try_for_each(|state| state.spill(&self.file))?;
        self.has_spilled.store(true, sync::Ordering::Relaxed);
        self.hold(self.bytes())
    }

    fn bytes(&self) -> usize {
        self.states.iter().map(|state| state.memory()).sum()
    }

    fn hold(&mut self, after: usize) -> Result<()> {
        let before = self.reservation.bytes();
        if after != before {
            self.reservation.resize(after)?;
            self.held_bytes.fetch_add(after, sync::Ordering::Relaxed);
            self.held_bytes.fetch_sub(before, sync::Ordering::Relaxed);
        }
        Ok(())
    }
}
