//! The grouping sink: worker-local tables, partitions, and the merge when the output is read.

use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Finish, Lowering, Sink, SinkRun, SinkWorker, Task, downcast_workers};
use tessera_plan::Edge;
use tessera_rows::Collected;
use tessera_rows::spill::{PARTITIONS, partition_of, spillable};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::Chunk;

use super::cache_table::CacheTable;
use super::compiled::{GroupFinder, GroupRequestCell};
use super::keys::KeyLayout;
use super::partitions::{Partitions, merge_into};
use super::spilled::SpilledGroups;
use super::store::Store;
use super::table::Table;
use crate::aggregate::{Call, Compiled, Program};

/// Workers' tables of at most this many bytes together are merged by one worker, larger ones by
/// partition.
const MERGE_BYTES_MAX: usize = 1 << 20;

/// The number of groups at which a store of a partition is full.
const STORE_GROUPS_FULL: usize = 128;

/// The smallest block of a partition worth spilling, as a fraction of the memory budget.
const SPILL_SHARE: usize = 2_048;
const SPILL_BYTES_MIN: usize = 1 << 10;
const SPILL_BYTES_MAX: usize = 16 << 10;

/// The most bytes of a table that is expected to hold all groups: that is cheaper than merging it.
/// CPU seconds of TPC-H 13 (SF 1, 2 workers, Xeon, 2 MiB of cache of each core): 0.16 with a merge,
/// 0.13 without.
pub(super) const WHOLE_TABLE_BYTES_MAX: usize = 16 << 20;

/// Limits that tests reduce.
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
    /// The fields that are read; the first ones are the keys.
    pub(super) inputs: Vec<usize>,
    /// The tuple type of those fields.
    pub(super) tuple: Tuple,
    pub(super) keys: usize,
    pub(super) layout: Arc<KeyLayout>,
    pub(super) program: Arc<Program>,
    pub(super) limits: Limits,
    /// The estimated number of groups, if a table can hold all of them.
    pub(super) expected: Option<usize>,
    request: GroupRequestCell,
}

impl Spec {
    /// Returns the compiled code that finds and creates groups in a run.
    pub(super) fn finder(&self, run: &Run) -> Option<Arc<GroupFinder>> {
        let of = (&self.tuple, &*self.layout, self.program.stride());
        GroupFinder::start(&self.request, of, !self.program.is_empty(), run)
    }

    /// Returns the compiled code of the states in a run.
    pub(super) fn compiled(&self, run: &Run) -> Option<Arc<Compiled>> {
        if self.program.is_empty() {
            return None;
        }
        Compiled::start(&self.program, self.inputs.len(), true, run)
    }
}

impl Grouping {
    /// Binds keys and aggregates; `output` has the keys' fields, then the aggregates'. `expected`
    /// is the estimated number of groups.
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
        let request = GroupRequestCell::new();
        let spec = Spec { inputs, tuple, keys, layout, program, limits, expected, request };
        Ok(Grouping { inner: Arc::new(spec) })
    }
}

