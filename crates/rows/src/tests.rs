//! Round trips through rows for every atom, and comparisons of keys.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal64Array,
    Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, NullArray, StringViewArray,
    StructArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field as ArrowField, Int32Type, IntervalMonthDayNano};

use tessera_context::Reservation;
use tessera_context::testing::TestContext;
use tessera_types::{Atom, Field, Slot, TimeUnit, Tuple};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Chunk, Column};

use super::*;

fn reservation() -> Reservation {
    Reservation::new(TestContext::new(2048, 1))
}

/// A column of every atom, 5 values each, the second and the last NULL.
fn every_atom() -> (Tuple, Vec<ArrayRef>) {
    let valid = || Some(NullBuffer::from(vec![true, false, true, true, false]));
    let list_type = Arc::new(ArrowField::new("item", DataType::Utf8View, true));
    let list_values = StringViewArray::from(vec![
        Some("a"),
        None,
        Some("a string that is longer than a view"),
        Some(""),
    ]);
    let list = ListArray::new(
        list_type,
        OffsetBuffer::new(vec![0, 2, 2, 2, 4, 4].into()),
        Arc::new(list_values),
        valid(),
    );
    let structure = StructArray::new(
        vec![ArrowField::new("x", DataType::Int32, true)].into(),
        vec![Arc::new(Int32Array::from(vec![Some(1), None, None, Some(4), None]))],
        valid(),
    );
    let strings = StringViewArray::from(vec![
        Some("short"),
        None,
        Some("rather longer than twelve"),
        Some(""),
        None,
    ]);
    let interval = |m, d, n| Some(IntervalMonthDayNano::new(m, d, n));
    let zone: Arc<str> = "UTC".into();
    let columns: Vec<(Atom, ArrayRef)> = vec![
        (Atom::Null, Arc::new(NullArray::new(5))),
        (
            Atom::Boolean,
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None])),
        ),
        (Atom::Int8, Arc::new(Int8Array::from(vec![Some(1), None, Some(-1), Some(0), None]))),
        (
            Atom::Int16,
            Arc::new(Int16Array::from(vec![Some(1), None, Some(-1), Some(i16::MIN), None])),
        ),
        (
            Atom::Int32,
            Arc::new(Int32Array::from(vec![Some(1), None, Some(-1), Some(i32::MAX), None])),
        ),
        (
            Atom::Int64,
            Arc::new(Int64Array::from(vec![Some(1), None, Some(-1), Some(i64::MIN), None])),
        ),
        (
            Atom::Float32,
            Arc::new(Float32Array::from(vec![Some(1.5), None, Some(-0.0), Some(2.0), None])),
        ),
        (
            Atom::Float64,
            Arc::new(Float64Array::from(vec![Some(1.5), None, Some(-0.0), Some(2.0), None])),
        ),
        (
            Atom::Decimal(15, 2),
            Arc::new(
                Decimal64Array::from(vec![Some(1), None, Some(-5), Some(99), None])
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
        ),
        (
            Atom::Decimal(38, 4),
            Arc::new(
                Decimal128Array::from(vec![Some(1), None, Some(-(1i128 << 100)), Some(99), None])
                    .with_precision_and_scale(38, 4)
                    .unwrap(),
            ),
        ),
        (Atom::String, Arc::new(strings.clone())),
        (Atom::Bytes, Arc::new(BinaryViewArray::from(strings.to_binary_view()))),
        (
            Atom::Date,
            Arc::new(Date32Array::from(vec![Some(1), None, Some(-1), Some(20_000), None])),
        ),
        (
            Atom::Timestamp(TimeUnit::Microsecond, Some(zone.clone())),
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1), None, Some(-1), Some(5), None])
                    .with_timezone(zone),
            ),
        ),
        (
            Atom::Interval,
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                interval(1, 2, 3),
                None,
                interval(-1, 0, -5),
                interval(0, 0, 0),
                None,
            ])),
        ),
        (Atom::List(Box::new(Slot::nullable(Atom::String))), Arc::new(list)),
        (Atom::Struct([(Arc::from("x"), Slot::nullable(Atom::Int32))].into()), Arc::new(structure)),
    ];
    let fields: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(i, (atom, _))| Field::nullable(format!("f{i}"), atom.clone()))
        .collect();
    (Tuple::new(fields), columns.into_iter().map(|(_, array)| array).collect())
}

