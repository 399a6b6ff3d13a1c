//! Plans of window functions: shared sorts, unused calls, predicates below, subqueries.

use tessera_session::{Config, Session, StatementResult};

fn session() -> Session {
    let mut session = Session::new(Config::default()).unwrap();
    for sql in [
        "create temp table t as select * from (values (1, 2, 3, 4), (1, 3, 4, 5)) v(a, b, c, d)",
        "create temp table w as select i b, i % 3 c, i % 2 = 0 e from range(100) r(i)",
        "create temp table u as select * from (values (1), (2)) v(a)",
    ] {
        session.execute(sql).unwrap();
    }
    session
}

fn plan(sql: &str) -> String {
    match session().execute(&format!("explain {sql}")).unwrap().pop() {
        Some(StatementResult::Text(plan)) => plan,
        other => panic!("{sql}: {other:?}"),
    }
}

fn count(plan: &str, operator: &str) -> usize {
    plan.matches(&format!(" = {operator}(")).count()
}

#[test]
fn windows_share_a_sort_if_one_order_begins_with_the_other() {
    for (calls, sorts, bounds) in [
        (
            "rank() over (partition by a order by b, c), sum(d) over (partition by a order by b)",
            1,
            2,
        ),
        ("count(*) over (partition by a), lag(d) over (partition by a order by c desc)", 1, 2),
        (
            "rank() over (order by b), row_number() over (order by b), lead(d) over (order by b)",
            1,
            1,
        ),
        ("sum(d) over (partition by a, b), max(d) over (partition by b, a order by c)", 1, 2),
        ("rank() over (order by b, c), rank() over (order by c), rank() over (order by b)", 2, 3),
        ("rank() over (partition by a order by b), rank() over (partition by b)", 2, 2),
        ("sum(d) over (order by a + b), count(*) over (order by a + b, c), count(*) over ()", 1, 3),
    ] {
        let plan = plan(&format!("select {calls} from t"));
        assert_eq!(
            (count(&plan, "sort"), count(&plan, "window_bounds")),
            (sorts, bounds),
            "{plan}"
        );
    }
}

#[test]
fn calls_that_look_at_no_later_tuple_but_peers_are_scanned() {
    for (call, operator) in [
        ("row_number() over (order by b)", "window_scan"),
        ("lag(c, 2, 0) over (order by b)", "window_scan"),
        ("sum(c) over (order by b rows unbounded preceding)", "window_scan"),
        ("first_value(c) over (order by b)", "window_scan"),
        ("sum(c) over (order by b)", "window_scan"),
        ("last_value(c) over (order by b)", "window_scan"),
        ("sum(c) over (partition by b)", "window_frame"),
        ("sum(distinct c) over (order by b)", "window_frame"),
        ("lag(c, a) over (order by b)", "window_frame"),
        ("lead(c) over (order by b)", "window_frame"),
        ("sum(c) over (order by b rows 1 preceding exclude current row)", "window_frame"),
    ] {
        let plan = plan(&format!("select {call} from t"));
        assert_eq!(count(&plan, operator), 1, "{plan}");
        assert_eq!(count(&plan, "window_scan") + count(&plan, "window_frame"), 1, "{plan}");
    }
}

#[test]
fn unused_calls_are_not_computed() {
    let plan = plan("select a from (select a, rank() over (order by b) as r from t) x");
    assert_eq!((count(&plan, "sort"), count(&plan, "window_bounds")), (0, 0), "{plan}");
}

#[test]
fn predicates_on_partitions_move_below_the_sort() {
    let inner = "select a, b, rank() over (partition by a order by b) as r from t";
    let above = |predicate: &str| {
        let plan = plan(&format!("select * from ({inner}) x where {predicate}"));
        plan.find(" = filter(")
            .is_some_and(|at| plan.find(" = sort(").is_some_and(|sort| sort < at))
    };
    assert!(!above("a = 1"));
    assert!(above("b = 2"));
    assert!(above("a = b"));
    assert!(above("r = 1"));
    // It may raise an error for a tuple that another predicate rejects.
    assert!(above("r = 1 and 6 / a > 1"));
}

#[test]
fn subqueries_with_windows_become_joins_where_equalities_select_their_tuples() {
    let of = |condition: &str| {
        let inner =
            format!("select b, row_number() over (order by c) as n from t where {condition}");
        plan(&format!("select u.a, x.n from u cross join lateral ({inner}) x"))
    };
    let joined = of("t.a = u.a");
    assert_eq!(count(&joined, "nested_map"), 0, "{joined}");
    assert!(joined.contains("partition = [t_a]"), "{joined}");
    let nested = of("t.a < u.a");
    assert_eq!(count(&nested, "nested_map"), 1, "{nested}");
}

#[test]
fn aggregates_over_whole_partitions_are_joined_with_groups() {
    // A boolean has few values, so the estimate of the groups is low.
    for (call, sorts) in [
        ("count(distinct b) over (partition by e)", 0),
        ("sum(b) filter (where c > 1) over ()", 0),
        ("max(b) over (order by c rows between unbounded preceding and unbounded following)", 0),
        ("sum(b) over (partition by e), max(b) over ()", 0),
        ("sum(b) over (partition by e), row_number() over (order by b)", 1),
        ("sum(b) over (partition by e), row_number() over (partition by e)", 1),
        ("count(*) over (partition by e order by c)", 1),
        ("count(*) over (rows between 1 preceding and unbounded following)", 1),
        ("count(*) over (order by b groups between unbounded preceding and current row)", 1),
        ("sum(b) over (rows between unbounded preceding and unbounded following exclude ties)", 1),
        ("string_agg(b::text, ',') over (partition by e)", 1),
        ("row_number() over (partition by e)", 1),
        ("sum(b) over (partition by b)", 1),
    ] {
        let plan = plan(&format!("select {call} from w"));
        assert_eq!(count(&plan, "sort"), sorts, "{call}: {plan}");
    }
}

#[test]
fn a_bound_of_row_number_limits_the_sort() {
    let numbered = "row_number() over (partition by a order by b) n";
    for (sql, limited) in [
        (format!("select * from (select *, {numbered} from t) where n <= 3"), Some("limit = 3")),
        (format!("select * from (select *, {numbered} from t) where n < 3"), Some("limit = 2")),
        (format!("select * from (select *, {numbered} from t) where n = 1"), Some("limit = 1")),
        (format!("select *, {numbered} from t qualify n <= 2 and c > 1"), Some("limit = 2")),
        (format!("select * from (select *, {numbered} from t) where n > 3"), None),
        (format!("select * from (select *, {numbered} from t) where n <= 3 or c = 1"), None),
        (
            format!(
                "select * from (select *, {numbered}, count(*) over (partition by a order by b) m \
                 from t) where n <= 3"
            ),
            None,
        ),
    ] {
        let plan = plan(&sql);
        let found = limited.map_or(plan.contains("limit = "), |limit| !plan.contains(limit));
        assert!(!found, "{sql}: {plan}");
    }
}
