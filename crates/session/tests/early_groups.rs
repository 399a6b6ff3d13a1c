//! Groups before joins: where they stand, and that results are unchanged.

use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

fn session() -> Session {
    let mut session = Session::new(Config { threads: 2, ..Config::default() }).unwrap();
    for sql in [
        // Each key of `dims` occurs twice, and has a name that others have, too.
        "create temp table dims as
         select g % 200 as id, 'name ' || g % 37 as name, 'class ' || g % 3 as class from range(400) r(g)",
        "create temp table facts as
         select g as i, nullif(g * 7 % 300, 5) as k, g % 11 as v, nullif(g % 90, 7)::decimal(9,2) as p,
                (g % 13)::float8 as x
         from range(60000) r(g)",
    ] {
        session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    session
}

fn answer(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(rows)) => {
            let mut rows = texts(&rows);
            rows.sort();
            rows
        }
        Some(StatementResult::Text(text)) => vec![text],
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn few_groups_are_joined_instead_of_many_tuples() {
    let mut session = session();
    let joined = "from facts join dims on k = id";
    for (sql, groups) in [
        (format!("select name, count(*), sum(v), min(p), max(v) {joined} group by name"), 2),
        (format!("select name, class, avg(p), avg(v), count(p) {joined} group by name, class"), 2),
        (format!("select name, sum(p) filter (where v < 3) {joined} group by name"), 2),
        (format!("select name, v, sum(v) {joined} where v > 0 group by name, v"), 2),
        ("select name, sum(v) from facts left join dims on k = id group by name".to_string(), 2),
        (
            "select name, q from (select name, class, sum(p) as q from facts, dims
             where k = id and v + id > 10 group by name, class) s where q > 0"
                .to_string(),
            2,
        ),
        (format!("select distinct name {joined}"), 2),
        // Conditions over the other side choose among groups.
        (
            format!(
                "select name, sum(case when class = 'class 1' then v end), count(case when class > 'class 0' then p end),
                 sum(case when class = 'class 2' then p else 0 end), sum(case when class = 'none' then v else 0 end),
                 avg(p) filter (where class <> 'class 1'), min(v), sum(case when class = 'none' then v end)
                 {joined} group by name"
            ),
            2,
        ),
        (format!("select name, sum(case when class > 'class 0' and v > 3 then v end) {joined} group by name"), 1),
        (format!("select name, sum(case when class > 'class 0' then v else 1 end) {joined} group by name"), 1),
        // Two sets and the groups below.
        (format!("select name, class, sum(v), avg(v) {joined} group by rollup (name, class)"), 3),
        // The argument reads both sides, depends on the order, or can raise an error.
        (format!("select name, sum(v + id) {joined} group by name"), 1),
        (format!("select name, sum(x) {joined} group by name"), 1),
        (format!("select name, sum(v + 1) {joined} group by name"), 1),
        (format!("select name, stddev(v) {joined} group by name"), 1),
        // Few tuples have a match: a filter drops the others before the join.
        (format!("select name, sum(v) {joined} where id in (3, 4) group by name"), 1),
        // As many groups as tuples.
        (format!("select name, i, sum(v) {joined} group by name, i"), 1),
        (format!("select sum(v) {joined}"), 0),
    ] {
        session.execute("set disabled_rules = 'none'").unwrap();
        let plan = answer(&mut session, &format!("explain (platform local) {sql}")).join("\n");
        assert_eq!(plan.matches(" = reduce_by_key(").count(), groups, "{sql}\n{plan}");
        let found = answer(&mut session, &sql);
        assert!(!found.is_empty(), "{sql}");
        session.execute("set disabled_rules = 'group_early'").unwrap();
        assert_eq!(found, answer(&mut session, &sql), "{sql}");
    }
}
