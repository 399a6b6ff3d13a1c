//! SQL with nested plans: recursive queries, set operations with duplicates, subqueries in ON. The
//! expected rows are those of PostgreSQL.

use tessera_session::{Config, QueryResult, Session, StatementResult};
use tessera_types::Code;

use crate::texts::texts;

/// Every value as text, row by row, in order of the text.
fn sorted(result: &QueryResult) -> Vec<String> {
    let mut out = texts(result);
    out.sort();
    out
}

fn session(threads: usize, chunk_rows: usize) -> Session {
    Session::new(Config { threads, chunk_rows, ..Config::default() }).unwrap()
}

/// The answer is this one, with one worker and two, with chunks of 1, 7 and 2,048 tuples, and so is
/// that of the plan that EXPLAIN prints.
fn answers(sql: &str, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    for (threads, chunk_rows) in [(1, 2_048), (2, 2_048), (1, 7), (2, 7), (2, 1)] {
        let mut session = session(threads, chunk_rows);
        let mut execute =
            |sql: &str| session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop();
        match execute(sql) {
            Some(StatementResult::Rows(result)) => {
                assert_eq!(
                    sorted(&result),
                    expected,
                    "{sql} with {threads} workers, chunks of {chunk_rows}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
        let Some(StatementResult::Text(plan)) = execute(&format!("EXPLAIN {sql}")) else {
            panic!("{sql}")
        };
        let again = session.run_plan(&plan).unwrap_or_else(|error| panic!("{plan}\n{error}"));
        assert_eq!(sorted(&again), expected, "{plan}");
    }
}

fn refused(sql: &str, code: Code, part: &str) {
    let error = session(1, 2_048).execute(sql).unwrap_err();
    assert_eq!(error.code(), code, "{sql}: {error}");
    assert!(error.to_string().contains(part), "{sql}: {error}");
}

#[test]
fn recursion_reads_what_the_last_run_gave() {
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
        &["1", "2", "3", "4", "5"],
    );
    // The whole of what has come so far would give more.
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT a.n + b.n FROM t a, t b WHERE a.n < 20) SELECT * FROM t",
        &["1", "2", "4", "8", "16", "32"],
    );
    answers(
        "WITH RECURSIVE t(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM t WHERE b < 1000) \
         SELECT count(*), max(a), sum(b) FROM t",
        &["17 987 4180"],
    );
}

#[test]
fn union_forgets_what_was_there_before() {
    let graph = "(VALUES (1, 2), (2, 3), (3, 1), (3, 4), (5, 6), (NULL, 1)) e(a, b)";
    answers(
        &format!(
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT b FROM t JOIN {graph} ON a = n) SELECT * FROM t"
        ),
        &["1", "2", "3", "4"],
    );
    // NULLs are equal to each other, and so are duplicates within one run.
    answers(
        "WITH RECURSIVE t(n) AS (SELECT * FROM (VALUES (1), (1), (NULL), (NULL)) v(x) UNION SELECT n FROM t) SELECT * FROM t",
        &["1", "NULL"],
    );
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT (n * 7) % 1000 FROM t) SELECT count(*), min(n) FROM t",
        &["20 1"],
    );
}

#[test]
fn a_limit_ends_a_recursion_without_an_end() {
    let endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)";
    answers(&format!("{endless} SELECT * FROM t LIMIT 3 OFFSET 4"), &["5", "6", "7"]);
    answers(&format!("{endless} SELECT * FROM t WHERE n % 2 = 0 LIMIT 2"), &["2", "4"]);
}

#[test]
fn recursions_stand_within_each_other_and_within_subqueries() {
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3), \
         u(m) AS (SELECT n FROM t UNION ALL SELECT m * 10 FROM u WHERE m < 10) SELECT * FROM u, t WHERE m = 10 * n",
        &["10 1", "20 2", "30 3"],
    );
    answers(
        "SELECT k, (WITH RECURSIVE t(n) AS (SELECT k UNION ALL SELECT n - 1 FROM t WHERE n > k - 2) SELECT sum(n) FROM t) \
         FROM (VALUES (1), (10)) v(k)",
        &["1 0", "10 27"],
    );
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n IN (SELECT * FROM (VALUES (1), (2)) v(x))) \
         SELECT n FROM t",
        &["1", "2", "3"],
    );
}

