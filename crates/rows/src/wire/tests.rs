//! Sends tuples through batches and reads them back.

use arrow::array::RecordBatch;

use tessera_context::testing::{TestContext, batch, rows};

use tessera_context::Context;
use tessera_vector::Chunk;

use super::*;

#[test]
fn packets_arrive_in_any_order() {
    const TUPLE: &str = "<k: int64, s: string?, t: string>";
    let tuple: tessera_types::Tuple = TUPLE.parse().unwrap();
    let schema = Arc::new(tuple.arrow_schema().unwrap());
    let lines: Vec<String> = (0..3_000)
        .map(|i| match i % 3 {
            0 => format!("{i} NULL t{i}"),
            1 => format!("{i} short a-long-text-that-needs-the-heap-{i}"),
            _ => format!("{i} another-long-text-{i} yet-another-long-text-{i}"),
        })
        .collect();
    let layout = RowLayout::bare(&tuple).unwrap();
    let context: Arc<dyn Context> = TestContext::new(2048, 1);
    let mut outgoing = WirePartitioner::new(&layout, &vec![0].into(), (2, 40), &context).unwrap();
    let words = outgoing.heap_words().clone();
    let mut received: Vec<(Vec<u64>, Vec<u8>)> = vec![Default::default(); 4];
    let mut send = |partition: usize, mut batch: WireBatch<'_>| {
        let (rows, heap) = &mut received[partition];
        batch.relocate(&layout, &words, heap.len() as u64);
        rows.extend_from_slice(&batch.rows);
        heap.extend(batch.heap);
        Ok(())
    };
    for part in lines.chunks(700) {
        let batch = batch(TUPLE, &part.join("|"));
        let chunk = Chunk::from_arrays(batch.columns().to_vec());
        outgoing.append(&chunk, &mut send).unwrap();
    }
    outgoing.flush(&mut send).unwrap();
    let mut found = Vec::new();
    for (words, heap) in received {
        assert!(!words.is_empty());
        let (bytes, heap) = (heap.len(), WordBuffer::of_bytes(&heap));
        let there =
            Rows::received(&layout, WordBuffer::owned(words), &heap, bytes, Vec::new()).unwrap();
        let chunk = there.chunk(0..there.len() as u64).unwrap();
        let columns = (0..3).map(|field| chunk.column(field).unwrap().plain().unwrap()).collect();
        found.extend(rows(&RecordBatch::try_new(schema.clone(), columns).unwrap()));
    }
    let mut lines = lines;
    lines.sort();
    found.sort();
    assert_eq!(found, lines);
}

#[test]
fn what_cannot_be_sent_is_an_error() {
    let layout = RowLayout::bare(&"<l: rows<k: int64>>".parse().unwrap()).unwrap();
    let context: Arc<dyn Context> = TestContext::new(2048, 1);
    let message =
        WirePartitioner::new(&layout, &vec![].into(), (0, 0), &context).unwrap_err().to_string();
    assert!(message.contains("cannot be sent"), "{message}");
}
