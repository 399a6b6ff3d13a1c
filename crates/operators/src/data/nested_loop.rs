//! `nested_loop`: joins on any condition, by trying every pair.

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_functions::BoundExpr;
use tessera_operator::stream_util::{Packer, pairs_with_row};
use tessera_operator::{
    Lowering, Operator, SourceRun, Step, Stream, StreamRun, StreamWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Order, Role};
use tessera_rows::{Collected, SpillableChunk};
use tessera_state::join::{JoinKind, MatchBitmap};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use super::unkeyed::{SideRest, decided, numbered_chunks};

/// `nested_loop`: joins its stream `L` with a side `R` on any condition, by trying every pair.
///
/// * Inputs: the side `R`, and `L`. Output by `join` as in `docs/reference/sub-operators.md`,
///   traits those of `L`. Promises no order. Does not block; `right`, `full`, `build_semi` and
///   `build_anti` yield tuples of `R` after the last of `L`.
/// * `predicate`: a condition over the fields of `L` and `R`; without one every pair matches.
/// * `null_aware` (with `anti` and `mark`): `NOT IN` and `IN`: a pair with a NULL condition may be
///   a match.
/// * For each pair of chunks, the tuples of the shorter chunk are repeated as constants: conditions
///   run on whole chunks and only matches are copied.
/// * Memory: one chunk of its side at a time (the executor holds the side, possibly in a scratch
///   file); where build tuples are marked, one bit for each.
/// * Errors: those of the condition; `single` with a second match.
/// * Source: Modularis §2.3.2 (CartesianProduct and Filter, merged by rule R4).
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %l = values() {columns = <k: int64, a: string>, rows = [[1, 'x'], [2, 'y'], [4, 'z']]}
///      %result = nested_loop(%r, %l) {join = :left, predicate = j > k}",
/// );
/// assert_eq!(rows, ["1 x 2 two", "1 x 2 due", "2 y NULL NULL", "4 z NULL NULL"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NestedLoop;

#[derive(Debug)]
struct LoopStream {
    predicate: Option<BoundExpr>,
    /// Tests whether the condition is NULL, for joins where that matters.
    unknown: Option<BoundExpr>,
    kind: JoinKind,
    stream: Tuple,
    build: Tuple,
}

#[derive(Debug)]
struct LoopRun {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    predicate: Option<BoundExpr>,
    /// Tests whether the condition is NULL, for joins where that matters.
    unknown: Option<BoundExpr>,
    kind: JoinKind,
    stream: Tuple,
    build: Tuple,
    /// The chunks of the side, each with the number of its first tuple.
    side: Arc<[(u64, SpillableChunk)]>,
    matched: Arc<MatchBitmap>,
    run: Run,
    _reservation: Reservation,
}

struct LoopWorker {
    shared: Arc<Shared>,
    input: Option<Chunk>,
    found: Vec<bool>,
    /// Marks the tuples of the stream that may have a match.
    possible: Vec<bool>,
    /// The chunk of the side, and the next tuple of the shorter of the two chunks.
    chunk: usize,
    row: usize,
    /// That chunk; `None` until it is read.
    build: Option<Chunk>,
    packer: Packer,
}

impl Descriptor for NestedLoop {
    tessera_operator::describe!(
        "nested_loop",
        "Joins a stream with a side on any condition, by trying every pair.",
        ["join", "predicate", "mark", "null_aware"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = describe::edges(inputs)? else {
            return Err(Error::internal("a nested loop without two inputs"));
        };
        describe::require_all(side, 0)?;
        let kind = JoinKind::of(node, &[])?;
        kind.check_null_aware(node)?;
        let both = stream.tuple.concat(&side.tuple);
        both.check()?;
        if let Some(predicate) = node.params.expr_opt("predicate")? {
            describe::predicate(predicate, &both, inputs)
                .map_err(|error| error.context("parameter predicate"))?;
        }
        if kind.marks_build() {
            describe::require_all(stream, 1)?;
        }
        Ok(describe::passes(stream, kind.output(&stream.tuple, &side.tuple, node)?, Order::None))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

impl SubOperator for NestedLoop {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (build, stream) = (lowering.inputs[0].tuple.clone(), lowering.inputs[1].tuple.clone());
        let both = stream.concat(&build);
        let bind = |expr: &Expr| BoundExpr::new(expr, &both, lowering.parameters, lowering.library);
        let asked = node.params.expr_opt("predicate")?;
        let predicate = asked.map(bind).transpose()?;
        let null_aware = node.params.flag("null_aware")?;
        let unknown = asked.filter(|_| null_aware);
        let unknown =
            unknown.map(|expr| bind(&Expr::IsNull(Box::new(expr.clone())))).transpose()?;
        let kind = JoinKind::of(node, &[])?;
        Ok(Operator::Stream(Arc::new(LoopStream { predicate, unknown, kind, stream, build })))
    }
}

impl Stream for LoopStream {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let collected =
            sides.first().ok_or_else(|| Error::internal("a nested loop without a side"))?;
        let (side, rows) = numbered_chunks(collected)?;
        let marked = if self.kind.marks_build() { rows } else { 0 };
        let mut reservation = Reservation::new(run.context.clone());
        reservation.grow(MatchBitmap::bytes(marked))?;
        let shared = Shared {
            predicate: self.predicate.clone(),
            unknown: self.unknown.clone(),
            kind: self.kind,
            stream: self.stream.clone(),
            build: self.build.clone(),
            side: side.into(),
            matched: Arc::new(MatchBitmap::new(marked)),
            run: run.clone(),
            _reservation: reservation,
        };
        Ok(Arc::new(LoopRun { shared: Arc::new(shared) }))
    }
}

impl StreamRun for LoopRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(LoopWorker {
            shared: self.shared.clone(),
            input: None,
            found: Vec::new(),
            possible: Vec::new(),
            chunk: 0,
            row: 0,
            build: None,
            packer: Packer::new(self.shared.run.context.chunk_rows()),
        }))
    }

    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let Shared { kind, stream, side, matched, .. } = &*self.shared;
        let rest = || SideRest {
            kind: *kind,
            stream: stream.clone(),
            chunks: side.clone(),
            matched: matched.clone(),
        };
        Ok(kind.marks_build().then(|| Arc::new(rest()) as Arc<dyn SourceRun>))
    }
}

