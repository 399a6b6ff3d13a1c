//! Join key filters: they are used only if most probe tuples have no match, and results are
//! unchanged.

use std::fmt::Write;
use std::path::Path;

use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

const FACTS: usize = 200_000;
const KEYS: usize = 1_000;

/// `facts`, whose `k` is NULL or one of the keys of `dims`; of these, one in a hundred has a `d`.
fn tables(folder: &Path) {
    let mut facts = String::from("i,k,t,u\n");
    for i in 0..FACTS {
        let key = if i % 11 == 0 { String::new() } else { (i * 7 % KEYS).to_string() };
        writeln!(facts, "{i},{key},text {},{}", i % 977, i % 13).unwrap();
    }
    let mut dims = String::from("id,d,name\n");
    for id in 0..KEYS {
        writeln!(dims, "{id},{},name {id}", id % 100).unwrap();
    }
    let mut session = Session::new(Config::default()).unwrap();
    for (name, text) in [("facts", facts), ("dims", dims)] {
        let csv = folder.join(format!("{name}.csv"));
        std::fs::write(&csv, text).unwrap();
        let parquet = folder.join(format!("{name}.parquet"));
        session.execute(&format!("COPY '{}' TO '{}'", csv.display(), parquet.display())).unwrap();
        std::fs::remove_file(csv).unwrap();
    }
}

fn answer(session: &mut Session, sql: &str) -> String {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows).join("\n"),
        Some(StatementResult::Text(text)) => text,
        other => panic!("{sql}: {other:?}"),
    }
}

fn answer_none(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn blocks_out_of_bounds_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let database = Some(folder.path().into());
    let mut session = Session::new(Config { database, ..Config::default() }).unwrap();
    answer_none(&mut session, "CREATE TEMP TABLE facts AS SELECT * FROM facts");
    answer_none(
        &mut session,
        "CREATE TEMP TABLE few AS SELECT 199990 + id AS j FROM dims WHERE id < 3",
    );
    for sql in [
        "SELECT count(*), min(i) FROM facts WHERE i BETWEEN 199990 AND 199992",
        "SELECT count(*), min(i) FROM facts JOIN few ON i = j",
    ] {
        assert_eq!(answer(&mut session, sql), "3 199990", "{sql}");
        let ran = answer(&mut session, &format!("EXPLAIN ANALYZE {sql}"));
        assert!(ran.contains("rows skipped"), "{sql}\n{ran}");
    }
    assert_eq!(
        answer(&mut session, "SELECT count(*) FROM facts WHERE i < 0 OR k IS NULL"),
        "18182"
    );
}

#[test]
fn filters_stand_where_most_tuples_have_no_match() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let matches = |i: usize| !i.is_multiple_of(11) && (i * 7 % KEYS) % 100 == 7;
    let (count, sum) =
        (0..FACTS).filter(|i| matches(*i)).fold((0, 0), |(count, sum), i| (count + 1, sum + i));
    for (threads, chunk_rows, in_memory) in
        [(1, 2_048, false), (2, 100, false), (1, 2_048, true), (2, 100, true)]
    {
        let database = Some(folder.path().into());
        let mut session =
            Session::new(Config { threads, chunk_rows, database, ..Config::default() }).unwrap();
        if in_memory {
            for name in ["facts", "dims"] {
                answer_none(
                    &mut session,
                    &format!("CREATE TEMP TABLE {name} AS SELECT * FROM {name}"),
                );
            }
        }
        let select = "SELECT count(u), sum(i), min(t) <= max(t) FROM facts";
        for (join, filtered) in [
            (format!("{select} JOIN dims ON k = id WHERE d = 7"), true),
            (format!("{select} WHERE k IN (SELECT id FROM dims WHERE d = 7)"), true),
            (
                format!("{select} JOIN dims ON k = id WHERE d = 7 AND t >= 'text' AND i % 2 < 2"),
                true,
            ),
            (format!("{select} JOIN dims ON k = id"), false),
            (format!("{select} LEFT JOIN (SELECT * FROM dims WHERE d = 7) d ON k = id"), false),
            (format!("{select} WHERE k NOT IN (SELECT id FROM dims WHERE d = 7)"), false),
        ] {
            let plan = answer(&mut session, &format!("EXPLAIN (PLATFORM local) {join}"));
            assert_eq!(plan.contains("semi_join_filter"), filtered, "{join}\n{plan}");
            if filtered {
                assert_eq!(answer(&mut session, &join), format!("{count} {sum} true"), "{join}");
                let ran = answer(&mut session, &format!("EXPLAIN ANALYZE {join}"));
                assert!(ran.contains("rows dropped without match"), "{join}\n{ran}");
                // The filter drops rows, so 110 times fewer rows than estimated are not an error.
                assert!(!ran.contains("!!"), "{join}\n{ran}");
            }
        }
    }
}

#[test]
fn each_branch_of_a_union_is_filtered() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let database = Some(folder.path().into());
    let mut session = Session::new(Config { database, ..Config::default() }).unwrap();
    let one = "SELECT count(*) FROM facts JOIN dims ON k = id WHERE d = 7";
    let both = "SELECT count(*) FROM (SELECT k, i FROM facts UNION ALL SELECT k, u FROM facts) b
                JOIN dims ON k = id WHERE d = 7";
    let plan = answer(&mut session, &format!("EXPLAIN (PLATFORM local) {both}"));
    assert_eq!(plan.matches("= semi_join_filter(").count(), 2, "{plan}");
    assert_eq!(plan.matches("= key_filter(").count(), 1, "{plan}");
    let count: u64 = answer(&mut session, one).parse().unwrap();
    assert!(count > 0);
    assert_eq!(answer(&mut session, both), (2 * count).to_string());
}

#[test]
fn the_cheaper_of_two_selective_filters_is_first() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let database = Some(folder.path().into());
    let mut session = Session::new(Config { database, ..Config::default() }).unwrap();
    answer_none(
        &mut session,
        "CREATE TEMP TABLE pairs AS SELECT i AS j, u AS v FROM facts WHERE i % 401 = 3",
    );
    let sql = "SELECT count(*), sum(i) FROM facts, dims, pairs WHERE k = id AND d = 7 AND i = j AND u = v";
    // One key in a hundred, and one pair in 401, which costs two columns and a hash.
    let plan = answer(&mut session, &format!("EXPLAIN (PLATFORM local) {sql}"));
    let filters = plan.split("filters = [").nth(1).unwrap_or_default();
    let (key, pair) = (filters.find("keys = [k]"), filters.find("keys = [i, u]"));
    assert!(key.is_some() && pair.is_some() && key < pair, "{plan}");
    let matches = |i: &usize| !i.is_multiple_of(11) && (i * 7 % KEYS) % 100 == 7;
    let found = (0..FACTS).filter(|i| *i % 401 == 3 && matches(i));
    let (count, sum) = found.fold((0, 0), |(count, sum), i| (count + 1, sum + i));
    assert_eq!(answer(&mut session, sql), format!("{count} {sum}"));
}
