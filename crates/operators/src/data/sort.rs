//! `sort`: sorts all tuples by keys.

mod output;
mod partition;
mod runs;

use std::sync::{Arc, Mutex, OnceLock};

use tessera_context::interrupt::Every;
use tessera_context::{Context, Reservation, Run, lock};
use tessera_operator::describe::{count, edge, require_all, single_edge};
use tessera_operator::{Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, Task};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_rows::spill::spillable;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, concat_chunks};

use super::sort_keys::{KeyEncoder, checked_keys};
use super::sort_spilled::{SpilledOutput, SpilledRuns};
use output::Output;
use runs::{PREFIX_BYTES, SortedRun, prefix};

pub(super) use partition::PartitionKeys;
pub(super) use runs::{Entry, SortedRuns};

/// A task with fewer tuples than this is not worth its overhead.
const TASK_ROWS_MIN: usize = 16_384;
/// Unsorted tuples take at most this fraction of the memory budget.
const UNSORTED_SHARE: usize = 32;
/// The most bytes of unsorted tuples: encoding their keys is one call that cannot be interrupted.
const UNSORTED_BYTES_MAX: usize = 128 << 20;
/// The parameter with the number of keys that identify a partition.
pub(super) const PARTITION: &str = "partition";

/// Sorts by `keys`; tuples with equal keys stay in the order of the source.
///
/// `(b, 1), (a, 2), (b, 0)` with `keys = [{field = k}]` gives `(a, 2), (b, 1), (b, 0)`. The order
/// is PostgreSQL's: NaN above all numbers, strings by their bytes, NULLs last unless a key has
/// `nulls_first`. Each morsel is sorted into a run as it arrives. At the end, sampled keys split
/// the key range between tasks, and each task merges its range of all runs. Tuples are gathered
/// when they are read. Holds all tuples, as runs; runs that exceed the budget are merged and
/// spilled, and merged again when they are read. Ends its pipeline.
///
/// With `partition = n`, no morsel of the output ends between tuples whose first `n` keys are
/// equal, so that one worker sees each partition whole; with 0, the output is one morsel.
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
    tessera_operator::describe!("sort", "Sorts tuples by keys.", ["keys", "partition"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all(edge, 0)?;
        let keys = checked_keys(node, &edge.tuple)?;
        if let Some(partition) = count(node, PARTITION)?.filter(|partition| *partition > keys.len())
        {
            return Err(Error::semantic(format!(
                "parameter partition is {partition}, and there are {} keys",
                keys.len()
            )));
        }
        Ok(single_edge(edge, edge.tuple.clone(), Order::Sorted(keys)))
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
            sink.partition = Some(Arc::new(PartitionKeys::new(node, tuple, keys)?));
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
}

impl SortSink {
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        let encoder = Arc::new(KeyEncoder::new(node, tuple)?);
        Ok(SortSink { encoder, spills: spillable(tuple), partition: None })
    }
}

impl Sink for SortSink {
    fn spills(&self) -> bool {
        self.spills
    }

    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (encoder, context) = (self.encoder.clone(), run.context.clone());
        if self.spills {
            context.begin_spillable_state();
        }
        let spilled = self.spills.then(|| SpilledRuns::new(run));
        let partition = self.partition.clone();
        Ok(Arc::new(SortRun { encoder, context, runs: Arc::default(), spilled, partition }))
    }
}

#[derive(Debug)]
struct SortRun {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    /// Locked once per morsel, not per chunk.
    runs: Arc<Mutex<Vec<SortedRun>>>,
    /// Spilled runs; `None` if the tuples cannot be spilled.
    spilled: Option<Arc<SpilledRuns>>,
    partition: Option<Arc<PartitionKeys>>,
}

struct SortWorker {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    runs: Arc<Mutex<Vec<SortedRun>>>,
    spilled: Option<Arc<SpilledRuns>>,
    position: u64,
    sequence: u32,
    chunks: Vec<Chunk>,
    rows: usize,
    memory: Reservation,
}

