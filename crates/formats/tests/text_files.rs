//! Text files as other programs write them: delimiters, quotes, line ends, blank lines, dates,
//! damage. Checks exact rows in chunks of 1, 7 and 8,192, for columns and for row counts alone.

use tessera_formats::{csv, json};
use tessera_plan::{Params, Value};
use tessera_types::Result;

use crate::common::{scan, scan_params};

/// The inferred types and the rows of a file.
fn read(operator: &str, bytes: &[u8], options: &[(&str, &str)]) -> Result<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x").to_str().unwrap().to_string();
    std::fs::write(&path, bytes).unwrap();
    let readers = [tessera_files::open(&path)?];
    let options = options
        .iter()
        .fold(Params::new(), |params, (name, value)| params.with(*name, Value::string(*value)));
    let (tuple, params) = match operator {
        "csv_scan" => csv::infer(&readers, &options)?,
        _ => json::infer(&readers, &options)?,
    };
    let mut all = scan_params(&[&path], &tuple);
    for (name, value) in params.iter() {
        all.set(name.clone(), value.clone());
    }
    let mut found = Vec::new();
    for chunk_rows in [1, 7, 8_192] {
        let batch = scan(operator, all.clone(), chunk_rows)?;
        let mut text = Vec::new();
        csv::write_batch(&batch, &mut text)?;
        found.push(String::from_utf8(text).unwrap());
        // The same records with no column read, and with one.
        for fields in [0, 1] {
            let fields: Vec<_> =
                tuple.fields().iter().take(fields).map(|f| f.name.clone()).collect();
            let mut few = all.clone();
            few.set("fields", Value::names(fields));
            assert_eq!(scan(operator, few, chunk_rows)?.num_rows(), batch.num_rows());
        }
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    Ok((tuple.to_string(), found.remove(0)))
}

fn csv(text: &str) -> (String, String) {
    read("csv_scan", text.as_bytes(), &[])
        .unwrap_or_else(|error| (error.message().to_string(), String::new()))
}

fn json(text: &str) -> (String, String) {
    read("json_scan", text.as_bytes(), &[])
        .unwrap_or_else(|error| (error.message().to_string(), String::new()))
}

fn expect(found: (String, String), types: &str, rows: &str) {
    assert_eq!((found.0.as_str(), found.1.as_str()), (types, rows));
}

fn refused(found: (String, String), what: &str) {
    assert!(found.1.is_empty() && found.0.contains(what), "{found:?}");
}

#[test]
fn line_ends() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["a,b", "1,x", "2,\"y,z\"", "3,w", ""].join(end);
        expect(csv(&text), "<a: int64?, b: string?>", "1,x\n2,\"y,z\"\n3,w\n");
        expect(csv(text.trim_end()), "<a: int64?, b: string?>", "1,x\n2,\"y,z\"\n3,w\n");
    }
    expect(csv("a,b\r\n1,2\n3,4\r5,6"), "<a: int64?, b: int64?>", "1,2\n3,4\n5,6\n");
    expect(csv("\"a\nb\",c\n1,2\n"), "<\"a\nb\": int64?, c: int64?>", "1,2\n");
}

#[test]
fn blank_lines() {
    expect(csv("a\n\n1\n\n2\n"), "<a: int64?>", "\n1\n\n2\n");
    expect(csv("a\r\rx\r\r"), "<a: string?>", "\nx\n\n");
    expect(csv("\n\na,b\n\n1,2\n\n\n"), "<a: int64?, b: int64?>", "1,2\n");
    refused(csv("a,b\n1,2\n   \n3,4\n"), "line 3: too few fields");
    let types = "<a: int64?>";
    expect(json("{\"a\":1}\n   \n\n{\"a\":2}\n\t\r\n"), types, "1\n2\n");
}

