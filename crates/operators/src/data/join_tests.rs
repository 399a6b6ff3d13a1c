//! Tests joins against a reference that tries every pair, for all kinds, keys and residuals.

mod inequalities;
mod reference;

use tessera_context::testing::{TestContext, batch, rows};
use tessera_operator::testing::{SETTINGS, TestPlan, names};
use tessera_plan::{Expr, NodeId, Params, Value};
use tessera_state::join::{JoinKind, KINDS};
use tessera_types::Code;

use crate::testing::test_plan;
use reference::{Case, KEYS, Random, Row, reference, table_text, text};

fn residual() -> Expr {
    Expr::call("lt", vec![Expr::field("lv"), Expr::field("rv")])
}

fn name_of(kind: JoinKind) -> &'static str {
    KINDS.iter().find(|(_, other)| *other == kind).unwrap().0
}

fn sides(plan: &mut TestPlan, left: &[Row], right: &[Row], atom: &str) -> (NodeId, NodeId) {
    let tuple = |side: &str| format!("<{side}a: {atom}?, {side}b: {atom}?, {side}v: int64?>");
    let l = plan.table(batch(&tuple("l"), &table_text(left)));
    let r = plan.table(batch(&tuple("r"), &table_text(right)));
    (l, r)
}

fn probe_plan(plan: &mut TestPlan, l: NodeId, r: NodeId, case: Case) -> NodeId {
    let keys =
        |side: &str| Value::names(["a", "b"][..case.keys].iter().map(|k| format!("{side}{k}")));
    let build = Params::new().with("keys", keys("r")).with("null_equal", case.null_equal);
    let table = plan.add("build", &[r], build);
    let mut params =
        Params::new().with("keys", keys("l")).with("join", Value::name(name_of(case.kind)));
    if case.residual {
        params.set("residual", residual());
    }
    if case.null_aware {
        params.set("null_aware", true);
    }
    plan.add("probe", &[table, l], params)
}

fn check(plan: &TestPlan, root: NodeId, expected: &Option<Vec<String>>, what: &str) {
    check_within(plan, root, expected, what, usize::MAX);
}

/// Like `check`, with a budget in bytes for state that can spill.
fn check_within(
    plan: &TestPlan,
    root: NodeId,
    expected: &Option<Vec<String>>,
    what: &str,
    state_budget: usize,
) {
    for (chunk_rows, workers) in SETTINGS {
        let context = TestContext::with_state_budget(chunk_rows, workers, state_budget);
        match (plan.run_in(root, context), expected) {
            (Ok(found), Some(expected)) => {
                let mut found = rows(&found);
                found.sort();
                assert_eq!(&found, expected, "{what}, chunks of {chunk_rows}, {workers} workers");
            }
            (Err(error), None) => assert!(error.message().contains("more than one row"), "{error}"),
            (found, _) => panic!("{what}: {found:?} where {expected:?} was expected"),
        }
    }
}

