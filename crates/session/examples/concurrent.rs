//! Runs queries of TPC-H one after another and all at once, and a short one beside hogs; prints the
//! times as lines of JSON, of which `bench/concurrent` makes a page.
//!
//! `concurrent DIRECTORY THREADS REPEAT QUERY…` with texts of queries in files; the first one is
//! the short one.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use arrow::compute::concat_batches;
use serde_json::json;
use tessera_session::{Config, Session, StatementResult};
use tessera_types::Code;

/// A statement that does not end by itself and keeps all workers busy.
const HOG: &str = "SELECT count(*) FROM lineitem a, lineitem b WHERE a.l_tax + b.l_tax < 0";
const HOGS: [usize; 3] = [0, 1, 4];
/// Runs of the short query beside hogs, for each repetition.
const SHORT_RUNS: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, repeat, files @ ..] = &arguments[..] else {
        eprintln!("usage: concurrent DIRECTORY THREADS REPEAT QUERY…");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a whole number");
    let queries: Vec<String> =
        files.iter().map(|file| std::fs::read_to_string(file).expect("a file")).collect();
    let database = Some(Path::new(folder).into());
    let config = Config { threads: number(threads), database, ..Config::default() };
    let mut first = Session::new(config).expect("a session");
    let expected: Vec<String> = queries.iter().map(|sql| run(&mut first, sql).0).collect();
    for _ in 0..number(repeat) {
        let started = Instant::now();
        let alone: Vec<f64> = queries
            .iter()
            .zip(&expected)
            .map(|(sql, answer)| {
                let (found, took) = run(&mut first, sql);
                assert_eq!(&found, answer);
                milliseconds(took)
            })
            .collect();
        let one_after_another = milliseconds(started.elapsed());
        let (all_at_once, together) = at_once(&first, &queries, &expected);
        println!(
            "{}",
            json!({ "one_after_another_ms": one_after_another, "at_once_ms": all_at_once, "alone": alone, "together": together })
        );
        for hogs in HOGS {
            println!(
                "{}",
                json!({ "hogs": hogs, "short_ms": beside_hogs(&first, &queries[0], hogs) })
            );
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The answer as text, and the time of the statement alone.
fn run(session: &mut Session, sql: &str) -> (String, Duration) {
    let started = Instant::now();
    let results = session.execute(sql).expect("an answer");
    let took = started.elapsed();
    let answers = results.iter().map(|result| match result {
        StatementResult::Rows(rows) => {
            let batches: Vec<_> = rows.batches().map(|batch| batch.expect("rows")).collect();
            format!("{:?}", concat_batches(&rows.schema(), &batches).expect("one batch"))
        }
        _ => String::new(),
    });
    (answers.collect(), took)
}

/// All queries at once: the time until the last has ended, and each one's own.
fn at_once(first: &Session, queries: &[String], expected: &[String]) -> (f64, Vec<f64>) {
    let begin = Barrier::new(queries.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = queries
            .iter()
            .zip(expected)
            .map(|(sql, answer)| {
                let (mut session, begin) = (first.beside().expect("a session"), &begin);
                scope.spawn(move || {
                    begin.wait();
                    let (found, took) = run(&mut session, sql);
                    assert_eq!(&found, answer);
                    milliseconds(took)
                })
            })
            .collect();
        // Before the others go on: this thread may get a core late.
        let started = Instant::now();
        begin.wait();
        let each = threads.into_iter().map(|thread| thread.join().expect("an answer")).collect();
        (milliseconds(started.elapsed()), each)
    })
}

/// Times of a short query while so many hogs run.
fn beside_hogs(first: &Session, sql: &str, hogs: usize) -> Vec<f64> {
    std::thread::scope(|scope| {
        let cancels: Vec<_> = (0..hogs)
            .map(|_| {
                let mut hog = first.beside().expect("a session");
                let cancel = hog.cancel_handle();
                (scope.spawn(move || hog.execute(HOG).map_err(|error| error.code())), cancel)
            })
            .collect();
        for (hog, cancel) in &cancels {
            while !hog.is_finished()
                && cancel.progress().is_none_or(|progress| progress.morsels == 0)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        let mut session = first.beside().expect("a session");
        let times = (0..SHORT_RUNS).map(|_| milliseconds(run(&mut session, sql).1)).collect();
        for (hog, cancel) in cancels {
            cancel.cancel();
            // A hog that ended by itself did not load the workers until the end of the measurement.
            let ended = hog.join().expect("a hog");
            assert!(matches!(ended, Err(Code::Cancelled)), "a hog was not there until the end");
        }
        times
    })
}
