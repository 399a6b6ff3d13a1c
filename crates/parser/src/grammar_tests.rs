//! Tests of the syntax that the patches of the parser add: each text, and how its tree is printed.

use sqlparser::parser::Parser;

use crate::dialect::Tessera;

/// Parses a text, and the print of its tree again.
fn printed(sql: &str) -> String {
    let parse = |sql: &str| {
        let parser = Parser::new(&Tessera).try_with_sql(sql);
        let parsed = parser.and_then(|mut parser| parser.parse_statements());
        let parsed = parsed.unwrap_or_else(|error| panic!("{sql}: {error}"));
        parsed.iter().map(|statement| statement.to_string()).collect::<Vec<_>>().join("; ")
    };
    let text = parse(sql);
    assert_eq!(parse(&text), text, "{sql}");
    text
}

fn check(records: &[(&str, &str)]) {
    for (sql, wanted) in records {
        assert_eq!(printed(sql), *wanted, "{sql}");
    }
}

fn unchanged(texts: &[&str]) {
    for sql in texts {
        assert_eq!(printed(sql).to_lowercase(), sql.to_lowercase());
    }
}

#[test]
fn queries_begin_with_from_and_table() {
    check(&[
        ("from t", "SELECT * FROM t"),
        ("from t where a > 1; from u", "SELECT * FROM t WHERE a > 1; SELECT * FROM u"),
        ("with c as (from t) from c", "WITH c AS (SELECT * FROM t) SELECT * FROM c"),
        ("create view v as from t", "CREATE VIEW v AS SELECT * FROM t"),
        ("from t union all from u", "SELECT * FROM t UNION ALL SELECT * FROM u"),
        ("select (from t), 1", "SELECT (SELECT * FROM t), 1"),
        ("from (from t) x", "SELECT * FROM (SELECT * FROM t) x"),
        (
            "table t union all table \"U\" order by 1",
            "SELECT * FROM t UNION ALL SELECT * FROM \"U\" ORDER BY 1",
        ),
        ("create table t as table u", "CREATE TABLE t AS SELECT * FROM u"),
        ("select a in (table t)", "SELECT a IN (SELECT * FROM t)"),
        (
            "from t group by a having b qualify c order by d limit 1",
            "SELECT * FROM t GROUP BY a HAVING b QUALIFY c ORDER BY d LIMIT 1",
        ),
    ]);
    unchanged(&[
        "from t select a where b",
        "select trim(both 'x' from s), extract(year from d) from t",
        "select a is distinct from b from t",
        "select 1 as table from t",
    ]);
}

#[test]
fn frames_exclude_tuples_and_take_casts() {
    unchanged(&[
        "select sum(a) over (order by b rows 1 preceding exclude ties)",
        "select sum(a) over (rows between current row and 1 following exclude no others)",
        "select max(c) over (order by d groups current row exclude group)",
        "select max(c) over (range unbounded preceding exclude current row)",
        "select max(c) over (range between '1 day'::interval preceding and '2'::interval following)",
        "select * exclude (a) from t",
        "select exclude from t",
    ]);
}

#[test]
fn samples_have_one_form() {
    check(&[
        (
            "select * from t as u tablesample bernoulli(10) repeatable (-7) where a",
            "SELECT * FROM t AS u TABLESAMPLE bernoulli (10) REPEATABLE (-7) WHERE a",
        ),
        (
            "select * from t tablesample 10 % offset 2",
            "SELECT * FROM t TABLESAMPLE 10 PERCENT OFFSET 2",
        ),
        (
            "select * from t using sample 10% (bernoulli, 3)",
            "SELECT * FROM t USING SAMPLE bernoulli (10 PERCENT) REPEATABLE (3)",
        ),
        (
            "select a from t join u using sample reservoir(2 rows) order by a",
            "SELECT a FROM t JOIN u USING SAMPLE reservoir (2 ROWS) ORDER BY a",
        ),
        (
            "select (select 1 from t using sample 1), sample from u using sample 5",
            "SELECT (SELECT 1 FROM t USING SAMPLE 1), sample FROM u USING SAMPLE 5",
        ),
    ]);
}

