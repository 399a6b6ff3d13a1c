//! Arrow IPC and Parquet as other programs write them, legal and damaged.

use std::fs::File;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::data_type as physical;
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use tessera_formats::{ipc, parquet as parquet_scan};
use tessera_plan::{Expr, Params, Scalar};
use tessera_types::{Atom, Result, Tuple};

use crate::common::{scan, scan_params};
use crate::formats::{Folder, shown, tuple};

/// The start of a stream without columns that a big-endian machine wrote.
const BIG_ENDIAN: [u8; 72] = [
    255, 255, 255, 255, 56, 0, 0, 0, 16, 0, 0, 0, 0, 0, 10, 0, 12, 0, 6, 0, 5, 0, 8, 0, 10, 0, 0,
    0, 0, 1, 4, 0, 12, 0, 0, 0, 8, 0, 12, 0, 10, 0, 4, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0,
];

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())
        .unwrap()
}

/// The batches as an IPC file and as a stream.
fn ipc_forms(batches: &[RecordBatch], compression: Option<CompressionType>) -> [Vec<u8>; 2] {
    let options = || IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batches[0].schema();
    let mut file = FileWriter::try_new_with_options(Vec::new(), &schema, options()).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &schema, options()).unwrap();
    for batch in batches {
        file.write(batch).unwrap();
        stream.write(batch).unwrap();
    }
    [file.into_inner().unwrap(), stream.into_inner().unwrap()]
}

fn read(operator: &str, path: &str, columns: &str) -> Result<String> {
    let params = || scan_params(&[path], &tuple(columns));
    let found = shown(&scan(operator, params(), 2_048)?);
    assert_eq!(found, shown(&scan(operator, params(), 3)?));
    Ok(found)
}

#[test]
fn nulls_among_the_values_of_dictionaries() {
    let folder = Folder::new();
    let keys = || vec![Some(0), Some(1), None, Some(2)];
    let narrow = Int8Array::from(vec![Some(0i8), Some(1), None, Some(2)]);
    let texts = vec![Some("a"), None, Some("a text longer than twelve")];
    let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let views: ArrayRef = Arc::new(StringViewArray::from(texts));
    let narrow = DictionaryArray::<Int8Type>::try_new(narrow, plain.clone()).unwrap();
    let wide = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys()), views).unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(9)]));
    let numbers = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys()), numbers).unwrap();
    let item = Arc::new(Field::new("item", narrow.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 0, 1, 1]);
    let lists = ListArray::try_new(item, offsets, Arc::new(narrow.clone()), None).unwrap();
    let batch = batch(vec![
        ("n", Arc::new(narrow)),
        ("w", Arc::new(wide)),
        ("i", Arc::new(numbers)),
        ("l", Arc::new(lists)),
    ]);
    let columns = "<n: string?, w: string?, i: int64?, l: list<string?>?>";
    let long = "a text longer than twelve";
    let expected = format!("a,a,7,\"[a, NULL]\"\n,,,[]\n,,,[NULL]\n{long},{long},9,[{long}]\n");
    for (form, bytes) in ipc_forms(std::slice::from_ref(&batch), None).into_iter().enumerate() {
        let path = folder.file(&format!("{form}.arrow"), bytes);
        assert_eq!(read("ipc_scan", &path, columns).unwrap(), expected);
        let params = scan_params(&[&path], &tuple(columns));
        let null = Expr::IsNull(Box::new(Expr::field("w")));
        let found = scan("ipc_scan", params.with("filter", null), 2_048).unwrap();
        assert_eq!(found.num_rows(), 2);
    }
}

#[test]
fn dictionaries_that_are_replaced_in_a_stream() {
    let folder = Folder::new();
    let with = |values: Vec<Option<&str>>| {
        let values: ArrayRef = Arc::new(StringArray::from(values));
        let keys = Int16Array::from(vec![0, 1]);
        batch(vec![("d", Arc::new(DictionaryArray::<Int16Type>::try_new(keys, values).unwrap()))])
    };
    let batches = [with(vec![Some("a"), None]), with(vec![None, Some("b")])];
    let mut stream = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| stream.write(batch).unwrap());
    let path = folder.file("x.arrow", stream.into_inner().unwrap());
    assert_eq!(read("ipc_scan", &path, "<d: string?>").unwrap(), "a\n\n\nb\n");
}

#[test]
fn another_byte_order_is_refused() {
    let folder = Folder::new();
    let path = folder.file("x.arrow", BIG_ENDIAN);
    let error = ipc::discover(tessera_files::open(&path).unwrap()).unwrap_err();
    assert!(error.message().contains("another byte order"), "{error}");
}

