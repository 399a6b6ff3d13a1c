//! The sink that groups: worker-local tables, partitions, and the merge when the output is read.

use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::{ChunksReader, chunks_source};
use tessera_operator::{
    Finish, Lowering, Reader, Sink, SinkRun, SinkWorker, SourceRun, Step, Task, downcast_workers,
};
use tessera_plan::Edge;
use tessera_rows::Collected;
use tessera_rows::spill::{PARTITIONS, partition_of, spillable};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::compiled::{AskedGroups, GroupFinder};
use super::filling::Filling;
use super::keys::KeyLayout;
use super::spilled::{Part, SpilledGroups, SpilledReader};
use super::store::Store;
use super::table::{Hits, Table};
use crate::aggregate::{Call, Compiled, Program};

/// Rows of a partition that are merged at once.
const MERGE_ROWS: usize = 2_048;

/// Workers' tables up to this many bytes together are merged by one worker, larger ones by
/// partitions.
const MERGE_BYTES_MAX: usize = 1 << 20;

/// A store of a partition that has this many groups is full.
const STORE_GROUPS_FULL: usize = 128;

/// Fewer bytes of a partition than this part of the budget are not worth a block of the scratch
/// file.
const SPILL_SHARE: usize = 2_048;
const SPILL_BYTES_MIN: usize = 1 << 10;
const SPILL_BYTES_MAX: usize = 16 << 10;

/// A table that is believed to hold all groups may have so many bytes: that costs less than to
/// merge it. CPU seconds of TPC-H 13 (SF 1, 2 workers, Xeon, 2 MiB of cache of each core): 0.16
/// where it is merged, 0.13 where not.
pub(super) const WHOLE_TABLE_BYTES_MAX: usize = 16 << 20;

/// Sizes that tests make small.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of slots, records and strings of a worker's table. CPU seconds of TPC-H 17, 18 and 20
    /// (SF 1, 2 workers, Zen, 32 MiB of shared cache): 2.0 at 1 MiB, 1.5 at 4 MiB, 2.1 at 24 MiB.
    pub table_bytes_max: usize,
    /// The bits of the hash that are used.
    pub hash_mask: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { table_bytes_max: 4 << 20, hash_mask: u64::MAX }
    }
}

/// Groups tuples by keys and aggregates each group: keys, then aggregates.
#[derive(Debug, Clone)]
pub struct Grouping {
    pub(super) inner: Arc<Spec>,
}

#[derive(Debug)]
pub(super) struct Spec {
    /// The fields that are read, of which the first ones are the keys.
    pub(super) inputs: Vec<usize>,
    /// The tuple of those fields.
    pub(super) tuple: Tuple,
    pub(super) keys: usize,
    pub(super) layout: Arc<KeyLayout>,
    pub(super) program: Arc<Program>,
    pub(super) limits: Limits,
    /// How many groups are believed to come, where a table can hold all of them.
    pub(super) expected: Option<usize>,
    asked: AskedGroups,
}

impl Spec {
    /// Who finds and makes groups by compiled code in a run.
    pub(super) fn finder(&self, run: &Run) -> Option<Arc<GroupFinder>> {
        let of = (&self.tuple, &*self.layout, self.program.stride());
        GroupFinder::start(&self.asked, of, !self.program.is_empty(), run)
    }

    /// The compiled code of the states in a run.
    pub(super) fn compiled(&self, run: &Run) -> Option<Arc<Compiled>> {
        if self.program.is_empty() {
            return None;
        }
        Compiled::start(&self.program, self.inputs.len(), true, run)
    }
}

impl Grouping {
    /// Binds keys and aggregates; `output` has the keys' fields, then the aggregates'. `expected`
    /// is how many groups are believed to come.
    ///
    /// # Errors
    /// A key or an aggregate that cannot be run.
    pub fn bind(
        keys: &[usize],
        calls: &[Call],
        lowering: &Lowering<'_>,
        (limits, expected): (Limits, Option<u64>),
    ) -> Result<Grouping> {
        let edge: &Edge =
            lowering.inputs.first().ok_or_else(|| Error::internal("grouping without input"))?;
        let outputs = lowering.output.tuple.fields().get(keys.len()..).unwrap_or_default();
        let (inputs, tuple) = needed(keys, calls, &edge.tuple);
        let types = tuple.fields()[..keys.len()]
            .iter()
            .map(|field| {
                let atom =
                    field.atom().ok_or_else(|| Error::internal("a key that holds a collection"))?;
                Ok(atom.arrow())
            })
            .collect::<Result<Vec<_>>>()?;
        let layout = Arc::new(KeyLayout::new(&types, limits.hash_mask)?);
        let program = Program::bind(
            calls,
            outputs,
            &tuple,
            lowering.parameters,
            lowering.library,
            layout.words(),
        )?;
        let (keys, program) = (keys.len(), Arc::new(program));
        let fits =
            |groups: &usize| Table::bytes_for(*groups, program.stride()) <= WHOLE_TABLE_BYTES_MAX;
        let expected = expected.map(|groups| groups as usize).filter(fits);
        let asked = AskedGroups::new();
        let spec = Spec { inputs, tuple, keys, layout, program, limits, expected, asked };
        Ok(Grouping { inner: Arc::new(spec) })
    }
}

