//! Smart storage: which plans use select requests, and the handling of late, truncated, damaged and
//! wrong responses. The store of these tests returns prepared records.

use std::path::Path;

use tessera_objects::SmartStorage;
use tessera_session::{Config, Session, StatementResult};

use crate::server::{Fault, Server};

const STATS: &str =
    "<Stats><BytesScanned>100</BytesScanned><BytesReturned>10</BytesReturned></Stats>";

/// A store with the objects of a folder, that is taken for `store`.
fn session(server: &Server, store: &str) -> Session {
    let mut stores = server.settings();
    stores.push(("TESSERA_SELECT_AS".to_string(), store.to_string()));
    let config =
        Config { threads: 2, stores, smart_storage: SmartStorage::On, ..Config::default() };
    Session::new(config).unwrap()
}

fn csv(server: &Server) {
    server.put("b/x.csv", "n,t\n1,one\n2,two\n3,three\n");
}

fn run(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    let results = session.execute(sql).map_err(|error| error.to_string())?;
    let Some(StatementResult::Rows(rows)) = results.last() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for batch in rows.batches() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let value = |column: &arrow::array::ArrayRef| {
                arrow::util::display::array_value_to_string(column, row).unwrap()
            };
            out.push(batch.columns().iter().map(value).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(out)
}

fn explained(session: &mut Session, sql: &str) -> String {
    match session.execute(&format!("EXPLAIN {sql}")).unwrap().pop() {
        Some(StatementResult::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

const QUERY: &str = "SELECT n, t FROM 's3://b/x.csv' WHERE n > 1 ORDER BY n";

#[test]
fn three_sub_operators_take_the_place_of_a_scan() {
    let server = Server::start();
    csv(&server);
    server.select(&[
        ("Records", "2,two\n3,th"),
        ("Cont", ""),
        ("Records", "ree\n"),
        ("Stats", STATS),
        ("End", ""),
    ]);
    let mut session = session(&server, "tessera");
    let plan = explained(&mut session, QUERY);
    for part in [
        "select_request() {",
        "sql = 'SELECT s._1, s._2 FROM S3Object s WHERE CAST(s._1 AS INT) > 1'",
        "input = :csv",
        "arrow_to_collection",
        "batch_scan",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(!plan.contains("csv_scan") && !plan.contains("filter"), "{plan}");
    server.log();
    assert_eq!(run(&mut session, QUERY).unwrap(), ["2 two", "3 three"]);
    let log = server.log();
    let asked: Vec<_> = log.iter().filter(|request| request.is_select()).collect();
    assert_eq!(asked.len(), 1, "{log:?}");
    assert!(
        String::from_utf8_lossy(&asked[0].body).contains("<FileHeaderInfo>IGNORE</FileHeaderInfo>")
    );
    let analyzed = match session.execute(&format!("EXPLAIN ANALYZE {QUERY}")).unwrap().pop() {
        Some(StatementResult::Text(text)) => text,
        other => panic!("{other:?}"),
    };
    for part in ["select requests 1", "select scanned bytes 100 bytes", "-- smart storage: "] {
        assert!(analyzed.contains(part), "{part}: {analyzed}");
    }
    run(&mut session, "SET smart_storage = off").unwrap();
    assert!(explained(&mut session, QUERY).contains("csv_scan"));
    assert_eq!(run(&mut session, QUERY).unwrap(), ["2 two", "3 three"]);
}

#[test]
fn answers_that_break_off_are_asked_for_again() {
    let server = Server::start();
    csv(&server);
    let records: String = (0..50_000).map(|n| format!("{n},number {n}\n")).collect();
    let parts: Vec<_> =
        records.as_bytes().chunks(100_000).map(|part| std::str::from_utf8(part).unwrap()).collect();
    let mut messages: Vec<_> = parts.iter().map(|part| ("Records", *part)).collect();
    messages.extend([("Stats", STATS), ("End", "")]);
    server.select(&messages);
    let mut session = session(&server, "tessera");
    let sql = "SELECT count(*), sum(n), min(length(t)) FROM (SELECT n, t FROM 's3://b/x.csv' WHERE n > 1) x";
    for fault in [
        Fault::Status(503),
        Fault::Status(429),
        Fault::Reset,
        Fault::Cut,
        Fault::Short,
        Fault::Damaged,
    ] {
        let mut left = 2;
        server.fail(move |request| {
            if !request.is_select() || left == 0 {
                return Fault::None;
            }
            left -= 1;
            fault
        });
        assert_eq!(run(&mut session, sql).unwrap(), ["50000 1249975000 8"], "{fault:?}");
        server.fail(move |request| if request.is_select() { fault } else { Fault::None });
        let error = run(&mut session, sql).unwrap_err();
        assert!(
            error.contains("cannot select from 's3://b/x.csv' in 4 attempts"),
            "{fault:?}: {error}"
        );
    }
}

#[test]
fn what_no_store_should_answer() {
    let server = Server::start();
    csv(&server);
    let mut session = session(&server, "tessera");
    let end = [("Stats", STATS), ("End", "")];
    for (messages, expected) in [
        (vec![("Records", "2,two\n")], "the response ends early"),
        (
            vec![("Records", "2,two\n"), ("error", "OverMaxRecordSize")],
            "the store answers OverMaxRecordSize",
        ),
        (vec![("Records", "2,two,2\n"), end[0], end[1]], "record 1 that the store selects"),
        (
            vec![("Records", "2,two\nx,y\n"), end[0], end[1]],
            "column n: 'x' is not a value of type int64",
        ),
    ] {
        server.select(&messages);
        let error = run(&mut session, QUERY).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    server.select(&[("Records", "2,two\n"), end[0], end[1]]);
    server.fail(|request| if request.is_select() { Fault::Status(405) } else { Fault::None });
    let error = run(&mut session, QUERY).unwrap_err();
    assert!(error.contains("405") && error.contains("SET smart_storage = off"), "{error}");
}

#[test]
fn an_object_that_changes_meanwhile_is_an_error() {
    let server = Server::start();
    csv(&server);
    server.select(&[("Records", "2,two\n"), ("Stats", STATS), ("End", "")]);
    let mut session = session(&server, "tessera");
    server.change_selected();
    let error = run(&mut session, QUERY).unwrap_err();
    assert!(
        error.contains("'s3://b/x.csv' changed while it was read; run the statement again"),
        "{error}"
    );
}

/// A Parquet file of columns of many types in a store.
fn parquet(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    let mut session = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    let sql = format!(
        "COPY (SELECT n, n AS m, CAST(n AS DOUBLE) AS f, CAST(n AS DECIMAL(15, 2)) AS price, 'row' AS t, DATE '1994-01-01' AS d \
         FROM (SELECT unnest(range(1, 1001)) AS n) AS s) TO '{}'",
        path.display()
    );
    run(&mut session, &sql).unwrap();
    put(server, "b/p.parquet", &path);
}

fn put(server: &Server, key: &str, path: &Path) {
    server.put(key, std::fs::read(path).unwrap());
}

#[test]
fn a_store_is_trusted_with_what_it_does_right() {
    let server = Server::start();
    csv(&server);
    parquet(&server);
    let mut minio = session(&server, "minio");
    let mut own = session(&server, "tessera");
    let mut other = session(&server, "nginx");
    let asks =
        |session: &mut Session, sql: &str| explained(session, sql).contains("select_request");
    // The statement, and whether it uses select requests on MinIO and on the Tessera endpoint.
    for (sql, of_minio, of_own) in [
        ("SELECT n, d FROM 's3://b/p.parquet' WHERE n < 5", true, true),
        ("SELECT n FROM 's3://b/p.parquet' WHERE price < 5", false, true),
        ("SELECT price FROM 's3://b/p.parquet' WHERE n < 5", false, true),
        ("SELECT t FROM 's3://b/x.csv' WHERE n > 1", false, true),
        ("SELECT t FROM 's3://b/p.parquet' WHERE d < DATE '1995-01-01'", true, true),
    ] {
        assert_eq!(asks(&mut minio, sql), of_minio, "{sql}");
        assert_eq!(asks(&mut own, sql), of_own, "{sql}");
        assert!(!asks(&mut other, sql), "{sql}");
    }
    let plan = explained(
        &mut minio,
        "SELECT n FROM 's3://b/p.parquet' WHERE f > 5 AND d >= DATE '1994-02-03'",
    );
    assert!(plan.contains("NOT (s.\"f\" <= 5.0)") && plan.contains("filter("), "{plan}");
    assert!(plan.contains("CAST(''1994-02-03T00:00:00Z'' AS TIMESTAMP)"), "{plan}");
}

#[test]
fn aggregates_are_computed_by_the_store() {
    let server = Server::start();
    parquet(&server);
    let mut session = session(&server, "tessera");
    let sql = "SELECT count(*), min(n), max(m), sum(n) FROM 's3://b/p.parquet' WHERE n < 11";
    let plan = explained(&mut session, sql);
    let asked = "SELECT COUNT(*), MIN(s.\"n\"), MAX(s.\"m\"), SUM(s.\"n\") FROM S3Object s WHERE s.\"n\" < 11";
    assert!(
        plan.contains(asked) && plan.contains("merge_sum") && plan.contains("merge_count"),
        "{plan}"
    );
    server.select(&[("Records", "10,1,10,55\n"), ("Stats", STATS), ("End", "")]);
    assert_eq!(run(&mut session, sql).unwrap(), ["10 1 10 55"]);
    let plan = explained(&mut session, "SELECT sum(f) FROM 's3://b/p.parquet' WHERE n < 11");
    assert!(!plan.contains("SUM("), "{plan}");
}

#[test]
fn auto_asks_where_less_comes_back() {
    let server = Server::start();
    parquet(&server);
    let mut session = session(&server, "tessera");
    run(&mut session, "SET smart_storage = auto").unwrap();
    let few = "SELECT n, m, f FROM 's3://b/p.parquet' WHERE n < 3";
    assert!(explained(&mut session, few).contains("select_request"));
    let all = "SELECT n, m, f FROM 's3://b/p.parquet' WHERE n > 0";
    assert!(!explained(&mut session, all).contains("select_request"));
}
