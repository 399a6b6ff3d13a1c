//! `mpi_send`: tuples partitioned and sent to the ranks that own the partitions, two-sided.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tessera_encodings::{Chunk, Column, Handle};
use tessera_ops::data::Partitioning;
use tessera_ops::operator::downcast_workers;
use tessera_ops::rows::{Outgoing, Packet, RowLayout};
use tessera_ops::stream_util::chunks_source;
use tessera_ops::{
    Collected, Finish, Lowering, Operator, Run, Sink, SinkRun, SinkWorker, SourceRun, SubOperator, Token,
    describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Error, Field, Result, Tuple};

use crate::flow::{Flow, Receiving};
use crate::link::{Link, Request, StepId};
use crate::roles::Roles;
use crate::window::missing;

/// The format of the collection that stands for what was sent.
pub(crate) const SENT: &str = "mpi_sent";
/// The format of the collection that stands for what is being sent, in rounds.
pub(crate) const SENDING: &str = "mpi_sending";

/// Words before a packet's rows: the plan's number, which the communication worker fills in, the step of the `mpi_send`, the
/// partition, the words of rows and the bytes of strings that follow.
pub(crate) const HEADER_WORDS: usize = 5;

/// Partitions tuples by some bits of the hash of their `keys` and sends each packet that is full to the rank that owns its
/// partition, as a message (micro-operators §3.8.4). It needs no histogram, and no room is agreed on before.
///
/// Input `T`; output one tuple `<sent: mpi_sent<T>>` for an `mpi_receive`. With `split`, the first half of the ranks reads the
/// leaves of the plan, and the rest owns the partitions. Blocks, and waits while much is under way. Memory: packets
/// being filled and under way. With `rounds`, it has a tuple of output for each worker from the beginning, and waits while a rank
/// has much that it has not passed on.
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
    tessera_ops::describe!(
        "mpi_send",
        "Sends tuples to the ranks that own their partitions.",
        ["keys", "bits", "shift", "split", "rounds"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        Partitioning::new(node, &edge.tuple)?;
        let sent = |format| Tuple::new(vec![Field::collection("sent", format, edge.tuple.clone())]);
        match (node.params.flag("rounds")?, node.params.flag("split")?) {
            (true, true) => Err(Error::semantic("takes split = true or rounds = true, not both")),
            (true, false) => Ok(Edge { tuple: sent(SENDING), traits: edge.traits, order: Order::None }),
            (false, _) => {
                let sent = sent(SENT);
                Ok(describe::gives_one(edge, sent, Order::Source))
            }
        }
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Send {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let tuple = &lowering.inputs[0].tuple;
        let split = node.params.flag("split")?;
        let lowered = Lowered {
            roles: if split { Roles::split(link.ranks()) } else { Roles::all(link.ranks()) },
            link,
            partitioning: Partitioning::new(node, tuple)?,
            layout: RowLayout::bare(tuple)?,
            step: lowering.position,
            in_rounds: node.params.flag("rounds")?,
        };
        Ok(Operator::Sink(Arc::new(lowered)))
    }
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    roles: Roles,
    partitioning: Partitioning,
    layout: Arc<RowLayout>,
    step: StepId,
    in_rounds: bool,
}

/// What was sent of a stream of tuples.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The step of the `mpi_send`: which packets are meant.
    pub(crate) step: StepId,
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) roles: Roles,
    pub(crate) partitions: usize,
    /// How many this rank has sent to each.
    pub(crate) packets: Vec<i64>,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let packets = (0..self.link.ranks()).map(|_| AtomicI64::new(0)).collect();
        let flow = self.in_rounds.then(|| Flow::new(&self.link, &run.context, self.step));
        if let Some(flow) = &flow {
            self.link.request(Request::Flow(self.step, flow.clone()));
        }
        Ok(Arc::new(SendRun(Arc::new(Shared { lowered: self.clone(), run: run.clone(), packets, flow }))))
    }
}