#[test]
fn a_column_that_cannot_be_read_hides_no_other() {
    let folder = Folder::new();
    let types = UnionFields::try_new(
        [0, 1],
        [Field::new("i", DataType::Int64, true), Field::new("s", DataType::Utf8, true)],
    );
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1])), Arc::new(StringArray::from(vec!["x"]))];
    let union = UnionArray::try_new(
        types.unwrap(),
        ScalarBuffer::from(vec![0, 1]),
        Some(ScalarBuffer::from(vec![0, 0])),
        children,
    );
    let numbers = || Arc::new(Int64Array::from(vec![5, 6]));
    let wide =
        Decimal256Array::from(vec![i256::ONE, i256::MINUS_ONE]).with_precision_and_scale(60, 0);
    let wide: ArrayRef = Arc::new(wide.unwrap());
    let strange = batch(vec![
        ("u", Arc::new(union.unwrap())),
        ("a", numbers()),
        ("w", wide.clone()),
        ("b", Arc::new(StringArray::from(vec!["x", "y"]))),
    ]);
    for (form, bytes) in ipc_forms(&[strange], None).into_iter().enumerate() {
        let path = folder.file(&format!("{form}.arrow"), bytes);
        let found = ipc::discover(tessera_files::open(&path).unwrap()).unwrap();
        assert_eq!(found, tuple("<u: null?, a: int64?, w: null?, b: string?>"));
        assert_eq!(read("ipc_scan", &path, "<a: int64?, b: string?>").unwrap(), "5,x\n6,y\n");
        let error = read("ipc_scan", &path, "<a: int64?, u: null?>").unwrap_err();
        let message = error.message();
        assert!(message.contains("column u of") && message.contains("EXCLUDE (u)"), "{error}");
        let all = scan("ipc_scan", scan_params(&[&path], &tuple("<>")), 2_048).unwrap();
        assert_eq!(all.num_rows(), 2);
    }
    let path = folder.path("x.parquet");
    write_parquet(&path, &batch(vec![("w", wide), ("a", numbers())]), None);
    let found = parquet_scan::discover(&*tessera_files::open(&path).unwrap()).unwrap();
    assert_eq!(found.tuple, tuple("<w: null?, a: int64?>"));
    assert_eq!(read("parquet_scan", &path, "<a: int64?>").unwrap(), "5\n6\n");
    let error = read("parquet_scan", &path, "<w: null?>").unwrap_err();
    assert!(
        error.message().contains("column w of") && error.message().contains("Decimal256"),
        "{error}"
    );
}

#[test]
fn names_that_stand_twice_get_numbers() {
    let folder = Folder::new();
    let number = |number: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![number])) };
    let batch = batch(vec![("a", number(1)), ("b", number(2)), ("a", number(3)), ("a", number(4))]);
    let columns = "<a: int64?, b: int64?, a_1: int64?, a_2: int64?>";
    for (form, bytes) in ipc_forms(std::slice::from_ref(&batch), None).into_iter().enumerate() {
        let path = folder.file(&format!("{form}.arrow"), bytes);
        assert_eq!(ipc::discover(tessera_files::open(&path).unwrap()).unwrap(), tuple(columns));
        assert_eq!(read("ipc_scan", &path, columns).unwrap(), "1,2,3,4\n");
        assert_eq!(read("ipc_scan", &path, "<a_2: int64?, a: int64?>").unwrap(), "4,1\n");
    }
    let path = folder.path("x.parquet");
    write_parquet(&path, &batch, None);
    assert_eq!(read("parquet_scan", &path, columns).unwrap(), "1,2,3,4\n");
    assert_eq!(read("parquet_scan", &path, "<a_2: int64?, a: int64?>").unwrap(), "4,1\n");
}

#[test]
fn damaged_ipc_never_panics_and_asks_for_little() {
    let folder = Folder::new();
    let words: DictionaryArray<Int32Type> = ["a", "b", "a", "c"].into_iter().collect();
    let numbers = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(4)]),
    ]);
    let runs = RunArray::<Int32Type>::try_new(
        &Int32Array::from(vec![3, 4]),
        &StringArray::from(vec![Some("x"), None]),
    );
    let batch = batch(vec![
        ("w", Arc::new(words)),
        ("l", Arc::new(numbers)),
        ("s", Arc::new(StringViewArray::from(vec!["short", "a text longer than twelve", "", "x"]))),
        ("n", Arc::new(NullArray::new(4))),
        ("r", Arc::new(runs.unwrap())),
    ]);
    let columns = tuple("<w: string?, l: list<int64?>?, s: string?, n: null?, r: string?>");
    let mut forms = ipc_forms(&[batch.clone(), batch.clone()], None).to_vec();
    forms.extend(ipc_forms(&[batch], Some(CompressionType::LZ4_FRAME)));
    for (form, whole) in forms.into_iter().enumerate() {
        let path = folder.file("x.arrow", &whole);
        assert_eq!(
            scan("ipc_scan", scan_params(&[&path], &columns), 2_048).unwrap().num_columns(),
            5
        );
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            match at % 3 {
                0 => bytes[at] ^= 1 << (at % 8),
                1 => bytes[at] = 0xff,
                _ => bytes[at..(at + 8).min(whole.len())].fill([0x00, 0x7f, 0xff][at % 5 % 3]),
            }
            std::fs::write(&path, &bytes).unwrap();
            let Ok(reader) = tessera_files::open(&path) else { continue };
            // Either an error or other values are fine; rows that a header only claims must not be
            // allocated.
            drop(ipc::discover(reader));
            drop(first_rows(&path, &columns, form));
        }
    }
}

