//! The compiled tier returns the same rows and errors as the vectorized one, for random aggregates
//! over random expressions.

mod generator;

use tessera_codegen::Tier;
use tessera_session::{Config, Session, StatementResult};

use self::generator::*;
use crate::texts::texts;

/// The default number of queries to compare. `TESSERA_TIER_QUERIES` overrides it.
const QUERIES: usize = 400;

/// The time limit of background compilation.
const PATIENCE_SECONDS: u64 = 300;

fn session(tier: Tier, chunk_rows: usize) -> Session {
    let native_functions = true;
    let config = Config {
        threads: 1,
        chunk_rows,
        memory_bytes: 1 << 30,
        tier,
        native_functions,
        ..Config::default()
    };
    let mut session = Session::new(config).unwrap();
    session.execute(FUNCTIONS).unwrap();
    session.execute(&format!("create temp table t as {ROWS}")).unwrap();
    session.execute(&format!("create temp table u as {OTHERS}")).unwrap();
    session
}

/// The rows or the error, as text.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    match session.execute(sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => Ok(texts(&result)),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => Err(format!("{}: {}", error.code().as_str(), error.message())),
    }
}

fn queries() -> usize {
    std::env::var("TESSERA_TIER_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(QUERIES)
}

/// Whether two results are equal up to the order of float additions. `cancels` if some values are
/// so large that the rest of their sum depends on the order.
fn is_close(
    one: &Result<Vec<String>, String>,
    other: &Result<Vec<String>, String>,
    cancels: bool,
) -> bool {
    let is_close_value = |(one, other): (&str, &str)| {
        let floats = one
            .parse::<f64>()
            .ok()
            .filter(|_| one.contains(['.', 'e']))
            .zip(other.parse::<f64>().ok());
        let is_near =
            |(one, other): (f64, f64)| cancels || (one - other).abs() <= 1e-9 * one.abs().max(1.0);
        one == other || floats.is_some_and(is_near)
    };
    let is_close_row = |(one, other): (&String, &String)| {
        let (one, other): (Vec<&str>, Vec<&str>) =
            (one.split(' ').collect(), other.split(' ').collect());
        one.len() == other.len() && one.into_iter().zip(other).all(is_close_value)
    };
    match (one, other) {
        (Ok(one), Ok(other)) => one.len() == other.len() && one.iter().zip(other).all(is_close_row),
        (one, other) => one == other,
    }
}

#[test]
fn both_tiers_and_a_virtual_gpu_agree() {
    let queries = queries();
    let mut random = Random(20_261_123);
    let (mut errors, mut compiled_rows, mut gpu_rows) = (0, 0, 0);
    for chunk_rows in [8_192, 61] {
        let (mut vectorized, mut compiled) =
            (session(Tier::Vectorized, chunk_rows), session(Tier::Compiled, chunk_rows));
        let mut on_a_gpu = session(Tier::Compiled, chunk_rows);
        // The environment may name NVIDIA's, `gpu`.
        let device =
            std::env::var("TESSERA_TEST_DEVICE").unwrap_or_else(|_| "virtual-gpu".to_string());
        on_a_gpu.execute(&format!("set device = '{device}'")).unwrap();
        for _ in 0..queries / 2 {
            let sql = random.query();
            let (expected, found) = (answer(&mut vectorized, &sql), answer(&mut compiled, &sql));
            assert_eq!(found, expected, "{sql}\nin chunks of {chunk_rows}");
            let found_there = answer(&mut on_a_gpu, &sql);
            assert!(
                is_close(&found_there, &expected, sql.contains("extreme")),
                "{sql}\nin chunks of {chunk_rows} on a GPU: {found_there:?} {expected:?}"
            );
            gpu_rows += rows_compiled(&mut on_a_gpu, &sql);
            errors += usize::from(found.is_err());
            compiled_rows += rows_compiled(&mut compiled, &sql);
        }
    }
    // Checks the quality of the random queries: some raise errors, far more do not, and compiled
    // code processes most of their tuples.
    assert!(errors * 20 > queries && errors * 2 < queries, "{errors} of {queries} raise errors");
    assert!(compiled_rows > queries * 1_000, "{compiled_rows} tuples went through compiled code");
    assert!(gpu_rows > queries * 500, "{gpu_rows} tuples went through the GPU's");
}

/// The number of compiled rows in the output of EXPLAIN ANALYZE.
fn rows_compiled(session: &mut Session, sql: &str) -> usize {
    let explained =
        session.execute(&format!("explain analyze {sql}")).map(|mut results| results.pop());
    let Ok(Some(StatementResult::Text(text))) = explained else { return 0 };
    let rows = |line: &str| line.strip_prefix("-- compiled rows: ")?.trim().parse::<usize>().ok();
    text.lines().filter_map(rows).sum()
}

#[test]
fn joins_are_looked_up_in_code() {
    let mut session = session(Tier::Compiled, 8_192);
    let mut probes = |sql: &str| {
        let explained =
            session.execute(&format!("explain analyze {sql}")).map(|mut results| results.pop());
        let Ok(Some(StatementResult::Text(text))) = explained else {
            panic!("{sql} is not explained")
        };
        let lines: Vec<&str> = text.lines().collect();
        let of_probe = |pair: &&[&str]| pair[1].contains(" = probe(");
        lines
            .windows(2)
            .filter(of_probe)
            .map(|pair| pair[0].contains("compiled rows"))
            .collect::<Vec<_>>()
    };
    assert_eq!(probes("select sum(weight * i) from t join u on middle = u_middle"), [true]);
    assert_eq!(probes("select sum(weight) from t join u on day = u_day and few = u_few"), [true]);
    // Lookups with NULL keys and strings are not compiled.
    assert_eq!(
        probes("select sum(weight) from t join u on large = u_large and small = u_small"),
        [false]
    );
    assert_eq!(probes("select sum(weight) from t join u on text = u_text"), [false]);
}

#[test]
fn what_is_hot_is_compiled_meanwhile() {
    let mut session = session(Tier::Auto, 2_048);
    let sql = "select sum(a.i * b.large) from t a, t b where a.i <= 4000";
    let first = answer(&mut session, sql);
    // The compiler runs in the background at low priority, so its duration depends on the machine.
    let started = std::time::Instant::now();
    while rows_compiled(&mut session, sql) == 0 {
        assert!(started.elapsed().as_secs() < PATIENCE_SECONDS, "nothing is compiled");
    }
    session.execute("set tier = vectorized").unwrap();
    assert_eq!(answer(&mut session, sql), first);
    assert_eq!(rows_compiled(&mut session, sql), 0);
}

#[test]
fn a_tuple_that_is_guarded_raises_nothing() {
    let mut session = session(Tier::Compiled, 2_048);
    for guarded in [
        "case when few <> 0 then i / few else 0 end",
        "case when few = 0 then 0 when i % few = 0 then i / few end",
        "coalesce(small, i / (small - small))",
    ] {
        let condition =
            if guarded.starts_with("coalesce") { " where small is not null" } else { "" };
        let sql = format!(
            "select sum({guarded}), count(*) filter (where few = 0 or i / few > 7) from t{condition}"
        );
        assert!(answer(&mut session, &sql).is_ok(), "{sql}");
        // What raises nothing stays compiled: all tuples, in the scan or behind it.
        assert!(rows_compiled(&mut session, &sql) >= 4_500, "{sql}");
    }
}

#[test]
fn what_is_too_large_stays_vectorized() {
    let mut session = session(Tier::Compiled, 2_048);
    let numbers: Vec<String> = (1..=3_000).map(|number| (number * 2).to_string()).collect();
    let sql = format!("select count(*) from t where large in ({})", numbers.join(", "));
    let small = "select count(*) from t where large > 0 and large <= 6000 and large % 2 = 0";
    assert_eq!(answer(&mut session, &sql), answer(&mut session, small));
    assert!(rows_compiled(&mut session, small) > rows_compiled(&mut session, &sql));
}

#[test]
fn many_queries_keep_few_pieces_of_code() {
    let mut session = session(Tier::Compiled, 2_048);
    let held = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0)
            * 4_096
    };
    // Each bit selects another operator. Queries that differ only in constants share code.
    let mut run = |from: usize, to: usize| {
        for number in from..to {
            let sign = |bit: i32| if number >> bit & 1 == 1 { 1 } else { -1 };
            let terms: String =
                (0..14).map(|bit| if sign(bit) == 1 { " + few" } else { " - few" }).collect();
            let expected = 5_000 * 5_001 / 2 + (0..14).map(sign).sum::<i64>() * 7_500;
            let found = answer(&mut session, &format!("select sum(i{terms}) from t")).unwrap();
            assert_eq!(found, [expected.to_string()]);
        }
    };
    let more = queries() * 2;
    run(0, 400);
    let before = held();
    run(400, 400 + more);
    assert!(held() < before + (64 << 20), "{} bytes more for {more} queries", held() - before);
}

