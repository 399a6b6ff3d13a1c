//! Probe: a stream of tuples joined with a hash table.

use std::sync::{Arc, OnceLock};

use arrow::array::BooleanArray;
use arrow::buffer::{BooleanBuffer, NullBuffer};

use tessera_context::{Reservation, Run};
use tessera_operator::stream_util::Packer;
use tessera_operator::{
    Lowering, Operator, SourceRun, Step, Stream, StreamRun, StreamWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Candidates, Collected, NO_ROW};
use tessera_state::join::{
    AskedLookup, Away, BuildRest, CompiledLookup, JoinKind, JoinTable, Lookup, Matched, Pairs,
    Residual, pairs_chunk, select_positions,
};
use tessera_types::{Code, Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::build::{HASH_TABLE, TABLE_FIELD};
use super::probe_rounds::numbered;
use super::probe_spilled::SpilledJoin;

/// `probe`: joins its stream `L` with the table of a `build` over `R`.
///
/// * Inputs: a side `<table: hash_table<R>>`, and `L`. Output by `join` as in
///   `docs/sub-operators.md`, traits those of `L`. Promises no order. Does not block; `right`,
///   `full`, `build_semi` and `build_anti` yield tuples of `R` after the last of `L`.
/// * `keys`: fields of `L`, of the types of the table's keys, in their order.
/// * `residual`: a condition over the fields of `L` and `R` that a match must satisfy too.
/// * `null_aware` (with `anti` and `mark`): `NOT IN` and `IN`: a NULL on either side makes the
///   comparison unknown.
/// * Memory: for each worker a chunk's worth; where build tuples are marked, one bit for each.
///   Tuples of partitions of the table that have left memory leave too, and are joined last,
///   partition by partition.
/// * Errors: `single` with a second match: "more than one row returned by a subquery".
/// * Source: Birler, Kemper, Neumann, VLDB 2024; Modularis §3 (Build and Probe).
#[derive(Debug, Clone, Copy)]
pub struct Probe;

/// How tuples are joined.
#[derive(Debug)]
pub(super) struct How {
    keys: Vec<usize>,
    kind: JoinKind,
    residual: Option<Arc<Residual>>,
    null_aware: bool,
    stream: Tuple,
    /// What was asked of a compiler, by the first run.
    asked: OnceLock<Option<Arc<AskedLookup>>>,
}

#[derive(Debug)]
struct ProbeStream {
    how: Arc<How>,
}

#[derive(Debug)]
pub(super) struct ProbeRun {
    shared: Arc<Shared>,
}

/// What the workers of a run share.
#[derive(Debug)]
struct Shared {
    table: Arc<JoinTable>,
    how: Arc<How>,
    compiled: Option<CompiledLookup>,
    matched: Arc<Matched>,
    run: Run,
    /// Tuples whose partitions of the table are not in memory.
    away: Option<Arc<Away>>,
    all: BuildTuples,
    _reservation: Reservation,
}

/// The tuples of a build, in memory and out of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BuildTuples {
    rows: u64,
    /// Those with NULL as their first key.
    null_keys: u64,
}

struct ProbeWorker {
    shared: Arc<Shared>,
    input: Option<Chunk>,
    lookup: Lookup,
    pairs: Candidates,
    /// Whether each tuple of the input has found a match.
    found: Vec<bool>,
    first: bool,
    /// Whether pairs are yielded by number.
    lying: bool,
    packer: Packer,
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
            describe::wants_all(stream, 1)?;
        }
        let output = kind.output(&stream.tuple, &table.tuple, node)?;
        Ok(describe::passes(stream, output, Order::None))
    }

    fn check_producers(&self, node: &Node, producers: &[&Node], edges: &[&Edge]) -> Result<()> {
        let ([build, _], [side, stream]) = (producers, edges) else { return Ok(()) };
        if &*build.operator != "build" {
            // A table from elsewhere is checked when it is there.
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
        let how = How {
            keys: describe::keys(&stream, &node.params.names("keys")?, "key")?,
            kind: JoinKind::of(node, &[])?,
            residual: residual.map(Arc::new),
            null_aware: node.params.flag("null_aware")?,
            stream,
            asked: OnceLock::new(),
        };
        Ok(Operator::Stream(Arc::new(ProbeStream { how: Arc::new(how) })))
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
        check_keys(&self.how.stream, &self.how.keys, table.tuple(), table.keys())?;
        Ok(Arc::new(ProbeRun::new(&self.how, table, run, None)?))
    }
}

