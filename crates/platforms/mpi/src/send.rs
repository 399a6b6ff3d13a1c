//! `mpi_send`: partitions tuples and sends them to the ranks that own the partitions, two-sided.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tessera_context::{Run, Token};
use tessera_operator::partitions::Partitioning;
use tessera_operator::stream_util::{SourcePositions, chunks_source};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SourceRun, SubOperator, describe,
    downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, RowLayout, WireBatch, WirePartitioner};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::flow::{Flow, ReceiveEnd};
use crate::link::{Link, Request, StepId};
use crate::roles::Roles;
use crate::window::missing_mpi;

/// The format of the collection that represents sent tuples in a plan.
pub(crate) const SENT: &str = "mpi_sent";
/// The format of the collection that represents tuples being sent in rounds.
pub(crate) const SENDING: &str = "mpi_sending";

/// The number of header words of a packet: the plan's number, which the communication worker fills
/// in, the step of the `mpi_send`, the partition, the number of words of rows, and the number of
/// bytes of strings.
pub(crate) const HEADER_WORDS: usize = 5;
/// Flag in a packet's step word: the packet belongs to an exchange in rounds, which bounds the
/// packets in flight.
pub(crate) const BOUNDED: u64 = 1 << 63;

/// Partitions tuples by some bits of the hash of their `keys` and sends each full packet to the
/// rank that owns its partition, as a message (micro-operators §3.8.4). It needs no histogram, and
/// receivers reserve no memory in advance.
///
/// Input `T`; output one tuple `<sent: mpi_sent<T>>` for an `mpi_receive`. With `split`, the first
/// half of the ranks reads the leaves of the plan, and the rest owns the partitions. Blocks, and
/// waits while too many bytes are in flight. Memory: packets being filled and in flight.
///
/// With `rounds`, it outputs one tuple for each worker at its start, and waits while a receiver has
/// too many unconsumed bytes. Then it can also send all tuples to the first rank (`gather`) or to
/// every rank (`broadcast`) instead of by `keys`. `position` names a field to prepend that numbers
/// tuples in the order of the source, if that is a single scan.
#[derive(Debug, Clone)]
pub struct Send {
    link: Option<Arc<Link>>,
}

impl Send {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Send { link }
    }
}

impl Descriptor for Send {
    tessera_operator::describe!(
        "mpi_send",
        "Sends tuples to the ranks that own their partitions.",
        ["keys", "bits", "shift", "split", "rounds", "gather", "broadcast", "position"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let to = Destination::new(node, &edge.tuple)?;
        let tuple = sent_tuple(node, &edge.tuple)?;
        let is_keyed = to.partitioning().is_some();
        if !is_keyed && !node.params.flag("rounds")? {
            return Err(Error::semantic("takes gather and broadcast with rounds = true only"));
        }
        if is_keyed && tuple != edge.tuple {
            return Err(Error::semantic("takes position with gather or broadcast only"));
        }
        let sent = |format| Tuple::new(vec![Field::collection("sent", format, tuple.clone())]);
        match (node.params.flag("rounds")?, node.params.flag("split")?) {
            (true, true) => Err(Error::semantic("takes split = true or rounds = true, not both")),
            (true, false) => {
                Ok(Edge { tuple: sent(SENDING), traits: edge.traits, order: Order::None })
            }
            (false, _) => {
                let sent = sent(SENT);
                Ok(describe::single_edge(edge, sent, Order::Source))
            }
        }
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

/// The ranks that tuples are sent to.
#[derive(Debug, Clone)]
enum Destination {
    /// Each tuple goes to the owner of its partition.
    Owners(Partitioning),
    First,
    All,
}

impl Destination {
    fn new(node: &Node, tuple: &Tuple) -> Result<Destination> {
        match (node.params.flag("gather")?, node.params.flag("broadcast")?) {
            (false, false) => Partitioning::new(node, tuple).map(Destination::Owners),
            _ if node.params.get("keys").is_some() => {
                Err(Error::semantic("takes one of keys, gather = true and broadcast = true"))
            }
            (true, false) => Ok(Destination::First),
            (false, true) => Ok(Destination::All),
            (true, true) => {
                Err(Error::semantic("takes gather = true or broadcast = true, not both"))
            }
        }
    }

    fn partitioning(&self) -> Option<&Partitioning> {
        match self {
            Destination::Owners(partitioning) => Some(partitioning),
            Destination::First | Destination::All => None,
        }
    }
}

/// Returns the name of the position field, if the node has one.
fn position(node: &Node) -> Result<Option<Arc<str>>> {
    let is_wanted = node.params.get("position").is_some();
    is_wanted.then(|| node.params.name("position").cloned()).transpose()
}

/// Returns the type of the tuples sent: the input's, after the position if there is one.
fn sent_tuple(node: &Node, tuple: &Tuple) -> Result<Tuple> {
    let Some(name) = position(node)? else { return Ok(tuple.clone()) };
    if tuple.index_of(&name).is_some() {
        return Err(Error::semantic(format!(
            "parameter position names a field of the input, {name}; choose another name"
        )));
    }
    let fields = [Field::new(name, Atom::Int64)].into_iter().chain(tuple.fields().iter().cloned());
    Ok(Tuple::new(fields.collect::<Vec<_>>()))
}

impl SubOperator for Send {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let tuple = &lowering.inputs[0].tuple;
        let split = node.params.flag("split")?;
        let operator = SendOperator {
            roles: if split { Roles::split(link.ranks()) } else { Roles::all(link.ranks()) },
            link,
            to: Destination::new(node, tuple)?,
            layout: RowLayout::bare(&sent_tuple(node, tuple)?)?,
            has_position: position(node)?.is_some(),
            step: lowering.position,
            in_rounds: node.params.flag("rounds")?,
        };
        Ok(Operator::Sink(Arc::new(operator)))
    }
}

#[derive(Debug, Clone)]
struct SendOperator {
    link: Arc<Link>,
    roles: Roles,
    to: Destination,
    layout: Arc<RowLayout>,
    has_position: bool,
    step: StepId,
    in_rounds: bool,
}

/// The record of what this rank has sent, for the matching `mpi_receive`.
#[derive(Debug)]
pub(crate) struct SentPackets {
    /// The step of the `mpi_send`, which its packets carry.
    pub(crate) step: StepId,
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) roles: Roles,
    pub(crate) partitions: usize,
    /// The number of packets sent to each rank.
    pub(crate) packets: Vec<i64>,
}

impl Sink for SendOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let packets = (0..self.link.ranks()).map(|_| AtomicI64::new(0)).collect();
        let flow = self.in_rounds.then(|| Flow::new(&self.link, &run.context, self.step));
        if let Some(flow) = &flow {
            self.link.request(Request::Flow(self.step, flow.clone()));
        }
        Ok(Arc::new(SendRun(Arc::new(Shared {
            operator: self.clone(),
            run: run.clone(),
            packets,
            flow,
        }))))
    }
}

