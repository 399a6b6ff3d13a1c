//! What the platform does.

use std::any::Any;
use std::sync::Arc;

use tessera_engine::{Extension, Launch, LaunchOutcome, LaunchValues, Launcher};
use tessera_session::{Config, Session, StatementResult, conformance};
use tessera_types::Code;

use super::launch::{ToyLauncher, config};
use super::{NAME, Toy};
use crate::texts::texts;

/// Starts the platform as a program does.
fn launched(workers: &str) -> (Arc<dyn Extension>, Box<dyn Any>) {
    let mut values = LaunchValues::default();
    values.set("toy-workers", workers.to_string());
    let launch = Launch {
        values: &values,
        arguments: Vec::new(),
        database: None,
        stores: Vec::new(),
        reads_input: false,
        on_interrupt: &|_| Box::new(|| false),
    };
    match ToyLauncher.launch(&launch).unwrap() {
        LaunchOutcome::Here { extension, services, .. } => (extension, services),
        LaunchOutcome::Elsewhere { .. } => panic!("statements run in this process"),
    }
}

fn on_platform(extension: &Arc<dyn Extension>, base: Config) -> Config {
    let mut extensions = base.extensions.clone();
    extensions.push(extension.clone());
    Config { extensions, platform: NAME.to_string(), ..base }
}

#[test]
fn it_conforms_with_one_worker_and_with_several() {
    for workers in ["1", "2", "3"] {
        let folder = tempfile::tempdir().unwrap();
        let (extension, _services) = launched(workers);
        conformance::platform(folder.path(), &mut |base| on_platform(&extension, base));
    }
}

#[test]
fn workers_share_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut local = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    for file in 0..4 {
        let path = folder.path().join(format!("{file}.parquet"));
        let sql = format!("COPY (SELECT {file} AS f, i FROM generate_series(1, 1000) AS s(i)) TO");
        local.execute(&format!("{sql} '{}'", path.display())).unwrap();
    }
    let (extension, _services) = launched("2");
    let mut session = Session::new(on_platform(&extension, Config::default())).unwrap();
    let table = folder.path().display();
    let sql = format!("EXPLAIN ANALYZE SELECT f, count(*) FROM '{table}' GROUP BY f");
    let results = session.execute(&sql).unwrap();
    let [StatementResult::Text(text)] = &results[..] else { panic!("{results:?}") };
    // The first worker adds the figures of the second: each row is read once, and both count rows.
    assert!(text.contains("toy_exchange") && text.contains("-- 4000 rows"), "{text}");
    assert!(text.contains("-- not compiled aggregates: 2"), "{text}");
    assert!(text.contains("-- rows: 4"), "{text}");
}

#[test]
fn its_plans_can_be_explained_without_a_launch() {
    let extension = ToyLauncher.extension();
    let mut extensions = Config::default().extensions;
    extensions.push(extension);
    let mut session = Session::new(Config { extensions, ..Config::default() }).unwrap();
    let sql =
        "EXPLAIN (PLATFORM toy) SELECT n, count(*) FROM generate_series(1, 9) AS s(n) GROUP BY n";
    let results = session.execute(sql).unwrap();
    let [StatementResult::Text(plan)] = &results[..] else { panic!("{results:?}") };
    assert!(plan.contains("platform = :toy") && plan.contains("toy_exchange"), "{plan}");
    let error = session.run_plan(plan).unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    let mut session = Session::new(config(Toy::default())).unwrap();
    let error = session.execute("SELECT 1").unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert!(texts_of(&mut session, "SHOW threads") == ["2"]);
}

/// The page leads through this platform, so it names each of its files and its length.
#[test]
fn the_page_names_every_file() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../docs/design/add-a-platform.md");
    let page = std::fs::read_to_string(page).unwrap();
    for entry in std::fs::read_dir(root.join("tests/toy_platform")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "tests.rs" {
            continue;
        }
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let shown = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let lines = std::fs::read_to_string(entry.path()).unwrap().lines().count();
        assert_eq!(shown, (lines.div_ceil(5) * 5).to_string(), "{name} has {lines} lines");
    }
}

fn texts_of(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap().pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows),
        other => panic!("{sql}: {other:?}"),
    }
}
