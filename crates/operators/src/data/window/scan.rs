//! `window_scan`: window functions that look at no later tuple but peers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, new_null_array};
use arrow::compute::{concat, interleave};
use tessera_context::Run;
use tessera_functions::BoundExpr;
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Role, Scalar};
use tessera_rows::Collected;
use tessera_rows::spill::{SpillFile, spillable};
use tessera_state::aggregate::{Area, Groups, Program, Ranges, States};
use tessera_types::{Error, Field, Result, quote_name};
use tessera_vector::{Chunk, Column};

use super::aggregates::aggregate_call;
use super::call::{Bound, Exclude, Unit, WindowCall, calls};
use super::frame_operator::FrameOperator;
use super::peers::Peers;
use super::{FlagFields, PRODUCERS, check_producer, derive_calls, flags};

/// The largest offset of `lag`: so many values are held.
const OFFSET_MAX: i128 = 65_536;

/// Adds the results of window functions that look at no later tuple but peers.
///
/// `(a, 1), (a, 2), (b, 4)` with `calls = {n = {function = row_number, args = []}}` gives the
/// numbers `1, 2, 1`. Takes `row_number`, `rank` and `dense_rank`; `lag` with a constant offset;
/// `first_value`, `last_value` and aggregates over the tuples up to the current one, or up to its
/// last peer (`unit = :range` or `:groups`). Holds the states of the current partition, as many
/// values as the largest offset, and the current peers, which are spilled if the budget is
/// exhausted; never blocks, keeps the order. Aggregates whose states hold values run as in
/// `window_frame`.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 2], ['b', 2], ['a', 1], ['a',
///        1]]}
///      %sorted = sort(%t) {keys = [{field = k}, {field = v}], partition = 1}
///      %bounds = window_bounds(%sorted) {partition = [k], order = [v], partition_start = p,
///        peer_start = q}
///      %scanned = window_scan(%bounds) {partition_start = p, peer_start = q, calls = {n =
///        {function = :row_number, args = []}}}
///      %result = projection(%scanned) {fields = [k, v, n]}",
/// );
/// assert_eq!(rows, ["a 1 1", "a 1 2", "a 2 3", "b 2 1"]);
/// ```
#[derive(Debug)]
pub struct WindowScan;

impl Descriptor for WindowScan {
    tessera_operator::describe!(
        "window_scan",
        "Computes window functions that look at no later tuple but peers.",
        ["partition_start", "peer_start", "calls"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = derive_calls(node, inputs)?;
        calls(node)?.iter().try_for_each(|call| kind(call).map(drop))?;
        Ok(edge)
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

/// What a call needs of earlier tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RowNumber,
    Rank,
    DenseRank,
    /// The value so many tuples before.
    Lag(usize),
    FirstValue,
    LastValue,
    Aggregate,
}

fn kind(call: &WindowCall) -> Result<Kind> {
    let frame = call.frame();
    let is_running = frame.start == Bound::Unbounded
        && frame.end == Bound::Current
        && frame.exclude == Exclude::Nothing;
    let is_plain = !call.ignore_nulls && !call.distinct && call.order_by.is_empty();
    let kind = match &*call.function {
        "row_number" => Some(Kind::RowNumber),
        "rank" => Some(Kind::Rank),
        "dense_rank" => Some(Kind::DenseRank),
        "lag" if is_plain => match call.args.get(1) {
            None => Some(Kind::Lag(1)),
            Some(Expr::Constant(Scalar::Integer(offset), _)) => {
                (0..=OFFSET_MAX).contains(offset).then_some(Kind::Lag(*offset as usize))
            }
            Some(_) => None,
        },
        "first_value" if is_plain && is_running => Some(Kind::FirstValue),
        "last_value" if is_plain && is_running => Some(Kind::LastValue),
        _ if call.is_aggregate() && is_plain && is_running => Some(Kind::Aggregate),
        _ => None,
    };
    kind.ok_or_else(|| {
        Error::semantic(format!(
            "window function {} ({}) needs more than the tuples before and peers; use window_frame",
            quote_name(&call.name),
            call.function
        ))
    })
}

impl SubOperator for WindowScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let calls = calls(node)?;
        let fields = &lowering.output.tuple.fields()[tuple.len()..];
        let kinds = calls.iter().map(kind).collect::<Result<Vec<_>>>()?;
        let is_aggregate = |output: &usize| kinds[*output] == Kind::Aggregate;
        let outputs: Vec<usize> = (0..calls.len()).filter(is_aggregate).collect();
        let list: Vec<_> = outputs.iter().map(|output| aggregate_call(&calls[*output])).collect();
        let results: Vec<Field> = outputs.iter().map(|output| fields[*output].clone()).collect();
        let (parameters, library) = (lowering.parameters, lowering.library);
        let program = Program::bind(&list, &results, tuple, parameters, library, 0)?;
        if !program.is_flat() {
            return FrameOperator::lower(calls, node, lowering);
        }
        let bind = |expr| BoundExpr::new(expr, tuple, parameters, library);
        let mut scans = Vec::new();
        for (output, call) in calls.iter().enumerate().filter(|(output, _)| !is_aggregate(output)) {
            let args = call.args.iter().map(bind).collect::<Result<_>>()?;
            scans.push(ScanCall { output, kind: kinds[output], args });
        }
        let is_of_peers = |output: &usize| {
            matches!(kinds[*output], Kind::LastValue | Kind::Aggregate)
                && calls[*output].frame().unit != Unit::Rows
        };
        let of_peers = (0..calls.len()).filter(is_of_peers).map(|output| tuple.len() + output);
        let program = ScanProgram {
            flags: FlagFields::new(node, tuple)?,
            scans,
            program,
            aggregates: outputs,
            of_peers: of_peers.collect(),
        };
        let spills = spillable(&lowering.output.tuple);
        Ok(Operator::Stream(Arc::new(ScanOperator { program: Arc::new(program), spills })))
    }
}