#[derive(Debug)]
struct SendRun(Arc<Shared>);

/// State shared by all workers of a run.
#[derive(Debug)]
struct Shared {
    operator: SendOperator,
    run: Run,
    packets: Vec<AtomicI64>,
    flow: Option<Arc<Flow>>,
}

struct Worker {
    shared: Arc<Shared>,
    positions: SourcePositions,
    /// In a cell because `blocked` sends more when it checks for room.
    queue: RefCell<SendQueue>,
}

/// The chunks a worker has accepted, packed and sent as far as there is room.
struct SendQueue {
    outgoing: WirePartitioner,
    heap_words: Arc<[usize]>,
    /// The number of tuples to pack between checks for room.
    piece_rows: usize,
    pending: VecDeque<Chunk>,
    /// An error of `blocked`, which cannot return it; the next fallible call does.
    failed: Option<Error>,
}

impl SendQueue {
    /// Packs and sends pending chunks. Returns the token to wait for if there is no more room; with
    /// `all`, sends everything regardless of room.
    fn advance(&mut self, shared: &Shared, all: bool) -> Result<Option<Token>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let room = if all { None } else { shared.room() };
            if room.is_some() {
                return Ok(room);
            }
            let Some(chunk) = self.pending.pop_front() else { return Ok(None) };
            let (rows, taken) = (chunk.rows(), self.piece_rows.min(chunk.rows()));
            let piece = if taken == rows {
                chunk
            } else {
                self.pending.push_front(chunk.slice(taken, rows - taken));
                chunk.slice(0, taken)
            };
            let heap_words = &self.heap_words;
            self.outgoing.append(&piece, &mut |partition, packet| {
                shared.send(partition, packet, heap_words)
            })?;
        }
    }
}

