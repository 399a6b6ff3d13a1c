//! `ANALYZE`: counts, the statistics cache, rejections and cancellation.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_session::{Config, Session, StatementResult};
use tessera_types::Code;

/// More than are sampled whole.
const ROWS: usize = 200_000;

/// A large table, in which half of the rows have a unique key and half share one, and a small
/// table.
fn database(folder: &Path) {
    let (mut many, mut few) = ("id,key,seven,name\n".to_string(), "k\n".to_string());
    for id in 0..ROWS {
        let key = if id % 2 == 0 { 0 } else { id };
        let name = if id % 3 == 0 { String::new() } else { format!("the name is {}", id / 4) };
        writeln!(many, "{id},{key},{},{name}", id % 7).unwrap();
    }
    (0..20).for_each(|key| writeln!(few, "{key}").unwrap());
    std::fs::write(folder.join("many.csv"), many).unwrap();
    std::fs::write(folder.join("few.csv"), few).unwrap();
}

fn session(folder: &Path, cache: Option<PathBuf>) -> Session {
    let database = Some(folder.to_path_buf());
    Session::new(Config { threads: 2, database, statistics_cache: cache, ..Config::default() })
        .unwrap()
}

/// Table, column, rows, distinct values, and whether they are cached.
fn analyzed(session: &mut Session, sql: &str) -> Vec<(String, String, i64, i64, bool)> {
    let Some(StatementResult::Rows(found)) = session.execute(sql).unwrap().pop() else {
        panic!("{sql}")
    };
    assert_eq!(found.names(), ["table", "column", "rows", "distinct", "most_common", "kept"]);
    let rows = found.batches().flat_map(|batch| {
        let batch = batch.unwrap();
        let text = |column: usize, row: usize| {
            batch.column(column).as_string_view().value(row).to_string()
        };
        let number =
            |column: usize, row: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
        let kept = batch.column(5).as_boolean();
        (0..batch.num_rows())
            .map(|row| {
                (text(0, row), text(1, row), number(2, row), number(3, row), kept.value(row))
            })
            .collect::<Vec<_>>()
    });
    rows.collect()
}

fn set(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap();
}

/// The estimated number of groups of the large table by its key.
fn groups_expected(session: &mut Session) -> f64 {
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM (SELECT key FROM many GROUP BY key) AS m LEFT JOIN few ON k = key";
    let Some(StatementResult::Text(text)) = session.execute(sql).unwrap().pop() else {
        panic!("{sql}")
    };
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("= reduce_by_key(")).unwrap();
    let number = lines[at - 1].split(" estimated").next().unwrap().rsplit(' ').next().unwrap();
    number.trim_start_matches('(').parse().unwrap_or_else(|_| panic!("{}", lines[at - 1]))
}

fn within(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 0.03
}

#[test]
fn rows_and_distinct_values_of_all_columns_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    let all = analyzed(&mut session, "ANALYZE");
    assert_eq!(all.iter().filter(|row| row.0 == "few").count(), 1);
    let many = analyzed(&mut session, "ANALYZE many");
    assert_eq!(all.iter().filter(|row| row.0 == "many").cloned().collect::<Vec<_>>(), many);
    let wanted = [("id", 200_000.0), ("key", 100_001.0), ("seven", 7.0), ("name", 50_000.0)];
    for ((table, column, rows, distinct, kept), (name, count)) in many.iter().zip(wanted) {
        assert_eq!(
            (table.as_str(), column.as_str(), *rows, *kept),
            ("many", name, ROWS as i64, false)
        );
        assert!(within(*distinct as f64, count), "{column}: {distinct}");
    }
}

