//! `object_exchange`: tuples that cross as objects.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run, Token, lock};
use tessera_operator::partitions::Partitioning;
use tessera_operator::stream_util::Later;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role as PlanRole, Traits};
use tessera_rows::{Collected, Outgoing, Packet, RowLayout};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::Role;
use crate::crossing::{Crossed, Crossing};
use crate::meeting::{Meeting, meets};
use crate::object::{self, Group};
use crate::parts::{Parts, To};
use crate::pieces::{self, PiecesRun};
use crate::task::{Ending, Task};

/// Brings tuples of equal `keys` together on one worker, or all to every worker, or with `gather`
/// all to the first: each worker writes one object with a row group per receiver, and reads its row
/// group of every worker's object as those appear (Modularis §1.4; write combining as in Lambada).
/// With `first`, only what the first worker has is sent. `keys` come with `bits` and `shift`: which
/// bits of their hash name the partition, and thereby the receiver.
///
/// Two exchanges that have the same name in `meets` are the sides of a join, whose `heavy`
/// partitions may be `split`, `copied` or `either`: where more than half of what a worker would
/// have to read of one side is in one partition (a key that many tuples have), every worker reads
/// of it what it has sent itself, and all of the other side's, if this is less. Their objects have
/// a row group per partition, so that the indexes, which all read, say which partitions those are;
/// nothing is read before both sides' are there.
///
/// With `pieces`, senders write what they hold whenever it is much, and receivers read piece by
/// piece: for what is larger than the budget. Then there are no heavy partitions, and a tuple of
/// output for each piece, in no order; `position` names a field that is put before the tuples and
/// numbers them in the order of the source, if that is one scan. Memory: some parts and pieces.
///
/// Input `T`; output one tuple `<data: rows<T>>`, with `gather` in the order of the source, if that
/// is one scan. Blocks. Memory: the tuples sent, then those received and, until the other side is
/// counted, those sent that may stay.
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
                "takes heavy and meets with keys only: what goes to all has no partitions",
            ));
        }
        let pieces = node.params.flag("pieces")?;
        if pieces && node.params.get("meets").is_some() {
            return Err(Error::semantic(
                "takes heavy and meets, or pieces = true: partitions go where their hash says then",
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

    fn of_platform(&self) -> bool {
        true
    }
}

/// What is sent: the tuples, behind their positions where these are wanted.
fn sent_tuple(node: &Node, tuple: &Tuple) -> Result<Tuple> {
    if node.params.get("position").is_none() {
        return Ok(tuple.clone());
    }
    let name = node.params.name("position")?.clone();
    if tuple.index_of(&name).is_some() {
        return Err(Error::semantic(format!(
            "parameter position names a field that there is: {name}"
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
            Some(partitioning) => To::ByKeys { bits: partitioning.bits, meets },
            None if node.params.flag("gather")? => To::First,
            None => To::All,
        };
        Ok(Operator::Sink(Arc::new(Lowered {
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
struct Lowered {
    role: Role,
    partitioning: Option<Partitioning>,
    to: To,
    only_first: bool,
    layout: Arc<RowLayout>,
    in_pieces: bool,
    has_position: bool,
    number: usize,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let task = match &self.role {
            Role::Worker(worker) => worker.task()?,
            _ => {
                return Err(Error::unsupported(
                    "this process is no serverless worker: start the query with --platform serverless; EXPLAIN (PLATFORM \
                     serverless) works everywhere",
                ));
            }
        };
        let meeting = task.begin(self.number, self.to.meets().map(|(name, _)| name))?;
        if !self.in_pieces {
            return Ok(Arc::new(ExchangeRun {
                lowered: self.clone(),
                meeting,
                task,
                run: run.clone(),
            }));
        }
        let crossing = self.crossing(&task, meeting, run);
        let (keys, bits) = self.partitions();
        let (layout, has_position, run) = (self.layout.clone(), self.has_position, run.clone());
        Ok(Arc::new(PiecesRun::new(pieces::Plan {
            layout,
            keys,
            bits,
            has_position,
            crossing,
            run,
        })))
    }
}

impl Lowered {
    fn crossing(&self, task: &Arc<Task>, meeting: Option<Arc<Meeting>>, run: &Run) -> Crossing {
        Crossing {
            number: self.number,
            parts: Parts::new(self.to.clone(), task.order.workers),
            only_first: self.only_first,
            meeting,
            task: task.clone(),
            memory: Mutex::new(Reservation::new(run.context.clone())),
        }
    }

    /// Keys, and which bits of their hash name the partition.
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
    lowered: Lowered,
    /// With the other side of a join.
    meeting: Option<Arc<Meeting>>,
    task: Arc<Task>,
    run: Run,
}

struct Worker {
    outgoing: Outgoing,
    /// Whether it sends at all.
    sends: bool,
    /// Packets of one morsel only, since the order of morsels counts.
    in_order: bool,
    sorting: Sorting,
}

/// Where packets go.
struct Sorting {
    layout: Arc<RowLayout>,
    parts: Parts,
    heap_words: Arc<[usize]>,
    /// Of the morsel.
    position: u64,
    groups: Vec<Group>,
    memory: Reservation,
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (context, lowered) = (&self.run.context, &self.lowered);
        let (keys, bits) = lowered.partitions();
        let order = &self.task.order;
        let parts = Parts::new(lowered.to.clone(), order.workers);
        let outgoing = Outgoing::new(&lowered.layout, &keys, bits, context)?;
        Ok(Box::new(Worker {
            sends: order.index == 0 || !lowered.only_first,
            in_order: matches!(lowered.to, To::First),
            sorting: Sorting {
                layout: lowered.layout.clone(),
                heap_words: outgoing.heap_words().clone(),
                position: 0,
                groups: (0..parts.groups()).map(|_| Group::default()).collect(),
                parts,
                memory: Reservation::new(context.clone()),
            },
            outgoing,
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut groups: Vec<Vec<Group>> = Vec::new();
        let crossing = self.lowered.crossing(&self.task, self.meeting.clone(), &self.run);
        groups.resize_with(crossing.parts.groups(), Vec::new);
        let mut held = Vec::new();
        for mut worker in downcast_workers::<Worker>(workers)? {
            worker.flush()?;
            groups.iter_mut().zip(worker.sorting.groups).for_each(|(parts, part)| parts.push(part));
            held.push(worker.sorting.memory);
        }
        let arrival = Arc::new(Arrival::default());
        let told = arrival.clone();
        let work = async move {
            let crossed = crossing.cross(groups, held).await;
            *lock(&told.crossed) = Some(crossed.map(|crossed| (crossed, crossing.memory)));
            told.token.set_ready();
        };
        let ending = Ending(self.task.io.spawn(work).abort_handle());
        let (layout, run) = (self.lowered.layout.clone(), self.run.clone());
        // All workers come to the same.
        let counts_heavy = self.meeting.is_some() && self.task.order.index == 0;
        let output = Later::source(arrival.token.clone(), run.context.chunk_rows(), move || {
            let _ending = ending;
            let crossed = lock(&arrival.crossed).take();
            let read_twice = || Err(Error::internal("an exchange was read twice"));
            let (Crossed { came, split }, _held) = crossed.unwrap_or_else(read_twice)?;
            let bytes = came.iter().map(|came| came.bytes.len() as u64).sum();
            run.counters.add("exchanged_bytes", bytes);
            if counts_heavy {
                run.counters.add("heavy_partitions", split as u64);
            }
            let rows = object::decode(&came, &layout, &run.context)?;
            Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
        });
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl Sorting {
    fn keep(&mut self, partition: usize, packet: Packet<'_>) -> Result<()> {
        let group = &mut self.groups[self.parts.group(partition)];
        let before = group.len();
        group.add(self.position, packet, &self.layout, &self.heap_words);
        self.memory.grow(group.len() - before)
    }
}

impl Worker {
    fn flush(&mut self) -> Result<()> {
        let sorting = &mut self.sorting;
        self.outgoing.flush(&mut |partition, packet| sorting.keep(partition, packet))
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.sorting.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if !self.sends {
            return Ok(());
        }
        let sorting = &mut self.sorting;
        self.outgoing.append(&chunk, &mut |partition, packet| sorting.keep(partition, packet))
    }

    fn end(&mut self) -> Result<()> {
        if self.in_order { self.flush() } else { Ok(()) }
    }
}

/// What has come, once it has.
#[derive(Debug, Default)]
struct Arrival {
    token: Token,
    crossed: Mutex<Option<Result<(Crossed, Mutex<Reservation>)>>>,
}
