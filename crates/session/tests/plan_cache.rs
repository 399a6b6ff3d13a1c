//! Plans that are used again: the rows are those of a new plan, whatever has changed.

use std::fmt::Write;
use std::path::Path;

use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

fn session(folder: &Path) -> Session {
    Session::new(Config { threads: 2, database: Some(folder.into()), ..Config::default() }).unwrap()
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap().pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows),
        other => panic!("{sql}: {other:?}"),
    }
}

fn write(folder: &Path, name: &str, values: std::ops::Range<i64>) {
    let mut text = "x\n".to_string();
    values.for_each(|value| writeln!(text, "{value}").unwrap());
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn a_text_is_planned_once() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "t.csv", 0..10);
    let mut session = session(folder.path());
    let query = "SELECT count(*), sum(x) FROM t";
    for reuses in 0..3 {
        assert_eq!(rows(&mut session, query), ["10 45"]);
        assert_eq!(session.kept_plans(), (1, reuses));
    }
    session.execute("SET plan_cache = off").unwrap();
    assert_eq!(rows(&mut session, query), ["10 45"]);
    assert_eq!(session.kept_plans(), (0, 2));
    session.execute("SET plan_cache = on").unwrap();
    for number in 0..200 {
        rows(&mut session, &format!("SELECT {number}"));
    }
    assert_eq!(session.kept_plans(), (128, 2));
    assert_eq!(rows(&mut session, "SELECT 199"), ["199"]);
    assert_eq!(session.kept_plans(), (128, 3));
}

/// Each change is made between two runs of the same text.
#[test]
fn what_changes_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("many")).unwrap();
    write(folder.path(), "t.csv", 0..10);
    write(folder.path(), "many/a.csv", 0..3);
    let mut session = session(folder.path());
    let many = format!("SELECT count(*) FROM read_csv('{}/many/*.csv')", folder.path().display());
    session.execute("CREATE VIEW v AS SELECT 1 AS y").unwrap();
    session.execute("CREATE MACRO m() AS 1").unwrap();
    session.execute("CREATE TEMP TABLE w AS SELECT 5 AS z").unwrap();
    session.execute("SET VARIABLE seen = 1").unwrap();
    session.execute("PREPARE p AS SELECT 1").unwrap();
    let file = |name: &'static str, values: std::ops::Range<i64>| {
        let folder = folder.path().to_path_buf();
        move |_: &mut Session| write(&folder, name, values.clone())
    };
    let sql = |sql: &'static str| move |session: &mut Session| drop(session.execute(sql).unwrap());
    type Change = Box<dyn Fn(&mut Session)>;
    let cases: Vec<(&str, &str, Change, &str)> = vec![
        ("SELECT count(*) FROM t", "10", Box::new(file("t.csv", 0..11)), "11"),
        ("SELECT count(*) FROM many", "3", Box::new(file("many/b.csv", 0..4)), "7"),
        (&many, "7", Box::new(file("many/c.csv", 0..1)), "8"),
        ("SELECT * FROM v", "1", Box::new(sql("CREATE OR REPLACE VIEW v AS SELECT 2 AS y")), "2"),
        ("SELECT m()", "1", Box::new(sql("CREATE OR REPLACE MACRO m() AS 2")), "2"),
        (
            "SELECT z FROM w",
            "5",
            Box::new(sql("CREATE OR REPLACE TEMP TABLE w AS SELECT 6 AS z")),
            "6",
        ),
        ("SELECT getvariable('seen')", "1", Box::new(sql("SET VARIABLE seen = 2")), "2"),
        ("EXECUTE p", "1", Box::new(sql("DEALLOCATE p; PREPARE p AS SELECT 2")), "2"),
        (
            "SELECT '2020-01-01'::timestamptz::text",
            "2020-01-01 00:00:00+00",
            Box::new(sql("SET time_zone = 'Europe/Berlin'")),
            "2020-01-01 00:00:00+01",
        ),
        ("SELECT count(*) FROM information_schema.tables", "4", Box::new(file("u.csv", 0..1)), "5"),
        (
            "SELECT count(*) FROM (PIVOT t ON x USING count(*))",
            "1",
            Box::new(file("t.csv", 0..2)),
            "1",
        ),
    ];
    for (query, before, change, after) in cases {
        for _ in 0..2 {
            assert_eq!(rows(&mut session, query), [before], "{query}");
        }
        change(&mut session);
        assert_eq!(rows(&mut session, query), [after], "{query}");
    }
    std::fs::remove_file(folder.path().join("t.csv")).unwrap();
    let error = session.execute("SELECT count(*) FROM t").unwrap_err().to_string();
    assert!(error.contains("unknown table 't'"), "{error}");
}

#[test]
fn moments_and_random_values_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path());
    for query in ["SELECT now()", "SELECT 'now'::timestamp", "SELECT random()", "SELECT uuid()"] {
        assert_ne!(rows(&mut session, query), rows(&mut session, query), "{query}");
    }
    assert_eq!(session.kept_plans(), (0, 0));
}