#[test]
fn other_numbers_have_the_same_code() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
    let config = Config {
        threads: 1,
        memory_bytes: 1 << 30,
        tier: Tier::Compiled,
        code_cache: Some(folder.path().to_path_buf()),
        ..Config::default()
    };
    let mut session = Session::new(config).unwrap();
    session.execute(&format!("create temp table t as {ROWS}")).unwrap();
    let (mut before, mut vectorized) = (0, self::session(Tier::Vectorized, 2_048));
    // Constants of all types share code if their types are equal.
    for numbers in [[5, 10, 25, 40, 300], [7, 28, 99, 41, 301], [9, 12, 11, 80, 999]] {
        let [a, b, c, d, e] = numbers;
        let sql = format!(
            "select sum(price * 1.{c} - 0.{c}), sum(wide + {a}), max(double * cast({b} as double)),
                count(*) filter (where real > cast(0.{c} as real)), min(widest - {a})
            from t where middle between {a} and {e} and i in ({a}, {b}, {c}, {d}, {e}) or large < {e}
                and day >= date '1993-01-{b}' or tiny = -{a} and double < 0.{b}"
        );
        assert_eq!(answer(&mut session, &sql), answer(&mut vectorized, &sql), "{sql}");
        assert!(answer(&mut session, &sql).is_ok(), "{sql}");
        assert!(before == 0 || before == files(), "{sql}");
        before = files();
    }
    assert!(before >= 2, "{before} files");
}