#[test]
fn recursions_of_one_name_are_told_apart() {
    let sum = |end: i32| {
        format!(
            "(WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {end}) SELECT sum(n) AS s FROM t)"
        )
    };
    answers(
        &format!("SELECT a.s, b.s, c.s FROM {} a, {} b, {} c", sum(3), sum(4), sum(3)),
        &["6 10 6"],
    );
    let step = |plus: i32| {
        format!(
            "(WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT max(n) + {plus} FROM t HAVING max(n) < 9) \
             SELECT sum(n) AS s FROM t)"
        )
    };
    answers(&format!("SELECT a.s, b.s FROM {} a, {} b", step(4), step(8)), &["15 10"]);
}

#[test]
fn both_terms_have_the_types_of_the_first() {
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT CAST(n * 2.5 AS integer) FROM t WHERE n < 20) SELECT * FROM t",
        &["1", "3", "8", "20"],
    );
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM t WHERE n < 3 UNION ALL SELECT 9 FROM t WHERE n = 2)) \
         SELECT * FROM t",
        &["1", "2", "3", "9"],
    );
    refused(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n * 0.5 FROM t WHERE n > 0) SELECT * FROM t",
        Code::Semantic,
        "cast one of them",
    );
    for clause in ["ORDER BY 1", "LIMIT 1"] {
        refused(
            &format!(
                "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t {clause}) SELECT * FROM t"
            ),
            Code::Unsupported,
            "in a recursive query",
        );
    }
    // Not recursive for all that is said: such a query is taken whole.
    answers(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC LIMIT 1) SELECT * FROM t",
        &["2"],
    );
}

#[test]
fn set_operations_with_all_count() {
    let (a, b) =
        ("(VALUES (1), (1), (1), (2), (NULL), (NULL)) a(x)", "(VALUES (1), (1), (3), (NULL)) b(x)");
    answers(&format!("SELECT x FROM {a} INTERSECT ALL SELECT x FROM {b}"), &["1", "1", "NULL"]);
    answers(&format!("SELECT x FROM {a} EXCEPT ALL SELECT x FROM {b}"), &["1", "2", "NULL"]);
    answers(&format!("SELECT x FROM {a} INTERSECT SELECT x FROM {b}"), &["1", "NULL"]);
    answers(&format!("SELECT x FROM {a} EXCEPT SELECT x FROM {b}"), &["2"]);
    answers(&format!("SELECT DISTINCT x FROM {a} EXCEPT ALL SELECT x FROM {b}"), &["2"]);
    answers(
        &format!(
            "SELECT x, 'a' FROM {a} EXCEPT ALL SELECT x, 'a' FROM {b} EXCEPT ALL SELECT 2, 'a'"
        ),
        &["1 a", "NULL a"],
    );
    // The result has the type that both sides have in common.
    answers("SELECT 1.5 EXCEPT ALL SELECT * FROM (VALUES (700.25), (1.0)) v(x)", &["1.50"]);
}

#[test]
fn subqueries_stand_in_on() {
    let join = |kind: &str, on: &str| {
        let (a, b) = ("(VALUES (1), (2), (3)) a(x)", "(VALUES (1), (2), (4)) b(y)");
        format!("SELECT x, y FROM {a} {kind} {b} ON x = y AND {on}")
    };
    answers(&join("JOIN", "x IN (SELECT 2 UNION ALL SELECT 3)"), &["2 2"]);
    answers(
        &join("JOIN", "(x = 1 OR EXISTS (SELECT 1 FROM (VALUES (2)) c(z) WHERE z = x + y - 2))"),
        &["1 1", "2 2"],
    );
    answers(&join("LEFT JOIN", "y > (SELECT 1)"), &["1 NULL", "2 2", "3 NULL"]);
    answers(
        &join("RIGHT JOIN", "EXISTS (SELECT 1 FROM (VALUES (2)) c(z) WHERE z = x)"),
        &["2 2", "NULL 1", "NULL 4"],
    );
    answers(&join("LEFT JOIN", "x > (SELECT 1)"), &["1 NULL", "2 2", "3 NULL"]);
    answers(&join("FULL JOIN", "x > (SELECT 1)"), &["1 NULL", "2 2", "3 NULL", "NULL 1", "NULL 4"]);
    let both = "EXISTS (SELECT 1 FROM (VALUES (2)) c(z) WHERE z = x + y)";
    refused(&join("LEFT JOIN", both), Code::Unsupported, "a subquery in ON of an outer join");
}

#[test]
fn the_end_of_the_text_has_a_place() {
    refused("SELECT 1 FROM", Code::Syntax, "line 1, column 14");
    refused("SELECT 1;\nSELECT (2\n  ", Code::Syntax, "line 2, column 10");
    refused("SELECT 'é', (", Code::Syntax, "line 1, column 14");
}