/// The fields that keys and aggregates read: their positions, and the tuple of them. The keys come
/// first, in their order.
pub fn needed(keys: &[usize], calls: &[Call], tuple: &Tuple) -> (Vec<usize>, Tuple) {
    let mut inputs = keys.to_vec();
    let mut names: Vec<Arc<str>> = Vec::new();
    for call in calls {
        let exprs = call.args.iter().chain(&call.filter);
        names.extend(exprs.flat_map(|expr| expr.fields()));
        names.extend(call.order_by.iter().map(|key| key.field.clone()));
    }
    for name in names {
        if let Some(index) = tuple.index_of(&name)
            && !inputs.contains(&index)
        {
            inputs.push(index);
        }
    }
    let fields: Vec<Field> = inputs.iter().map(|&index| tuple.fields()[index].clone()).collect();
    (inputs, Tuple::new(fields))
}

impl Sink for Grouping {
    fn spills(&self) -> bool {
        self.inner.program.is_flat() || spillable(&self.inner.tuple)
    }

    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let spilled = Arc::new(SpilledGroups::new(run, &self.inner)?);
        if self.spills() {
            run.context.state_begins();
        }
        let spec = self.inner.clone();
        let (compiled, finder) = (spec.compiled(run), spec.finder(run));
        Ok(Arc::new(GroupingRun { spec, compiled, finder, run: run.clone(), spilled }))
    }
}

#[derive(Debug)]
struct GroupingRun {
    spec: Arc<Spec>,
    compiled: Option<Arc<Compiled>>,
    finder: Option<Arc<GroupFinder>>,
    run: Run,
    spilled: Arc<SpilledGroups>,
}

#[derive(Debug)]
struct GroupingWorker {
    run: Run,
    filling: Filling,
    spilled: Arc<SpilledGroups>,
    partitions: Vec<Vec<Store>>,
    partition_bytes: usize,
    reservation: Reservation,
    flushes: usize,
}

impl SinkRun for GroupingRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(GroupingWorker {
            run: self.run.clone(),
            spilled: self.spilled.clone(),
            filling: Filling::new(&self.spec, &self.run)?.compiled(&self.compiled, &self.finder),
            partitions: Vec::new(),
            partition_bytes: 0,
            reservation: Reservation::new(self.run.context.clone()),
            flushes: 0,
        }))
    }

    fn reads_lying(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.reads_lying())
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut workers = downcast_workers::<GroupingWorker>(workers)?;
        workers.retain(|worker| worker.filling.table.store.groups() > 0 || worker.flushes > 0);
        let chunk_rows = self.run.context.chunk_rows();
        let groups: usize = workers.iter().map(|worker| worker.filling.table.store.groups()).sum();
        let flushed: usize = workers.iter().map(|worker| worker.flushes).sum();
        self.run.counters.add("flushes", flushed as u64);
        let bytes: usize = workers.iter().map(|worker| worker.filling.table.table_bytes()).sum();
        let small =
            bytes <= self.spec.limits.table_bytes_max.min(MERGE_BYTES_MAX) || workers.len() <= 1;
        let small = small && !self.spilled.has_raw();
        if flushed == 0 && small && workers.iter().all(|worker| worker.filling.distinct) {
            workers.sort_by_key(|worker| std::cmp::Reverse(worker.filling.table.store.groups()));
            let mut workers = workers.into_iter();
            let Some(mut first) = workers.next() else {
                return Ok(Finish {
                    tasks: Vec::new(),
                    output: chunks_source(Vec::new(), chunk_rows),
                });
            };
            for mut other in workers {
                merge_into(&self.spec, &mut first.filling.table, &mut other.filling.table.store)?;
            }
            self.run.counters.add("groups", first.filling.table.store.groups() as u64);
            let reservation = Mutex::new(vec![first.reservation]);
            let parts = vec![Mutex::new(vec![first.filling.table.store])];
            let (spec, run, spilled) = (self.spec.clone(), self.run.clone(), self.spilled.clone());
            let order = OnceLock::new();
            let output = Partitions { spec, run, parts, reservation, spilled, order };
            return Ok(Finish { tasks: Vec::new(), output: Arc::new(output) });
        }
        self.run.counters.add("groups_before_merge", groups as u64);
        let output = Arc::new(Partitions {
            spec: self.spec.clone(),
            run: self.run.clone(),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            reservation: Mutex::default(),
            spilled: self.spilled.clone(),
            order: OnceLock::new(),
        });
        let task = |mut worker: GroupingWorker| {
            let output = output.clone();
            let task: Task = Box::new(move || {
                worker.flush()?;
                worker.account()?;
                worker.make_room()?;
                for (part, stores) in output.parts.iter().zip(worker.partitions) {
                    lock(part).extend(stores);
                }
                let mut held = lock(&output.reservation);
                held.push(worker.reservation);
                Ok(())
            });
            task
        };
        let tasks = workers.into_iter().map(task).collect();
        Ok(Finish { tasks, output })
    }
}

