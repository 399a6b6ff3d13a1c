//! Tests tables with colliding hashes.

use std::sync::Arc;

use arrow::array::Int64Array;

use tessera_context::testing::TestContext;
use tessera_functions::key_hash::KeyHasher;
use tessera_rows::{Candidates, RowLayout, RowWriter};
use tessera_types::{Atom, Field, Tuple};
use tessera_vector::Chunk;

use super::*;

/// A table over many rows, with only some bits of each hash in use.
fn table_with_mask(rows: i64, distinct: i64, hash_mask: u64) -> Arc<JoinTable> {
    let tuple = Tuple::new(vec![Field::new("k", Atom::Int64), Field::new("v", Atom::Int64)]);
    let layout = RowLayout::new(&tuple).unwrap();
    let context = TestContext::new(2048, 1);
    let (keys, depth, spilled) = (vec![0], 0, None);
    let (hasher, writer) = (KeyHasher::vectorized(&keys), RowWriter::vectorized());
    let null_equal = false;
    let build =
        TableBuild { layout, keys, hasher, writer, null_equal, hash_mask, depth, spilled, context };
    let build = Arc::new(build);
    let mut buffers: Vec<_> = (0..3).map(|_| BuildBuffers::new(build.clone())).collect();
    for first in (0..rows).step_by(1000) {
        let values = first..(first + 1000).min(rows);
        let keys = Int64Array::from_iter_values(values.clone().map(|v| v % distinct));
        let chunk = Chunk::from_arrays(vec![
            Arc::new(keys),
            Arc::new(Int64Array::from_iter_values(values)),
        ]);
        // The last worker gets few rows and stays unpartitioned.
        let worker = if first == 3000 { 2 } else { first as usize / 1000 % 2 };
        buffers[worker].push(chunk).unwrap();
    }
    let (pending, tasks) = PendingTable::new(build, buffers).unwrap();
    assert!(pending.finish().is_err());
    tasks.into_iter().rev().for_each(|task| task().unwrap());
    pending.finish().unwrap()
}

#[test]
fn every_row_is_found_whatever_its_hash() {
    for (rows, distinct, mask) in [
        (1, 1, u64::MAX),
        (1000, 1000, u64::MAX),
        (1000, 50, 0),
        (1000, 1000, 0xff),
        (100_000, 100_000, u64::MAX),
        (100_000, 1000, u64::MAX),
        (60_000, 60_000, 0xfff0_0000_0000_0000),
        (60_000, 60_000, 0x0000_0000_ffff_ffff),
    ] {
        let table = table_with_mask(rows, distinct, mask);
        assert_eq!(table.len(), rows as usize);
        let probes = if mask == u64::MAX { distinct + 10 } else { 300.min(distinct + 10) };
        let keys: Vec<i64> = (distinct + 10 - probes..distinct + 10).collect();
        let (mut lookup, mut pairs) = (Lookup::default(), Candidates::default());
        for keys in keys.chunks(2048) {
            let chunk = Chunk::from_arrays(vec![Arc::new(Int64Array::from(keys.to_vec()))]);
            table.lookup(&chunk, &[0], None, &mut lookup).unwrap();
            let mut found = Vec::new();
            while !lookup.is_done() {
                table.next_pairs(&mut lookup, 100, &mut pairs).unwrap();
                assert!(pairs.len() <= 100);
                let values = table.gather(1, &pairs.rows).unwrap().plain().unwrap();
                let values = tessera_vector::physical::raw_values::<i64>(&values);
                let keys = pairs.positions.iter().map(|position| keys[*position as usize]);
                found.extend(keys.zip(values.iter().copied()));
            }
            found.sort_unstable();
            let mut expected: Vec<(i64, i64)> = Vec::new();
            for key in keys.iter().filter(|key| **key < distinct) {
                expected.extend((*key..rows).step_by(distinct as usize).map(|value| (*key, value)));
            }
            expected.sort_unstable();
            assert_eq!(found, expected, "{rows} rows, {distinct} keys, mask {mask:x}");
        }
    }
}