impl SinkRun for SendRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (shared, SendOperator { to, layout, .. }) = (self.0.clone(), &self.0.operator);
        let (keys, bits) = match to.partitioning() {
            Some(partitioning) => {
                (partitioning.keys.clone(), (partitioning.bits, partitioning.shift))
            }
            None => (Vec::new().into(), (0, 0)),
        };
        let outgoing = WirePartitioner::new(layout, &keys, bits, &shared.run.context)?;
        let piece_rows =
            shared.flow.as_ref().map_or(usize::MAX, |flow| flow.piece_rows(layout.stride_bytes()));
        let positions =
            SourcePositions::new(shared.operator.link.rank(), shared.operator.link.ranks());
        let queue = SendQueue {
            heap_words: outgoing.heap_words().clone(),
            outgoing,
            piece_rows,
            pending: VecDeque::new(),
            failed: None,
        };
        Ok(Box::new(Worker { shared, positions, queue: RefCell::new(queue) }))
    }

    /// Outputs the receiving end, once for each worker.
    fn early_output(&self, _has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        let Shared { operator, run, flow, .. } = &*self.0;
        let receiving =
            Arc::new(ReceiveEnd { flow: flow.clone()?, layout: operator.layout.clone() });
        let handles: Vec<Handle> =
            (0..run.context.workers()).map(|_| Handle::new(receiving.clone())).collect();
        let count = handles.len();
        let chunk = Chunk::new(vec![Column::Handles(handles.into())], count);
        Some(chunks_source(vec![chunk], run.context.chunk_rows()))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for worker in downcast_workers::<Worker>(workers)? {
            let (shared, mut queue) = (worker.shared, worker.queue.into_inner());
            queue.advance(&shared, true)?;
            let heap_words = &queue.heap_words;
            queue
                .outgoing
                .flush(&mut |partition, packet| shared.send(partition, packet, heap_words))?;
        }
        let chunk_rows = self.0.run.context.chunk_rows();
        if let Some(flow) = &self.0.flow {
            // With rounds, `early_output` has already delivered all output.
            flow.end()?;
            return Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), chunk_rows) });
        }
        let SendOperator { roles, to, layout, step, .. } = &self.0.operator;
        let sent = SentPackets {
            step: *step,
            layout: layout.clone(),
            roles: *roles,
            partitions: to.partitioning().map_or(1, Partitioning::count),
            packets: self.0.packets.iter().map(|packets| packets.load(Ordering::Relaxed)).collect(),
        };
        let chunk = Chunk::new(vec![Column::Handles(vec![Handle::new(Arc::new(sent))].into())], 1);
        let output = chunks_source(vec![chunk], chunk_rows);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl Shared {
    fn send(
        &self,
        partition: usize,
        mut packet: WireBatch<'_>,
        heap_words: &[usize],
    ) -> Result<()> {
        let SendOperator { link, roles, to, layout, .. } = &self.operator;
        packet.relocate(layout, heap_words, 0);
        match to {
            Destination::Owners(partitioning) => {
                self.send_to(roles.owner(partition, partitioning.count()), partition, &packet)
            }
            Destination::First => self.send_to(0, partition, &packet),
            Destination::All => {
                (0..link.ranks()).try_for_each(|rank| self.send_to(rank, partition, &packet))
            }
        }
    }

    fn send_to(&self, rank: usize, partition: usize, packet: &WireBatch<'_>) -> Result<()> {
        let SendOperator { link, step, .. } = &self.operator;
        let WireBatch { rows, heap, .. } = packet;
        let length = HEADER_WORDS + rows.len() + heap.len().div_ceil(8);
        let (in_flight, bounded) = match &self.flow {
            Some(flow) => {
                flow.add_sent(rank, length * 8);
                (link.count_bounded(length * 8, &self.run.context), BOUNDED)
            }
            None => (link.count(length * 8, &self.run.context)?, 0),
        };
        let mut words = Vec::with_capacity(length);
        let step = *step as u64 | bounded;
        words.extend([0, step, partition as u64, rows.len() as u64, heap.len() as u64]);
        words.extend_from_slice(rows);
        words.extend(heap.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        }));
        if rank != link.rank() {
            self.run.counters.add("sent_bytes", length as u64 * 8);
        }
        self.packets[rank].fetch_add(1, Ordering::Relaxed);
        link.request(Request::Packet(rank, words, in_flight));
        Ok(())
    }

    fn room(&self) -> Option<Token> {
        let room = self.flow.as_ref().and_then(|flow| flow.room());
        room.or_else(|| self.operator.link.room())
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.positions.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk =
            if self.shared.operator.has_position { self.positions.before(chunk)? } else { chunk };
        let queue = self.queue.get_mut();
        queue.pending.push_back(chunk);
        queue.advance(&self.shared, self.shared.flow.is_none()).map(drop)
    }

    fn blocked(&self) -> Option<Token> {
        let mut queue = self.queue.borrow_mut();
        match queue.advance(&self.shared, false) {
            Ok(room) => room,
            // The next fallible call returns it.
            Err(error) => {
                queue.failed = Some(error);
                None
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.queue.get_mut().failed.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
