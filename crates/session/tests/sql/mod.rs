//! Runs the SQL scripts of `tests/sql` (README.md there) and compares the expected results.

mod compare;
mod script;
mod values;
mod wrong;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use script::Record;
use tessera_codegen::Tier;
use tessera_session::{Config, Session};

/// The directory of the scripts.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sql");

/// Set: all combinations of tier, threads, chunk size and rules; else six that cover every pair.
const FULL: &str = "TESSERA_SQL_FULL";

/// If set, only scripts whose names start with its value run.
const ONLY: &str = "TESSERA_SQL_ONLY";

/// If set to a file name, the test writes a line to it for each record that fails, or that passes
/// in `open/`.
const MOVED: &str = "TESSERA_SQL_MOVED";

/// The number of failures to print in full.
const SHOWN_MAX: usize = 40;

/// The deadline of statements.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting {
    tier: Tier,
    threads: usize,
    chunk_rows: usize,
    /// Whether rewrite rules are enabled.
    rules: bool,
}

/// Six settings that cover each pair of values.
const CHOSEN: [Setting; 6] = {
    const fn of(tier: Tier, threads: usize, chunk_rows: usize, rules: bool) -> Setting {
        Setting { tier, threads, chunk_rows, rules }
    }
    [
        of(Tier::Vectorized, 1, 1, true),
        of(Tier::Compiled, 2, 1, false),
        of(Tier::Vectorized, 2, 7, true),
        of(Tier::Compiled, 1, 7, false),
        of(Tier::Vectorized, 1, 8192, false),
        of(Tier::Compiled, 2, 8192, true),
    ]
};

/// Every setting.
fn all_settings() -> Vec<Setting> {
    let mut all = Vec::new();
    for tier in [Tier::Vectorized, Tier::Compiled] {
        for threads in [1, 2] {
            for chunk_rows in [1, 7, 8192] {
                all.extend([true, false].map(|rules| Setting { tier, threads, chunk_rows, rules }));
            }
        }
    }
    all
}

/// The settings that scripts run in. A build without LLVM omits those of the compiled tier.
fn settings() -> Vec<Setting> {
    let mut chosen = CHOSEN.to_vec();
    if std::env::var_os(FULL).is_some() {
        chosen.extend(all_settings().into_iter().filter(|setting| !CHOSEN.contains(setting)));
    }
    chosen.retain(|setting| cfg!(feature = "llvm") || setting.tier == Tier::Vectorized);
    chosen
}

#[test]
fn the_chosen_settings_cover_each_pair() {
    let pairs = |setting: &Setting| {
        let Setting { tier, threads, chunk_rows, rules } = setting;
        let values =
            [tier.to_string(), threads.to_string(), chunk_rows.to_string(), rules.to_string()];
        let pair = |(a, b): (usize, usize)| (a, values[a].clone(), b, values[b].clone());
        [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)].map(pair)
    };
    let covered: Vec<_> = CHOSEN.iter().flat_map(pairs).collect();
    for pair in all_settings().iter().flat_map(pairs) {
        assert!(covered.contains(&pair), "{pair:?}");
    }
}

/// The scripts of a directory, in order.
fn scripts(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&only))
        })
        .collect();
    found.sort();
    found
}

/// The failed records of a script, each with the first setting in which it fails.
fn failures(records: &[Record], settings: &[Setting]) -> BTreeMap<usize, String> {
    let mut failures = BTreeMap::new();
    for setting in settings {
        let config = Config {
            tier: setting.tier,
            threads: setting.threads,
            chunk_rows: setting.chunk_rows,
            deadline: Some(DEADLINE),
            ..Config::default()
        };
        let mut session = Session::new(config).unwrap();
        if !setting.rules {
            session.execute("set disabled_rules = 'all'").unwrap();
        }
        for (number, record) in records.iter().enumerate() {
            if let Err(complaint) = compare::run(&mut session, record) {
                failures
                    .entry(number)
                    .or_insert_with(|| format!("{complaint}\n  with {setting:?}"));
            }
        }
    }
    failures
}

/// Calls `work` for each path, two at a time.
fn each<T: Send>(paths: &[PathBuf], work: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let next = Mutex::new(paths.iter());
    let results = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let Some(path) = next.lock().unwrap().next() else { return };
            let result = work(path);
            results.lock().unwrap().push((path, result));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(worker);
        scope.spawn(worker);
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(path, _)| *path);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Panics with all failures, if there are any.
fn finish(what: &str, records: usize, complaints: &[(String, String)]) {
    if let Some(file) = std::env::var_os(MOVED) {
        let mut text = std::fs::read_to_string(&file).unwrap_or_default();
        for (place, complaint) in complaints {
            let _ = writeln!(text, "{place}\t{}", complaint.replace('\n', " | "));
        }
        std::fs::write(file, text).unwrap();
    }
    let shown: Vec<String> = complaints
        .iter()
        .take(SHOWN_MAX)
        .map(|(place, complaint)| format!("{place}: {complaint}"))
        .collect();
    assert!(
        complaints.is_empty(),
        "{} of {records} {what}:\n\n{}",
        complaints.len(),
        shown.join("\n\n")
    );
    println!("{records} {what}: none");
}

#[test]
fn records_give_what_their_judges_said() {
    let settings = settings();
    let paths = scripts(Path::new(SCRIPTS));
    assert!(!paths.is_empty(), "no scripts in {SCRIPTS}");
    let results = each(&paths, |path| {
        let records = script::read(path);
        let wrong = failures(&records, &settings);
        let wrong =
            wrong.into_iter().map(|(number, complaint)| (records[number].place(path), complaint));
        (records.len(), wrong.collect::<Vec<_>>())
    });
    let count = results.iter().map(|(count, _)| count).sum();
    let complaints: Vec<_> = results.into_iter().flat_map(|(_, wrong)| wrong).collect();
    finish("records give another answer than their judge", count, &complaints);
}

#[test]
fn open_records_still_fail() {
    let settings = settings();
    let paths = scripts(&Path::new(SCRIPTS).join("open"));
    let results = each(&paths, |path| {
        let records = script::read(path);
        let wrong = failures(&records, &settings);
        let mut complaints = Vec::new();
        for (number, record) in records.iter().enumerate() {
            let complaint = match (&record.cause, wrong.get(&number)) {
                (Some(_), None) => "passes; move it to where it belongs".to_string(),
                (None, Some(complaint)) => format!("has no cause, and fails: {complaint}"),
                _ => continue,
            };
            complaints.push((record.place(path), complaint));
        }
        (records.iter().filter(|record| record.cause.is_some()).count(), complaints)
    });
    let count: usize = results.iter().map(|(count, _)| count).sum();
    println!("{count} records are open faults");
    let complaints: Vec<_> = results.into_iter().flat_map(|(_, wrong)| wrong).collect();
    finish("open records are not as they should be", count, &complaints);
}