/// The most common values of the columns of a table.
fn most_common(session: &mut Session, table: &str) -> Vec<Option<String>> {
    let Some(StatementResult::Rows(found)) =
        session.execute(&format!("ANALYZE {table}")).unwrap().pop()
    else {
        panic!("{table}")
    };
    let columns = found.batches().map(|batch| batch.unwrap().column(4).clone());
    columns
        .flat_map(|column| {
            column.as_string_view().iter().map(|text| text.map(String::from)).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn common_values_are_told_with_their_shares() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let letters = ["long and longer", "b", "b", "", "b", "a", "a", "z"];
    let lines: String = letters.iter().map(|letter| format!("{letter},1.5\n")).collect();
    std::fs::write(folder.path().join("letters.csv"), format!("letter,number\n{lines}")).unwrap();
    let mut session = session(folder.path(), None);
    let found = most_common(&mut session, "letters");
    assert_eq!(
        found,
        [Some("b (37.5 %), a (25.0 %)".to_string()), Some("1.5 (100.0 %)".to_string())]
    );
    let found = most_common(&mut session, "many");
    let key = found[1].as_deref().unwrap();
    let share: f64 =
        key.strip_prefix("0 (").and_then(|rest| rest.strip_suffix(" %)")).unwrap().parse().unwrap();
    assert!((48.0..52.0).contains(&share), "{key}");
    assert_eq!(
        (found[0].as_deref(), found[2].as_deref().unwrap().matches(" %)").count()),
        (None, 5)
    );
    let long = "x".repeat(100);
    std::fs::write(folder.path().join("wide.csv"), format!("t\n{long}\n{long}\n")).unwrap();
    assert_eq!(most_common(&mut session, "wide"), [Some(format!("{}… (100.0 %)", "x".repeat(32)))]);
}

#[test]
fn columns_of_every_kind_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (json, empty) = (folder.path().join("nested.json"), folder.path().join("empty.csv"));
    let lines = (0..100)
        .map(|i| format!("{{\"a\": {{\"b\": {}}}, \"c\": [1, {}], \"d\": null}}\n", i % 5, i % 3));
    std::fs::write(json, lines.collect::<String>()).unwrap();
    std::fs::write(empty, "x,y\n").unwrap();
    let mut session = session(folder.path(), None);
    let found = analyzed(&mut session, "ANALYZE");
    let distinct = |table: &str| {
        let of = found.iter().filter(|row| row.0 == table).map(|row| (row.2, row.3));
        of.collect::<Vec<_>>()
    };
    assert_eq!(distinct("empty"), [(0, 0), (0, 0)]);
    assert_eq!(distinct("nested"), [(100, 5), (100, 3), (100, 0)]);
}

#[test]
fn what_was_counted_is_kept_until_the_table_changes() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    database(folder.path());
    let open = || session(folder.path(), Some(cache.path().to_path_buf()));
    let mut first = open();
    let sampled = groups_expected(&mut first);
    assert!(!within(sampled, 100_001.0), "a sample sees too few of these keys: {sampled}");
    assert!(analyzed(&mut first, "ANALYZE").iter().all(|row| row.4));
    assert!(within(groups_expected(&mut first), 100_001.0));
    let mut second = open();
    assert!(within(groups_expected(&mut second), 100_001.0));
    // All keys are equal now.
    let rows = (0..ROWS).map(|id| format!("{id},1,2,x\n"));
    let text: String = std::iter::once("id,key,seven,name\n".to_string()).chain(rows).collect();
    std::fs::write(folder.path().join("many.csv"), text).unwrap();
    for session in [&mut first, &mut second, &mut open()] {
        assert_eq!(groups_expected(session), 1.0);
    }
}

#[test]
fn what_cannot_be_analyzed_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    set(&mut session, "CREATE VIEW v AS SELECT * FROM many");
    for (sql, code, advice) in [
        ("ANALYZE nothing", Code::Semantic, "SHOW TABLES"),
        ("ANALYZE v", Code::Unsupported, "it is a view"),
        ("ANALYZE few (k)", Code::Unsupported, "the name of a table"),
    ] {
        let error = session.execute(sql).unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
        assert!(error.message().contains(advice), "{sql}: {error}");
    }
    set(&mut session, "SET statistics = metadata");
    let error = session.execute("ANALYZE few").unwrap_err();
    assert!(error.message().contains("SET statistics = samples"), "{error}");
}

#[test]
fn deadlines_and_cancelling_reach_it() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    set(&mut session, "SET deadline = '0.000001'");
    let error = session.execute("ANALYZE many").unwrap_err();
    assert!(error.message().contains("deadline"), "{error}");
    set(&mut session, "RESET deadline");
    let (cancel, done) = (session.cancel_handle(), Arc::new(AtomicBool::new(false)));
    let pressing = std::thread::spawn({
        let done = done.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                cancel.cancel();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    // A statement that ends before the cancellation does not count.
    let ended = (0..1_000).find_map(|_| session.execute("ANALYZE many").err());
    done.store(true, Ordering::Relaxed);
    pressing.join().unwrap();
    assert_eq!(ended.map(|error| error.code()), Some(Code::Cancelled));
    // The cancelled statement has left no statistics.
    assert_eq!(analyzed(&mut session, "ANALYZE many").len(), 4);
}

#[test]
fn few_rows_of_a_large_table_are_held_without_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    let sql = "SELECT name FROM many WHERE id % 5000 = 1";
    let Some(StatementResult::Rows(found)) = session.execute(sql).unwrap().pop() else {
        panic!("{sql}")
    };
    assert_eq!(found.row_count(), 40);
    let bytes: usize = found.batches().map(|batch| batch.unwrap().get_array_memory_size()).sum();
    assert!(bytes < 20_000, "{bytes}");
}