#[test]
fn text_is_in_the_collation_c() {
    answers(
        "SELECT x COLLATE \"C\" FROM (VALUES ('b'), ('B')) v(x) WHERE x COLLATE \"C\" < 'a'",
        &["B"],
    );
    answers("SELECT x FROM (VALUES ('b'), ('C')) v(x) ORDER BY x COLLATE \"de_DE\"", &["b", "C"]);
    refused("SELECT 'a' COLLATE nocas", Code::Semantic, "did you mean 'nocase'?");
}

#[test]
fn groupings_are_by_expressions_with_constants_too() {
    let table = "(VALUES (1, 'a'), (2, 'b'), (7, 'b')) v(x, y)";
    answers(
        &format!("SELECT x + 1, grouping(x + 1), count(*) FROM {table} GROUP BY ROLLUP (x + 1)"),
        &["2 0 1", "3 0 1", "8 0 1", "NULL 1 3"],
    );
    answers(
        &format!(
            "SELECT CAST(x % 5 AS double), y || 'c', sum(x) FROM {table} GROUP BY GROUPING SETS ((CAST(x % 5 AS double)), (y || 'c'), ())"
        ),
        &["1.0 NULL 1", "2.0 NULL 9", "NULL ac 1", "NULL bc 9", "NULL NULL 10"],
    );
    answers(
        &format!(
            "SELECT CAST(x AS double), grouping(CAST(x AS double)), sum(x) FROM {table} GROUP BY CUBE (CAST(x AS double))"
        ),
        &["1.0 0 1", "2.0 0 2", "7.0 0 7", "NULL 1 10"],
    );
    // A key that is a constant expression, which the planner would simplify.
    answers(
        &format!(
            "SELECT y, DATE '1995-01-01' + INTERVAL '1' MONTH, count(*) FROM {table} GROUP BY ROLLUP (y, DATE '1995-01-01' + INTERVAL '1' MONTH)"
        ),
        &[
            "NULL NULL 3",
            "a 1995-02-01T00:00:00 1",
            "a NULL 1",
            "b 1995-02-01T00:00:00 2",
            "b NULL 2",
        ],
    );
}

#[test]
fn literals_have_postgres_types_in_unions_and_values() {
    let types = "SELECT arrow_typeof(x) FROM";
    answers(&format!("{types} (SELECT 1 AS x UNION ALL SELECT 2) u LIMIT 1"), &["Int32"]);
    answers(&format!("{types} (VALUES (NULL), (1)) v(x) LIMIT 1"), &["Int32"]);
    answers(&format!("{types} (VALUES (1), (3000000000)) v(x) LIMIT 1"), &["Int64"]);
}

#[test]
fn a_limit_that_is_met_leaves_the_rest_of_a_union_alone() {
    // The third input would raise.
    let union = "SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 1 / y FROM (VALUES (0)) v(y)";
    for (count, rows) in [(1, vec!["1"]), (2, vec!["1", "2"])] {
        let mut session = session(1, 2_048);
        let results = session.execute(&format!("SELECT x FROM ({union}) u LIMIT {count}")).unwrap();
        let Some(StatementResult::Rows(result)) = results.last() else { panic!("{results:?}") };
        assert_eq!(sorted(result), rows);
    }
    refused(&format!("SELECT x FROM ({union}) u LIMIT 3"), Code::DivisionByZero, "zero");
}

#[test]
fn columns_of_the_result_are_sorted_by_though_a_cast_is_called_like_them() {
    // With LIMIT, what was sorted by shows in what is left.
    let rows = "FROM (VALUES (1, 10), (2, 30), (3, 20)) AS t(a, b)";
    answers(
        &format!("SELECT -a AS b, CAST(b AS varchar) AS a {rows} GROUP BY 1, 2 ORDER BY 1 LIMIT 1"),
        &["-3 20"],
    );
    answers(
        &format!(
            "SELECT -a AS b, CAST(b AS varchar) AS c {rows} GROUP BY 1, 2 ORDER BY b DESC LIMIT 1"
        ),
        &["-1 10"],
    );
    answers(
        &format!(
            "SELECT -a AS c, CAST(b AS varchar) AS b {rows} GROUP BY 1, 2 ORDER BY b DESC LIMIT 1"
        ),
        &["-2 30"],
    );
    answers(
        &format!(
            "SELECT -a AS b, CAST(b AS varchar) AS c {rows} GROUP BY 1, 2 ORDER BY b, max(a) LIMIT 1"
        ),
        &["-3 20"],
    );
}

