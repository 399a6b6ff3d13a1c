//! SQL over objects returns the same rows as SQL over the same local files. Faults of the store
//! lead to correct results or a clear error.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use tessera_generate::{Options, Suite, generate};
use tessera_session::{Config, Session, StatementResult};
use tessera_types::Code;

use crate::server::{Fault, Server};
use crate::texts::texts;

fn run(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows),
        Some(StatementResult::Text(text)) | Some(StatementResult::Done(text)) => vec![text],
        None => panic!("{sql}: no statement"),
    }
}

fn config(server: &Server, database: Option<&str>) -> Config {
    Config {
        threads: 2,
        database: database.map(Into::into),
        stores: server.settings(),
        ..Config::default()
    }
}

fn session(server: &Server, database: Option<&str>) -> Session {
    Session::new(config(server, database)).unwrap()
}

fn local(folder: &Path) -> Session {
    Session::new(Config { threads: 2, database: Some(folder.into()), ..Config::default() }).unwrap()
}

fn tpch(folder: &Path, scale: f64) {
    let options = Options { threads: NonZeroUsize::new(2).unwrap(), ..Options::default() };
    generate(Suite::Tpch, scale, folder, &options).unwrap();
}

#[test]
fn blocks_of_text_are_fetched_once() {
    // The quote state at the start of a block depends on all text before it.
    let (mut text, mut rows, mut sum) = (String::from("a,b\n"), 0, 0);
    while text.len() < 40 << 20 {
        text += &format!("{rows},\"{}\n{rows},\"\n", "x".repeat(rows % 1_000));
        (rows, sum) = (rows + 1, sum + rows);
    }
    let server = Server::start();
    let blocks = text.len() >> 20;
    server.put("bucket/t.csv", text);
    let mut session = session(&server, None);
    assert_eq!(
        run(&mut session, "select count(*), sum(a) from 's3://bucket/t.csv'"),
        [format!("{rows} {sum}")]
    );
    let reads = server.log().iter().filter(|request| request.is_read()).count();
    // The type inference needs more reads for its sample.
    assert!(reads < blocks + 16, "{reads} requests for {blocks} blocks");
}

