//! `mpi_receive`: receives the partitions of this rank that all ranks have sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tessera_context::{Context, Reservation, Run};
use tessera_operator::partitions::partitions_tuple;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, Step, Stream, StreamRun, StreamWorker,
    SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{Collected, RowLayout, Rows, WireBatch, WordBuffer, heap_words};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Handle};

use crate::collective::{ChunkBuffer, chunks_in_order, reply_source};
use crate::exchange::partitions_chunk;
use crate::flow::{FlowEvent, ReceiveEnd};
use crate::link::{Link, Outcome, ReceivedPacket, Work};
use crate::send::{HEADER_WORDS, SENDING, SENT, SentPackets};
use crate::window::missing_mpi;

/// Waits for everything that ranks send to this one; the communication worker receives packets as
/// they arrive (micro-operators §3.8.4). Ranks sum how many packets they have sent to each other,
/// so that each knows when it has all of them.
///
/// Input: the output of an `mpi_send`; output `<partition: int64, data: rows<T>>` for the
/// partitions of this rank, dense and in order. Blocks. Memory: the received packets, and one
/// partition twice while its packets are concatenated.
///
/// With `rounds`, which its `mpi_send` must have too, outputs each packet as a tuple as soon as it
/// arrives, in no order, without blocking. Memory: packets that have arrived and were not consumed,
/// which senders bound.
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
        "Receives the tuples sent to this rank.",
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

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for Receive {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let (column, _) = describe::collection(&lowering.inputs[0].tuple, "sent", format(node)?)?;
        if node.params.flag("rounds")? {
            return Ok(Operator::Stream(Arc::new(ReceiveStream { column })));
        }
        Ok(Operator::Sink(Arc::new(ReceiveOperator { link, column, step: lowering.position })))
    }
}

/// Returns the collection format of the node's input.
fn format(node: &Node) -> Result<&'static str> {
    Ok(if node.params.flag("rounds")? { SENDING } else { SENT })
}

#[derive(Debug, Clone)]
struct ReceiveOperator {
    link: Arc<Link>,
    column: usize,
    step: usize,
}

#[derive(Debug)]
struct ReceiveRun {
    operator: ReceiveOperator,
    run: Run,
}

impl Sink for ReceiveOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(ReceiveRun { operator: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for ReceiveRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(ChunkBuffer::default()))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let ReceiveOperator { link, column, step } = &self.operator;
        let chunk = Collected::new(chunks_in_order(workers)?).single()?;
        let column = chunk.column(*column)?;
        let handle = column.handles()?.first().cloned();
        let handle = handle
            .ok_or_else(|| Error::internal("mpi_receive without the record of an mpi_send"))?;
        let sent: Arc<SentPackets> = (*handle.get::<Arc<SentPackets>>()?).clone();
        let reply = link.step(*step, Work::Receive { of: sent.step, sent: sent.packets.clone() });
        let (rank, context) = (link.rank(), self.run.context.clone());
        let make = move |outcome| {
            let Outcome::Packets(packets) = outcome else {
                return Err(Error::internal("mpi_receive without packets"));
            };
            Ok(vec![partitions_chunk(partitions(packets, &sent, rank, &context)?)])
        };
        let output = reply_source(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// Assembles packets into the partitions of a rank, with their numbers.
fn partitions(
    packets: Vec<ReceivedPacket>,
    sent: &SentPackets,
    rank: usize,
    context: &Arc<dyn Context>,
) -> Result<Vec<(i64, Rows)>> {
    let mut parts: Vec<Vec<DecodedPacket>> = Vec::new();
    parts.resize_with(sent.partitions, Vec::new);
    for packet in packets {
        let packet = DecodedPacket::read(packet, &sent.layout)?;
        let part = parts.get_mut(packet.partition);
        part.ok_or_else(|| Error::internal("packet of an unknown partition"))?.push(packet);
    }
    let here = (0..)
        .zip(parts)
        .filter(|(partition, _)| sent.roles.owner(*partition, sent.partitions) == rank);
    here.map(|(partition, parts)| {
        Ok((partition as i64, concatenate(parts, &sent.layout, context)?))
    })
    .collect()
}

/// `mpi_receive` with `rounds`.
#[derive(Debug, Clone)]
struct ReceiveStream {
    column: usize,
}

impl Stream for ReceiveStream {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(self.clone()))
    }
}

impl StreamRun for ReceiveStream {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(ReceiveStreamWorker { column: self.column, pending: VecDeque::new() }))
    }
}

