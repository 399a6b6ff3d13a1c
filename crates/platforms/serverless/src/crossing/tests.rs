use futures_util::TryStreamExt;
use futures_util::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tessera_context::Context;
use tessera_engine::{Governor, Query, Settings};
use tessera_operator::platform::Heavy;
use tessera_rows::{Packet, RowLayout};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::cloud::Space;
use crate::parts::To;
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

    fn crossing(&self, (number, task): (usize, &Arc<Task>), to: &To, only_first: bool) -> Crossing {
        Crossing {
            number,
            parts: Parts::new(to.clone(), self.workers),
            only_first,
            meeting: task.begin(number, to.meets().map(|(name, _)| name)).unwrap(),
            task: task.clone(),
            memory: Mutex::new(Reservation::new(self.context.clone())),
        }
    }

    fn group(&self, position: u64, rows: usize) -> Group {
        let mut group = Group::default();
        let words = vec![position; rows * self.layout.stride_bytes() / 8];
        group.add(position, Packet::came(words, Vec::new()), &self.layout, &[]);
        group
    }

    /// Groups of so many rows.
    fn groups(
        &self,
        index: usize,
        count: usize,
        rows: &dyn Fn(usize, usize) -> usize,
    ) -> Vec<Vec<Group>> {
        (0..count).map(|group| vec![self.group(index as u64, rows(index, group))]).collect()
    }

    fn rows(&self, crossed: &Crossed) -> usize {
        object::decode(&crossed.came, &self.layout, &self.context).unwrap().len()
    }

    /// All workers at once, each with these rows for each receiver; how many rows each got.
    fn cross(&self, to: &To, only_first: bool, rows: &dyn Fn(usize, usize) -> usize) -> Vec<usize> {
        let all = (0..self.workers).map(|index| {
            let crossing = self.crossing((3, &self.task(index)), to, only_first);
            let groups = self.groups(index, crossing.parts.groups(), rows);
            async move { crossing.cross(groups, Vec::new()).await.unwrap() }
        });
        let crossed = self.runtime.block_on(join_all(all));
        crossed.iter().map(|crossed| self.rows(crossed)).collect()
    }

    /// Two exchanges of all workers at once, which meet in a join, each with these rows of each
    /// partition; how many rows of both each worker got, and how many partitions stayed split.
    fn meet(
        &self,
        heavy: [Heavy; 2],
        rows: [&dyn Fn(usize, usize) -> usize; 2],
    ) -> Vec<[(usize, usize); 2]> {
        let all = (0..self.workers).map(|index| {
            let task = self.task(index);
            let sides = [0, 1].map(|side| {
                let to = To::ByKeys { bits: 5, meets: Some(("join_1".into(), heavy[side])) };
                let crossing = self.crossing((7 + side, &task), &to, false);
                let groups = self.groups(index, 32, rows[side]);
                async move {
                    let crossed = crossing.cross(groups, Vec::new()).await.unwrap();
                    let (held, bytes) = (
                        lock(&crossing.memory).bytes(),
                        crossed.came.iter().map(|came| came.bytes.len()),
                    );
                    assert!((bytes.sum()..).contains(&held), "what is here is counted");
                    crossed
                }
            });
            join_all(sides)
        });
        let crossed = self.runtime.block_on(join_all(all));
        let counted = |crossed: &Crossed| (self.rows(crossed), crossed.split);
        crossed.iter().map(|sides| [counted(&sides[0]), counted(&sides[1])]).collect()
    }

    fn objects(&self) -> usize {
        let prefix = Path::from("query");
        let listed = self.store.list(Some(&prefix)).try_collect::<Vec<_>>();
        self.runtime.block_on(listed).unwrap().len()
    }
}

fn by_keys() -> To {
    To::ByKeys { bits: 5, meets: None }
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
    let crossing = world.crossing((3, &world.task(1)), &To::All, false);
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
    let crossing = world.crossing((3, &world.task(1)), &To::All, false);
    let path = Path::from("query/00003/00000");
    let put = world.store.put(&path, "no object of an exchange".into());
    world.runtime.block_on(put).unwrap();
    let came = world.runtime.block_on(crossing.cross(vec![vec![world.group(0, 1)]], Vec::new()));
    assert!(came.unwrap_err().message().contains("damaged"));
}

/// The workers that partitions of three have.
fn hash_owner(partition: usize) -> usize {
    partition * 3 / 32
}

#[test]
fn a_heavy_partition_is_read_by_those_who_sent_it() {
    let world = World::new(3);
    // The last sender has few of it, and does not keep them.
    let heavy = |from: usize, partition: usize| match partition {
        7 => [9_000, 6_000, 1][from],
        _ => 10,
    };
    let light = |_: usize, partition: usize| if partition == 7 { 50 } else { 200 };
    for (sides, turned) in [
        ([Heavy::Either; 2], false),
        ([Heavy::Split, Heavy::Copied], false),
        ([Heavy::Either; 2], true),
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
    // Of two attempts at both exchanges the first stands, and says what is heavy.
    let first = world.meet([Heavy::Either; 2], [&heavy, &light]);
    assert_eq!(world.meet([Heavy::Either; 2], [&light, &light]), first);
}

#[test]
fn nothing_stays_where_it_may_not_or_need_not() {
    let heavy = |_: usize, partition: usize| if partition == 7 { 9_000 } else { 10 };
    let even = |from: usize, _: usize| from + 1;
    let cases: [(_, [&dyn Fn(usize, usize) -> usize; 2]); 3] = [
        ([Heavy::Copied, Heavy::Split], [&heavy, &even]),
        ([Heavy::Either; 2], [&even, &even]),
        ([Heavy::Either; 2], [&heavy, &heavy]),
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
    assert_eq!(alone.meet([Heavy::Either; 2], [&heavy, &even]), [[(9_310, 0), (32, 0)]]);
    assert_eq!(alone.objects(), 0);
}

#[test]
fn an_exchange_waits_for_the_one_it_meets() {
    let world = World::new(2);
    let task = world.task(0);
    let to = To::ByKeys { bits: 4, meets: Some(("join_1".into(), Heavy::Either)) };
    let crossing = world.crossing((7, &task), &to, true);
    let other = world.crossing((8, &task), &to, true);
    let groups = || world.groups(0, 16, &|_, _| 1);
    let runtime = &world.runtime;
    let waits = async {
        let alone = tokio::time::timeout(pause(3), crossing.cross(groups(), Vec::new()));
        assert!(alone.await.is_err());
        other.cross(groups(), Vec::new()).await.unwrap()
    };
    assert_eq!(world.rows(&runtime.block_on(waits)), 8);
}
