//! The bodies of fuzz targets: data files, statements, plans, sample files.
//!
//! Any input must give rows or an error. A target fails on an internal error, a panic, or a
//! statement that exceeds the deadline.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Config, Session, StatementResult};
use tessera_context::guard::is_guarded;
use tessera_types::{Code, Error};

pub use crate::source::sample_bytes as samples;

/// A statement that takes longer counts as a hang.
const DEADLINE: Duration = Duration::from_secs(20);
/// The maximum number of rows to read: a few bytes can encode a huge number of rows.
const ROWS_MAX: usize = 100_000;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::new(session());
}

fn session() -> Session {
    ignore_guarded_panics();
    let config = Config {
        threads: 1,
        memory_bytes: 64 << 20,
        process_memory_bytes: 64 << 20,
        deadline: Some(DEADLINE),
        ..Config::default()
    };
    let mut session = Session::new(config).expect("a session");
    let tables = "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, 1.5 AS c, DATE '2024-01-01' AS d, [1, 2] AS l, {'f': 1} AS s;
        CREATE TABLE u AS SELECT 1 AS a, 2 AS k, TIMESTAMP '2024-01-01 00:00:00' AS w; CREATE VIEW v AS SELECT a, b FROM t";
    session.execute(tables).expect("tables for statements");
    session
}

/// Panics if the result is an internal error or a timeout. Returns the value, if there is one.
/// The fuzzer ends at any panic, by a hook. A panic of a library about a damaged file becomes an
/// error, so it does not count.
fn ignore_guarded_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !is_guarded() {
            hook(info);
        }
    }));
}

fn judge<T>(result: Result<T, Error>, input: impl std::fmt::Debug) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let is_bug = error.code() == Code::Internal || error.code() == Code::Cancelled;
            assert!(!is_bug, "{error}\n{input:?}");
            None
        }
    }
}

/// Writes a file and reads it with statements.
fn file(suffix: &str, data: &[u8]) {
    let memory = PathBuf::from("/dev/shm");
    let home = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let path = home.join(format!("tessera-fuzz-{}-{thread}.{suffix}", std::process::id()));
    std::fs::write(&path, data).expect("room for a small file");
    SESSION.with_borrow_mut(|session| {
        for sql in [
            format!("SELECT * FROM (SELECT * FROM '{}' LIMIT {ROWS_MAX}) t", path.display()),
            format!("SELECT count(*) FROM '{}'", path.display()),
        ] {
            let Some(results) = judge(session.execute(&sql), &sql) else { continue };
            for result in results {
                let StatementResult::Rows(rows) = result else { continue };
                for batch in rows.batches() {
                    let batch = batch.expect("rows that were read");
                    for column in batch.columns() {
                        column.to_data().validate_full().expect("what was read is valid");
                    }
                }
            }
        }
    });
    drop(std::fs::remove_file(&path));
}

/// A Parquet file.
pub fn parquet(data: &[u8]) {
    file("parquet", data);
}

/// An Arrow IPC file or stream.
pub fn arrow_ipc(data: &[u8]) {
    file("arrow", data);
}

/// A CSV file. The first byte can select a compression.
pub fn csv(data: &[u8]) {
    match data.split_first() {
        Some((1, rest)) => file("csv.gz", rest),
        Some((2, rest)) => file("csv.zst", rest),
        _ => file("csv", data),
    }
}

/// A file of JSON lines or a JSON array.
pub fn json(data: &[u8]) {
    file("json", data);
}

/// A workbook: a file, or its sheet, shared texts and styles with a zero byte between them.
pub fn workbooks(data: &[u8]) {
    if data.starts_with(b"PK") {
        return file("xlsx", data);
    }
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (sheet, texts, styles) = (part(), part(), part());
    file("xlsx", &tessera_xlsx::testing::workbook_of(sheet, texts, styles));
}

/// Statements: parsed, bound and planned.
pub fn sql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    SESSION.with_borrow_mut(|session| judge(session.plan_only(text), text));
}