#[test]
fn queries_of_duckdb_stand_where_others_stand() {
    check(&[
        ("pivot_wider t on a, b using sum(c) s", "PIVOT t ON a, b USING sum(c) AS s"),
        (
            "from (pivot t on a in (1, 2 as x) using count(*) group by b, c) p",
            "SELECT * FROM (PIVOT t ON a IN (1, 2 AS x) USING count(*) GROUP BY b, c) p",
        ),
        ("with x as (select 1) pivot x on a", "WITH x AS (SELECT 1) PIVOT x ON a"),
        (
            "unpivot t on (a, b) as q, c into name n value v, w limit 1",
            "UNPIVOT t ON (a, b) AS q, c INTO NAME n VALUE v, w LIMIT 1",
        ),
        (
            "select * from t pivot (sum(x) for y in (1) z in ('a') group by k) as p",
            "SELECT * FROM (PIVOT t ON y IN (1), z IN ('a') USING sum(x) GROUP BY k) AS p",
        ),
        ("from (describe t)", "SELECT * FROM (DESCRIBE t)"),
        ("describe summarize t", "DESCRIBE SUMMARIZE t"),
        ("summarize from t", "SUMMARIZE SELECT * FROM t"),
        ("from (show tables)", "SELECT * FROM (SHOW TABLES)"),
    ]);
    unchanged(&[
        "select * from a asof left join b using(k, t)",
        "select * from a x asof join b on a.t >= b.t",
        "select * from a asof right join b using(t)",
        "select * from a asof full join b using(t)",
        "select * from a asof semi join b using(t)",
        "select * from a asof anti join b using(t)",
        "select * from a x positional join b y where x.a = 1",
        "select * from t unpivot include nulls (v for n in (a, b))",
    ]);
}

#[test]
fn expressions_of_duckdb() {
    check(&[
        ("select x: 1 + 2 from a: t", "SELECT 1 + 2 AS x FROM t AS a"),
        ("select 2 ** 3 // 4", "SELECT 2 ^ 3 // 4"),
        ("select a, from t, where b in (1, 2,)", "SELECT a FROM t WHERE b IN (1, 2)"),
        ("from values (1), (2) t(x)", "SELECT * FROM (VALUES (1), (2)) t (x)"),
        ("select 1 limit 20% offset 1", "SELECT 1 LIMIT 20 PERCENT OFFSET 1"),
        ("select 1 limit (select 3) percent", "SELECT 1 LIMIT (SELECT 3) PERCENT"),
        ("select 1 limit 20 % 3", "SELECT 1 LIMIT 20 % 3"),
        ("select 1 fetch next (select 2) rows only", "SELECT 1 FETCH FIRST (SELECT 2) ROWS ONLY"),
        ("select 1 offset 2 fetch first -1 row only", "SELECT 1 OFFSET 2 FETCH FIRST -1 ROWS ONLY"),
        ("select (t).* from t", "SELECT t.* FROM t"),
        ("select 'a'\n-- more\n'b'", "SELECT 'ab'"),
    ]);
    unchanged(&[
        "select [x * 2 for x in l if x > 2], [x + i for x, i in [1, 2]]",
        "select f(l, x -> x + 1), f(l, (x, i) -> x > i), f(l, lambda x : x)",
        "select * rename (a as b), * except (a), * not like 'a%', t.* similar to 'x'",
        "select columns(*), sum(columns(* exclude (a))), coalesce(*columns('a')) from t",
        "select * except select 1",
    ]);
}

#[test]
fn new_words_stay_names() {
    unchanged(&[
        "select pivot, asof, positional, summarize, columns, lambda, sample, top, percent from t",
        "select 1 as pivot, 2 as asof, 3 as top, 4 as summarize",
        "select pivot.a from t pivot, u asof, v positional, w summarize, x columns, y sample, z top",
        "select * from pivot p join asof a on p.x = a.x",
        "select (pivot), (summarize), (describe), (pivot + 1), (show and 1) from t",
        "select pivot(1), summarize(2) from t limit percent",
    ]);
    check(&[("select 1 top, 2 view, 3 sort", "SELECT 1 AS top, 2 AS view, 3 AS sort")]);
}

#[test]
fn what_is_not_complete_is_an_error() {
    for (sql, expected) in [
        ("pivot t", "ON, USING or GROUP BY in PIVOT"),
        ("unpivot t", "ON"),
        ("select * from t tablesample bernoulli", "( after the method"),
        ("select * from t using sample 'x'", "a method"),
        ("select * from t using sample 5 (7)", "the method of the sample"),
        ("select * from t using sample 5 repeatable 7", "( after REPEATABLE"),
        ("select sum(a) over (rows 1 preceding exclude some)", "TIES or NO OTHERS"),
        ("select [x for in l]", "IN"),
        ("select a,, b", "an expression"),
        ("select * from a: t b", "one alias"),
    ] {
        let parser = Parser::new(&Tessera).try_with_sql(sql);
        let error = parser.and_then(|mut parser| parser.parse_statements()).unwrap_err();
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}
