//! `sort`: sorts all tuples by keys.

mod entries;
mod output;
mod packed;
mod partition;
mod parts;
mod runs;

use std::sync::{Arc, Mutex};

use arrow::row::Rows;

use tessera_context::{Context, Reservation, Run, lock};
use tessera_operator::describe::{count, edge, require_all_unless_partial, single_edge};
use tessera_operator::{Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, Task};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_rows::spill::spillable;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, concat_chunks};

use super::sort_keys::{KeyEncoder, checked_keys};
use super::sort_spilled::{SpilledOutput, SpilledRuns};
use entries::{PrefixSorter, sort_keys};
use output::Output;
use runs::{Entry, SortedRun, is_whole, prefix_words};

use partition::PartitionLimit;

pub(super) use partition::PartitionKeys;
pub(super) use parts::Parts;
pub(super) use runs::{SortedRuns, prefix};

/// Unsorted tuples take at most this fraction of the memory budget.
const UNSORTED_SHARE: usize = 32;
/// The most bytes of unsorted tuples: encoding their keys is one call that cannot be interrupted.
const UNSORTED_BYTES_MAX: usize = 128 << 20;
/// The most tuples of a run: sorting them takes less than the time in which a statement must obey
/// an interrupt, and the memory for it is used again.
const RUN_ROWS_MAX: usize = 1 << 20;
/// A sorter keeps its memory if that is at most this fraction of the budget.
const SORTER_SHARE: usize = 64;
/// The parameter with the number of keys that identify a partition.
pub(super) const PARTITION: &str = "partition";
/// The parameter with the number of tuples that are needed of each partition.
const LIMIT: &str = "limit";

/// Sorts by `keys`; tuples with equal keys stay in the order of the source.
///
/// `(b, 1), (a, 2), (b, 0)` with `keys = [{field = k}]` gives `(a, 2), (b, 1), (b, 0)`. The order
/// is PostgreSQL's: NaN above all numbers, strings by their bytes, NULLs last unless a key has
/// `nulls_first`. Each morsel is sorted into a run as it arrives. At the end, sampled keys cut all
/// tuples into parts; each is merged and gathered when it is read. Holds all tuples, as runs; runs
/// that exceed the budget are merged and spilled, and merged again when they are read. Ends its
/// pipeline.
///
/// With `partition = n`, no morsel of the output ends between tuples whose first `n` keys are
/// equal, so that one worker sees each partition whole; with 0, the output is one morsel. With
/// `limit`, it drops tuples beyond the first so many of a partition in each run and in the merge of
/// runs in memory; a consumer drops those that remain. With `partial`, each worker sorts its own
/// tuples, which promises no order, but brings similar keys together.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = sort(%t) {keys = [{field = x, descending = true, nulls_first = true}]}",
/// );
/// assert_eq!(rows, ["NULL", "3", "2", "1"]);
/// ```
#[derive(Debug)]
pub struct Sort;

