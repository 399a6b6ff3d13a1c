//! `sort`: all tuples, in the order of their keys.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use arrow::row::Rows;

use tessera_encodings::{Chunk, Column, concat_chunks, interleave_columns};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Error, Result, Tuple};

use crate::data::sort_keys::{KeyEncoder, checked_keys};
use crate::describe::{edge, gives_one, wants_all};
use crate::operator::{
    Collected, Finish, Lowering, Operator, Reader, Sink, SinkRun, SinkWorker, SourceRun, Step, SubOperator,
    Task,
};
use crate::{Context, Reservation, Run, describe};

/// Fewer tuples than this for each worker are not worth a task of its own.
const TASK_ROWS_MIN: usize = 16_384;
/// Keys looked at for each border between tasks: enough that no task gets much more than its share.
const SAMPLES_PER_BORDER: usize = 64;
/// Output chunks in a morsel.
const MORSEL_CHUNKS: usize = 16;
/// Bytes of a key that are compared without a look at the key itself.
const PREFIX_BYTES: usize = 16;

/// Sorts by `keys`; tuples with equal keys stay in the order of the source.
///
/// `(b, 1), (a, 2), (b, 0)` with `keys = [{field = k}]` gives `(a, 2), (b, 1), (b, 0)`. The order is PostgreSQL's: NaN above all
/// numbers, strings by their bytes, NULLs last unless a key says `nulls_first`. Each morsel becomes a sorted run
/// as it comes; at the end the range of keys is cut where its samples say, and each task merges its part of all runs.
/// Tuples are gathered when they are read. Holds everything, as runs; ends its pipeline.
#[derive(Debug)]
pub struct Sort;

impl Descriptor for Sort {
    describe!("sort", "Sorts tuples by keys.", ["keys"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        wants_all(edge, 0)?;
        Ok(gives_one(edge, edge.tuple.clone(), Order::Sorted(checked_keys(node, &edge.tuple)?)))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Sort {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Sink(Arc::new(SortSink::new(node, &lowering.inputs[0].tuple)?)))
    }
}

/// The lowered form of `sort`, and of `merge` with keys.
#[derive(Debug)]
pub(crate) struct SortSink {
    encoder: Arc<KeyEncoder>,
}

impl SortSink {
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        Ok(SortSink { encoder: Arc::new(KeyEncoder::new(node, tuple)?) })
    }
}

impl Sink for SortSink {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (encoder, context) = (self.encoder.clone(), run.context.clone());
        Ok(Arc::new(SortRun { encoder, context, runs: Arc::default() }))
    }
}

#[derive(Debug)]
struct SortRun {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    /// One lock per morsel, not per chunk.
    runs: Arc<Mutex<Vec<SortedRun>>>,
}

/// A tuple by the start of its key and its place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: [u64; 2],
    run: u32,
    row: u32,
}

/// The tuples of a morsel, and their places in the order of their keys.
#[derive(Debug)]
struct SortedRun {
    position: u64,
    tuples: Chunk,
    /// The keys; absent where the prefix is all of the key.
    keys: Option<Rows>,
    entries: Vec<Entry>,
    _memory: Reservation,
}

struct SortWorker {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    runs: Arc<Mutex<Vec<SortedRun>>>,
    position: u64,
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
            position: 0,
            chunks: Vec::new(),
            rows: 0,
            memory: Reservation::new(self.context.clone()),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in workers {
            worker.end()?;
        }
        let mut runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        runs.sort_by_key(|run| run.position);
        let rows: usize = runs.iter().map(|run| run.entries.len()).sum();
        let parts = (rows / TASK_ROWS_MIN).clamp(1, self.context.workers());
        let sorted = Arc::new(Sorted { runs, context: self.context.clone() });
        let borders = sorted.borders(parts);
        let output = Arc::new(Output {
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
            morsels: OnceLock::new(),
            sorted: sorted.clone(),
        });
        let task = |part: usize| -> Task {
            let (sorted, output, borders) = (sorted.clone(), output.clone(), borders.clone());
            Box::new(move || {
                let part_of_all = sorted
                    .merge(part.checked_sub(1).and_then(|before| borders.get(before)), borders.get(part))?;
                let _ = output.parts[part].set(part_of_all);
                Ok(())
            })
        };
        Ok(Finish { tasks: (0..parts).map(task).collect(), output })
    }
}