#[test]
fn delimiters_and_quotes() {
    expect(csv("a|b\n1|2\n"), "<a: int64?, b: int64?>", "1,2\n");
    expect(csv("a;b\n1,5;2\n\"x;y\";3\n"), "<a: string?, b: int64?>", "\"1,5\",2\nx;y,3\n");
    expect(csv("a\tb\n1,5\t2\n"), "<a: string?, b: int64?>", "\"1,5\",2\n");
    expect(csv("name\nann, bob\ncarl\n"), "<name: string?>", "\"ann, bob\"\ncarl\n");
    expect(csv("a,b\n5\" pipe,2\nx,3\n"), "<a: string?, b: int64?>", "\"5\"\" pipe\",2\nx,3\n");
    expect(csv("a, b\n \"x, y\" , 2\n z,3\n"), "<a: string?, b: int64?>", "\"x, y\",2\n z,3\n");
    expect(csv("a,b\n'x,y',2\n"), "<a: string?, b: int64?>", "\"x,y\",2\n");
    expect(csv("a,b\n\"x\\\"y\",2\n"), "<a: string?, b: int64?>", "\"x\"\"y\",2\n");
    refused(csv("a,b\n1,2\n3\n"), "line 3: too few fields: 1, expected 2");
    refused(csv("a;b\n1;2\n3;4;5\n"), "line 3: too many fields: 3, expected 2");
    refused(csv("a,b\n1,2\n3,4,5\n"), "line 3: too many fields");
    expect(csv("a,b\n1,2,\n3,4,\n"), "<a: int64?, b: int64?>", "1,2\n3,4\n");
    expect(csv("a,b\n1,2\n3,4,\n"), "<a: int64?, b: int64?>", "1,2\n3,4\n");
    refused(csv("a,b\n1,2,\"\"\n"), "line 2: too many fields");
    let given = |options: &[(&str, &str)]| read("csv_scan", b"a;b,c\n'1;2',3\n", options).unwrap();
    expect(given(&[("delimiter", ",")]), "<\"a;b\": string?, c: int64?>", "1;2,3\n");
    expect(
        given(&[("delimiter", ","), ("quote", "")]),
        "<\"a;b\": string?, c: int64?>",
        "'1;2',3\n",
    );
    let error = read("csv_scan", b"a\n", &[("quote", "\""), ("delimiter", "\"")]).unwrap_err();
    assert!(error.message().contains("delimiter"), "{error}");
}

#[test]
fn headers() {
    expect(csv("a,a,b\n1,2,3\n"), "<a: int64?, a_1: int64?, b: int64?>", "1,2,3\n");
    expect(csv("a,,b\nx,y,z\n"), "<a: string?, column1: string?, b: string?>", "x,y,z\n");
    expect(csv("a,2021\n3,4\n"), "<a: int64?, \"2021\": int64?>", "3,4\n");
    expect(csv("ann,5\nbob,6\n"), "<column0: string?, column1: int64?>", "ann,5\nbob,6\n");
    expect(csv("1\n2\n"), "<column0: int64?>", "1\n2\n");
    expect(csv("x\ny\n"), "<x: string?>", "y\n");
}

#[test]
fn kinds_of_values() {
    expect(csv("a\n1\nInfinity\n-inf\nNaN\n"), "<a: float64?>", "1.0\nInfinity\n-Infinity\nNaN\n");
    expect(csv("a,b\n 1 , 2\n3,4\n"), "<a: int64?, b: int64?>", "1,2\n3,4\n");
    expect(
        csv("a,b\n2024-01-01T00:00:00Z,10:00\n2024-01-01 00:00:00.5+02:00,23:59:59.5\n"),
        "<a: timestamp(us, UTC)?, b: time(us)?>",
        "2024-01-01 00:00:00+00:00,10:00:00\n2023-12-31 22:00:00.500+00:00,23:59:59.500\n",
    );
    expect(
        csv("a,b\n2024-01-01T10:00:00.123,2024-01-01\n2024-01-02 10:00,2024-12-31\n"),
        "<a: timestamp(us)?, b: date?>",
        "2024-01-01 10:00:00.123,2024-01-01\n2024-01-02 10:00:00,2024-12-31\n",
    );
    expect(
        csv("a\n2024-01-01\n2024-01-01 10:00:00\n"),
        "<a: string?>",
        "2024-01-01\n2024-01-01 10:00:00\n",
    );
    let text = "2024-01-01T10:00:00Z\n2024-01-01T10:00:00\n";
    expect(csv(&format!("a\n{text}")), "<a: string?>", text);
    expect(
        json("{\"a\":\"2024-01-01T10:00:00+01:00\",\"b\":\"2024-01-01\",\"c\":\"x\"}"),
        "<a: timestamp(us, UTC)?, b: date?, c: string?>",
        "2024-01-01 09:00:00+00:00,2024-01-01,x\n",
    );
}

