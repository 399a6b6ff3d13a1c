//! The output formats.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::support::{csv, file, folder, run, tpch};

const ROW: &str = "select cast(1 as bigint) as a, '' as b, cast(null as varchar) as c, date '2020-02-03' as d, \
                   cast(12.50 as decimal(10,2)) as e, 'x,y\"z' as f, true as g, cast(0.5 as double) as h";

fn printed(format: &str, sql: &str) -> String {
    run(&["--format", format, "-c", sql]).ok()
}

#[test]
fn csv_tells_null_from_empty() {
    let expected = "a,b,c,d,e,f,g,h\n1,\"\",,2020-02-03,12.50,\"x,y\"\"z\",true,0.5\n";
    assert_eq!(printed("csv", ROW), expected);
}

#[test]
fn json_has_a_line_per_row() {
    let line = printed("json", &format!("{ROW} union all {ROW}"));
    assert_eq!(line.lines().count(), 2);
    for line in line.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["a"], 1);
        assert_eq!(value["b"], "");
        assert_eq!(value["c"], serde_json::Value::Null);
        assert_eq!(value["d"], "2020-02-03");
        assert_eq!(value["f"], "x,y\"z");
        assert_eq!(value["g"], true);
    }
    assert!(line.contains("\"e\":12.50"), "decimals are exact: {line}");
}

#[test]
fn table_is_for_people() {
    let text = printed(
        "table",
        "select 7 as number, 'a' as text union all select 100, 'bc' order by number",
    );
    let expected = " number | text\n--------+------\n      7 | a\n    100 | bc\n(2 rows)\n";
    assert_eq!(text, expected);
    assert!(printed("table", "select 1 as x").ends_with("(1 row)\n"));
    assert_eq!(printed("table", "select 1 as x where false"), " x\n---\n(0 rows)\n");
    assert!(printed("table", "select 'a\nb' as x").contains("a\\nb"));
}

#[test]
fn arrow_is_a_stream() {
    let ran = run(&["--format", "arrow", "-c", ROW]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let reader = arrow::ipc::reader::StreamReader::try_new(&ran.bytes[..], None).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    let column = batches[0].column_by_name("a").unwrap();
    assert_eq!(column.as_primitive::<Int64Type>().value(0), 1);
}

#[test]
fn parquet_can_be_read_again() {
    let ran = run(&["--format", "parquet", "-c", ROW]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let folder = folder();
    file(&folder, "again.parquet", &ran.bytes);
    assert_eq!(csv(folder.path(), "select * from again").ok(), printed("csv", ROW));
}

#[test]
fn binary_output_holds_one_result() {
    for format in ["arrow", "parquet"] {
        let ran = run(&["--format", format, "-c", "select 1; select 2"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.contains("a second result"), "{}", ran.err);
    }
}

#[test]
fn an_empty_result_has_its_header() {
    let sql = "select l_orderkey, l_comment from lineitem where l_orderkey < 0";
    assert_eq!(csv(tpch(), sql).ok(), "l_orderkey,l_comment\n");
    for format in ["arrow", "parquet", "json"] {
        let ran = run(&[tpch().to_str().unwrap(), "--format", format, "-c", sql]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn repeated_names_are_shown_as_they_are() {
    assert_eq!(printed("csv", "select 1 as x, 2 as x"), "x,x\n1,2\n");
    let json: serde_json::Value =
        serde_json::from_str(&printed("json", "select 1 as x, 2 as x")).unwrap();
    assert_eq!((&json["x"], &json["x_1"]), (&1.into(), &2.into()));
}
