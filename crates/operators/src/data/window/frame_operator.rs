//! `window_frame`: window functions over batches of whole partitions.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::ArrayRef;
use tessera_context::{Reservation, Run};
use tessera_functions::BoundExpr;
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::spill::{SpillFile, spillable};
use tessera_rows::{Collected, SpillableChunk};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column, concat_chunks};

use super::aggregates::{self, FrameAggregates};
use super::batch::Batch;
use super::call::WindowCall;
use super::exclude::pieces;
use super::frame::BoundFrame;
use super::waiting::Waiting;
use super::{
    FlagFields, PRODUCERS, check_producer, derive_calls, flags, navigate, ranks, read_fields,
};

/// Rows of a batch, if its partitions are short.
const BATCH_ROWS: usize = 65_536;
/// The batches of all workers take at most this part of the memory budget, if their partitions are
/// short.
const BATCH_SHARE: usize = 8;

/// Adds the results of window functions over the frame of each tuple.
///
/// `(a, 1), (a, 2), (a, 4), (b, 8)` with `calls = {s = {function = sum, args = [v], frame = {unit =
/// :rows, start = {preceding = 1}, end = :current}}}` gives the sums `1, 3, 6, 8`. Takes ranking
/// functions, `lag`, `lead`, `first_value`, `last_value`, `nth_value` and all aggregates, with all
/// frames. Holds whole partitions: the fields that the calls read in memory; the others are spilled
/// if the budget is exhausted. Never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 2], ['b', 2], ['a', 1], ['a',
///        1]]}
///      %sorted = sort(%t) {keys = [{field = k}, {field = v}], partition = 1}
///      %bounds = window_bounds(%sorted) {partition = [k], order = [v], partition_start = p,
///        peer_start = q}
///      %framed = window_frame(%bounds) {partition_start = p, peer_start = q, calls = {total =
///        {function = :sum, args = [v], frame = {unit = :rows, start = {preceding = 1}, end =
///        :current}}}}
///      %result = projection(%framed) {fields = [k, v, total]}",
/// );
/// assert_eq!(rows, ["a 1 1", "a 1 2", "a 2 3", "b 2 2"]);
/// ```
#[derive(Debug)]
pub struct WindowFrame;

