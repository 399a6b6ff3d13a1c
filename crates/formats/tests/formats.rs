//! CSV, JSON lines, Arrow IPC: round trips, corner cases, messages.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;

use tessera_formats::{csv, ipc, json};
use tessera_plan::{Params, Value};
use tessera_types::{Error, Result, Tuple};

use crate::common::{materialize, scan, scan_params};

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name).to_str().unwrap().to_string();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }
}

pub(crate) fn tuple(text: &str) -> Tuple {
    text.parse().unwrap()
}

pub(crate) fn shown(batch: &RecordBatch) -> String {
    let mut out = Vec::new();
    csv::write_batch(batch, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Infers the columns of a file and reads it.
fn read_inferred(operator: &str, path: &str, options: Params) -> Result<(String, String)> {
    let readers = [tessera_files::open(path)?];
    let (tuple, params) = match operator {
        "csv_scan" => csv::infer(&readers, &options)?,
        _ => json::infer(&readers, &options)?,
    };
    let mut all = scan_params(&[path], &tuple);
    for (name, value) in params.iter() {
        all.set(name.clone(), value.clone());
    }
    let found = shown(&scan(operator, all.clone(), 2_048)?);
    assert_eq!(found, shown(&scan(operator, all, 3)?));
    Ok((tuple.to_string(), found))
}

fn csv(text: &str) -> Result<(String, String)> {
    let folder = Folder::new();
    read_inferred("csv_scan", &folder.file("x.csv", text), Params::new())
}

fn json(text: &str) -> Result<(String, String)> {
    let folder = Folder::new();
    read_inferred("json_scan", &folder.file("x.json", text), Params::new())
}

fn pair(tuple: &str, rows: &str) -> (String, String) {
    (tuple.to_string(), rows.to_string())
}

#[test]
fn csv_corner_cases() {
    assert_eq!(csv("a,b\n1,x\n2,\n").unwrap(), pair("<a: int64?, b: string?>", "1,x\n2,\n"));
    assert_eq!(
        csv("a,b\n,\"\"\n").unwrap(),
        pair("<a: string?, b: string?>", ",\"\"\n"),
        "NULL and empty"
    );
    assert_eq!(
        csv("\u{feff}a,b\r\n1,\"x\r\ny\"\r\n").unwrap(),
        pair("<a: int64?, b: string?>", "1,\"x\r\ny\"\n")
    );
    assert_eq!(
        csv("a,b\n1,\"he said \"\"no\"\"\"").unwrap(),
        pair("<a: int64?, b: string?>", "1,\"he said \"\"no\"\"\"\n")
    );
    assert_eq!(
        csv("a\n1\n\n3\n").unwrap(),
        pair("<a: int64?>", "1\n\n3\n"),
        "a blank line of one field is NULL"
    );
    assert_eq!(csv("a,b\n1,2\n\n3,4\n\n").unwrap(), pair("<a: int64?, b: int64?>", "1,2\n3,4\n"));
    assert_eq!(
        csv("1,x\n2,y\n").unwrap(),
        pair("<column0: int64?, column1: string?>", "1,x\n2,y\n"),
        "no header"
    );
    assert_eq!(csv("a,b\n").unwrap(), pair("<a: string?, b: string?>", ""));
    assert_eq!(
        csv("a,a,\n1,2,3\n").unwrap(),
        pair("<a: int64?, a_1: int64?, column2: int64?>", "1,2,3\n")
    );
    let (types, _) =
        csv("d,t,f,w,b\n2024-01-02,2024-01-02 03:04:05,1.5,123456789012345678901,true\n").unwrap();
    assert_eq!(types, "<d: date?, t: timestamp(us)?, f: float64?, w: decimal(38,0)?, b: boolean?>");
}

#[test]
fn csv_errors_say_where() {
    let message = |text: &str| csv(text).unwrap_err().message().to_string();
    assert!(message("a,b\n1,2\n1,2,3\n").contains("line 3: too many fields: 3, expected 2"));
    assert!(message("a,b\n1,2\n1\n").contains("line 3: too few fields"));
    assert!(message("a,b\n1,\"x\n").contains("no closing quote"));
    assert!(message("a,b\n1,\"5\" disk\n").contains("set the option quote to ''"));
    assert!(message("").contains("is empty"));
    let folder = Folder::new();
    let path = folder.file("x.csv", b"a,b\n1,x\n2,\xff\n");
    let error = read_inferred("csv_scan", &path, Params::new()).unwrap_err();
    assert!(error.message().contains("line 3") && error.message().contains("UTF-8"), "{error}");
    let error = scan("csv_scan", scan_params(&[&path], &tuple("<a: date?>")), 2_048).unwrap_err();
    assert!(
        error.message().contains("line 2: column a: '1' is not a value of type date"),
        "{error}"
    );
    let error = scan("csv_scan", scan_params(&[&path], &tuple("<c: date?>")), 2_048).unwrap_err();
    assert!(error.message().contains("has no column c"), "{error}");
    let path = folder.file("y.csv", "a\n12.345\n");
    let error =
        scan("csv_scan", scan_params(&[&path], &tuple("<a: decimal(7,2)?>")), 2_048).unwrap_err();
    assert!(error.message().contains("line 2"), "digits are not rounded away: {error}");
}

#[test]
fn csv_options() {
    let folder = Folder::new();
    let path = folder.file("x.csv", "1;'a;b';NA\n2;'it\\'s';3\n");
    let options = Params::new()
        .with("delimiter", Value::string(";"))
        .with("quote", Value::string("'"))
        .with("escape", Value::string("\\"))
        .with("null", Value::string("NA"))
        .with("header", Value::string("false"));
    let found = read_inferred("csv_scan", &path, options).unwrap();
    let types = "<column0: int64?, column1: string?, column2: int64?>";
    assert_eq!(found, pair(types, "1,a;b,\n2,it's,3\n"));
}

#[test]
fn blocks_are_cut_at_records() {
    // Several blocks, with line ends and doubled quotes inside fields.
    let mut text = String::from("id,text\n");
    let rows = 150_000;
    for i in 0..rows {
        text.push_str(&format!("{i},\"line\nof \"\"{i}\"\", {}\"\n", "x".repeat(i % 37)));
    }
    let folder = Folder::new();
    let path = folder.file("x.csv", &text);
    assert!(text.len() > 4 << 20);
    let batch = scan("csv_scan", scan_params(&[&path], &tuple("<id: int64, text: string>")), 2_048)
        .unwrap();
    assert_eq!(batch.num_rows(), rows);
    for i in 0..rows {
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(i), i as i64);
        assert_eq!(
            batch.column(1).as_string_view().value(i),
            format!("line\nof \"{i}\", {}", "x".repeat(i % 37))
        );
    }
    let lines: Vec<String> = (0..300_000)
        .map(|i| format!("{{\"a\": {i}, \"b\": \"{}\"}}", "y".repeat(i % 11)))
        .collect();
    let path = folder.file("x.json", lines.join("\n"));
    let batch = scan("json_scan", scan_params(&[&path], &tuple("<a: int64?>")), 2_048).unwrap();
    assert!(batch.column(0).as_primitive::<Int64Type>().values().iter().copied().eq(0..300_000));
}

#[test]
fn late_values_are_never_lost() {
    let folder = Folder::new();
    let filler = "x".repeat(400);
    let mut text = String::from("a,b\n");
    (0..25_000).for_each(|i| text.push_str(&format!("{i},{filler}\n")));
    text.push_str("late,y\n");
    let path = folder.file("x.csv", &text);
    let error = read_inferred("csv_scan", &path, Params::new()).unwrap_err();
    assert!(
        error.message().contains("line 25002: column a: 'late'")
            && error.message().contains("sample"),
        "{error}"
    );
    let (types, _) =
        read_inferred("csv_scan", &path, Params::new().with("sample", Value::string("all")))
            .unwrap();
    assert_eq!(types, "<a: string?, b: string?>");
    let mut text = String::new();
    (0..25_000).for_each(|i| text.push_str(&format!("{{\"a\": {i}, \"b\": \"{filler}\"}}\n")));
    text.push_str("{\"late\": 1}\n");
    let path = folder.file("x.json", &text);
    let error = read_inferred("json_scan", &path, Params::new()).unwrap_err();
    assert!(error.message().contains("line 25001: the key 'late'"), "{error}");
    assert!(
        read_inferred("json_scan", &path, Params::new().with("sample", Value::string("all")))
            .is_ok()
    );
}

#[test]
fn json_corner_cases() {
    let (types, rows) =
        json("{\"a\": 1, \"b\": \"x\"}\n\n{\"b\": null, \"c\": [1, 2]}\r\n{\"a\": 2.5}").unwrap();
    assert_eq!(types, "<a: float64?, b: string?, c: list<int64?>?>");
    assert_eq!(rows, "1.0,x,\n,,\"[1, 2]\"\n2.5,,\n");
    let (types, rows) = json("{\"a\": {\"x\": 1}}\n{\"a\": \"text\"}\n{\"a\": \"\"}\n").unwrap();
    assert_eq!(
        (types.as_str(), rows.as_str()),
        ("<a: string?>", "\"{\"\"x\"\": 1}\"\ntext\n\"\"\n")
    );
    let (types, rows) =
        json("{\"s\": {\"x\": 1, \"y\": \"\\u00e4\"}}\n{\"s\": {\"y\": null}}\n").unwrap();
    assert_eq!(types, "<s: struct<x: int64?, y: string?>?>");
    assert!(rows.contains("ä"), "{rows}");
    let message = |text: &str| json(text).unwrap_err().message().to_string();
    assert!(message("{\"a\": 1}\n{\"a\": }\n").contains("line 2"));
    assert!(message("[1]\n").contains("not a JSON object"));
    let folder = Folder::new();
    let path = folder.file("x.json", "{\"a\": 1}\n{\"a\": \"1\"}\n");
    let error = scan("json_scan", scan_params(&[&path], &tuple("<a: int64?>")), 2_048).unwrap_err();
    assert!(
        error.message().contains("line 2") && error.message().contains("column 'a'"),
        "{error}"
    );
}

fn sample() -> RecordBatch {
    let valid = |i: usize| !i.is_multiple_of(3);
    let option = |i: usize| valid(i).then_some(i as i64);
    let texts = ["", "plain", "a,b", "say \"hi\"", "two\nlines", "käse"];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter((0..100).map(option)))),
        (
            "f",
            Arc::new(Float64Array::from_iter((0..100).map(|i| option(i).map(|i| i as f64 / 8.0)))),
        ),
        ("b", Arc::new(BooleanArray::from_iter((0..100).map(|i| option(i).map(|i| i % 2 == 0))))),
        (
            "s",
            Arc::new(StringViewArray::from_iter(
                (0..100).map(|i| valid(i).then_some(texts[i % 6])),
            )),
        ),
        (
            "d",
            Arc::new(Date32Array::from_iter(
                (0..100).map(|i| option(i).map(|i| i as i32 * 777 - 9_000)),
            )),
        ),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from_iter(
                (0..100).map(|i| option(i).map(|i| i * 86_399_999_999)),
            )),
        ),
        (
            "m",
            Arc::new(
                Decimal64Array::from_iter(
                    (0..100).map(|i| option(i).map(|i| i * 12_345 - 600_000)),
                )
                .with_precision_and_scale(15, 2)
                .unwrap(),
            ),
        ),
        (
            "w",
            Arc::new(
                Decimal128Array::from_iter(
                    (0..100).map(|i| option(i).map(|i| i128::from(i) * 10i128.pow(30))),
                )
                .with_precision_and_scale(38, 4)
                .unwrap(),
            ),
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

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    let batch = sample();
    let tuple = Tuple::from_arrow_schema(&batch.schema()).unwrap();
    for (format, name) in
        [("csv", "x.csv"), ("json", "x.json"), ("ipc", "x.arrow"), ("parquet", "x.parquet")]
    {
        for chunk_rows in [2_048, 7] {
            let path = folder.path(name);
            let params = Params::new().with("path", Value::string(path.as_str()));
            let told =
                materialize(&format!("{format}_materialize"), params, &batch, chunk_rows).unwrap();
            assert_eq!(shown(&told), format!("{path},100\n"));
            let found =
                scan(&format!("{format}_scan"), scan_params(&[&path], &tuple), chunk_rows).unwrap();
            assert_eq!(found, batch, "{format}, chunks of {chunk_rows}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 4, "no temporary file is left");
    let reader = tessera_files::open(&folder.path("x.arrow")).unwrap();
    assert_eq!(ipc::discover(reader).unwrap(), tuple);
}

#[test]
fn unwritable_places_are_errors() {
    let params = Params::new().with("path", Value::string("/no/such/folder/x.csv"));
    let error: Error = materialize("csv_materialize", params, &sample(), 100).unwrap_err();
    assert!(error.message().contains("cannot write '/no/such/folder/x.csv'"), "{error}");
}

#[test]
fn ipc_streams_dictionaries_and_damage() {
    let folder = Folder::new();
    let words: DictionaryArray<Int32Type> = ["a", "b", "a", "c"].into_iter().collect();
    let small: DictionaryArray<Int8Type> = ["x", "y", "x", "x"].into_iter().collect();
    let schema = Schema::new(vec![
        Field::new("w", words.data_type().clone(), true),
        Field::new("s", small.data_type().clone(), true),
    ]);
    let batch =
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(words), Arc::new(small)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        arrow::ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let path = folder.file("x.arrow", &bytes);
    let columns = tuple("<w: string?, s: string?>");
    let found = scan("ipc_scan", scan_params(&[&path], &columns), 3).unwrap();
    assert_eq!(shown(&found), "a,x\nb,y\na,x\nc,x\na,x\nb,y\na,x\nc,x\n");
    let file = folder.path("y.arrow");
    let params = Params::new().with("path", Value::string(file.as_str()));
    materialize("ipc_materialize", params, &sample(), 10).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let columns = Tuple::from_arrow_schema(&sample().schema()).unwrap();
    for part in 0..50 {
        std::fs::write(&file, &whole[..whole.len() * part / 50]).unwrap();
        let error = scan("ipc_scan", scan_params(&[&file], &columns), 2_048).unwrap_err();
        assert!(error.message().contains(&file), "{error}");
    }
}