/// A scan of a damaged file; a NULL column may claim any number of rows, so it is left out.
fn first_rows(path: &str, columns: &Tuple, form: usize) -> Result<RecordBatch> {
    let kept: Vec<_> =
        columns.fields().iter().filter(|field| &*field.name != "n").cloned().collect();
    let columns =
        if form.is_multiple_of(2) { Tuple::new(kept[1..].to_vec()) } else { Tuple::new(kept) };
    scan("ipc_scan", scan_params(&[path], &columns), 2_048)
}

fn write_parquet(path: &str, batch: &RecordBatch, properties: Option<WriterProperties>) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), properties).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// A Parquet file with one row group; `write` writes its columns.
fn write_columns(
    path: &str,
    schema: &str,
    write: impl FnOnce(&mut parquet::file::writer::SerializedRowGroupWriter<'_, File>),
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    write(&mut group);
    group.close().unwrap();
    file.close().unwrap();
}

#[test]
fn intervals_keep_their_months() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    write_columns(
        &path,
        "message m { optional fixed_len_byte_array(12) i (INTERVAL); }",
        |group| {
            let mut column = group.next_column().unwrap().unwrap();
            let bytes = |parts: [u32; 3]| {
                physical::FixedLenByteArray::from(parts.map(u32::to_le_bytes).concat())
            };
            let values = [bytes([14, 2, 1_500]), bytes([0, 0, 0])];
            let typed = column.typed::<physical::FixedLenByteArrayType>();
            typed.write_batch(&values, Some(&[1, 0, 1]), None).unwrap();
            column.close().unwrap();
        },
    );
    let found =
        scan("parquet_scan", scan_params(&[&path], &tuple("<i: interval?>")), 2_048).unwrap();
    let found = found.column(0).as_primitive::<IntervalMonthDayNanoType>();
    assert_eq!(found.value(0), IntervalMonthDayNano::new(14, 2, 1_500_000_000));
    assert!(found.is_null(1));
    assert_eq!(found.value(2), IntervalMonthDayNano::new(0, 0, 0));
}

#[test]
fn uuids_are_read_and_their_statistics_skip_rows() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    let message = "message m { optional fixed_len_byte_array(16) u (UUID); }";
    write_columns(&path, message, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        let values = [(0..16).collect(), vec![0xff; 16]].map(physical::FixedLenByteArray::from);
        let typed = column.typed::<physical::FixedLenByteArrayType>();
        typed.write_batch(&values, Some(&[1, 0, 1]), None).unwrap();
        column.close().unwrap();
    });
    let first = "00010203-0405-0607-0809-0a0b0c0d0e0f";
    let found = scan("parquet_scan", scan_params(&[&path], &tuple("<u: string?>")), 2_048).unwrap();
    let found: Vec<_> = found.column(0).as_string_view().iter().collect();
    let last = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    assert_eq!(found, [Some(first), None, Some(last)]);
    for (function, value, expected) in [
        ("eq", first, vec![first]),
        ("eq", "00010203-0405-0607-0809-0a0b0c0d0e10", vec![]),
        ("eq", "00010203-0405-0607-0809-0a0b0c0d0e0e", vec![]),
        ("lt", first, vec![]),
        ("lt_eq", first, vec![first]),
        ("lt", last, vec![first]),
        ("gt", first, vec![last]),
        ("gt_eq", last, vec![last]),
        ("gt", last, vec![]),
        ("not_eq", last, vec![first]),
    ] {
        for (columns, atom) in [("<u: uuid?>", Atom::Uuid), ("<u: string?>", Atom::String)] {
            let constant = Expr::Constant(Scalar::String(value.into()), atom);
            let filter = Expr::call(function, vec![Expr::field("u"), constant]);
            let params = scan_params(&[&path], &tuple(columns)).with("filter", filter);
            let found = scan("parquet_scan", params, 2_048).unwrap();
            let found: Vec<_> = found.column(0).as_string_view().iter().flatten().collect();
            assert_eq!(found, expected, "{columns} {function} {value}");
        }
    }
}

