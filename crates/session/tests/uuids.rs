//! UUIDs in files: they keep their type where the format has one, and predicates over them.

use tessera_session::{Config, Session};

use crate::texts::answer;

const ROWS: usize = 3_000;

#[test]
fn files_keep_uuids() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(Config::default()).unwrap();
    let rows = format!(
        "SELECT i, CASE WHEN i % 10 > 0 THEN lpad(to_hex(i * 7), 32, '0')::uuid END AS u, \
         [lpad(to_hex(i), 32, 'f')::uuid, NULL] AS l, {{'a': repeat('ab', 16)::uuid, 't': 'x'}} AS s \
         FROM generate_series(1, {ROWS}) v(i)"
    );
    answer(&mut session, &format!("CREATE TEMP TABLE r AS {rows}"));
    let total = |from: &str| {
        format!(
            "SELECT count(*), count(u), count(DISTINCT u), min(u), max(u), min(l[1]), max(l[1]), \
             min(s.a), min(s.t), sum(i) FROM {from}"
        )
    };
    let expected = answer(&mut session, &total("r"));
    let columns = "columns = {i: 'int', u: 'uuid', l: 'uuid[]', s: 'struct(a uuid, t text)'}";
    for (name, options, reader) in [
        ("x.parquet", "(ROW_GROUP_SIZE 500)", "read_parquet('@')"),
        ("x.arrow", "", "read_arrow('@')"),
        ("x.csv", "", "read_csv('@', COLUMNS)"),
        ("x.json", "", "read_json('@', COLUMNS)"),
    ] {
        let path = folder.path().join(name);
        let path = path.display();
        answer(&mut session, &format!("COPY r TO '{path}' {options}"));
        let from = reader.replace('@', &path.to_string()).replace("COLUMNS", columns);
        assert_eq!(answer(&mut session, &total(&from)), expected, "{name}");
        let typed = format!("SELECT typeof(u), typeof(l), typeof(s) FROM {from} LIMIT 1");
        let found = answer(&mut session, &typed);
        for part in ["UUID", "UUID[]", "STRUCT(a UUID, t VARCHAR)"] {
            assert!(found.contains(part), "{name}: {found}");
        }
        for predicate in [
            "u = '00000000-0000-0000-0000-000000000007'",
            "u = '{00000000000000000000000000001B51}'",
            "u > '00000000-0000-0000-0000-000000005000'",
            "u <= '000000000000000000000000000000FF'",
            "u BETWEEN '00000000000000000000000000001000' AND '00000000000000000000000000002000'",
            "u IN ('00000000000000000000000000000007', '0000000000000000000000000000000E', '00000000000000000000000000001B51')",
            "u IS NULL",
            "u IN (SELECT u FROM r WHERE i BETWEEN 20 AND 25)",
            "u = s.a",
            "u::text LIKE '%1b5_'",
            "l[1] < 'ffffffff-ffff-ffff-ffff-fffffffffff1'",
        ] {
            let counted = |from: &str| {
                format!("SELECT count(*), sum(i), min(u), max(u) FROM {from} WHERE {predicate}")
            };
            let expected = answer(&mut session, &counted("r"));
            assert_eq!(answer(&mut session, &counted(&from)), expected, "{name}: {predicate}");
        }
    }
}

#[test]
fn malformed_uuids_of_text_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(Config::default()).unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let csv = path("x.csv", "u\nABCDEFABCDEFABCDEFABCDEFABCDEFAB\n\nx\n");
    let json = path("x.json", "{\"u\": [\"x\"]}\n");
    for (sql, part) in [
        (format!("SELECT * FROM read_csv('{csv}', types = {{u: 'uuid'}})"), "uuid"),
        (format!("SELECT * FROM read_json('{json}', columns = {{u: 'uuid[]'}})"), "uuid"),
    ] {
        let error = session.execute(&sql).unwrap_err();
        assert!(error.to_string().contains(part), "{sql}: {error}");
    }
}