impl Descriptor for WindowFrame {
    tessera_operator::describe!(
        "window_frame",
        "Computes window functions over frames of tuples.",
        ["partition_start", "peer_start", "calls"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        derive_calls(node, inputs)
    }

    fn check_producers(&self, _node: &Node, producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        check_producer(producers, &PRODUCERS)
    }

    fn is_only_reader(&self) -> bool {
        true
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for WindowFrame {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        FrameOperator::lower(super::call::calls(node)?, node, lowering)
    }
}

impl FrameOperator {
    /// Lowers the calls of a node.
    pub(super) fn lower(
        calls: Vec<WindowCall>,
        node: &Node,
        lowering: &Lowering<'_>,
    ) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let starts = FlagFields::new(node, tuple)?;
        let flag_names =
            [starts.partition, starts.peer].map(|field| tuple.fields()[field].name.clone());
        let names = calls.iter().flat_map(WindowCall::fields).chain(flag_names);
        let read = read_fields(tuple, names);
        let narrow =
            Tuple::new(read.iter().map(|field| tuple.fields()[*field].clone()).collect::<Vec<_>>());
        let results = &lowering.output.tuple.fields()[tuple.len()..];
        let bind = |expr| BoundExpr::new(expr, &narrow, lowering.parameters, lowering.library);
        let mut others = Vec::new();
        for (output, call) in calls.iter().enumerate().filter(|(_, call)| !call.is_aggregate()) {
            others.push(OtherCall {
                output,
                function: call.function.clone(),
                args: call.args.iter().map(bind).collect::<Result<_>>()?,
                ignore_nulls: call.ignore_nulls,
                frame: BoundFrame::new(
                    &call.frame(),
                    &narrow,
                    lowering.parameters,
                    lowering.library,
                )?,
            });
        }
        let aggregates =
            aggregates::bind(&calls, results, &narrow, lowering.parameters, lowering.library)?;
        Ok(Operator::Stream(Arc::new(FrameOperator {
            program: Arc::new(FrameProgram {
                flags: FlagFields::new(node, &narrow)?,
                partition: starts.partition,
                outputs: calls.len(),
                read,
                others,
                aggregates,
            }),
            spills: spillable(tuple),
        })))
    }
}

/// All calls, bound to the fields that they read.
#[derive(Debug)]
struct FrameProgram {
    flags: FlagFields,
    /// The field of the input that marks the start of a partition.
    partition: usize,
    outputs: usize,
    /// The fields of the input that calls read.
    read: Vec<usize>,
    others: Vec<OtherCall>,
    aggregates: Vec<FrameAggregates>,
}

/// A call of a function that is not an aggregate.
#[derive(Debug)]
struct OtherCall {
    output: usize,
    function: Arc<str>,
    args: Vec<BoundExpr>,
    ignore_nulls: bool,
    frame: BoundFrame,
}

impl OtherCall {
    fn evaluate(&self, batch: &Batch, run: &Run) -> Result<ArrayRef> {
        let args = self.args.iter().map(|arg| arg.evaluate(&batch.chunk, run)?.plain());
        let args = args.collect::<Result<Vec<ArrayRef>>>()?;
        if let Some(rank) = ranks::rank(&self.function, batch, &args)? {
            return Ok(rank);
        }
        match &*self.function {
            "lag" => return navigate::neighbor(batch, &args, -1, self.ignore_nulls),
            "lead" => return navigate::neighbor(batch, &args, 1, self.ignore_nulls),
            _ => {}
        }
        let pieces = pieces(self.frame.frames(batch, run)?, self.frame.spec.exclude, batch);
        let result = navigate::in_frame(&self.function, &pieces, &args, self.ignore_nulls)?;
        result.ok_or_else(|| Error::internal(format!("window function {}", self.function)))
    }
}

impl FrameProgram {
    fn evaluate(&self, batch: &Batch, run: &Run) -> Result<Vec<ArrayRef>> {
        let mut results: Vec<Option<ArrayRef>> = vec![None; self.outputs];
        for call in &self.others {
            run.context.check()?;
            results[call.output] = Some(call.evaluate(batch, run)?);
        }
        for aggregates in &self.aggregates {
            run.context.check()?;
            for (output, array) in aggregates.outputs.iter().zip(aggregates.evaluate(batch, run)?) {
                results[*output] = Some(array);
            }
        }
        let missing = || Error::internal("a window function without a result");
        results.into_iter().map(|result| result.ok_or_else(missing)).collect()
    }

    /// Bytes that a row takes while its results are computed, beside its values.
    fn row_bytes(&self) -> usize {
        let state = |aggregates: &FrameAggregates| 16 * aggregates.program.stride() + 24;
        16 * self.outputs + self.aggregates.iter().map(state).sum::<usize>()
    }
}

#[derive(Debug)]
pub(super) struct FrameOperator {
    program: Arc<FrameProgram>,
    spills: bool,
}

#[derive(Debug)]
struct FrameRun {
    program: Arc<FrameProgram>,
    run: Run,
    file: Option<Arc<SpillFile>>,
}

impl Stream for FrameOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let file = self.spills.then(|| SpillFile::new(run));
        Ok(Arc::new(FrameRun { program: self.program.clone(), run: run.clone(), file }))
    }
}

impl StreamRun for FrameRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let memory = || Reservation::new(self.run.context.clone());
        Ok(Box::new(FrameWorker {
            program: self.program.clone(),
            run: self.run.clone(),
            waiting: Waiting::new(&self.run, self.file.clone()),
            read: Vec::new(),
            rows: 0,
            memory: memory(),
            output: Output { chunks: VecDeque::new(), results: Vec::new(), next: 0 },
            output_memory: memory(),
            rest: None,
        }))
    }
}

