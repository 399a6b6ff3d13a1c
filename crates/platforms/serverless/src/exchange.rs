//! `object_exchange`: exchanges tuples between workers as objects of a store.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, Token, lock};
use tessera_operator::partitions::Partitioning;
use tessera_operator::stream_util::PendingSource;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role as PlanRole, Traits};
use tessera_rows::{Collected, RowLayout, WireBatch, WirePartitioner};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::Role;
use crate::group_map::{Destination, GroupMap};
use crate::object::{self, Group};
use crate::pieces::{self, PiecesRun};
use crate::rendezvous::{Rendezvous, meets};
use crate::store_exchange::{ReceivedGroups, StoreExchange};
use crate::task::{AbortOnDrop, Task};

/// Brings tuples of equal `keys` to one worker, or all tuples to every worker, or with `gather` all
/// to the first. Each worker writes one object with a row group per receiver, and reads its row
/// group of every worker's object as those appear (Modularis §2.4.4; write combining as in
/// Lambada). With `first`, only the first worker's tuples are sent. `keys` come with `bits` and
/// `shift`: the bits of the hash that name the partition, and so the receiver.
///
/// Two exchanges with the same name in `meets` are the sides of a join. `heavy` says whether their
/// heavy partitions may be `split`, `copied` or `either`. If one partition (a frequent key) has
/// more than half of what a worker would read of one side, every worker keeps its own tuples of it
/// and reads all of the other side's partition, if that is smaller. Such objects have a row group
/// per partition, so that their indexes, which all workers read, identify heavy partitions. Workers
/// read groups only when the objects of both sides exist.
///
/// With `pieces`, senders write several smaller objects and receivers read piece by piece, for
/// inputs larger than the budget. Then there are no heavy partitions, and each piece is one output
/// tuple, in no order. `position` names a field to prepend that numbers tuples in the order of the
/// source, if that is a single scan. Memory: some parts and pieces.
///
/// Input `T`; output one tuple `<data: rows<T>>`, with `gather` in the order of the source, if that
/// is a single scan. Blocks. Memory: the tuples sent, then those received and, until the other side
/// of a join is counted, those sent that may stay.
#[derive(Debug, Clone)]
pub struct ObjectExchange {
    role: Role,
}

impl ObjectExchange {
    pub(crate) fn new(role: Role) -> Self {
        ObjectExchange { role }
    }
}