#[derive(Debug)]
struct ScanProgram {
    flags: FlagFields,
    scans: Vec<ScanCall>,
    /// The running aggregates, and their positions among all calls.
    program: Program,
    aggregates: Vec<usize>,
    /// The fields of the output that have the same value for all peers.
    of_peers: Vec<usize>,
}

#[derive(Debug)]
struct ScanCall {
    output: usize,
    kind: Kind,
    args: Vec<BoundExpr>,
}

#[derive(Debug)]
struct ScanOperator {
    program: Arc<ScanProgram>,
    spills: bool,
}

#[derive(Debug)]
struct ScanRun {
    program: Arc<ScanProgram>,
    run: Run,
    file: Option<Arc<SpillFile>>,
}

impl Stream for ScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let file = (self.spills && !self.program.of_peers.is_empty()).then(|| SpillFile::new(run));
        Ok(Arc::new(ScanRun { program: self.program.clone(), run: run.clone(), file }))
    }
}

impl StreamRun for ScanRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(ScanWorker {
            program: self.program.clone(),
            run: self.run.clone(),
            ranks: Ranks::default(),
            values: vec![None; self.program.scans.len()],
            record: None,
            is_started: false,
            peers: Peers::new(&self.program.of_peers, &self.run, self.file.clone()),
        }))
    }
}

/// The numbers of the last tuple in its partition.
#[derive(Debug, Default, Clone, Copy)]
struct Ranks {
    row_number: i64,
    rank: i64,
    dense_rank: i64,
}

struct ScanWorker {
    program: Arc<ScanProgram>,
    run: Run,
    ranks: Ranks,
    /// For each scan: the values of the current partition that later tuples need.
    values: Vec<Option<ArrayRef>>,
    /// The states of the running aggregates.
    record: Option<Vec<u64>>,
    /// Whether the morsel has begun.
    is_started: bool,
    peers: Peers,
}

impl StreamWorker for ScanWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let chunk = chunk.compact()?;
        let partitions = flags(&chunk, self.program.flags.partition)?;
        let peers = flags(&chunk, self.program.flags.peer)?;
        if !self.is_started && !partitions.value(0) {
            return Err(Error::internal("a morsel of a window function begins inside a partition"));
        }
        self.is_started = true;
        let program = self.program.clone();
        let starts = partition_starts(&partitions);
        let outputs = program.scans.len() + program.aggregates.len();
        let mut results: Vec<Option<ArrayRef>> = vec![None; outputs];
        let before = self.ranks;
        let mut ranked = |value: fn(&Ranks) -> i64| {
            let (array, last) = ranked(before, &partitions, &peers, value);
            self.ranks = last;
            array
        };
        for (number, scan) in program.scans.iter().enumerate() {
            let args = scan.args.iter().map(|arg| arg.evaluate(&chunk, &self.run)?.plain());
            let args = args.collect::<Result<Vec<ArrayRef>>>()?;
            let kept = &mut self.values[number];
            results[scan.output] = Some(match scan.kind {
                Kind::RowNumber => ranked(|ranks| ranks.row_number),
                Kind::Rank => ranked(|ranks| ranks.rank),
                Kind::DenseRank => ranked(|ranks| ranks.dense_rank),
                Kind::Lag(offset) => lag(offset, &args, &starts, kept)?,
                Kind::FirstValue => first(&args, &starts, kept)?,
                Kind::LastValue => last(&args)?,
                Kind::Aggregate => return Err(Error::internal("an aggregate among scans")),
            });
        }
        for (output, array) in program.aggregates.iter().zip(self.running(&chunk, &starts)?) {
            results[*output] = Some(array);
        }
        let mut columns = chunk.stored().to_vec();
        for result in results {
            let missing = || Error::internal("a window function without a result");
            columns.push(Column::Plain(result.ok_or_else(missing)?));
        }
        self.peers.push(Chunk::new(columns, chunk.rows()), &peers)
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.peers.pop()?.map_or(Step::NeedInput, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.peers.close()?;
        (self.ranks, self.record, self.is_started) = (Ranks::default(), None, false);
        self.values.fill(None);
        Ok(())
    }
}

