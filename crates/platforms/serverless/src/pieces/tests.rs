use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use object_store::path::Path;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use tessera_operator::{SourceRun, Step};
use tessera_rows::Rows;

use super::*;
use crate::cloud::Space;
use crate::group_map::{Destination, GroupMap};
use crate::task::Task;
use crate::testing::{MEMORY, World, context, wait};

impl World {
    fn sink(&self, task: Arc<Task>, (to, only_first): (&Destination, bool)) -> Arc<dyn SinkRun> {
        let context = context();
        let store_exchange = StoreExchange {
            number: 3,
            group_map: GroupMap::new(to.clone(), self.workers),
            only_first,
            rendezvous: None,
            task,
            memory: Mutex::new(Reservation::new(context.clone())),
        };
        let run = Run::new(context);
        let (keys, bits) = match to {
            Destination::ByKeys { bits, .. } => (vec![0].into(), (*bits, 40)),
            _ => (Vec::new().into(), (0, 0)),
        };
        let layout = RowLayout::bare(&"<k: int64>".parse().unwrap()).unwrap();
        Arc::new(PiecesRun::new(PiecesSetup {
            layout,
            keys,
            bits,
            has_position: false,
            store_exchange,
            run,
        }))
    }

    /// Sends rows from `index * 1,000,000` on a worker and returns its output.
    fn send(&self, index: usize, to: (&Destination, bool), rows: i64) -> Arc<dyn SourceRun> {
        let sink = self.sink(self.task(index), to);
        let mut worker = sink.worker().unwrap();
        worker.begin(0).unwrap();
        push(&mut *worker, index as i64 * 1_000_000, rows).unwrap();
        worker.end().unwrap();
        sink.finish(vec![worker]).unwrap().output
    }
}