struct FrameWorker {
    program: Arc<FrameProgram>,
    run: Run,
    /// The tuples that wait for the end of their partition, and the fields of them that calls read.
    waiting: Waiting,
    read: Vec<Chunk>,
    rows: usize,
    /// For the fields that calls read.
    memory: Reservation,
    output: Output,
    output_memory: Reservation,
    /// The tuples behind the last border of a partition in a chunk.
    rest: Option<Chunk>,
}

/// Tuples with their results.
struct Output {
    chunks: VecDeque<SpillableChunk>,
    results: Vec<ArrayRef>,
    next: usize,
}

impl Output {
    fn pop(&mut self) -> Result<Option<Chunk>> {
        let Some(chunk) = self.chunks.pop_front() else { return Ok(None) };
        let chunk = chunk.chunk()?;
        let mut columns = chunk.stored().to_vec();
        let slice = |array: &ArrayRef| Column::Plain(array.slice(self.next, chunk.rows()));
        columns.extend(self.results.iter().map(slice));
        self.next += chunk.rows();
        Ok(Some(Chunk::new(columns, chunk.rows())))
    }
}

impl StreamWorker for FrameWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let chunk = chunk.compact()?;
        if !self.fills_batch(chunk.rows()) {
            return self.wait(chunk);
        }
        // Whole partitions end at the last border in the chunk.
        let starts = flags(&chunk, self.program.partition)?;
        let border = starts.values().set_indices().last().unwrap_or(0);
        if border > 0 {
            self.wait(chunk.slice(0, border))?;
        } else if self.rows == 0 || !starts.value(0) {
            return self.wait(chunk);
        }
        self.evaluate()?;
        self.rest = Some(chunk.slice(border, chunk.rows() - border));
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.output.pop()? {
            return Ok(Step::HasOutput(chunk));
        }
        self.output.results = Vec::new();
        self.output_memory.resize(0)?;
        if let Some(rest) = self.rest.take() {
            self.wait(rest.compact()?)?;
        }
        Ok(Step::NeedInput)
    }

    fn end(&mut self) -> Result<()> {
        self.evaluate()
    }
}

impl FrameWorker {
    /// Whether the batch is long enough to be evaluated once these rows are in it.
    fn fills_batch(&self, rows: usize) -> bool {
        let context = &self.run.context;
        let bytes = 2 * self.memory.bytes() + self.rows * self.program.row_bytes();
        self.rows + rows >= BATCH_ROWS
            || bytes >= context.memory_bytes() / (BATCH_SHARE * context.workers())
    }

    /// Adds tuples to the partitions that wait.
    fn wait(&mut self, chunk: Chunk) -> Result<()> {
        let read = chunk.project(&self.program.read);
        self.memory.grow(read.value_bytes())?;
        self.rows += chunk.rows();
        self.read.push(read);
        self.waiting.push(chunk)
    }

    /// Computes the results of the tuples that wait.
    fn evaluate(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        if rows > u32::MAX as usize {
            return Err(Error::data(format!(
                "a partition of {rows} tuples is too large for window functions; \
                 add a column to PARTITION BY"
            )));
        }
        // Concatenation holds the fields twice for a moment.
        self.memory.grow(self.memory.bytes() + rows * self.program.row_bytes())?;
        let chunk = concat_chunks(&std::mem::take(&mut self.read))?;
        let batch = Batch::new(chunk, self.program.flags)?;
        let results = self.program.evaluate(&batch, &self.run)?;
        drop(batch);
        self.memory.resize(0)?;
        let (chunks, passed) = self.waiting.take()?;
        let bytes: usize = results.iter().map(|array| array.get_array_memory_size()).sum();
        self.output_memory.grow(bytes + passed)?;
        self.output = Output { chunks: chunks.into(), results, next: 0 };
        Ok(())
    }
}
