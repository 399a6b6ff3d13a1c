use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array};
use tessera_context::Context;
use tessera_engine::{Governor, Query, Settings};
use tessera_rows::heap_words;

use super::*;
use crate::link::ReceivedPacket;

const MEMORY: usize = 4 << 20;

fn sending(to: Destination, has_position: bool) -> (Arc<Link>, Arc<dyn SinkRun>, Arc<Flow>) {
    let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::new(MEMORY));
    let link = Link::new(1, 2, false);
    let tuple: Tuple =
        if has_position { "<p: int64, k: int64>" } else { "<k: int64>" }.parse().unwrap();
    let operator = SendOperator {
        link: link.clone(),
        roles: Roles::all(2),
        to,
        layout: RowLayout::bare(&tuple).unwrap(),
        has_position,
        step: 3,
        in_rounds: true,
    };
    let run = Run::new(context.clone());
    let flow = Flow::new(&link, &context, 3);
    let packets = (0..2).map(|_| AtomicI64::new(0)).collect();
    let run = SendRun(Arc::new(Shared { operator, run, packets, flow: Some(flow.clone()) }));
    (link, Arc::new(run), flow)
}

fn chunk(rows: i64) -> Chunk {
    Chunk::from_arrays(vec![Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef])
}

/// The packets requested from the communication worker, with their ranks.
fn packets(link: &Link) -> Vec<(usize, Vec<u64>)> {
    let packet = |request| match request {
        Request::Packet(rank, words, _) if words[2] == 0 => Some((rank, words)),
        _ => None,
    };
    link.requests(Duration::ZERO).into_iter().filter_map(packet).collect()
}

#[test]
fn a_chunk_is_sent_as_far_as_there_is_room_and_the_rest_later() {
    let (link, run, flow) = sending(Destination::First, false);
    let mut worker = run.worker().unwrap();
    worker.begin(0).unwrap();
    worker.push(chunk(60_000)).unwrap();
    let mut rows = Vec::new();
    while let Some(token) = worker.blocked() {
        let sent = packets(&link);
        let bytes: usize = sent.iter().map(|(_, words)| words.len() * 8).sum();
        assert!((1..MEMORY / 8).contains(&bytes), "{bytes}");
        assert!(sent.iter().all(|(rank, words)| *rank == 0 && words[1] == 3 | BOUNDED));
        rows.extend(sent.into_iter().flat_map(|(_, words)| words[HEADER_WORDS..].to_vec()));
        assert!(!token.is_ready());
        // The first rank has consumed all of it.
        let words = vec![0, 3 | BOUNDED, u64::MAX - 1, bytes as u64, 0];
        flow.receive(ReceivedPacket { from: 0, words, memory: None }).unwrap();
        assert!(token.is_ready());
    }
    worker.end().unwrap();
    run.finish(vec![worker]).unwrap();
    rows.extend(packets(&link).into_iter().flat_map(|(_, words)| words[HEADER_WORDS..].to_vec()));
    assert_eq!(rows, (0..60_000).collect::<Vec<u64>>());
}

#[test]
fn copies_go_to_all_and_positions_number_the_morsels_of_all_ranks() {
    assert!(
        heap_words(&RowLayout::bare(&"<p: int64, k: int64>".parse().unwrap()).unwrap())
            .unwrap()
            .is_empty()
    );
    let (link, run, _) = sending(Destination::All, true);
    let mut worker = run.worker().unwrap();
    for (morsel, rows) in [(0, 2), (5, 1)] {
        worker.begin(morsel).unwrap();
        worker.push(chunk(rows)).unwrap();
        worker.push(chunk(1)).unwrap();
        worker.end().unwrap();
    }
    run.finish(vec![worker]).unwrap();
    let sent = packets(&link);
    assert_eq!(sent.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
    let at = |morsel: u64, row: u64| (morsel * 2 + 1) << SourcePositions::ROW_BITS | row;
    for (_, words) in sent {
        let rows: Vec<u64> = words[HEADER_WORDS..].to_vec();
        assert_eq!(rows, [at(0, 0), 0, at(0, 1), 1, at(0, 2), 0, at(5, 0), 0, at(5, 1), 0]);
    }
}