/// Merges all groups of a store into a table.
pub(super) fn merge_into(spec: &Spec, table: &mut Table, other: &mut Store) -> Result<()> {
    other.seal()?;
    let flat = spec.program.is_flat();
    let mut hits = Hits::default();
    let rows = other.groups();
    for from in (0..rows).step_by(MERGE_ROWS) {
        let to = (from + MERGE_ROWS).min(rows);
        hits.into.clear();
        hits.rows.clear();
        if flat {
            table.absorb(other, from, to, &mut hits)?;
        } else {
            table.assign(other, from, to, &mut hits.into)?;
            hits.rows.extend(from as u32..to as u32);
        }
        table.store.merge_states(&hits.into, other, &hits.rows)?;
    }
    Ok(())
}

impl SinkWorker for GroupingWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.filling.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if self.leaves(&chunk)? {
            return Ok(());
        }
        self.filling.take(&chunk)?;
        if self.filling.is_full() {
            self.flush()?;
        }
        self.account()
    }
}

impl GroupingWorker {
    /// Counts the memory that is held; where that is more than there may be, partitions leave.
    fn account(&mut self) -> Result<()> {
        let before = self.reservation.bytes();
        let mut bytes = self.filling.memory() + self.partition_bytes;
        if bytes > before && self.filling.spec.program.is_flat() {
            let fits = |worker: &Self, bytes: usize| {
                let held = worker.spilled.held_bytes();
                worker.run.context.may_hold(held, bytes.saturating_sub(before))
            };
            if !fits(self, bytes) {
                self.flush()?;
                while bytes > before && !fits(self, bytes) && self.spill_one()? {
                    bytes = self.filling.memory() + self.partition_bytes;
                }
            }
        }
        if bytes != before {
            self.reservation.resize(bytes)?;
            self.spilled.holds(before, bytes);
        }
        Ok(())
    }

    /// Where partitions have left, the room is left that merging them takes, but half of it at
    /// most: more leave.
    fn make_room(&mut self) -> Result<()> {
        while self.spilled.has_any() {
            let held = self.spilled.held_bytes();
            if self.run.context.may_hold(held, self.spilled.merging_bytes().min(held))
                || !self.spill_one()?
            {
                break;
            }
            self.account()?;
        }
        Ok(())
    }

    /// Whether the tuples of a chunk leave memory as they are: where states cannot be written, and
    /// there is no room for more.
    fn leaves(&mut self, chunk: &Chunk) -> Result<bool> {
        let spilled = self.spilled.clone();
        let Some(raw) = &spilled.raw else { return Ok(false) };
        // What is in memory stays there until its partition is read: half of the room is left for
        // the groups that come then.
        let more = chunk.value_bytes() + spilled.held_bytes();
        if !spilled.has_raw() && self.run.context.may_hold(spilled.held_bytes(), more) {
            return Ok(false);
        }
        spilled.begin_raw();
        let needed = self.filling.needed(chunk)?;
        let position = self.filling.pass_by(needed.rows());
        raw.put(&needed, self.filling.spec.keys, &self.filling.spec.layout, position)?;
        Ok(true)
    }

    /// The largest partition leaves, rather one of which groups have left before; whether there was
    /// one worth it.
    fn spill_one(&mut self) -> Result<bool> {
        let bytes = |stores: &Vec<Store>| stores.iter().map(Store::memory).sum::<usize>();
        let sizes = self.partitions.iter().map(bytes).enumerate();
        let least = self.run.context.memory_bytes() / SPILL_SHARE;
        let worth =
            sizes.filter(|(_, bytes)| *bytes >= least.clamp(SPILL_BYTES_MIN, SPILL_BYTES_MAX));
        let Some((partition, bytes)) =
            worth.max_by_key(|(at, bytes)| (self.spilled.has(*at), *bytes))
        else {
            return Ok(false);
        };
        let stores = std::mem::take(&mut self.partitions[partition]);
        self.spilled.write(partition, &stores)?;
        self.partition_bytes -= bytes.min(self.partition_bytes);
        Ok(true)
    }

