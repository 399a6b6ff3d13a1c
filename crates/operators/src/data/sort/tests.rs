//! Sorts against the order of SQL, with and without memory.

use tessera_context::testing::{Numbers, TestContext, batch, rows, same};
use tessera_operator::testing::{SETTINGS, sort_keys as keys};
use tessera_plan::{Params, SortKey, Value};

use super::*;
use crate::testing::test_plan;

#[test]
fn order_is_that_of_sql_and_stable() {
    let table = || batch("<a: int64?, b: string?>", "2 x|NULL y|1 z|2 a|NULL b|1 é|1 NULL|1 z1");
    let check = |list: &[(&str, bool, bool)], expected: &str| {
        let mut plan = test_plan();
        let table = plan.table(table());
        let root = plan.add("sort", &[table], keys(list));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64?, b: string?>", expected);
        }
    };
    check(&[("a", false, false)], "1 z|1 é|1 NULL|1 z1|2 x|2 a|NULL y|NULL b");
    check(&[("a", true, true)], "NULL y|NULL b|2 x|2 a|1 z|1 é|1 NULL|1 z1");
    let both = [("a", true, false), ("b", false, true)];
    check(&both, "2 a|2 x|1 NULL|1 z|1 z1|1 é|NULL b|NULL y");
}

#[test]
fn floats_have_one_nan_and_one_zero() {
    let mut plan = test_plan();
    let table = plan
        .table(batch("<a: float64?, i: int64>", "NaN 1|0 2|-0 3|inf 4|-NaN 5|NULL 6|-inf 7|0 8"));
    let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
    let by = plan.add(
        "projection",
        &[root],
        Params::new().with("fields", tessera_operator::testing::names(&["i"])),
    );
    same(&plan.run(by, 7, 2).unwrap(), "<i: int64>", "7|2|3|8|4|1|5|6");
}

#[test]
fn many_tuples_over_many_tasks() {
    let mut numbers = Numbers::new(11);
    let lines: Vec<(i64, String)> = (0..100_000)
        .map(|_| {
            (
                numbers.below(5_000) as i64 - 2_500,
                format!("a-rather-long-text-{}", numbers.below(9)),
            )
        })
        .collect();
    let text: Vec<String> = lines.iter().map(|(a, b)| format!("{a} {b}")).collect();
    for by_text in [false, true] {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64, b: string>", &text.join("|")));
        let list: &[_] = if by_text { &[("b", true, false)] } else { &[("a", false, false)] };
        let root = plan.add("sort", &[table], keys(list));
        let mut expected = lines.clone();
        match by_text {
            true => expected.sort_by(|x, y| y.1.cmp(&x.1)),
            false => expected.sort_by_key(|line| line.0),
        }
        let expected: Vec<String> = expected.iter().map(|(a, b)| format!("{a} {b}")).collect();
        assert_eq!(rows(&plan.run(root, 2048, 4).unwrap()), expected);
    }
}

#[test]
fn runs_that_left_memory_are_merged_in_the_order_of_the_source() {
    let mut numbers = Numbers::new(12);
    let lines: Vec<(u64, String, u64)> = (0..30_000)
        .map(|i| (numbers.below(900), format!("a-rather-long-text-{}", numbers.below(30)), i))
        .collect();
    let text: Vec<String> = lines.iter().map(|(a, b, i)| format!("{a} {b} {i}")).collect();
    for (list, by_text) in
        [(&[("a", false, false)][..], false), (&[("b", true, false), ("a", true, true)], true)]
    {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64, b: string, i: int64>", &text.join("|")));
        let root = plan.add("sort", &[table], keys(list));
        let mut expected = lines.clone();
        match by_text {
            true => expected.sort_by(|x, y| (&y.1, y.0).cmp(&(&x.1, x.0))),
            false => expected.sort_by_key(|line| line.0),
        }
        let expected: Vec<String> =
            expected.iter().map(|(a, b, i)| format!("{a} {b} {i}")).collect();
        // With the smallest budget each chunk is a run: more runs than are merged at once.
        for (budget, chunk_rows, workers) in [(0, 300, 1), (0, 300, 3), (700_000, 2048, 4)] {
            let context = TestContext::with_state_budget(chunk_rows, workers, budget);
            let found = rows(&plan.run_in(root, context.clone()).unwrap());
            assert!(
                found == expected,
                "budget {budget}, chunks of {chunk_rows}, {workers} workers"
            );
            assert_eq!(context.used(), 0);
            assert!(context.spilled() > 0, "nothing was spilled");
        }
    }
}

#[test]
fn nothing_sorted_is_nothing_and_the_budget_holds() {
    let mut plan = test_plan();
    let table = plan.table(batch("<a: int64>", ""));
    let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
    assert_eq!(plan.run(root, 7, 2).unwrap().num_rows(), 0);
    let mut plan = test_plan();
    let text: Vec<String> = (0..5_000).map(|i| i.to_string()).collect();
    let table = plan.table(batch("<a: int64>", &text.join("|")));
    let root = plan.add("sort", &[table], keys(&[("a", false, false)]));
    let context = TestContext::with_budget(2048, 1, 10_000);
    assert_eq!(plan.run_in(root, context.clone()).unwrap_err().code(), tessera_types::Code::Limit);
    assert_eq!(context.used(), 0);
}

#[test]
fn keys_are_checked() {
    for (params, expected) in [
        (keys(&[("c", false, false)]), "sort key c is not a field"),
        (Params::new().with("keys", Value::List(vec![])), "at least one field"),
        (Params::new(), "parameter keys is missing"),
    ] {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("sort", &[table], params);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn sorted_streams_are_merged_and_others_rejected() {
    let mut plan = test_plan();
    let key = SortKey { field: "a".into(), descending: false, nulls_first: false };
    let params =
        plan.given_as(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"), None, Order::Sorted(vec![key]));
    let table = plan.add("given", &[], params);
    let root = plan.add("merge", &[table], keys(&[("a", false, false)]));
    for (chunk, workers) in SETTINGS {
        same(&plan.run(root, chunk, workers).unwrap(), "<a: int64>", "1|2|3|4|5|6|7|8|9");
    }
    let root = plan.add("merge", &[table], keys(&[("a", true, false)]));
    assert!(plan.verify(root).unwrap_err().to_string().contains("insert a sort"));
}
