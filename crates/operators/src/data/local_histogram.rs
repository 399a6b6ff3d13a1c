//! `local_histogram`: counts the tuples of each partition.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use tessera_context::Run;
use tessera_functions::key_hash::{CachedHashCode, KeyHasher};
use tessera_operator::describe::{edge, keys, single_edge};
use tessera_operator::partitions::Partitioning;
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Bounds, Collected, ResolvedColumns, RowLayout, packs, partition_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::Chunk;
use tessera_vector::hash::{hash_of_word, words_of_key};

/// Counts tuples by `bits` bits of the hash of their `keys`, starting `shift` bits from the top
/// (Modularis §2.3.2).
///
/// With `bits = 1`, five tuples, three of whose hashes begin with a one, give `<partition, count>`
/// = `(0, 2), (1, 3)`: always 2^bits tuples, in order. A `local_partition` with the same parameters
/// allocates its partitions by these counts. With `strings`, a third field `bytes` has the total
/// length of strings of more than 12 bytes, which rows store in a heap. With `ranges`, one more
/// tuple follows for each of these fields: `partition` is -1 minus its position, `count` its least
/// and `bytes` its greatest value; senders use them to pack tuples. Holds a number for each
/// partition and worker; ends its pipeline.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 1], ['b', 2], ['a', 3], ['c',
///        4]]}
///      %result = local_histogram(%t) {keys = [k], bits = 1, shift = 0}",
/// );
/// assert_eq!(rows, ["0 3", "1 1"]);
/// ```
#[derive(Debug)]
pub struct LocalHistogram;

