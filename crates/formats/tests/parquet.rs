//! Parquet: every writer setting round-trips, and skipping by statistics does not change results.

use std::fs::File;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use tessera_plan::Value;
use tessera_types::Tuple;

use crate::common::{scan, scan_params};

/// Numbers that look random but are the same each time.
fn hash(i: usize) -> u64 {
    (i as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn nulls(rows: usize, every: u64) -> Option<NullBuffer> {
    (every > 0)
        .then(|| NullBuffer::from_iter((0..rows).map(|i| !hash(i * 7).is_multiple_of(every))))
}

/// Columns of every type, plain and with NULLs.
fn sample(rows: usize) -> RecordBatch {
    let int = |i: usize| hash(i) as i64;
    let text = |i: usize| match hash(i) % 5 {
        0 => String::new(),
        1 => format!("käse {}", hash(i) % 1000),
        _ => format!("a string longer than twelve bytes {}", hash(i) % 100_000),
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from_iter_values((0..rows).map(|i| int(i) as i8)))),
        ("i16", Arc::new(Int16Array::from_iter_values((0..rows).map(|i| int(i) as i16)))),
        ("i32", Arc::new(Int32Array::from_iter_values((0..rows).map(|i| int(i) as i32)))),
        ("i64", Arc::new(Int64Array::from_iter_values((0..rows).map(int)))),
        ("u8", Arc::new(UInt8Array::from_iter_values((0..rows).map(|i| int(i) as u8)))),
        ("u32", Arc::new(UInt32Array::from_iter_values((0..rows).map(|i| int(i) as u32)))),
        ("u64", Arc::new(UInt64Array::from_iter_values((0..rows).map(|i| int(i) as u64)))),
        ("few", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| (hash(i) % 7) as i64)))),
        ("f32", Arc::new(Float32Array::from_iter_values((0..rows).map(|i| int(i) as f32 / 7.0)))),
        ("f64", Arc::new(Float64Array::from_iter_values((0..rows).map(|i| int(i) as f64 / 7.0)))),
        (
            "bool",
            Arc::new(BooleanArray::from_iter((0..rows).map(|i| Some(hash(i).is_multiple_of(3))))),
        ),
        (
            "date",
            Arc::new(Date32Array::from_iter_values((0..rows).map(|i| (hash(i) % 20_000) as i32))),
        ),
        (
            "time",
            Arc::new(Time64MicrosecondArray::from_iter_values(
                (0..rows).map(|i| (hash(i) % 86_400_000_000) as i64),
            )),
        ),
        (
            "stamp",
            Arc::new(
                TimestampMicrosecondArray::from_iter_values((0..rows).map(int))
                    .with_timezone("UTC"),
            ),
        ),
        ("nano", Arc::new(TimestampNanosecondArray::from_iter_values((0..rows).map(int)))),
        (
            "small",
            Arc::new(
                Decimal64Array::from_iter_values((0..rows).map(|i| (hash(i) % 100_000) as i64))
                    .with_precision_and_scale(7, 2)
                    .unwrap(),
            ),
        ),
        (
            "medium",
            Arc::new(
                Decimal64Array::from_iter_values((0..rows).map(|i| int(i) % 1_000_000_000_000))
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
        ),
        (
            "large",
            Arc::new(
                Decimal128Array::from_iter_values(
                    (0..rows).map(|i| i128::from(int(i)) * 1_000_000),
                )
                .with_precision_and_scale(38, 4)
                .unwrap(),
            ),
        ),
        ("text", Arc::new(StringViewArray::from_iter_values((0..rows).map(text)))),
        (
            "word",
            Arc::new(StringViewArray::from_iter_values(
                (0..rows).map(|i| ["alpha", "beta", "a long one indeed"][i % 3]),
            )),
        ),
        (
            "bytes",
            Arc::new(BinaryViewArray::from_iter_values((0..rows).map(|i| hash(i).to_le_bytes()))),
        ),
    ];
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>((0..rows).map(|i| {
        (!hash(i).is_multiple_of(4))
            .then(|| (0..hash(i) % 4).map(|j| (j != 2).then_some(j as i64)).collect::<Vec<_>>())
    }));
    columns.push(("list", Arc::new(list)));
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, array) in columns {
        if name == "list" {
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
            continue;
        }
        fields.push(Field::new(name, array.data_type().clone(), false));
        arrays.push(array.clone());
        for (suffix, every) in [("some", 5), ("all", 1)] {
            let data = array.to_data().into_builder().nulls(nulls(rows, every)).build().unwrap();
            fields.push(Field::new(format!("{name}_{suffix}"), array.data_type().clone(), true));
            arrays.push(make_array(data));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn write(path: &str, batch: &RecordBatch, properties: WriterProperties) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties))
            .unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn settings() -> Vec<WriterProperties> {
    let small = || {
        WriterProperties::builder()
            .set_max_row_group_row_count(Some(3_000))
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
    };
    vec![
        small().build(),
        small()
            .set_compression(Compression::SNAPPY)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
        small().set_dictionary_enabled(false).set_compression(Compression::LZ4_RAW).build(),
        small().set_dictionary_page_size_limit(2_000).build(),
        small()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .build(),
        small()
            .set_dictionary_enabled(false)
            .set_column_encoding("i64".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY)
            .set_column_encoding("f64".into(), Encoding::BYTE_STREAM_SPLIT)
            .build(),
        WriterProperties::builder().build(),
    ]
}