impl ProbeRun {
    /// A run over a table, which is a part of `all`, or all there is.
    pub(super) fn new(
        how: &Arc<How>,
        table: Arc<JoinTable>,
        run: &Run,
        all: Option<BuildTuples>,
    ) -> Result<ProbeRun> {
        let marked = if how.kind.marks_build() { table.len() } else { 0 };
        let mut reservation = Reservation::new(run.context.clone());
        reservation.grow(Matched::bytes(marked))?;
        let away = match table.spilled() {
            None => None,
            Some(spilled) => {
                if how.null_aware && !how.decides_by_counts() {
                    return Err(Error::new(
                        Code::Limit,
                        "NOT IN (or IN) over several columns needs all of its subquery in memory; \
                         raise it with --memory SIZE (or SET memory)",
                    ));
                }
                let away =
                    Away::new(table.build(), spilled, (&how.stream, &how.keys, how.kind), run)?;
                run.counters.add("spilled_partitions", u64::from(spilled.gone().count_ones()));
                Some(Arc::new(away))
            }
        };
        let all = match all {
            Some(all) => all,
            None if how.null_aware => BuildTuples {
                rows: table.len() as u64 + table.spilled().map_or(0, |spilled| spilled.rows()),
                null_keys: table.rows_with_null_keys()?.len() as u64
                    + table.spilled().map_or(0, |spilled| spilled.null_key_rows()),
            },
            None => BuildTuples { rows: 0, null_keys: 0 },
        };
        let asked = || AskedLookup::new(&table, &how.stream, &how.keys).map(Arc::new);
        let asked = how.asked.get_or_init(asked).as_ref().filter(|_| !how.null_aware);
        let compiled = asked.and_then(|asked| CompiledLookup::start(asked, &table, run));
        let (how, run, matched) = (how.clone(), run.clone(), Arc::new(Matched::new(marked)));
        let shared =
            Shared { table, how, compiled, matched, run, away, all, _reservation: reservation };
        Ok(ProbeRun { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Whether pairs can be yielded by number: all of them have a row.
    fn may_lie(&self) -> bool {
        self.how.kind == JoinKind::Inner
            && Pairs::may_be_of(&self.how.stream)
            && Pairs::may_be_of(self.table.tuple())
    }
}

impl How {
    /// What is yielded.
    pub(super) fn kind(&self) -> JoinKind {
        self.kind
    }

    /// The tuple of the stream.
    pub(super) fn stream(&self) -> &Tuple {
        &self.stream
    }

    /// The same tuples joined to yield another thing.
    pub(super) fn of_kind(&self, kind: JoinKind) -> Arc<How> {
        self.with(kind, self.stream.clone())
    }

    /// The same for stream tuples that carry their numbers.
    pub(super) fn numbered(&self, kind: JoinKind) -> Arc<How> {
        self.with(kind, numbered(&self.stream))
    }

    fn with(&self, kind: JoinKind, stream: Tuple) -> Arc<How> {
        let (keys, residual) = (self.keys.clone(), self.residual.clone());
        Arc::new(How { keys, kind, residual, null_aware: false, stream, asked: OnceLock::new() })
    }

    /// Whether the number of build tuples, and of NULLs among their keys, decides what NULL makes
    /// unknown.
    fn decides_by_counts(&self) -> bool {
        self.keys.len() == 1 && self.residual.is_none()
    }
}

/// Both sides' keys must have the same types: the maker of the plan casts.
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
        self.worker_before(false)
    }

    fn worker_before(&self, reads_lying: bool) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(ProbeWorker {
            shared: self.shared.clone(),
            lying: reads_lying && self.shared.may_lie(),
            input: None,
            lookup: Lookup::default(),
            pairs: Candidates::default(),
            found: Vec::new(),
            first: true,
            packer: Packer::new(self.shared.run.context.chunk_rows()),
        }))
    }

    fn reads_lying(&self) -> bool {
        self.shared.compiled.is_some()
    }

    fn rest(&self) -> Result<Option<Arc<dyn SourceRun>>> {
        let shared = &self.shared;
        let rest = || BuildRest {
            table: shared.table.clone(),
            matched: shared.matched.clone(),
            wanted: shared.how.kind == JoinKind::BuildSemi,
            stream: shared.how.kind.yields_pairs().then(|| shared.how.stream.clone()),
            run: shared.run.clone(),
        };
        let rest = shared.how.kind.marks_build().then(|| Arc::new(rest()) as Arc<dyn SourceRun>);
        Ok(match &shared.away {
            None => rest,
            Some(away) => {
                let tuples = (shared.all, shared.table.len());
                Some(SpilledJoin::source(rest, &shared.how, away, tuples, &shared.run))
            }
        })
    }
}