#[test]
fn old_timestamps_have_every_year_and_enums_are_strings() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    write_columns(&path, "message m { optional int96 t; required binary e (ENUM); }", |group| {
        // Midnight, and the Julian day: the last day of 9999, the first of the year 1, one in 1970.
        let at = |day: u32, nanoseconds: u32| {
            let mut value = physical::Int96::new();
            value.set_data(nanoseconds, 0, day);
            value
        };
        let mut column = group.next_column().unwrap().unwrap();
        let values = [at(5_373_484, 1_999), at(1_721_426, 0), at(2_440_588, 0)];
        let levels = Some(&[1, 1, 0, 1][..]);
        column.typed::<physical::Int96Type>().write_batch(&values, levels, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values = ["a", "é", "a", ""].map(physical::ByteArray::from);
        column.typed::<physical::ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    });
    let found = read("parquet_scan", &path, "<t: timestamp(us)?, e: string>").unwrap();
    let expected =
        "9999-12-31 00:00:00.000001,a\n0001-01-01 00:00:00,é\n,a\n1970-01-01 00:00:00,\n";
    assert_eq!(found.replace("\"\"", ""), expected);
}

#[test]
fn repeated_fields_without_annotation_are_lists() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    write_columns(
        &path,
        "message m { repeated int32 r; required int64 a; repeated group g { required int32 x; } }",
        |group| {
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<physical::Int32Type>();
            typed.write_batch(&[1, 2, 3], Some(&[1, 1, 0, 1]), Some(&[0, 1, 0, 0])).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<physical::Int64Type>().write_batch(&[7, 8, 9], None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<physical::Int32Type>();
            typed.write_batch(&[4, 5, 6], Some(&[1, 1, 1, 0]), Some(&[0, 0, 1, 0])).unwrap();
            column.close().unwrap();
        },
    );
    let found = parquet_scan::discover(&*tessera_files::open(&path).unwrap()).unwrap().tuple;
    assert_eq!(found, tuple("<r: list<int32>, a: int64, g: list<struct<x: int32>>>"));
    let rows = read("parquet_scan", &path, "<r: list<int32>, a: int64>").unwrap();
    assert_eq!(rows, "\"[1, 2]\",7\n[],8\n[3],9\n");
    let found = scan("parquet_scan", scan_params(&[&path], &found), 2_048).unwrap();
    let lists = found.column(2).as_list::<i32>();
    assert_eq!(lists.value_offsets(), [0, 1, 3, 3]);
}

#[test]
fn a_dictionary_at_byte_zero_is_none() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..1_000).map(|i| format!("text {i}"))));
    let batch = batch(vec![("n", numbers), ("t", texts)]);
    write_parquet(&path, &batch, Some(properties));
    let metadata =
        ParquetMetaDataReader::new().parse_and_finish(&File::open(&path).unwrap()).unwrap();
    let mut builder = metadata.into_builder();
    let mut groups = builder.take_row_groups();
    for chunk in groups.iter_mut().flat_map(|group| group.columns_mut()) {
        let changed = chunk.clone().into_builder().set_dictionary_page_offset(Some(0));
        *chunk = changed.build().unwrap();
    }
    let metadata = builder.set_row_groups(groups).build();
    let mut bytes = std::fs::read(&path).unwrap();
    let (rest, trailer) = bytes.split_at(bytes.len() - 8);
    let footer = u32::from_le_bytes(*trailer.first_chunk().unwrap()) as usize;
    bytes.truncate(rest.len() - footer);
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let columns = Tuple::from_arrow_schema(&batch.schema()).unwrap();
    let found = scan("parquet_scan", scan_params(&[&path], &columns), 2_048).unwrap();
    assert_eq!(found.column(0), batch.column(0));
    assert_eq!(found.column(1).as_string_view().value(999), "text 999");
}

#[test]
fn a_column_missing_from_the_page_index() {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    // A column of NaN alone has no bounds, and so no index.
    let properties =
        WriterProperties::builder().set_data_page_row_count_limit(10).set_write_batch_size(10);
    let nans: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN; 100]));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    write_parquet(&path, &batch(vec![("f", nans), ("i", numbers)]), Some(properties.build()));
    let columns = tuple("<f: float64?, i: int64?>");
    let count = |field: &str, constant: Expr| {
        let filter = Expr::call("gt_eq", vec![Expr::field(field), constant]);
        let params: Params = scan_params(&[&path], &columns).with("filter", filter);
        scan("parquet_scan", params, 2_048).unwrap().num_rows()
    };
    let one = Expr::Constant(tessera_plan::Scalar::Float(1.0), tessera_types::Atom::Float64);
    assert_eq!(count("f", one), 100, "NaN is greater than every number");
    assert_eq!(count("i", Expr::int64(95)), 5);
}
