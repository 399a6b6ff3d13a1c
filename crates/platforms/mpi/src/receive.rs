//! `mpi_receive`: the partitions of this rank, of what all ranks have sent.

use std::sync::Arc;

use tessera_ops::data::partitions_tuple;
use tessera_ops::rows::{Region, RowLayout, Rows};
use tessera_ops::{
    Collected, Finish, Lowering, Operator, Run, Sink, SinkRun, SinkWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_types::{Error, Result};

use crate::answer::{Held, answer, in_order};
use crate::exchange::partitions_chunk;
use crate::link::{Arrived, Link, Outcome, Work};
use crate::send::{HEADER_WORDS, SENT, Sent};
use crate::window::missing;

/// Waits for what all ranks have sent to this one, of which the communication worker receives packets as they come
/// (micro-operators §3.8.4). That there are no more, ranks tell each other by adding up how many they have sent to each.
///
/// Input: the output of an `mpi_send`; output `<partition: int64, data: rows<T>>` for the partitions of this rank, dense and in
/// order. Blocks. Memory: what was received, where it was received.
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
    tessera_ops::describe!("mpi_receive", "Receives what was sent to this rank.", [], 1, 1);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let (_, sent) = describe::collection(&edge.tuple, "sent", SENT)?;
        let traits = Traits { locality: Locality::All, ..edge.traits };
        Ok(Edge { tuple: partitions_tuple(&sent.tuple), traits, order: Order::None })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Receive {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let (column, _) = describe::collection(&lowering.inputs[0].tuple, "sent", SENT)?;
        Ok(Operator::Sink(Arc::new(Lowered { link, column, step: lowering.position })))
    }
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
        let chunk = Collected { chunks: in_order(workers)? }.single()?;
        let column = chunk.column(*column)?;
        let handle = column.handles()?.first().cloned();
        let handle = handle.ok_or_else(|| Error::internal("nothing tells what was sent"))?;
        let sent: Arc<Sent> = (*handle.get::<Arc<Sent>>()?).clone();
        let reply = link.step(*step, Work::Receive { of: sent.step, sent: sent.packets.clone() });
        let rank = link.rank();
        let make = move |outcome| {
            let Outcome::Packets(packets) = outcome else {
                return Err(Error::internal("packets that were not received"));
            };
            Ok(vec![partitions_chunk(partitions(packets, &sent, rank)?)])
        };
        let output = answer(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// The packets as the partitions of a rank, with their numbers.
fn partitions(packets: Vec<Arrived>, sent: &Sent, rank: usize) -> Result<Vec<(i64, Rows)>> {
    let mut parts: Vec<Vec<Rows>> = vec![Vec::new(); sent.partitions];
    for packet in packets {
        let (partition, rows) = rows(packet, &sent.layout)?;
        let part = parts.get_mut(partition);
        part.ok_or_else(|| Error::internal("a packet of a partition that does not exist"))?.push(rows);
    }
    let here =
        (0..).zip(parts).filter(|(partition, _)| sent.roles.owner(*partition, sent.partitions) == rank);
    here.map(|(partition, parts)| Ok((partition as i64, Rows::concat(sent.layout.clone(), parts)?))).collect()
}

/// A packet's partition and rows, where they were received.
fn rows(packet: Arrived, layout: &Arc<RowLayout>) -> Result<(usize, Rows)> {
    let Arrived { words, memory } = packet;
    let header = words.first_chunk::<HEADER_WORDS>().copied();
    let Some([_, _, partition, rows, heap_bytes]) = header else {
        return Err(Error::internal("a packet without a header"));
    };
    let (rows, heap_bytes) = (rows as usize, heap_bytes as usize);
    let fits = words.len() == HEADER_WORDS + rows + heap_bytes.div_ceil(8);
    if !fits || rows % (layout.stride_bytes() / 8) != 0 {
        return Err(Error::internal("a packet of another length than its header says"));
    }
    let words = Region::owned(words);
    let heap = words.slice(HEADER_WORDS + rows, heap_bytes.div_ceil(8));
    let rows = words.slice(HEADER_WORDS, rows);
    Ok((partition as usize, Rows::arrived(layout, rows, &heap, heap_bytes, Vec::from_iter(memory))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_do_not_fit_are_errors() {
        let layout = RowLayout::bare(&"<k: int64, p: int64>".parse().unwrap()).unwrap();
        let rows = |words: &[u64]| rows(Arrived { words: words.to_vec(), memory: None }, &layout);
        let (partition, packet) = rows(&[0, 0, 3, 4, 0, 1, 10, 2, 20]).unwrap();
        assert_eq!((partition, packet.len()), (3, 2));
        for broken in [
            &[0, 0, 3][..],
            &[0, 0, 3, 4, 0, 1, 10, 2],
            &[0, 0, 3, 3, 0, 1, 10, 2],
            &[0, 0, 3, 2, 9, 1, 10, 2],
        ] {
            assert!(rows(broken).is_err(), "{broken:?}");
        }
    }
}