#[test]
fn probes_agree_with_the_reference() {
    let mut random = Random::new(7);
    let sizes = [(0, 0), (0, 5), (5, 0), (40, 30), (60, 3), (3, 60), (150, 40)];
    for (_, kind) in KINDS {
        for (keys, atom) in KEYS {
            for flags in 0..8 {
                let (residual, null_equal, null_aware) =
                    (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
                if null_aware && (null_equal || !matches!(kind, JoinKind::Anti | JoinKind::Mark)) {
                    continue;
                }
                let (l, r) = sizes[random.below(sizes.len() as u64) as usize];
                let distinct = [3, 12, 60][random.below(3) as usize];
                let nulls = random.below(3);
                let (left, right) =
                    (random.rows(l, distinct, nulls), random.rows(r, distinct, nulls / 2));
                let case = Case { kind, keys, residual, null_equal, null_aware };
                let mut plan = test_plan();
                let (l, r) = sides(&mut plan, &left, &right, atom);
                let root = probe_plan(&mut plan, l, r, case);
                let what = format!("{case:?} on {atom}, {left:?} with {right:?}");
                check(&plan, root, &reference(&left, &right, case), &what);
            }
        }
    }
}

/// State budgets: everything spills, about half does, and enough for a filter of the spilled keys.
const STATE_BUDGETS: [usize; 3] = [0, 60_000, 90_000];

#[test]
fn probes_of_builds_that_left_memory_agree_with_the_reference() {
    let mut random = Random::new(17);
    for (_, kind) in KINDS {
        for (keys, atom) in [(1, "int64"), (2, "string")] {
            for flags in 0..8 {
                let (residual, null_equal, null_aware) =
                    (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
                let counted = keys == 1 && !residual;
                let aware =
                    !null_equal && matches!(kind, JoinKind::Anti | JoinKind::Mark) && counted;
                if null_aware && !aware {
                    continue;
                }
                let distinct = if kind == JoinKind::Single { 1_000_000 } else { 1_500 };
                let nulls = random.below(3);
                // About half of the left tuples have no match.
                let (left, right) = (
                    random.rows(300, 2 * distinct, nulls),
                    random.rows(6_000, distinct, nulls / 2),
                );
                let case = Case { kind, keys, residual, null_equal, null_aware };
                let expected = reference(&left, &right, case);
                let mut plan = test_plan();
                let (l, r) = sides(&mut plan, &left, &right, atom);
                let root = probe_plan(&mut plan, l, r, case);
                for (budget, (chunk_rows, workers)) in STATE_BUDGETS
                    .into_iter()
                    .flat_map(|budget| [(7, 3), (512, 1)].map(|s| (budget, s)))
                {
                    let context = TestContext::with_state_budget(chunk_rows, workers, budget);
                    let found = plan.run_in(root, context.clone());
                    let what =
                        format!("{case:?} on {atom}, budget {budget}, chunks of {chunk_rows}");
                    assert_eq!(context.used(), 0, "{what}");
                    assert!(context.spilled() > 0, "{what}: nothing was spilled");
                    match (found, &expected) {
                        (Ok(found), Some(expected)) => {
                            let mut found = rows(&found);
                            found.sort();
                            assert_eq!(&found, expected, "{what}");
                        }
                        (Err(error), None) => {
                            assert!(error.message().contains("more than one row"))
                        }
                        (found, _) => panic!("{what}: {found:?} where {expected:?} was expected"),
                    }
                }
            }
        }
    }
}

#[test]
fn one_key_that_does_not_fit_is_joined_in_rounds() {
    for (_, kind) in KINDS {
        for flags in 0..4 {
            let (residual, null_aware) = (flags & 1 != 0, flags & 2 != 0);
            if null_aware && (residual || !matches!(kind, JoinKind::Anti | JoinKind::Mark)) {
                continue;
            }
            let mut random = Random::new(23);
            let key = |random: &mut Random| {
                (random.below(50) > 0).then(|| (random.below(20) == 0) as i64)
            };
            let mut side = |rows: usize| -> Vec<Row> {
                (0..rows).map(|row| vec![key(&mut random), None, Some(row as i64)]).collect()
            };
            let (left, right) = (side(20), side(5_000));
            let case = Case { kind, keys: 1, residual, null_equal: false, null_aware };
            let expected = reference(&left, &right, case);
            let mut plan = test_plan();
            let (l, r) = sides(&mut plan, &left, &right, "int64");
            let root = probe_plan(&mut plan, l, r, case);
            for (chunk_rows, workers) in [(100, 1), (2048, 3)] {
                let context = TestContext::with_state_budget(chunk_rows, workers, 30_000);
                let found = plan.run_in(root, context.clone());
                assert_eq!((context.used(), context.spilled() > 0), (0, true));
                match (found, &expected) {
                    (Ok(found), Some(expected)) => {
                        let mut found = rows(&found);
                        found.sort();
                        let (few, all) = (found.len(), expected.len());
                        assert!(found == *expected, "{case:?}, {few} tuples instead of {all}");
                    }
                    (Err(error), None) => {
                        assert!(error.message().contains("more than one row"), "{error}")
                    }
                    (found, _) => panic!("{case:?}: {found:?}"),
                }
            }
        }
    }
}

#[test]
fn not_in_has_its_three_answers() {
    // 1 NOT IN (): true, even for NULL. 1 NOT IN (2, NULL): unknown. NULL NOT IN (2): unknown.
    let case = Case {
        kind: JoinKind::Mark,
        keys: 1,
        residual: false,
        null_equal: false,
        null_aware: true,
    };
    let left = vec![vec![Some(1), None, None], vec![None, None, None], vec![Some(2), None, None]];
    for (right, marks) in [
        (vec![], ["false", "false", "false"]),
        (vec![Some(2)], ["false", "NULL", "true"]),
        (vec![Some(2), None], ["NULL", "NULL", "true"]),
        (vec![None], ["NULL", "NULL", "NULL"]),
    ] {
        let right: Vec<Row> = right.into_iter().map(|key| vec![key, None, None]).collect();
        let mut plan = test_plan();
        let (l, r) = sides(&mut plan, &left, &right, "int64");
        let root = probe_plan(&mut plan, l, r, case);
        let mut expected: Vec<String> =
            left.iter().zip(marks).map(|(l, mark)| format!("{} {mark}", text(l))).collect();
        expected.sort();
        check(&plan, root, &Some(expected), &format!("{right:?}"));
    }
}

#[test]
fn nested_loops_agree_with_the_reference() {
    let mut random = Random::new(11);
    for (_, kind) in KINDS {
        let aware = matches!(kind, JoinKind::Anti | JoinKind::Mark);
        for (keys, residual_too, null_aware) in
            [(0, true, false), (1, true, false), (1, false, true), (1, false, false)]
        {
            if null_aware && !aware {
                continue;
            }
            for (l, r) in [(0, 4), (4, 0), (30, 7), (7, 30), (1, 1), (5, 1)] {
                let (left, right) = (random.rows(l, 5, 1), random.rows(r, 5, 1));
                let case =
                    Case { kind, keys, residual: residual_too, null_equal: false, null_aware };
                let mut plan = test_plan();
                let (l, r) = sides(&mut plan, &left, &right, "int64");
                let mut conjuncts = Vec::new();
                if keys > 0 {
                    conjuncts.push(Expr::call("eq", vec![Expr::field("la"), Expr::field("ra")]));
                }
                if residual_too {
                    conjuncts.push(residual());
                }
                let mut params = Params::new().with("join", Value::name(name_of(kind)));
                params.set("predicate", Expr::all(conjuncts));
                if null_aware {
                    params.set("null_aware", true);
                }
                let root = plan.add("nested_loop", &[r, l], params);
                let what = format!("{case:?} {left:?} {right:?}");
                // With a budget of 0 the side is spilled and read again for each chunk.
                for state_budget in [usize::MAX, 0] {
                    check_within(&plan, root, &reference(&left, &right, case), &what, state_budget);
                }
            }
        }
    }
}

#[test]
fn merge_joins_agree_with_the_reference_in_order() {
    let mut random = Random::new(13);
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        for (keys, atom) in [(1, "int64"), (2, "int64"), (1, "float64")] {
            for residual_too in [false, true] {
                for (l, r) in [(0, 4), (4, 0), (90, 20), (20, 90)] {
                    let (left, right) = (random.rows(l, 6, 1), random.rows(r, 6, 1));
                    let case = Case {
                        kind,
                        keys,
                        residual: residual_too,
                        null_equal: false,
                        null_aware: false,
                    };
                    let mut plan = test_plan();
                    let (l, r) = sorted_sides(&mut plan, &left, &right, keys, atom);
                    let key_names = |s: &str| {
                        Value::names(["a", "b"][..keys].iter().map(|k| format!("{s}{k}")))
                    };
                    let mut params = Params::new()
                        .with("left_keys", key_names("l"))
                        .with("right_keys", key_names("r"))
                        .with("join", Value::name(name_of(kind)));
                    if residual_too {
                        params.set("residual", residual());
                    }
                    let root = plan.add("merge_join", &[l, r], params);
                    let what = format!("{case:?} {left:?} {right:?}");
                    let expected = reference(&left, &right, case).map(|rows| match atom {
                        "float64" => rows.iter().map(|row| floats(row)).collect(),
                        _ => rows,
                    });
                    let expected = expected.map(|mut rows: Vec<String>| {
                        rows.sort();
                        rows
                    });
                    check(&plan, root, &expected, &what);
                    let found = rows(&plan.run(root, 7, 1).unwrap());
                    let order = |row: &String| {
                        let key = row.split(' ').take(keys);
                        key.map(|v| v.parse::<f64>().unwrap_or(f64::MAX)).collect::<Vec<_>>()
                    };
                    assert!(found.is_sorted_by(|a, b| order(a) <= order(b)), "{found:?}");
                }
            }
        }
    }
}

/// The first two of every three values, printed as Arrow prints floats.
fn floats(row: &str) -> String {
    let value = |(i, text): (usize, &str)| match text {
        "NULL" => text.to_string(),
        _ if i % 3 < 2 => format!("{text}.0"),
        _ => text.to_string(),
    };
    row.split(' ').enumerate().map(value).collect::<Vec<_>>().join(" ")
}

fn sorted_sides(
    plan: &mut TestPlan,
    left: &[Row],
    right: &[Row],
    keys: usize,
    atom: &str,
) -> (NodeId, NodeId) {
    let mut side = |rows: &[Row], name: &str| {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| {
            row[..keys].iter().map(|v| v.unwrap_or(i64::MAX)).collect::<Vec<_>>()
        });
        let tuple = format!("<{name}a: {atom}?, {name}b: {atom}?, {name}v: int64?>");
        let order = ["a", "b"][..keys].iter().map(|key| tessera_plan::SortKey {
            field: format!("{name}{key}").into(),
            descending: false,
            nulls_first: false,
        });
        let order = tessera_plan::Order::Sorted(order.collect());
        let params = plan.given_as(batch(&tuple, &table_text(&rows)), None, order);
        plan.add("given", &[], params)
    };
    (side(left, "l"), side(right, "r"))
}