impl SinkRun for SortRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(SortWorker {
            encoder: self.encoder.clone(),
            context: self.context.clone(),
            runs: self.runs.clone(),
            spilled: self.spilled.clone(),
            position: 0,
            sequence: 0,
            chunks: Vec::new(),
            rows: 0,
            memory: Reservation::new(self.context.clone()),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in workers {
            worker.end()?;
        }
        let runs = std::mem::take(&mut *lock(&self.runs));
        let sorted = Arc::new(SortedRuns::new(runs, &self.encoder, &self.context));
        if let Some(spilled) = self.spilled.as_ref().filter(|spilled| !spilled.is_empty()) {
            let output = SpilledOutput::new(spilled.clone(), self.partition.clone());
            let (last, prepared) = (sorted, output.clone());
            return Ok(Finish { tasks: vec![Box::new(move || prepared.prepare(&last))], output });
        }
        let parts = (sorted.rows() / TASK_ROWS_MIN).clamp(1, self.context.workers());
        let borders = sorted.borders(parts);
        let output = Arc::new(Output {
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
            morsels: OnceLock::new(),
            partition: self.partition.clone(),
            sorted: sorted.clone(),
        });
        let task = |part: usize| -> Task {
            let (sorted, output, borders) = (sorted.clone(), output.clone(), borders.clone());
            Box::new(move || {
                let part_of_all = sorted.merge(
                    part.checked_sub(1).and_then(|before| borders.get(before)),
                    borders.get(part),
                )?;
                let _ = output.parts[part].set(part_of_all);
                Ok(())
            })
        };
        Ok(Finish { tasks: (0..parts).map(task).collect(), output })
    }
}

impl SinkWorker for SortWorker {
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
        // Locations have 32 bits, and sorting needs the memory twice for a moment.
        let share = (self.context.memory_bytes() / UNSORTED_SHARE).min(UNSORTED_BYTES_MAX);
        if self.rows > (u32::MAX / 2) as usize || self.memory.bytes() > share {
            self.end()
        } else {
            Ok(())
        }
    }

    fn end(&mut self) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        // A concatenated column refers to the string buffers of all its chunks, and gathering from
        // several runs would carry all of them along.
        let tuples = concat_chunks(&std::mem::take(&mut self.chunks))?.with_compact_strings();
        let rows = std::mem::take(&mut self.rows);
        self.context.check()?;
        let keys = self.encoder.encode(&tuples)?;
        self.context.check()?;
        let whole = self.encoder.fixed_bytes().is_some_and(|bytes| bytes <= PREFIX_BYTES);
        let key_bytes = if whole { 0 } else { keys.size() };
        self.hold(rows * size_of::<Entry>() + key_bytes)?;
        let mut entries: Vec<Entry> = (0..rows)
            .map(|row| Entry { prefix: prefix(keys.row(row).data()), run: 0, row: row as u32 })
            .collect();
        let every = Every::default();
        if whole {
            entries.sort_by(|a, b| {
                every.pass();
                a.prefix.cmp(&b.prefix)
            });
        } else {
            entries.sort_by(|a, b| {
                every.pass();
                let keys = || keys.row(a.row as usize).cmp(&keys.row(b.row as usize));
                a.prefix.cmp(&b.prefix).then_with(keys)
            });
        }
        let memory = std::mem::replace(&mut self.memory, Reservation::new(self.context.clone()));
        let keys = (!whole).then_some(keys);
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

impl SortWorker {
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.memory.grow(bytes)?;
        if let Some(spilled) = &self.spilled {
            spilled.grow(bytes);
        }
        Ok(())
    }

    /// Spills all runs so far if the budget lacks this many bytes.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let Some(spilled) = self.spilled.clone() else { return Ok(()) };
        // The pending tuples still need entries, and keys of at most their own length.
        let more = bytes + self.rows * size_of::<Entry>() + self.memory.bytes();
        if self.context.may_hold(spilled.held_bytes(), more) {
            return Ok(());
        }
        self.end()?;
        let runs = std::mem::take(&mut *lock(&self.runs));
        if runs.is_empty() {
            return Ok(());
        }
        spilled.write(&SortedRuns::new(runs, &self.encoder, &self.context))
    }
}

#[cfg(test)]
mod tests;
