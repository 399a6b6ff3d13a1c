//! `local_histogram`: how many tuples each partition will have.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use tessera_encodings::Chunk;
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Atom, Field, Result, Tuple};

use crate::data::partitions::Partitioning;
use crate::describe::{edge, gives_one};
use crate::operator::{
    Collected, Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use crate::rows::{Incoming, RowLayout, partition_of};
use crate::stream_util::chunks_source;
use crate::{Run, describe};

/// Counts tuples by `bits` bits of the hash of their `keys`, starting `shift` bits from the top (Modularis §2.3.2).
///
/// With `bits = 1`, five tuples, three of whose hashes begin with a one, give `<partition, count>` = `(0, 2), (1, 3)`: always
/// 2^bits tuples, in order. Partition sizes follow for a `local_partition` with the same parameters. With `strings`, a third field
/// `bytes` says how long the strings of more than 12 bytes are together, which rows keep apart. Holds a number
/// for each partition and worker; ends its pipeline.
#[derive(Debug)]
pub struct LocalHistogram;

impl Descriptor for LocalHistogram {
    describe!(
        "local_histogram",
        "Counts the tuples of each partition of their keys' hashes.",
        ["keys", "bits", "shift", "strings"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        Partitioning::new(node, &edge.tuple)?;
        let mut tuple = histogram_tuple();
        if node.params.flag("strings")? {
            tuple = tuple.concat(&Tuple::new(vec![Field::new("bytes", Atom::Int64)]));
        }
        Ok(gives_one(edge, tuple, Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

/// The type of a histogram.
pub(crate) fn histogram_tuple() -> Tuple {
    Tuple::new(vec![Field::new("partition", Atom::Int64), Field::new("count", Atom::Int64)])
}

impl SubOperator for LocalHistogram {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let partitioning = Partitioning::new(node, &lowering.inputs[0].tuple)?;
        let layout = RowLayout::new(&lowering.inputs[0].tuple)?;
        let strings = match node.params.flag("strings")? {
            false => Strings::Unasked,
            true if layout.has_heap() => Strings::Counted,
            true => Strings::None,
        };
        Ok(Operator::Sink(Arc::new(Lowered { partitioning, strings })))
    }
}

#[derive(Debug)]
struct Lowered {
    partitioning: Partitioning,
    strings: Strings,
}

/// Whether the bytes of long strings are wanted, and whether there can be any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strings {
    Unasked,
    None,
    Counted,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (partitioning, strings) = (self.partitioning.clone(), self.strings);
        Ok(Arc::new(HistogramRun { partitioning, strings, run: run.clone() }))
    }
}

#[derive(Debug)]
struct HistogramRun {
    partitioning: Partitioning,
    strings: Strings,
    run: Run,
}

struct HistogramWorker {
    partitioning: Partitioning,
    run: Run,
    hashes: Vec<u64>,
    counts: Vec<i64>,
    /// Empty where there are none to count.
    bytes: Vec<i64>,
}

impl SinkRun for HistogramRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (partitioning, run) = (self.partitioning.clone(), self.run.clone());
        let counts = vec![0; partitioning.count()];
        let bytes = if self.strings == Strings::Counted { counts.clone() } else { Vec::new() };
        Ok(Box::new(HistogramWorker { partitioning, run, hashes: Vec::new(), counts, bytes }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut counts = vec![0; self.partitioning.count()];
        let mut bytes = counts.clone();
        for worker in downcast_workers::<HistogramWorker>(workers)? {
            counts.iter_mut().zip(worker.counts).for_each(|(sum, count)| *sum += count);
            bytes.iter_mut().zip(worker.bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..counts.len() as i64));
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        let mut columns = vec![numbers, counts];
        if self.strings != Strings::Unasked {
            columns.push(Arc::new(Int64Array::from(bytes)));
        }
        let chunk = Chunk::from_arrays(columns);
        Ok(Finish { tasks: Vec::new(), output: chunks_source(vec![chunk], self.run.context.chunk_rows()) })
    }
}

impl SinkWorker for HistogramWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        self.partitioning.hashes(&chunk, &mut self.hashes)?;
        let (bits, shift) = (self.partitioning.bits, self.partitioning.shift);
        match chunk.selection() {
            None => self.hashes.iter().for_each(|hash| self.counts[partition_of(*hash, bits, shift)] += 1),
            Some(selection) => selection.values().iter().for_each(|position| {
                self.counts[partition_of(self.hashes[*position as usize], bits, shift)] += 1;
            }),
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        let incoming = Incoming::of_chunk(&chunk)?;
        let mut add = |position: usize, length: u64| {
            self.bytes[partition_of(self.hashes[position], bits, shift)] += length as i64;
        };
        match chunk.selection() {
            None => (0..chunk.rows_stored()).for_each(|p| add(p, incoming.heap_bytes(p))),
            Some(selection) => {
                selection.values().iter().for_each(|p| add(*p as usize, incoming.heap_bytes(*p as usize)));
            }
        }
        Ok(())
    }
}
