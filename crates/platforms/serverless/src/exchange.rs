//! `object_exchange`: tuples that cross as objects.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{Error as StoreError, GetOptions, GetRange};
use tessera_encodings::{Chunk, Column, Handle};
use tessera_ops::data::Partitioning;
use tessera_ops::operator::downcast_workers;
use tessera_ops::rows::{Outgoing, Packet, RowLayout};
use tessera_ops::stream_util::Later;
use tessera_ops::{
    Collected, Finish, Lowering, Operator, Reservation, Run, Sink, SinkRun, SinkWorker, SubOperator, Token,
    describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role as PlanRole, Traits};
use tessera_types::{Code, Error, Field, Result, Tuple};
use tokio::task::AbortHandle;

use crate::Role;
use crate::invoke::pause;
use crate::object::{self, Came, Group};
use crate::task::{Task, lock};

/// Bytes that are read with an index: small objects are then read whole, with one request.
const TAIL_BYTES: usize = 16 << 10;
/// Requests of one exchange that are under way at once.
const READS_MAX: usize = 32;
/// How often a body that was cut is asked for again.
const CUTS_MAX: usize = 6;

/// Brings tuples of equal `keys` together on one worker, or all to every worker, or with `gather` all to the first: each
/// worker writes one object with a row group per receiver, and reads its row group of every worker's object as those appear
/// (Modularis §1.4; write combining as in Lambada). With `first`, only what the first worker has is sent. `keys` come with
/// `bits` and `shift`: which bits of their hash name the receiver.
///
/// Input `T`; output one tuple `<data: rows<T>>`, with `gather` in the order of the source, if that is one scan. Blocks. Memory: the tuples
/// sent, then those received.
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
    tessera_ops::describe!(
        "object_exchange",
        "Sends tuples between workers as objects in a store.",
        ["keys", "bits", "shift", "gather", "first"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let gather = node.params.flag("gather")?;
        node.params.flag("first")?;
        if partitioning(node, &edge.tuple)?.is_some() && gather {
            return Err(Error::semantic("takes keys or gather = true, not both"));
        }
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let ordered = gather && edge.order == Order::Source;
        let tuple = Tuple::new(vec![Field::collection("data", "rows", edge.tuple.clone())]);
        Ok(Edge { tuple, traits, order: if ordered { Order::Source } else { Order::None } })
    }

    fn role(&self, _node: &Node) -> PlanRole {
        PlanRole::Sink(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

fn partitioning(node: &Node, tuple: &Tuple) -> Result<Option<Partitioning>> {
    let has_keys = node.params.get("keys").is_some();
    has_keys.then(|| Partitioning::new(node, tuple)).transpose()
}

impl SubOperator for ObjectExchange {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let to = match partitioning(node, tuple)? {
            Some(partitioning) => To::ByKeys(partitioning),
            None if node.params.flag("gather")? => To::First,
            None => To::All,
        };
        Ok(Operator::Sink(Arc::new(Lowered {
            role: self.role.clone(),
            to,
            only_first: node.params.flag("first")?,
            layout: RowLayout::bare(tuple)?,
            number: lowering.position,
        })))
    }
}

/// To whom tuples go.
#[derive(Debug, Clone)]
enum To {
    ByKeys(Partitioning),
    All,
    First,
}

#[derive(Debug, Clone)]
struct Lowered {
    role: Role,
    to: To,
    only_first: bool,
    layout: Arc<RowLayout>,
    number: usize,
}

impl Lowered {
    /// How many row groups an object has.
    fn groups(&self, workers: usize) -> usize {
        if matches!(self.to, To::ByKeys(_)) { workers } else { 1 }
    }

    /// The group that a worker reads.
    fn group_of(&self, worker: usize) -> Option<usize> {
        match self.to {
            To::ByKeys(_) => Some(worker),
            To::All => Some(0),
            To::First => (worker == 0).then_some(0),
        }
    }
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
        task.begin(self.number)?;
        Ok(Arc::new(ExchangeRun { lowered: self.clone(), task, run: run.clone() }))
    }
}

#[derive(Debug)]
struct ExchangeRun {
    lowered: Lowered,
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
    lowered: Lowered,
    heap_words: Arc<[usize]>,
    workers: usize,
    /// Of the morsel.
    position: u64,
    /// By receiver.
    groups: Vec<Group>,
    memory: Reservation,
}

impl SinkRun for ExchangeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (context, lowered) = (&self.run.context, &self.lowered);
        let (keys, bits) = match &lowered.to {
            To::ByKeys(partitioning) => (partitioning.keys.clone(), (partitioning.bits, partitioning.shift)),
            _ => (Vec::new().into(), (0, 0)),
        };
        let order = &self.task.order;
        let outgoing = Outgoing::new(&lowered.layout, &keys, bits, context)?;
        Ok(Box::new(Worker {
            sends: order.index == 0 || !lowered.only_first,
            in_order: matches!(lowered.to, To::First),
            sorting: Sorting {
                lowered: lowered.clone(),
                heap_words: outgoing.heap_words().clone(),
                workers: order.workers,
                position: 0,
                groups: (0..lowered.groups(order.workers)).map(|_| Group::default()).collect(),
                memory: Reservation::new(context.clone()),
            },
            outgoing,
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let mut groups: Vec<Vec<Group>> = Vec::new();
        groups.resize_with(self.lowered.groups(self.task.order.workers), Vec::new);
        let mut held = Vec::new();
        for mut worker in downcast_workers::<Worker>(workers)? {
            worker.flush()?;
            groups.iter_mut().zip(worker.sorting.groups).for_each(|(parts, part)| parts.push(part));
            held.push(worker.sorting.memory);
        }
        let arrival = Arc::new(Arrival::default());
        let crossing = Crossing {
            lowered: self.lowered.clone(),
            task: self.task.clone(),
            memory: Mutex::new(Reservation::new(self.run.context.clone())),
        };
        let told = arrival.clone();
        let work = async move {
            let came = crossing.cross(groups, held).await;
            *lock(&told.came) = Some(came.map(|came| (came, crossing.memory)));
            told.token.set_ready();
        };
        let ending = Ending(self.task.io.spawn(work).abort_handle());
        let (layout, run) = (self.lowered.layout.clone(), self.run.clone());
        let output = Later::source(arrival.token.clone(), run.context.chunk_rows(), move || {
            let _ending = ending;
            let came = lock(&arrival.came).take();
            let (came, _held) = came.unwrap_or_else(|| Err(Error::internal("an exchange was read twice")))?;
            let bytes = came.iter().map(|came| came.bytes.len() as u64).sum();
            run.counters.add("exchanged_bytes", bytes);
            let rows = object::decode(&came, &layout, &run.context)?;
            Ok(vec![Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)])
        });
        Ok(Finish { tasks: Vec::new(), output })
    }
}

impl Sorting {
    fn keep(&mut self, partition: usize, packet: Packet) -> Result<()> {
        let receiver = match &self.lowered.to {
            To::ByKeys(partitioning) => (partition * self.workers) >> partitioning.bits,
            _ => 0,
        };
        let group = &mut self.groups[receiver];
        let before = group.len();
        group.add(self.position, packet, &self.lowered.layout, &self.heap_words);
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

/// The store's side of an exchange, on the I/O thread.
struct Crossing {
    lowered: Lowered,
    task: Arc<Task>,
    /// For what has come.
    memory: Mutex<Reservation>,
}

impl Crossing {
    fn name(&self, sender: usize) -> String {
        format!("{:05}/{sender:05}", self.lowered.number)
    }

    /// Writes this worker's object; gives this worker's group of every sender's.
    async fn cross(&self, mut groups: Vec<Vec<Group>>, held: Vec<Reservation>) -> Result<Vec<Came>> {
        let order = &self.task.order;
        let (index, workers) = (order.index, order.workers);
        let senders = if self.lowered.only_first { 1 } else { workers };
        let mine = self.lowered.group_of(index);
        let mut came: BTreeMap<usize, Vec<Came>> = BTreeMap::new();
        if index < senders {
            // What nobody else reads needs no store.
            let read_by_others =
                (0..workers).any(|other| other != index && self.lowered.group_of(other).is_some());
            let own = if read_by_others {
                let payload = object::encode(std::mem::take(&mut groups))?;
                let own = mine.map(|group| self.of_payload(&payload, group)).transpose()?;
                let written = self.task.space.put_new(&self.name(index), payload).await?;
                // Another attempt at this worker was first: its tuples are those that the others see.
                own.filter(|_| written)
            } else {
                mine.map(|group| object::own(std::mem::take(&mut groups[group])))
            };
            if let Some(own) = own {
                came.insert(index, own);
            }
        }
        drop((groups, held));
        if let Some(group) = mine {
            let missing: Vec<usize> = (0..senders).filter(|sender| !came.contains_key(sender)).collect();
            self.read_all(missing, group, &mut came).await?;
        }
        Ok(came.into_values().flatten().collect())
    }

    /// The group of an object that is still here.
    fn of_payload(&self, payload: &object_store::PutPayload, group: usize) -> Result<Vec<Came>> {
        let groups = self.lowered.groups(self.task.order.workers);
        let pieces: &[Bytes] = payload.as_ref();
        let entry = object::entry(pieces.last().map_or(&[], |index| index), groups, group)?;
        let mut whole = Vec::with_capacity(entry.len as usize);
        let mut at = 0;
        for piece in pieces {
            if at >= entry.offset && at < entry.offset + entry.len {
                whole.push(piece.clone());
            }
            at += piece.len() as u64;
        }
        let bytes = match <[Bytes; 1]>::try_from(whole) {
            Ok([only]) => only,
            Err(several) => several.concat().into(),
        };
        lock(&self.memory).grow(bytes.len())?;
        Ok(vec![Came { entry, bytes }])
    }

    /// Reads a group of the objects of these senders as they appear. One that is late is asked for alone, so that waiting costs
    /// one request a time and not one for each sender.
    async fn read_all(
        &self,
        mut missing: Vec<usize>,
        group: usize,
        came: &mut BTreeMap<usize, Vec<Came>>,
    ) -> Result<()> {
        let (mut waited, mut alone) = (0, false);
        while !missing.is_empty() {
            self.task.stop.check()?;
            let now = if alone { missing[..1].to_vec() } else { missing.clone() };
            let reads = now.into_iter().map(|sender| async move { (sender, self.read(sender, group).await) });
            let read: Vec<_> = futures_util::stream::iter(reads).buffer_unordered(READS_MAX).collect().await;
            let before = missing.len();
            for (sender, read) in read {
                if let Some(read) = read? {
                    came.insert(sender, vec![read]);
                    missing.retain(|other| *other != sender);
                }
            }
            alone = missing.len() == before;
            if alone {
                tokio::time::sleep(pause(waited)).await;
                waited += 1;
            }
        }
        Ok(())
    }

    /// A group of a sender's object; none where that is not there yet.
    async fn read(&self, sender: usize, group: usize) -> Result<Option<Came>> {
        let name = self.name(sender);
        let groups = self.lowered.groups(self.task.order.workers);
        let tail = GetRange::Suffix((object::index_bytes(groups) + TAIL_BYTES) as u64);
        let Some((range, tail)) = self.range(&name, tail).await? else { return Ok(None) };
        let entry = object::entry(&tail, groups, group)?;
        let wanted = entry.offset..entry.offset + entry.len;
        lock(&self.memory).grow(entry.len as usize)?;
        if wanted.is_empty() {
            return Ok(Some(Came { entry, bytes: Bytes::new() }));
        }
        if wanted.start >= range.start && wanted.end <= range.end {
            let start = (wanted.start - range.start) as usize;
            return Ok(Some(Came { entry, bytes: tail.slice(start..start + entry.len as usize) }));
        }
        match self.range(&name, GetRange::Bounded(wanted)).await? {
            Some((_, bytes)) => Ok(Some(Came { entry, bytes })),
            // Whoever ends a query deletes its objects, and says why; this is not the reason.
            None => {
                let gone = format!("the object '{name}' of this query is gone");
                Err(Error::new(Code::Cancelled, gone))
            }
        }
    }

    /// The bytes of a range, all of them; none where the object is not there.
    async fn range(&self, name: &str, range: GetRange) -> Result<Option<(Range<u64>, Bytes)>> {
        let path = self.task.space.path(name);
        let mut cuts = 0;
        loop {
            let options = GetOptions::new().with_range(Some(range.clone()));
            let failed =
                |error| Err(Error::io(format!("cannot read the object '{path}' of this query: {error}")));
            let cut = match self.task.space.store.get_opts(&path, options).await {
                Ok(answer) => {
                    let range = answer.range.clone();
                    match answer.bytes().await {
                        Ok(bytes) if bytes.len() as u64 == range.end - range.start => {
                            self.task.space.received(&bytes);
                            return Ok(Some((range, bytes)));
                        }
                        Ok(_) => "the body ends early".to_string(),
                        Err(error) => error.to_string(),
                    }
                }
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => error.to_string(),
            };
            if cuts == CUTS_MAX {
                return failed(cut);
            }
            tokio::time::sleep(pause(cuts)).await;
            cuts += 1;
        }
    }
}

/// What has come, once it has.
#[derive(Debug, Default)]
struct Arrival {
    token: Token,
    came: Mutex<Option<Result<(Vec<Came>, Mutex<Reservation>)>>>,
}

/// Gives up what is under way when nobody waits for it any more.
#[derive(Debug)]
struct Ending(AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use futures_util::future::join_all;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt};
    use tessera_exec::{Governor, Query, Settings};
    use tessera_ops::Context;
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::cloud::Space;
    use crate::task::Order as WorkOrder;

    struct World {
        runtime: Runtime,
        store: Arc<InMemory>,
        layout: Arc<RowLayout>,
        context: Arc<dyn Context>,
        workers: usize,
    }

    impl World {
        fn new(workers: usize) -> World {
            World {
                runtime: Builder::new_current_thread().enable_time().build().unwrap(),
                store: Arc::new(InMemory::new()),
                layout: RowLayout::bare(&"<k: int64>".parse().unwrap()).unwrap(),
                context: Query::new(Settings::default(), &Governor::unlimited()),
                workers,
            }
        }

        fn crossing(&self, index: usize, to: To, only_first: bool) -> Crossing {
            let order = WorkOrder {
                index,
                workers: self.workers,
                prefix: String::new(),
                plan: "".into(),
                chunk_rows: 1,
                memory_bytes: 0,
                repeatable: true,
            };
            let space = Space::new((self.store.clone(), Path::from("query")));
            let lowered =
                Lowered { role: Role::None, to, only_first, layout: self.layout.clone(), number: 3 };
            Crossing {
                lowered,
                task: Arc::new(Task::new(order, space, self.runtime.handle().clone())),
                memory: Mutex::new(Reservation::new(self.context.clone())),
            }
        }

        fn group(&self, position: u64, rows: usize) -> Group {
            let mut group = Group::default();
            let words = vec![position; rows * self.layout.stride_bytes() / 8];
            group.add(position, Packet::came(words, Vec::new()), &self.layout, &[]);
            group
        }

        /// All workers at once, each with these rows for each receiver; how many rows each got.
        fn cross(&self, to: &To, only_first: bool, rows: &dyn Fn(usize, usize) -> usize) -> Vec<usize> {
            let all = (0..self.workers).map(|index| {
                let crossing = self.crossing(index, to.clone(), only_first);
                let receivers = crossing.lowered.groups(self.workers);
                let groups =
                    (0..receivers).map(|to| vec![self.group(index as u64, rows(index, to))]).collect();
                async move { crossing.cross(groups, Vec::new()).await.unwrap() }
            });
            let came = self.runtime.block_on(join_all(all));
            came.iter().map(|came| object::decode(came, &self.layout, &self.context).unwrap().len()).collect()
        }

        fn objects(&self) -> usize {
            let prefix = Path::from("query");
            let listed = self.store.list(Some(&prefix)).try_collect::<Vec<_>>();
            self.runtime.block_on(listed).unwrap().len()
        }
    }

    fn by_keys() -> To {
        To::ByKeys(Partitioning { keys: vec![0].into(), bits: 5, shift: 40 })
    }

    #[test]
    fn one_object_per_sender_and_one_group_per_receiver() {
        let world = World::new(3);
        // Long ones are read with a second request, and empty ones with none.
        let rows = |from: usize, to: usize| if from == 1 { 0 } else { 10_000 * from + to };
        assert_eq!(world.cross(&by_keys(), false, &rows), [20_000, 20_002, 20_004]);
        assert_eq!(world.objects(), 3);
    }

    #[test]
    fn copies_gathering_and_the_first_alone() {
        for (to, only_first, came, objects) in [
            (To::All, false, [33, 33, 33], 3),
            // What only its sender reads is not written.
            (To::First, false, [33, 0, 0], 2),
            (To::All, true, [10, 10, 10], 1),
            (To::First, true, [10, 0, 0], 0),
        ] {
            let world = World::new(3);
            assert_eq!(world.cross(&to, only_first, &|from, _| 10 + from), came);
            assert_eq!(world.objects(), objects);
        }
        let alone = World::new(1);
        assert_eq!(alone.cross(&by_keys(), false, &|_, _| 5), [5]);
        assert_eq!(alone.objects(), 0, "a worker alone needs no store");
    }

    #[test]
    fn of_two_attempts_the_first_stands() {
        let world = World::new(2);
        assert_eq!(world.cross(&To::All, false, &|_, _| 4), [8, 8]);
        // Both are started again, and would have other tuples.
        assert_eq!(world.cross(&To::All, false, &|_, _| 9), [8, 8]);
    }

    #[test]
    fn waiting_ends_when_nobody_wants_the_answer() {
        let world = World::new(2);
        let crossing = world.crossing(1, To::All, false);
        let task = crossing.task.clone();
        let stop = async {
            tokio::time::sleep(pause(2)).await;
            task.stop.stop(Error::new(Code::Cancelled, "enough"));
        };
        let groups = vec![vec![world.group(0, 1)]];
        let waited = async { futures_util::join!(crossing.cross(groups, Vec::new()), stop).0 };
        assert_eq!(world.runtime.block_on(waited).unwrap_err().message(), "enough");
    }

    #[test]
    fn damaged_objects_are_errors() {
        let world = World::new(2);
        let crossing = world.crossing(1, To::All, false);
        let path = Path::from("query/00003/00000");
        let put = world.store.put(&path, "no object of an exchange".into());
        world.runtime.block_on(put).unwrap();
        let came = world.runtime.block_on(crossing.cross(vec![vec![world.group(0, 1)]], Vec::new()));
        assert!(came.unwrap_err().message().contains("damaged"));
    }
}
