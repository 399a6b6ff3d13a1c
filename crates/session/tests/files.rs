//! Explicit file formats, and options of formats.

use std::path::Path;

use tessera_session::{Config, Session, StatementResult};
use tessera_types::Code;

use crate::texts::texts;

/// The records `1,x` and `2,` below a header, as gzip packs them.
const PACKED: [u8; 31] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 212, 73, 226, 50, 212, 169, 224, 50, 210, 225, 2, 0, 47,
    61, 135, 106, 11, 0, 0, 0,
];

/// The rows or the error of a statement, as text. `{}` stands for the folder.
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
        (
            "create external table t options (delimiter E'\\t') location '{}/x.tsv' stored as csv; select * from t",
            "1,5 2",
        ),
        ("copy (select 1 as a) to '{}/y.1' (format csv); select * from read_csv('{}/y.1')", "1"),
        ("copy (select 1 as a) to '{}/y.2' (format json); select * from read_json('{}/y.2')", "1"),
        (
            "copy (select 1 as a) to '{}/y.3' (format parquet); select * from read_parquet('{}/y.3')",
            "1",
        ),
        (
            "copy (select 1 as a) to '{}/y.4' (format arrow); select * from read_arrow('{}/y.4')",
            "1",
        ),
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
    assert_eq!(
        answer(folder.path(), "select * from read_csv('{}/packed.csv.gz', header = true)"),
        rows
    );
    let error = answer(folder.path(), "select * from '{}/cut.csv.gz'").unwrap_err();
    assert!(error.contains("cannot decompress"), "{error}");
    for (name, expected) in [
        ("y.parquet.gz", "Parquet files are not compressed as a whole"),
        ("y.csv.bz2", "can be read but not written"),
        ("y.json.xz", "can be read but not written"),
    ] {
        let copy = format!("copy (select 1) to '{{}}/{name}'");
        let error = answer(folder.path(), &copy).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!folder.path().join(name).exists());
    }
}

#[test]
fn text_files_are_compressed_as_they_are_written() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let rows = "select range as a, 'row ' || range % 7 as b from range(20000)";
    for (to, magic, from) in [
        ("c.csv.gz'", &[0x1f, 0x8b][..], "'{}/c.csv.gz'"),
        ("c.json.zst'", &[0x28, 0xb5, 0x2f, 0xfd], "'{}/c.json.zst'"),
        ("a.json.gz' (array)", &[0x1f, 0x8b], "'{}/a.json.gz'"),
        ("c.csv' (compression zstd)", &[0x28, 0xb5], "read_csv('{}/c.csv', compression = 'zstd')"),
        ("d.csv.gz' (compression none)", b"a,b\n", "read_csv('{}/d.csv.gz', compression = 'none')"),
        ("e.tsv.gz' (compression gzip)", &[0x1f, 0x8b], "'{}/e.tsv.gz'"),
    ] {
        answer(folder.path(), &format!("copy ({rows}) to '{{}}/{to}")).unwrap();
        let name = to.split('\'').next().unwrap();
        let bytes = std::fs::read(path(name)).unwrap();
        assert!(bytes.starts_with(magic), "{name}");
        assert_eq!(bytes.len() < 150_000, !magic.is_ascii(), "{name}: {}", bytes.len());
        let sum = format!("select count(*), sum(a), count(distinct b) from {from}");
        assert_eq!(answer(folder.path(), &sum), Ok(vec!["20000 199990000 7".into()]), "{name}");
    }
    answer(
        folder.path(),
        &format!("copy ({rows}) to '{{}}/parts' (format csv, partition_by b, compression gzip)"),
    )
    .unwrap();
    assert!(path("parts/b=row%201/data_0.csv.gz").exists());
    let sum = "select count(*), sum(a), count(distinct b) from '{}/parts'";
    assert_eq!(answer(folder.path(), sum), Ok(vec!["20000 199990000 7".into()]));
    let failed = "copy (select 1 / (range - 9000) as a from range(20000)) to '{}/f.csv.gz'";
    answer(folder.path(), failed).unwrap_err();
    assert!(!path("f.csv.gz").exists());
    let wrong = answer(folder.path(), "copy (select 1) to '{}/f.csv' (compression lzma)");
    assert!(wrong.unwrap_err().contains("option compression must be"));
}