#[test]
fn the_queries_of_tpch_over_objects_are_those_over_files() {
    let folder = tempfile::tempdir().unwrap();
    tpch(folder.path(), 0.01);
    let server = Server::start();
    server.put_folder("bucket/tpch", folder.path());
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries/tpch");
    let mut files = local(folder.path());
    let mut objects = session(&server, Some("s3://bucket/tpch"));
    let mut count = 0;
    for entry in std::fs::read_dir(queries).unwrap() {
        let path = entry.unwrap().path();
        let sql = std::fs::read_to_string(&path).unwrap();
        // Every seventh read of an object is rejected or truncated once.
        let mut reads = 0;
        server.fail(move |request| {
            reads += usize::from(request.is_read());
            match (request.is_read(), reads % 21) {
                (true, 7) => Fault::Status(503),
                (true, 14) => Fault::Reset,
                (true, 20) => Fault::Cut,
                _ => Fault::None,
            }
        });
        let (mut expected, mut found) = (run(&mut files, &sql), run(&mut objects, &sql));
        if !sql.to_lowercase().contains("order by") {
            expected.sort();
            found.sort();
        }
        assert_eq!(found, expected, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 22);
}

/// A folder with the same rows in every format, and hive partitions.
fn formats(folder: &Path) {
    let mut session = Session::new(Config { threads: 2, ..Config::default() }).unwrap();
    std::fs::create_dir(folder.join("parts")).unwrap();
    for (year, part) in [(2023, "a"), (2024, "b")] {
        std::fs::create_dir_all(folder.join(format!("parts/year={year}"))).unwrap();
        let path = folder.join(format!("parts/year={year}/{part}.parquet"));
        let sql = format!(
            "COPY (SELECT n, 'row ' || CAST(n AS VARCHAR) AS t FROM (SELECT unnest(range(1, 1001)) AS n) AS s) TO '{}'",
            path.display()
        );
        run(&mut session, &sql);
    }
    for format in ["csv", "json", "arrow", "parquet"] {
        let path = folder.join(format!("x.{format}"));
        let sql = format!(
            "COPY (SELECT value AS n, 'row \"' || CAST(value AS VARCHAR) || '\"' AS t, value * 0.5 AS h \
             FROM (SELECT unnest(range(1, 300001)) AS value) AS s) TO '{}'",
            path.display()
        );
        run(&mut session, &sql);
    }
}

#[test]
fn every_format_folders_patterns_and_partitions() {
    let folder = tempfile::tempdir().unwrap();
    formats(folder.path());
    let server = Server::start();
    server.put_folder("b/d", folder.path());
    let mut files = local(folder.path());
    let mut objects = session(&server, None);
    let here = folder.path().display().to_string();
    for (number, sql) in [
        "SELECT count(*), sum(n), min(t), max(t), sum(h) FROM '{d}/x.csv'",
        "SELECT count(*), sum(n), min(t), max(t), sum(h) FROM '{d}/x.json'",
        "SELECT count(*), sum(n), min(t), max(t), sum(h) FROM '{d}/x.arrow'",
        "SELECT count(*), sum(n), min(t), max(t), sum(h) FROM '{d}/x.parquet'",
        "SELECT n, t FROM '{d}/x.parquet' WHERE n BETWEEN 150000 AND 150010 ORDER BY n",
        "SELECT n, t FROM '{d}/x.csv' WHERE n IN (1, 299999) ORDER BY n",
        "SELECT n FROM '{d}/x.json' LIMIT 3",
        "SELECT count(*), max(p.n) FROM read_parquet('{d}/parts/**/*.parquet') AS p",
        "SELECT year, count(*), sum(n) FROM '{d}/parts' GROUP BY year ORDER BY year",
        "SELECT count(*), sum(n) FROM '{d}/parts/*/*.parquet' WHERE year = 2024",
    ]
    .into_iter()
    .enumerate()
    {
        let expected = run(&mut files, &sql.replace("{d}", &here));
        let found = run(&mut objects, &sql.replace("{d}", "s3://b/d"));
        assert_eq!(found, expected, "{number}: {sql}");
    }
    run(&mut objects, "CREATE EXTERNAL TABLE e STORED AS parquet LOCATION 's3://b/d/parts/'");
    assert_eq!(run(&mut objects, "SELECT count(DISTINCT year) FROM e"), ["2"]);
    let mut database = session(&server, Some("s3://b/d"));
    assert_eq!(database.table_names(), ["parts", "x"]);
    let error = database.execute("SELECT * FROM x").unwrap_err();
    assert!(error.message().contains("it can be 's3://b/d/x."), "{error}");
    assert_eq!(run(&mut database, "SELECT count(*) FROM parts"), ["2000"]);
    let web = format!("SELECT max(n) FROM '{}/b/d/x.parquet'", server.address());
    assert_eq!(run(&mut objects, &web), ["300000"]);
}

#[test]
fn what_is_copied_to_a_store_is_read_back() {
    let server = Server::start();
    let mut session = session(&server, None);
    for format in ["parquet", "csv", "json", "arrow"] {
        let copy = format!(
            "COPY (SELECT value AS n FROM (SELECT unnest(range(1, 5001)) AS value) AS s) TO 's3://b/out/x.{format}'"
        );
        assert_eq!(run(&mut session, &copy), ["COPY 5000"]);
        assert_eq!(
            run(&mut session, &format!("SELECT sum(n) FROM 's3://b/out/x.{format}'")),
            ["12502500"]
        );
    }
    let error =
        session.execute("COPY (SELECT 1 / 0 AS x) TO 's3://b/out/bad.parquet'").unwrap_err();
    assert_eq!(error.code(), Code::DivisionByZero);
    assert!(server.object("b/out/bad.parquet").is_none());
    assert_eq!(server.uploads().0, 0);
}

#[test]
fn an_object_that_changes_between_statements_is_read_anew() {
    let server = Server::start();
    server.put("b/x.csv", "n\n1\n");
    let mut session = session(&server, Some("s3://b"));
    assert_eq!(run(&mut session, "SELECT * FROM x"), ["1"]);
    server.put("b/x.csv", "n\n22\n");
    server.put("b/y.csv", "n\n3\n");
    assert_eq!(run(&mut session, "SELECT x.n, y.n FROM x, y"), ["22 3"]);
}

#[test]
fn columns_are_fetched_together_and_the_profile_says_so() {
    let folder = tempfile::tempdir().unwrap();
    tpch(folder.path(), 0.01);
    let server = Server::start();
    server.put_folder("b/t", folder.path());
    let mut session = session(&server, Some("s3://b/t"));
    server.log();
    let sql = "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_quantity < 24";
    let analyzed = run(&mut session, &format!("EXPLAIN ANALYZE {sql}")).remove(0);
    let log = server.log();
    let lists = log.iter().filter(|request| request.query.contains_key("list-type")).count();
    let reads: Vec<_> =
        log.iter().filter(|request| request.is_read()).map(|r| r.range().unwrap()).collect();
    assert!(lists >= 1 && log.len() == lists + reads.len(), "{log:?}");
    // Reads the footer, some dictionary headers, and the columns of the only row group.
    assert!(reads.len() <= 16, "{reads:?}");
    for part in [
        "store requests ",
        "store bytes ",
        "store wait ",
        "-- object stores: ",
        "I/O thread was busy",
    ] {
        assert!(analyzed.contains(part), "{part}: {analyzed}");
    }
    assert_eq!(run(&mut session, sql).len(), 1);
}

#[test]
fn a_store_that_does_not_answer_is_left_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    tpch(folder.path(), 0.001);
    let server = Server::start();
    server.put_folder("b/t", folder.path());
    let mut session = session(&server, Some("s3://b/t"));
    // A statement that waits for a response takes longer than this.
    const LATE: Duration = Duration::from_secs(60);
    // The server answers this many reads and then stalls.
    let late = |mut answered: usize| {
        move |request: &crate::server::Request| {
            if !request.is_read() {
                return Fault::None;
            }
            let last = answered == 0;
            answered = answered.saturating_sub(1);
            if last { Fault::Late(LATE) } else { Fault::None }
        }
    };
    let mut cancelled = |sql: &str, answered: usize| {
        server.fail(late(answered));
        let cancel = session.cancel_handle();
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                cancel.cancel();
            });
            let error = session.execute(sql).unwrap_err();
            assert_eq!(error.code(), Code::Cancelled, "{error}");
        });
        assert!(started.elapsed() < LATE, "{sql}: {:?}", started.elapsed());
        server.fail(|_| Fault::None);
        run(&mut session, "SET deadline = '0.5'");
        server.fail(late(0));
        let started = Instant::now();
        let error = session.execute(sql).unwrap_err();
        assert!(error.message().contains("deadline"), "{error}");
        assert!(started.elapsed() < LATE, "{sql}: {:?}", started.elapsed());
        server.fail(|_| Fault::None);
        run(&mut session, "SET deadline = 'none'");
        // Planning caches its reads, so the next statement waits for the columns.
        run(&mut session, "SELECT count(*) FROM lineitem, region")
    };
    // Planning waits for its reads after the footer.
    cancelled("SELECT sum(l_quantity) FROM lineitem", 1);
    cancelled("SELECT sum(l_quantity) FROM lineitem", 0);
    cancelled(
        "SELECT l_shipmode, sum(l_tax) FROM lineitem JOIN region ON r_regionkey < l_linenumber GROUP BY l_shipmode",
        0,
    );
}