/// The text form of plans.
pub fn plans(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    SESSION.with_borrow(|session| {
        if let Some(printed) = judge(session.verify_only(text), text) {
            let again = session.verify_only(&printed).expect("a plan that was printed is one");
            assert_eq!(again, printed);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a file that `COPY` writes.
    fn written(sql: &str, suffix: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("x.{suffix}"));
        let copy = format!("COPY ({sql}) TO '{}'", path.display());
        SESSION.with_borrow_mut(|session| session.execute(&copy)).unwrap();
        std::fs::read(path).unwrap()
    }

    const ROWS: &str = "SELECT i AS a, CASE WHEN i % 3 > 0 THEN 'text ' || i % 4 END AS b, i / 7.0 AS c, DATE '2024-01-01' + i AS d, \
         [i, NULL] AS l, {'f': i, 'g': 'x'} AS s FROM (SELECT unnest(generate_series(1, 40)) AS i) r";

    #[test]
    fn parquet_files() {
        let seeds = [written(ROWS, "parquet"), written("SELECT 1 AS a", "parquet")];
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        tessera_fuzzing::mutate("parquet", &seeds, parquet);
    }

    #[test]
    fn arrow_files() {
        let seeds = [written(ROWS, "arrow"), written("SELECT 1 AS a", "arrow")];
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        tessera_fuzzing::mutate("arrow_ipc", &seeds, arrow_ipc);
    }

    #[test]
    fn csv_files() {
        let seeds: [&[u8]; 4] = [
            b"a,b,c\n1,x,2024-01-01\n2,\"y \"\"z\",\n",
            b"i;d\n1;1,5\n2;\"2,5\"\n",
            b"\xef\xbb\xbfn\tt\r\n1\t2024-01-01T10:00:00Z\r\n9999999999999999999999\t\r\n",
            &[
                1, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0xe4, 0x32, 0xe4, 2, 0, 0x57, 0xdb,
                0x58, 0x6d, 4, 0, 0, 0,
            ],
        ];
        tessera_fuzzing::mutate("csv", &seeds, csv);
    }

    #[test]
    fn json_files() {
        let seeds: [&[u8]; 3] = [
            b"{\"a\":1,\"b\":\"x\\u00e9\",\"l\":[1,null,{\"k\":2.5}]}\n{\"a\":99999999999999999999,\"c\":true}\n",
            b"[{\"a\":1},{\"a\":null}]",
            b"\n{\"d\":\"2024-01-01\",\"e\":1e5}\n",
        ];
        tessera_fuzzing::mutate("json", &seeds, json);
    }

    #[test]
    fn workbook_files() {
        let file = tessera_xlsx::testing::workbook("<row><c t='s'><v>0</v></c></row>", &["a"]);
        let seeds: [&[u8]; 3] = [
            b"<worksheet><sheetData><row r='1'><c r='A1' t='s'><v>0</v></c><c t='inlineStr'><is><t>b&amp;</t></is></c></row>\
              <row><c r='A2'><v>1</v></c><c r='B2' s='1'><f>A2</f><v>45000.5</v></c><c r='D2' t='b'><v>1</v></c></row></sheetData></worksheet>\0\
              <sst><si><t>a</t></si><si><r><t>x</t></r><rPh><t>y</t></rPh></si></sst>\0\
              <styleSheet><numFmts><numFmt numFmtId='164' formatCode='yyyy-mm-dd hh:mm'/></numFmts><cellXfs><xf numFmtId='0'/><xf numFmtId='164'/></cellXfs></styleSheet>",
            b"<worksheet><sheetData><row r='1048576'><c r='XFD1048576' t='e'><v>#N/A</v></c></row></sheetData></worksheet>",
            &file,
        ];
        tessera_fuzzing::mutate("workbooks", &seeds, workbooks);
    }

    #[test]
    fn statements() {
        let seeds: [&[u8]; 6] = [
            b"SELECT t.a, count(*) FILTER (WHERE b LIKE 'x%') FROM t JOIN u USING (a) GROUP BY 1 HAVING sum(c) > 1 ORDER BY 2 DESC LIMIT 3",
            b"WITH r AS (SELECT a, max(d) AS m FROM t GROUP BY a) SELECT * FROM r WHERE m > (SELECT min(w) FROM u WHERE u.a = r.a)",
            b"SELECT CASE WHEN a IN (1, 2, NULL) THEN l[1] ELSE s.f END, CAST(b AS decimal(10, 2)), interval '1 day' * a FROM t, LATERAL (SELECT k FROM u WHERE u.a = t.a) x",
            b"COPY (SELECT * FROM v) TO 'x.parquet'; SET memory = '1GB'; EXPLAIN ANALYZE SELECT 1; CREATE VIEW w AS SELECT 1",
            b"SELECT * FROM t UNION ALL SELECT * FROM t EXCEPT SELECT * FROM t ORDER BY b COLLATE \"C\" NULLS FIRST OFFSET 1",
            b"SELECT extract(year FROM d), substring(b FROM 1 FOR 2), x'ff', E'\\n', $$q$$, 1e400, -9223372036854775808, array_agg(a ORDER BY c) FROM t",
        ];
        tessera_fuzzing::mutate("sql", &seeds, sql);
    }

    #[test]
    fn plan_texts() {
        let seeds: [&[u8]; 2] = [
            b"plan { %0 = values() {tuple = <a: int64, s: string?>, rows = [[1, 'x'], [2, null]]} %1 = filter(%0) {predicate = a > 1} \
              %2 = reduce_by_key(%1) {keys = [s], aggregates = {n = {function = :sum, args = [a]}}} return %2 }",
            b"plan { %0 = parquet_scan() {paths = ['s3://b/t.parquet'], columns = <k: int64, v: decimal(10, 2)>} %1 = sort(%0) {keys = [k]} return %1 }",
        ];
        tessera_fuzzing::mutate("plans", &seeds, plans);
    }

    #[test]
    fn sample_files() {
        let seeds = crate::source::sample_seed();
        tessera_fuzzing::mutate("samples", &[&seeds], samples);
    }
}
