//! Tables in memory: rows and their order are preserved, and their memory is accounted and
//! released.

use tessera_session::{Config, QueryResult, Session, StatementResult};
use tessera_types::{Code, Error};

use crate::texts::texts;

/// More than one block of values of many types, with NULLs. Some columns are constant.
const ROWS: &str = "
    select i, cast(i % 100 - 50 as smallint) as small, cast(i as integer) * 1000 as wide, cast(7 as bigint) as same,
        case when i % 3 > 0 then i end as nulls, cast(null as integer) as none, cast(i * 7 as decimal(38,4)) as decimals, cast(i % 9 as decimal(12,2)) as prices,
        cast(i as double) / 3 as doubles, i % 5 = 0 as flags, date '1992-01-01' + cast(i % 2500 as integer) as days,
        timestamp '2020-01-01 00:00:00' + interval '1 second' * i as moments, 'text ' || cast(i % 13 as varchar) as few,
        case when i % 7 > 0 then 'a longer text of number ' || cast(i as varchar) end as many, [i, i + 1] as lists,
        i / 5000 as runs, 'run ' || cast(i / 3000 as varchar) as text_runs, i / 900 % 7 = 0 as flag_runs,
        case when i / 700 % 3 > 0 then cast(i / 700 as double) / 4 end as float_runs
    from generate_series(1, 70000) as t(i)";

fn session(threads: usize, chunk_rows: usize) -> Session {
    Session::new(Config { threads, chunk_rows, memory_bytes: 1 << 30, ..Config::default() })
        .unwrap()
}

fn done(session: &mut Session, sql: &str) -> String {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Done(text)) => text,
        other => panic!("{sql}: {other:?}"),
    }
}

fn rows(session: &mut Session, sql: &str) -> QueryResult {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(result)) => result,
        other => panic!("{sql}: {other:?}"),
    }
}

fn refused(session: &mut Session, sql: &str) -> Error {
    session.execute(sql).map(|_| ()).expect_err(sql)
}

#[test]
fn what_comes_out_is_what_went_in() {
    let queries = [
        "select * from T",
        "select i, few, nulls from T where days < date '1992-02-01' and few = 'text 3'",
        "select few, count(*), count(nulls), sum(decimals), min(many), max(moments) from T group by few order by few",
        "select count(*), sum(a.wide), min(b.many) from T a join T b on a.i = b.nulls where a.small > 40",
        "select small, same, none from T where flags and doubles > 20000 limit 5",
        "select count(*) from T where many is null or none is not null",
        "select count(*), sum(i / (i - 70000)) from T where i < 70000",
        "select i, runs, text_runs, flag_runs, float_runs from T where i % 1000 = 1",
        "select i, text_runs from T where runs = 7 and i % 100 = 1",
        "select count(*), min(i), max(many) from T where text_runs >= 'run 3' and text_runs < 'run 5' and 13 >= runs",
        "select text_runs, count(*), sum(i) from T where float_runs > 3 and few = 'text 3' group by text_runs order by 1",
        "select runs, flag_runs, count(float_runs) from T where flag_runs = true group by 1, 2 order by 1",
        "select count(*), sum(i) from T where runs <> 3 and runs is distinct from 5 and same = 7 and i > 0",
        "select count(*), sum(runs), min(text_runs) from T where float_runs is not distinct from 2.5 or same > 7",
        "select count(*), sum(i) from T where float_runs <> 5 and same = 7 and none is distinct from 3",
        "select count(*) from T where runs <> 2 and 100 / (runs - 2) > 20",
    ];
    for (threads, chunk_rows) in [(1, 2_048), (2, 2_048), (2, 61)] {
        let mut session = session(threads, chunk_rows);
        assert_eq!(done(&mut session, &format!("create temp table t as {ROWS}")), "SELECT 70000");
        for query in queries {
            let expected = texts(&rows(&mut session, &query.replace('T', &format!("({ROWS})"))));
            let found = texts(&rows(&mut session, &query.replace('T', "t")));
            assert_eq!(found, expected, "{query} with {threads} workers, chunks of {chunk_rows}");
        }
    }
}

#[test]
fn many_morsels_stay_in_order() {
    for threads in [1, 2] {
        let mut session = session(threads, 2_048);
        done(
            &mut session,
            "create temp table t as select i from generate_series(1, 500000) as s(i)",
        );
        done(&mut session, "create temp table again as select i from t");
        done(&mut session, "create temp table few as select i from again where i % 1000 = 1");
        let all: Vec<String> = (1..=500_000).map(|i| i.to_string()).collect();
        assert_eq!(texts(&rows(&mut session, "select i from again")), all);
        let few: Vec<&String> = all.iter().step_by(1_000).collect();
        assert_eq!(texts(&rows(&mut session, "select i from few")).iter().collect::<Vec<_>>(), few);
    }
}

