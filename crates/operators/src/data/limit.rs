//! `limit`: the first tuples of its input.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tessera_context::{Reservation, Run, lock};
use tessera_operator::describe::{count, edge, require_all_unless_partial, single_edge};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, OrderedQueue, QueueSource, Sink, SinkRun, SinkWorker, SourceRun,
    SubOperator,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

/// A larger limit passes tuples on through a queue while more of them are read.
const HELD_ROWS_MAX: usize = 20_000;

/// Skips `offset` tuples in the order of the source and yields the next `limit` (both optional).
///
/// `1, 2, 3, 4` with `offset = 1, limit = 2` gives `2, 3`. Each morsel holds at most `offset +
/// limit` tuples. Once the completed prefix of morsels has enough tuples, the remaining morsels are
/// not read. A large result with a single reader goes through a queue while more tuples are read.
/// Ends its pipeline; keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = limit(%t) {offset = 1, limit = 2}",
/// );
/// assert_eq!(rows, ["2", "NULL"]);
/// ```
#[derive(Debug)]
pub struct Limit;

impl Descriptor for Limit {
    tessera_operator::describe!(
        "limit",
        "Yields the first tuples in the order of the source.",
        ["limit", "offset", "partial"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all_unless_partial(node, edge, 0)?;
        count(node, "limit")?;
        count(node, "offset")?;
        Ok(single_edge(edge, edge.tuple.clone(), edge.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Limit {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let offset = count(node, "offset")?.unwrap_or(0);
        let limit = count(node, "limit")?.unwrap_or(usize::MAX);
        Ok(Operator::Sink(Arc::new(LimitOperator { offset, limit })))
    }
}

#[derive(Debug)]
struct LimitOperator {
    offset: usize,
    limit: usize,
}

impl Sink for LimitOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let wanted = if self.limit == 0 { 0 } else { self.offset.saturating_add(self.limit) };
        Ok(Arc::new(LimitRun {
            shared: Arc::new(Shared {
                run: run.clone(),
                wanted,
                enough: AtomicBool::new(wanted == 0),
                progress: Mutex::default(),
            }),
            offset: self.offset,
            limit: self.limit,
            passed: OnceLock::new(),
        }))
    }
}

#[derive(Debug)]
struct LimitRun {
    shared: Arc<Shared>,
    offset: usize,
    limit: usize,
    /// The queue to the reader, if tuples are passed on before the input is complete.
    passed: OnceLock<Arc<OrderedQueue>>,
}

/// State shared by the workers of a run.
#[derive(Debug)]
struct Shared {
    run: Run,
    /// `offset + limit`: the number of tuples from the start of the source that are needed.
    wanted: usize,
    enough: AtomicBool,
    progress: Mutex<Progress>,
}

/// Progress over the completed morsels.
#[derive(Debug, Default)]
struct Progress {
    morsels: BTreeMap<u64, Morsel>,
    /// All morsels before this position are complete; positions are dense.
    complete: u64,
    /// Tuples in the morsels before `complete`.
    rows: usize,
}

#[derive(Debug)]
struct Morsel {
    chunks: Vec<Chunk>,
    rows: usize,
    _memory: Reservation,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }
}

impl SinkRun for LimitRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        if let Some(passed) = self.passed.get() {
            return Ok(passed.worker());
        }
        Ok(Box::new(LimitWorker {
            shared: self.shared.clone(),
            position: 0,
            before: None,
            morsel: None,
        }))
    }

    fn satisfied(&self) -> bool {
        let passed = self.passed.get().is_some_and(|passed| passed.is_satisfied());
        passed || self.shared.enough.load(Ordering::Relaxed)
    }

    fn in_order(&self) -> bool {
        self.passed.get().is_some()
    }

    /// Returns a queue for a large limit with a single reader. A small result is collected first,
    /// so that any number of workers can read it.
    fn early_output(&self, has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        if !has_one_reader || self.shared.wanted <= HELD_ROWS_MAX {
            return None;
        }
        let context = self.shared.run.context.clone();
        let queue = OrderedQueue::queue_for(&*context);
        let passed = OrderedQueue::of_window(context, queue.clone(), self.offset, self.limit);
        self.passed.set(Arc::new(passed)).ok()?;
        Some(QueueSource::of(queue))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        if let Some(passed) = self.passed.get() {
            return Ok(passed.finish());
        }
        // A morsel abandoned at the limit counts with the tuples it had yielded by then.
        for mut worker in workers {
            worker.end()?;
        }
        let morsels = std::mem::take(&mut self.shared.progress().morsels);
        let (mut skip, mut take) = (self.offset, self.limit);
        let mut chunks = Vec::new();
        for chunk in morsels.into_values().flat_map(|morsel| morsel.chunks) {
            let skipped = skip.min(chunk.rows());
            let taken = take.min(chunk.rows() - skipped);
            (skip, take) = (skip - skipped, take - taken);
            if taken > 0 {
                chunks.push(chunk.slice(skipped, taken));
            }
        }
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(chunks, self.shared.run.context.chunk_rows()),
        })
    }
}

