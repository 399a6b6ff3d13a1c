//! `toy_exchange`: sends packed rows through queues to the workers that own their partitions, to
//! all workers, or to the first.

use std::sync::Arc;

use tessera_context::{Context, Reservation, Run};
use tessera_operator::stream_util::PendingSource;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::{
    Collected, RowLayout, Rows, WireBatch, WirePartitioner, WordBuffer, heap_words,
};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use super::world::{Packet, SharedRun, Worker};

/// Bits for more partitions than workers, so that workers have about the same number of them.
const BITS: u32 = 4;
/// The first bit of the hash that names the partition; the bits above order the slots of hash
/// tables.
const SHIFT: u32 = 40;

#[derive(Debug, Clone)]
pub(crate) struct ToyExchange(pub(crate) Option<Arc<Worker>>);

impl Descriptor for ToyExchange {
    tessera_operator::describe!(
        "toy_exchange",
        "Sends tuples to other threads.",
        ["keys", "gather", "first"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        describe::keys(&edge.tuple, &node.params.names_opt("keys")?, "key")?;
        let in_order = node.params.flag("gather")? && edge.order == Order::Source;
        let tuple = Tuple::new(vec![Field::collection("data", "rows", edge.tuple.clone())]);
        let traits = Traits { locality: Locality::All, ..edge.traits };
        Ok(Edge { tuple, traits, order: if in_order { Order::Source } else { Order::None } })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for ToyExchange {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let worker = self.0.clone();
        let worker = worker.ok_or_else(|| Error::unsupported("the toy platform is not started"))?;
        let tuple = &lowering.inputs[0].tuple;
        let layout = RowLayout::bare(tuple)?;
        Ok(Operator::Sink(Arc::new(ExchangeOperator {
            worker,
            keys: describe::keys(tuple, &node.params.names_opt("keys")?, "key")?.into(),
            gather: node.params.flag("gather")?,
            first: node.params.flag("first")?,
            heap_words: heap_words(&layout)?,
            layout,
            step: lowering.position,
        })))
    }
}

#[derive(Debug, Clone)]
struct ExchangeOperator {
    worker: Arc<Worker>,
    keys: Arc<[usize]>,
    gather: bool,
    first: bool,
    layout: Arc<RowLayout>,
    heap_words: Arc<[usize]>,
    step: usize,
}

impl Sink for ExchangeOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let sender = Sender {
            operator: self.clone(),
            shared: self.worker.current()?,
            context: run.context.clone(),
        };
        Ok(Arc::new(ExchangeRun(sender)))
    }
}

#[derive(Debug)]
struct ExchangeRun(Sender);

/// What all lanes of a worker send with.
#[derive(Debug, Clone)]
struct Sender {
    operator: ExchangeOperator,
    shared: Arc<SharedRun>,
    context: Arc<dyn Context>,
}

impl Sender {
    fn send(&self, position: u64, partition: usize, mut batch: WireBatch<'_>) -> Result<()> {
        let ExchangeOperator { worker, keys, gather, layout, heap_words, step, .. } =
            &self.operator;
        batch.relocate(layout, heap_words, 0);
        let receivers = match (keys.is_empty(), gather) {
            (false, _) => vec![(partition * worker.workers) >> BITS],
            (true, true) => vec![0],
            (true, false) => (0..worker.workers).collect(),
        };
        for receiver in receivers {
            let batch = WireBatch::received(batch.rows.to_vec(), batch.heap.clone());
            let mut memory = Reservation::new(self.context.clone());
            memory.grow(batch.rows.len() * 8 + batch.heap.len())?;
            let place = (position, worker.index);
            self.shared.send(*step, receiver, Packet { place, batch, memory });
        }
        Ok(())
    }
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let ExchangeOperator { keys, layout, .. } = &self.0.operator;
        let bits = if keys.is_empty() { (0, 0) } else { (BITS, SHIFT) };
        let outgoing = WirePartitioner::new(layout, keys, bits, &self.0.context)?;
        Ok(Box::new(Lane { sender: self.0.clone(), outgoing, position: 0 }))
    }

    fn finish(self: Arc<Self>, _workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let Sender { operator, shared, context } = self.0.clone();
        let token = shared.complete(operator.step);
        let chunk_rows = context.chunk_rows();
        let make = move || {
            let packets = shared.receive(operator.step, operator.worker.index)?;
            let rows = received(packets, &operator, &context)?;
            Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
        };
        Ok(Finish { tasks: Vec::new(), output: PendingSource::source(token, chunk_rows, make) })
    }
}

/// The rows of all packets, in their order.
fn received(
    packets: Vec<Packet>,
    operator: &ExchangeOperator,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let mut memory = Reservation::new(context.clone());
    memory.grow(packets.iter().map(|packet| packet.memory.bytes()).sum())?;
    let (mut words, mut heap) = (Vec::new(), Vec::new());
    for Packet { mut batch, .. } in packets {
        batch.relocate(&operator.layout, &operator.heap_words, heap.len() as u64);
        words.extend_from_slice(&batch.rows);
        heap.extend_from_slice(&batch.heap);
    }
    let (words, bytes) = (WordBuffer::owned(words), heap.len());
    Rows::received(&operator.layout, words, &WordBuffer::of_bytes(&heap), bytes, vec![memory])
}

struct Lane {
    sender: Sender,
    outgoing: WirePartitioner,
    position: u64,
}

impl SinkWorker for Lane {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let Lane { sender, outgoing, position } = self;
        if sender.operator.first && sender.operator.worker.index > 0 {
            return Ok(());
        }
        outgoing.append(&chunk, &mut |partition, batch| sender.send(*position, partition, batch))
    }

    fn end(&mut self) -> Result<()> {
        let Lane { sender, outgoing, position } = self;
        outgoing.flush(&mut |partition, batch| sender.send(*position, partition, batch))
    }
}