#[test]
fn errors_name_the_object_and_what_to_do() {
    let server = Server::start();
    server.put("b/x.csv", "n\n1\n");
    let mut session = session(&server, None);
    for (sql, expected) in [
        (
            "SELECT * FROM 's3://b/y.csv'",
            "cannot open 's3://b/y.csv': the object or prefix does not exist",
        ),
        ("SELECT * FROM 's3://b/*.parquet'", "no object matches 's3://b/*.parquet'"),
        ("SELECT * FROM read_json('s3://b/x.csv')", "line 1: not a JSON object"),
        ("SELECT * FROM read_csv('a.csv', 'b.csv')", "takes a path or pattern"),
        ("SELECT * FROM 'https://example.org/*.csv'", "a web server has no listing"),
        ("COPY (SELECT 1 AS x) TO 'https://example.org/x.csv'", "web servers are read-only"),
    ] {
        let error = session.execute(sql).unwrap_err();
        assert!(error.message().contains(expected), "{sql}: {error}");
    }
    server.put("b/z.csv", "n\n1\n");
    server.fail_reads(Fault::Status(403), usize::MAX);
    let error = session.execute("SELECT * FROM 's3://b/z.csv'").unwrap_err();
    assert!(error.message().contains("AWS_ACCESS_KEY_ID"), "{error}");
    let error = Session::new(config(&server, Some("s3://b/none"))).unwrap_err();
    assert!(error.message().contains("no object has this prefix"), "{error}");
}