#[test]
fn every_type_with_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    let batch = sample(8_000);
    let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
    for (position, properties) in settings().into_iter().enumerate() {
        write(path, &batch, properties);
        for chunk_rows in [2_048, 7] {
            let found = scan("parquet_scan", scan_params(&[path], &tuple), chunk_rows).unwrap();
            assert_eq!(found.num_rows(), batch.num_rows());
            for (field, (found, expected)) in
                tuple.fields().iter().zip(found.columns().iter().zip(batch.columns()))
            {
                assert_eq!(
                    found, expected,
                    "column {} with setting {position}, chunks of {chunk_rows}",
                    field.name
                );
            }
        }
    }
}

#[test]
fn fields_and_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    let batch = sample(100);
    write(path, &batch, WriterProperties::builder().build());
    let mut fields = Tuple::from_arrow_schema(&batch.schema()).unwrap().fields().to_vec();
    fields.push(tessera_types::Field::new("year", tessera_types::Atom::Int64));
    let partitions =
        tessera_files::Partitions::discover(&["t/year=2024/x.parquet".to_string()], false).unwrap();
    let params = scan_params(&[path], &Tuple::new(fields))
        .with("partitions", partitions.to_value())
        .with("fields", Value::names(["year", "i64"]));
    let found = scan("parquet_scan", params, 7).unwrap();
    assert_eq!(found.num_columns(), 2);
    assert!(found.column(0).as_primitive::<Int64Type>().values().iter().all(|year| *year == 2024));
    assert_eq!(found.column(1), batch.column_by_name("i64").unwrap());
}

#[test]
fn truncated_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    let batch = sample(2_000);
    let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
    write(path, &batch, settings().remove(1));
    let whole = std::fs::read(path).unwrap();
    for part in 0..50 {
        std::fs::write(path, &whole[..whole.len() * part / 50]).unwrap();
        let error = scan("parquet_scan", scan_params(&[path], &tuple), 2_048).unwrap_err();
        assert!(error.message().contains(path), "{error}");
    }
}

#[test]
fn an_encrypted_footer_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    std::fs::write(path, b"PARE\x01\x02\x03\x04\x04\0\0\0PARE").unwrap();
    let tuple = Tuple::from_arrow_schema(&sample(1).schema()).unwrap();
    let error = scan("parquet_scan", scan_params(&[path], &tuple), 2_048).unwrap_err();
    let expected = format!("'{path}' is encrypted, which is not supported; decrypt it first");
    assert_eq!(error.message(), expected);
}

#[test]
fn damaged_files_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    let batch = sample(2_000);
    let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
    for (position, properties) in settings().into_iter().enumerate() {
        write(path, &batch, properties);
        let whole = std::fs::read(path).unwrap();
        for attempt in 0..60 {
            let mut bytes = whole.clone();
            let at = hash(attempt * 31 + position) as usize % bytes.len();
            bytes[at] ^= 1 << (attempt % 8);
            let end = (at + attempt % 40).min(bytes.len());
            bytes[at..end].fill(0xff);
            std::fs::write(path, &bytes).unwrap();
            // Either an error or other values are fine, but the reader must return.
            drop(scan("parquet_scan", scan_params(&[path], &tuple), 2_048));
        }
    }
}

mod pruning {
    //! A scan that prunes, masks and materializes late returns the same as a filter over all
    //! tuples.

    use proptest::prelude::*;

    use tessera_functions::BoundExpr;
    use tessera_plan::{Expr, Scalar};
    use tessera_types::Atom;
    use tessera_vector::Chunk;

    use super::*;