#[test]
fn strings_survive_partitioning() {
    let mut plan = test_plan();
    let line = |i: i64| format!("a-key-longer-than-twelve-{i} {i}");
    let text = (0..40_000).map(line).collect::<Vec<_>>().join("|");
    let right = plan.table(batch("<rk: string, rv: int64>", &text));
    let left = plan.table(batch("<lk: string, lv: int64>", &text));
    let table = plan.add("build", &[right], Params::new().with("keys", names(&["rk"])));
    let params = Params::new().with("keys", names(&["lk"])).with("join", Value::name("inner"));
    let root = plan.add("probe", &[table, left], params);
    let found = plan.run(root, 2048, 2).unwrap();
    assert_eq!(found.num_rows(), 40_000);
    let values = |column: usize| tessera_vector::physical::raw_values::<i64>(found.column(column));
    assert_eq!(values(1), values(3));
    assert_eq!(found.column(0), found.column(2));
}

/// The error message for an invalid plan.
fn rejected(make: impl Fn(&mut TestPlan, NodeId, NodeId, NodeId) -> NodeId) -> String {
    let mut plan = test_plan();
    let l = plan.table(batch("<la: int32, lv: int64>", ""));
    let r = plan.table(batch("<ra: int64, rv: int64>", ""));
    let table = plan.add("build", &[r], Params::new().with("keys", names(&["ra"])));
    let root = make(&mut plan, l, r, table);
    plan.verify(root).unwrap_err().to_string()
}

