//! `probe`: joins a stream of tuples with a hash table.

mod worker;

use std::sync::{Arc, OnceLock};

use tessera_context::{Reservation, Run};
use tessera_operator::stream_util::Packer;
use tessera_operator::{
    Lowering, Operator, SourceRun, Stream, StreamRun, StreamWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Candidates, Collected};
use tessera_state::join::{
    BuildRest, CompiledLookup, JoinKind, JoinTable, Lookup, LookupRequest, MatchBitmap, Pairs,
    Residual, SpilledStream,
};
use tessera_types::{Code, Error, Result, Tuple};
use tessera_vector::Column;

use super::build::{HASH_TABLE, TABLE_FIELD};
use super::probe_rounds::numbered;
use super::probe_spilled::SpilledJoin;
use worker::ProbeWorker;

/// `probe`: joins its stream `L` with the table of a `build` over `R`.
///
/// * Inputs: a side `<table: hash_table<R>>`, and `L`. Output by `join` as in
///   `docs/reference/sub-operators.md`, traits those of `L`. Promises no order. Does not block;
///   `right`, `full`, `build_semi` and `build_anti` yield tuples of `R` after the last of `L`.
/// * `keys`: fields of `L`, of the types of the table's keys, in their order.
/// * `residual`: a condition over the fields of `L` and `R` that a match must satisfy too.
/// * `null_aware` (with `anti` and `mark`): `NOT IN` and `IN`: a NULL on either side makes the
///   comparison unknown.
/// * Memory: a chunk per worker; where build tuples are marked, one bit for each. Tuples whose
///   partition of the table is spilled are spilled too, and joined last, partition by partition.
/// * Errors: `single` with a second match: "more than one row returned by a subquery".
/// * Source: Birler, Kemper, Neumann, VLDB 2024; Modularis §2.3.4 (BuildProbe).
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %l = values() {columns = <k: int64, a: string>, rows = [[1, 'x'], [2, 'y'], [4, 'z']]}
///      %table = build(%r) {keys = [j]}
///      %result = probe(%table, %l) {keys = [k], join = :left}",
/// );
/// assert_eq!(rows, ["1 x 1 one", "2 y 2 two", "2 y 2 due", "4 z NULL NULL"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Probe;

/// The bound parameters of a probe.
#[derive(Debug)]
pub(super) struct ProbeSpec {
    keys: Vec<usize>,
    kind: JoinKind,
    residual: Option<Arc<Residual>>,
    null_aware: bool,
    stream: Tuple,
    /// The compilation request, made by the first run.
    request: OnceLock<Option<Arc<LookupRequest>>>,
}

#[derive(Debug)]
struct ProbeStream {
    spec: Arc<ProbeSpec>,
}

#[derive(Debug)]
pub(super) struct ProbeRun {
    shared: Arc<Shared>,
}

/// State shared by the workers of a run.
#[derive(Debug)]
struct Shared {
    table: Arc<JoinTable>,
    spec: Arc<ProbeSpec>,
    compiled: Option<CompiledLookup>,
    matched: Arc<MatchBitmap>,
    run: Run,
    /// Stream tuples whose partitions of the table are spilled.
    spilled_stream: Option<Arc<SpilledStream>>,
    all: BuildTuples,
    _reservation: Reservation,
}

/// Numbers of build tuples, in memory and spilled.
#[derive(Debug, Clone, Copy)]
pub(super) struct BuildTuples {
    rows: u64,
    /// Tuples with NULL as their first key.
    null_keys: u64,
}

