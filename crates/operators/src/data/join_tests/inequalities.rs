//! Tests joins by inequalities against nested loops over the same tuples.

use tessera_context::testing::{Numbers, TestContext, batch, rows};
use tessera_operator::testing::{SETTINGS, TestPlan, names};
use tessera_plan::{Expr, NodeId, Params, SortKey, Value};
use tessera_state::join::{JoinKind, KINDS};

use super::reference::Random;
use super::{name_of, rejected, residual, sides};
use crate::testing::test_plan;

const COMPARISONS: [&str; 4] = ["lt", "lt_eq", "gt", "gt_eq"];

/// The types of keys: those that compare as words, as long words and as bytes.
const ATOMS: [&str; 6] = ["int64", "int32", "float64", "decimal(30, 2)", "string", "date"];

/// The comparisons of `la` with `ra` and of `lb` with `rb`.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    kind: JoinKind,
    comparisons: &'a [&'a str],
    residual: bool,
}

fn key_names(side: &str, case: Case<'_>) -> Value {
    Value::names(["a", "b"][..case.comparisons.len()].iter().map(|key| format!("{side}{key}")))
}

fn looped(plan: &mut TestPlan, l: NodeId, r: NodeId, case: Case<'_>) -> NodeId {
    let compare = |(comparison, key): (&&str, &str)| {
        let field = |side: &str| Expr::field(format!("{side}{key}"));
        Expr::call(*comparison, vec![field("l"), field("r")])
    };
    let mut conjuncts: Vec<Expr> = case.comparisons.iter().zip(["a", "b"]).map(compare).collect();
    conjuncts.extend(case.residual.then(residual));
    let params = Params::new()
        .with("join", Value::name(name_of(case.kind)))
        .with("predicate", Expr::all(conjuncts));
    plan.add("nested_loop", &[r, l], params)
}

fn by_inequalities(plan: &mut TestPlan, l: NodeId, r: NodeId, case: Case<'_>) -> NodeId {
    let comparisons = case.comparisons.iter().map(|name| Value::name(*name)).collect();
    let mut params = Params::new()
        .with("left_keys", key_names("l", case))
        .with("comparisons", Value::List(comparisons))
        .with("right_keys", key_names("r", case))
        .with("join", Value::name(name_of(case.kind)));
    if case.residual {
        params.set("residual", residual());
    }
    plan.add("inequality_join", &[r, l], params)
}

fn sorted(plan: &mut TestPlan, input: NodeId, field: &str) -> NodeId {
    let key = SortKey { field: field.into(), descending: false, nulls_first: false };
    let params = Params::new().with("keys", vec![key.to_value()]).with("partial", true);
    plan.add("sort", &[input], params)
}