impl Descriptor for LocalHistogram {
    tessera_operator::describe!(
        "local_histogram",
        "Counts the tuples of each partition of their keys' hashes.",
        ["keys", "bits", "shift", "strings", "ranges"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        Partitioning::new(node, &edge.tuple)?;
        ranged(node, &edge.tuple)?;
        let mut tuple = histogram_tuple();
        if node.params.flag("strings")? {
            tuple = tuple.concat(&Tuple::new(vec![Field::new("bytes", Atom::Int64)]));
        }
        Ok(single_edge(edge, tuple, Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

/// The tuple type of a histogram.
pub(crate) fn histogram_tuple() -> Tuple {
    Tuple::new(vec![Field::new("partition", Atom::Int64), Field::new("count", Atom::Int64)])
}

/// Returns the positions of the fields named by `ranges`.
fn ranged(node: &Node, tuple: &Tuple) -> Result<Arc<[usize]>> {
    let names = node.params.names_opt("ranges")?;
    if !names.is_empty() && !node.params.flag("strings")? {
        return Err(Error::semantic(
            "parameter ranges requires strings = true, for the field with the greatest values",
        ));
    }
    let fields = keys(tuple, &names, "range")?;
    match fields.iter().map(|field| &tuple.fields()[*field]).find(|field| !packs(&field.item)) {
        Some(field) => Err(Error::semantic(format!(
            "field {field} has no range; name integers, decimals, dates, times"
        ))),
        None => Ok(fields.into()),
    }
}

impl SubOperator for LocalHistogram {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let partitioning = Partitioning::new(node, &lowering.inputs[0].tuple)?;
        let layout = RowLayout::bare(&lowering.inputs[0].tuple)?;
        let strings = match node.params.flag("strings")? {
            false => Strings::Unasked,
            true if layout.has_heap() => Strings::Counted,
            true => Strings::None,
        };
        let ranged = ranged(node, &lowering.inputs[0].tuple)?;
        let (tuple, hash) = (lowering.inputs[0].tuple.clone(), Arc::default());
        Ok(Operator::Sink(Arc::new(LocalHistogramOperator {
            partitioning,
            strings,
            ranged,
            tuple,
            hash,
        })))
    }
}

#[derive(Debug, Clone)]
struct LocalHistogramOperator {
    partitioning: Partitioning,
    strings: Strings,
    ranged: Arc<[usize]>,
    tuple: Tuple,
    hash: Arc<CachedHashCode>,
}

/// Whether long strings are counted, and whether the tuple has string fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strings {
    Unasked,
    None,
    Counted,
}

impl Sink for LocalHistogramOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let hasher =
            KeyHasher::start_counted(&self.hash, &self.tuple, &self.partitioning.keys, run);
        Ok(Arc::new(HistogramRun { operator: self.clone(), hasher, run: run.clone() }))
    }
}

#[derive(Debug)]
struct HistogramRun {
    operator: LocalHistogramOperator,
    hasher: KeyHasher,
    run: Run,
}

struct HistogramWorker {
    operator: LocalHistogramOperator,
    hasher: KeyHasher,
    run: Run,
    hashes: Vec<u64>,
    counts: Vec<i64>,
    /// String bytes by partition; empty if they are not counted.
    bytes: Vec<i64>,
    /// The bounds of each field of `ranges`.
    bounds: Vec<Bounds>,
}

impl SinkRun for HistogramRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (operator, hasher, run) =
            (self.operator.clone(), self.hasher.clone(), self.run.clone());
        let counts = vec![0; operator.partitioning.count()];
        let bytes = if operator.strings == Strings::Counted { counts.clone() } else { Vec::new() };
        let bounds = vec![Bounds::NONE; operator.ranged.len()];
        Ok(Box::new(HistogramWorker {
            operator,
            hasher,
            run,
            hashes: Vec::new(),
            counts,
            bytes,
            bounds,
        }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let LocalHistogramOperator { partitioning, strings, ranged, .. } = &self.operator;
        let mut counts = vec![0; partitioning.count()];
        let mut bytes = counts.clone();
        let mut bounds = vec![Bounds::NONE; ranged.len()];
        for worker in downcast_workers::<HistogramWorker>(workers)? {
            counts.iter_mut().zip(worker.counts).for_each(|(sum, count)| *sum += count);
            bytes.iter_mut().zip(worker.bytes).for_each(|(sum, bytes)| *sum += bytes);
            bounds.iter_mut().zip(worker.bounds).for_each(|(all, bounds)| *all = all.and(bounds));
        }
        let numbers = (0..counts.len() as i64).chain(ranged.iter().map(|field| -1 - *field as i64));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        counts.extend(bounds.iter().map(|bounds| bounds.least));
        bytes.extend(bounds.iter().map(|bounds| bounds.greatest));
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        let mut columns = vec![numbers, counts];
        if *strings != Strings::Unasked {
            columns.push(Arc::new(Int64Array::from(bytes)));
        }
        let chunk = Chunk::from_arrays(columns);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl SinkWorker for HistogramWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let partitioning = &self.operator.partitioning;
        let counts_only = self.bytes.is_empty() && self.bounds.is_empty();
        if let (true, None, Some(words)) =
            (counts_only, chunk.selection(), words_of_key(&chunk, &partitioning.keys))
        {
            let of = |word: &u64| {
                partition_of(hash_of_word(*word), partitioning.bits, partitioning.shift)
            };
            words.iter().for_each(|word| self.counts[of(word)] += 1);
            return Ok(());
        }
        self.hasher.hashes(&chunk, &mut self.hashes)?;
        let (bits, shift) = (partitioning.bits, partitioning.shift);
        match chunk.selection() {
            None => self
                .hashes
                .iter()
                .for_each(|hash| self.counts[partition_of(*hash, bits, shift)] += 1),
            Some(selection) => selection.values().iter().for_each(|position| {
                self.counts[partition_of(self.hashes[*position as usize], bits, shift)] += 1;
            }),
        }
        if counts_only {
            return Ok(());
        }
        let incoming = ResolvedColumns::of_sent(&chunk)?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        for (bounds, field) in self.bounds.iter_mut().zip(&*self.operator.ranged) {
            *bounds = bounds.and(incoming.bounds(*field, selection));
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        let mut add = |position: usize, length: u64| {
            self.bytes[partition_of(self.hashes[position], bits, shift)] += length as i64;
        };
        match chunk.selection() {
            None => (0..chunk.rows_stored()).for_each(|p| add(p, incoming.heap_bytes(p))),
            Some(selection) => {
                selection
                    .values()
                    .iter()
                    .for_each(|p| add(*p as usize, incoming.heap_bytes(*p as usize)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, rows};
    use tessera_operator::testing::{SETTINGS, names};
    use tessera_plan::{Params, Value};

    use crate::testing::test_plan;

    fn params() -> Params {
        Params::new().with("keys", names(&["k"])).with("bits", 0).with("shift", 0)
    }

    #[test]
    fn ranges_follow_the_partitions() {
        let (min, max) = (i64::MAX, i64::MIN);
        for (text, expected) in [
            (
                "7 1970-01-03 x|-2 NULL y|5 1970-01-09 z",
                vec!["0 3 0".into(), "-2 2 8".into(), "-1 -2 7".to_string()],
            ),
            ("", vec!["0 0 0".into(), format!("-2 {min} {max}"), format!("-1 {min} {max}")]),
        ] {
            let mut plan = test_plan();
            let table = plan.table(batch("<k: int64, d: date?, s: string>", text));
            let params = params().with("strings", true).with("ranges", names(&["d", "k"]));
            let root = plan.add("local_histogram", &[table], params);
            for (chunk, workers) in SETTINGS {
                assert_eq!(rows(&plan.run(root, chunk, workers).unwrap()), expected);
            }
        }
    }

    #[test]
    fn parameters_are_checked() {
        for (params, expected) in [
            (params().with("strings", true).with("ranges", names(&["s"])), "has no range"),
            (params().with("ranges", names(&["k"])), "strings = true"),
            (params().with("strings", Value::name("k")), "strings"),
        ] {
            let mut plan = test_plan();
            let table = plan.table(batch("<k: int64, s: string>", ""));
            let root = plan.add("local_histogram", &[table], params);
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