impl Descriptor for Probe {
    tessera_operator::describe!(
        "probe",
        "Joins a stream of tuples with a hash table.",
        ["keys", "join", "residual", "mark", "null_aware", "expected_rows"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = describe::edges(inputs)? else {
            return Err(Error::internal("a probe without two inputs"));
        };
        let (_, table) = describe::collection(&side.tuple, TABLE_FIELD, HASH_TABLE)?;
        let kind = JoinKind::of(node, &[])?;
        let names = node.params.names("keys")?;
        describe::keys(&stream.tuple, &names, "key")?;
        if names.is_empty() {
            return Err(Error::semantic("parameter keys must name at least one field"));
        }
        kind.check_null_aware(node)?;
        if let Some(residual) = node.params.expr_opt("residual")? {
            let both = stream.tuple.concat(&table.tuple);
            both.check()?;
            describe::predicate(residual, &both, inputs)
                .map_err(|error| error.context("parameter residual"))?;
        }
        if kind.marks_build() {
            describe::require_all(stream, 1)?;
        }
        let output = kind.output(&stream.tuple, &table.tuple, node)?;
        Ok(describe::passes(stream, output, Order::None))
    }

    fn check_producers(&self, node: &Node, producers: &[&Node], edges: &[&Edge]) -> Result<()> {
        let ([build, _], [side, stream]) = (producers, edges) else { return Ok(()) };
        if &*build.operator != "build" {
            // The type of a table from another plan is checked when the run starts.
            return Ok(());
        }
        let (_, table) = describe::collection(&side.tuple, TABLE_FIELD, HASH_TABLE)?;
        let mine = describe::keys(&stream.tuple, &node.params.names("keys")?, "key")?;
        let theirs = describe::keys(&table.tuple, &build.params.names("keys")?, "key")?;
        check_keys(&stream.tuple, &mine, &table.tuple, &theirs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

impl SubOperator for Probe {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (_, table) = describe::collection(&lowering.inputs[0].tuple, TABLE_FIELD, HASH_TABLE)?;
        let stream = lowering.inputs[1].tuple.clone();
        let residual = node.params.expr_opt("residual")?;
        let residual = residual
            .map(|e| Residual::new(e, &stream, &table.tuple, lowering.parameters, lowering.library))
            .transpose()?;
        let spec = ProbeSpec {
            keys: describe::keys(&stream, &node.params.names("keys")?, "key")?,
            kind: JoinKind::of(node, &[])?,
            residual: residual.map(Arc::new),
            null_aware: node.params.flag("null_aware")?,
            stream,
            request: OnceLock::new(),
        };
        Ok(Operator::Stream(Arc::new(ProbeStream { spec: Arc::new(spec) })))
    }
}

impl Stream for ProbeStream {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let side =
            sides.first().ok_or_else(|| Error::internal("a probe without a table"))?.single()?;
        let handle =
            side.stored().first().map(Column::handles).transpose()?.and_then(|h| h.first());
        let table =
            handle.ok_or_else(|| Error::internal("a probe without a table"))?.get::<JoinTable>()?;
        check_keys(&self.spec.stream, &self.spec.keys, table.tuple(), table.keys())?;
        Ok(Arc::new(ProbeRun::new(&self.spec, table, run, None)?))
    }
}

impl ProbeRun {
    /// Starts a probe of a table that has some or all of the build tuples counted by `all`.
    pub(super) fn new(
        spec: &Arc<ProbeSpec>,
        table: Arc<JoinTable>,
        run: &Run,
        all: Option<BuildTuples>,
    ) -> Result<ProbeRun> {
        let marked = if spec.kind.marks_build() { table.len() } else { 0 };
        let mut reservation = Reservation::new(run.context.clone());
        reservation.grow(MatchBitmap::bytes(marked))?;
        let spilled_stream = match table.spilled() {
            None => None,
            Some(spilled) => {
                if spec.null_aware && !spec.decides_by_counts() {
                    return Err(Error::new(
                        Code::Limit,
                        "NOT IN (or IN) over several columns needs all of its subquery in memory; \
                         raise it with --memory SIZE (or SET memory)",
                    ));
                }
                let spilled_stream = SpilledStream::new(
                    table.build(),
                    spilled,
                    (&spec.stream, &spec.keys, spec.kind),
                    run,
                )?;
                run.counters
                    .add("spilled_partitions", u64::from(spilled.spilled_mask().count_ones()));
                Some(Arc::new(spilled_stream))
            }
        };
        let all = match all {
            Some(all) => all,
            None if spec.null_aware => BuildTuples {
                rows: table.len() as u64 + table.spilled().map_or(0, |spilled| spilled.rows()),
                null_keys: table.rows_with_null_keys()?.len() as u64
                    + table.spilled().map_or(0, |spilled| spilled.null_key_rows()),
            },
            None => BuildTuples { rows: 0, null_keys: 0 },
        };
        let request = || LookupRequest::new(&table, &spec.stream, &spec.keys).map(Arc::new);
        let request = spec.request.get_or_init(request).as_ref().filter(|_| !spec.null_aware);
        let compiled = request.and_then(|request| CompiledLookup::start(request, &table, run));
        let (spec, run, matched) = (spec.clone(), run.clone(), Arc::new(MatchBitmap::new(marked)));
        let shared = Shared {
            table,
            spec,
            compiled,
            matched,
            run,
            spilled_stream,
            all,
            _reservation: reservation,
        };
        Ok(ProbeRun { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Returns whether pairs can be yielded as row numbers: every pair has a build row.
    fn may_be_lazy(&self) -> bool {
        self.spec.kind == JoinKind::Inner
            && Pairs::may_be_of(&self.spec.stream)
            && Pairs::may_be_of(self.table.tuple())
    }
}

impl ProbeSpec {
    /// The kind of the join.
    pub(super) fn kind(&self) -> JoinKind {
        self.kind
    }

    /// The tuple type of the stream.
    pub(super) fn stream(&self) -> &Tuple {
        &self.stream
    }

    /// Returns these parameters with another kind of join.
    pub(super) fn of_kind(&self, kind: JoinKind) -> Arc<ProbeSpec> {
        self.with(kind, self.stream.clone())
    }

    /// Returns these parameters for stream tuples that carry their numbers.
    pub(super) fn numbered(&self, kind: JoinKind) -> Arc<ProbeSpec> {
        self.with(kind, numbered(&self.stream))
    }

    fn with(&self, kind: JoinKind, stream: Tuple) -> Arc<ProbeSpec> {
        let (keys, residual) = (self.keys.clone(), self.residual.clone());
        Arc::new(ProbeSpec {
            keys,
            kind,
            residual,
            null_aware: false,
            stream,
            request: OnceLock::new(),
        })
    }

    /// Returns whether the numbers of build tuples and of NULL keys decide if a match is unknown.
    fn decides_by_counts(&self) -> bool {
        self.keys.len() == 1 && self.residual.is_none()
    }
}

/// Checks that both sides' keys have the same types; the planner inserts casts.
fn check_keys(stream: &Tuple, mine: &[usize], build: &Tuple, theirs: &[usize]) -> Result<()> {
    if mine.len() != theirs.len() {
        return Err(Error::semantic(format!(
            "probe has {} keys and its build {}; name as many on both sides",
            mine.len(),
            theirs.len()
        )));
    }
    describe::same_types(("probe's key", stream, mine), ("its build's key", build, theirs))
}

impl StreamRun for ProbeRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        self.worker_for_consumer(false)
    }

    fn worker_for_consumer(&self, accepts_lazy: bool) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(ProbeWorker {
            shared: self.shared.clone(),
            lazy: accepts_lazy && self.shared.may_be_lazy(),
            input: None,
            lookup: Lookup::default(),
            pairs: Candidates::default(),
            found: Vec::new(),
            first: true,
            packer: Packer::new(self.shared.run.context.chunk_rows()),
        }))
    }

    fn accepts_lazy(&self) -> bool {
        self.shared.compiled.is_some()
    }

    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let shared = &self.shared;
        let rest = || BuildRest {
            table: shared.table.clone(),
            matched: shared.matched.clone(),
            wanted: shared.spec.kind == JoinKind::BuildSemi,
            stream: shared.spec.kind.yields_pairs().then(|| shared.spec.stream.clone()),
            run: shared.run.clone(),
        };
        let rest = shared.spec.kind.marks_build().then(|| Arc::new(rest()) as Arc<dyn SourceRun>);
        Ok(match &shared.spilled_stream {
            None => rest,
            Some(spilled_stream) => {
                let tuples = (shared.all, shared.table.len());
                Some(SpilledJoin::source(rest, &shared.spec, spilled_stream, tuples, &shared.run))
            }
        })
    }
}
