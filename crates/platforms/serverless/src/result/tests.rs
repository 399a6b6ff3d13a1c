use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use object_store::path::Path;
use tessera_engine::{Governor, Query, Settings};
use tessera_types::Code;
use tokio::sync::mpsc;

use super::*;
use crate::testing::{MEMORY, World, context, wait};

fn tuple() -> Tuple {
    "<k: int64>".parse().unwrap()
}

/// Writes these rows, in chunks.
fn add(writer: &mut Writer, rows: std::ops::Range<i64>) -> Result<()> {
    for start in rows.clone().step_by(8192) {
        let numbers = Int64Array::from_iter_values(start..(start + 8192).min(rows.end));
        if let Some(token) = writer.blocked()? {
            wait(token);
        }
        writer.add(&Chunk::from_arrays(vec![Arc::new(numbers) as ArrayRef]))?;
    }
    Ok(())
}

fn finish(writer: &mut Writer) -> Result<ResultParts> {
    while let Some(token) = writer.finish()? {
        wait(token);
    }
    Ok(lock(&writer.part_writer.task.result).expect("the result is written"))
}

fn write(task: Arc<Task>, rows: std::ops::Range<i64>) -> Result<ResultParts> {
    let mut writer = Writer::new(task, &tuple(), &context())?;
    add(&mut writer, rows)?;
    finish(&mut writer)
}

/// Returns the rows of a result in the order of arrival.
fn read(world: &World, written: ResultParts) -> Result<Vec<i64>> {
    let (context, space) = (context(), world.space());
    let (sender, mut parts) = mpsc::channel(1);
    let reading = world.io.spawn(async move { written.read(&space, &context, sender).await });
    let layout = RowLayout::bare(&tuple())?;
    let mut rows = Vec::new();
    while let Some(part) = parts.blocking_recv() {
        let part = part.rows(&layout)?;
        let column = part.chunk(0..part.len() as u64)?.column(0)?.plain()?;
        rows.extend_from_slice(column.as_primitive::<Int64Type>().values());
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    world.io.spawn(async move { sender.send(reading.await.unwrap()).unwrap() });
    receiver.recv().unwrap().map(|()| rows)
}

fn done<T: Send + 'static>(
    world: &World,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    world.io.spawn(async move { sender.send(work.await).unwrap() });
    receiver.recv().unwrap().unwrap()
}

#[test]
fn a_result_beyond_the_budget_goes_in_parts_and_comes_in_order() {
    let world = World::new(1);
    let governor = Governor::new(MEMORY);
    let held: Arc<dyn Context> = Query::new(Settings::default(), &governor);
    let mut writer = Writer::new(world.task(0), &tuple(), &held).unwrap();
    add(&mut writer, 0..2_000_000).unwrap();
    let written = finish(&mut writer).unwrap();
    assert!(governor.peak_bytes() < MEMORY / 4, "{}", governor.peak_bytes());
    assert_eq!(written.parts as usize, world.names().len());
    assert!(written.parts > 50, "{}", written.parts);
    assert!(read(&world, written).unwrap() == (0..2_000_000).collect::<Vec<_>>());
    let space = world.space();
    done(&world, async move { space.remove(&written).await });
    assert_eq!(world.names(), []);
}

#[test]
fn an_empty_result_has_no_parts() {
    let world = World::new(1);
    let written = write(world.task(0), 0..0).unwrap();
    assert_eq!((written.parts, world.names().len()), (0, 0));
    assert!(read(&world, written).unwrap().is_empty());
}

#[test]
fn parts_of_two_attempts_never_mix() {
    let world = World::new(2);
    // One attempt is lost; two others run at the same time, and the driver gets one answer.
    let writer = || Writer::new(world.task(0), &tuple(), &context()).unwrap();
    add(&mut writer(), 500_000..700_000).unwrap();
    let mut writers = [writer(), writer()];
    for part in 0..3 {
        for (writer, first) in writers.iter_mut().zip([0, 1_000_000]) {
            add(writer, first + part * 100_000..first + (part + 1) * 100_000).unwrap();
        }
    }
    let others = writers.map(|mut writer| finish(&mut writer).unwrap());
    let answered = others[1];
    assert!(read(&world, others[0]).unwrap() == (0..300_000).collect::<Vec<_>>());
    assert!(read(&world, answered).unwrap() == (1_000_000..1_300_000).collect::<Vec<_>>());
    world.put(&Path::from("query/00001/00000"), vec![1]);
    // A late attempt deletes its own parts, and the driver those that it does not read.
    let clear = |attempt: u64| {
        let space = world.space();
        done(&world, async move { space.clear_late(attempt).await });
        world.names().len() as u64
    };
    let all = world.names().len() as u64 - 1;
    assert_eq!(clear(1), all);
    assert_eq!(clear(others[0].attempt), all - others[0].parts);
    let space = world.space();
    done(&world, async move { space.clear_others(&answered).await });
    assert_eq!(world.names().len() as u64, answered.parts);
    assert_eq!(read(&world, answered).unwrap().len(), 300_000);
}

#[test]
fn no_more_than_one_part_is_read_ahead() {
    let world = World::new(1);
    let written = write(world.task(0), 0..500_000).unwrap();
    let (space, context) = (world.space(), context());
    let received = space.received_bytes.clone();
    let (sender, mut parts) = mpsc::channel(1);
    let reading = world.io.spawn(async move { written.read(&space, &context, sender).await });
    let mut all = 0;
    for read in 1..4 {
        std::thread::sleep(Duration::from_millis(50));
        let bytes = received.load(std::sync::atomic::Ordering::Relaxed);
        let part = parts.blocking_recv().unwrap();
        all += part.bytes.len() as u64;
        assert_eq!(bytes, all, "{read} parts");
    }
    drop(parts);
    done(&world, async move { reading.await.unwrap() });
}

#[test]
fn damage_is_found() {
    let world = World::new(1);
    let written = write(world.task(0), 0..100_000).unwrap();
    let name = Path::from(format!("query/{}", written.name(1)));
    let bytes = world.get(&name);
    let other = [&bytes[..500], &[bytes[500] ^ 1], &bytes[501..]].concat();
    for changed in [other, bytes[..bytes.len() - 8].to_vec(), Vec::new()] {
        world.put(&name, changed);
        let message = read(&world, written).unwrap_err().message().to_string();
        assert!(message.starts_with("the result: ") && message.contains("damaged"), "{message}");
    }
    world.put(&name, bytes);
    assert_eq!(read(&world, written).unwrap().len(), 100_000);
    let later = ResultParts { parts: written.parts + 1, ..written };
    assert_eq!(read(&world, later).unwrap_err().code(), Code::Io);
}

#[test]
fn a_part_that_cannot_be_written_ends_the_result() {
    let world = World::new(1);
    let stopped = || {
        let task = world.task(0);
        task.stop.stop(Error::data("it was stopped"));
        task
    };
    assert_eq!(write(stopped(), 0..100).unwrap_err().message(), "it was stopped");
    // A long result notices the error before its end.
    let mut writer = Writer::new(stopped(), &tuple(), &context()).unwrap();
    assert_eq!(add(&mut writer, 0..1_000_000).unwrap_err().message(), "it was stopped");
    assert_eq!(world.names(), []);
}
