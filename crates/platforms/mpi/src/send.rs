//! `mpi_send`: tuples partitioned and sent to the ranks that own the partitions, two-sided.

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
use tessera_rows::{Collected, Outgoing, Packet, RowLayout};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::flow::{Flow, Receiving};
use crate::link::{Link, Request, StepId};
use crate::roles::Roles;
use crate::window::missing;

/// The format of the collection that stands for what was sent.
pub(crate) const SENT: &str = "mpi_sent";
/// The format of the collection that stands for what is being sent, in rounds.
pub(crate) const SENDING: &str = "mpi_sending";

/// Words before a packet's rows: the plan's number, which the communication worker fills in, the
/// step of the `mpi_send`, the partition, the words of rows and the bytes of strings that follow.
pub(crate) const HEADER_WORDS: usize = 5;
/// In the word of a packet's step: it goes in rounds, which bound how many there are.
pub(crate) const BOUNDED: u64 = 1 << 63;

/// Partitions tuples by some bits of the hash of their `keys` and sends each packet that is full to
/// the rank that owns its partition, as a message (micro-operators §3.8.4). It needs no histogram,
/// and no room is agreed on before.
///
/// Input `T`; output one tuple `<sent: mpi_sent<T>>` for an `mpi_receive`. With `split`, the first
/// half of the ranks reads the leaves of the plan, and the rest owns the partitions. Blocks, and
/// waits while much is under way. Memory: packets being filled and under way.
///
/// With `rounds`, it has a tuple of output for each worker from the beginning, and waits while a
/// rank has much that it has not passed on. Then it can also send all tuples to the first rank
/// (`gather`) or to every one (`broadcast`) in the place of `keys`, and put before them a field
/// with the name of `position` that numbers them in the order of the source, if that is one scan.
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
        let to = To::new(node, &edge.tuple)?;
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

/// To which ranks tuples go.
#[derive(Debug, Clone)]
enum To {
    /// Each to the one that owns its partition.
    Owners(Partitioning),
    First,
    All,
}

impl To {
    fn new(node: &Node, tuple: &Tuple) -> Result<To> {
        match (node.params.flag("gather")?, node.params.flag("broadcast")?) {
            (false, false) => Partitioning::new(node, tuple).map(To::Owners),
            _ if node.params.get("keys").is_some() => {
                Err(Error::semantic("takes one of keys, gather = true and broadcast = true"))
            }
            (true, false) => Ok(To::First),
            (false, true) => Ok(To::All),
            (true, true) => {
                Err(Error::semantic("takes gather = true or broadcast = true, not both"))
            }
        }
    }

    fn partitioning(&self) -> Option<&Partitioning> {
        match self {
            To::Owners(partitioning) => Some(partitioning),
            To::First | To::All => None,
        }
    }
}

/// The name of the field for positions, if one is wanted.
fn position(node: &Node) -> Result<Option<Arc<str>>> {
    let is_wanted = node.params.get("position").is_some();
    is_wanted.then(|| node.params.name("position").cloned()).transpose()
}

/// What is sent: the tuples, behind their positions.
fn sent_tuple(node: &Node, tuple: &Tuple) -> Result<Tuple> {
    let Some(name) = position(node)? else { return Ok(tuple.clone()) };
    if tuple.index_of(&name).is_some() {
        return Err(Error::semantic(format!(
            "parameter position names a field that there is: {name}"
        )));
    }
    let fields = [Field::new(name, Atom::Int64)].into_iter().chain(tuple.fields().iter().cloned());
    Ok(Tuple::new(fields.collect::<Vec<_>>()))
}