/// Returns the fields that keys and aggregates read: their positions, and their tuple type. The
/// keys come first, in order.
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
            run.context.begin_spillable_state();
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
    cache_table: CacheTable,
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
            cache_table: CacheTable::new(&self.spec, &self.run)?
                .compiled(&self.compiled, &self.finder),
            partitions: Vec::new(),
            partition_bytes: 0,
            reservation: Reservation::new(self.run.context.clone()),
            flushes: 0,
        }))
    }

    fn accepts_lazy(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.accepts_lazy())
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut workers = downcast_workers::<GroupingWorker>(workers)?;
        workers.retain(|worker| worker.cache_table.table.store.groups() > 0 || worker.flushes > 0);
        let chunk_rows = self.run.context.chunk_rows();
        let groups: usize =
            workers.iter().map(|worker| worker.cache_table.table.store.groups()).sum();
        let flushed: usize = workers.iter().map(|worker| worker.flushes).sum();
        self.run.counters.add("flushes", flushed as u64);
        let bytes: usize =
            workers.iter().map(|worker| worker.cache_table.table.table_bytes()).sum();
        let small =
            bytes <= self.spec.limits.table_bytes_max.min(MERGE_BYTES_MAX) || workers.len() <= 1;
        let small = small && !self.spilled.has_raw();
        if flushed == 0 && small && workers.iter().all(|worker| worker.cache_table.distinct) {
            workers
                .sort_by_key(|worker| std::cmp::Reverse(worker.cache_table.table.store.groups()));
            let mut workers = workers.into_iter();
            let Some(mut first) = workers.next() else {
                return Ok(Finish {
                    tasks: Vec::new(),
                    output: chunks_source(Vec::new(), chunk_rows),
                });
            };
            for mut other in workers {
                merge_into(
                    &self.spec,
                    &mut first.cache_table.table,
                    &mut other.cache_table.table.store,
                )?;
            }
            self.run.counters.add("groups", first.cache_table.table.store.groups() as u64);
            let reservation = Mutex::new(vec![first.reservation]);
            let parts = vec![Mutex::new(vec![first.cache_table.table.store])];
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

impl SinkWorker for GroupingWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.cache_table.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if self.leaves(&chunk)? {
            return Ok(());
        }
        self.cache_table.take(&chunk)?;
        if self.cache_table.is_full() {
            self.flush()?;
        }
        self.account()
    }
}

impl GroupingWorker {
    /// Accounts for the memory held; spills partitions if it exceeds the budget.
    fn account(&mut self) -> Result<()> {
        let before = self.reservation.bytes();
        let mut bytes = self.cache_table.memory() + self.partition_bytes;
        if bytes > before && self.cache_table.spec.program.is_flat() {
            let fits = |worker: &Self, bytes: usize| {
                let held = worker.spilled.held_bytes();
                worker.run.context.may_hold(held, bytes.saturating_sub(before))
            };
            if !fits(self, bytes) {
                self.flush()?;
                while bytes > before && !fits(self, bytes) && self.spill_one()? {
                    bytes = self.cache_table.memory() + self.partition_bytes;
                }
            }
        }
        if bytes != before {
            self.reservation.resize(bytes)?;
            self.spilled.holds(before, bytes);
        }
        Ok(())
    }

    /// Once partitions are spilled, reserves the memory to merge them (at most half of the budget):
    /// spills more.
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

    /// Returns whether the tuples of a chunk must be spilled ungrouped: states cannot be written,
    /// and there is no memory for more groups.
    fn leaves(&mut self, chunk: &Chunk) -> Result<bool> {
        let spilled = self.spilled.clone();
        let Some(raw) = &spilled.raw else { return Ok(false) };
        // Groups in memory stay until their partition is read: half of the memory is left for the
        // groups that are created then.
        let more = chunk.value_bytes() + spilled.held_bytes();
        if !spilled.has_raw() && self.run.context.may_hold(spilled.held_bytes(), more) {
            return Ok(false);
        }
        spilled.begin_raw();
        let needed = self.cache_table.needed(chunk)?;
        let position = self.cache_table.bypass(needed.rows());
        raw.put(&needed, self.cache_table.spec.keys, &self.cache_table.spec.layout, position)?;
        Ok(true)
    }

    /// Spills the largest partition, preferably one that already has spilled groups; returns
    /// `false` if none is worth a block.
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
        let (spec, store) = (self.cache_table.spec.clone(), &mut self.cache_table.table.store);
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
            // Growing a full store would move it, so the next rows get a new store.
            if stores.last().is_none_or(|last| last.groups() >= STORE_GROUPS_FULL) {
                stores.push(Store::new(spec.layout.clone(), spec.program.clone())?);
            }
            if let Some(last) = stores.last_mut() {
                let before = last.memory();
                last.append(store, rows)?;
                self.partition_bytes += last.memory().saturating_sub(before);
            }
        }
        self.cache_table.restart()?;
        self.flushes += 1;
        Ok(())
    }
}
