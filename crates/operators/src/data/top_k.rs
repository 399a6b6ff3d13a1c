//! `top_k`: the first tuples of a sort.

mod compiled;

use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{Array, ArrayRef, UInt32Array};

use tessera_context::{Context, Reservation, Run};
use tessera_operator::describe::{count, edge, require_all_unless_partial, single_edge};
use tessera_operator::stream_util::DeferredSource;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, Task, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_state::sideways::{Threshold as PublishedThreshold, within};
use tessera_types::{Error, Field, Result};
use tessera_vector::{Chunk, Column, interleave_columns};

use crate::data::sort_keys::{KeyEncoder, checked_keys};

use compiled::{CompiledThreshold, ThresholdRequestCell};

/// Candidates that a worker gathers beyond the required ones before it prunes. Few, so that a
/// threshold is known after the first chunk and stays tight.
const SLACK_ROWS: usize = 256;

/// Sorts by `keys`, skips `offset` tuples (optional) and yields the next `limit`: a sort and a
/// limit in bounded memory.
///
/// `3, 1, 2` with `keys = [{field = a}], limit = 2` gives `1, 2`. Each worker holds its best
/// candidates; a tuple after the last of them costs one comparison of its first key. Order and ties
/// are those of `sort`. Holds about twice `limit + offset` tuples per worker; ends its pipeline.
/// With `threshold` = a name, it publishes the largest useful value of the first key to scans that
/// subscribe to this name.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = top_k(%t) {keys = [{field = x, descending = true}], limit = 2}",
/// );
/// assert_eq!(rows, ["3", "2"]);
/// ```
#[derive(Debug)]
pub struct TopK;

impl Descriptor for TopK {
    tessera_operator::describe!(
        "top_k",
        "Yields the first tuples of a sort.",
        ["keys", "limit", "offset", "partial", "threshold"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all_unless_partial(node, edge, 0)?;
        if count(node, "limit")?.is_none() {
            return Err(Error::semantic("parameter limit is missing; without a limit use sort"));
        }
        count(node, "offset")?;
        threshold(node)?;
        Ok(single_edge(edge, edge.tuple.clone(), Order::Sorted(checked_keys(node, &edge.tuple)?)))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for TopK {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let encoder = Arc::new(KeyEncoder::new(node, tuple)?);
        let first = tuple.fields()[encoder.first_field()].clone();
        let limit = count(node, "limit")?.unwrap_or(0);
        let offset = count(node, "offset")?.unwrap_or(0);
        let (threshold, request) = (threshold(node)?, Arc::default());
        Ok(Operator::Sink(Arc::new(TopKOperator {
            encoder,
            first,
            limit,
            offset,
            threshold,
            request,
        })))
    }
}

/// Returns the name under which the threshold is published.
fn threshold(node: &Node) -> Result<Option<Arc<str>>> {
    node.param("threshold").map(|_| node.params.name("threshold").cloned()).transpose()
}

#[derive(Debug, Clone)]
struct TopKOperator {
    encoder: Arc<KeyEncoder>,
    /// The field of the first key.
    first: Field,
    limit: usize,
    offset: usize,
    threshold: Option<Arc<str>>,
    request: Arc<ThresholdRequestCell>,
}

impl TopKOperator {
    fn kept_rows(&self) -> usize {
        if self.limit == 0 { 0 } else { self.limit.saturating_add(self.offset) }
    }
}

impl Sink for TopKOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (operator, context) = (self.clone(), run.context.clone());
        let published = self
            .threshold
            .as_ref()
            .map(|name| run.board.find_or_publish::<PublishedThreshold>(name));
        let key = (self.encoder.first(), self.encoder.first_field(), &self.first);
        let compiled = CompiledThreshold::start(&self.request, key, run);
        Ok(Arc::new(TopKRun { operator, context, threshold: Arc::default(), published, compiled }))
    }
}

#[derive(Debug)]
struct TopKRun {
    operator: TopKOperator,
    context: Arc<dyn Context>,
    /// The best of the workers' last candidates; written after pruning, read once per chunk.
    threshold: Arc<RwLock<Option<Threshold>>>,
    published: Option<Arc<PublishedThreshold>>,
    compiled: Option<Arc<CompiledThreshold>>,
}

/// The last useful candidate: no tuple that sorts after it can be in the result.
#[derive(Debug, Clone)]
struct Threshold {
    rank: Rank,
    /// The value of its first key, as an array of one, if it can be compared.
    first: Option<ArrayRef>,
}

/// The order of candidates: the key, then the place in the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    key: Box<[u8]>,
    position: u64,
    sequence: u64,
}

struct Candidate {
    rank: Rank,
    chunk: u32,
    row: u32,
}