fn plain(column: &Column) -> ArrayRef {
    column.plain().unwrap()
}

fn taken(array: &ArrayRef, positions: &[Option<u32>]) -> ArrayRef {
    arrow::compute::take(array, &UInt32Array::from(positions.to_vec()), None).unwrap()
}

#[test]
fn every_atom_goes_in_and_comes_out() {
    let (tuple, arrays) = every_atom();
    let layout = RowLayout::new(&tuple).unwrap();
    let chunk = Chunk::from_arrays(arrays.clone());
    let mut first = RowsBuilder::new(layout.clone(), reservation());
    let mut second = RowsBuilder::new(layout.clone(), reservation());
    for _ in 0..100 {
        first.append_chunk(&chunk, &[4]).unwrap();
    }
    let incoming = ResolvedColumns::of_chunk(&chunk).unwrap();
    assert_eq!(second.append(&incoming, None, Some(&[3, 1])).unwrap(), 0..2);
    let first = first.seal();
    let rows = Rows::concat(layout, [first.clone(), second.seal(), first]).unwrap();
    assert_eq!(rows.len(), 1002);
    for (field, array) in arrays.iter().enumerate() {
        let wanted = [499, 500, 501, NO_ROW, 0, 502, 2];
        let found = plain(&rows.gather(field, &wanted).unwrap());
        let expected = taken(array, &[Some(4), Some(3), Some(1), None, Some(0), Some(0), Some(2)]);
        assert_eq!(found.data_type(), array.data_type());
        assert_eq!(&found, &expected, "field {field}");
        let single = plain(&rows.gather(field, &[5, 8, 2]).unwrap());
        assert_eq!(&single, &taken(array, &[Some(0), Some(3), Some(2)]), "field {field}");
    }
    let chunk = rows.chunk(498..504).unwrap();
    let expected = taken(&arrays[10], &[Some(3), Some(4), Some(3), Some(1), Some(0), Some(1)]);
    assert_eq!(&plain(&chunk.stored()[10]), &expected);
}

#[test]
fn dictionaries_constants_and_selections_are_resolved() {
    let strings: ArrayRef =
        Arc::new(StringViewArray::from(vec!["b", "a string longer than twelve bytes"]));
    let keys = Int32Array::from(vec![Some(1), None, Some(0), Some(1)]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, strings.clone()));
    let constant = Column::Constant(Arc::new(Int64Array::from(vec![7])), 4);
    let null = Column::Constant(Arc::new(Int64Array::from(vec![None])), 4);
    let columns = vec![Column::new(dictionary), constant, null];
    let expected: Vec<ArrayRef> = columns.iter().map(plain).collect();
    let tuple = Tuple::new(vec![
        Field::nullable("s", Atom::String),
        Field::new("c", Atom::Int64),
        Field::nullable("n", Atom::Int64),
    ]);
    let chunk = Chunk::new(columns.clone(), 4);
    let mut builder = RowsBuilder::new(RowLayout::new(&tuple).unwrap(), reservation());
    builder.append_chunk(&chunk, &[0]).unwrap();
    builder
        .append_chunk(&chunk.clone().select(Arc::new(UInt32Array::from(vec![3]))), &[0])
        .unwrap();
    let rows = builder.seal();
    for (field, array) in expected.iter().enumerate() {
        let found = plain(&rows.gather(field, &[0, 1, 2, 3, 4]).unwrap());
        assert_eq!(&found, &taken(array, &[Some(0), Some(1), Some(2), Some(3), Some(3)]));
    }
    // Each string of the dictionary is stored once.
    assert_eq!(plain(&rows.gather(0, &[0]).unwrap()).as_string_view().data_buffers()[0].len(), 33);
    let mut encoded = Vec::new();
    hash_columns(&columns, 4, &mut encoded).unwrap();
    let mut decoded = Vec::new();
    hash_columns(&expected.into_iter().map(Column::Plain).collect::<Vec<_>>(), 4, &mut decoded)
        .unwrap();
    assert_eq!(encoded, decoded);
}

