//! `mpi_exchange`: tuples partitioned straight into the windows of the ranks that own the
//! partitions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_context::{Run, Token};
use tessera_operator::partitions::{Partitioning, partitions_tuple};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, Outgoing, Packet, Rows};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column, Handle};

use crate::answer::answer;
use crate::link::{Buffer, Bytes, Link, Outcome, Put, Request, Work};
use crate::region::{Owner, Regions, Slot};
use crate::window::{WINDOW, missing};

/// Partitions tuples by some bits of the hash of their `keys` and puts each partition into the
/// window of the rank that owns it, one-sided: packets that are full go on their way while the next
/// ones are being filled (Barthels et al., 2015; Modularis §2.4.1.2).
///
/// Inputs: tuples `T`, and as a side the `mpi_window` made for them from a histogram with the same
/// `keys`, `bits` and `shift`; where that made several, `window` names the field. Output:
/// `<partition: int64, data: rows<T>>` for the partitions of this rank, dense and in order. Blocks,
/// and waits while much is under way. Memory: packets being filled and under way.
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
            return Err(Error::internal("an exchange without two inputs"));
        };
        let (_, window) = describe::collection(&side.tuple, &window_field(node)?, WINDOW)?;
        if window.tuple != edge.tuple {
            return Err(Error::semantic(format!(
                "the window is for {}, but the tuples are {}",
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

    fn of_platform(&self) -> bool {
        true
    }
}

/// The field of the side that holds the window.
fn window_field(node: &Node) -> Result<Arc<str>> {
    if node.params.get("window").is_some() {
        describe::field_name(node, "window")
    } else {
        Ok("window".into())
    }
}

impl SubOperator for Exchange {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let partitioning = Partitioning::new(node, &lowering.inputs[0].tuple)?;
        let (window, _) =
            describe::collection(&lowering.inputs[1].tuple, &window_field(node)?, WINDOW)?;
        Ok(Operator::Sink(Arc::new(Lowered {
            link,
            partitioning,
            window,
            step: lowering.position,
        })))
    }
}

#[derive(Debug)]
struct Lowered {
    link: Arc<Link>,
    partitioning: Partitioning,
    window: usize,
    step: usize,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let side = sides.first().ok_or_else(|| Error::internal("a side is missing"))?.single()?;
        let column = side.column(self.window)?;
        let handles = column.handles()?;
        let handle = handles.first().ok_or_else(|| Error::internal("a window that is none"))?;
        let window: Arc<Regions> = (*handle.get::<Arc<Regions>>()?).clone();
        if window.partitions()? != self.partitioning.count() {
            return Err(Error::data(format!(
                "the histogram has {} partitions where bits = {} make {}",
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

#[derive(Debug)]
struct Shared {
    link: Arc<Link>,
    window: Arc<Regions>,
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
    outgoing: Outgoing,
    heap_words: Arc<[usize]>,
    held: Held,
}

/// Bytes of puts that are handed on together: each time wakes the communication worker.
const TOGETHER_BYTES: usize = 1 << 20;

/// Puts that were not handed on yet.
#[derive(Default)]
struct Held {
    puts: Vec<Put>,
    bytes: usize,
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (shared, keys) = (self.shared.clone(), &self.partitioning.keys);
        let bits = (self.partitioning.bits, self.partitioning.shift);
        let outgoing = Outgoing::new(shared.window.layout()?, keys, bits, &shared.run.context)?;
        let heap_words = outgoing.heap_words().clone();
        Ok(Box::new(Worker { shared, outgoing, heap_words, held: Held::default() }))
    }

    fn reads_lying(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in downcast_workers::<Worker>(workers)? {
            let (shared, heap_words) = (worker.shared.clone(), worker.heap_words.clone());
            let held = &mut worker.held;
            worker.outgoing.flush(&mut |partition, packet| {
                shared.send(partition, packet, &heap_words, held)
            })?;
            shared.hand_on(held);
        }
        let Shared { link, window, run } = &*self.shared;
        window.check_full()?;
        let reply = link.step(self.step, Work::Close(window.clone()));
        // The window goes when its partitions do.
        let window = window.clone();
        let make = move |outcome| {
            let Outcome::Arrived = outcome else {
                return Err(Error::internal("a window that was not closed"));
            };
            Ok(vec![partitions_chunk(window.arrived()?)])
        };
        let output = answer(reply, run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// Partitions that have come here, with their numbers, as tuples.
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
        mut packet: Packet<'_>,
        heap_words: &[usize],
        held: &mut Held,
    ) -> Result<()> {
        let slot = self.window.claim(partition, packet.rows.len(), packet.heap.len())?;
        packet.relocate(self.window.layout()?, heap_words, slot.heap_base);
        let here = self.link.rank();
        match slot.owner {
            Owner::Rank(rank) if rank != here => {
                return self.put(rank, &slot, (packet.rows.into_owned(), packet.heap), held);
            }
            Owner::All => {
                for rank in (0..self.link.ranks()).filter(|rank| *rank != here) {
                    self.put(rank, &slot, (packet.rows.to_vec(), packet.heap.clone()), held)?;
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
        held: &mut Held,
    ) -> Result<()> {
        self.run.counters.add("sent_bytes", (rows.len() * 8 + heap.len()) as u64);
        let mut put = |byte: usize, length: usize, bytes: Bytes| -> Result<()> {
            let under_way = self.link.count(length, &self.run.context)?;
            held.puts.push(Put { rank, byte, buffer: Buffer { bytes, under_way } });
            held.bytes += length;
            Ok(())
        };
        put(slot.word * 8, rows.len() * 8, Bytes::Words(rows))?;
        if heap.is_empty() { Ok(()) } else { put(slot.byte, heap.len(), Bytes::Bytes(heap)) }
    }

    /// Hands puts to the communication worker.
    fn hand_on(&self, held: &mut Held) {
        let Held { puts, .. } = std::mem::take(held);
        if !puts.is_empty() {
            self.link.request(Request::Puts(self.window.clone(), puts));
        }
    }
}

impl SinkWorker for Worker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Worker { shared, outgoing, heap_words, held } = self;
        outgoing.append(&chunk, &mut |partition, packet| {
            shared.send(partition, packet, heap_words, held)
        })?;
        // Who waits for room has held nothing back, and nobody else holds back much.
        if held.bytes >= TOGETHER_BYTES || shared.link.is_filling() {
            shared.hand_on(held);
        }
        Ok(())
    }

    fn blocked(&self) -> Option<Token> {
        self.shared.link.room()
    }
}
