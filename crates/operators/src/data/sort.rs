//! `sort`: all tuples, in the order of their keys.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::row::Rows;

use tessera_context::interrupt::Every;
use tessera_context::{Context, Reservation, Run, lock};
use tessera_operator::describe::{edge, gives_one, wants_all};
use tessera_operator::{
    Finish, Lowering, Operator, Reader, Sink, SinkRun, SinkWorker, SourceRun, Step, SubOperator,
    Task,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_rows::spill::spillable;
use tessera_state::loser_tree::LoserTree;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column, concat_chunks, interleave_columns};

use super::sort_keys::{KeyEncoder, checked_keys};
use super::sort_spilled::{SpilledOutput, SpilledRuns};

/// Fewer tuples than this for each worker are not worth a task of its own.
const TASK_ROWS_MIN: usize = 16_384;
/// Keys looked at for each border between tasks: enough that no task gets much more than its share.
const SAMPLES_PER_BORDER: usize = 64;
/// Tuples that are not sorted yet take at most this part of the memory budget.
const UNSORTED_SHARE: usize = 32;
/// And at most so many bytes: their keys are made in one call, which an interrupt does not end.
const UNSORTED_BYTES_MAX: usize = 128 << 20;
/// Bytes of a chunk of the output, about.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Output chunks in a morsel.
const MORSEL_CHUNKS: usize = 16;
/// Bytes of a key that are compared without a look at the key itself.
const PREFIX_BYTES: usize = 16;

/// Sorts by `keys`; tuples with equal keys stay in the order of the source.
///
/// `(b, 1), (a, 2), (b, 0)` with `keys = [{field = k}]` gives `(a, 2), (b, 1), (b, 0)`. The order
/// is PostgreSQL's: NaN above all numbers, strings by their bytes, NULLs last unless a key says
/// `nulls_first`. Each morsel becomes a sorted run as it comes; at the end the range of keys is cut
/// where its samples say, and each task merges its part of all runs. Tuples are gathered when they
/// are read. Holds everything, as runs; where that is more than there may be, runs leave memory,
/// merged, and are merged again when they are read. Ends its pipeline.
#[derive(Debug)]
pub struct Sort;

impl Descriptor for Sort {
    tessera_operator::describe!("sort", "Sorts tuples by keys.", ["keys"], 1, 1);

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
    spills: bool,
}

impl SortSink {
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        Ok(SortSink { encoder: Arc::new(KeyEncoder::new(node, tuple)?), spills: spillable(tuple) })
    }
}

impl Sink for SortSink {
    fn spills(&self) -> bool {
        self.spills
    }

    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (encoder, context) = (self.encoder.clone(), run.context.clone());
        if self.spills {
            context.state_begins();
        }
        let spilled = self.spills.then(|| SpilledRuns::new(run));
        Ok(Arc::new(SortRun { encoder, context, runs: Arc::default(), spilled }))
    }
}

#[derive(Debug)]
struct SortRun {
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
    /// One lock per morsel, not per chunk.
    runs: Arc<Mutex<Vec<SortedRun>>>,
    /// Where runs go that do not fit into memory; none where all must stay.
    spilled: Option<Arc<SpilledRuns>>,
}

/// A tuple by the start of its key and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    prefix: [u64; 2],
    run: u32,
    row: u32,
}

/// The tuples of a morsel, and their places in the order of their keys.
#[derive(Debug)]
struct SortedRun {
    position: u64,
    /// Number among the runs of its morsel.
    sequence: u32,
    tuples: Chunk,
    /// The keys; absent where the prefix is all of the key.
    keys: Option<Rows>,
    entries: Vec<Entry>,
    memory: Reservation,
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
        let sorted = Arc::new(Sorted::new(runs, &self.encoder, &self.context));
        if let Some(spilled) = self.spilled.as_ref().filter(|spilled| !spilled.is_empty()) {
            let output = SpilledOutput::new(spilled.clone());
            let (last, prepared) = (sorted, output.clone());
            return Ok(Finish { tasks: vec![Box::new(move || prepared.prepare(&last))], output });
        }
        let parts = (sorted.rows() / TASK_ROWS_MIN).clamp(1, self.context.workers());
        let borders = sorted.borders(parts);
        let output = Arc::new(Output {
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
            morsels: OnceLock::new(),
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
        // Gathered, so that few tuples do not keep a large chunk alive.
        let chunk = chunk.compact()?;
        let bytes = chunk.value_bytes();
        self.make_room(bytes)?;
        self.hold(bytes)?;
        self.rows += chunk.rows();
        self.chunks.push(chunk);
        // Places are 32 bits; and what is sorted takes its memory twice for a moment.
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
        // The columns of many chunks refer to as many buffers, and whatever is gathered from
        // several runs would carry all of them along.
        let tuples = concat_chunks(&std::mem::take(&mut self.chunks))?.with_own_strings();
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

    /// All runs so far leave memory where there is no room for so many bytes.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let Some(spilled) = self.spilled.clone() else { return Ok(()) };
        // The tuples that came are still to be sorted: entries, and keys at most as long as they.
        let more = bytes + self.rows * size_of::<Entry>() + self.memory.bytes();
        if self.context.may_hold(spilled.held_bytes(), more) {
            return Ok(());
        }
        self.end()?;
        let runs = std::mem::take(&mut *lock(&self.runs));
        if runs.is_empty() {
            return Ok(());
        }
        spilled.write(&Sorted::new(runs, &self.encoder, &self.context))
    }
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
pub(super) struct Sorted {
    runs: Vec<SortedRun>,
    encoder: Arc<KeyEncoder>,
    context: Arc<dyn Context>,
}

impl Sorted {
    fn new(
        mut runs: Vec<SortedRun>,
        encoder: &Arc<KeyEncoder>,
        context: &Arc<dyn Context>,
    ) -> Sorted {
        runs.sort_by_key(|run| (run.position, run.sequence));
        Sorted { runs, encoder: encoder.clone(), context: context.clone() }
    }

    /// How many tuples there are.
    pub(super) fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.entries.len()).sum()
    }

