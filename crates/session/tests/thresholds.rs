//! Top-k queries with threshold filters in scans: the result equals that of a full sort with a
//! limit.

use std::fmt::Write;
use std::path::Path;

use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

const FILES: usize = 12;
const ROWS: usize = 700;

fn mixed(i: usize) -> usize {
    (i.wrapping_add(1))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d)
        % 10_007
}

/// Files with disjoint ranges of `a`, `d` and `s`, like row groups of a sorted table; `b` is
/// random.
fn files(folder: &Path) {
    let mut session = Session::new(Config::default()).unwrap();
    for file in 0..FILES {
        let mut csv = String::from("i,a,b,d,f,s,t\n");
        for row in 0..ROWS {
            let i = file * ROWS + row;
            let null = |every: usize, value: String| {
                if mixed(i).is_multiple_of(every) { String::new() } else { value }
            };
            // In two of the files there are NULLs, one has nothing else.
            let a = match file {
                3 => String::new(),
                5 => null(3, i.to_string()),
                _ => (i / 2).to_string(),
            };
            let (b, d) =
                (null(7, (mixed(i) % 60).to_string()), format!("{}.{:02}", i / 100, i % 100));
            let f =
                if i == 4_000 { "NaN".to_string() } else { format!("{}.5e0", i as i64 - 3_000) };
            let s = format!("a common beginning and then {:05}", FILES * ROWS - i);
            writeln!(csv, "{i},{a},{b},{d},{f},{s},{}", null(2, format!("t{}", mixed(i) % 9)))
                .unwrap();
        }
        let (from, to) =
            (folder.join(format!("{file:02}.csv")), folder.join(format!("part_{file:02}.parquet")));
        std::fs::write(&from, csv).unwrap();
        let columns = "CAST(i AS bigint) AS i, CAST(a AS integer) AS a, CAST(b AS bigint) AS b, \
             CAST(d AS decimal(9,2)) AS d, CAST(f AS double) AS f, s, t";
        let sql =
            format!("COPY (SELECT {columns} FROM '{}') TO '{}'", from.display(), to.display());
        session.execute(&sql).unwrap_or_else(|error| panic!("{error}"));
        std::fs::remove_file(from).unwrap();
    }
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(result)) => texts(&result),
        other => panic!("{sql}: {other:?}"),
    }
}

/// A total of a query in the output of EXPLAIN ANALYZE.
fn counted(session: &mut Session, sql: &str, counter: &str) -> usize {
    let text = match session.execute(&format!("EXPLAIN ANALYZE {sql}")).unwrap().pop() {
        Some(StatementResult::Text(text)) => text,
        other => panic!("{sql}: {other:?}"),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("-- {counter}: ")));
    line.map_or(0, |figure| figure.parse().unwrap())
}

#[test]
fn the_first_ones_are_those_of_the_whole_sort() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let from = format!("'{}/part_*.parquet'", folder.path().display());
    let joined =
        format!("{from} x JOIN (SELECT DISTINCT b AS c FROM {from} WHERE b < 20) y ON x.b = y.c");
    let outer = format!(
        "{from} x LEFT JOIN (SELECT DISTINCT b AS c FROM {from} WHERE b < 20) y ON x.b = y.c"
    );
    let filtered =
        format!("(SELECT i, a AS b, b AS a, d, f, s, t FROM {from}) x WHERE t IS NOT NULL");
    let both = format!("(SELECT * FROM {from} UNION ALL SELECT * FROM {from}) x");
    let orders = [
        "a",
        "a DESC",
        "a NULLS FIRST",
        "a DESC NULLS LAST",
        "b, i",
        "b DESC NULLS LAST, i DESC",
        "d DESC",
        "d",
        "f DESC",
        "f",
        "s",
        "s DESC",
        "t NULLS FIRST, s",
        "t DESC, a NULLS FIRST, i",
    ];
    for (threads, chunk_rows) in [(1, 2_048), (2, 100)] {
        let mut session =
            Session::new(Config { threads, chunk_rows, ..Config::default() }).unwrap();
        for source in [&format!("{from} x"), &joined, &outer, &filtered, &both] {
            for order in orders {
                // The order of joined tuples with equal keys is undefined.
                let order =
                    if source.contains("JOIN") { format!("{order}, i") } else { order.to_string() };
                let whole = format!("SELECT x.i, x.a, x.s, x.f FROM {source} ORDER BY {order}");
                let all = rows(&mut session, &whole);
                for (limit, offset) in [(1, 0), (10, 3), (400, 2_000)] {
                    let sql = format!("{whole} LIMIT {limit} OFFSET {offset}");
                    let end = all.len().min(offset + limit);
                    assert_eq!(
                        rows(&mut session, &sql),
                        all[offset.min(end)..end],
                        "{sql}, {threads} workers"
                    );
                }
            }
        }
    }
}

#[test]
fn what_statistics_show_to_be_behind_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let from = format!("'{}/part_*.parquet'", folder.path().display());
    let mut session = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    let mut skipped = |sql: &str| counted(&mut session, sql, "rows skipped behind threshold");
    // One file has the first ones, in whichever order the files lie.
    for order in ["d", "d DESC", "s", "s DESC", "i"] {
        let sql = format!("SELECT * FROM {from} ORDER BY {order} LIMIT 5");
        assert_eq!(skipped(&sql), (FILES - 1) * ROWS, "{order}");
    }
    let nulls_first = format!("SELECT * FROM {from} ORDER BY a NULLS FIRST LIMIT 5");
    assert_eq!(skipped(&nulls_first), (FILES - 2) * ROWS, "two files have NULLs");
    let join = format!(
        "SELECT * FROM {from} x LEFT JOIN (SELECT 1 AS c) y ON x.b = y.c ORDER BY x.d LIMIT 5"
    );
    assert_eq!(skipped(&join), (FILES - 1) * ROWS);
    // A count needs all tuples.
    let grouped = format!("SELECT a, count(*) FROM {from} GROUP BY a ORDER BY a LIMIT 5");
    assert_eq!(skipped(&grouped), 0);
    // An error is raised wherever its tuple sorts.
    let error = session
        .execute(&format!("SELECT 1 / (i - 8000) FROM {from} ORDER BY i LIMIT 5"))
        .unwrap_err();
    assert!(error.to_string().contains("zero"), "{error}");
}