struct TopKWorker {
    operator: TopKOperator,
    context: Arc<dyn Context>,
    threshold: Arc<RwLock<Option<Threshold>>>,
    published: Option<Arc<PublishedThreshold>>,
    compiled: Option<Arc<CompiledThreshold>>,
    position: u64,
    sequence: u64,
    candidates: Vec<Candidate>,
    chunks: Vec<Chunk>,
    memory: Reservation,
}

impl SinkRun for TopKRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(TopKWorker {
            operator: self.operator.clone(),
            context: self.context.clone(),
            threshold: self.threshold.clone(),
            published: self.published.clone(),
            compiled: self.compiled.clone(),
            position: 0,
            sequence: 0,
            candidates: Vec::new(),
            chunks: Vec::new(),
            memory: Reservation::new(self.context.clone()),
        }))
    }

    fn satisfied(&self) -> bool {
        self.operator.limit == 0
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<TopKWorker>(workers)?;
        let output = DeferredSource::new(1, self.context.chunk_rows());
        let filled = output.clone();
        let task: Task = Box::new(move || filled.fill(0, self.gather(workers)?));
        Ok(Finish { tasks: vec![task], output })
    }
}

impl TopKRun {
    /// Returns the first tuples among the candidates of all workers.
    fn gather(&self, workers: Vec<TopKWorker>) -> Result<Vec<Chunk>> {
        let (mut candidates, mut chunks) = (Vec::new(), Vec::new());
        for worker in workers {
            let base = chunks.len() as u32;
            candidates.extend(
                worker.candidates.into_iter().map(|c| Candidate { chunk: c.chunk + base, ..c }),
            );
            chunks.extend(worker.chunks);
        }
        candidates.sort_unstable_by(|a, b| a.rank.cmp(&b.rank));
        candidates.truncate(self.operator.kept_rows());
        let first = self.operator.offset.min(candidates.len());
        candidates[first..]
            .chunks(self.context.chunk_rows())
            .map(|part| gather(&chunks, part))
            .collect()
    }
}

fn gather(chunks: &[Chunk], candidates: &[Candidate]) -> Result<Chunk> {
    let places: Vec<(usize, usize)> = candidates
        .iter()
        .map(|candidate| (candidate.chunk as usize, candidate.row as usize))
        .collect();
    let width = chunks.first().map_or(0, Chunk::width);
    let column = |index: usize| {
        let parts: Vec<Column> = chunks.iter().map(|chunk| chunk.stored()[index].clone()).collect();
        interleave_columns(&parts, &places)
    };
    Ok(Chunk::new((0..width).map(column).collect::<Result<_>>()?, places.len()))
}

/// Returns how many selected tuples precede each of some positions; both ascend.
fn places_of(chunk: &Chunk, positions: &[u32]) -> Vec<u64> {
    let Some(selection) = chunk.selection() else {
        return positions.iter().map(|p| u64::from(*p)).collect();
    };
    let mut counted = selection.values().iter().zip(0u64..);
    let place = |position: &u32| Some(counted.find(|(other, _)| *other == position)?.1);
    positions.iter().filter_map(place).collect()
}

impl SinkWorker for TopKWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        (self.position, self.sequence) = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.context.check()?;
        if self.operator.limit == 0 {
            return Ok(());
        }
        let start = self.sequence;
        self.sequence += chunk.rows() as u64;
        let threshold = self.threshold.read().unwrap_or_else(PoisonError::into_inner).clone();
        let first = threshold.as_ref().and_then(|threshold| threshold.first.as_ref());
        let (chunk, places) = self.not_behind(chunk, first)?;
        if chunk.is_empty() {
            return Ok(());
        }
        let keys = self.operator.encoder.encode(&chunk)?;
        let number = self.chunks.len() as u32;
        let before = self.candidates.len();
        for (row, place) in places.iter().enumerate() {
            let (key, sequence) = (keys.row(row), start + place);
            let behind = threshold.as_ref().is_some_and(|threshold| {
                let last = &threshold.rank;
                (key.data(), self.position, sequence) > (&*last.key, last.position, last.sequence)
            });
            if !behind {
                let rank = Rank { key: key.data().into(), position: self.position, sequence };
                self.candidates.push(Candidate { rank, chunk: number, row: row as u32 });
            }
        }
        if self.candidates.len() > before {
            let keys: usize =
                self.candidates[before..].iter().map(|candidate| candidate.rank.key.len()).sum();
            let entries = (self.candidates.len() - before) * size_of::<Candidate>();
            self.memory.grow(chunk.value_bytes() + keys + entries)?;
            self.chunks.push(chunk);
        }
        let kept = self.operator.kept_rows();
        if self.candidates.len() >= kept.saturating_mul(2).max(kept.saturating_add(SLACK_ROWS)) {
            self.prune()?;
        }
        Ok(())
    }
}

