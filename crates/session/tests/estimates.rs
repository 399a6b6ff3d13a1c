//! Samples of files, their cache, and the estimates in `EXPLAIN ANALYZE`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tessera_session::{Config, Session, StatementResult};

/// A fact table, in which 90 % of the rows have key 7, and a dimension of 100 keys.
fn database(folder: &Path) {
    let (mut facts, mut keys) = ("id,key\n".to_string(), "k,name\n".to_string());
    for id in 0..5_000 {
        let key = if id % 10 == 0 { id / 10 % 100 } else { 7 };
        writeln!(facts, "{id},{key}").unwrap();
    }
    for key in 0..100 {
        writeln!(keys, "{key},name {key}").unwrap();
    }
    std::fs::write(folder.join("fact.csv"), facts).unwrap();
    std::fs::write(folder.join("dim.csv"), keys).unwrap();
}

fn session(folder: &Path, cache: Option<PathBuf>) -> Session {
    let database = Some(folder.to_path_buf());
    Session::new(Config { threads: 1, database, statistics_cache: cache, ..Config::default() })
        .unwrap()
}

fn text(session: &mut Session, sql: &str) -> String {
    match session.execute(sql).unwrap().pop() {
        Some(StatementResult::Text(text) | StatementResult::Done(text)) => text,
        other => panic!("{sql}: {other:?}"),
    }
}

const QUERY: &str = "SELECT id FROM fact, dim WHERE key = k AND name = 'name 7'";

/// The comment above the first join.
fn join(session: &mut Session) -> String {
    let text = text(session, &format!("EXPLAIN ANALYZE {QUERY}"));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("= probe(")).unwrap();
    lines[at - 1].to_string()
}

#[test]
fn a_frequent_key_is_estimated_from_samples_only() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    let with = join(&mut session);
    assert!(with.contains("-- 4505 rows (4505 estimated)"), "{with}");
    text(&mut session, "SET statistics = metadata");
    let without = join(&mut session);
    assert!(without.contains("-- 4505 rows (!! ") && without.contains("off by"), "{without}");
    let all = text(&mut session, &format!("EXPLAIN ANALYZE {QUERY}"));
    assert!(all.contains("are off by more than 10x"), "{all}");
    let json = text(&mut session, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {QUERY}"));
    assert!(json.contains("\"estimate_far_off\": true"), "{json}");
}

#[test]
fn samples_are_kept_for_other_sessions_until_the_table_changes() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    database(folder.path());
    let kept = || {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let of = |cache: &Path| join(&mut session(folder.path(), Some(cache.to_path_buf())));
    let first = of(cache.path());
    let files = kept();
    assert_eq!(files.len(), 2, "{files:?}");
    let written = files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    for file in &files {
        std::fs::write(file, "damaged").unwrap();
    }
    let rows = |note: &str| note.split(", ").next().unwrap().to_string();
    assert_eq!(rows(&of(cache.path())), rows(&first));
    assert_eq!(files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>(), written);
    // The key becomes rare, and the cached sample is outdated.
    std::fs::write(folder.path().join("fact.csv"), "id,key\n1,7\n2,8\n").unwrap();
    let changed = of(cache.path());
    assert!(changed.contains("-- 1 rows (1 estimated)"), "{changed}");
    assert_eq!(kept().len(), 2);
}

#[test]
fn infinite_bounds_of_a_column_leave_no_table_out_of_a_join() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path(), None);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (numbers, keys) = (path("numbers.parquet"), path("keys.parquet"));
    let values = "(1, 73.25::double precision), (2, '-infinity'), (3, 'infinity')";
    text(&mut session, &format!("COPY (SELECT * FROM (VALUES {values}) v(a, d)) TO '{numbers}'"));
    text(&mut session, &format!("COPY (SELECT * FROM (VALUES (1), (2)) v(b)) TO '{keys}'"));
    let mut rows = |from: &str| {
        let from =
            from.replace("numbers", &format!("'{numbers}'")).replace("keys", &format!("'{keys}'"));
        match session.execute(&format!("SELECT x.a, y.a FROM {from}")).unwrap().pop() {
            Some(StatementResult::Rows(answer)) => answer.row_count(),
            other => panic!("{from}: {other:?}"),
        }
    };
    // The result of PostgreSQL.
    let full = "numbers x FULL JOIN numbers y ON x.d >= 61.5";
    assert_eq!(rows(full), 7);
    assert_eq!(rows(&format!("{full} JOIN keys k ON k.b = y.a")), 4);
    let more = "LEFT JOIN keys l ON l.b <> x.a JOIN keys m ON m.b = k.b";
    assert_eq!(rows(&format!("{full} JOIN keys k ON k.b = y.a {more}")), 6);
}