#[derive(Debug)]
struct SendRun(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lowered: Lowered,
    run: Run,
    packets: Vec<AtomicI64>,
    flow: Option<Arc<Flow>>,
}

struct Worker {
    shared: Arc<Shared>,
    outgoing: Outgoing,
    heap_words: Arc<[usize]>,
}

impl SinkRun for SendRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (shared, Lowered { partitioning, layout, .. }) = (self.0.clone(), &self.0.lowered);
        let bits = (partitioning.bits, partitioning.shift);
        let outgoing = Outgoing::new(layout, &partitioning.keys, bits, &shared.run.context)?;
        let heap_words = outgoing.heap_words().clone();
        Ok(Box::new(Worker { shared, outgoing, heap_words }))
    }

    /// The receiving end, for each worker.
    fn early_output(&self, _has_one_reader: bool) -> Option<Arc<dyn SourceRun>> {
        let Shared { lowered, run, flow, .. } = &*self.0;
        let receiving = Arc::new(Receiving { flow: flow.clone()?, layout: lowered.layout.clone() });
        let handles: Vec<Handle> =
            (0..run.context.workers()).map(|_| Handle::new(receiving.clone())).collect();
        let count = handles.len();
        let chunk = Chunk::new(vec![Column::Handles(handles.into())], count);
        Some(chunks_source(vec![chunk], run.context.chunk_rows()))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        for mut worker in downcast_workers::<Worker>(workers)? {
            let (shared, heap_words) = (worker.shared.clone(), worker.heap_words.clone());
            worker.outgoing.flush(&mut |partition, packet| shared.send(partition, packet, &heap_words))?;
        }
        let chunk_rows = self.0.run.context.chunk_rows();
        if let Some(flow) = &self.0.flow {
            // What there is to read has been read from the beginning.
            flow.end()?;
            return Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), chunk_rows) });
        }
        let Lowered { roles, partitioning, layout, step, .. } = &self.0.lowered;
        let sent = Sent {
            step: *step,
            layout: layout.clone(),
            roles: *roles,
            partitions: partitioning.count(),
            packets: self.0.packets.iter().map(|packets| packets.load(Ordering::Relaxed)).collect(),
        };
        let chunk = Chunk::new(vec![Column::Handles(vec![Handle::new(Arc::new(sent))].into())], 1);
        let output = chunks_source(vec![chunk], chunk_rows);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl Shared {
    fn send(&self, partition: usize, mut packet: Packet<'_>, heap_words: &[usize]) -> Result<()> {
        let Lowered { link, roles, partitioning, layout, step, .. } = &self.lowered;
        packet.relocate(layout, heap_words, 0);
        let Packet { rows, heap, .. } = packet;
        let rank = roles.owner(partition, partitioning.count());
        let length = HEADER_WORDS + rows.len() + heap.len().div_ceil(8);
        let under_way = link.count(length * 8, &self.run.context)?;
        let mut words = Vec::with_capacity(length);
        words.extend([0, *step as u64, partition as u64, rows.len() as u64, heap.len() as u64]);
        words.extend_from_slice(&rows);
        words.extend(heap.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        }));
        if rank != link.rank() {
            self.run.counters.add("sent_bytes", length as u64 * 8);
        }
        self.packets[rank].fetch_add(1, Ordering::Relaxed);
        if let Some(flow) = &self.flow {
            flow.sends(rank, length * 8);
        }
        link.request(Request::Packet(rank, words, under_way));
        Ok(())
    }
}

impl SinkWorker for Worker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let (shared, heap_words) = (&self.shared, &self.heap_words);
        self.outgoing.append(&chunk, &mut |partition, packet| shared.send(partition, packet, heap_words))
    }

    fn blocked(&self) -> Option<Token> {
        let room = self.shared.flow.as_ref().and_then(|flow| flow.room());
        room.or_else(|| self.shared.lowered.link.room())
    }
}