#[test]
fn constants_of_lists_are_resolved() {
    let list = |values: Option<Vec<Option<i64>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>([values]))
    };
    let lists = [list(Some(vec![Some(1), None])), list(Some(Vec::new())), list(None)];
    let columns: Vec<Column> = lists.iter().map(|list| Column::Constant(list.clone(), 3)).collect();
    let slot = Slot::nullable(Atom::Int64);
    let fields =
        ["a", "b", "c"].map(|name| Field::nullable(name, Atom::List(Box::new(slot.clone()))));
    let layout = RowLayout::new(&Tuple::new(fields.to_vec())).unwrap();
    let chunk = Chunk::new(columns, 3);
    let mut builder = RowsBuilder::new(layout, reservation());
    builder.append_chunk(&chunk, &[]).unwrap();
    builder
        .append_chunk(&chunk.clone().select(Arc::new(UInt32Array::from(vec![2, 1]))), &[])
        .unwrap();
    let rows = builder.seal();
    for (field, list) in lists.iter().enumerate() {
        let found = plain(&rows.gather(field, &[0, 1, 2, 3, 4]).unwrap());
        assert_eq!(&found, &taken(list, &[Some(0); 5]));
    }
}

#[test]
fn keys_compare_as_sql_says() {
    let (tuple, arrays) = every_atom();
    let chunk = Chunk::from_arrays(arrays);
    let mut builder = RowsBuilder::new(RowLayout::new(&tuple).unwrap(), reservation());
    builder.append_chunk(&chunk, &[]).unwrap();
    for field in 1..tuple.len() {
        let keys = ResolvedColumns::new(&chunk.stored()[field..=field], 5).unwrap();
        let all = || {
            let mut all = Candidates::default();
            (0..5u64).for_each(|row| (0..5u32).for_each(|position| all.push(row, position)));
            all
        };
        let pairs = |nulls| {
            let mut candidates = all();
            builder.retain_equal(&[field], &keys, nulls, &mut candidates).unwrap();
            candidates.rows.into_iter().zip(candidates.positions).collect::<Vec<_>>()
        };
        let values = [0u64, 2, 3];
        let distinct: Vec<_> = values.iter().map(|v| (*v, *v as u32)).collect();
        let unequal = pairs(NullKeys::Unequal);
        assert!(distinct.iter().all(|pair| unequal.contains(pair)), "field {field}");
        // The only equal values in the table are the two trues.
        assert_eq!(unequal.len(), if field == 1 { 5 } else { 3 }, "field {field}");
        assert_eq!(pairs(NullKeys::Equal).len(), unequal.len() + 4, "field {field}");
        assert_eq!(pairs(NullKeys::Unknown).len(), unequal.len() + 16, "field {field}");
    }
}

#[test]
fn equal_values_hash_equal() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
    let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
        IntervalMonthDayNano::new(1, 0, 0),
        IntervalMonthDayNano::new(0, 30, 0),
        IntervalMonthDayNano::new(0, 1, 0),
        IntervalMonthDayNano::new(0, 0, 86_400_000_000_000),
    ]));
    for array in [floats, intervals] {
        let mut hashes = Vec::new();
        hash_columns(&[Column::Plain(array)], 4, &mut hashes).unwrap();
        assert_eq!(hashes[0], hashes[1]);
        assert_eq!(hashes[2], hashes[3]);
        assert_ne!(hashes[0], hashes[2]);
    }
}

#[test]
fn hashes_are_good_in_all_bits() {
    // Consecutive and widely spaced integers: every bit is set about half the time, and no 12-bit
    // slice clumps.
    for step in (0..52).map(|power| 1u64 << power) {
        let values: Vec<i64> = (0..4096u64).map(|i| (i * step) as i64).collect();
        let mut hashes = Vec::new();
        hash_columns(&[Column::Plain(Arc::new(Int64Array::from(values)))], 4096, &mut hashes)
            .unwrap();
        for bit in 0..64 {
            let set = hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count();
            assert!((1600..2500).contains(&set), "step {step}, bit {bit}: {set} of 4096");
        }
        for shift in 0..53 {
            let mut counts = vec![0u32; 4096];
            hashes.iter().for_each(|hash| counts[(hash >> shift & 4095) as usize] += 1);
            let filled = counts.iter().filter(|count| **count > 0).count();
            assert!(filled > 2400, "step {step}, bits from {shift}: {filled} slots of 4096");
        }
    }
}

#[test]
fn strings_of_all_lengths_hash_apart() {
    let strings: Vec<String> = (0..200).map(|len| "x".repeat(len)).collect();
    let mut hashes: Vec<u64> =
        strings.iter().map(|s| tessera_vector::hash::word_of_bytes(s.as_bytes())).collect();
    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(&strings));
    assert_eq!(tessera_vector::hash::words_of(&array).unwrap(), hashes);
    for len in 13..60 {
        for changed in 0..len {
            let mut bytes = vec![b'x'; len];
            bytes[changed] = b'y';
            hashes.push(tessera_vector::hash::word_of_bytes(&bytes));
        }
    }
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

