//! `mpi_receive`: the partitions of this rank, of what all ranks have sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tessera_context::{Context, Reservation, Run};
use tessera_operator::partitions::partitions_tuple;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, Step, Stream, StreamRun, StreamWorker,
    SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, Packet as Came, Region, RowLayout, Rows, heap_words};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Handle};

use crate::answer::{Held, answer, in_order};
use crate::exchange::partitions_chunk;
use crate::flow::{Next, Receiving};
use crate::link::{Arrived, Link, Outcome, Work};
use crate::send::{HEADER_WORDS, SENDING, SENT, Sent};
use crate::window::missing;

/// Waits for what all ranks have sent to this one, of which the communication worker receives
/// packets as they come (micro-operators §3.8.4). That there are no more, ranks tell each other by
/// adding up how many they have sent to each.
///
/// Input: the output of an `mpi_send`; output `<partition: int64, data: rows<T>>` for the
/// partitions of this rank, dense and in order. Blocks. Memory: what was received, and one
/// partition twice while packets are put together.
///
/// With `rounds`, as its `mpi_send`: passes packets on as they come, each a tuple of its own, in no
/// order, and does not block. Memory: what has come and was not passed on, which senders bound.
#[derive(Debug, Clone)]
pub struct Receive {
    link: Option<Arc<Link>>,
}

impl Receive {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Receive { link }
    }
}

impl Descriptor for Receive {
    tessera_operator::describe!(
        "mpi_receive",
        "Receives what was sent to this rank.",
        ["rounds"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let (_, sent) = describe::collection(&edge.tuple, "sent", format(node)?)?;
        let traits = Traits { locality: Locality::All, ..edge.traits };
        Ok(Edge { tuple: partitions_tuple(&sent.tuple), traits, order: Order::None })
    }

    fn role(&self, node: &Node) -> Role {
        if node.params.flag("rounds").unwrap_or(false) { Role::Stream(0) } else { Role::Sink(0) }
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Receive {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let (column, _) = describe::collection(&lowering.inputs[0].tuple, "sent", format(node)?)?;
        if node.params.flag("rounds")? {
            return Ok(Operator::Stream(Arc::new(Passing { column })));
        }
        Ok(Operator::Sink(Arc::new(Lowered { link, column, step: lowering.position })))
    }
}

/// The format of what the node receives.
fn format(node: &Node) -> Result<&'static str> {
    Ok(if node.params.flag("rounds")? { SENDING } else { SENT })
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    column: usize,
    step: usize,
}

#[derive(Debug)]
struct ReceiveRun {
    lowered: Lowered,
    run: Run,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(ReceiveRun { lowered: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for ReceiveRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(Held::default()))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let Lowered { link, column, step } = &self.lowered;
        let chunk = Collected::new(in_order(workers)?).single()?;
        let column = chunk.column(*column)?;
        let handle = column.handles()?.first().cloned();
        let handle = handle.ok_or_else(|| Error::internal("nothing tells what was sent"))?;
        let sent: Arc<Sent> = (*handle.get::<Arc<Sent>>()?).clone();
        let reply = link.step(*step, Work::Receive { of: sent.step, sent: sent.packets.clone() });
        let (rank, context) = (link.rank(), self.run.context.clone());
        let make = move |outcome| {
            let Outcome::Packets(packets) = outcome else {
                return Err(Error::internal("packets that were not received"));
            };
            Ok(vec![partitions_chunk(partitions(packets, &sent, rank, &context)?)])
        };
        let output = answer(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// The packets as the partitions of a rank, with their numbers.
fn partitions(
    packets: Vec<Arrived>,
    sent: &Sent,
    rank: usize,
    context: &Arc<dyn Context>,
) -> Result<Vec<(i64, Rows)>> {
    let mut parts: Vec<Vec<Packet>> = Vec::new();
    parts.resize_with(sent.partitions, Vec::new);
    for packet in packets {
        let packet = Packet::read(packet, &sent.layout)?;
        let part = parts.get_mut(packet.partition);
        part.ok_or_else(|| Error::internal("a packet of a partition that does not exist"))?
            .push(packet);
    }
    let here = (0..)
        .zip(parts)
        .filter(|(partition, _)| sent.roles.owner(*partition, sent.partitions) == rank);
    here.map(|(partition, parts)| {
        Ok((partition as i64, put_together(parts, &sent.layout, context)?))
    })
    .collect()
}

/// In rounds.
#[derive(Debug, Clone)]
struct Passing {
    column: usize,
}

impl Stream for Passing {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(self.clone()))
    }
}

impl StreamRun for Passing {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(PassingWorker { column: self.column, of: VecDeque::new() }))
    }
}

struct PassingWorker {
    column: usize,
    /// What it still has to receive.
    of: VecDeque<Handle>,
}