impl StreamWorker for LoopWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        for known in [&mut self.found, &mut self.possible] {
            known.clear();
            known.resize(chunk.rows(), false);
        }
        self.input = Some(chunk.compact()?);
        (self.chunk, self.row, self.build) = (0, 0, None);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.packer.pop() {
            return Ok(Step::HasOutput(chunk));
        }
        let Some(input) = self.input.take() else { return Ok(Step::NeedInput) };
        self.shared.run.context.check()?;
        let shared = self.shared.clone();
        match shared.side.get(self.chunk) {
            Some((first, kept)) if !self.is_decided() => {
                let build = self.build.take().map_or_else(|| kept.chunk(), Ok)?;
                self.try_pairs(&input, *first, &build)?;
                if self.row > 0 {
                    self.build = Some(build);
                }
                self.input = Some(input);
            }
            _ => self.finish_input(&input)?,
        }
        Ok(self.packer.pop().map_or(Step::Again, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

impl LoopWorker {
    /// Returns whether further pairs cannot change the result.
    fn is_decided(&self) -> bool {
        matches!(self.shared.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark)
            && self.found.iter().all(|found| *found)
    }

    /// Joins one tuple of the shorter chunk to all of the longer chunk.
    fn try_pairs(&mut self, input: &Chunk, first: u64, side: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        let repeat_stream = input.rows() < side.rows();
        let row = self.row;
        self.row += 1;
        if self.row >= input.rows().min(side.rows()) {
            (self.chunk, self.row) = (self.chunk + 1, 0);
        }
        let pairs = pairs_with_row(input, side, repeat_stream, row)?;
        let stream_row = |place: usize| if repeat_stream { row } else { place };
        if let Some(unknown) = &shared.unknown {
            let possible = unknown.select(pairs.clone(), &shared.run)?;
            each_place(&possible, |place| self.possible[stream_row(place)] = true);
        }
        let pairs = match &shared.predicate {
            Some(predicate) => predicate.select(pairs, &shared.run)?,
            None => pairs,
        };
        if pairs.is_empty() {
            return Ok(());
        }
        let mut repeated = false;
        let mut pair = |stream: usize, build: u64| {
            repeated |= std::mem::replace(&mut self.found[stream], true);
            if shared.kind.marks_build() {
                shared.matched.set(build);
            }
        };
        each_place(&pairs, |place| {
            pair(stream_row(place), first + if repeat_stream { place } else { row } as u64);
        });
        shared.kind.check_repeated(repeated)?;
        if shared.kind.yields_pairs() { self.packer.push(pairs) } else { Ok(()) }
    }

    /// Yields the results for the input after all its pairs have been tried.
    fn finish_input(&mut self, input: &Chunk) -> Result<()> {
        let (shared, marks) = (&self.shared, (&*self.found, &*self.possible));
        let decided = decided(shared.kind, input, marks, &shared.build)?;
        decided.map_or(Ok(()), |chunk| self.packer.push(chunk))
    }
}

/// Calls `at` with the position of each selected tuple among the stored tuples of a chunk.
fn each_place(chunk: &Chunk, mut at: impl FnMut(usize)) {
    match chunk.selection() {
        None => (0..chunk.rows()).for_each(at),
        Some(selection) => selection.values().iter().for_each(|place| at(*place as usize)),
    }
}