/// Pushes rows to a sink worker.
fn push(worker: &mut dyn SinkWorker, first: i64, rows: i64) -> Result<()> {
    for start in (first..first + rows).step_by(8192) {
        let numbers = Int64Array::from_iter_values(start..(start + 8192).min(first + rows));
        worker.push(Chunk::from_arrays(vec![Arc::new(numbers) as ArrayRef]))?;
        while worker.blocked().is_some_and(|token| !token.is_ready()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Returns the rows of an output, sorted.
fn read(output: &dyn SourceRun) -> Result<Vec<i64>> {
    output.ready().into_iter().for_each(wait);
    let mut rows = Vec::new();
    for morsel in 0..output.morsels() {
        let mut reader = output.open(morsel)?;
        loop {
            match reader.step()? {
                Step::HasOutput(chunk) => {
                    let handle = chunk.column(0)?.handles()?[0].clone();
                    let received = handle.get::<Rows>()?;
                    let column = received.chunk(0..received.len() as u64)?.column(0)?.plain()?;
                    assert!(column.len() * 8 <= MEMORY / 8, "a piece is small");
                    rows.extend_from_slice(column.as_primitive::<Int64Type>().values());
                }
                Step::Blocked(token) => wait(token),
                _ => break,
            }
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

fn all(workers: i64, rows: i64) -> Vec<i64> {
    (0..workers).flat_map(|from| from * 1_000_000..from * 1_000_000 + rows).collect()
}

#[test]
fn much_goes_in_parts_and_comes_in_pieces() {
    let world = World::new(3);
    let to = Destination::ByKeys { bits: 5, meets: None };
    let outputs: Vec<_> = (0..3).map(|index| world.send(index, (&to, false), 200_000)).collect();
    let mut rows = Vec::new();
    for output in &outputs {
        let received = read(&**output).unwrap();
        assert!(received.len() > 150_000);
        rows.extend(received);
    }
    rows.sort_unstable();
    assert!(rows == all(3, 200_000));
    assert!(world.names().len() > 15, "{}", world.names().len());
}

#[test]
fn of_two_attempts_the_first_head_stands() {
    let world = World::new(2);
    let one = [
        world.send(0, (&Destination::All, false), 60_000),
        world.send(1, (&Destination::All, false), 10),
    ];
    assert!(read(&*one[0]).unwrap().len() == 60_010 && read(&*one[1]).unwrap().len() == 60_010);
    let again = world.send(0, (&Destination::All, false), 70_000);
    assert_eq!(read(&*again).unwrap().len(), 60_010);
}

#[test]
fn gathering_and_the_first_alone() {
    for (to, only_first, expected) in [
        (Destination::First, false, [30, 0, 0]),
        (Destination::All, true, [10, 10, 10]),
        (Destination::First, true, [10, 0, 0]),
    ] {
        let world = World::new(3);
        let outputs: Vec<_> =
            (0..3).map(|index| world.send(index, (&to, only_first), 10)).collect();
        let rows: Vec<usize> =
            outputs.iter().map(|output| read(&**output).unwrap().len()).collect();
        assert_eq!(rows, expected);
    }
}

#[test]
fn damage_is_found() {
    let bytes = head::bytes(7, 2, [Index::of_words(&[8, 1, 5, 0, 0, 0])].iter());
    let size = bytes.len() as u64;
    let head = Head::read(&bytes, size, 2).unwrap().unwrap();
    assert_eq!((head.attempt, head.parts.len()), (7, 1));
    assert!(Head::read(&bytes[..40], size, 2).unwrap().is_none());
    assert!(Head::read(&bytes, size, 3).is_err() && Head::read(b"no head", 7, 2).is_err());
    // No memory is allocated for parts that the object does not have.
    assert!(Head::read(&bytes, size - 8, 2).is_err());
    let many = [&bytes[..16], &u64::MAX.to_le_bytes(), &bytes[24..]].concat();
    assert!(Head::read(&many, size, 2).is_err());
    for change in
        [&|_: usize| vec![3u8; 9000], &|len: usize| vec![0u8; len], &|len| vec![0u8; len / 2]]
            as [&dyn Fn(usize) -> Vec<u8>; 3]
    {
        let world = World::new(1);
        let output = world.send(0, (&Destination::All, false), 1000);
        assert_eq!(read(&*output).unwrap().len(), 1000);
        let part = world.names().into_iter().find(|path| path.as_ref().contains('-')).unwrap();
        world.put(&part, change(8024));
        let message = read(&*output).unwrap_err().message().to_string();
        assert!(message.contains("damaged") || message.contains("cannot read"), "{message}");
    }
}

#[test]
fn a_part_without_a_head_is_not_read() {
    let world = World::new(1);
    // A part that a lost attempt has written.
    let name = Path::from(format!("query/00003/00000-{:016x}-0", 77));
    world.put(&name, vec![3u8; 900]);
    assert_eq!(read(&*world.send(0, (&Destination::All, false), 1000)).unwrap(), all(1, 1000));
}

#[test]
fn a_part_that_cannot_be_written_ends_the_exchange() {
    let world = World::new(1);
    let stopped = || {
        let task = world.task(0);
        task.stop.stop(Error::data("it was stopped"));
        let sink = world.sink(task, (&Destination::All, false));
        (sink.worker().unwrap(), sink)
    };
    let (mut worker, sink) = stopped();
    push(&mut *worker, 0, 100).unwrap();
    let output = sink.finish(vec![worker]).unwrap().output;
    assert_eq!(read(&*output).unwrap_err().message(), "it was stopped");
    // A long input notices the error before its end.
    let (mut worker, _sink) = stopped();
    assert_eq!(push(&mut *worker, 0, 1_000_000).unwrap_err().message(), "it was stopped");
    assert_eq!(world.names(), []);
}

/// If a query ends before a write has, deleting its objects after all writes is final.
#[test]
fn writes_are_over_before_a_worker_clears() {
    let world = World::new(1);
    let waits = ThrottleConfig {
        wait_put_per_call: Duration::from_millis(50),
        ..ThrottleConfig::default()
    };
    let slow = Arc::new(ThrottledStore::new(world.store.clone(), waits));
    let order = world.task(0).order.clone();
    let task =
        Arc::new(Task::new(order, Space::new((slow, Path::from("query"))), world.io.clone()));
    let (sender, receiver) = std::sync::mpsc::channel();
    world.io.spawn(async move {
        let name = || "late".to_string();
        let write = tokio::time::timeout(
            Duration::from_millis(1),
            task.put_new(name(), vec![1u8; 9].into()),
        );
        assert!(write.await.is_err(), "the write is abandoned");
        task.wait_for_writes().await;
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(world.names(), [Path::from("query/late")]);
}
