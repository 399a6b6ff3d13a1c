use futures_util::TryStreamExt;
use futures_util::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tessera_context::Context;
use tessera_engine::{Governor, Query, Settings};
use tessera_operator::platform::HeavyMode;
use tessera_rows::{RowLayout, WireBatch};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::cloud::Space;
use crate::group_map::Destination;
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

    fn task(&self, index: usize) -> Arc<Task> {
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
        Arc::new(Task::new(order, space, self.runtime.handle().clone()))
    }

    fn store_exchange(
        &self,
        (number, task): (usize, &Arc<Task>),
        to: &Destination,
        only_first: bool,
    ) -> StoreExchange {
        StoreExchange {
            number,
            group_map: GroupMap::new(to.clone(), self.workers),
            only_first,
            rendezvous: task.begin_exchange(number, to.meets().map(|(name, _)| name)).unwrap(),
            task: task.clone(),
            memory: Mutex::new(Reservation::new(self.context.clone())),
        }
    }

    fn group(&self, position: u64, rows: usize) -> Group {
        let mut group = Group::default();
        let words = vec![position; rows * self.layout.stride_bytes() / 8];
        group.add(position, WireBatch::received(words, Vec::new()), &self.layout, &[]);
        group
    }

    /// Returns groups with these numbers of rows.
    fn groups(
        &self,
        index: usize,
        count: usize,
        rows: &dyn Fn(usize, usize) -> usize,
    ) -> Vec<Vec<Group>> {
        (0..count).map(|group| vec![self.group(index as u64, rows(index, group))]).collect()
    }

    fn rows(&self, received: &ReceivedGroups) -> usize {
        object::decode(&received.groups, &self.layout, &self.context).unwrap().len()
    }

    /// Exchanges between all workers at once, each with these rows for each receiver; returns how
    /// many rows each received.
    fn cross(
        &self,
        to: &Destination,
        only_first: bool,
        rows: &dyn Fn(usize, usize) -> usize,
    ) -> Vec<usize> {
        let all = (0..self.workers).map(|index| {
            let store_exchange = self.store_exchange((3, &self.task(index)), to, only_first);
            let groups = self.groups(index, store_exchange.group_map.groups(), rows);
            async move { store_exchange.exchange(groups, Vec::new()).await.unwrap() }
        });
        let crossed = self.runtime.block_on(join_all(all));
        crossed.iter().map(|crossed| self.rows(crossed)).collect()
    }

    /// Runs the two exchanges of a join on all workers at once, each with these rows of each
    /// partition; returns how many rows of both each worker received, and how many partitions
    /// stayed split.
    fn meet(
        &self,
        heavy: [HeavyMode; 2],
        rows: [&dyn Fn(usize, usize) -> usize; 2],
    ) -> Vec<[(usize, usize); 2]> {
        let all = (0..self.workers).map(|index| {
            let task = self.task(index);
            let sides = [0, 1].map(|side| {
                let to =
                    Destination::ByKeys { bits: 5, meets: Some(("join_1".into(), heavy[side])) };
                let store_exchange = self.store_exchange((7 + side, &task), &to, false);
                let groups = self.groups(index, 32, rows[side]);
                async move {
                    let received = store_exchange.exchange(groups, Vec::new()).await.unwrap();
                    let (held, bytes) = (
                        lock(&store_exchange.memory).bytes(),
                        received.groups.iter().map(|group| group.bytes.len()),
                    );
                    assert!((bytes.sum()..).contains(&held), "received bytes are counted");
                    received
                }
            });
            join_all(sides)
        });
        let crossed = self.runtime.block_on(join_all(all));
        let counted = |crossed: &ReceivedGroups| (self.rows(crossed), crossed.split);
        crossed.iter().map(|sides| [counted(&sides[0]), counted(&sides[1])]).collect()
    }

    fn objects(&self) -> usize {
        let prefix = Path::from("query");
        let listed = self.store.list(Some(&prefix)).try_collect::<Vec<_>>();
        self.runtime.block_on(listed).unwrap().len()
    }
}

fn by_keys() -> Destination {
    Destination::ByKeys { bits: 5, meets: None }
}

#[test]
fn one_object_per_sender_and_one_group_per_receiver() {
    let world = World::new(3);
    // Long groups are read with a second request, and empty ones with none.
    let rows = |from: usize, to: usize| if from == 1 { 0 } else { 10_000 * from + to };
    assert_eq!(world.cross(&by_keys(), false, &rows), [20_000, 20_002, 20_004]);
    assert_eq!(world.objects(), 3);
}

#[test]
fn copies_gathering_and_the_first_alone() {
    for (to, only_first, expected, objects) in [
        (Destination::All, false, [33, 33, 33], 3),
        // An object that only its sender reads is not written.
        (Destination::First, false, [33, 0, 0], 2),
        (Destination::All, true, [10, 10, 10], 1),
        (Destination::First, true, [10, 0, 0], 0),
    ] {
        let world = World::new(3);
        assert_eq!(world.cross(&to, only_first, &|from, _| 10 + from), expected);
        assert_eq!(world.objects(), objects);
    }
    let alone = World::new(1);
    assert_eq!(alone.cross(&by_keys(), false, &|_, _| 5), [5]);
    assert_eq!(alone.objects(), 0, "a worker alone needs no store");
}

