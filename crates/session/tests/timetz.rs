//! Times with time zone in files: text where they are written, of their type where a column of a
//! text file is declared so.

use tessera_session::{Config, Session};

use crate::texts::answer;

const ROWS: usize = 3_000;

#[test]
fn files_have_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(Config::default()).unwrap();
    let rows = format!(
        "SELECT i, CASE WHEN i % 10 > 0 THEN timetz '00:00-03:30' + i * interval '17.25 s' END AS t, \
         [timetz '10:00+02' + i * interval '1 min', NULL] AS l, \
         {{'a': timetz '23:00+05' - i * interval '1 s', 'n': i}} AS s \
         FROM generate_series(1, {ROWS}) v(i)"
    );
    answer(&mut session, &format!("CREATE TEMP TABLE r AS {rows}"));
    let total = |from: &str| {
        format!(
            "SELECT count(*), count(t), count(DISTINCT t), min(t), max(t), min(l[1]), max(l[1]), \
             min(s.a), sum(s.n), sum(i) FROM {from}"
        )
    };
    let expected = answer(&mut session, &total("r"));
    let columns = "columns = {i: 'int', t: 'timetz', l: 'time with time zone[]', \
                   s: 'struct(a timetz, n int)'}";
    let cast =
        "(SELECT i, t::timetz AS t, l::timetz[] AS l, s::struct(a timetz, n int) AS s FROM @)";
    for (name, reader) in [
        ("x.parquet", cast.replace('@', "read_parquet('@')")),
        ("x.arrow", cast.replace('@', "read_arrow('@')")),
        ("x.csv", format!("read_csv('@', {columns})")),
        ("x.json", format!("read_json('@', {columns})")),
    ] {
        let path = folder.path().join(name).display().to_string();
        answer(&mut session, &format!("COPY r TO '{path}'"));
        let from = reader.replace('@', &path);
        assert_eq!(answer(&mut session, &total(&from)), expected, "{name}");
        for predicate in ["t = '00:02:00.75-03:30'", "t > '10:00+00'", "t IS NULL", "l[1] < s.a"] {
            let counted = |from: &str| {
                format!("SELECT count(*), sum(i), min(t), max(t) FROM {from} WHERE {predicate}")
            };
            let expected = answer(&mut session, &counted("r"));
            assert_eq!(answer(&mut session, &counted(&from)), expected, "{name}: {predicate}");
        }
    }
}

#[test]
fn texts_of_files_without_an_offset_are_in_utc() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(Config::default()).unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let csv = path("x.csv", "t\n04:05\n\n04:05-03\n");
    let json = path("x.json", "{\"t\": [\"04:05\", \"04:05-03\", null]}\n");
    answer(&mut session, "SET timezone = 'Asia/Kolkata'");
    let from = format!("read_csv('{csv}', types = {{t: 'timetz'}})");
    assert_eq!(
        answer(&mut session, &format!("SELECT t FROM {from}")),
        "04:05:00+00\nNULL\n04:05:00-03"
    );
    let from = format!("read_json('{json}', columns = {{t: 'timetz[]'}})");
    let lists = answer(&mut session, &format!("SELECT t FROM {from}"));
    assert!(lists.contains("04:05:00+00") && lists.contains("04:05:00-03"), "{lists}");
    let wrong = path("y.csv", "t\n04:05\nnoon\n");
    let sql = format!("SELECT * FROM read_csv('{wrong}', types = {{t: 'timetz'}})");
    let error = session.execute(&sql).unwrap_err();
    assert!(error.to_string().contains("timetz") && error.to_string().contains("noon"), "{error}");
}