impl SinkWorker for SortWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.context.check()?;
        // Gathered, so that few tuples do not keep a large chunk alive.
        let chunk = chunk.compact()?;
        self.memory.grow(chunk.value_bytes())?;
        self.rows += chunk.rows();
        self.chunks.push(chunk);
        // Places are 32 bits.
        if self.rows > (u32::MAX / 2) as usize { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let tuples = collected_strings(concat_chunks(&std::mem::take(&mut self.chunks))?);
        let rows = std::mem::take(&mut self.rows);
        let keys = self.encoder.encode(&tuples)?;
        let whole = self.encoder.fixed_bytes().is_some_and(|bytes| bytes <= PREFIX_BYTES);
        let key_bytes = if whole { 0 } else { keys.size() };
        self.memory.grow(rows * size_of::<Entry>() + key_bytes)?;
        let mut entries: Vec<Entry> = (0..rows)
            .map(|row| Entry { prefix: prefix(keys.row(row).data()), run: 0, row: row as u32 })
            .collect();
        if whole {
            entries.sort_by_key(|entry| entry.prefix);
        } else {
            entries.sort_by(|a, b| {
                let keys = || keys.row(a.row as usize).cmp(&keys.row(b.row as usize));
                a.prefix.cmp(&b.prefix).then_with(keys)
            });
        }
        let memory = std::mem::replace(&mut self.memory, Reservation::new(self.context.clone()));
        let keys = (!whole).then_some(keys);
        let run = SortedRun { position: self.position, tuples, keys, entries, _memory: memory };
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        Ok(())
    }
}

/// The same tuples with the bytes of each column's strings in one piece: the columns of many chunks refer to as many
/// buffers, and whatever is gathered from several runs would carry all of them along.
pub(crate) fn collected_strings(chunk: Chunk) -> Chunk {
    let column = |column: &Column| match column {
        Column::Plain(array) if *array.data_type() == DataType::Utf8View => {
            Column::Plain(Arc::new(array.as_string_view().gc()))
        }
        Column::Plain(array) if *array.data_type() == DataType::BinaryView => {
            Column::Plain(Arc::new(array.as_binary_view().gc()))
        }
        other => other.clone(),
    };
    let columns = chunk.stored().iter().map(column).collect();
    chunk.with_stored(columns)
}

/// The first bytes of a key, as numbers that compare alike; zeros where the key is shorter.
fn prefix(key: &[u8]) -> [u64; 2] {
    let mut bytes = [0; PREFIX_BYTES];
    let len = key.len().min(PREFIX_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    let number = u128::from_be_bytes(bytes);
    [(number >> 64) as u64, number as u64]
}

/// What is left of a run in a merge.
struct Cursor<'a> {
    run: u32,
    entries: &'a [Entry],
}

impl Cursor<'_> {
    fn peek(&self) -> Option<Entry> {
        self.entries.first().map(|entry| Entry { run: self.run, ..*entry })
    }

    fn take(&mut self) -> Option<Entry> {
        let (first, rest) = self.entries.split_first()?;
        self.entries = rest;
        Some(Entry { run: self.run, ..*first })
    }
}

/// All runs, in the order of the source.
#[derive(Debug)]
struct Sorted {
    runs: Vec<SortedRun>,
    context: Arc<dyn Context>,
}