#[test]
fn of_two_attempts_the_first_stands() {
    let world = World::new(2);
    assert_eq!(world.cross(&Destination::All, false, &|_, _| 4), [8, 8]);
    // Both workers are started again, and would have other tuples.
    assert_eq!(world.cross(&Destination::All, false, &|_, _| 9), [8, 8]);
}

#[test]
fn waiting_ends_when_nobody_wants_the_answer() {
    let world = World::new(2);
    let store_exchange = world.store_exchange((3, &world.task(1)), &Destination::All, false);
    let task = store_exchange.task.clone();
    let stop = async {
        tokio::time::sleep(pause(2)).await;
        task.stop.stop(Error::new(Code::Cancelled, "enough"));
    };
    let groups = vec![vec![world.group(0, 1)]];
    let waited = async { futures_util::join!(store_exchange.exchange(groups, Vec::new()), stop).0 };
    assert_eq!(world.runtime.block_on(waited).unwrap_err().message(), "enough");
}

#[test]
fn damaged_objects_are_errors() {
    let world = World::new(2);
    let store_exchange = world.store_exchange((3, &world.task(1)), &Destination::All, false);
    let path = Path::from("query/00003/00000");
    let put = world.store.put(&path, "no object of an exchange".into());
    world.runtime.block_on(put).unwrap();
    let result =
        world.runtime.block_on(store_exchange.exchange(vec![vec![world.group(0, 1)]], Vec::new()));
    assert!(result.unwrap_err().message().contains("damaged"));
}

/// The owner of a partition among three workers.
fn hash_owner(partition: usize) -> usize {
    partition * 3 / 32
}

#[test]
fn a_heavy_partition_is_read_by_those_who_sent_it() {
    let world = World::new(3);
    // The last sender has few of its tuples and does not keep them.
    let heavy = |from: usize, partition: usize| match partition {
        7 => [9_000, 6_000, 1][from],
        _ => 10,
    };
    let light = |_: usize, partition: usize| if partition == 7 { 50 } else { 200 };
    for (sides, turned) in [
        ([HeavyMode::Either; 2], false),
        ([HeavyMode::Split, HeavyMode::Copied], false),
        ([HeavyMode::Either; 2], true),
    ] {
        let world = World::new(3);
        let got = match turned {
            false => world.meet(sides, [&heavy, &light]),
            true => world.meet(sides, [&light, &heavy]),
        };
        for (worker, mut got) in got.into_iter().enumerate() {
            if turned {
                got.reverse();
            }
            let own = (0..32)
                .filter(|partition| *partition != 7 && hash_owner(*partition) == worker)
                .count();
            assert_eq!(got[0], (own * 30 + heavy(worker, 7), 1));
            assert_eq!(got[1], (own * 600 + 150, 0));
        }
        assert_eq!(world.objects(), 6);
    }
    // Of two attempts at both exchanges, the first one stands and determines the heavy partitions.
    let first = world.meet([HeavyMode::Either; 2], [&heavy, &light]);
    assert_eq!(world.meet([HeavyMode::Either; 2], [&light, &light]), first);
}

#[test]
fn nothing_stays_where_it_may_not_or_need_not() {
    let heavy = |_: usize, partition: usize| if partition == 7 { 9_000 } else { 10 };
    let even = |from: usize, _: usize| from + 1;
    let cases: [(_, [&dyn Fn(usize, usize) -> usize; 2]); 3] = [
        ([HeavyMode::Copied, HeavyMode::Split], [&heavy, &even]),
        ([HeavyMode::Either; 2], [&even, &even]),
        ([HeavyMode::Either; 2], [&heavy, &heavy]),
    ];
    for (sides, rows) in cases {
        for (worker, got) in World::new(3).meet(sides, rows).into_iter().enumerate() {
            let of_side = |side: usize| {
                let own = (0..32).filter(|partition| hash_owner(*partition) == worker);
                own.map(|partition| (0..3).map(|from| rows[side](from, partition)).sum::<usize>())
                    .sum::<usize>()
            };
            assert_eq!(got, [(of_side(0), 0), (of_side(1), 0)]);
        }
    }
    let alone = World::new(1);
    assert_eq!(alone.meet([HeavyMode::Either; 2], [&heavy, &even]), [[(9_310, 0), (32, 0)]]);
    assert_eq!(alone.objects(), 0);
}

#[test]
fn an_exchange_waits_for_the_one_it_meets() {
    let world = World::new(2);
    let task = world.task(0);
    let to = Destination::ByKeys { bits: 4, meets: Some(("join_1".into(), HeavyMode::Either)) };
    let store_exchange = world.store_exchange((7, &task), &to, true);
    let other = world.store_exchange((8, &task), &to, true);
    let groups = || world.groups(0, 16, &|_, _| 1);
    let runtime = &world.runtime;
    let waits = async {
        let alone = tokio::time::timeout(pause(3), store_exchange.exchange(groups(), Vec::new()));
        assert!(alone.await.is_err());
        other.exchange(groups(), Vec::new()).await.unwrap()
    };
    assert_eq!(world.rows(&runtime.block_on(waits)), 8);
}