impl Descriptor for ObjectExchange {
    tessera_operator::describe!(
        "object_exchange",
        "Sends tuples between workers as objects in a store.",
        ["keys", "bits", "shift", "gather", "first", "heavy", "meets", "pieces", "position"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let gather = node.params.flag("gather")?;
        node.params.flag("first")?;
        let has_keys = partitioning(node, &edge.tuple)?.is_some();
        if has_keys && gather {
            return Err(Error::semantic("takes keys or gather = true, not both"));
        }
        if meets(node)?.is_some() && !has_keys {
            return Err(Error::semantic(
                "takes heavy and meets with keys only: without keys there are no partitions",
            ));
        }
        let pieces = node.params.flag("pieces")?;
        if pieces && node.params.get("meets").is_some() {
            return Err(Error::semantic(
                "takes heavy and meets, or pieces = true, not both: pieces have no heavy partitions",
            ));
        }
        let sent = sent_tuple(node, &edge.tuple)?;
        if sent != edge.tuple && (has_keys || !pieces) {
            return Err(Error::semantic("takes position with pieces = true and without keys"));
        }
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let ordered = gather && !pieces && edge.order == Order::Source;
        let tuple = Tuple::new(vec![Field::collection("data", "rows", sent)]);
        Ok(Edge { tuple, traits, order: if ordered { Order::Source } else { Order::None } })
    }

    fn role(&self, _node: &Node) -> PlanRole {
        PlanRole::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

/// Returns the type of the tuples sent: the input's, after the position if there is one.
fn sent_tuple(node: &Node, tuple: &Tuple) -> Result<Tuple> {
    if node.params.get("position").is_none() {
        return Ok(tuple.clone());
    }
    let name = node.params.name("position")?.clone();
    if tuple.index_of(&name).is_some() {
        return Err(Error::semantic(format!(
            "parameter position names a field of the input, {name}; choose another name"
        )));
    }
    let fields = [Field::new(name, Atom::Int64)].into_iter().chain(tuple.fields().iter().cloned());
    Ok(Tuple::new(fields.collect::<Vec<_>>()))
}

fn partitioning(node: &Node, tuple: &Tuple) -> Result<Option<Partitioning>> {
    let has_keys = node.params.get("keys").is_some();
    has_keys.then(|| Partitioning::new(node, tuple)).transpose()
}

impl SubOperator for ObjectExchange {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let partitioning = partitioning(node, tuple)?;
        let meets = meets(node)?;
        let to = match &partitioning {
            Some(partitioning) => Destination::ByKeys { bits: partitioning.bits, meets },
            None if node.params.flag("gather")? => Destination::First,
            None => Destination::All,
        };
        Ok(Operator::Sink(Arc::new(ExchangeOperator {
            role: self.role.clone(),
            partitioning,
            to,
            only_first: node.params.flag("first")?,
            layout: RowLayout::bare(&sent_tuple(node, tuple)?)?,
            in_pieces: node.params.flag("pieces")?,
            has_position: node.params.get("position").is_some(),
            number: lowering.position,
        })))
    }
}

#[derive(Debug, Clone)]
struct ExchangeOperator {
    role: Role,
    partitioning: Option<Partitioning>,
    to: Destination,
    only_first: bool,
    layout: Arc<RowLayout>,
    in_pieces: bool,
    has_position: bool,
    number: usize,
}

impl Sink for ExchangeOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let task = match &self.role {
            Role::Worker(worker) => worker.task()?,
            _ => {
                return Err(Error::unsupported(
                    "object_exchange runs only on serverless workers; run the query with --platform serverless; EXPLAIN (PLATFORM \
                     serverless) works everywhere",
                ));
            }
        };
        let rendezvous = task.begin_exchange(self.number, self.to.meets().map(|(name, _)| name))?;
        if !self.in_pieces {
            return Ok(Arc::new(ExchangeRun {
                operator: self.clone(),
                rendezvous,
                task,
                run: run.clone(),
            }));
        }
        let store_exchange = self.store_exchange(&task, rendezvous, run);
        let (keys, bits) = self.partitions();
        let (layout, has_position, run) = (self.layout.clone(), self.has_position, run.clone());
        Ok(Arc::new(PiecesRun::new(pieces::PiecesSetup {
            layout,
            keys,
            bits,
            has_position,
            store_exchange,
            run,
        })))
    }
}

impl ExchangeOperator {
    fn store_exchange(
        &self,
        task: &Arc<Task>,
        rendezvous: Option<Arc<Rendezvous>>,
        run: &Run,
    ) -> StoreExchange {
        StoreExchange {
            number: self.number,
            group_map: GroupMap::new(self.to.clone(), task.order.workers),
            only_first: self.only_first,
            rendezvous,
            task: task.clone(),
            memory: Mutex::new(Reservation::new(run.context.clone())),
        }
    }

    /// Returns the keys, and which bits of their hash name the partition.
    fn partitions(&self) -> (Arc<[usize]>, (u32, u32)) {
        match &self.partitioning {
            Some(partitioning) => {
                (partitioning.keys.clone(), (partitioning.bits, partitioning.shift))
            }
            None => (Vec::new().into(), (0, 0)),
        }
    }
}

#[derive(Debug)]
struct ExchangeRun {
    operator: ExchangeOperator,
    /// The rendezvous with the other side of a join.
    rendezvous: Option<Arc<Rendezvous>>,
    task: Arc<Task>,
    run: Run,
}

struct Worker {
    outgoing: WirePartitioner,
    /// Whether this worker sends tuples.
    sends: bool,
    /// Whether to flush packets after each morsel, because the order of morsels matters.
    in_order: bool,
    builder: GroupBuilder,
}