#[test]
fn json_that_is_not_lines() {
    let (types, rows) = ("<a: int64?, b: string?>", "1,\n2,x\n");
    expect(json("[{\"a\":1},{\"a\":2,\"b\":\"x\"}]"), types, rows);
    expect(json("[\n  {\"a\":1},\n  {\"a\":2,\n   \"b\":\"x\"}\n]\n"), types, rows);
    expect(json("{\n \"a\":1\n}\n{\"a\":2,\"b\":\"x\"}\n"), types, rows);
    expect(json("{\"a\":1}{\"a\":2,\"b\":\"x\"}"), types, rows);
    expect(json("{\"a\":1}\r{\"a\":2,\"b\":\"x\"}\r"), types, rows);
    refused(json("[{\"a\":1}\n{\"a\":2}]"), "line 1: expected a comma or the closing bracket");
    refused(json("[{\"a\":1},\n2]"), "not a JSON object");
    refused(json("[{\"a\":1},\n{\"a\":2}"), "line 2: expected a comma or the closing bracket");
}

#[test]
fn errors_do_not_depend_on_what_is_read() {
    let columns = "<a: int64?>".parse().unwrap();
    for (record, what) in [
        ("{\"a\":1,\"b\":\"\\ud800\"}", "escape"),
        ("{\"a\":1,\"b\":1,\"b\":2}", "duplicate"),
        ("{\"a\":1,\"c\":1}", "sample"),
        ("{\"a\":1,\"b\":[\"\\x\"]}", "escape"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json").to_str().unwrap().to_string();
        std::fs::write(&path, format!("{{\"a\":1}}\n{record}\n")).unwrap();
        let keys = ["a", "b"].map(Value::string).to_vec();
        let params = scan_params(&[&path], &columns).with("keys", keys);
        for params in [params.clone(), params.with("fields", Value::names(Vec::<String>::new()))] {
            let error = scan("json_scan", params, 7).unwrap_err();
            assert!(
                error.message().contains("line 2") && error.message().contains(what),
                "{error}"
            );
        }
    }
    refused(json("{\"a\":1,\"a\":2}\n"), "line 1: duplicate key 'a'");
    refused(json("{\"a\":\"\\ud800\"}\n"), "line 1: a malformed escape");
}

#[test]
fn damaged_files() {
    let refused = |bytes: &[u8], what: &str| {
        for operator in ["csv_scan", "json_scan"] {
            let error = read(operator, bytes, &[]).unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
    };
    refused(b"\xff\xfea\0,\0b\0\n\0", "UTF-16; convert it to UTF-8");
    refused(b"\xfe\xff\0a\0,\0b\0\n", "UTF-16");
    refused(b"\x1f\x8b\x08\0\0\0\0\0", "gzip");
    refused(b"\x28\xb5\x2f\xfd\0", "Zstandard");
    for bytes in [&b""[..], b"\xef\xbb\xbf"] {
        assert!(read("csv_scan", bytes, &[]).unwrap_err().message().contains("is empty"));
        assert_eq!(read("json_scan", bytes, &[]).unwrap().0, "<>");
    }
    let error = read("csv_scan", b"a,b\n1,2\nx\xff,2\n", &[]).unwrap_err();
    assert!(error.message().contains("line 3") && error.message().contains("UTF-8"), "{error}");
    let error = read("json_scan", b"{\"a\":1}\n{\"a\":\"\xff\"}\n", &[]).unwrap_err();
    assert!(error.message().contains("line 2") && error.message().contains("UTF-8"), "{error}");
    expect(csv("a,b\nx\0y,2"), "<a: string?, b: int64?>", "x\0y,2\n");
    let long = "x".repeat(3 << 20);
    expect(
        csv(&format!("a,b\n{long},2\ny,3\n")),
        "<a: string?, b: int64?>",
        &format!("{long},2\ny,3\n"),
    );
}

/// A file of several blocks, read by several readers.
fn rows(end: &str, rows: usize, late: &str) -> String {
    let mut text = format!("id,text{end}");
    for i in 0..rows {
        let field = match i % 4 {
            0 => format!("\"l{end}{i} \"\"q\"\"\""),
            1 => format!("{i}\" pipe \"x"),
            2 => format!(" \"a,{end}\" "),
            _ => "z".repeat(i % 97),
        };
        text.push_str(&format!("{i},{field}{end}"));
    }
    text + late
}

#[test]
fn blocks_begin_at_records_whatever_the_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "<id: int64, text: string?>".parse().unwrap();
    for end in ["\n", "\r\n", "\r"] {
        let path = folder.path().join("x.csv").to_str().unwrap().to_string();
        std::fs::write(&path, rows(end, 150_000, "")).unwrap();
        let batch = scan("csv_scan", scan_params(&[&path], &columns), 8_192).unwrap();
        assert_eq!(batch.num_rows(), 150_000);
        let ids =
            arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batch.column(0));
        assert!(ids.values().iter().copied().eq(0..150_000));
        let texts = arrow::array::AsArray::as_string_view(batch.column(1));
        for i in (0..150_000).step_by(4) {
            assert_eq!(texts.value(i), format!("l{end}{i} \"q\""));
            assert_eq!(texts.value(i + 1), format!("{}\" pipe \"x", i + 1));
            assert_eq!(texts.value(i + 2), format!("a,{end}"));
        }
    }
}

