//! `inequality_join`: joins on one or two inequalities.

mod comparison;
mod cursor;
mod order;
mod pairs;
mod side;
mod worker;

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_operator::{
    Lowering, Operator, SourceRun, Stream, StreamRun, StreamWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role, SortKey};
use tessera_rows::{Collected, SpillableChunk};
use tessera_state::join::{JoinKind, MatchBitmap, Pairs, Residual};
use tessera_types::{Error, Result, Tuple};

use super::sort_keys::KeyEncoder;
use super::unkeyed::{SideRest, numbered_chunks};
use comparison::Comparison;
use side::Side;
use worker::JoinWorker;

/// `inequality_join`: joins its stream `L` with a side `R` on one or two inequalities.
///
/// * Inputs: the side `R`, and `L`. Output by `join` as in `docs/reference/sub-operators.md`,
///   traits those of `L`. Promises no order. Does not block; `right`, `full`, `build_semi` and
///   `build_anti` yield tuples of `R` after the last of `L`. NULL keys match nothing.
/// * `left_keys`, `right_keys`: one or two fields of each input, of the same types; `comparisons`:
///   how the former compare with the latter, `:lt`, `:lt_eq`, `:gt` or `:gt_eq`.
/// * `residual`: a condition over the fields of `L` and `R` that a match must satisfy too.
/// * A chunk of `L` meets one chunk of `R` after the other; both are sorted by their keys, once.
///   Chunks whose smallest and largest keys rule out a match are skipped, so inputs that are sorted
///   by their first keys make it cheaper. With one inequality, the matches of a tuple are a range;
///   with two, they are bits that are set within a range.
/// * Memory: two chunks; the orders of the chunks of `R` while the budget permits (the executor
///   holds the side, possibly in a scratch file); where build tuples are marked, one bit for each.
/// * Errors: those of the residual; `single` with a second match.
/// * Source: Khayyat et al., *Lightning Fast and Space Efficient Inequality Joins*, VLDB 2015.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <b: string, lo: int64, hi: int64>, rows = [['low', 0, 4],
///        ['middle', 3, 6]]}
///      %l = values() {columns = <a: string, x: int64>, rows = [['u', 1], ['v', 3], ['w', 9]]}
///      %result = inequality_join(%r, %l) {left_keys = [x, x], comparisons = [:gt_eq, :lt_eq],
///        right_keys = [lo, hi], join = :left}",
/// );
/// assert_eq!(rows, ["v 3 low 0 4", "v 3 middle 3 6", "u 1 low 0 4", "w 9 NULL NULL NULL"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InequalityJoin;