impl Sorted {
    /// Compares two tuples by their keys; `run` counts here, unlike inside a run.
    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        a.prefix.cmp(&b.prefix).then_with(|| {
            let key = |entry: &Entry| {
                let keys = self.runs[entry.run as usize].keys.as_ref();
                keys.map(|keys| keys.row(entry.row as usize))
            };
            key(a).cmp(&key(b))
        })
    }

    /// The entries of a run, each knowing its run.
    fn of_run(&self, run: usize, range: std::ops::Range<usize>) -> impl Iterator<Item = Entry> + '_ {
        self.runs[run].entries[range].iter().map(move |entry| Entry { run: run as u32, ..*entry })
    }

    /// Keys that cut all tuples into about equal parts.
    fn borders(&self, parts: usize) -> Arc<[Entry]> {
        let rows: usize = self.runs.iter().map(|run| run.entries.len()).sum();
        let step = (rows / (parts * SAMPLES_PER_BORDER)).max(1);
        let mut samples: Vec<Entry> = if parts > 1 {
            let run = |run: usize| self.of_run(run, 0..self.runs[run].entries.len()).step_by(step);
            (0..self.runs.len()).flat_map(run).collect()
        } else {
            Vec::new()
        };
        samples.sort_by(|a, b| self.compare(a, b));
        (1..parts).filter_map(|part| samples.get(part * samples.len() / parts).copied()).collect()
    }

    /// The tuples from one border up to (not including) the next, in order.
    fn merge(&self, from: Option<&Entry>, upto: Option<&Entry>) -> Result<Vec<Entry>> {
        let mut cursors = Vec::new();
        for (run, sorted) in self.runs.iter().enumerate() {
            let place = |border: &Entry| {
                let before = |entry: &Entry| {
                    self.compare(&Entry { run: run as u32, ..*entry }, border) == Ordering::Less
                };
                sorted.entries.partition_point(before)
            };
            let range = from.map_or(0, place)..upto.map_or(sorted.entries.len(), place);
            if !range.is_empty() {
                cursors.push(Cursor { run: run as u32, entries: &sorted.entries[range] });
            }
        }
        self.merge_cursors(cursors)
    }

    /// Merges with a tree of losers: each tuple is compared with the first ones of other runs only, whose keys stay in
    /// the cache; sorting anew would fetch every key again in each of its passes.
    fn merge_cursors(&self, mut cursors: Vec<Cursor<'_>>) -> Result<Vec<Entry>> {
        let count = cursors.len();
        let mut merged = Vec::with_capacity(cursors.iter().map(|cursor| cursor.entries.len()).sum());
        if count < 2 {
            merged.extend(cursors.iter_mut().flat_map(|cursor| std::iter::from_fn(|| cursor.take())));
            return Ok(merged);
        }
        // Leaf `i` is node `count + i`; node 1 is the root; `losers` has the loser of each inner node.
        let mut losers = vec![0; count];
        let mut winners: Vec<usize> = vec![0; 2 * count];
        for (leaf, node) in (count..2 * count).enumerate() {
            winners[node] = leaf;
        }
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_first = self.is_first(&cursors, left, right);
            (winners[node], losers[node]) = if left_first { (left, right) } else { (right, left) };
        }
        let mut winner = winners[1];
        while let Some(entry) = cursors[winner].take() {
            merged.push(entry);
            if merged.len() % TASK_ROWS_MIN == 0 {
                self.context.check()?;
            }
            let mut node = (winner + count) / 2;
            while node > 0 {
                if self.is_first(&cursors, losers[node], winner) {
                    std::mem::swap(&mut losers[node], &mut winner);
                }
                node /= 2;
            }
        }
        Ok(merged)
    }

    /// Whether the next tuple of cursor `a` comes before that of `b`; of equal keys the earlier run comes first.
    fn is_first(&self, cursors: &[Cursor<'_>], a: usize, b: usize) -> bool {
        match (cursors[a].peek(), cursors[b].peek()) {
            (Some(x), Some(y)) => self.compare(&x, &y).then(a.cmp(&b)) == Ordering::Less,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The tuples at these places.
    fn gather(&self, entries: &[Entry]) -> Result<Chunk> {
        let mut runs: Vec<u32> = entries.iter().map(|entry| entry.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let place = |entry: &Entry| (runs.partition_point(|run| *run < entry.run), entry.row as usize);
        let places: Vec<(usize, usize)> = entries.iter().map(place).collect();
        let width = runs.first().map_or(0, |run| self.runs[*run as usize].tuples.width());
        let column = |index: usize| {
            let parts: Vec<Column> =
                runs.iter().map(|run| self.runs[*run as usize].tuples.stored()[index].clone()).collect();
            interleave_columns(&parts, &places)
        };
        Ok(Chunk::new((0..width).map(column).collect::<Result<_>>()?, entries.len()))
    }
}

/// The sorted tuples, by place.
#[derive(Debug)]
struct Output {
    parts: Vec<OnceLock<Vec<Entry>>>,
    /// Part and first entry of each morsel.
    morsels: OnceLock<Vec<(usize, usize)>>,
    sorted: Arc<Sorted>,
}

impl Output {
    fn part(&self, part: usize) -> &[Entry] {
        self.parts.get(part).and_then(OnceLock::get).map_or(&[], Vec::as_slice)
    }

    fn morsel_rows(&self) -> usize {
        MORSEL_CHUNKS * self.sorted.context.chunk_rows()
    }

    fn starts(&self) -> &[(usize, usize)] {
        self.morsels.get_or_init(|| {
            let starts =
                |part| (0..self.part(part).len()).step_by(self.morsel_rows()).map(move |first| (part, first));
            (0..self.parts.len()).flat_map(starts).collect()
        })
    }
}

impl SourceRun for Output {
    fn morsels(&self) -> usize {
        self.starts().len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let &(part, first) =
            self.starts().get(morsel).ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let entries = self.part(part);
        let last = (first + self.morsel_rows()).min(entries.len());
        let entries = entries[first..last].to_vec();
        Ok(Box::new(SortReader { sorted: self.sorted.clone(), entries, next: 0 }))
    }
}

struct SortReader {
    sorted: Arc<Sorted>,
    entries: Vec<Entry>,
    next: usize,
}

impl Reader for SortReader {
    fn step(&mut self) -> Result<Step> {
        self.sorted.context.check()?;
        let rows = self.sorted.context.chunk_rows().min(self.entries.len() - self.next);
        if rows == 0 {
            return Ok(Step::Done);
        }
        let chunk = self.sorted.gather(&self.entries[self.next..self.next + rows])?;
        self.next += rows;
        Ok(Step::HasOutput(chunk))
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Params, SortKey, Value};

    use super::*;
    use crate::testing::{Numbers, SETTINGS, TestContext, TestPlan, batch, rows, same, sort_keys as keys};

    #[test]
    fn order_is_that_of_sql_and_stable() {
        let table = || batch("<a: int64?, b: string?>", "2 x|NULL y|1 z|2 a|NULL b|1 é|1 NULL|1 z1");
        let check = |list: &[(&str, bool, bool)], expected: &str| {
            let mut plan = TestPlan::new();
            let table = plan.table(table());
            let root = plan.add("sort", &[table], keys(list));
            for (chunk, workers) in SETTINGS {
                same(&plan.run(root, chunk, workers).unwrap(), "<a: int64?, b: string?>", expected);
            }
        };
        check(&[("a", false, false)], "1 z|1 é|1 NULL|1 z1|2 x|2 a|NULL y|NULL b");
        check(&[("a", true, true)], "NULL y|NULL b|2 x|2 a|1 z|1 é|1 NULL|1 z1");
        let both = [("a", true, false), ("b", false, true)];
        check(&both, "2 a|2 x|1 NULL|1 z|1 z1|1 é|NULL b|NULL y");
    }

    #[test]
    fn floats_have_one_nan_and_one_zero() {
        let mut plan = TestPlan::new();
        let table =
            plan.table(batch("<a: float64?, i: int64>", "NaN 1|0 2|-0 3|inf 4|-NaN 5|NULL 6|-inf 7|0 8"));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        let by = plan.add("projection", &[root], Params::new().with("fields", crate::testing::names(&["i"])));
        same(&plan.run(by, 7, 2).unwrap(), "<i: int64>", "7|2|3|8|4|1|5|6");
    }

    #[test]
    fn many_tuples_over_many_tasks() {
        let mut numbers = Numbers::new(11);
        let lines: Vec<(i64, String)> = (0..100_000)
            .map(|_| {
                (numbers.below(5_000) as i64 - 2_500, format!("a-rather-long-text-{}", numbers.below(9)))
            })
            .collect();
        let text: Vec<String> = lines.iter().map(|(a, b)| format!("{a} {b}")).collect();
        for by_text in [false, true] {
            let mut plan = TestPlan::new();
            let table = plan.table(batch("<a: int64, b: string>", &text.join("|")));
            let list: &[_] = if by_text { &[("b", true, false)] } else { &[("a", false, false)] };
            let root = plan.add("sort", &[table], keys(list));
            let mut expected = lines.clone();
            match by_text {
                true => expected.sort_by(|x, y| y.1.cmp(&x.1)),
                false => expected.sort_by_key(|line| line.0),
            }
            let expected: Vec<String> = expected.iter().map(|(a, b)| format!("{a} {b}")).collect();
            assert_eq!(rows(&plan.run(root, 2048, 4).unwrap()), expected);
        }
    }

    #[test]
    fn nothing_sorted_is_nothing_and_the_budget_holds() {
        let mut plan = TestPlan::new();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        assert_eq!(plan.run(root, 7, 2).unwrap().num_rows(), 0);
        let mut plan = TestPlan::new();
        let text: Vec<String> = (0..5_000).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &text.join("|")));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        let context = TestContext::with_budget(2048, 1, 10_000);
        assert_eq!(plan.run_in(root, context.clone()).unwrap_err().code(), tessera_types::Code::Limit);
        assert_eq!(context.used(), 0);
    }

    #[test]
    fn keys_are_checked() {
        for (params, expected) in [
            (keys(&[("c", false, false)]), "sort key c is not a field"),
            (Params::new().with("keys", Value::List(vec![])), "at least one field"),
            (Params::new(), "parameter keys is missing"),
        ] {
            let mut plan = TestPlan::new();
            let table = plan.table(batch("<a: int64>", ""));
            let root = plan.add("sort", &[table], params);
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn sorted_streams_are_merged_and_others_rejected() {
        let mut plan = TestPlan::new();
        let key = SortKey { field: "a".into(), descending: false, nulls_first: false };
        let params = plan.given_as(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"), None, Order::Sorted(vec![key]));
        let table = plan.add("given", &[], params);
        let root = plan.add("merge", &[table], keys(&[("a", false, false)]));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64>", "1|2|3|4|5|6|7|8|9");
        }
        let root = plan.add("merge", &[table], keys(&[("a", true, false)]));
        assert!(plan.verify(root).unwrap_err().to_string().contains("insert a sort"));
    }
}