impl StreamWorker for ProbeWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let stays = match &self.shared.away {
            None => Some(chunk),
            Some(away) => away.put(chunk)?,
        };
        let Some(chunk) = stays else { return Ok(()) };
        let Shared { table, how, compiled, .. } = &*self.shared;
        table.lookup(&chunk, &how.keys, compiled.as_ref(), &mut self.lookup)?;
        self.found.clear();
        self.found.resize(chunk.rows(), false);
        self.first = true;
        self.input = Some(chunk);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.packer.pop() {
            return Ok(Step::HasOutput(chunk));
        }
        let Some(input) = self.input.take() else { return Ok(Step::NeedInput) };
        self.shared.run.context.check()?;
        let more = match self.shared.how.kind {
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => self.decide(&input)?,
            JoinKind::BuildSemi | JoinKind::BuildAnti => self.mark_build(&input)?,
            _ => self.pair(&input)?,
        };
        self.input = more.then_some(input);
        Ok(self
            .packer
            .pop()
            .map_or(if more { Step::Again } else { Step::NeedInput }, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

impl ProbeWorker {
    fn limit(&self) -> usize {
        self.shared.run.context.chunk_rows()
    }

    fn retain_residual(&mut self, input: &Chunk) -> Result<()> {
        match &self.shared.how.residual {
            Some(residual) => {
                residual.retain(input, &*self.shared.table, &mut self.pairs, &self.shared.run)
            }
            None => Ok(()),
        }
    }

    /// One batch of pairs; gives whether the input has more to yield.
    fn pair(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        let limit = self.limit();
        shared.table.next_pairs(&mut self.lookup, limit, &mut self.pairs)?;
        self.retain_residual(input)?;
        if shared.how.kind.marks_build() {
            self.pairs.rows.iter().for_each(|row| shared.matched.set(*row));
        }
        let (first, done) = (std::mem::replace(&mut self.first, false), self.lookup.is_done());
        if !shared.how.kind.keeps_stream() {
            self.yield_pairs(input)?;
            return Ok(!done);
        }
        let mut repeated = false;
        for position in &self.pairs.positions {
            repeated |= std::mem::replace(&mut self.found[*position as usize], true);
        }
        shared.how.kind.check_repeated(repeated)?;
        if first && done && !repeated {
            // Every tuple of the input stands once in the output: all in order, in one chunk.
            let mut rows = vec![NO_ROW; input.rows()];
            let pairs = self.pairs.positions.iter().zip(&self.pairs.rows);
            pairs.for_each(|(position, row)| rows[*position as usize] = *row);
            self.pairs.rows = rows;
            self.pairs.positions = (0..input.rows() as u32).collect();
            self.yield_pairs(input)?;
            return Ok(false);
        }
        self.yield_pairs(input)?;
        if done {
            self.pairs.clear();
            for (position, _) in self.found.iter().enumerate().filter(|(_, found)| !**found) {
                self.pairs.push(NO_ROW, position as u32);
            }
            self.yield_pairs(input)?;
        }
        Ok(!done)
    }

    fn yield_pairs(&mut self, input: &Chunk) -> Result<()> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let table = &self.shared.table;
        self.packer.push(match self.lying {
            true => Pairs::chunk(input, table, std::mem::take(&mut self.pairs)),
            false => pairs_chunk(input, &**table, &self.pairs)?,
        })
    }

    /// One batch of pairs whose build tuples are marked.
    fn mark_build(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        let limit = self.limit();
        shared.table.next_pairs(&mut self.lookup, limit, &mut self.pairs)?;
        if shared.how.residual.is_some() {
            self.pairs.retain(|row, _| !shared.matched.get(row));
            self.retain_residual(input)?;
        }
        self.pairs.rows.iter().for_each(|row| shared.matched.set(*row));
        Ok(!self.lookup.is_done())
    }

    /// One round of pairs; after the last one, which tuples have a match, and what follows from
    /// that.
    fn decide(&mut self, input: &Chunk) -> Result<bool> {
        let shared = self.shared.clone();
        if !self.lookup.is_exhausted() {
            let limit = self.limit();
            let found = &self.found;
            shared.table.next_round(
                &mut self.lookup,
                limit,
                |position| !found[position as usize],
                &mut self.pairs,
            )?;
            self.retain_residual(input)?;
            self.pairs.positions.iter().for_each(|position| self.found[*position as usize] = true);
            if !self.lookup.is_exhausted() {
                return Ok(true);
            }
        }
        let unknown = if shared.how.null_aware { self.unknown(input)? } else { Vec::new() };
        let is_unknown = |position: usize| unknown.get(position).copied().unwrap_or(false);
        if shared.how.kind == JoinKind::Mark {
            return self.yield_marks(input, is_unknown).map(|()| false);
        }
        let wanted = shared.how.kind == JoinKind::Semi;
        let positions: Vec<u32> = (0..input.rows())
            .filter(|position| self.found[*position] == wanted && !is_unknown(*position))
            .map(|position| position as u32)
            .collect();
        if !positions.is_empty() {
            self.packer.push(select_positions(input, &positions))?;
        }
        Ok(false)
    }

    fn yield_marks(&mut self, input: &Chunk, is_unknown: impl Fn(usize) -> bool) -> Result<()> {
        let mut marks = vec![(false, true); input.rows_stored()];
        for (position, found) in self.found.iter().enumerate() {
            let place = match input.selection() {
                None => position,
                Some(selection) => selection.value(position) as usize,
            };
            marks[place] = (*found, *found || !is_unknown(position));
        }
        let bits = BooleanBuffer::collect_bool(marks.len(), |place| marks[place].0);
        let nulls =
            NullBuffer::new(BooleanBuffer::collect_bool(marks.len(), |place| marks[place].1));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let mut columns = input.stored().to_vec();
        columns.push(Column::Plain(Arc::new(BooleanArray::new(bits, nulls))));
        self.packer.push(input.with_stored(columns))
    }

    /// For each tuple without a match, whether a NULL on either side leaves that unknown: whether
    /// there is a build tuple that satisfies the residual and whose keys, NULL taken as anything,
    /// equal the tuple's.
    fn unknown(&mut self, input: &Chunk) -> Result<Vec<bool>> {
        let shared = self.shared.clone();
        let table = &shared.table;
        let (single, limit) = (shared.how.decides_by_counts(), self.limit());
        let null_rows = if single { &[] } else { table.rows_with_null_keys()? };
        let mut unknown = vec![false; input.rows()];
        self.pairs.clear();
        for position in 0..input.rows() {
            if self.found[position] {
                continue;
            }
            let null_key = self.lookup.has_null_key(position as u32);
            if single {
                unknown[position] =
                    if null_key { shared.all.rows } else { shared.all.null_keys } > 0;
                continue;
            }
            let candidates = if null_key { table.len() } else { null_rows.len() };
            for row in (0..candidates).map(|i| if null_key { i as u64 } else { null_rows[i] }) {
                self.pairs.push(row, position as u32);
                if self.pairs.len() == limit {
                    self.settle(input, &mut unknown)?;
                    if unknown[position] {
                        break;
                    }
                }
            }
        }
        self.settle(input, &mut unknown)?;
        Ok(unknown)
    }

    /// Decides the pairs gathered so far for [`ProbeWorker::unknown`].
    fn settle(&mut self, input: &Chunk, unknown: &mut [bool]) -> Result<()> {
        self.shared.run.context.check()?;
        let table = self.shared.table.clone();
        table.retain_not_unequal(&self.lookup, &mut self.pairs)?;
        self.retain_residual(input)?;
        self.pairs.positions.iter().for_each(|position| unknown[*position as usize] = true);
        self.pairs.clear();
        Ok(())
    }
}