impl StreamWorker for PassingWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact()?;
        self.of.extend(chunk.column(self.column)?.handles()?.iter().cloned());
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        while let Some(handle) = self.of.front() {
            let receiving = handle.get::<Arc<Receiving>>()?;
            match receiving.flow.next()? {
                Next::Packet(packet) => {
                    let packet = Packet::read(packet, &receiving.layout)?;
                    let partition = packet.partition as i64;
                    return Ok(Step::HasOutput(partitions_chunk(vec![(
                        partition,
                        packet.in_place(&receiving.layout)?,
                    )])));
                }
                Next::Wait(token) => return Ok(Step::Blocked(token)),
                Next::End => drop(self.of.pop_front()),
            }
        }
        Ok(Step::NeedInput)
    }
}

/// A packet that came, and what lies where in it.
struct Packet {
    arrived: Arrived,
    partition: usize,
    row_words: usize,
    heap_bytes: usize,
}

impl Packet {
    fn read(arrived: Arrived, layout: &RowLayout) -> Result<Packet> {
        let header = arrived.words.first_chunk::<HEADER_WORDS>().copied();
        let Some([_, _, partition, rows, heap]) = header else {
            return Err(Error::internal("a packet without a header"));
        };
        let (row_words, heap_bytes) = (rows as usize, heap as usize);
        let fits = arrived.words.len() == HEADER_WORDS + row_words + heap_bytes.div_ceil(8);
        if !fits || row_words % (layout.stride_bytes() / 8) != 0 {
            return Err(Error::internal("a packet of another length than its header says"));
        }
        Ok(Packet { arrived, partition: partition as usize, row_words, heap_bytes })
    }

    /// Its rows where they are.
    fn in_place(self, layout: &Arc<RowLayout>) -> Result<Rows> {
        let Packet { arrived: Arrived { words, memory, .. }, row_words, heap_bytes, .. } = self;
        let all = Region::owned(words);
        let rows = all.slice(HEADER_WORDS, row_words);
        let heap = all.slice(HEADER_WORDS + row_words, heap_bytes.div_ceil(8));
        Rows::arrived(layout, rows, &heap, heap_bytes, memory.into_iter().collect())
    }
}

/// The rows of packets, one after the other, as in a window; the packets go as they are copied.
fn put_together(
    packets: Vec<Packet>,
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let words: usize = packets.iter().map(|packet| packet.row_words).sum();
    let heap_bytes: usize = packets.iter().map(|packet| packet.heap_bytes).sum();
    let mut memory = Reservation::new(context.clone());
    memory.grow(words * 8 + heap_bytes)?;
    let heap_words = heap_words(layout)?;
    let (mut all, mut heap) = (Vec::with_capacity(words), Vec::with_capacity(heap_bytes));
    for Packet { arrived, row_words, heap_bytes, .. } in packets {
        let (rows, strings) = arrived.words[HEADER_WORDS..].split_at(row_words);
        if heap_bytes == 0 {
            all.extend_from_slice(rows);
            continue;
        }
        let strings: Vec<u8> =
            strings.iter().flat_map(|word| word.to_ne_bytes()).take(heap_bytes).collect();
        let mut packet = Came::came(rows.to_vec(), strings);
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    Rows::arrived(layout, Region::owned(all), &Region::of_bytes(&heap), heap_bytes, vec![memory])
}

#[cfg(test)]
mod tests {
    use tessera_engine::{Governor, Query, Settings};

    use super::*;

    #[test]
    fn packets_are_put_together_and_checked() {
        let layout = RowLayout::bare(&"<k: int64, p: int64>".parse().unwrap()).unwrap();
        let read = |words: &[u64]| {
            Packet::read(Arrived { from: 0, words: words.to_vec(), memory: None }, &layout)
        };
        let packets = || {
            [&[0, 0, 3, 4, 0, 1, 10, 2, 20][..], &[0, 0, 3, 2, 0, 3, 30]]
                .map(|words| read(words).unwrap())
        };
        assert!(packets().iter().all(|packet| packet.partition == 3));
        let governor = Governor::new(1 << 20);
        let context: Arc<dyn Context> = Query::new(Settings::default(), &governor);
        let rows = put_together(packets().into(), &layout, &context).unwrap();
        assert_eq!((rows.len(), governor.used_bytes()), (3, 48));
        drop(rows);
        assert_eq!(governor.used_bytes(), 0);
        for broken in [
            &[0, 0, 3][..],
            &[0, 0, 3, 4, 0, 1, 10, 2],
            &[0, 0, 3, 3, 0, 1, 10, 2],
            &[0, 0, 3, 2, 9, 1, 10, 2],
        ] {
            assert!(read(broken).is_err(), "{broken:?}");
        }
    }
}
