//! Files by the format that a statement names, and options of formats.

use std::path::Path;

use crate::texts::texts;
use tessera_session::{Config, Session, StatementResult};

/// The records `1,x` and `2,` below a header, as gzip packs them.
const PACKED: [u8; 31] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 212, 73, 226, 50, 212, 169, 224, 50, 210, 225, 2, 0, 47, 61, 135,
    106, 11, 0, 0, 0,
];

/// Rows, or the error, as text; `{}` is the folder.
fn answer(folder: &Path, sql: &str) -> Result<Vec<String>, String> {
    let mut session = Session::new(Config { threads: 2, ..Config::default() }).unwrap();
    let sql = sql.replace("{}", folder.to_str().unwrap());
    match session.execute(&sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => Ok(texts(&result)),
        Ok(Some(StatementResult::Done(done))) => Ok(vec![done]),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => Err(error.message().to_string()),
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("x.txt", "a;b\n1;2\n"),
        ("x.log", "{\"a\":1}\n"),
        ("blank.json", "{\"a\":1}\n   \n{\"a\":2}\n"),
        ("onecol.csv", "a\n\n1\n\n2\n"),
        ("z.csv", "a\n2024-01-01T00:00:00+02:00\n"),
        ("x.tsv", "a\tb\n1,5\t2\n"),
        ("cut.csv.gz", "\u{1f}"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::write(folder.path().join("packed.csv.gz"), PACKED).unwrap();
    folder
}

#[test]
fn a_named_format_is_read_whatever_the_name_ends_in() {
    let folder = folder();
    for (sql, expected) in [
        ("select * from read_csv('{}/x.txt')", "1 2"),
        ("select * from read_csv('{}/x.txt', delim = ';', header = true)", "1 2"),
        ("select * from read_csv('{}/x.txt', null = '1')", "NULL 2"),
        ("select count(*), max(column1) from read_csv('{}/x.txt', header := false)", "2 b"),
        ("select \"a;b\" from read_csv('{}/x.txt', sep => ',')", "1;2"),
        ("select * from read_csv('{}/x.tsv')", "1,5 2"),
        ("select * from '{}/x.tsv'", "1,5 2"),
        ("select * from read_json('{}/x.log')", "1"),
        ("create external table t stored as csv location '{}/x.txt'; select * from t", "1 2"),
        ("copy (select 1 as a) to '{}/y.1' (format csv); select * from read_csv('{}/y.1')", "1"),
        ("copy (select 1 as a) to '{}/y.2' (format json); select * from read_json('{}/y.2')", "1"),
        ("copy (select 1 as a) to '{}/y.3' (format parquet); select * from read_parquet('{}/y.3')", "1"),
        ("copy (select 1 as a) to '{}/y.4' (format arrow); select * from read_arrow('{}/y.4')", "1"),
        ("select count(*) from '{}/blank.json'", "2"),
        ("select count(*), count(a) from '{}/onecol.csv'", "4 2"),
        ("select a = timestamptz '2023-12-31 22:00:00+00' from '{}/z.csv'", "true"),
    ] {
        assert_eq!(answer(folder.path(), sql), Ok(vec![expected.to_string()]), "{sql}");
    }
}

#[test]
fn files_that_are_compressed_as_a_whole_are_read() {
    let folder = folder();
    let rows = Ok(vec!["1 x".to_string(), "2 NULL".to_string()]);
    assert_eq!(answer(folder.path(), "select * from '{}/packed.csv.gz'"), rows);
    assert_eq!(answer(folder.path(), "select * from read_csv('{}/packed.csv.gz', header = true)"), rows);
    let error = answer(folder.path(), "select * from '{}/cut.csv.gz'").unwrap_err();
    assert!(error.contains("cannot decompress"), "{error}");
    let error = answer(folder.path(), "copy (select 1) to '{}/y.csv.gz'").unwrap_err();
    assert!(error.contains("not written so"), "{error}");
    assert!(!folder.path().join("y.csv.gz").exists());
}

#[test]
fn options_are_checked_before_anything_is_read() {
    let folder = folder();
    let create = |format: &str, options: &str| {
        format!("create external table t stored as {format} options ({options}) location '{{}}/x.txt'")
    };
    for (sql, expected) in [
        (create("csv", "foo 'x'"), "unknown option 'foo'"),
        (create("csv", "foo 'x'"), "expected header, delimiter, quote, escape, null, sample, skip, comment"),
        (create("csv", "header 'maybe'"), "option header must be true or false"),
        (create("csv", "delimiter 'ab'"), "option delimiter must be one ASCII character"),
        (create("csv", "quote ';', delimiter ';'"), "option delimiter"),
        (create("csv", "sample 'some'"), "option sample must be 'all'"),
        (create("csv", "delim ';', sep ';'"), "delimiter is given twice"),
        (create("json", "header 'true'"), "unknown option 'header' of reading JSON files"),
        (create("parquet", "header 'true'"), "there is none"),
        ("select * from read_csv('{}/x.txt', foo = 1)".to_string(), "unknown option 'foo'"),
        ("select * from read_csv('{}/x.txt', 1)".to_string(), "takes one path"),
        ("copy (select 1) to '{}/y.csv' (sample 'all')".to_string(), "unknown option 'sample' of writing"),
        ("select * from '{}/x.txt'".to_string(), "read_csv("),
    ] {
        let error = answer(folder.path(), &sql).unwrap_err();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = folder();
    let rows = r#"values (1, 'a,b', '', timestamptz '2024-01-01 00:00:00.5+00', 1.5::double precision),
        (2, E'l\r\nm', null, null, 'Infinity'), (3, ' "q" ', 'x;y', timestamptz '2024-01-01 00:00:00+00', 'NaN')"#;
    for name in ["csv", "tsv", "json"] {
        let write = format!("copy (select * from ({rows}) v(i, \"s;t\", t, ts, f)) to '{{}}/w.{name}'");
        let floats = if name == "json" { "1.5" } else { "f" };
        let sql = format!(
            "{write}; select count(*) from (select i, \"s;t\", t, ts, {floats} from '{{}}/w.{name}'
             intersect select i, \"s;t\", t, ts, {floats} from ({rows}) v(i, \"s;t\", t, ts, f)) both"
        );
        assert_eq!(answer(folder.path(), &sql), Ok(vec!["3".to_string()]), "{name}");
    }
}