struct ReceiveStreamWorker {
    column: usize,
    /// The exchanges still to be received.
    pending: VecDeque<Handle>,
}

impl StreamWorker for ReceiveStreamWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact()?;
        self.pending.extend(chunk.column(self.column)?.handles()?.iter().cloned());
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        while let Some(handle) = self.pending.front() {
            let end = handle.get::<Arc<ReceiveEnd>>()?;
            match end.flow.next()? {
                FlowEvent::Packet(packet) => {
                    let packet = DecodedPacket::read(packet, &end.layout)?;
                    let partition = packet.partition as i64;
                    return Ok(Step::HasOutput(partitions_chunk(vec![(
                        partition,
                        packet.in_place(&end.layout)?,
                    )])));
                }
                FlowEvent::Wait(token) => return Ok(Step::Blocked(token)),
                FlowEvent::End => drop(self.pending.pop_front()),
            }
        }
        Ok(Step::NeedInput)
    }
}

/// A received packet with its decoded header.
struct DecodedPacket {
    received: ReceivedPacket,
    partition: usize,
    row_words: usize,
    heap_bytes: usize,
}

impl DecodedPacket {
    fn read(received: ReceivedPacket, layout: &RowLayout) -> Result<DecodedPacket> {
        let header = received.words.first_chunk::<HEADER_WORDS>().copied();
        let Some([_, _, partition, rows, heap]) = header else {
            return Err(Error::internal("packet without a header"));
        };
        let (row_words, heap_bytes) = (rows as usize, heap as usize);
        let fits = received.words.len() == HEADER_WORDS + row_words + heap_bytes.div_ceil(8);
        if !fits || row_words % (layout.stride_bytes() / 8) != 0 {
            return Err(Error::internal("packet length does not match its header"));
        }
        Ok(DecodedPacket { received, partition: partition as usize, row_words, heap_bytes })
    }

    /// Returns the packet's rows without copying them.
    fn in_place(self, layout: &Arc<RowLayout>) -> Result<Rows> {
        let DecodedPacket {
            received: ReceivedPacket { words, memory, .. },
            row_words,
            heap_bytes,
            ..
        } = self;
        let all = WordBuffer::owned(words);
        let rows = all.slice(HEADER_WORDS, row_words);
        let heap = all.slice(HEADER_WORDS + row_words, heap_bytes.div_ceil(8));
        Rows::received(layout, rows, &heap, heap_bytes, memory.into_iter().collect())
    }
}

/// Concatenates the rows of packets, as in a window; frees each packet once it is copied.
fn concatenate(
    packets: Vec<DecodedPacket>,
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let words: usize = packets.iter().map(|packet| packet.row_words).sum();
    let heap_bytes: usize = packets.iter().map(|packet| packet.heap_bytes).sum();
    let mut memory = Reservation::new(context.clone());
    memory.grow(words * 8 + heap_bytes)?;
    let heap_words = heap_words(layout)?;
    let (mut all, mut heap) = (Vec::with_capacity(words), Vec::with_capacity(heap_bytes));
    for DecodedPacket { received, row_words, heap_bytes, .. } in packets {
        let (rows, strings) = received.words[HEADER_WORDS..].split_at(row_words);
        if heap_bytes == 0 {
            all.extend_from_slice(rows);
            continue;
        }
        let strings: Vec<u8> =
            strings.iter().flat_map(|word| word.to_ne_bytes()).take(heap_bytes).collect();
        let mut packet = WireBatch::received(rows.to_vec(), strings);
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    Rows::received(
        layout,
        WordBuffer::owned(all),
        &WordBuffer::of_bytes(&heap),
        heap_bytes,
        vec![memory],
    )
}

#[cfg(test)]
mod tests {
    use tessera_engine::{Governor, Query, Settings};

    use super::*;

    #[test]
    fn packets_are_concatenate_and_checked() {
        let layout = RowLayout::bare(&"<k: int64, p: int64>".parse().unwrap()).unwrap();
        let read = |words: &[u64]| {
            DecodedPacket::read(
                ReceivedPacket { from: 0, words: words.to_vec(), memory: None },
                &layout,
            )
        };
        let packets = || {
            [&[0, 0, 3, 4, 0, 1, 10, 2, 20][..], &[0, 0, 3, 2, 0, 3, 30]]
                .map(|words| read(words).unwrap())
        };
        assert!(packets().iter().all(|packet| packet.partition == 3));
        let governor = Governor::new(1 << 20);
        let context: Arc<dyn Context> = Query::new(Settings::default(), &governor);
        let rows = concatenate(packets().into(), &layout, &context).unwrap();
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