impl SubOperator for Send {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let tuple = &lowering.inputs[0].tuple;
        let split = node.params.flag("split")?;
        let lowered = Lowered {
            roles: if split { Roles::split(link.ranks()) } else { Roles::all(link.ranks()) },
            link,
            to: To::new(node, tuple)?,
            layout: RowLayout::bare(&sent_tuple(node, tuple)?)?,
            has_position: position(node)?.is_some(),
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
    to: To,
    layout: Arc<RowLayout>,
    has_position: bool,
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
        Ok(Arc::new(SendRun(Arc::new(Shared {
            lowered: self.clone(),
            run: run.clone(),
            packets,
            flow,
        }))))
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
    positions: SourcePositions,
    /// Sending goes on when it is asked what it waits for.
    sending: RefCell<Sending>,
}

/// What has been taken, and is packed as far as there is room.
struct Sending {
    outgoing: Outgoing,
    heap_words: Arc<[usize]>,
    /// How many tuples are packed before there must be room again.
    piece_rows: usize,
    pending: VecDeque<Chunk>,
    /// An error of `blocked`, which cannot return it; the next call that can does.
    failed: Option<Error>,
}

impl Sending {
    /// Packs and sends; gives what to wait for. With `all`, whether there is room or not.
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
        let (shared, Lowered { to, layout, .. }) = (self.0.clone(), &self.0.lowered);
        let (keys, bits) = match to.partitioning() {
            Some(partitioning) => {
                (partitioning.keys.clone(), (partitioning.bits, partitioning.shift))
            }
            None => (Vec::new().into(), (0, 0)),
        };
        let outgoing = Outgoing::new(layout, &keys, bits, &shared.run.context)?;
        let piece_rows =
            shared.flow.as_ref().map_or(usize::MAX, |flow| flow.piece_rows(layout.stride_bytes()));
        let positions =
            SourcePositions::new(shared.lowered.link.rank(), shared.lowered.link.ranks());
        let sending = Sending {
            heap_words: outgoing.heap_words().clone(),
            outgoing,
            piece_rows,
            pending: VecDeque::new(),
            failed: None,
        };
        Ok(Box::new(Worker { shared, positions, sending: RefCell::new(sending) }))
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
        for worker in downcast_workers::<Worker>(workers)? {
            let (shared, mut sending) = (worker.shared, worker.sending.into_inner());
            sending.advance(&shared, true)?;
            let heap_words = &sending.heap_words;
            sending
                .outgoing
                .flush(&mut |partition, packet| shared.send(partition, packet, heap_words))?;
        }
        let chunk_rows = self.0.run.context.chunk_rows();
        if let Some(flow) = &self.0.flow {
            // What there is to read has been read from the beginning.
            flow.end()?;
            return Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), chunk_rows) });
        }
        let Lowered { roles, to, layout, step, .. } = &self.0.lowered;
        let sent = Sent {
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
    fn send(&self, partition: usize, mut packet: Packet<'_>, heap_words: &[usize]) -> Result<()> {
        let Lowered { link, roles, to, layout, .. } = &self.lowered;
        packet.relocate(layout, heap_words, 0);
        match to {
            To::Owners(partitioning) => {
                self.send_to(roles.owner(partition, partitioning.count()), partition, &packet)
            }
            To::First => self.send_to(0, partition, &packet),
            To::All => {
                (0..link.ranks()).try_for_each(|rank| self.send_to(rank, partition, &packet))
            }
        }
    }

    fn send_to(&self, rank: usize, partition: usize, packet: &Packet<'_>) -> Result<()> {
        let Lowered { link, step, .. } = &self.lowered;
        let Packet { rows, heap, .. } = packet;
        let length = HEADER_WORDS + rows.len() + heap.len().div_ceil(8);
        let (under_way, bounded) = match &self.flow {
            Some(flow) => {
                flow.sends(rank, length * 8);
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
        link.request(Request::Packet(rank, words, under_way));
        Ok(())
    }

    fn room(&self) -> Option<Token> {
        let room = self.flow.as_ref().and_then(|flow| flow.room());
        room.or_else(|| self.lowered.link.room())
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.positions.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk =
            if self.shared.lowered.has_position { self.positions.before(chunk)? } else { chunk };
        let sending = self.sending.get_mut();
        sending.pending.push_back(chunk);
        sending.advance(&self.shared, self.shared.flow.is_none()).map(drop)
    }

    fn blocked(&self) -> Option<Token> {
        let mut sending = self.sending.borrow_mut();
        match sending.advance(&self.shared, false) {
            Ok(room) => room,
            // The next to ask gets it.
            Err(error) => {
                sending.failed = Some(error);
                None
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.sending.get_mut().failed.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow::array::{ArrayRef, Int64Array};
    use tessera_context::Context;
    use tessera_engine::{Governor, Query, Settings};
    use tessera_rows::heap_words;

    use super::*;
    use crate::link::Arrived;

    const MEMORY: usize = 4 << 20;

    fn sending(to: To, has_position: bool) -> (Arc<Link>, Arc<dyn SinkRun>, Arc<Flow>) {
        let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::new(MEMORY));
        let link = Link::new(1, 2, false);
        let tuple: Tuple =
            if has_position { "<p: int64, k: int64>" } else { "<k: int64>" }.parse().unwrap();
        let lowered = Lowered {
            link: link.clone(),
            roles: Roles::all(2),
            to,
            layout: RowLayout::bare(&tuple).unwrap(),
            has_position,
            step: 3,
            in_rounds: true,
        };
        let run = Run::of(context.clone());
        let flow = Flow::new(&link, &context, 3);
        let packets = (0..2).map(|_| AtomicI64::new(0)).collect();
        let run = SendRun(Arc::new(Shared { lowered, run, packets, flow: Some(flow.clone()) }));
        (link, Arc::new(run), flow)
    }

    fn chunk(rows: i64) -> Chunk {
        Chunk::from_arrays(vec![Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef])
    }

    /// The packets that were handed on, by rank.
    fn packets(link: &Link) -> Vec<(usize, Vec<u64>)> {
        let packet = |request| match request {
            Request::Packet(rank, words, _) if words[2] == 0 => Some((rank, words)),
            _ => None,
        };
        link.requests(Duration::ZERO).into_iter().filter_map(packet).collect()
    }

    #[test]
    fn a_chunk_is_sent_as_far_as_there_is_room_and_the_rest_later() {
        let (link, run, flow) = sending(To::First, false);
        let mut worker = run.worker().unwrap();
        worker.begin(0).unwrap();
        worker.push(chunk(60_000)).unwrap();
        let mut rows = Vec::new();
        while let Some(token) = worker.blocked() {
            let came = packets(&link);
            let bytes: usize = came.iter().map(|(_, words)| words.len() * 8).sum();
            assert!((1..MEMORY / 8).contains(&bytes), "{bytes}");
            assert!(came.iter().all(|(rank, words)| *rank == 0 && words[1] == 3 | BOUNDED));
            rows.extend(came.into_iter().flat_map(|(_, words)| words[HEADER_WORDS..].to_vec()));
            assert!(!token.is_ready());
            // The first rank has passed all of it on.
            let words = vec![0, 3 | BOUNDED, u64::MAX - 1, bytes as u64, 0];
            flow.came(Arrived { from: 0, words, memory: None }).unwrap();
            assert!(token.is_ready());
        }
        worker.end().unwrap();
        run.finish(vec![worker]).unwrap();
        rows.extend(
            packets(&link).into_iter().flat_map(|(_, words)| words[HEADER_WORDS..].to_vec()),
        );
        assert_eq!(rows, (0..60_000).collect::<Vec<u64>>());
    }

    #[test]
    fn copies_go_to_all_and_positions_number_the_morsels_of_all_ranks() {
        assert!(
            heap_words(&RowLayout::bare(&"<p: int64, k: int64>".parse().unwrap()).unwrap())
                .unwrap()
                .is_empty()
        );
        let (link, run, _) = sending(To::All, true);
        let mut worker = run.worker().unwrap();
        for (morsel, rows) in [(0, 2), (5, 1)] {
            worker.begin(morsel).unwrap();
            worker.push(chunk(rows)).unwrap();
            worker.push(chunk(1)).unwrap();
            worker.end().unwrap();
        }
        run.finish(vec![worker]).unwrap();
        let came = packets(&link);
        assert_eq!(came.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
        let at = |morsel: u64, row: u64| (morsel * 2 + 1) << SourcePositions::ROW_BITS | row;
        for (_, words) in came {
            let rows: Vec<u64> = words[HEADER_WORDS..].to_vec();
            assert_eq!(rows, [at(0, 0), 0, at(0, 1), 1, at(0, 2), 0, at(5, 0), 0, at(5, 1), 0]);
        }
    }
}