#[test]
fn the_first_bad_record_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "<id: int64, text: string?>".parse().unwrap();
    let path = folder.path().join("x.csv").to_str().unwrap().to_string();
    let message = |text: &str| {
        std::fs::write(&path, text).unwrap();
        scan("csv_scan", scan_params(&[&path], &columns), 8_192).unwrap_err().message().to_string()
    };
    for end in ["\n", "\r\n", "\r"] {
        let line = 1 + 100_000 + 2 * 25_000 + 1;
        let text = rows(end, 100_000, &format!("late,1{end}"));
        let text = text.clone() + &rows(end, 50_000, "") + "1,2,3";
        assert!(
            message(&text).contains(&format!("line {line}: column id: 'late'")),
            "{}",
            message(&text)
        );
        // After an unclosed quote, all blocks begin in another state than they seem to.
        let text = rows(end, 100_000, &format!("1,\"open{end}")) + &rows(end, 100_000, "");
        assert!(message(&text).contains(&format!("line {line}: ")), "{}", message(&text));
    }
}

#[test]
fn records_that_cannot_be_read_are_skipped() {
    let lenient = |text: &[u8], more: &[(&str, &str)]| {
        let options = [&[("ignore_errors", "true"), ("header", "true")], more].concat();
        read("csv_scan", text, &options).unwrap()
    };
    let text = b"a,b\n1,x\n2\n3,\"y\"z\n4,\xff\n5,y,z\n6,\"l\nm\"\n";
    expect(lenient(text, &[]), "<a: int64?, b: string?>", "1,x\n6,\"l\nm\"\n");
    expect(lenient(b"a\n\"x\ny\n", &[]), "<a: string?>", "");
    // Records over the ends of blocks, of which some are too long.
    let (mut text, mut expected) = (b"a,b\n".to_vec(), String::new());
    for i in 0..40_000 {
        let record = match i {
            _ if i % 977 == 0 => format!("{i},{}\n", "long ".repeat(30_000)),
            _ if i % 1_009 == 0 => format!("{i},\"{}\"\n", "long,\n\"\"".repeat(20_000)),
            _ if i % 13 == 0 => format!("{i},x,y\n"),
            _ if i % 17 == 0 => format!("{i}\n"),
            _ => format!("{i},text {i}\n"),
        };
        if record.len() < 100 && i % 13 != 0 && i % 17 != 0 {
            expected.push_str(&record);
        }
        text.extend(record.as_bytes());
    }
    let limit = [("max_line_size", "1000")];
    expect(lenient(&text, &limit), "<a: int64?, b: string?>", &expected);
    let error = read("csv_scan", &text, &[("max_line_size", "1000"), ("sample", "all")]);
    assert!(error.is_err());
}

#[test]
fn lines_that_are_no_objects_are_skipped() {
    let lenient = |text: &[u8]| read("json_scan", text, &[("ignore_errors", "true")]);
    let text = b"{\"a\":1}\nno\n{\"a\":\n{\"a\":2,\"a\":3}\n{\"a\":\"\xff\"}\n[1]\n{\"a\":4}\n";
    expect(lenient(text).unwrap(), "<a: int64?>", "1\n4\n");
    let error = lenient(b"[{\"a\":1}]").unwrap_err();
    assert!(error.message().contains("not one per line"), "{error}");
}
