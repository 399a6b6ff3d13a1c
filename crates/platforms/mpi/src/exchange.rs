//! `mpi_exchange`: partitions tuples straight into the windows of the ranks that own the
//! partitions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_context::{Run, Token};
use tessera_operator::partitions::{Partitioning, partitions_tuple};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, Rows, WireBatch, WirePartitioner};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column, Handle};

use crate::collective::reply_source;
use crate::link::{Buffer, Bytes, Link, Outcome, Put, Request, Work};
use crate::window::{WINDOW, missing_mpi};
use crate::window_memory::{Owner, Slot, WindowMemory};

/// Partitions tuples by some bits of the hash of their `keys` and puts each partition into the
/// window of the rank that owns it, one-sided: full packets are in flight while the next ones are
/// being filled (Barthels et al., 2015; Modularis §2.4.1.2).
///
/// Inputs: tuples `T`, and as a side the `mpi_window` allocated for them from a histogram with the
/// same `keys`, `bits` and `shift`; `window` names the field if the side has several windows.
/// Output: `<partition: int64, data: rows<T>>` for the partitions of this rank, dense and in order.
/// Blocks, and waits while too many bytes are in flight. Memory: packets being filled and in
/// flight.
#[derive(Debug, Clone)]
pub struct Exchange {
    link: Option<Arc<Link>>,
}

impl Exchange {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Exchange { link }
    }
}

impl Descriptor for Exchange {
    tessera_operator::describe!(
        "mpi_exchange",
        "Puts tuples into the windows of the ranks that own their partitions.",
        ["keys", "bits", "shift", "window"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [edge, side] = describe::edges(inputs)? else {
            return Err(Error::internal("mpi_exchange without two inputs"));
        };
        let (_, window) = describe::collection(&side.tuple, &window_field(node)?, WINDOW)?;
        if window.tuple != edge.tuple {
            return Err(Error::semantic(format!(
                "the window of mpi_exchange is for tuples {}, but its input has {}",
                window.tuple, edge.tuple
            )));
        }
        Partitioning::new(node, &edge.tuple)?;
        let traits = Traits { locality: Locality::All, ..edge.traits };
        Ok(Edge { tuple: partitions_tuple(&edge.tuple), traits, order: Order::None })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

/// Returns the field of the side input that holds the window.
fn window_field(node: &Node) -> Result<Arc<str>> {
    if node.params.get("window").is_some() {
        describe::field_name(node, "window")
    } else {
        Ok("window".into())
    }
}

impl SubOperator for Exchange {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let partitioning = Partitioning::new(node, &lowering.inputs[0].tuple)?;
        let (window, _) =
            describe::collection(&lowering.inputs[1].tuple, &window_field(node)?, WINDOW)?;
        Ok(Operator::Sink(Arc::new(ExchangeOperator {
            link,
            partitioning,
            window,
            step: lowering.position,
        })))
    }
}

#[derive(Debug)]
struct ExchangeOperator {
    link: Arc<Link>,
    partitioning: Partitioning,
    window: usize,
    step: usize,
}

impl Sink for ExchangeOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let side = sides
            .first()
            .ok_or_else(|| Error::internal("mpi_exchange without its side input"))?
            .single()?;
        let column = side.column(self.window)?;
        let handles = column.handles()?;
        let handle =
            handles.first().ok_or_else(|| Error::internal("mpi_exchange without a window"))?;
        let window: Arc<WindowMemory> = (*handle.get::<Arc<WindowMemory>>()?).clone();
        if window.partitions()? != self.partitioning.count() {
            return Err(Error::data(format!(
                "the histogram has {} partitions, but bits = {} makes {}; compute it with the same bits",
                window.partitions()?,
                self.partitioning.bits,
                self.partitioning.count()
            )));
        }
        let shared = Shared { link: self.link.clone(), window, run: run.clone() };
        let partitioning = self.partitioning.clone();
        Ok(Arc::new(ExchangeRun { shared: Arc::new(shared), partitioning, step: self.step }))
    }
}

/// State shared by all workers of a run.
#[derive(Debug)]
struct Shared {
    link: Arc<Link>,
    window: Arc<WindowMemory>,
    run: Run,
}

#[derive(Debug)]
struct ExchangeRun {
    shared: Arc<Shared>,
    partitioning: Partitioning,
    step: usize,
}

struct Worker {
    shared: Arc<Shared>,
    outgoing: WirePartitioner,
    heap_words: Arc<[usize]>,
    pending: PendingPuts,
}