#[test]
fn states_start_at_zero_and_change() {
    let tuple = Tuple::new(vec![Field::new("k", Atom::Int16)]);
    let layout = RowLayout::with_states(&tuple, &[1, 8, 16]).unwrap();
    let mut builder = RowsBuilder::new(layout, reservation());
    for _ in 0..3000 {
        let chunk = Chunk::from_arrays(vec![Arc::new(Int16Array::from(vec![1, 2, 3]))]);
        builder.append_chunk(&chunk, &[]).unwrap();
    }
    builder
        .update_state::<i64>(&[5, 5, 8999], 1, |old, position| Ok(old + position as i64 + 1))
        .unwrap();
    builder.set_state::<i128>(8999, 2, -9);
    let view = builder.push_bytes(b"a string longer than twelve bytes").unwrap();
    builder.set_state::<u128>(7, 2, view);
    assert_eq!(builder.state::<i64>(5, 1), 3);
    assert_eq!(builder.bytes(&view.to_le_bytes()), b"a string longer than twelve bytes");
    let rows = builder.seal();
    assert_eq!(rows.states::<i64>(1, 4..6).unwrap(), vec![0, 3]);
    assert_eq!(rows.states::<i128>(2, 8999..9000).unwrap(), vec![-9]);
    let view = rows.states::<u128>(2, 7..8).unwrap()[0].to_le_bytes();
    assert_eq!(rows.bytes(7, &view), b"a string longer than twelve bytes");
}

#[test]
fn memory_is_counted_and_given_back() {
    let context = TestContext::with_budget(2048, 1, 1 << 16);
    let tuple = Tuple::new(vec![Field::new("k", Atom::String)]);
    let layout = RowLayout::new(&tuple).unwrap();
    let mut builder = RowsBuilder::new(layout, Reservation::new(context.clone()));
    let strings = StringViewArray::from(vec!["a string longer than twelve bytes"; 100]);
    let chunk = Chunk::from_arrays(vec![Arc::new(strings)]);
    builder.append_chunk(&chunk, &[]).unwrap();
    assert!(context.used() >= 3300 + 2400);
    let failed = (0..100).find_map(|_| builder.append_chunk(&chunk, &[]).err());
    assert_eq!(failed.map(|error| error.code()), Some(tessera_types::Code::Limit));
    let rows = builder.seal();
    assert!(context.used() > 0);
    drop(rows);
    assert_eq!(context.used(), 0);
}

#[test]
fn every_atom_crosses_to_another_process() {
    let (tuple, arrays) = every_atom();
    let layout = RowLayout::bare(&tuple).unwrap();
    let context: Arc<dyn tessera_context::Context> = TestContext::new(2048, 1);
    let mut outgoing = WirePartitioner::new(&layout, &vec![].into(), (0, 0), &context).unwrap();
    let words = outgoing.heap_words().clone();
    let (mut rows, mut heap) = (Vec::new(), Vec::new());
    let mut send = |_, mut packet: WireBatch<'_>| {
        packet.relocate(&layout, &words, heap.len() as u64);
        rows.extend_from_slice(&packet.rows);
        heap.extend(packet.heap);
        Ok(())
    };
    let chunk = Chunk::from_arrays(arrays.clone());
    outgoing.append(&chunk, &mut send).unwrap();
    outgoing.append(&chunk.select(Arc::new(UInt32Array::from(vec![3, 0]))), &mut send).unwrap();
    outgoing.flush(&mut send).unwrap();
    let there = Rows::received(
        &layout,
        WordBuffer::owned(rows),
        &WordBuffer::of_bytes(&heap),
        heap.len(),
        Vec::new(),
    )
    .unwrap();
    assert_eq!(there.len(), 7);
    let sent = [0, 1, 2, 3, 4, 3, 0].map(Some).into_iter().chain([None]).collect::<Vec<_>>();
    for (field, array) in arrays.iter().enumerate() {
        let column = there.gather(field, &[0, 1, 2, 3, 4, 5, 6, NO_ROW]).unwrap();
        assert_eq!(&plain(&column), &taken(array, &sent), "field {field}");
    }
}