#[test]
fn wrong_plans_are_rejected() {
    let probe = |keys: &[&str], join: &str, extra: Option<(&str, Value)>| {
        let mut params = Params::new().with("keys", names(keys)).with("join", Value::name(join));
        if let Some((name, value)) = extra {
            params.set(name, value);
        }
        rejected(|plan, l, _, table| plan.add("probe", &[table, l], params.clone()))
    };
    for (message, parts) in [
        (probe(&["lx"], "inner", None), vec!["lx", "not a field"]),
        (probe(&[], "inner", None), vec!["keys", "at least one"]),
        (probe(&["lv"], "outer", None), vec!["join", "one of", "inner"]),
        (probe(&["lv"], "inner", Some(("null_aware", true.into()))), vec!["null_aware"]),
        (
            probe(&["lv"], "inner", Some(("residual", Expr::field("lv").into()))),
            vec!["residual", "boolean"],
        ),
        (probe(&["la"], "inner", None), vec!["la", "int32", "ra", "int64", "cast"]),
        (probe(&["lv", "la"], "inner", None), vec!["2 keys", "1"]),
    ] {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    let inner = || Params::new().with("join", Value::name("inner"));
    let message =
        rejected(|plan, l, _, _| plan.add("probe", &[l, l], inner().with("keys", names(&["la"]))));
    assert!(message.contains("table"), "{message}");
    let message = rejected(|plan, _, r, _| {
        plan.add("build", &[r], Params::new().with("keys", names(&["zz"])))
    });
    assert!(message.contains("zz"), "{message}");
    let keys = || inner().with("left_keys", names(&["lv"])).with("right_keys", names(&["rv"]));
    let message = rejected(|plan, l, r, _| plan.add("merge_join", &[l, r], keys()));
    assert!(message.contains("not sorted"), "{message}");
}

#[test]
fn a_table_over_the_budget_is_an_error() {
    let mut plan = test_plan();
    let text = (0..20_000).map(|i| i.to_string()).collect::<Vec<_>>().join("|");
    let right = plan.table(batch("<rk: int64>", &text));
    let root = plan.add("build", &[right], Params::new().with("keys", names(&["rk"])));
    for budget in [10_000, 600_000, 900_000] {
        let context = TestContext::with_budget(2048, 2, budget);
        let error = plan.collect(root, context.clone()).unwrap_err();
        assert_eq!(error.code(), Code::Limit);
        assert_eq!(context.used(), 0);
    }
}
