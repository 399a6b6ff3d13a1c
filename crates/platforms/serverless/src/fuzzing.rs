//! Bodies of fuzz targets.

use std::sync::Arc;

use tessera_context::Context;
use tessera_engine::{Governor, Query, Settings};
use tessera_rows::RowLayout;
use tessera_vector::hash::word_of_bytes;

use crate::object::{GroupData, GroupSummary, Index, decode};
use crate::pieces::Head;
use crate::task::{Answer, Order};

/// Parses orders and answers of workers.
pub fn orders(data: &[u8]) {
    if let Ok(order) = Order::from_bytes(data) {
        assert!(order.children().all(|child| child > order.index && child < order.workers));
        assert_eq!(Order::from_bytes(&order.to_bytes()).expect("it was read before"), order);
        drop(tessera_plan::text::parse(&order.plan));
    }
    if let Ok(mut answer) = Answer::from_bytes(data) {
        answer.add(answer.clone());
        Answer::from_bytes(&answer.to_bytes()).expect("what was written is read");
    }
}

/// Decodes rows of an exchange object with a valid checksum.
pub fn wire_rows(data: &[u8]) {
    let Some((shape, bytes)) = data.split_first() else { return };
    let tuple = [
        "<k: int64>",
        "<k: int64, s: string?, t: string>",
        "<s: string>",
        "<b: bytes?, l: list<int32?>?>",
        "<f: float64, d: decimal(20, 2)?, y: boolean>",
    ];
    let layout = tuple[usize::from(*shape) % tuple.len()].parse();
    let layout = RowLayout::bare(&layout.expect("a tuple type")).expect("a layout");
    let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::unlimited());
    for groups in 0..3 {
        drop(Index::read(bytes, groups).map(|index| index.runs(|_| true)));
    }
    for groups in 1..3 {
        drop(Head::read(bytes, bytes.len() as u64, groups));
    }
    let group =
        GroupData { content: GroupSummary::of(bytes, &layout), bytes: bytes.to_vec().into() };
    let Ok(rows) = decode(&[group], &layout, &context) else { return };
    for first in (0..rows.len() as u64).step_by(100) {
        let chunk = rows.chunk(first..(first + 100).min(rows.len() as u64));
        let Ok(chunk) = chunk else { return };
        for column in chunk.stored() {
            let plain = column.plain().expect("a column has a plain form");
            plain.to_data().validate_full().expect("what was decoded is valid");
        }
    }
}

impl GroupSummary {
    /// Returns the true summary of packets.
    fn of(bytes: &[u8], layout: &RowLayout) -> GroupSummary {
        let (mut rest, mut rows, mut checksum) = (bytes, 0, 0u64);
        let number = |bytes: &[u8], at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk::<8>());
            bytes.map(|bytes| u64::from_le_bytes(*bytes) as usize)
        };
        while let (Some(words), Some(heap)) = (number(rest, 8), number(rest, 16)) {
            let len = words.checked_mul(8).and_then(|len| len.checked_add(heap)?.checked_add(24));
            let Some((packet, behind)) = len.and_then(|len| rest.split_at_checked(len)) else {
                break;
            };
            rows += words * 8 / layout.stride_bytes();
            checksum = checksum.wrapping_add(word_of_bytes(packet));
            rest = behind;
        }
        GroupSummary::new(bytes.len() as u64, rows as u64, checksum)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn orders() {
        let order = br#"{"index":1,"workers":4,"prefix":"s3://b/q","plan":"plan { %0 = values() {rows = [[1]], tuple = <a: int64>} return %0 }","chunk_rows":8192,"memory_bytes":1000000,"repeatable":true}"#;
        let answer = br#"{"usage":{"get_requests":3,"put_requests":18446744073709551615},"figures":["a"],"result":{"attempt":9,"parts":2},"error":{"code":"data","state":"22P02","message":"m"}}"#;
        tessera_fuzzing::mutate("orders", &[order, answer], super::orders);
    }

    #[test]
    fn wire_rows() {
        let packet = |rows: &[u64], heap: &[u8]| {
            let words = [7, rows.len() as u64, heap.len() as u64];
            let words = words.iter().chain(rows).flat_map(|word| word.to_le_bytes());
            words.chain(heap.iter().copied()).collect::<Vec<u8>>()
        };
        let of = |shape: u8, packets: &[Vec<u8>]| [&[shape][..], &packets.concat()].concat();
        // A view: length and first bytes, then buffer and offset.
        let view = |len: u64, at: u64| [len | 0x6161_6161 << 32, at << 32];
        let [a, b] = view(16, 0);
        let [c, d] = view(13, 16);
        let text = b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        // The head of two parts with one group each.
        let head = [u64::from_le_bytes(*b"tessera+"), 7, 2, 1, 80, 3, 5, 40, 1, 9];
        let head: Vec<u8> =
            [0].into_iter().chain(head.into_iter().flat_map(u64::to_le_bytes)).collect();
        let seeds = [
            of(0, &[packet(&[1, 2, 3], b""), packet(&[4], b"")]),
            of(1, &[packet(&[7, 9, a, b, c, d], text)]),
            of(2, &[packet(&[a, b, c, d], text), packet(&[a, b], text)]),
            of(2, &[packet(&[3 | 0x616161 << 32, 0], b"")]),
            of(3, &[packet(&[3, a, b, c, d], text)]),
            of(4, &[packet(&[3, 1, 2, 3, 4], b""), packet(&[3, 1, 2, 3, 4], b"")]),
        ];
        let seeds = seeds.into_iter().chain([head]).collect::<Vec<_>>();
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        tessera_fuzzing::mutate("wire_rows", &seeds, super::wire_rows);
    }
}
