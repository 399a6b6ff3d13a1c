//! `mpi_broadcast`: sends small inputs whole to all ranks or to the first. `mpi_first`: keeps only
//! the first rank's tuples.

use std::sync::Arc;

use tessera_context::{Context, Reservation, Run};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, Stream, StreamRun, SubOperator,
    describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, RowLayout, Rows, WireBatch, WirePartitioner, WordBuffer};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::collective::reply_source;
use crate::link::{Link, Outcome, Recipients, Work};
use crate::window::missing_mpi;

/// Sends all tuples to all ranks, or with `gather` to the first, two-sided: for build sides and
/// results that are small next to the input that would be partitioned otherwise.
///
/// Input `T`; output one tuple `<data: rows<T>>`; with `gather` in the order of the source, if that
/// is a single scan. Blocks. Memory: the tuples.
#[derive(Debug, Clone)]
pub struct Broadcast {
    link: Option<Arc<Link>>,
}

impl Broadcast {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Broadcast { link }
    }
}

impl Descriptor for Broadcast {
    tessera_operator::describe!(
        "mpi_broadcast",
        "Sends tuples to all ranks, or to the first.",
        ["gather"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let ordered = node.params.flag("gather")? && edge.order == Order::Source;
        let tuple = Tuple::new(vec![Field::collection("data", "rows", edge.tuple.clone())]);
        Ok(Edge { tuple, traits, order: if ordered { Order::Source } else { Order::None } })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for Broadcast {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let to = if node.params.flag("gather")? { Recipients::First } else { Recipients::All };
        let layout = RowLayout::bare(&lowering.inputs[0].tuple)?;
        Ok(Operator::Sink(Arc::new(BroadcastOperator {
            link,
            to,
            layout,
            step: lowering.position,
        })))
    }
}

#[derive(Debug, Clone)]
struct BroadcastOperator {
    link: Arc<Link>,
    to: Recipients,
    layout: Arc<RowLayout>,
    step: usize,
}

#[derive(Debug)]
struct BroadcastRun {
    operator: BroadcastOperator,
    run: Run,
}

struct Worker {
    outgoing: WirePartitioner,
    layout: Arc<RowLayout>,
    heap_words: Arc<[usize]>,
    position: u64,
    parts: Parts,
    memory: Reservation,
}

/// Packets with the positions of their morsels.
type Parts = Vec<(u64, WireBatch<'static>)>;

impl Sink for BroadcastOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(BroadcastRun { operator: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for BroadcastRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let context = &self.run.context;
        let layout = self.operator.layout.clone();
        let outgoing = WirePartitioner::new(&layout, &Vec::new().into(), (0, 0), context)?;
        Ok(Box::new(Worker {
            heap_words: outgoing.heap_words().clone(),
            outgoing,
            layout,
            position: 0,
            parts: Vec::new(),
            memory: Reservation::new(context.clone()),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let BroadcastOperator { link, to, layout, step } = self.operator.clone();
        let mut parts: Parts = Vec::new();
        let mut held = Vec::new();
        for worker in downcast_workers::<Worker>(workers)? {
            parts.extend(worker.parts);
            held.push(worker.memory);
        }
        // The sort is stable, so packets of one morsel keep their order.
        parts.sort_by_key(|(position, _)| *position);
        let bytes = Arc::new(encode(&parts));
        drop((parts, held));
        self.run.counters.add("sent_bytes", bytes.len() as u64);
        let reply = link.step(step, Work::Send { to, bytes });
        let context = self.run.context.clone();
        let make = move |outcome| {
            let Outcome::Bytes(received) = outcome else {
                return Err(Error::internal("mpi_broadcast without received bytes"));
            };
            let rows = decode(&received, &layout, &context)?;
            Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
        };
        let output = reply_source(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let (position, parts, memory) = (self.position, &mut self.parts, &mut self.memory);
        let (layout, words) = (&self.layout, &self.heap_words);
        self.outgoing.append(&chunk, &mut |_, mut packet| {
            packet.relocate(layout, words, 0);
            push_packet(position, packet, parts, memory)
        })
    }

    fn end(&mut self) -> Result<()> {
        let (position, parts, memory) = (self.position, &mut self.parts, &mut self.memory);
        let (layout, words) = (&self.layout, &self.heap_words);
        self.outgoing.flush(&mut |_, mut packet| {
            packet.relocate(layout, words, 0);
            push_packet(position, packet, parts, memory)
        })
    }
}

fn push_packet(
    position: u64,
    packet: WireBatch<'_>,
    parts: &mut Parts,
    memory: &mut Reservation,
) -> Result<()> {
    let mut packet = packet.into_owned();
    packet.rows.to_mut().shrink_to_fit();
    memory.grow(packet.rows.len() * 8 + packet.heap.len())?;
    parts.push((position, packet));
    Ok(())
}

/// Encodes packets: for each its position, words of rows and bytes of strings, then the rows and
/// the strings.
fn encode(parts: &Parts) -> Vec<u8> {
    let size = |(_, packet): &(u64, WireBatch<'_>)| 24 + packet.rows.len() * 8 + packet.heap.len();
    let mut out = Vec::with_capacity(parts.iter().map(size).sum());
    for (position, packet) in parts {
        for number in [*position, packet.rows.len() as u64, packet.heap.len() as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        packet.rows.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&packet.heap);
    }
    out
}

/// A received packet: its position, rows and strings.
struct IncomingPacket<'a> {
    position: u64,
    rows: &'a [u8],
    heap: &'a [u8],
}

/// Decodes the packets of all ranks; their tuples are ordered by position and then by rank.
fn decode(
    received: &[Vec<u8>],
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let broken = || Error::internal("mpi_broadcast received a malformed packet");
    let mut parts: Vec<IncomingPacket<'_>> = Vec::new();
    for bytes in received {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let mut numbers = [0u64; 3];
            for number in &mut numbers {
                let (first, behind) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
                (*number, rest) = (u64::from_le_bytes(*first), behind);
            }
            let [position, words, heap_bytes] = numbers;
            let (rows, behind) = rest.split_at_checked(words as usize * 8).ok_or_else(broken)?;
            let (heap, behind) = behind.split_at_checked(heap_bytes as usize).ok_or_else(broken)?;
            parts.push(IncomingPacket { position, rows, heap });
            rest = behind;
        }
    }
    parts.sort_by_key(|part| part.position);
    let words: usize = parts.iter().map(|part| part.rows.len() / 8).sum();
    let heap_bytes: usize = parts.iter().map(|part| part.heap.len()).sum();
    let mut memory = Reservation::new(context.clone());
    memory.grow(words * 8 + heap_bytes)?;
    let heap_words = tessera_rows::heap_words(layout)?;
    let (mut all, mut heap) = (Vec::with_capacity(words), Vec::<u8>::with_capacity(heap_bytes + 8));
    for part in parts {
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        let mut packet =
            WireBatch::received(part.rows.chunks_exact(8).map(word).collect(), part.heap.to_vec());
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    let heap = WordBuffer::of_bytes(&heap);
    Rows::received(layout, WordBuffer::owned(all), &heap, heap_bytes, vec![memory])
}

/// Passes on the first rank's tuples and drops those of other ranks.
#[derive(Debug, Clone)]
pub struct First {
    link: Option<Arc<Link>>,
}

impl First {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        First { link }
    }
}

impl Descriptor for First {
    tessera_operator::describe!("mpi_first", "Passes on the first rank's tuples.", [], 1, 1);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let traits = Traits { locality: Locality::Worker, ..edge.traits };
        Ok(Edge { tuple: edge.tuple.clone(), traits, order: edge.order.clone() })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for First {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.as_ref().ok_or_else(missing_mpi)?;
        Ok(Operator::Stream(Arc::new(FirstOperator { is_first_rank: link.rank() == 0 })))
    }
}

#[derive(Debug, Clone, Copy)]
struct FirstOperator {
    is_first_rank: bool,
}

impl Stream for FirstOperator {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(*self))
    }
}

impl Transform for FirstOperator {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        Ok(if self.is_first_rank { chunk } else { chunk.slice(0, 0) })
    }
}