#[test]
fn objects_are_read_as_texts_and_as_bytes() {
    let server = Server::start();
    let long = "x".repeat(20 << 20);
    server.put("b/a.txt", "hello");
    server.put("b/long.txt", long.clone());
    let mut session = session(&server, None);
    let sql = "SELECT filename, size, length(content), last_modified IS NOT NULL FROM read_text('s3://b/*.txt')";
    assert_eq!(
        run(&mut session, sql),
        ["s3://b/a.txt 5 5 true", "s3://b/long.txt 20971520 20971520 true"]
    );
    let sql = "SELECT content FROM read_blob(['s3://b/a.txt', 's3://b/a.txt'])";
    assert_eq!(run(&mut session, sql), ["68656c6c6f", "68656c6c6f"]);
}

#[test]
fn folders_of_partitions_are_written() {
    let server = Server::start();
    let mut session = session(&server, None);
    let rows = "select range as n, range % 3 as k, case when range % 2 = 0 then 'a/b' end as t from range(30000)";
    let read = "select count(*), sum(n), count(t), count(distinct k) from 's3://b/out/**'";
    let copy =
        |options: &str| format!("copy ({rows}) to 's3://b/out' (partition_by (k, t){options})");
    run(&mut session, &copy(", format parquet"));
    assert_eq!(run(&mut session, read), ["30000 449985000 15000 3"]);
    let path = "b/out/k=1/t=a%2Fb/data_0.parquet";
    assert!(server.paths().iter().any(|known| known == path), "{:?}", server.paths());
    let error = session.execute(&copy(", format csv")).unwrap_err();
    assert!(error.message().contains("the prefix 's3://b/out' is not empty"), "{error}");
    run(&mut session, &copy(", format csv, overwrite, compression gzip"));
    assert_eq!(server.paths().len(), 6);
    assert!(server.object("b/out/k=1/t=a%2Fb/data_0.csv.gz").is_some());
    assert_eq!(run(&mut session, read), ["30000 449985000 15000 3"]);
    run(&mut session, &copy(", format csv, append"));
    assert_eq!(server.paths().len(), 12);
    // An error in the last row leaves nothing.
    let failing = "copy (select range as n, range // 10000 as k, 1 / (29999 - range) as x from range(30000)) \
                   to 's3://b/failed' (partition_by k, format csv)";
    assert!(session.execute(failing).is_err());
    drop(session);
    assert!(!server.paths().iter().any(|path| path.starts_with("b/failed")));
    assert_eq!(server.uploads().0, 0);
}