/// Returns for each row the first row of its partition in the chunk; `None` if the partition began
/// before.
fn partition_starts(partitions: &BooleanArray) -> Vec<Option<u32>> {
    let mut start = None;
    let of_row = |row: usize| {
        if partitions.value(row) {
            start = Some(row as u32);
        }
        start
    };
    (0..partitions.len()).map(of_row).collect()
}

/// Numbers the rows of a chunk; returns also the numbers of the last one.
fn ranked(
    mut ranks: Ranks,
    partitions: &BooleanArray,
    peers: &BooleanArray,
    value: impl Fn(&Ranks) -> i64,
) -> (ArrayRef, Ranks) {
    let (partitions, peers) = (partitions.values(), peers.values());
    let next = |row: usize| {
        if partitions.value(row) {
            ranks = Ranks::default();
        }
        ranks.row_number += 1;
        if peers.value(row) {
            ranks.rank = ranks.row_number;
            ranks.dense_rank += 1;
        }
        value(&ranks)
    };
    let values: Vec<i64> = (0..partitions.len()).map(next).collect();
    (Arc::new(Int64Array::from(values)), ranks)
}

/// `lag`: `kept` are the last values of the partition before the chunk.
fn lag(
    offset: usize,
    args: &[ArrayRef],
    starts: &[Option<u32>],
    kept: &mut Option<ArrayRef>,
) -> Result<ArrayRef> {
    let values = args.first().ok_or_else(|| Error::internal("lag without a value"))?;
    let before = kept.as_ref().map_or(0, |kept| kept.len());
    let all = match kept {
        Some(kept) => concat(&[&**kept, &**values])?,
        None => values.clone(),
    };
    let null = new_null_array(values.data_type(), 1);
    let default = args.get(2).map(|array| arrow::compute::cast(array, values.data_type()));
    let default = default.transpose()?;
    let arrays: [&dyn Array; 2] = [&*all, &**default.as_ref().unwrap_or(&null)];
    let place = |(row, start): (usize, &Option<u32>)| {
        let first = start.map_or(0, |start| before + start as usize);
        match (before + row).checked_sub(offset).filter(|at| *at >= first) {
            Some(at) => (0, at),
            None => (1, if default.is_some() { row } else { 0 }),
        }
    };
    let places: Vec<(usize, usize)> = starts.iter().enumerate().map(place).collect();
    let result = interleave(&arrays, &places)?;
    let first = starts.last().copied().flatten().map_or(0, |start| before + start as usize);
    let first = first.max(all.len().saturating_sub(offset));
    // A copy: a slice would keep all values alive.
    *kept = Some(concat(&[&*all.slice(first, all.len() - first)])?);
    Ok(result)
}

/// `last_value` of the tuples up to the current one.
fn last(args: &[ArrayRef]) -> Result<ArrayRef> {
    args.first().cloned().ok_or_else(|| Error::internal("last_value without a value"))
}

/// `first_value`: `kept` is the first value of the partition that began before the chunk.
fn first(
    args: &[ArrayRef],
    starts: &[Option<u32>],
    kept: &mut Option<ArrayRef>,
) -> Result<ArrayRef> {
    let values = args.first().ok_or_else(|| Error::internal("first_value without a value"))?;
    let null = new_null_array(values.data_type(), 1);
    let arrays: [&dyn Array; 2] = [&**values, &**kept.as_ref().unwrap_or(&null)];
    let place = |start: &Option<u32>| start.map_or((1, 0), |start| (0, start as usize));
    let places: Vec<(usize, usize)> = starts.iter().map(place).collect();
    let result = interleave(&arrays, &places)?;
    if let Some(Some(start)) = starts.last() {
        *kept = Some(concat(&[&*values.slice(*start as usize, 1)])?);
    }
    Ok(result)
}

impl ScanWorker {
    /// Returns the aggregates of the tuples of the partition up to each row.
    fn running(&mut self, chunk: &Chunk, starts: &[Option<u32>]) -> Result<Vec<ArrayRef>> {
        let program = &self.program.program;
        if program.is_empty() {
            return Ok(Vec::new());
        }
        let rows = chunk.rows();
        let mut states: States = program.make()?;
        // Group 0 is the part of the partition before the chunk; each row is a group behind it.
        let mut from = Area::new(program.stride());
        from.reserve(rows + 1);
        from.push(self.record.as_deref().unwrap_or(&[]));
        from.set_groups(rows + 1);
        let groups: Vec<u32> = (1..=rows as u32).collect();
        let groups = Groups::each(&groups, (0, 0));
        program.update(None, &mut states, &mut from, chunk, &groups, &self.run)?;
        let mut into = Area::new(program.stride());
        into.reserve(rows);
        into.set_groups(rows);
        let first: Vec<u32> = starts.iter().map(|start| start.map_or(0, |row| row + 1)).collect();
        let ends: Vec<u32> = (2..rows as u32 + 2).collect();
        let ranges = Ranges { starts: &first, ends: &ends };
        for state in &mut states {
            if !state.merge_ranges(&from, &ranges, &mut into)? {
                return Err(Error::internal("a running aggregate whose states cannot be merged"));
            }
        }
        self.record = Some(into.record(rows - 1).to_vec());
        program.finish(&mut states, &mut into)
    }
}
