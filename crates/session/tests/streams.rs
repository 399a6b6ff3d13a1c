//! Result streams: rows that are read while their query runs.

use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_session::{Config, ResultStream, Session, StatementResult};
use tessera_types::{Code, Error};

/// A query with far more rows than a test reads.
const ENDLESS: &str = "select a.x * 100000 + b.x as n from generate_series(1, 100000) as a(x), \
                       generate_series(1, 100000) as b(x)";
/// A query with 2,000,000 rows of about 30 bytes.
const MANY: &str = "select a.x * 1000 + b.x as n, 'row ' || (a.x * 1000 + b.x) as t from \
                    generate_series(0, 1999) as a(x), generate_series(0, 999) as b(x)";

fn session(threads: usize) -> Session {
    Session::new(Config { threads, ..Config::default() }).unwrap()
}

fn set(session: &mut Session, name: &str, value: &str) {
    session.execute(&format!("set {name} = '{value}'")).unwrap();
}

/// The rows of a stream up to an error.
fn count(rows: ResultStream) -> (usize, Option<Error>) {
    let mut count = 0;
    for batch in rows {
        match batch {
            Ok(batch) => count += batch.num_rows(),
            Err(error) => return (count, Some(error)),
        }
    }
    (count, None)
}

fn texts(batches: impl Iterator<Item = Result<arrow::array::RecordBatch, Error>>) -> Vec<String> {
    let mut texts = Vec::new();
    for batch in batches.map(Result::unwrap) {
        for row in 0..batch.num_rows() {
            let value = |column| {
                arrow::util::display::array_value_to_string(batch.column(column), row).unwrap()
            };
            texts.push((0..batch.num_columns()).map(value).collect::<Vec<_>>().join("|"));
        }
    }
    texts
}

#[test]
fn streams_give_the_rows_of_complete_results_in_their_order() {
    for (threads, chunk_rows) in [(1, 8192), (2, 7), (3, 1)] {
        let mut session = session(threads);
        set(&mut session, "chunk_rows", &chunk_rows.to_string());
        for sql in [
            "select 1 as a where false",
            "select x, x % 7 as y from generate_series(1, 1000) as g(x) order by y desc, x limit 900 offset 3",
            "select * from (values (1, null), (2, 'b')) as v(a, b) union all select x, 'c' from generate_series(3, 50) as g(x)",
            "select x % 5 as k, count(*), sum(x) from generate_series(1, 3000) as g(x) group by k order by k",
            "select a.x, b.x from generate_series(1, 40) as a(x) left join generate_series(20, 70) as b(x) on a.x = b.x",
            "with recursive r(n) as (select 1 union all select n + 1 from r where n < 100) select * from r",
        ] {
            let Some(StatementResult::Rows(complete)) = session.execute(sql).unwrap().pop() else {
                panic!("{sql}")
            };
            let stream = session.query(sql).unwrap();
            assert_eq!(stream.names(), complete.names());
            assert_eq!(stream.schema(), complete.schema());
            let (mut found, mut expected) = (texts(stream), texts(complete.batches()));
            if !sql.contains("order by") {
                found.sort();
                expected.sort();
            }
            assert_eq!(found, expected, "{sql}");
        }
    }
}

#[test]
fn a_session_has_one_open_stream() {
    let mut session = session(2);
    let mut rows = session.query(ENDLESS).unwrap();
    rows.next().unwrap().unwrap();
    let error = session.execute("select 1").unwrap_err();
    assert_eq!(error.sql_state().as_str(), "55006");
    // Another session is independent.
    assert_eq!(count(session.beside().unwrap().query("select 1").unwrap()).0, 1);
    let since = Instant::now();
    drop(rows);
    assert!(since.elapsed() < Duration::from_secs(5));
    let rows = session.query("select x from generate_series(1, 3) as g(x)").unwrap();
    assert_eq!(count(rows).0, 3);
    assert_eq!(count(session.query("select 2").unwrap()).0, 1);
}

#[test]
fn results_larger_than_the_budget_stream_through_it() {
    let mut session = session(2);
    set(&mut session, "memory", "8MB");
    assert_eq!(session.execute(MANY).unwrap_err().code(), Code::Limit);
    let (rows, error) = count(session.query(MANY).unwrap());
    assert!(rows == 2_000_000 && error.is_none(), "{rows}: {error:?}");
    // A sort spills the rows and merges them.
    let sorted = session.query(&format!("{MANY} order by n")).unwrap();
    let mut next = 0;
    for batch in sorted {
        let batch = batch.unwrap();
        for n in batch.column(0).as_primitive::<Int64Type>().values() {
            assert_eq!(*n, next);
            next += 1;
        }
    }
    assert_eq!(next, 2_000_000);
}

#[test]
fn errors_come_after_the_rows_before_them() {
    let mut session = session(1);
    set(&mut session, "memory", "2MB");
    let sql = "select 1 / (1999999 - a.x * 1000 - b.x) as n from generate_series(0, 1999) as a(x), \
               generate_series(0, 999) as b(x)";
    let (rows, error) = count(session.query(sql).unwrap());
    let error = error.unwrap();
    assert_eq!(error.sql_state().as_str(), "22012");
    assert!(rows > 0 && rows < 2_000_000, "{rows}");
    assert_eq!(count(session.query("select 1").unwrap()).0, 1);
}