    /// Moves all groups to their partitions.
    fn flush(&mut self) -> Result<()> {
        let (spec, store) = (self.filling.spec.clone(), &mut self.filling.table.store);
        let groups = store.groups();
        if groups == 0 {
            return Ok(());
        }
        store.seal()?;
        if self.partitions.is_empty() {
            self.partitions.resize_with(PARTITIONS, Vec::new);
        }
        let mut rows: Vec<Vec<u32>> =
            (0..PARTITIONS).map(|_| Vec::with_capacity(groups / PARTITIONS * 2)).collect();
        for group in 0..groups {
            rows[partition_of(store.area.record(group)[0])].push(group as u32);
        }
        for (stores, rows) in self.partitions.iter_mut().zip(&rows) {
            if rows.is_empty() {
                continue;
            }
            // A full store would have to be moved to grow: the next rows get a store of their own.
            if stores.last().is_none_or(|last| last.groups() >= STORE_GROUPS_FULL) {
                stores.push(Store::new(spec.layout.clone(), spec.program.clone())?);
            }
            if let Some(last) = stores.last_mut() {
                let before = last.memory();
                last.append(store, rows)?;
                self.partition_bytes += last.memory().saturating_sub(before);
            }
        }
        self.filling.restart()?;
        self.flushes += 1;
        Ok(())
    }
}

/// The output: each partition a morsel, merged when it is opened.
#[derive(Debug)]
struct Partitions {
    spec: Arc<Spec>,
    run: Run,
    parts: Vec<Mutex<Vec<Store>>>,
    /// What the workers reserved for the parts.
    reservation: Mutex<Vec<Reservation>>,
    /// What has left memory.
    spilled: Arc<SpilledGroups>,
    /// The parts in the order in which they are read.
    order: OnceLock<Vec<usize>>,
}

impl Partitions {
    /// Which part is read at a place of the order: first those that are in memory, to make room for
    /// the others.
    fn part(&self, morsel: usize) -> Result<usize> {
        let by_place = || {
            let mut order: Vec<usize> = (0..self.parts.len()).collect();
            order.sort_by_key(|part| self.spilled.has(*part));
            self.spilled.keep_room();
            order
        };
        let part = self.order.get_or_init(by_place).get(morsel);
        part.copied().ok_or_else(|| Error::internal("a morsel that does not exist"))
    }

    /// Gives back what was reserved for parts that are gone.
    fn release(&self, mut bytes: usize) -> Result<()> {
        let mut held = lock(&self.reservation);
        for reservation in held.iter_mut() {
            let part = reservation.bytes().min(bytes);
            reservation.resize(reservation.bytes() - part)?;
            bytes -= part;
        }
        Ok(())
    }
}

impl SourceRun for Partitions {
    fn morsels(&self) -> usize {
        self.parts.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let part = self.part(morsel)?;
        let mut stores = std::mem::take(&mut *lock(&self.parts[part]));
        let mut reservation = Reservation::new(self.run.context.clone());
        let held: usize = stores.iter().map(Store::memory).sum();
        let (blocks, raw) = self.spilled.take(part)?;
        if !blocks.is_empty() || !raw.is_empty() {
            self.release(held)?;
            let part = Part { stores, blocks, raw, depth: 0 };
            let (spec, spilled) = (self.spec.clone(), self.spilled.clone());
            return Ok(Box::new(SpilledReader::new(spec, spilled, part)?));
        }
        let chunk = match (stores.len(), self.parts.len()) {
            (0, _) => None,
            // The only store of a run that was never flushed has distinct keys.
            (1, 1) => stores.pop().map(|mut store| store.finish()).transpose()?,
            _ => {
                let groups = stores.iter().map(Store::groups).sum();
                let mut table =
                    Table::new(self.spec.layout.clone(), self.spec.program.clone(), groups)?;
                for mut store in stores {
                    self.run.context.check()?;
                    reservation.resize(table.memory())?;
                    merge_into(&self.spec, &mut table, &mut store)?;
                }
                reservation.resize(table.memory())?;
                Some(table.store.finish()?)
            }
        };
        if let Some(chunk) = &chunk {
            reservation.resize(chunk.stored().iter().map(Column::memory_bytes).sum())?;
        }
        self.release(held)?;
        let chunks = ChunksReader::new(chunk.into_iter().collect(), self.run.context.chunk_rows());
        Ok(Box::new(PartitionReader { chunks, _reservation: reservation }))
    }
}

struct PartitionReader {
    chunks: ChunksReader,
    _reservation: Reservation,
}

impl Reader for PartitionReader {
    fn step(&mut self) -> Result<Step> {
        self.chunks.step()
    }
}
