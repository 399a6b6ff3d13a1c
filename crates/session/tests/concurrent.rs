//! Concurrent sessions: correct results, fair scheduling, shared memory.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use tessera_generate::{Options, Suite, generate};
use tessera_session::{Cancel, Config, Session, StatementResult};
use tessera_types::Code;

use crate::texts::texts;

/// A statement that runs until it is cancelled.
const ENDLESS: &str =
    "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_tax + b.l_tax + c.l_tax < 0";
/// The time limit of a test.
const PATIENCE: &str = "SET deadline = '120'";

fn tables() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { threads: NonZeroUsize::new(2).unwrap(), ..Options::default() };
    generate(Suite::Tpch, 0.01, folder.path(), &options).unwrap();
    folder
}

fn session(folder: &Path, threads: usize) -> Session {
    Session::new(Config { threads, database: Some(folder.into()), ..Config::default() }).unwrap()
}

fn answer(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows),
        other => panic!("{sql}: {other:?}"),
    }
}

/// Waits until a condition on the progress of a statement holds.
fn until(cancel: &Cancel, what: impl Fn(tessera_session::Progress) -> bool) {
    while !cancel.progress().is_some_and(&what) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn answers_are_the_same_side_by_side() {
    let folder = tables();
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries/tpch");
    let mut queries: Vec<String> = std::fs::read_dir(queries)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    queries.sort();
    let mut alone = session(folder.path(), 2);
    let expected: Vec<Vec<String>> = queries.iter().map(|sql| answer(&mut alone, sql)).collect();
    std::thread::scope(|scope| {
        for first in 0..8 {
            let (queries, expected) = (&queries, &expected);
            let mut session = alone.beside().unwrap();
            scope.spawn(move || {
                for turn in 0..queries.len() {
                    let number = (turn + first * 3) % queries.len();
                    assert_eq!(
                        answer(&mut session, &queries[number]),
                        expected[number],
                        "{}",
                        queries[number]
                    );
                }
            });
        }
    });
}

#[test]
fn a_short_query_has_its_turn_beside_those_that_do_not_end() {
    let folder = tables();
    for (threads, hogs) in [(1, 1), (2, 3)] {
        let mut short = session(folder.path(), threads);
        let sessions: Vec<Session> = (0..hogs).map(|_| short.beside().unwrap()).collect();
        let cancels: Vec<Cancel> = sessions.iter().map(Session::cancel_handle).collect();
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for mut hog in sessions {
                running.push(scope.spawn(move || hog.execute(ENDLESS).unwrap_err().code()));
            }
            cancels.iter().for_each(|cancel| until(cancel, |progress| progress.morsels > 0));
            short.execute(PATIENCE).unwrap();
            assert_eq!(
                answer(
                    &mut short,
                    "SELECT count(*) FROM nation JOIN region ON n_regionkey = r_regionkey"
                ),
                ["25"]
            );
            let groups = answer(
                &mut short,
                "SELECT count(*) FROM (SELECT o_custkey FROM orders GROUP BY 1)",
            );
            assert_eq!(groups, ["1000"]);
            assert!(running.iter().all(|hog| !hog.is_finished()));
            cancels.iter().for_each(|cancel| assert!(cancel.cancel()));
            for hog in running {
                assert_eq!(hog.join().unwrap(), Code::Cancelled);
            }
        });
    }
}

#[test]
fn a_statement_waits_for_memory_says_so_and_can_be_cancelled() {
    let folder = tables();
    let config = Config {
        threads: 2,
        memory_bytes: 20 << 20,
        process_memory_bytes: 20 << 20,
        database: Some(folder.path().into()),
        ..Config::default()
    };
    let mut first = Session::new(config).unwrap();
    let mut second = first.beside().unwrap();
    let (hog, waiting) = (first.cancel_handle(), second.cancel_handle());
    std::thread::scope(|scope| {
        let running = scope.spawn(move || first.execute(ENDLESS).unwrap_err().code());
        until(&hog, |progress| progress.morsels > 0);
        let (past_the_deadline, told) = std::sync::mpsc::channel();
        let queued = scope.spawn(move || {
            let cancelled = second.execute("SELECT 1").unwrap_err().code();
            second.execute("SET deadline = '0.05'").unwrap();
            let late = second.execute("SELECT 1").unwrap_err();
            second.execute(PATIENCE).unwrap();
            past_the_deadline.send(()).unwrap();
            (cancelled, late, answer(&mut second, "SELECT count(*) FROM region"))
        });
        until(&waiting, |progress| progress.waiting);
        assert!(waiting.cancel());
        told.recv().unwrap();
        until(&waiting, |progress| progress.waiting);
        assert!(!queued.is_finished() && hog.cancel());
        assert_eq!(running.join().unwrap(), Code::Cancelled);
        let (cancelled, late, regions) = queued.join().unwrap();
        assert_eq!(
            (cancelled, late.code(), &regions[..]),
            (Code::Cancelled, Code::Cancelled, &["5".to_string()][..])
        );
        assert!(late.message().contains("deadline"), "{late}");
    });
}

#[test]
fn who_asks_for_too_much_fails_alone() {
    let folder = tables();
    let mut modest = session(folder.path(), 2);
    let mut greedy = modest.beside().unwrap();
    greedy.execute("SET memory = '1MiB'").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..20 {
                let error = greedy.execute("SELECT l_comment FROM lineitem").unwrap_err();
                assert_eq!(error.code(), Code::Limit, "{error}");
            }
        });
        for _ in 0..20 {
            assert_eq!(
                answer(&mut modest, "SELECT count(DISTINCT l_orderkey) FROM lineitem"),
                ["15000"]
            );
        }
    });
}