/// An expression that raises an error for some tuples (overflow, invalid number) is still a join
/// key if the alternative is a cross product.
#[test]
fn equalities_that_can_fail_are_join_keys() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    for sql in [
        "SELECT count(*) FROM fact a JOIN fact b ON a.id = b.id + 8",
        "SELECT count(*) FROM fact a, fact b WHERE a.key = b.key AND a.id = b.id + 8",
        "SELECT count(*) FROM fact a, fact b, dim WHERE a.id = b.id + 8 AND k * 2 = b.key",
        "SELECT count(*) FROM dim a, fact WHERE id = cast(substr(name, 6) AS int)",
    ] {
        let plan = text(&mut session, &format!("EXPLAIN {sql}"));
        let joins = plan.matches("= probe(").count();
        assert!(
            joins > 0 && !plan.contains("cartesian_product") && !plan.contains("nested_loop"),
            "{plan}"
        );
    }
    // Next to an equality of columns, it is a residual predicate.
    let sql = "SELECT count(*) FROM fact a, dim WHERE key = k AND 1 / (k - 7) = 0";
    let error = session.execute(sql).unwrap_err();
    assert!(error.message().contains("division by zero"), "{error}");
    let sql = "SELECT count(*) FROM fact a, dim WHERE key = k AND k > 7 AND id = 1 / (k - 7)";
    assert!(session.execute(sql).is_ok());
    // It is not evaluated for tuples that an earlier predicate drops.
    session.execute("SET disabled_rules = 'push_filter_join'").unwrap();
    let sql = "SELECT count(*) FROM fact a, dim WHERE key = k AND k > length(name) + id AND id = 1 / (k - 7)";
    assert!(session.execute(sql).is_ok());
    let sql = "SELECT count(*) FROM fact a, dim WHERE key = k AND k > length(name) + id AND 1 / (k - 7) = 9";
    assert!(session.execute(sql).is_ok());
}

/// Every pair is tried only where one side is tiny, or no condition is an inequality.
#[test]
fn inequalities_of_large_sides_do_not_try_every_pair() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let mut session = session(folder.path(), None);
    let mut joins = |sql: &str| {
        let plan = text(&mut session, &format!("EXPLAIN {sql}"));
        let count = |operator: &str| plan.matches(&format!("= {operator}(")).count();
        (count("inequality_join"), count("nested_loop"), count("sort"))
    };
    for (joined, expected) in [
        ("fact JOIN dim ON key < k", (1, 0, 1)),
        ("fact LEFT JOIN dim ON key BETWEEN k AND k + 2", (1, 0, 1)),
        ("fact x JOIN (SELECT * FROM fact LIMIT 9000) y ON x.id < y.key", (1, 0, 1)),
        ("fact, generate_series(1, 9000) g(y) WHERE id < y AND key > y - 5", (1, 0, 1)),
        ("generate_series(1, 300000) x(x), fact WHERE id < x AND key > x", (1, 0, 2)),
        ("fact WHERE EXISTS (SELECT 1 FROM dim WHERE k > key AND k <> id)", (1, 0, 1)),
        ("fact JOIN dim ON key + 3 < k", (1, 0, 1)),
        ("fact x, dim, fact y WHERE x.key * 2 > k AND x.id + 1 = y.id * 3", (1, 0, 1)),
        ("fact JOIN dim ON key < k AND id = k", (0, 0, 0)),
        ("fact JOIN dim ON key <> k", (0, 1, 0)),
        ("fact JOIN dim ON key < 7 AND k > 3", (0, 0, 0)),
        ("fact JOIN (SELECT * FROM dim LIMIT 9) d ON key < k", (0, 1, 0)),
        ("fact WHERE key > ALL (SELECT k FROM dim)", (0, 2, 0)),
    ] {
        let found = joins(&format!("SELECT count(*) FROM {joined}"));
        assert_eq!(found, expected, "{joined}");
    }
    text(&mut session, "SET disabled_rules = 'inequality_joins'");
    let plan = text(&mut session, "EXPLAIN SELECT count(*) FROM fact JOIN dim ON key < k");
    assert!(plan.contains("= nested_loop("), "{plan}");
}