/// Bytes of puts that are submitted together, since each submission wakes the communication worker.
const SUBMIT_BYTES: usize = 1 << 20;

/// Puts that are not yet submitted to the communication worker.
#[derive(Default)]
struct PendingPuts {
    puts: Vec<Put>,
    bytes: usize,
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (shared, keys) = (self.shared.clone(), &self.partitioning.keys);
        let bits = (self.partitioning.bits, self.partitioning.shift);
        let outgoing =
            WirePartitioner::new(shared.window.layout()?, keys, bits, &shared.run.context)?;
        let heap_words = outgoing.heap_words().clone();
        Ok(Box::new(Worker { shared, outgoing, heap_words, pending: PendingPuts::default() }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in downcast_workers::<Worker>(workers)? {
            let (shared, heap_words) = (worker.shared.clone(), worker.heap_words.clone());
            let pending = &mut worker.pending;
            worker.outgoing.flush(&mut |partition, packet| {
                shared.send(partition, packet, &heap_words, pending)
            })?;
            shared.submit(pending);
        }
        let Shared { link, window, run } = &*self.shared;
        window.check_full()?;
        let reply = link.step(self.step, Work::Close(window.clone()));
        // The closure keeps the window alive until its partitions are dropped.
        let window = window.clone();
        let make = move |outcome| {
            let Outcome::Complete = outcome else {
                return Err(Error::internal("window not closed"));
            };
            Ok(vec![partitions_chunk(window.received()?)])
        };
        let output = reply_source(reply, run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// Returns received partitions and their numbers as a chunk.
pub(crate) fn partitions_chunk(partitions: Vec<(i64, Rows)>) -> Chunk {
    let (numbers, rows): (Vec<i64>, Vec<_>) = partitions.into_iter().unzip();
    let handles: Vec<Handle> = rows.into_iter().map(Handle::new).collect();
    let count = numbers.len();
    let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
    Chunk::new(vec![Column::Plain(numbers), Column::Handles(handles.into())], count)
}

impl Shared {
    fn send(
        &self,
        partition: usize,
        mut packet: WireBatch<'_>,
        heap_words: &[usize],
        pending: &mut PendingPuts,
    ) -> Result<()> {
        let slot = self.window.claim(partition, packet.rows.len(), packet.heap.len())?;
        packet.relocate(self.window.layout()?, heap_words, slot.heap_base);
        let here = self.link.rank();
        match slot.owner {
            Owner::Rank(rank) if rank != here => {
                return self.put(rank, &slot, (packet.rows.into_owned(), packet.heap), pending);
            }
            Owner::All => {
                for rank in (0..self.link.ranks()).filter(|rank| *rank != here) {
                    self.put(rank, &slot, (packet.rows.to_vec(), packet.heap.clone()), pending)?;
                }
            }
            Owner::Rank(_) | Owner::Sender => {}
        }
        self.window.fill(slot, &packet.rows, &packet.heap)
    }

    fn put(
        &self,
        rank: usize,
        slot: &Slot,
        (rows, heap): (Vec<u64>, Vec<u8>),
        pending: &mut PendingPuts,
    ) -> Result<()> {
        self.run.counters.add("sent_bytes", (rows.len() * 8 + heap.len()) as u64);
        let mut put = |byte: usize, length: usize, bytes: Bytes| -> Result<()> {
            let in_flight = self.link.count(length, &self.run.context)?;
            pending.puts.push(Put { rank, byte, buffer: Buffer { bytes, in_flight } });
            pending.bytes += length;
            Ok(())
        };
        put(slot.word * 8, rows.len() * 8, Bytes::Words(rows))?;
        if heap.is_empty() { Ok(()) } else { put(slot.byte, heap.len(), Bytes::Bytes(heap)) }
    }

    /// Submits the pending puts to the communication worker.
    fn submit(&self, pending: &mut PendingPuts) {
        let PendingPuts { puts, .. } = std::mem::take(pending);
        if !puts.is_empty() {
            self.link.request(Request::Puts(self.window.clone(), puts));
        }
    }
}

impl SinkWorker for Worker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Worker { shared, outgoing, heap_words, pending } = self;
        outgoing.append(&chunk, &mut |partition, packet| {
            shared.send(partition, packet, heap_words, pending)
        })?;
        // Submit before this worker may have to wait, so that no put is stuck in a blocked worker.
        if pending.bytes >= SUBMIT_BYTES || shared.link.is_filling() {
            shared.submit(pending);
        }
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        self.shared.link.room()
    }
}