/// Collects packets into row groups.
struct GroupBuilder {
    layout: Arc<RowLayout>,
    group_map: GroupMap,
    heap_words: Arc<[usize]>,
    /// The position of the current morsel.
    position: u64,
    groups: Vec<Group>,
    memory: Reservation,
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (context, operator) = (&self.run.context, &self.operator);
        let (keys, bits) = operator.partitions();
        let order = &self.task.order;
        let group_map = GroupMap::new(operator.to.clone(), order.workers);
        let outgoing = WirePartitioner::new(&operator.layout, &keys, bits, context)?;
        Ok(Box::new(Worker {
            sends: order.index == 0 || !operator.only_first,
            in_order: matches!(operator.to, Destination::First),
            builder: GroupBuilder {
                layout: operator.layout.clone(),
                heap_words: outgoing.heap_words().clone(),
                position: 0,
                groups: (0..group_map.groups()).map(|_| Group::default()).collect(),
                group_map,
                memory: Reservation::new(context.clone()),
            },
            outgoing,
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut groups: Vec<Vec<Group>> = Vec::new();
        let store_exchange =
            self.operator.store_exchange(&self.task, self.rendezvous.clone(), &self.run);
        groups.resize_with(store_exchange.group_map.groups(), Vec::new);
        let mut held = Vec::new();
        for mut worker in downcast_workers::<Worker>(workers)? {
            worker.flush()?;
            groups.iter_mut().zip(worker.builder.groups).for_each(|(parts, part)| parts.push(part));
            held.push(worker.builder.memory);
        }
        let arrival = Arc::new(Arrival::default());
        let sender = arrival.clone();
        let work = async move {
            let crossed = store_exchange.exchange(groups, held).await;
            *lock(&sender.crossed) = Some(crossed.map(|crossed| (crossed, store_exchange.memory)));
            sender.token.set_ready();
        };
        let abort_guard = AbortOnDrop(self.task.io.spawn(work).abort_handle());
        let (layout, run) = (self.operator.layout.clone(), self.run.clone());
        // All workers compute the same number, so one of them counts it.
        let counts_heavy = self.rendezvous.is_some() && self.task.order.index == 0;
        let output =
            PendingSource::source(arrival.token.clone(), run.context.chunk_rows(), move || {
                let _abort_guard = abort_guard;
                let crossed = lock(&arrival.crossed).take();
                let read_twice = || Err(Error::internal("exchange read twice"));
                let (ReceivedGroups { groups, split }, _held) =
                    crossed.unwrap_or_else(read_twice)?;
                let bytes = groups.iter().map(|group| group.bytes.len() as u64).sum();
                run.counters.add("exchanged_bytes", bytes);
                if counts_heavy {
                    run.counters.add("heavy_partitions", split as u64);
                }
                let rows = object::decode(&groups, &layout, &run.context)?;
                Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
            });
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl GroupBuilder {
    fn add(&mut self, partition: usize, packet: WireBatch<'_>) -> Result<()> {
        let group = &mut self.groups[self.group_map.group(partition)];
        let before = group.len();
        group.add(self.position, packet, &self.layout, &self.heap_words);
        self.memory.grow(group.len() - before)
    }
}

impl Worker {
    fn flush(&mut self) -> Result<()> {
        let builder = &mut self.builder;
        self.outgoing.flush(&mut |partition, packet| builder.add(partition, packet))
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.builder.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if !self.sends {
            return Ok(());
        }
        let builder = &mut self.builder;
        self.outgoing.append(&chunk, &mut |partition, packet| builder.add(partition, packet))
    }

    fn end(&mut self) -> Result<()> {
        if self.in_order { self.flush() } else { Ok(()) }
    }
}

/// The received groups, once they have arrived.
#[derive(Debug, Default)]
struct Arrival {
    token: Token,
    crossed: Mutex<Option<Result<(ReceivedGroups, Mutex<Reservation>)>>>,
}
