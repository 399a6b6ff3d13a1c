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

/// Keys of one to five words: some are compared and read as words, others as bytes.
#[test]
fn keys_of_every_width_are_sorted_and_keep_their_values() {
    let mut numbers = Numbers::new(13);
    let floats = ["-0.0", "0.0", "NaN", "-1.5", "2.25", "inf", "NULL"];
    let lines: Vec<String> = (0..3_000)
        .map(|i| {
            let mut below = |limit: u64| match numbers.below(limit) as i64 {
                0 => "NULL".to_string(),
                number => (number - limit as i64 / 2).to_string(),
            };
            let (a, b, c) = (below(5), below(9), below(4));
            format!("{a} {b} {c} {} {i}", floats[numbers.below(7) as usize])
        })
        .collect();
    let fields = "<a: int64?, b: int32?, c: int64?, d: float64?, i: int64>";
    let by_rank = |text: &str, descending: bool, nulls_first: bool| {
        let value = match text {
            "NULL" => return (if nulls_first { 0 } else { 2 }, 0),
            "NaN" => i64::MAX,
            "inf" => i64::MAX - 1,
            text => (text.parse::<f64>().unwrap() * 4.0) as i64,
        };
        (1, if descending { -value } else { value })
    };
    for list in [
        &[("a", true, false)][..],
        &[("b", false, true), ("a", false, false)],
        &[("a", false, false), ("d", true, true)],
        &[("c", true, true), ("d", false, false), ("b", true, false)],
        &[("d", false, true), ("a", true, false), ("c", false, false)],
        &[("d", false, false), ("a", false, true), ("c", true, false), ("b", false, false)],
    ] {
        let mut expected: Vec<Vec<&str>> =
            lines.iter().map(|line| line.split(' ').collect()).collect();
        expected.sort_by_key(|line| {
            let key = |(field, descending, nulls_first): &(&str, bool, bool)| {
                by_rank(line["abcd".find(field).unwrap()], *descending, *nulls_first)
            };
            list.iter().map(key).collect::<Vec<_>>()
        });
        let expected: Vec<String> = expected.iter().map(|line| line.join(" ")).collect();
        let mut plan = test_plan();
        let table = plan.table(batch(fields, &lines.join("|")));
        let root = plan.add("sort", &[table], keys(list));
        for (chunk, workers) in [(100, 1), (2048, 3)] {
            let found = plan.run(root, chunk, workers).unwrap();
            same(&found, fields, &expected.join("|"));
        }
        let context = TestContext::with_state_budget(300, 2, 0);
        same(&plan.run_in(root, context.clone()).unwrap(), fields, &expected.join("|"));
        assert!(context.spilled() > 0, "nothing was spilled");
    }
}

#[test]
fn a_limit_keeps_the_first_tuples_of_each_partition() {
    let mut numbers = Numbers::new(14);
    let lines: Vec<(String, u64, i64)> = (0..20_000)
        .map(|i| (format!("partition-{:02}", numbers.below(40)), numbers.below(900), i))
        .collect();
    let text: Vec<String> = lines.iter().map(|(p, a, i)| format!("{p} {p} {a} {i}")).collect();
    for (partition, budget) in [("p", None), ("q", None), ("p", Some(200_000)), ("q", Some(0))] {
        let mut plan = test_plan();
        let table =
            plan.table(batch("<p: string, q: string, a: int64, i: int64>", &text.join("|")));
        let list = [(partition, false, false), ("a", true, false)];
        let params = keys(&list).with("partition", 1).with("limit", 3);
        let root = plan.add("sort", &[table], params);
        let found = match budget {
            None => rows(&plan.run(root, 500, 2).unwrap()),
            Some(budget) => {
                let context = TestContext::with_state_budget(500, 2, budget);
                let found = rows(&plan.run_in(root, context.clone()).unwrap());
                assert_eq!(context.used(), 0);
                found
            }
        };
        let mut sorted = lines.clone();
        sorted.sort_by(|x, y| (&x.0, y.1).cmp(&(&y.0, x.1)));
        let first = |rows: Vec<String>| -> Vec<String> {
            let (mut last, mut count) = (String::new(), 0);
            let is_first = |row: &String| {
                let partition = row.split(' ').next().unwrap_or_default();
                count = if partition == last { count + 1 } else { 1 };
                last = partition.to_string();
                count <= 3
            };
            rows.into_iter().filter(is_first).collect()
        };
        let all = sorted.iter().map(|(p, a, i)| format!("{p} {p} {a} {i}")).collect();
        assert!(found.len() < lines.len() / 2, "{partition} {budget:?}: {}", found.len());
        assert_eq!(first(found), first(all), "{partition} {budget:?}");
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
        (keys(&[("a", false, false)]).with("limit", 3), "limit needs parameter partition"),
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