    /// Columns whose values cluster, so that row groups and pages can be skipped.
    fn clustered(rows: usize) -> RecordBatch {
        let words = ["", "PROMO A", "PROMO B", "STANDARD", "ä"];
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "sorted",
                Arc::new(Int64Array::from_iter(
                    (0..rows).map(|i| (i % 11 != 0).then_some((i / 10) as i64)),
                )),
            ),
            ("few", Arc::new(Int32Array::from_iter((0..rows).map(|i| Some((i / 700) as i32 % 5))))),
            (
                "float",
                Arc::new(Float64Array::from_iter((0..rows).map(|i| match i % 977 {
                    0 => Some(f64::NAN),
                    1 => Some(-0.0),
                    2 => None,
                    _ => Some((i / 100) as f64),
                }))),
            ),
            (
                "word",
                Arc::new(StringViewArray::from_iter(
                    (0..rows).map(|i| (i % 13 != 0).then_some(words[i / 900 % 5])),
                )),
            ),
            (
                "text",
                Arc::new(StringViewArray::from_iter(
                    (0..rows).map(|i| Some(format!("{:05} and a long tail of text", i / 3))),
                )),
            ),
            (
                "null",
                Arc::new(Int64Array::from_iter(
                    (0..rows).map(|i| (i / 1_000 == 3).then_some(i as i64)),
                )),
            ),
        ];
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns.into_iter().map(|(_, array)| array).collect(),
        )
        .unwrap()
    }

    fn comparison() -> impl Strategy<Value = Expr> {
        let function = prop::sample::select(vec!["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq"]);
        let side = prop_oneof![
            (-5i64..900)
                .prop_map(|v| ("sorted", Expr::Constant(Scalar::Integer(v.into()), Atom::Int64))),
            (-1i64..6)
                .prop_map(|v| ("few", Expr::Constant(Scalar::Integer(v.into()), Atom::Int32))),
            prop::sample::select(vec![-1.0, -0.0, 0.0, 3.0, 44.5, 80.0, f64::NAN])
                .prop_map(|v| ("float", Expr::Constant(Scalar::Float(v), Atom::Float64))),
            prop::sample::select(vec!["", "PROMO", "PROMO B", "T", "ä", "ö"])
                .prop_map(|v| ("word", Expr::string(v))),
            (0usize..3_000).prop_map(|v| ("text", Expr::string(&format!("{v:05}")))),
            (2_000i64..5_000).prop_map(|v| ("null", Expr::int64(v))),
        ];
        (function, side, any::<bool>()).prop_map(|(function, (field, constant), mirrored)| {
            let mut args = vec![Expr::field(field), constant];
            if mirrored {
                args.reverse();
            }
            Expr::call(function, args)
        })
    }

    fn predicate() -> impl Strategy<Value = Expr> {
        let like = (
            prop::sample::select(vec!["word", "text"]),
            prop::sample::select(vec!["PROMO%", "%A%", "00%", "S_%", "zz%"]),
        )
            .prop_map(|(field, pattern)| {
                Expr::call("like", vec![Expr::field(field), Expr::string(pattern)])
            });
        let null = prop::sample::select(vec!["sorted", "few", "word", "null"])
            .prop_map(|field| Expr::IsNull(Box::new(Expr::field(field))));
        let across = Just(Expr::call("lt", vec![Expr::field("sorted"), Expr::field("null")]));
        let leaf = prop_oneof![6 => comparison(), 1 => like, 1 => null, 1 => across];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Or),
                inner.prop_map(|e| Expr::Not(Box::new(e))),
            ]
        })
    }

    #[test]
    fn gives_what_a_filter_gives() {
        let folder = tempfile::tempdir().unwrap();
        let batch = clustered(8_000);
        let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
        let paths: Vec<String> = settings()
            .into_iter()
            .enumerate()
            .map(|(i, properties)| {
                let path = folder.path().join(format!("{i}.parquet")).to_str().unwrap().to_string();
                write(&path, &batch, properties);
                path
            })
            .collect();
        let registry = tessera_testing::standard_registry();
        let (run, _) = crate::common::run(2_048);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 120,
            failure_persistence: None,
            ..Default::default()
        });
        runner
            .run(&(predicate(), 0..paths.len()), |(filter, file)| {
                let bound =
                    BoundExpr::new(&filter, &tuple, &Tuple::empty(), registry.library()).unwrap();
                let mut expected = Vec::new();
                for start in (0..batch.num_rows()).step_by(2_000) {
                    let chunk = Chunk::from_arrays(
                        batch.slice(start, 2_000.min(batch.num_rows() - start)).columns().to_vec(),
                    );
                    expected.push(bound.select(chunk, &run).unwrap().to_batch(&tuple).unwrap());
                }
                let expected = arrow::compute::concat_batches(
                    &Arc::new(tuple.arrow_schema().unwrap()),
                    &expected,
                )
                .unwrap();
                let params = scan_params(&[&paths[file]], &tuple).with("filter", filter.clone());
                let found = scan("parquet_scan", params, 2_048).unwrap();
                prop_assert_eq!(found.num_rows(), expected.num_rows(), "{:?}", filter);
                // Compared as text, where NaN equals NaN.
                let text = |batch: &RecordBatch| {
                    arrow::util::pretty::pretty_format_batches(std::slice::from_ref(batch))
                        .unwrap()
                        .to_string()
                };
                prop_assert_eq!(text(&found), text(&expected));
                Ok(())
            })
            .unwrap();
    }
}