#[test]
fn options_are_checked_before_anything_is_read() {
    let folder = folder();
    let create = |format: &str, options: &str| {
        format!(
            "create external table t stored as {format} options ({options}) location '{{}}/x.txt'"
        )
    };
    for (sql, expected) in [
        (create("csv", "foo 'x'"), "unknown option 'foo'"),
        (
            create("csv", "foo 'x'"),
            "expected header, delimiter, quote, escape, null, sample, skip, comment",
        ),
        (create("csv", "header 'maybe'"), "option header must be true or false"),
        (create("csv", "delimiter 'ab'"), "option delimiter must be one ASCII character"),
        (create("csv", "quote ';', delimiter ';'"), "option delimiter"),
        (create("csv", "sample 'some'"), "option sample must be 'all'"),
        (create("csv", "delim ';', sep ';'"), "duplicate option delimiter"),
        (create("json", "header 'true'"), "unknown option 'header' of reading JSON files"),
        (create("parquet", "header 'true'"), "expected union_by_name, file_row_number, filename"),
        ("select * from read_csv('{}/x.txt', foo = 1)".to_string(), "unknown option 'foo'"),
        ("select * from read_csv('{}/x.txt', 1)".to_string(), "takes a path or pattern"),
        (
            "copy (select 1) to '{}/y.csv' (sample 'all')".to_string(),
            "unknown option 'sample' of writing",
        ),
        ("select * from '{}/x.txt'".to_string(), "read_csv, read_json"),
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
        let write =
            format!("copy (select * from ({rows}) v(i, \"s;t\", t, ts, f)) to '{{}}/w.{name}'");
        let floats = if name == "json" { "1.5" } else { "f" };
        let sql = format!(
            "{write}; select count(*) from (select i, \"s;t\", t, ts, {floats} from '{{}}/w.{name}'
             intersect select i, \"s;t\", t, ts, {floats} from ({rows}) v(i, \"s;t\", t, ts, f)) both"
        );
        assert_eq!(answer(folder.path(), &sql), Ok(vec!["3".to_string()]), "{name}");
    }
}

