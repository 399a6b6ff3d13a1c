//! `local_partition`: scatters tuples over partitions of known sizes.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use tessera_context::Run;
use tessera_functions::key_hash::{CachedHashCode, KeyHasher};
use tessera_operator::describe::{edges, require_all, single_edge};
use tessera_operator::partitions::{Partitioning, partitions_chunk, partitions_tuple};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, RowLayout, RowWriter, Scatter, Scatterer, WriteRequestCell};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::data::local_histogram::histogram_tuple;

/// Partitions tuples by `bits` bits of the hash of their `keys`, starting `shift` bits from the
/// top; the second input is a histogram of the partition sizes (Modularis §2.3.2).
///
/// With `bits = 1`, tuples become `<partition, data: rows<…>>` = `(0, tuples whose hash begins with
/// a zero)`, `(1, the others)`: always 2^bits tuples, in order; a partition itself is unordered.
/// Partitions are allocated at their exact size and filled through write-combining buffers. Holds
/// the tuples once, as rows, and the buffers; ends its pipeline. Errors: a histogram of other
/// tuples or with other parameters.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: int64>, rows = [[1], [2], [3], [4], [5]]}
///      %counts = local_histogram(%t) {keys = [k], bits = 1, shift = 0}
///      %parts = local_partition(%t, %counts) {keys = [k], bits = 1, shift = 0}
///      %result = rows_scan(%parts) {field = data}",
/// );
/// assert_eq!(rows, ["1", "5", "2", "3", "4"]);
/// ```
#[derive(Debug)]
pub struct LocalPartition;