struct LimitWorker {
    shared: Arc<Shared>,
    position: u64,
    /// The number of tuples before this morsel, if all earlier morsels are complete.
    before: Option<usize>,
    morsel: Option<Morsel>,
}

impl SinkWorker for LimitWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        let progress = self.shared.progress();
        self.position = position;
        self.before = (progress.complete == position).then_some(progress.rows);
        drop(progress);
        let memory = Reservation::new(self.shared.run.context.clone());
        self.morsel = Some(Morsel { chunks: Vec::new(), rows: 0, _memory: memory });
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Some(morsel) = &mut self.morsel else { return Ok(()) };
        let room =
            self.shared.wanted - self.before.unwrap_or(0).min(self.shared.wanted) - morsel.rows;
        let taken = chunk.rows().min(room);
        if taken > 0 {
            // Compact: a slice of few tuples must not keep a large chunk alive.
            let chunk = chunk.slice(0, taken).compact()?;
            morsel._memory.grow(chunk.value_bytes())?;
            morsel.rows += taken;
            morsel.chunks.push(chunk);
        }
        if self.before.is_some() && taken == room {
            self.shared.enough.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(morsel) = self.morsel.take() else { return Ok(()) };
        let mut progress = self.shared.progress();
        progress.morsels.insert(self.position, morsel);
        while let Some(morsel) = progress.morsels.get(&progress.complete) {
            let rows = morsel.rows;
            progress.rows = progress.rows.saturating_add(rows);
            progress.complete += 1;
        }
        if progress.rows >= self.shared.wanted {
            self.shared.enough.store(true, Ordering::Relaxed);
            let complete = progress.complete;
            drop(progress.morsels.split_off(&complete));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, rows};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::Params;

    use crate::testing::test_plan;

    fn limited(offset: Option<i64>, limit: Option<i64>) {
        let mut params = Params::new();
        offset.into_iter().for_each(|offset| params.set("offset", offset));
        limit.into_iter().for_each(|limit| params.set("limit", limit));
        let mut plan = test_plan();
        let numbers: Vec<String> = (0..200).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &numbers.join("|")));
        let root = plan.add("limit", &[table], params);
        let skip = offset.unwrap_or(0) as usize;
        let take = limit.map_or(usize::MAX, |limit| limit as usize);
        let expected: Vec<String> = numbers.into_iter().skip(skip).take(take).collect();
        for (chunk, workers) in SETTINGS {
            assert_eq!(
                rows(&plan.run(root, chunk, workers).unwrap()),
                expected,
                "{offset:?} {limit:?}"
            );
        }
    }

    #[test]
    fn the_first_ones_in_source_order() {
        for offset in [None, Some(0), Some(1), Some(7), Some(199), Some(200), Some(1000)] {
            for limit in [None, Some(0), Some(1), Some(8), Some(200), Some(i64::MAX)] {
                limited(offset, limit);
            }
        }
    }

    #[test]
    fn the_rest_is_not_read_and_memory_stays_small() {
        let mut plan = test_plan();
        let numbers: Vec<String> = (0..10_000).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &numbers.join("|")));
        let root = plan.add("limit", &[table], Params::new().with("limit", 3));
        let context = tessera_context::testing::TestContext::with_budget(7, 2, 4096);
        assert_eq!(rows(&plan.run_in(root, context).unwrap()), ["0", "1", "2"]);
    }

    #[test]
    fn a_negative_limit_is_rejected() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("limit", &[table], Params::new().with("limit", -1));
        assert!(plan.verify(root).unwrap_err().to_string().contains("must not be negative"));
    }
}