impl Descriptor for InequalityJoin {
    tessera_operator::describe!(
        "inequality_join",
        "Joins a stream with a side on one or two inequalities.",
        ["left_keys", "comparisons", "right_keys", "join", "residual", "mark"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = describe::edges(inputs)? else {
            return Err(Error::internal("a join by inequalities without two inputs"));
        };
        describe::require_all(side, 0)?;
        let keys = Keys::new(node, &stream.tuple, &side.tuple)?;
        encoders(&stream.tuple, &keys.left)?;
        let kind = JoinKind::of(node, &[])?;
        if kind.marks_build() {
            describe::require_all(stream, 1)?;
        }
        if let Some(residual) = node.params.expr_opt("residual")? {
            let both = stream.tuple.concat(&side.tuple);
            both.check()?;
            describe::predicate(residual, &both, inputs)
                .map_err(|error| error.context("parameter residual"))?;
        }
        Ok(describe::passes(stream, kind.output(&stream.tuple, &side.tuple, node)?, Order::None))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

/// The positions of the keys in both inputs, and how they compare.
struct Keys {
    left: Vec<usize>,
    comparisons: Vec<Comparison>,
    right: Vec<usize>,
}

impl Keys {
    fn new(node: &Node, stream: &Tuple, side: &Tuple) -> Result<Keys> {
        let comparisons = Comparison::all_of(node)?;
        let left = describe::keys(stream, &node.params.names("left_keys")?, "left key")?;
        let right = describe::keys(side, &node.params.names("right_keys")?, "right key")?;
        if left.len() != comparisons.len() || right.len() != comparisons.len() {
            return Err(Error::semantic(format!(
                "left_keys names {} fields, comparisons {} and right_keys {}; name as many",
                left.len(),
                comparisons.len(),
                right.len()
            )));
        }
        describe::same_types(("left key", stream, &left), ("right key", side, &right))?;
        Ok(Keys { left, comparisons, right })
    }
}

/// Returns an encoder for each key.
fn encoders(tuple: &Tuple, keys: &[usize]) -> Result<Arc<[KeyEncoder]>> {
    let encoder = |key: &usize| {
        let field = tuple.fields()[*key].name.clone();
        let key = (*key, SortKey { field, descending: false, nulls_first: false });
        KeyEncoder::of_keys(vec![key], tuple)
    };
    keys.iter().map(encoder).collect()
}

impl SubOperator for InequalityJoin {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (build, stream) = (lowering.inputs[0].tuple.clone(), lowering.inputs[1].tuple.clone());
        let keys = Keys::new(node, &stream, &build)?;
        let residual = node.params.expr_opt("residual")?;
        let residual = residual
            .map(|e| Residual::new(e, &stream, &build, lowering.parameters, lowering.library))
            .transpose()?;
        Ok(Operator::Stream(Arc::new(JoinStream(Arc::new(Spec {
            kind: JoinKind::of(node, &[])?,
            comparisons: keys.comparisons,
            stream_encoders: encoders(&stream, &keys.left)?,
            build_encoders: encoders(&build, &keys.right)?,
            residual,
            stream,
            build,
        })))))
    }
}

/// The parameters.
#[derive(Debug)]
struct Spec {
    kind: JoinKind,
    comparisons: Vec<Comparison>,
    stream_encoders: Arc<[KeyEncoder]>,
    build_encoders: Arc<[KeyEncoder]>,
    residual: Option<Residual>,
    stream: Tuple,
    build: Tuple,
}

#[derive(Debug)]
struct JoinStream(Arc<Spec>);

/// The state that all workers share.
#[derive(Debug)]
struct Shared {
    spec: Arc<Spec>,
    side: Side,
    chunks: Arc<[(u64, SpillableChunk)]>,
    matched: Arc<MatchBitmap>,
    run: Run,
    _reservation: Reservation,
}

#[derive(Debug)]
struct JoinRun {
    shared: Arc<Shared>,
}

impl Stream for JoinStream {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let spec = self.0.clone();
        let side = sides.first().ok_or_else(|| Error::internal("a join without its side"))?;
        let (chunks, rows) = numbered_chunks(side)?;
        let marked = if spec.kind.marks_build() { rows } else { 0 };
        let mut reservation = Reservation::new(run.context.clone());
        reservation.grow(MatchBitmap::bytes(marked))?;
        run.context.begin_spillable_state();
        let shared = Shared {
            side: Side::new(&chunks, spec.build_encoders.clone(), &run.context),
            chunks: chunks.into(),
            matched: Arc::new(MatchBitmap::new(marked)),
            run: run.clone(),
            spec,
            _reservation: reservation,
        };
        Ok(Arc::new(JoinRun { shared: Arc::new(shared) }))
    }
}

impl StreamRun for JoinRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        self.worker_for_consumer(false)
    }

    fn worker_for_consumer(&self, accepts_lazy: bool) -> Result<Box<dyn StreamWorker>> {
        let Spec { stream, build, .. } = &*self.shared.spec;
        let may_be_lazy = Pairs::may_be_of(stream) && Pairs::may_be_of(build);
        Ok(Box::new(JoinWorker::new(self.shared.clone(), accepts_lazy && may_be_lazy)))
    }

    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let Shared { spec, chunks, matched, .. } = &*self.shared;
        let rest = || SideRest {
            kind: spec.kind,
            stream: spec.stream.clone(),
            chunks: chunks.clone(),
            matched: matched.clone(),
        };
        Ok(spec.kind.marks_build().then(|| Arc::new(rest()) as Arc<dyn SourceRun>))
    }
}