impl Descriptor for LocalPartition {
    tessera_operator::describe!(
        "local_partition",
        "Partitions tuples by their keys' hashes, with sizes known from a histogram.",
        ["keys", "bits", "shift"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [stream, histogram] = edges(inputs)? else { return Err(Error::internal("two inputs")) };
        require_all(stream, 0)?;
        require_all(histogram, 1)?;
        if histogram.tuple != histogram_tuple() {
            return Err(Error::semantic(format!(
                "input 1 is {}; local_partition expects a histogram {}",
                histogram.tuple,
                histogram_tuple()
            )));
        }
        Partitioning::new(node, &stream.tuple)?;
        Ok(single_edge(stream, partitions_tuple(&stream.tuple), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for LocalPartition {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let (partitioning, layout) = (Partitioning::new(node, tuple)?, RowLayout::new(tuple)?);
        let (hash, write) = (CachedHashCode::new(), WriteRequestCell::new());
        Ok(Operator::Sink(Arc::new(LocalPartitionOperator { partitioning, layout, hash, write })))
    }
}

#[derive(Debug)]
struct LocalPartitionOperator {
    partitioning: Partitioning,
    layout: Arc<RowLayout>,
    hash: CachedHashCode,
    write: WriteRequestCell,
}

impl LocalPartitionOperator {
    /// Returns the partition sizes from the histogram.
    fn counts(&self, histogram: &Collected) -> Result<Vec<usize>> {
        let mut counts = Vec::with_capacity(self.partitioning.count());
        for chunk in histogram.chunks() {
            let chunk = chunk?;
            let column = |index: usize| chunk.column(index)?.plain();
            let (numbers, sizes) = (column(0)?, column(1)?);
            let values = numbers.as_primitive::<Int64Type>().values().iter();
            for (number, count) in values.zip(sizes.as_primitive::<Int64Type>().values()) {
                match usize::try_from(*count) {
                    Ok(count) if *number == counts.len() as i64 => counts.push(count),
                    _ => {
                        let message = format!(
                            "a histogram with partition {number} of {count} tuples out of its place"
                        );
                        return Err(Error::data(message));
                    }
                }
            }
        }
        if counts.len() != self.partitioning.count() {
            return Err(Error::data(format!(
                "the histogram has {} partitions, but bits = {} gives {}",
                counts.len(),
                self.partitioning.bits,
                self.partitioning.count()
            )));
        }
        Ok(counts)
    }
}

impl Sink for LocalPartitionOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let histogram = sides.first().ok_or_else(|| Error::internal("a side is missing"))?;
        let counts = self.counts(histogram)?;
        let (bits, shift) = (self.partitioning.bits, self.partitioning.shift);
        let scatter = Scatter::new(self.layout.clone(), &counts, (bits, shift), &run.context)?;
        let hasher =
            KeyHasher::start(&self.hash, self.layout.tuple(), &self.partitioning.keys, run);
        let writer = RowWriter::start(&self.write, &self.layout, true, run);
        Ok(Arc::new(PartitionRun { hasher, writer, scatter, run: run.clone() }))
    }
}

#[derive(Debug)]
struct PartitionRun {
    hasher: KeyHasher,
    writer: RowWriter,
    scatter: Arc<Scatter>,
    run: Run,
}

struct PartitionWorker {
    hasher: KeyHasher,
    writer: RowWriter,
    scatterer: Scatterer,
    hashes: Vec<u64>,
}

impl SinkRun for PartitionRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (hasher, writer) = (self.hasher.clone(), self.writer.clone());
        let scatterer = self.scatter.worker(&self.run.context)?;
        Ok(Box::new(PartitionWorker { hasher, writer, scatterer, hashes: Vec::new() }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in downcast_workers::<PartitionWorker>(workers)? {
            worker.scatterer.flush()?;
        }
        let chunk = partitions_chunk(self.scatter.finish()?);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl SinkWorker for PartitionWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.hasher.hashes(&chunk, &mut self.hashes)?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        self.scatterer.append(&self.writer.tuples(&chunk)?, &self.hashes, selection)
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{Numbers, TestContext, batch, rows};
    use tessera_operator::testing::{SETTINGS, TestPlan, names};
    use tessera_plan::{NodeId, Params};

    use super::*;
    use crate::testing::test_plan;

    fn params(bits: i64, shift: i64) -> Params {
        Params::new().with("keys", names(&["k"])).with("bits", bits).with("shift", shift)
    }

    fn scanned(plan: &mut TestPlan, partitions: NodeId) -> NodeId {
        plan.add(
            "rows_scan",
            &[partitions],
            Params::new().with("field", tessera_plan::Value::name("data")),
        )
    }

    fn table(count: usize, seed: u64) -> String {
        let mut numbers = Numbers::new(seed);
        let line = |i: usize| {
            let key = numbers.below(40);
            let key = if key == 0 { "NULL".into() } else { format!("k{key}") };
            let text = if i.is_multiple_of(3) {
                "short".into()
            } else {
                format!("a-text-of-more-than-12-bytes-{i}")
            };
            format!("{key} {i} {text} {}", i.is_multiple_of(2))
        };
        (0..count).map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn partitions_are_a_permutation_that_agrees_with_the_generic_one() {
        for (count, bits, shift) in
            [(0, 2, 0), (1, 0, 0), (500, 0, 3), (5_000, 3, 0), (3_000, 6, 17), (50, 10, 54)]
        {
            let mut plan = test_plan();
            let text = table(count, count as u64);
            let table = plan.table(batch("<k: string?, i: int64, t: string, b: boolean>", &text));
            let histogram = plan.add("local_histogram", &[table], params(bits, shift));
            let local = plan.add("local_partition", &[table, histogram], params(bits, shift));
            let generic = plan.add("partition", &[table], params(bits, shift));
            let (local_rows, generic_rows) =
                (scanned(&mut plan, local), scanned(&mut plan, generic));
            let mut all: Vec<String> =
                text.split('|').map(String::from).filter(|line| !line.is_empty()).collect();
            all.sort();
            for (chunk, workers) in SETTINGS {
                let mut found = rows(&plan.run(local_rows, chunk, workers).unwrap());
                found.sort();
                assert_eq!(found, all);
                let context = TestContext::new(chunk, workers);
                let local = plan.collect(local, context.clone()).unwrap();
                let generic = plan.collect(generic, context.clone()).unwrap();
                assert_eq!(
                    sets(&local),
                    sets(&generic),
                    "{count} tuples, bits {bits}, shift {shift}"
                );
                drop((local, generic));
                assert_eq!(context.used(), 0);
                assert_eq!(rows(&plan.run(generic_rows, chunk, workers).unwrap()).len(), count);
            }
        }
    }

    /// The numbers in each partition, sorted; partitions in order.
    fn sets(partitions: &Collected) -> Vec<Vec<i64>> {
        let mut sets = Vec::new();
        for chunk in partitions.chunks().map(Result::unwrap) {
            for handle in chunk.column(1).unwrap().handles().unwrap() {
                let rows = handle.get::<tessera_rows::Rows>().unwrap();
                let chunk = rows.chunk(0..rows.len() as u64).unwrap();
                let column = chunk.column(1).unwrap().plain().unwrap();
                let mut set = column.as_primitive::<Int64Type>().values().to_vec();
                set.sort_unstable();
                sets.push(set);
            }
        }
        sets
    }

    #[test]
    fn large_partitions_are_filled() {
        let mut plan = test_plan();
        let numbers: Vec<i64> = (0..500_000).collect();
        let k = Arc::new(arrow::array::Int64Array::from(numbers));
        let schema =
            "<k: int64, v: int64>".parse::<tessera_types::Tuple>().unwrap().arrow_schema().unwrap();
        let batch =
            arrow::array::RecordBatch::try_new(Arc::new(schema), vec![k.clone(), k]).unwrap();
        let table = plan.table(batch);
        let histogram = plan.add("local_histogram", &[table], params(5, 0));
        let partitions = plan.add("local_partition", &[table, histogram], params(5, 0));
        let root = scanned(&mut plan, partitions);
        let found = plan.run(root, 2048, 3).unwrap();
        let mut values = found.column(1).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(found.column(0), found.column(1));
        values.sort_unstable();
        assert!(values.iter().copied().eq(0..500_000));
    }

    #[test]
    fn a_histogram_of_other_tuples_is_an_error() {
        let mut plan = test_plan();
        let tuple = "<k: string?, i: int64, t: string, b: boolean>";
        let table_a = plan.table(batch(tuple, &table(100, 1)));
        let table_b = plan.table(batch(tuple, &table(120, 2)));
        let histogram = plan.add("local_histogram", &[table_a], params(3, 0));
        let root = plan.add("local_partition", &[table_b, histogram], params(3, 0));
        let message = plan.collect(root, TestContext::new(7, 2)).unwrap_err().to_string();
        assert!(message.contains("the histogram counts"), "{message}");
        let root = plan.add("local_partition", &[table_a, histogram], params(2, 0));
        let message = plan.collect(root, TestContext::new(7, 2)).unwrap_err().to_string();
        assert!(message.contains("8 partitions, but bits = 2 gives 4"), "{message}");
    }

    #[test]
    fn parameters_are_checked() {
        for (params, expected) in [
            (params(17, 0), "too many partitions"),
            (params(4, 61), "64 bits"),
            (
                Params::new().with("keys", names(&["x"])).with("bits", 1).with("shift", 0),
                "key x is not a field",
            ),
            (
                Params::new().with("keys", names(&["k"])).with("bits", 1),
                "parameter shift is missing",
            ),
        ] {
            let mut plan = test_plan();
            let table = plan.table(batch("<k: int64>", ""));
            let root = plan.add("local_histogram", &[table], params);
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
