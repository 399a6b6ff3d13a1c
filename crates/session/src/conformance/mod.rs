//! A conformance suite for platforms, as a function that a test calls. It panics if a platform
//! breaks a rule.
//!
//! ```no_run
//! use tessera_session::conformance;
//!
//! let folder = std::env::temp_dir().join(format!("tessera-conformance-{}", std::process::id()));
//! // A platform of another crate adds its extension to the configuration, and its name.
//! conformance::platform(&folder, &mut |config| config);
//! std::fs::remove_dir_all(folder).unwrap();
//! ```
//!
//! A platform that needs a program of its own runs the same statements from there
//! (`tests/conformance.py`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tessera_formats::csv;
use tessera_types::{Code, Error, Result};

use crate::config::Config;
use crate::result::{QueryResult, StatementResult};
use crate::session::Session;

const TABLES: &str = include_str!("../../../../tests/platforms/tables.sql");
const STATEMENTS: &str = include_str!("../../../../tests/platforms/statements.sql");
const ERRORS: &str = include_str!("../../../../tests/platforms/errors.sql");

/// A statement that would run for hours, with little memory.
const ENDLESS: &str =
    "SELECT count(*) FROM many AS a, many AS b, many AS c WHERE a.v * b.v + c.v = -1";
/// The time until a cancelled statement must have ended.
const PROMPT: Duration = Duration::from_secs(5);
/// Times after which a statement is cancelled: while workers begin, and while they work.
const MOMENTS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(30), Duration::from_millis(300)];
/// Every so many of the statements also run with chunks of few tuples, and as plans.
const STEP: usize = 4;

/// Checks a platform: its rows and errors are those of platform `local`, cancelled statements end
/// soon, and nothing is left of a statement that has failed. `on_platform` gets a configuration
/// with a database, and sets the platform and its extensions. The suite writes to `folder`.
///
/// # Panics
/// The platform breaks a rule.
pub fn platform(folder: &Path, on_platform: &mut dyn FnMut(Config) -> Config) {
    let database = tables(folder);
    let temporary = folder.join("temporary");
    std::fs::create_dir_all(&temporary).expect("a folder for temporary files");
    let base = |chunk_rows: usize| Config {
        threads: 2,
        chunk_rows,
        database: Some(database.clone()),
        temp_directory: temporary.clone(),
        ..Config::default()
    };
    let open = |config| Session::new(config).expect("a session");
    let mut local = open(base(Config::default().chunk_rows));
    let mut there = open(on_platform(base(Config::default().chunk_rows)));
    let files = files_below(folder);
    for sql in statements(STATEMENTS) {
        assert_eq!(answer(&mut there, &sql), answer(&mut local, &sql), "{sql}");
    }
    for sql in statements(STATEMENTS).iter().step_by(STEP) {
        plan_runs(&mut there, sql);
    }
    errors(&mut there, &mut local);
    cancellation(&mut there);
    half_read(&mut there);
    second_session(&there);
    assert_eq!(files_below(folder), files, "files that statements have left");
    drop(there);
    let mut few = open(on_platform(base(7)));
    for sql in statements(STATEMENTS).iter().skip(1).step_by(STEP) {
        assert_eq!(answer(&mut few, sql), answer(&mut local, sql), "in chunks of 7: {sql}");
    }
    drop(few);
    assert_eq!(files_below(folder), files, "files that a session has left");
}

/// Writes the tables and returns their database.
fn tables(folder: &Path) -> PathBuf {
    let database = folder.join("database");
    for name in ["many", "skewed", "gaps", "one", "empty", "nested"] {
        std::fs::create_dir_all(database.join(name)).expect("a folder for a table");
    }
    let mut session = Session::new(Config { threads: 2, ..Config::default() }).expect("a session");
    let path = database.to_str().expect("a path in UTF-8");
    for sql in statements(&TABLES.replace("FOLDER", path)) {
        session.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    database
}

/// The statements of a file, without its comments.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split(';').map(str::trim).filter(|sql| !sql.is_empty()).map(str::to_string).collect()
}

/// The rows of a statement as lines, sorted where it has no order.
fn answer(session: &mut Session, sql: &str) -> Vec<String> {
    let results = session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    match results.into_iter().last() {
        Some(StatementResult::Rows(rows)) => lines(&rows, sql),
        other => panic!("{sql} returns no rows: {other:?}"),
    }
}

