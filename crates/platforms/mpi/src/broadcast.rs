//! `mpi_broadcast`: small inputs, whole: to all ranks, or to the first. `mpi_first`: what only the
//! first rank is to send.

use std::sync::Arc;

use tessera_context::{Context, Reservation, Run};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, Stream, StreamRun, SubOperator,
    describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, Outgoing, Packet, Region, RowLayout, Rows};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::answer::answer;
use crate::link::{Link, Outcome, Recipients, Work};
use crate::window::missing;

/// Sends all tuples to all ranks, or with `gather` to the first, two-sided: for build sides and
/// results that are small beside what would have to be partitioned otherwise.
///
/// Input `T`; output one tuple `<data: rows<T>>`: with `gather` in the order of the source, if that
/// is one scan. Blocks. Memory: the tuples.
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

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Broadcast {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let to = if node.params.flag("gather")? { Recipients::First } else { Recipients::All };
        let layout = RowLayout::bare(&lowering.inputs[0].tuple)?;
        Ok(Operator::Sink(Arc::new(Lowered { link, to, layout, step: lowering.position })))
    }
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    to: Recipients,
    layout: Arc<RowLayout>,
    step: usize,
}

#[derive(Debug)]
struct BroadcastRun {
    lowered: Lowered,
    run: Run,
}

struct Worker {
    outgoing: Outgoing,
    layout: Arc<RowLayout>,
    heap_words: Arc<[usize]>,
    position: u64,
    parts: Parts,
    memory: Reservation,
}

/// Packets with the positions of their morsels.
type Parts = Vec<(u64, Packet<'static>)>;

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(BroadcastRun { lowered: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for BroadcastRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let context = &self.run.context;
        let layout = self.lowered.layout.clone();
        let outgoing = Outgoing::new(&layout, &Vec::new().into(), (0, 0), context)?;
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
        let Lowered { link, to, layout, step } = self.lowered.clone();
        let mut parts: Parts = Vec::new();
        let mut held = Vec::new();
        for worker in downcast_workers::<Worker>(workers)? {
            parts.extend(worker.parts);
            held.push(worker.memory);
        }
        // Stable: packets of one morsel are in order.
        parts.sort_by_key(|(position, _)| *position);
        let bytes = Arc::new(encode(&parts));
        drop((parts, held));
        self.run.counters.add("sent_bytes", bytes.len() as u64);
        let reply = link.step(step, Work::Send { to, bytes });
        let context = self.run.context.clone();
        let make = move |outcome| {
            let Outcome::Bytes(came) = outcome else {
                return Err(Error::internal("a broadcast without an end"));
            };
            let rows = decode(&came, &layout, &context)?;
            Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
        };
        let output = answer(reply, &self.run, make);
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
            keep(position, packet, parts, memory)
        })
    }

    fn end(&mut self) -> Result<()> {
        let (position, parts, memory) = (self.position, &mut self.parts, &mut self.memory);
        let (layout, words) = (&self.layout, &self.heap_words);
        self.outgoing.flush(&mut |_, mut packet| {
            packet.relocate(layout, words, 0);
            keep(position, packet, parts, memory)
        })
    }
}

fn keep(
    position: u64,
    packet: Packet<'_>,
    parts: &mut Parts,
    memory: &mut Reservation,
) -> Result<()> {
    let mut packet = packet.into_owned();
    packet.rows.to_mut().shrink_to_fit();
    memory.grow(packet.rows.len() * 8 + packet.heap.len())?;
    parts.push((position, packet));
    Ok(())
}

/// Packets as bytes: position, words of rows, bytes of strings of each, and then those.
fn encode(parts: &Parts) -> Vec<u8> {
    let size = |(_, packet): &(u64, Packet<'_>)| 24 + packet.rows.len() * 8 + packet.heap.len();
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

/// One packet as it came: its position, and where its rows and strings are.
struct Came<'a> {
    position: u64,
    rows: &'a [u8],
    heap: &'a [u8],
}

/// The tuples of all packets of all ranks, by position and then by rank.
fn decode(came: &[Vec<u8>], layout: &Arc<RowLayout>, context: &Arc<dyn Context>) -> Result<Rows> {
    let broken = || Error::internal("a broadcast came in pieces that do not fit");
    let mut parts: Vec<Came<'_>> = Vec::new();
    for bytes in came {
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
            parts.push(Came { position, rows, heap });
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
            Packet::came(part.rows.chunks_exact(8).map(word).collect(), part.heap.to_vec());
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    let heap = Region::of_bytes(&heap);
    Rows::arrived(layout, Region::owned(all), &heap, heap_bytes, vec![memory])
}

/// Passes on what the first rank has, and nothing of the others.
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
    tessera_operator::describe!("mpi_first", "Passes on what the first rank has.", [], 1, 1);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let traits = Traits { locality: Locality::Worker, ..edge.traits };
        Ok(Edge { tuple: edge.tuple.clone(), traits, order: edge.order.clone() })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for First {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.as_ref().ok_or_else(missing)?;
        Ok(Operator::Stream(Arc::new(Pass { passes: link.rank() == 0 })))
    }
}

#[derive(Debug, Clone, Copy)]
struct Pass {
    passes: bool,
}

impl Stream for Pass {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(*self))
    }
}

impl Transform for Pass {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        Ok(if self.passes { chunk } else { chunk.slice(0, 0) })
    }
}