#[test]
fn a_stream_can_be_cancelled_and_says_so_once() {
    let mut session = session(2);
    let cancel = session.cancel_handle();
    let mut rows = session.query(ENDLESS).unwrap();
    rows.next().unwrap().unwrap();
    assert!(cancel.progress().is_some());
    assert!(cancel.cancel());
    let error = rows.find_map(Result::err).unwrap();
    assert_eq!(error.code(), Code::Cancelled);
    assert!(rows.next().is_none() && cancel.progress().is_none());
    assert_eq!(cancel.stopped().unwrap().held_bytes, 0);
    assert_eq!(count(session.query("select 1").unwrap()).0, 1);
}

#[test]
fn a_deadline_does_not_count_the_time_of_the_reader() {
    let mut session = session(2);
    set(&mut session, "deadline", "1");
    let mut rows = session.query(ENDLESS).unwrap();
    for _ in 0..3 {
        rows.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(600));
    }
    drop(rows);
    let sql = format!("select n from ({ENDLESS}) as s where n < 0");
    let (rows, error) = count(session.query(&sql).unwrap());
    assert_eq!(rows, 0);
    assert!(error.unwrap().message().contains("deadline"));
}

#[test]
fn long_limits_pass_tuples_on_in_order() {
    for (threads, memory) in [(1, "8MB"), (2, "8MB"), (3, "1GB")] {
        let mut session = session(threads);
        set(&mut session, "memory", memory);
        let ordered =
            format!("select n, t from ({MANY}) as s order by n limit 1000000 offset 700000");
        let mut next = 700_000;
        for batch in session.query(&ordered).unwrap() {
            for n in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                assert_eq!(*n, next);
                next += 1;
            }
        }
        assert_eq!(next, 1_700_000);
        for (sql, expected) in [
            (
                "select count(*), count(distinct n) from (select n from m limit 300000 offset 50000) as s",
                "300000|300000",
            ),
            ("select count(*) from (select n from m limit 5000000 offset 1900000) as s", "100000"),
            ("select count(*) from (select n from m limit 100000 offset 3000000) as s", "0"),
            (
                "select count(*) from (select n from m limit 40000) as a join (select n from m limit 30000 offset 20000) as b using (n)",
                "20000",
            ),
            (
                "with c as (select n from m limit 25000) select (select count(*) from c), (select count(*) from c where n >= 0)",
                "25000|25000",
            ),
        ] {
            let sql = sql.replace(" m ", &format!(" ({MANY}) as m "));
            assert_eq!(texts(session.query(&sql).unwrap()), [expected], "{sql}");
        }
    }
}

#[test]
fn long_limits_of_files_end_when_they_are_met() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["parquet", "csv"] {
        let file = folder.path().join(format!("file.{format}")).display().to_string();
        session(2)
            .execute(&format!("copy (select n, t from ({MANY}) as s order by n) to '{file}'"))
            .unwrap();
        for threads in [1, 2, 4] {
            let mut session = session(threads);
            set(&mut session, "memory", "32MB");
            for (limit, offset) in [(400_000, 1), (400_000, 200_000), (1_700_000, 250_000)] {
                let sql = format!("select n, t from '{file}' limit {limit} offset {offset}");
                let mut next = offset;
                for batch in session.query(&sql).unwrap() {
                    for n in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                        assert_eq!(*n, next, "{sql}");
                        next += 1;
                    }
                }
                assert_eq!(next, offset + limit, "{sql}");
                let counted = format!("select count(t) from ({sql}) as s where n % 2 = 0");
                assert_eq!(
                    texts(session.query(&counted).unwrap()),
                    [(limit / 2).to_string()],
                    "{sql}"
                );
            }
        }
    }
}

#[test]
fn a_file_that_is_replaced_meanwhile_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [file, other] =
        ["file", "other"].map(|name| folder.path().join(name).display().to_string());
    let mut session = session(1);
    for (format, numbers) in [("csv", "n"), ("csv", "n + 1000000"), ("parquet", "n + 1000000")] {
        let (file, other) = (format!("{file}.{format}"), format!("{other}.{format}"));
        set(&mut session, "memory", "16MB");
        session
            .execute(&format!("copy (select n + 1000000 as n, t from ({MANY}) as s) to '{file}'"))
            .unwrap();
        session
            .execute(&format!("copy (select {numbers} as n, t from ({MANY}) as s) to '{other}'"))
            .unwrap();
        set(&mut session, "memory", "2MB");
        let mut rows = session.query(&format!("select * from '{file}'")).unwrap();
        rows.next().unwrap().unwrap();
        std::fs::rename(&other, &file).unwrap();
        let error = rows.find_map(Result::err).unwrap();
        assert!(error.message().contains("changed while it was read"), "{error}");
        // The next statement sees the new file.
        let rows = session.query(&format!("select count(*) from '{file}'")).unwrap();
        assert_eq!(texts(rows), ["2000000"]);
    }
}