impl Descriptor for Sort {
    tessera_operator::describe!(
        "sort",
        "Sorts tuples by keys.",
        ["keys", "partition", "limit", "partial"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all_unless_partial(node, edge, 0)?;
        let keys = checked_keys(node, &edge.tuple)?;
        if let Some(partition) = count(node, PARTITION)?.filter(|partition| *partition > keys.len())
        {
            return Err(Error::semantic(format!(
                "parameter partition is {partition}, and there are {} keys",
                keys.len()
            )));
        }
        if count(node, LIMIT)?.is_some() && node.param(PARTITION).is_none() {
            return Err(Error::semantic(
                "parameter limit needs parameter partition; to limit all tuples use top_k",
            ));
        }
        // Several workers that sort their own tuples yield no order.
        let order = if node.params.flag("partial")? { Order::None } else { Order::Sorted(keys) };
        Ok(single_edge(edge, edge.tuple.clone(), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Sort {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let mut sink = SortSink::new(node, tuple)?;
        if let Some(keys) = count(node, PARTITION)? {
            let partition = Arc::new(PartitionKeys::new(node, tuple, keys)?);
            let limit = count(node, LIMIT)?;
            sink.limit = limit.map(|limit| Arc::new(PartitionLimit::new(&partition, limit)));
            sink.partition = Some(partition);
        }
        Ok(Operator::Sink(Arc::new(sink)))
    }
}

/// The sink of `sort`, and of `merge` with keys.
#[derive(Debug)]
pub(crate) struct SortSink {
    encoder: Arc<KeyEncoder>,
    spills: bool,
    /// The keys that no border between morsels may separate.
    partition: Option<Arc<PartitionKeys>>,
    /// The tuples that are needed of each partition.
    limit: Option<Arc<PartitionLimit>>,
}

impl SortSink {
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        let encoder = Arc::new(KeyEncoder::new(node, tuple)?);
        Ok(SortSink { encoder, spills: spillable(tuple), partition: None, limit: None })
    }

    fn start_run<const W: usize>(&self, run: &Run) -> Arc<dyn SinkRun> {
        Arc::new(SortRun::<W> {
            encoder: self.encoder.clone(),
            context: run.context.clone(),
            runs: Arc::default(),
            spilled: self.spills.then(|| SpilledRuns::new(run)),
            partition: self.partition.clone(),
            limit: self.limit.clone(),
        })
    }
}

impl Sink for SortSink {
    fn spills(&self) -> bool {
        self.spills
    }

    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        if self.spills {
            run.context.begin_spillable_state();
        }
        Ok(match prefix_words(self.encoder.fixed_bytes()) {
            3 => self.start_run::<3>(run),
            4 => self.start_run::<4>(run),
            _ => self.start_run::<2>(run),
        })
    }
}

#[derive(Debug)]
struct SortRun<const W: usize> {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    /// Locked once per morsel, not per chunk.
    runs: Arc<Mutex<Vec<SortedRun<W>>>>,
    /// Spilled runs; `None` if the tuples cannot be spilled.
    spilled: Option<Arc<SpilledRuns>>,
    partition: Option<Arc<PartitionKeys>>,
    limit: Option<Arc<PartitionLimit>>,
}

struct SortWorker<const W: usize> {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    runs: Arc<Mutex<Vec<SortedRun<W>>>>,
    spilled: Option<Arc<SpilledRuns>>,
    limit: Option<Arc<PartitionLimit>>,
    position: u64,
    sequence: u32,
    chunks: Vec<Chunk>,
    rows: usize,
    memory: Reservation,
    sorter: PrefixSorter<W>,
    /// The memory that the sorter keeps.
    sorter_memory: Reservation,
}

impl<const W: usize> SinkRun for SortRun<W> {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(SortWorker {
            encoder: self.encoder.clone(),
            context: self.context.clone(),
            runs: self.runs.clone(),
            spilled: self.spilled.clone(),
            limit: self.limit.clone(),
            position: 0,
            sequence: 0,
            chunks: Vec::new(),
            rows: 0,
            memory: Reservation::new(self.context.clone()),
            sorter: PrefixSorter::default(),
            sorter_memory: Reservation::new(self.context.clone()),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in workers {
            worker.end()?;
        }
        let runs = std::mem::take(&mut *lock(&self.runs));
        let limit = self.limit.as_ref();
        let sorted = SortedRuns::new(runs, &self.encoder, limit, &self.context);
        if let Some(spilled) = self.spilled.as_ref().filter(|spilled| !spilled.is_empty()) {
            let output = SpilledOutput::new(spilled.clone(), self.partition.clone());
            let prepared = output.clone();
            return Ok(Finish { tasks: vec![Box::new(move || prepared.prepare(sorted))], output });
        }
        let parts = Arc::new(Parts::new(sorted, self.partition.as_deref())?);
        let task = |part: usize| -> Task {
            let parts = parts.clone();
            Box::new(move || parts.merge_ahead(part))
        };
        let ahead = if parts.merges_ahead() { parts.len() } else { 0 };
        Ok(Finish { tasks: (0..ahead).map(task).collect(), output: Arc::new(Output(parts)) })
    }
}

impl<const W: usize> SinkWorker for SortWorker<W> {
    fn begin(&mut self, position: u64) -> Result<()> {
        (self.position, self.sequence) = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.context.check()?;
        // Compact: a few tuples must not keep a large chunk alive.
        let chunk = chunk.compact()?;
        let bytes = chunk.value_bytes();
        self.make_room(bytes)?;
        self.hold(bytes)?;
        self.rows += chunk.rows();
        self.chunks.push(chunk);
        // Sorting needs the memory twice for a moment.
        let share = (self.context.memory_bytes() / UNSORTED_SHARE).min(UNSORTED_BYTES_MAX);
        if self.rows >= RUN_ROWS_MAX || self.memory.bytes() > share { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        // A concatenated column refers to the string buffers of all its chunks, and gathering from
        // several runs would carry all of them along.
        let mut tuples = concat_chunks(&std::mem::take(&mut self.chunks))?.with_compact_strings();
        let rows = std::mem::take(&mut self.rows);
        self.context.check()?;
        let keys = self.encoder.encode(&tuples)?;
        self.context.check()?;
        let whole = is_whole(self.encoder.fixed_bytes(), W);
        let key_bytes = if whole { 0 } else { keys.size() };
        self.hold(rows * size_of::<Entry<W>>() + key_bytes)?;
        let (mut entries, mut keys) = match whole {
            true => (self.sorter.sort_prefixes(keys), None),
            false => (sort_keys(&keys), Some(keys)),
        };
        let bytes = self.sorter.bytes();
        let is_small = bytes <= self.context.memory_bytes() / SORTER_SHARE;
        if !is_small || self.sorter_memory.resize(bytes).is_err() {
            self.sorter = PrefixSorter::default();
            self.sorter_memory.resize(0)?;
        }
        if let Some(limit) = self.limit.clone() {
            limit.retain(&mut entries, &tuples)?;
            if entries.len() <= rows / 2 {
                (tuples, keys) = self.compacted(&mut entries, &tuples, keys)?;
            }
        }
        let memory = std::mem::replace(&mut self.memory, Reservation::new(self.context.clone()));
        let run = SortedRun {
            position: self.position,
            sequence: self.sequence,
            tuples,
            keys,
            entries,
            memory,
        };
        self.sequence += 1;
        lock(&self.runs).push(run);
        Ok(())
    }
}

impl<const W: usize> SortWorker<W> {
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.memory.grow(bytes)?;
        if let Some(spilled) = &self.spilled {
            spilled.grow(bytes);
        }
        Ok(())
    }

    /// Drops the tuples without entries, and returns the others with their keys in the order of the
    /// entries.
    fn compacted(
        &mut self,
        entries: &mut Vec<Entry<W>>,
        tuples: &Chunk,
        keys: Option<Rows>,
    ) -> Result<(Chunk, Option<Rows>)> {
        let rows: Vec<u32> = entries.iter().map(|entry| entry.row).collect();
        let keys = keys.map(|keys| self.encoder.selected(&keys, &rows));
        let tuples = tuples.clone().select(Arc::new(rows.into())).compact()?.with_compact_strings();
        entries.shrink_to_fit();
        for (row, entry) in entries.iter_mut().enumerate() {
            entry.row = row as u32;
        }
        let key_bytes = keys.as_ref().map_or(0, Rows::size);
        let bytes = tuples.value_bytes() + entries.len() * size_of::<Entry<W>>() + key_bytes;
        let before = self.memory.bytes();
        self.memory.resize(bytes.min(before))?;
        if let Some(spilled) = &self.spilled {
            spilled.shrink(before - self.memory.bytes());
        }
        Ok((tuples, keys))
    }

    /// Spills all runs so far if the budget lacks this many bytes.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let Some(spilled) = self.spilled.clone() else { return Ok(()) };
        // The pending tuples still need entries, and keys of at most their own length.
        let more = bytes + self.rows * size_of::<Entry<W>>() + self.memory.bytes();
        if self.context.may_hold(spilled.held_bytes(), more) {
            return Ok(());
        }
        self.end()?;
        let runs = std::mem::take(&mut *lock(&self.runs));
        if runs.is_empty() {
            return Ok(());
        }
        spilled.write(SortedRuns::new(runs, &self.encoder, self.limit.as_ref(), &self.context))
    }
}

#[cfg(test)]
mod tests;