#[test]
fn an_expression_and_a_cast_of_it_are_two() {
    let rows = "FROM (VALUES (1, 10), (2, 30), (2, 20)) AS t(a, b)";
    answers(&format!("SELECT sum(a), sum(CAST(a AS double)), sum(a::bigint) {rows}"), &["5 5.0 5"]);
    answers(
        &format!(
            "SELECT a + 1, CAST(a + 1 AS varchar) || 'x', count(*) {rows} GROUP BY a + 1, CAST(a + 1 AS varchar)"
        ),
        &["2 2x 1", "3 3x 2"],
    );
    answers(
        &format!(
            "SELECT a + 1 AS x, (a + 1)::varchar AS y {rows} GROUP BY 1, 2 HAVING max(b) > max(b::double) - 1 ORDER BY y"
        ),
        &["2 2", "3 3"],
    );
    answers(
        &format!(
            "SELECT (SELECT max(u.b) + count(CAST(u.b AS double)) {} WHERE u.a = t.a) {rows}",
            rows.replace(" t(", " u(")
        ),
        &["11", "32", "32"],
    );
}

#[test]
fn distinct_values_are_grouped_first() {
    let rows = "FROM (VALUES (1, 5, 'a'), (1, 5, 'b'), (1, 7, NULL), (2, NULL, 'c'), (2, NULL, 'c'), (NULL, 5, 'd')) AS t(k, v, s)";
    answers(
        &format!(
            "SELECT k, count(DISTINCT v), sum(DISTINCT v), avg(DISTINCT v), min(DISTINCT v) {rows} GROUP BY k"
        ),
        &["1 2 12 6.0 5", "2 0 NULL NULL NULL", "NULL 1 5 5.0 5"],
    );
    answers(
        &format!(
            "SELECT k, count(DISTINCT v), count(*), count(v), sum(v), max(v), count(*) FILTER (WHERE s > 'a') {rows} \
             GROUP BY k"
        ),
        &["1 2 3 3 17 7 1", "2 0 2 0 NULL NULL 2", "NULL 1 1 1 5 5 1"],
    );
    // Of no tuples.
    answers(
        &format!("SELECT count(DISTINCT v), count(*), sum(v) {rows} WHERE k > 9"),
        &["0 0 NULL"],
    );
    answers(&format!("SELECT k, count(DISTINCT v), count(*) {rows} WHERE k > 9 GROUP BY k"), &[]);
    // Left as they are: two values, strings for each value.
    answers(
        &format!(
            "SELECT count(DISTINCT v), count(DISTINCT s), min(s), string_agg(s, '' ORDER BY s) {rows}"
        ),
        &["2 4 a abccd"],
    );
    // In a subquery that becomes a join.
    answers(
        &format!(
            "SELECT x, (SELECT count(DISTINCT v) + count(*) {rows} WHERE k = x) FROM (VALUES (1), (2), (3)) AS u(x)"
        ),
        &["1 5", "2 2", "3 0"],
    );
}

#[test]
fn functions_in_from_yield_rows() {
    answers("SELECT * FROM generate_series(1, 3)", &["1", "2", "3"]);
    answers("SELECT generate_series FROM generate_series(1, 7, 3)", &["1", "4", "7"]);
    answers("SELECT n + n FROM generate_series(1, 2) AS n", &["2", "4"]);
    answers(
        "SELECT t.n, u.n FROM range(2) AS t(n) JOIN unnest([1, 5]) AS u(n) ON t.n = u.n",
        &["1 1"],
    );
    answers("SELECT unnest FROM unnest([4, 5])", &["4", "5"]);
    answers("SELECT count(*) FROM Generate_Series(1, 0)", &["0"]);
    answers(
        "SELECT g, x FROM (VALUES (1), (2)) v(g), LATERAL generate_series(1, g) AS t(x)",
        &["1 1", "2 1", "2 2"],
    );
    answers("SELECT * FROM generate_series(3, 4) WITH ORDINALITY", &["3 1", "4 2"]);
    refused("SELECT * FROM series(1, 2)", Code::Semantic, "series");
}

#[test]
fn distinct_floating_point_numbers_are_counted_approximately() {
    let numbers = "(VALUES ('1.5'), ('0'), ('-0'), (NULL), ('nan'), ('1.5'), ('-1.5')) v(x)";
    for atom in ["double", "real"] {
        answers(&format!("SELECT approx_distinct(CAST(x AS {atom})) FROM {numbers}"), &["4"]);
    }
}
