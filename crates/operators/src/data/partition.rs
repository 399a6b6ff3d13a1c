//! `partition`: puts tuples into growing partitions.

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_functions::key_hash::{CachedHashCode, KeyHasher};
use tessera_operator::describe::{edge, require_all, single_edge};
use tessera_operator::partitions::{Partitioning, partitions_chunk, partitions_tuple};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{
    Collected, RowLayout, RowWriter, Rows, RowsBuilder, WriteRequestCell, partition_of,
};
use tessera_types::Result;
use tessera_vector::Chunk;

/// Partitions tuples by `bits` bits of the hash of their `keys`, starting `shift` bits from the
/// top; needs no histogram.
///
/// Yields the same partitions as `local_partition` with one pass less over the input, but each
/// worker grows its own part of a partition, so that partitions are scattered over memory. Holds
/// the tuples, as rows; ends its pipeline; partitions are unordered.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: int64>, rows = [[1], [2], [3], [4], [5]]}
///      %parts = partition(%t) {keys = [k], bits = 1, shift = 0}
///      %result = rows_scan(%parts) {field = data}",
/// );
/// assert_eq!(rows, ["1", "5", "2", "3", "4"]);
/// ```
#[derive(Debug)]
pub struct Partition;

impl Descriptor for Partition {
    tessera_operator::describe!(
        "partition",
        "Partitions tuples by their keys' hashes.",
        ["keys", "bits", "shift"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        require_all(edge, 0)?;
        Partitioning::new(node, &edge.tuple)?;
        Ok(single_edge(edge, partitions_tuple(&edge.tuple), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for Partition {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let router = Router::Hash(Partitioning::new(node, tuple)?);
        Ok(Operator::Sink(Arc::new(PartitionSink::new(router, RowLayout::new(tuple)?))))
    }
}

/// Assigns tuples to partitions.
#[derive(Debug, Clone)]
pub(crate) enum Router {
    /// By the hash of keys.
    Hash(Partitioning),
    /// Round robin over this many partitions.
    RoundRobin(usize),
}

/// The sink of `partition` and of `round_robin`.
#[derive(Debug)]
pub(crate) struct PartitionSink {
    router: Router,
    layout: Arc<RowLayout>,
    hash: CachedHashCode,
    write: WriteRequestCell,
}

impl PartitionSink {
    /// Creates a sink that stores tuples in `layout`.
    pub(crate) fn new(router: Router, layout: Arc<RowLayout>) -> PartitionSink {
        PartitionSink {
            router,
            layout,
            hash: CachedHashCode::new(),
            write: WriteRequestCell::new(),
        }
    }
}

impl Sink for PartitionSink {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let (router, layout) = (self.router.clone(), self.layout.clone());
        let hasher = match &router {
            Router::Hash(partitioning) => {
                Some(KeyHasher::start(&self.hash, layout.tuple(), &partitioning.keys, run))
            }
            Router::RoundRobin(_) => None,
        };
        let writer = RowWriter::start(&self.write, &layout, hasher.is_some(), run);
        Ok(Arc::new(PartitionRun { router, layout, hasher, writer, run: run.clone() }))
    }
}

#[derive(Debug)]
struct PartitionRun {
    router: Router,
    layout: Arc<RowLayout>,
    /// Hashes keys, if tuples are routed by hash.
    hasher: Option<KeyHasher>,
    writer: RowWriter,
    run: Run,
}

impl PartitionRun {
    fn partitions(&self) -> usize {
        match &self.router {
            Router::Hash(partitioning) => partitioning.count(),
            Router::RoundRobin(fan_out) => *fan_out,
        }
    }
}

struct PartitionWorker {
    router: Router,
    run: Run,
    layout: Arc<RowLayout>,
    hasher: Option<KeyHasher>,
    writer: RowWriter,
    /// Created with the first tuple of each partition: often most partitions stay empty.
    partitions: Vec<Option<RowsBuilder>>,
    hashes: Vec<u64>,
    selections: Vec<Vec<u32>>,
    turn: usize,
}

impl SinkRun for PartitionRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(PartitionWorker {
            router: self.router.clone(),
            run: self.run.clone(),
            layout: self.layout.clone(),
            hasher: self.hasher.clone(),
            writer: self.writer.clone(),
            partitions: (0..self.partitions()).map(|_| None).collect(),
            hashes: Vec::new(),
            selections: vec![Vec::new(); self.partitions()],
            turn: 0,
        }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut partitions: Vec<Vec<Rows>> = (0..self.partitions()).map(|_| Vec::new()).collect();
        for worker in downcast_workers::<PartitionWorker>(workers)? {
            for (rows, builder) in partitions.iter_mut().zip(worker.partitions) {
                rows.extend(builder.map(RowsBuilder::seal));
            }
        }
        let joined = partitions.into_iter().map(|rows| Rows::concat(self.layout.clone(), rows));
        let chunk = partitions_chunk(joined.collect::<Result<_>>()?);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl SinkWorker for PartitionWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        self.choose(&chunk)?;
        let tuples = self.writer.tuples(&chunk)?;
        for (selection, builder) in self.selections.iter_mut().zip(&mut self.partitions) {
            if selection.is_empty() {
                continue;
            }
            let new = || {
                RowsBuilder::new(self.layout.clone(), Reservation::new(self.run.context.clone()))
            };
            let builder = builder.get_or_insert_with(new);
            let hashes = self.hasher.as_ref().map(|_| &self.hashes[..]);
            builder.append_tuples(&tuples, hashes, Some(selection))?;
            selection.clear();
        }
        Ok(())
    }
}

impl PartitionWorker {
    /// Adds the position of each tuple to the selection of its partition.
    fn choose(&mut self, chunk: &Chunk) -> Result<()> {
        let rows = chunk.rows();
        let position = |row: usize| match chunk.selection() {
            None => row as u32,
            Some(selection) => selection.value(row),
        };
        match &self.router {
            Router::Hash(partitioning) => {
                self.hasher.iter().try_for_each(|hasher| hasher.hashes(chunk, &mut self.hashes))?;
                for row in 0..rows {
                    let position = position(row);
                    let hash = self.hashes[position as usize];
                    self.selections[partition_of(hash, partitioning.bits, partitioning.shift)]
                        .push(position);
                }
            }
            Router::RoundRobin(fan_out) => {
                for row in 0..rows {
                    self.selections[self.turn].push(position(row));
                    self.turn = if self.turn + 1 == *fan_out { 0 } else { self.turn + 1 };
                }
            }
        }
        Ok(())
    }
}