#[test]
fn columns_and_types_of_text_files() {
    let folder = folder();
    for (name, text) in [
        ("t.csv", "a,b\n1,x\n2,\n"),
        ("n.csv", "1,2\n3,4\n"),
        ("nulls.csv", "a,b\nNA,1\n-,2\nx,NA\n"),
        ("end.csv", "a,b\n1,2,\n3,4,\n"),
        ("n.tbl", "1|x|\n2|y|\n"),
        ("o.json", "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n"),
        ("empty.csv", ""),
        ("empty.json", ""),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (sql, expected) in [
        ("select sum(a), max(b) from read_csv('{}/t.csv', types = {'a': 'double'})", "3.0 x"),
        ("select max(a || 'z') from read_csv('{}/t.csv', dtypes = {'A': 'varchar'})", "2z"),
        ("select sum(a / 2.0::real) from read_csv('{}/t.csv', types = ['real'])", "1.5"),
        ("select max(a || 'z') from read_csv('{}/t.csv', all_varchar = true)", "2z"),
        (
            "select sum(y), min(x) from read_csv('{}/t.csv', columns = {'y': 'int', 'x': 'text'})",
            "3 x",
        ),
        (
            "select sum(y), count(*) from read_csv('{}/n.csv', columns = {'x': 'int', 'y': 'decimal(5,1)'})",
            "6.0 2",
        ),
        ("select sum(y), sum(column1) from read_csv('{}/n.csv', names = ['y'])", "4 6"),
        ("select sum(p), max(b) from read_csv('{}/t.csv', names = ['p'])", "3 x"),
        ("select count(a), sum(b) from read_csv('{}/nulls.csv', nullstr = ['NA', '-'])", "1 3"),
        ("select sum(a), sum(b), count(*) from read_csv('{}/end.csv')", "4 6 2"),
        (
            "select sum(a), max(b) from read_csv('{}/n.tbl', columns = {'a': 'int', 'b': 'text'})",
            "3 y",
        ),
        (
            "create external table t (a int, b text) stored as csv location '{}/n.tbl'; select sum(a), max(b) from t",
            "3 y",
        ),
        ("select count(a) from read_csv('{}/empty.csv', columns = {'a': 'int'})", "0"),
        ("select count(a) from read_json('{}/empty.json', columns = {'a': 'int'})", "0"),
        (
            "select max(a), count(c) from read_json('{}/o.json', columns = {'a': 'varchar', 'c': 'date'})",
            "2 0",
        ),
    ] {
        assert_eq!(answer(folder.path(), sql), Ok(vec![expected.to_string()]), "{sql}");
    }
    for (sql, expected) in [
        ("read_csv('{}/t.csv', columns = {'a': 'int'})", "names 1 columns, but records"),
        (
            "read_csv('{}/t.csv', columns = {'a': 'int', 'b': 'int', 'c': 'int'})",
            "2 fields, but the options name 3",
        ),
        ("read_csv('{}/end.csv', columns = {'a': 'int'})", "names 1 columns, but records"),
        ("read_csv('{}/n.csv', columns = {'a': 'int'})", "too many fields: 2, expected 1"),
        ("read_csv('{}/t.csv', columns = {'a': 'int', 'a': 'int'})", "names column a twice"),
        ("read_json('{}/empty.json')", "contains no JSON object"),
        ("read_csv('{}/t.csv', columns = ['a'])", "must be names with types"),
        (
            "read_csv('{}/t.csv', columns = {'a': 'int', 'b': 'text'}, names = ['a'])",
            "remove names",
        ),
        ("read_csv('{}/t.csv', types = {'c': 'int'})", "unknown column c in option types"),
        ("read_csv('{}/t.csv', types = ['int', 'text', 'int'])", "has 3 types"),
        ("read_csv('{}/t.csv', types = 'int')", "must be types by name"),
        ("read_csv('{}/t.csv', types = {'a': 'nothing'})", "column a"),
        (
            "read_csv('{}/t.csv', types = {'a': 'int'}, dtypes = {'a': 'int'})",
            "duplicate option types",
        ),
        ("read_csv('{}/t.csv', delim = [',', ';'])", "must be a single literal"),
        (
            "read_parquet('{}/t.csv', columns = {'a': 'int'})",
            "unknown option 'columns' of reading Parquet",
        ),
        ("read_csv('{}/t.csv', types = {'b': 'int'})", "'x' is not a value of type int32"),
    ] {
        let error = answer(folder.path(), &format!("select * from {sql}")).unwrap_err();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[test]
fn text_before_a_header_is_skipped() {
    let folder = folder();
    for (name, text) in [
        ("report.csv", "Report of 2020\n\nmade by: me\na;b\n1;x\n2;y\n"),
        ("excel.csv", "sep=|\na|b\n1|2\n"),
        ("price.csv", "price\n1,50\n2,75\n"),
        ("list.json", "[\n{\"a\": 1},\n\n{\"a\" 2}\n]"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (sql, expected) in [
        ("select sum(a), max(b), count(*) from '{}/report.csv'", "3 y 2"),
        ("select sum(b) from '{}/excel.csv'", "2"),
        ("select max(price), count(*) from '{}/price.csv'", "2,75 2"),
        ("select count(*) from read_csv('{}/report.csv', skip = 3, header = false)", "3"),
    ] {
        assert_eq!(answer(folder.path(), sql), Ok(vec![expected.to_string()]), "{sql}");
    }
    let error = answer(folder.path(), "select * from '{}/list.json'").unwrap_err();
    assert!(error.contains("line 4"), "{error}");
}

#[test]
fn intervals_and_compressions_of_parquet() {
    let folder = folder();
    let rows =
        "select interval '1 month 2 days 3.5 s' i, [interval '40 hours', null] l, {'x': interval '1 year'} s
        union all select null, null, null";
    for compression in ["snappy", "zstd", "none", "gzip", "lz4"] {
        let sql = format!(
            "copy ({rows}) to '{{}}/i.parquet' (compression {compression});
             select date '2024-01-31' + i, l[1], s['x'] from '{{}}/i.parquet' where i is not null"
        );
        let found = answer(folder.path(), &sql).unwrap();
        assert_eq!(found.len(), 1, "{compression}");
        assert!(
            found[0].starts_with("2024-03-02T00:00:03.500 40 hours 12 mons"),
            "{compression}: {found:?}"
        );
    }
    for (interval, expected) in [("-1 day", "negative"), ("0.0001 s", "parts of a millisecond")] {
        let sql = format!("copy (select interval '{interval}' i) to '{{}}/i.parquet'");
        assert!(answer(folder.path(), &sql).unwrap_err().contains(expected), "{interval}");
    }
    let error =
        answer(folder.path(), "copy (select 1) to '{}/i.parquet' (compression best)").unwrap_err();
    assert!(error.contains("unknown compression 'best'"), "{error}");
}

/// Memory for reading a file during planning counts for the budget of the statement.
#[test]
fn a_first_line_beyond_the_budget_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(24 << 20);
    for (name, text) in [
        ("line.csv", long.clone()),
        ("value.csv", format!("a,b\n1,{long}\n")),
        ("value.json", format!("{{\"a\": \"{long}\"}}\n")),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let sql = format!("select count(*) from '{}'", path.display());
        let mut session =
            Session::new(Config { threads: 1, memory_bytes: 16 << 20, ..Config::default() })
                .unwrap();
        let error = session.execute(&sql).unwrap_err();
        assert_eq!(error.code(), Code::Limit, "{name}: {error}");
    }
    let path = folder.path().join("line.csv");
    let mut session = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    let error = session.execute(&format!("select * from '{}'", path.display())).unwrap_err();
    assert!(error.message().contains("the header is 25165824 bytes long"), "{error}");
}

/// The columns and rows are those of DuckDB, which reads no rows where a file is missing.
#[test]
fn files_are_read_as_texts_and_as_bytes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("k=1")).unwrap();
    for (name, bytes) in [
        ("a.txt", &b"hello"[..]),
        ("b.bin", &b"\xff\x00"[..]),
        ("k=1/c.txt", &[]),
        ("e.txt", "é\n".as_bytes()),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    std::fs::write(folder.path().join("packed.csv.gz"), PACKED).unwrap();
    for (sql, expected) in [
        ("select content, size from read_text('{}/a.txt')", vec!["hello 5"]),
        ("select content, size from read_blob('{}/b.bin')", vec!["ff00 2"]),
        ("select right(filename, 5), size from read_text('{}/*.txt')", vec!["a.txt 5", "e.txt 3"]),
        (
            "select right(filename, 5) from read_text(['{}/e.txt', '{}/a.*', '{}/e.txt'])",
            vec!["e.txt", "a.txt", "e.txt"],
        ),
        ("select k, content = '', size from read_text('{}/k=*/c.txt')", vec!["1 true 0"]),
        ("select count(*) from read_blob('{}/*')", vec!["4"]),
        ("select length(content) from read_text('{}/packed.csv.gz')", vec!["11"]),
        ("select size from read_text('{}/b.bin')", vec!["2"]),
        (
            "select size from read_text('{}/*') where content like 'h%' and filename like '%.txt'",
            vec!["5"],
        ),
        (
            "select last_modified > now() - interval '1 hour' from read_blob('{}/a.txt')",
            vec!["true"],
        ),
        (
            "create external table t (content varchar) stored as text location '{}/a.txt'; select * from t",
            vec!["hello"],
        ),
        ("select * from read_csv(['{}/a.txt', '{}/e.txt'], header = false)", vec!["hello", "é"]),
    ] {
        assert_eq!(answer(folder.path(), sql).unwrap(), expected, "{sql}");
    }
    let all = answer(folder.path(), "select * from read_text('{}/a.txt')").unwrap();
    let path = folder.path().join("a.txt");
    assert!(all[0].starts_with(&format!("{} hello 5 20", path.display())), "{all:?}");
    for (sql, expected) in [
        ("select * from read_text('{}/b.bin')", "b.bin' as text: byte 1 is not UTF-8"),
        ("select * from read_text('{}/none')", "none"),
        ("select * from read_text([])", "takes a path or pattern in quotes, or a list"),
        (
            "select * from read_text('{}/a.txt', header = true)",
            "expected filename, hive_partitioning",
        ),
        ("copy (select 1) to '{}/y' (format blob)", "expected parquet, csv, tsv, json or arrow"),
        (
            "create external table t stored as xml location '{}/a.txt'",
            "expected parquet, csv, tsv, json, arrow, text, blob or xlsx",
        ),
        ("select * from '{}/a.txt'", "read_arrow, read_text, read_blob or read_xlsx"),
        ("select * from read_txt('{}/a.txt')", "read_text"),
    ] {
        let error = answer(folder.path(), sql).unwrap_err();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[test]
fn only_the_columns_that_a_query_needs_are_read() {
    let folder = folder();
    let sql = "explain select size from read_text('{}/x.txt') where filename like '%x%'";
    let mut session = Session::new(Config::default()).unwrap();
    let sql = sql.replace("{}", folder.path().to_str().unwrap());
    let Some(StatementResult::Text(plan)) = session.execute(&sql).unwrap().pop() else {
        panic!("a plan is a text")
    };
    assert!(plan.contains("filter = filename LIKE") && !plan.contains("content: "), "{plan}");
}

#[test]
fn rows_of_files_have_numbers() {
    let folder = folder();
    let run = |sql: &str| answer(folder.path(), sql);
    for (name, rows) in [("a", "(1), (2)"), ("b", "(3), (4)")] {
        let copy = format!("copy (select * from (values {rows}) v(n)) to '{{}}/{name}.parquet'");
        run(&copy).unwrap();
    }
    let expected = Ok(vec!["0 0 1".to_string(), "1 1 2".to_string()]);
    assert_eq!(run("select rowid, file_row_number, * from '{}/a.parquet'"), expected);
    let both = "select rowid, t.* from read_parquet('{}/a.parquet', file_row_number = true) t(n)";
    assert_eq!(run(both), Ok(vec!["0 1 0".to_string(), "1 2 1".to_string()]));
    let of_several = "select n from '{}/[ab].parquet' where file_row_number = 1 order by n";
    assert_eq!(run(of_several), Ok(vec!["2".to_string(), "4".to_string()]));
    for sql in
        ["select rowid from '{}/[ab].parquet'", "select file_row_number from '{}/onecol.csv'"]
    {
        let error = run(sql).unwrap_err();
        assert!(error.contains("number others with row_number() OVER ()"), "{error}");
    }
}