    /// Tuples of a chunk of the output: fewer where they are long.
    fn chunk_rows(&self) -> usize {
        let tuple_bytes = (self.bytes() / self.rows().max(1)).max(1);
        self.context.chunk_rows().min((OUTPUT_BYTES_MAX / tuple_bytes).max(1))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.memory.bytes()).sum()
    }

    /// The key of a tuple and its place in the source: bytes that order all tuples of all runs.
    pub(super) fn whole_key(&self, entry: &Entry) -> Vec<u8> {
        let run = &self.runs[entry.run as usize];
        let prefix =
            (u128::from(entry.prefix[0]) << 64 | u128::from(entry.prefix[1])).to_be_bytes();
        let mut bytes = match &run.keys {
            Some(keys) => keys.row(entry.row as usize).data().to_vec(),
            None => prefix[..self.encoder.fixed_bytes().unwrap_or(0).min(PREFIX_BYTES)].to_vec(),
        };
        bytes.extend(run.position.to_be_bytes());
        bytes.extend(run.sequence.to_be_bytes());
        bytes.extend(entry.row.to_be_bytes());
        bytes
    }

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
    fn of_run(
        &self,
        run: usize,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Entry> + '_ {
        self.runs[run].entries[range].iter().map(move |entry| Entry { run: run as u32, ..*entry })
    }

    /// Keys that cut all tuples into about equal parts.
    fn borders(&self, parts: usize) -> Arc<[Entry]> {
        let step = (self.rows() / (parts * SAMPLES_PER_BORDER)).max(1);
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
    pub(super) fn merge(&self, from: Option<&Entry>, upto: Option<&Entry>) -> Result<Vec<Entry>> {
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

    /// Merges with a tree of losers: each tuple is compared with the first ones of other runs only,
    /// whose keys stay in the cache; sorting anew would fetch every key again in each of its
    /// passes.
    fn merge_cursors(&self, mut cursors: Vec<Cursor<'_>>) -> Result<Vec<Entry>> {
        let count = cursors.len();
        let mut merged =
            Vec::with_capacity(cursors.iter().map(|cursor| cursor.entries.len()).sum());
        if count < 2 {
            merged
                .extend(cursors.iter_mut().flat_map(|cursor| std::iter::from_fn(|| cursor.take())));
            return Ok(merged);
        }
        let mut tree = LoserTree::new(count, |a, b| self.is_first(&cursors, a, b));
        while let Some(entry) = cursors[tree.winner()].take() {
            merged.push(entry);
            if merged.len() % TASK_ROWS_MIN == 0 {
                self.context.check()?;
            }
            tree.replay(|a, b| self.is_first(&cursors, a, b));
        }
        Ok(merged)
    }

    /// Whether the next tuple of cursor `a` comes before that of `b`; of equal keys the earlier run
    /// comes first.
    fn is_first(&self, cursors: &[Cursor<'_>], a: usize, b: usize) -> bool {
        match (cursors[a].peek(), cursors[b].peek()) {
            (Some(x), Some(y)) => self.compare(&x, &y).then(a.cmp(&b)) == Ordering::Less,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The tuples at these places.
    pub(super) fn gather(&self, entries: &[Entry]) -> Result<Chunk> {
        let mut runs: Vec<u32> = entries.iter().map(|entry| entry.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let place =
            |entry: &Entry| (runs.partition_point(|run| *run < entry.run), entry.row as usize);
        let places: Vec<(usize, usize)> = entries.iter().map(place).collect();
        let width = runs.first().map_or(0, |run| self.runs[*run as usize].tuples.width());
        let column = |index: usize| {
            let parts: Vec<Column> = runs
                .iter()
                .map(|run| self.runs[*run as usize].tuples.stored()[index].clone())
                .collect();
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
            let starts = |part| {
                (0..self.part(part).len())
                    .step_by(self.morsel_rows())
                    .map(move |first| (part, first))
            };
            (0..self.parts.len()).flat_map(starts).collect()
        })
    }
}

impl SourceRun for Output {
    fn morsels(&self) -> usize {
        self.starts().len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let &(part, first) = self
            .starts()
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
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
        let rows = self.sorted.chunk_rows().min(self.entries.len() - self.next);
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
    use tessera_context::testing::{Numbers, TestContext, batch, rows, same};
    use tessera_operator::testing::{SETTINGS, sort_keys as keys};
    use tessera_plan::{Params, SortKey, Value};

    use super::*;
    use crate::testing::test_plan;

    #[test]
    fn order_is_that_of_sql_and_stable() {
        let table =
            || batch("<a: int64?, b: string?>", "2 x|NULL y|1 z|2 a|NULL b|1 é|1 NULL|1 z1");
        let check = |list: &[(&str, bool, bool)], expected: &str| {
            let mut plan = test_plan();
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
        let mut plan = test_plan();
        let table = plan.table(batch(
            "<a: float64?, i: int64>",
            "NaN 1|0 2|-0 3|inf 4|-NaN 5|NULL 6|-inf 7|0 8",
        ));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        let by = plan.add(
            "projection",
            &[root],
            Params::new().with("fields", tessera_operator::testing::names(&["i"])),
        );
        same(&plan.run(by, 7, 2).unwrap(), "<i: int64>", "7|2|3|8|4|1|5|6");
    }

    #[test]
    fn many_tuples_over_many_tasks() {
        let mut numbers = Numbers::new(11);
        let lines: Vec<(i64, String)> = (0..100_000)
            .map(|_| {
                (
                    numbers.below(5_000) as i64 - 2_500,
                    format!("a-rather-long-text-{}", numbers.below(9)),
                )
            })
            .collect();
        let text: Vec<String> = lines.iter().map(|(a, b)| format!("{a} {b}")).collect();
        for by_text in [false, true] {
            let mut plan = test_plan();
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
    fn runs_that_left_memory_are_merged_in_the_order_of_the_source() {
        let mut numbers = Numbers::new(12);
        let lines: Vec<(u64, String, u64)> = (0..30_000)
            .map(|i| (numbers.below(900), format!("a-rather-long-text-{}", numbers.below(30)), i))
            .collect();
        let text: Vec<String> = lines.iter().map(|(a, b, i)| format!("{a} {b} {i}")).collect();
        for (list, by_text) in
            [(&[("a", false, false)][..], false), (&[("b", true, false), ("a", true, true)], true)]
        {
            let mut plan = test_plan();
            let table = plan.table(batch("<a: int64, b: string, i: int64>", &text.join("|")));
            let root = plan.add("sort", &[table], keys(list));
            let mut expected = lines.clone();
            match by_text {
                true => expected.sort_by(|x, y| (&y.1, y.0).cmp(&(&x.1, x.0))),
                false => expected.sort_by_key(|line| line.0),
            }
            let expected: Vec<String> =
                expected.iter().map(|(a, b, i)| format!("{a} {b} {i}")).collect();
            // With the smallest budget each chunk is a run: more of them than are merged at once.
            for (budget, chunk_rows, workers) in [(0, 300, 1), (0, 300, 3), (700_000, 2048, 4)] {
                let context = TestContext::with_state_budget(chunk_rows, workers, budget);
                let found = rows(&plan.run_in(root, context.clone()).unwrap());
                assert!(
                    found == expected,
                    "budget {budget}, chunks of {chunk_rows}, {workers} workers"
                );
                assert_eq!(context.used(), 0);
                assert!(context.spilled() > 0, "nothing has left memory");
            }
        }
    }

    #[test]
    fn nothing_sorted_is_nothing_and_the_budget_holds() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        assert_eq!(plan.run(root, 7, 2).unwrap().num_rows(), 0);
        let mut plan = test_plan();
        let text: Vec<String> = (0..5_000).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &text.join("|")));
        let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
        let context = TestContext::with_budget(2048, 1, 10_000);
        assert_eq!(
            plan.run_in(root, context.clone()).unwrap_err().code(),
            tessera_types::Code::Limit
        );
        assert_eq!(context.used(), 0);
    }

    #[test]
    fn keys_are_checked() {
        for (params, expected) in [
            (keys(&[("c", false, false)]), "sort key c is not a field"),
            (Params::new().with("keys", Value::List(vec![])), "at least one field"),
            (Params::new(), "parameter keys is missing"),
        ] {
            let mut plan = test_plan();
            let table = plan.table(batch("<a: int64>", ""));
            let root = plan.add("sort", &[table], params);
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn sorted_streams_are_merged_and_others_rejected() {
        let mut plan = test_plan();
        let key = SortKey { field: "a".into(), descending: false, nulls_first: false };
        let params =
            plan.given_as(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"), None, Order::Sorted(vec![key]));
        let table = plan.add("given", &[], params);
        let root = plan.add("merge", &[table], keys(&[("a", false, false)]));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64>", "1|2|3|4|5|6|7|8|9");
        }
        let root = plan.add("merge", &[table], keys(&[("a", true, false)]));
        assert!(plan.verify(root).unwrap_err().to_string().contains("insert a sort"));
    }
}