#[test]
fn tables_are_made_replaced_and_dropped() {
    let mut session = session(2, 2_048);
    assert_eq!(
        done(&mut session, "create table t as select 1 as x union all select 2"),
        "SELECT 2"
    );
    assert!(refused(&mut session, "create table t as select 3 as x").message().contains("already"));
    assert!(refused(&mut session, "create view t as select 3 as x").message().contains("already"));
    done(&mut session, "create table if not exists t as select 3 as x");
    assert_eq!(texts(&rows(&mut session, "select sum(x) from t")), ["3"]);
    assert_eq!(
        done(&mut session, "create or replace table t as select x + 10 as x from t"),
        "SELECT 2"
    );
    assert_eq!(texts(&rows(&mut session, "select sum(x) from t")), ["23"]);
    assert_eq!(texts(&rows(&mut session, "show tables")), ["t temporary table"]);
    assert_eq!(
        done(&mut session, "create temp table empty as select * from t where x < 0"),
        "SELECT 0"
    );
    assert_eq!(texts(&rows(&mut session, "select count(*), sum(x) from empty")), ["0 NULL"]);
    // Other sessions do not see it.
    let mut other = session.beside().unwrap();
    refused(&mut other, "select * from t");
    done(&mut session, "drop table t");
    refused(&mut session, "select * from t");
    assert!(
        refused(&mut session, "create table u as select 1 as x, 2 as x")
            .message()
            .contains("duplicate column")
    );
    // A failed statement leaves no table.
    let failing = "create table u as select 1 / (x - 7) as y from generate_series(1, 10) as s(x)";
    assert_eq!(refused(&mut session, failing).code(), Code::DivisionByZero);
    assert!(refused(&mut session, "select * from u").message().contains('u'));
}

#[test]
fn what_they_take_is_counted_and_given_back() {
    let config = Config {
        memory_bytes: 40 << 20,
        process_memory_bytes: 40 << 20,
        threads: 2,
        ..Config::default()
    };
    let mut session = Session::new(config).unwrap();
    // A number takes 17 bits instead of 64, or none if all are equal.
    let numbers = "select i, i * 0 as zero from generate_series(1, 1000000) as t(i)";
    for _ in 0..20 {
        assert_eq!(
            done(&mut session, &format!("create or replace temp table t as {numbers}")),
            "SELECT 1000000"
        );
    }
    let long =
        "select repeat('x', 50) || cast(i as varchar) as s from generate_series(1, 250000) as t(i)";
    done(&mut session, &format!("create temp table first as {long}"));
    let error = refused(&mut session, &format!("create temp table second as {long}"));
    assert_eq!(error.code(), Code::Limit, "{error}");
    done(&mut session, "drop table first");
    done(&mut session, &format!("create temp table second as {long}"));
    assert_eq!(
        texts(&rows(&mut session, "select count(*), min(length(s)) from second")),
        ["250000 51"]
    );
}

#[test]
fn estimates_know_their_rows() {
    let mut session = session(2, 2_048);
    done(&mut session, &format!("create temp table t as {ROWS}"));
    for statistics in ["samples", "metadata", "samples"] {
        done(&mut session, &format!("set statistics = {statistics}"));
        let sql = "explain analyze select * from t a join t b on a.i = b.i where a.few = 'text 3'";
        let Some(StatementResult::Text(plan)) = session.execute(sql).unwrap().pop() else {
            panic!()
        };
        assert_eq!(plan.contains("!!"), statistics == "metadata", "{plan}");
    }
    assert_eq!(texts(&rows(&mut session, "analyze t")).len(), 19);
}

#[test]
fn one_null_does_not_cost_a_block_its_bounds() {
    let mut session = session(1, 8_192);
    done(
        &mut session,
        "create temp table t as select case when i = 5 then null else i end as a, case when i > 65536 then i end as b
         from generate_series(1, 131072) as t(i)",
    );
    let mut skipped = |condition: &str| {
        let sql = format!("explain analyze select count(*) from t where {condition}");
        let text = match session.execute(&sql).unwrap().pop() {
            Some(StatementResult::Text(text)) => text,
            other => panic!("{sql}: {other:?}"),
        };
        let figure = text
            .lines()
            .find_map(|line| line.strip_prefix("-- rows skipped: ").map(str::to_string));
        figure.map_or(0, |figure| figure.parse::<usize>().unwrap())
    };
    // The first block has a NULL in `a` and nothing else in `b`.
    assert_eq!(skipped("a > 100000"), 65_536);
    assert_eq!(skipped("a < 100"), 65_536);
    assert_eq!(skipped("a is null"), 65_536);
    assert_eq!(skipped("b > 0"), 65_536);
    assert_eq!(skipped("b is null"), 65_536);
    assert_eq!(skipped("a > 0"), 0);
}

#[test]
fn encodings_refute_what_bounds_do_not() {
    let mut session = session(1, 8_192);
    done(
        &mut session,
        "create temp table t as select i, case when i % 2 = 0 then 'a' when i <= 65536 then 'c' else 'b' end as s,
         case when i <= 65536 then i / 1000 * 10 else i end as runs, 5 as five from generate_series(1, 131072) as t(i)",
    );
    let mut found = |condition: &str| {
        let count =
            texts(&rows(&mut session, &format!("select count(*) from t where {condition}")))
                .remove(0);
        let sql = format!("explain analyze select count(*) from t where {condition}");
        let Some(StatementResult::Text(text)) = session.execute(&sql).unwrap().pop() else {
            panic!("{sql}")
        };
        let skipped = text
            .lines()
            .find_map(|line| line.strip_prefix("-- rows skipped: ").map(str::to_string));
        (count, skipped.map_or(0, |skipped| skipped.parse::<usize>().unwrap()))
    };
    // A dictionary of 'a' and 'c'; runs of multiples of ten.
    assert_eq!(found("s = 'b'"), ("32768".to_string(), 65_536));
    assert_eq!(found("s = 'bb'"), ("0".to_string(), 131_072));
    assert_eq!(found("runs = 65"), ("0".to_string(), 131_072));
    assert_eq!(found("runs = 60 and five = 5"), ("1000".to_string(), 65_536));
    assert_eq!(found("five = 5 and i > 0"), ("131072".to_string(), 0));
    // Blocks are not skipped if that could hide an error.
    assert_eq!(found("s <> 'c' and 7 / (i - 131073) <= 0").1, 0);
}