fn lines(rows: &QueryResult, sql: &str) -> Vec<String> {
    let mut text = Vec::new();
    for batch in rows.batches() {
        csv::write_batch(&batch.expect("a batch"), &mut text).expect("lines in memory");
    }
    let mut lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(Into::into).collect();
    // The order of a subquery, or of an aggregate's arguments, ends with a parenthesis.
    if !sql.rsplit(')').next().is_some_and(|end| end.contains("ORDER BY")) {
        lines.sort();
    }
    lines
}

/// A plan of the platform, printed and parsed again, gives the rows of its statement.
fn plan_runs(session: &mut Session, sql: &str) {
    let platform = session.platform.name();
    let explained = session.execute(&format!("EXPLAIN (PLATFORM {platform}) {sql}"));
    let explained = explained.unwrap_or_else(|error| panic!("EXPLAIN {sql}: {error}"));
    let [StatementResult::Text(plan)] = &explained[..] else { panic!("{sql}: {explained:?}") };
    let rows = session.run_plan(plan).unwrap_or_else(|error| panic!("{plan}: {error}"));
    assert_eq!(lines(&rows, sql), answer(session, sql), "{plan}");
}

/// An error of one worker is the statement's, and the session goes on.
fn errors(there: &mut Session, local: &mut Session) {
    for sql in statements(ERRORS) {
        let expected = failure(local, &sql);
        let found = failure(there, &sql);
        assert_eq!(found.code(), expected.code(), "{sql}: {found}");
        // A platform may say which worker has raised it.
        assert!(found.message().ends_with(expected.message()), "{sql}: {found}, not {expected}");
        goes_on(there, &sql);
    }
}

fn failure(session: &mut Session, sql: &str) -> Error {
    match session.execute(sql) {
        Err(error) => error,
        Ok(results) => panic!("{sql} does not fail: {results:?}"),
    }
}

/// A cancelled statement ends soon, and so does one whose deadline has passed.
fn cancellation(session: &mut Session) {
    for moment in MOMENTS {
        let cancel = session.cancel_handle();
        let started = Instant::now();
        let error = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(moment);
                // The statement may not have begun yet.
                while !cancel.cancel() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            failure(session, ENDLESS)
        });
        assert_eq!(error.code(), Code::Cancelled, "cancelled after {moment:?}: {error}");
        let took = started.elapsed();
        assert!(took < moment + PROMPT, "cancelled after {moment:?}, ended after {took:?}");
        goes_on(session, ENDLESS);
    }
    done(session.execute("SET deadline = '0.05'"));
    let started = Instant::now();
    let error = failure(session, ENDLESS);
    assert!(error.code() == Code::Cancelled && started.elapsed() < PROMPT, "{error}");
    done(session.execute("RESET deadline"));
    goes_on(session, "a deadline");
}

/// The next statement is right where only some rows of one have been read.
fn half_read(session: &mut Session) {
    let sql =
        "SELECT a.v, b.t FROM many AS a JOIN skewed AS s ON a.k = s.k JOIN many AS b ON b.v = s.v";
    for batches in [0, 1] {
        let mut rows = session.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        for batch in rows.by_ref().take(batches) {
            assert!(batch.is_ok_and(|batch| batch.num_rows() > 0));
        }
        drop(rows);
        goes_on(session, "rows that are not read");
    }
}

/// The session holds no memory of its last statement, and runs others.
fn goes_on(session: &mut Session, after: &str) {
    let stopped = session.cancel_handle().stopped();
    let held_bytes = stopped.map_or(0, |stopped| stopped.held_bytes);
    assert_eq!(held_bytes, 0, "bytes that are held after {after}");
    let sql = "SELECT count(*), sum(v), count(DISTINCT k) FROM many";
    assert_eq!(answer(session, sql), ["10000,49995000,1009"], "after {after}");
}

/// A platform runs several statements at once, or says that it does not.
fn second_session(session: &Session) {
    let name = session.platform.name();
    match session.beside() {
        Ok(mut other) => goes_on(&mut other, "another session"),
        Err(error) => {
            assert!(!session.platform.concurrent_statements(), "{error}");
            assert!(error.message().contains(name), "{error}");
        }
    }
}

fn done(result: Result<Vec<StatementResult>>) {
    result.expect("a setting");
}

/// All files below a folder, sorted.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => files.push(path),
            }
        }
    }
    files.sort();
    files
}