impl TopKWorker {
    /// Returns the tuples of a chunk that are not after a value of the first key, with their places
    /// in the original chunk.
    fn not_behind(&self, chunk: Chunk, first: Option<&ArrayRef>) -> Result<(Chunk, Vec<u64>)> {
        let Some(first) = first else {
            let rows = chunk.rows() as u64;
            return Ok((chunk.compact()?, (0..rows).collect()));
        };
        if let Some(compiled) = &self.compiled
            && let Some(positions) = compiled.within(&chunk, first)?
        {
            let places = places_of(&chunk, &positions);
            let candidates = chunk.select(Arc::new(UInt32Array::from(positions))).compact()?;
            return Ok((candidates.with_compact_strings(), places));
        }
        let encoder = &self.operator.encoder;
        let mask = within(encoder.first(), encoder.first_values(&chunk)?, first)?;
        let places = mask.values().set_indices().map(|place| place as u64).collect();
        // With their own strings: a few tuples must not keep those of all others alive.
        Ok((chunk.filter(&mask).compact()?.with_compact_strings(), places))
    }

    /// Prunes to the best candidates, and publishes the last of them.
    fn prune(&mut self) -> Result<()> {
        self.candidates.sort_unstable_by(|a, b| a.rank.cmp(&b.rank));
        self.candidates.truncate(self.operator.kept_rows());
        let tuples = gather(&self.chunks, &self.candidates)?.with_compact_strings();
        for (row, candidate) in self.candidates.iter_mut().enumerate() {
            (candidate.chunk, candidate.row) = (0, row as u32);
        }
        let keys: usize = self.candidates.iter().map(|candidate| candidate.rank.key.len()).sum();
        let entries = self.candidates.len() * size_of::<Candidate>();
        self.memory.resize(tuples.value_bytes() + keys + entries)?;
        if let Some(last) = self.candidates.last() {
            let first = self.operator.encoder.first_values(&tuples.slice(tuples.rows() - 1, 1))?;
            let first =
                (!first.data_type().is_nested() && !first.data_type().is_null()).then_some(first);
            let threshold = Threshold { rank: last.rank.clone(), first };
            let mut shared = self.threshold.write().unwrap_or_else(PoisonError::into_inner);
            if shared.as_ref().is_none_or(|shared| threshold.rank < shared.rank) {
                if let (Some(published), Some(first)) = (&self.published, &threshold.first) {
                    published.set(first.clone());
                }
                *shared = Some(threshold);
            }
        }
        self.chunks = vec![tuples];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{Numbers, batch, rows};
    use tessera_operator::testing::{SETTINGS, sort_keys as keys};
    use tessera_plan::Params;

    use crate::testing::test_plan;

    /// Checks that `top_k` equals a sort and a limit.
    fn agrees(text: &str, list: &[(&str, bool, bool)], limit: i64, offset: i64) {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64?, b: string?, i: int64>", text));
        let bounds = |params: Params| params.with("limit", limit).with("offset", offset);
        let sort = plan.add("sort", &[table], keys(list));
        let limited = plan.add("limit", &[sort], bounds(Params::new()));
        let root = plan.add("top_k", &[table], bounds(keys(list)));
        for (chunk, workers) in SETTINGS {
            let expected = rows(&plan.run(limited, 2048, 1).unwrap());
            let found = rows(&plan.run(root, chunk, workers).unwrap());
            assert_eq!(
                found, expected,
                "{list:?} limit {limit} offset {offset} chunks {chunk} {workers}"
            );
        }
    }

    #[test]
    fn it_is_a_sort_and_a_limit() {
        let mut numbers = Numbers::new(5);
        let line = |i: u64, numbers: &mut Numbers| {
            let a =
                if numbers.below(10) == 0 { "NULL".into() } else { numbers.below(50).to_string() };
            let b = if numbers.below(10) == 0 {
                "NULL".into()
            } else {
                format!("b{}", numbers.below(20))
            };
            format!("{a} {b} {i}")
        };
        let lines: Vec<String> = (0..20_000).map(|i| line(i, &mut numbers)).collect();
        let small = lines[..200].join("|");
        for list in [
            &[("a", false, false)][..],
            &[("a", true, true)],
            &[("a", true, false), ("b", false, true)],
            &[("b", false, false), ("i", true, false)],
        ] {
            for (limit, offset) in [(0, 0), (1, 0), (10, 3), (500, 0), (5, 190), (5, 300)] {
                agrees(&small, list, limit, offset);
            }
        }
        let large = lines.join("|");
        agrees(&large, &[("a", false, false)], 100, 0);
        agrees(&large, &[("b", true, false), ("a", false, false)], 7, 2);
        agrees(&large, &[("i", true, false)], 6_000, 10);
        agrees("", &[("a", false, false)], 6, 0);
    }

    #[test]
    fn a_limit_is_needed() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("top_k", &[table], keys(&[("a", false, false)]));
        assert!(plan.verify(root).unwrap_err().to_string().contains("limit is missing"));
    }
}