/// The sorted rows of a node, or the message of its error.
fn outcome(
    plan: &TestPlan,
    root: NodeId,
    chunk: usize,
    workers: usize,
    state: usize,
) -> Vec<String> {
    let context = TestContext::with_state_budget(chunk, workers, state);
    let mut found = match plan.run_in(root, context.clone()) {
        Ok(found) => rows(&found),
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(context.used(), 0, "memory still held after the run");
    found.sort();
    found
}

#[test]
fn they_agree_with_nested_loops() {
    let mut random = Random::new(29);
    let sizes = [(0, 5), (5, 0), (1, 1), (40, 30), (60, 3), (3, 60), (90, 40)];
    for (_, kind) in KINDS {
        for atom in ATOMS {
            for keys in [1, 2] {
                let mut pick = |count: usize| random.below(count as u64) as usize;
                let comparisons = [COMPARISONS[pick(4)], COMPARISONS[pick(4)]];
                let (l, r) = sizes[pick(sizes.len())];
                let (residual, is_sorted) = (pick(2) > 0, pick(2) > 0);
                let case = Case { kind, comparisons: &comparisons[..keys], residual };
                let distinct = [2, 9, 60][pick(3)];
                let (left, right) = (random.rows(l, distinct, 1), random.rows(r, distinct, 1));
                let mut plan = test_plan();
                let (l, r) = typed_sides(&mut plan, &left, &right, atom);
                let expected = looped(&mut plan, l, r, case);
                let (l, r) = match is_sorted {
                    true => (sorted(&mut plan, l, "la"), sorted(&mut plan, r, "ra")),
                    false => (l, r),
                };
                let root = by_inequalities(&mut plan, l, r, case);
                let expected = outcome(&plan, expected, 8192, 1, usize::MAX);
                for (chunk, workers) in SETTINGS {
                    for state in [usize::MAX, 0] {
                        let found = outcome(&plan, root, chunk, workers, state);
                        let what = format!(
                            "{case:?} on {atom}, chunks of {chunk}, {workers} workers, state of {state}"
                        );
                        assert_eq!(found, expected, "{what}: {left:?} with {right:?}");
                    }
                }
            }
        }
    }
}

/// The two sides; numbers become dates where the keys are such.
fn typed_sides(
    plan: &mut TestPlan,
    left: &[super::reference::Row],
    right: &[super::reference::Row],
    atom: &str,
) -> (NodeId, NodeId) {
    if atom != "date" {
        return sides(plan, left, right, atom);
    }
    let dates = |rows: &[super::reference::Row]| {
        let line = |row: &super::reference::Row| {
            let date = |days: Option<i64>| {
                days.map_or("NULL".to_string(), |days| {
                    format!("20{:02}-{:02}-01", days / 12, days % 12 + 1)
                })
            };
            let value = row[2].map_or("NULL".to_string(), |value| value.to_string());
            format!("{} {} {value}", date(row[0]), date(row[1]))
        };
        rows.iter().map(line).collect::<Vec<_>>().join("|")
    };
    let tuple = |side: &str| format!("<{side}a: date?, {side}b: date?, {side}v: int64?>");
    let l = plan.table(batch(&tuple("l"), &dates(left)));
    (l, plan.table(batch(&tuple("r"), &dates(right))))
}

#[test]
fn blocks_of_many_words_are_searched_whole() {
    // Few matches: most words of the bitmap are empty, and most words of the coarse one, too.
    let mut numbers = Numbers::new(3);
    let mut side = |len: u64, length: u64| -> Vec<(i64, i64)> {
        let start = |numbers: &mut Numbers| numbers.below(10_000_000) as i64;
        (0..len).map(|_| start(&mut numbers)).map(|low| (low, low + length as i64)).collect()
    };
    let (left, right) = (side(700, 2_000), side(12_000, 100));
    let overlaps = |l: &(i64, i64), r: &(i64, i64)| l.0 <= r.1 && l.1 >= r.0;
    let pairs = left.iter().map(|l| right.iter().filter(|r| overlaps(l, r)).count());
    let expected: usize = pairs.sum();
    let text = |rows: &[(i64, i64)]| {
        rows.iter().map(|(low, high)| format!("{low} {high}")).collect::<Vec<_>>().join("|")
    };
    let mut plan = test_plan();
    let l = plan.table(batch("<la: int64, lb: int64>", &text(&left)));
    let r = plan.table(batch("<rb: int64, ra: int64>", &text(&right)));
    let comparisons = ["lt_eq", "gt_eq"];
    let case = Case { kind: JoinKind::Inner, comparisons: &comparisons, residual: false };
    let unsorted = by_inequalities(&mut plan, l, r, case);
    let (l, r) = (sorted(&mut plan, l, "la"), sorted(&mut plan, r, "ra"));
    let in_order = by_inequalities(&mut plan, l, r, case);
    for root in [unsorted, in_order] {
        for (chunk, workers) in [(100, 2), (8192, 1), (65_536, 2)] {
            let found = plan.run(root, chunk, workers).unwrap();
            assert_eq!(found.num_rows(), expected, "chunks of {chunk}");
        }
    }
    assert!(expected > 500);
}

#[test]
fn every_pair_comes_in_chunks_of_the_limit() {
    // A block with all pairs is returned in batches; `collect` checks their size.
    let text = (0..500).map(|i| format!("{i} {i}")).collect::<Vec<_>>().join("|");
    for comparisons in [&["lt"][..], &["lt", "gt_eq"]] {
        let mut plan = test_plan();
        let l = plan.table(batch("<la: int64, lb: int64>", &text));
        let high = (1_000..1_500).map(|i| format!("{i} -{i}")).collect::<Vec<_>>().join("|");
        let r = plan.table(batch("<ra: int64, rb: int64>", &high));
        let case = Case { kind: JoinKind::Inner, comparisons, residual: false };
        let root = by_inequalities(&mut plan, l, r, case);
        for (chunk, workers) in [(7, 2), (300, 1)] {
            let context = TestContext::new(chunk, workers);
            assert_eq!(plan.collect(root, context).unwrap().rows(), 250_000);
        }
    }
}

#[test]
fn wrong_plans_are_rejected() {
    let join = |left: &[&str], comparisons: Vec<Value>, right: &[&str]| {
        let params = Params::new()
            .with("left_keys", names(left))
            .with("comparisons", Value::List(comparisons))
            .with("right_keys", names(right))
            .with("join", Value::name("inner"));
        rejected(|plan, l, r, _| plan.add("inequality_join", &[r, l], params.clone()))
    };
    let lt = || Value::name("lt");
    for (message, parts) in [
        (join(&["lv"], vec![], &["rv"]), vec!["comparisons", "one or two", ":lt_eq"]),
        (join(&["lv"], vec![Value::name("eq")], &["rv"]), vec!["comparisons", "one or two"]),
        (join(&["lv"], vec![lt(), lt()], &["rv"]), vec!["left_keys names 1", "comparisons 2"]),
        (join(&["la"], vec![lt()], &["ra"]), vec!["la", "int32", "ra", "int64", "cast"]),
        (join(&["zz"], vec![lt()], &["ra"]), vec!["left key zz", "not a field"]),
    ] {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}
