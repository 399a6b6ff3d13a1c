//! Tests `DISTINCT`, `ORDER BY` and `limit` in aggregates.

use super::*;

pub(super) fn ordered(
    function: &str,
    args: Vec<Expr>,
    order: &[(&str, bool)],
    distinct: bool,
) -> Value {
    let keys = order
        .iter()
        .map(|(field, descending)| {
            SortKey { field: Arc::from(*field), descending: *descending, nulls_first: false }
                .to_value()
        })
        .collect();
    let mut more = vec![("distinct", Value::Boolean(distinct))];
    if !order.is_empty() {
        more.push(("order_by", Value::List(keys)));
    }
    record(function, args, more)
}

/// The same call, limited to the first two values.
pub(super) fn limited(call: Value) -> Value {
    let Value::Record(mut entries) = call else { panic!("no call") };
    entries.push(("limit".into(), Value::Integer(2)));
    Value::Record(entries)
}

/// Results are the same with and without memory for the values, for one group and for few.
#[test]
fn values_that_are_kept_leave_memory() {
    let batch = table(6_000, 3, 29);
    let double = || Expr::field("vi").cast(Atom::Float64);
    let fraction = |x: f64| Expr::Constant(Scalar::Float(x), Atom::Float64);
    let n = || vec![Expr::field("n")];
    let aggregates: Vec<(Arc<str>, Value)> = vec![
        (
            "continuous".into(),
            ordered("percentile_cont", vec![double(), fraction(0.37)], &[("vi", true)], false),
        ),
        (
            "discrete".into(),
            ordered(
                "percentile_disc",
                vec![Expr::field("vt"), fraction(0.9)],
                &[("vt", false)],
                false,
            ),
        ),
        ("mode".into(), ordered("mode", vec![Expr::field("vt")], &[("vt", true)], false)),
        ("count".into(), ordered("count", vec![Expr::field("vt")], &[], true)),
        ("sum".into(), ordered("sum", vec![Expr::field("vl")], &[], true)),
        ("first".into(), ordered("first_value", n(), &[("vl", false), ("n", true)], false)),
        ("last".into(), ordered("last_value", n(), &[], false)),
        ("list".into(), ordered("array_agg", n(), &[("n", true)], false)),
        ("least".into(), record("min", vec![Expr::field("vl")], vec![])),
    ];
    let mut plan = test_plan();
    plan.registry.register(LimitedReduceByKey(small(u64::MAX)));
    let given = plan.table(batch);
    let params = Params::new().with("aggregates", aggregates);
    let all = plan.add("reduce", &[given], params.clone());
    let groups = plan.add("stressed", &[given], params.with("keys", Value::names(["ki"])));
    for root in [all, groups] {
        let wanted = sorted_rows(&plan.run(root, 2_048, 1).unwrap());
        for (chunk_rows, workers) in [(61, 1), (700, 3)] {
            for budget in [0, 100_000] {
                let context = TestContext::with_state_budget(chunk_rows, workers, budget);
                let found = plan.run_in(root, context.clone()).unwrap();
                assert_eq!(sorted_rows(&found), wanted, "{chunk_rows} {workers} {budget}");
                assert!(context.spilled() > 0);
                assert_eq!(context.used(), 0);
            }
        }
    }
}

pub(super) fn sorted_rows(batch: &RecordBatch) -> Vec<String> {
    let mut found = rows(batch);
    found.sort();
    found
}

#[test]
fn order_within_aggregates() {
    let batch = table(400, 5, 23);
    let comma = || Expr::string(",");
    let text = |name: &str| Expr::field(name).cast(Atom::String);
    let aggregates: Vec<(Arc<str>, Value)> = vec![
        ("source".into(), ordered("string_agg", vec![text("n"), comma()], &[], false)),
        (
            "sorted".into(),
            ordered("string_agg", vec![text("n"), comma()], &[("vi", true), ("n", false)], false),
        ),
        ("first".into(), ordered("first_value", vec![Expr::field("n")], &[("vl", false)], false)),
        ("last".into(), ordered("last_value", vec![Expr::field("n")], &[], false)),
        ("array".into(), ordered("array_agg", vec![Expr::field("n")], &[("n", true)], false)),
        ("distinct".into(), ordered("array_agg", vec![Expr::field("kb")], &[], true)),
        (
            "few".into(),
            limited(ordered(
                "array_agg",
                vec![Expr::field("n")],
                &[("vi", true), ("n", false)],
                false,
            )),
        ),
        ("few_of_source".into(), limited(ordered("array_agg", vec![Expr::field("n")], &[], false))),
    ];
    let column = |name: &str| values(batch.column_by_name(name).unwrap());
    let (ki, vi, vl, kb) = (column("ki"), column("vi"), column("vl"), column("kb"));
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    (0..batch.num_rows()).for_each(|row| groups.entry(key(&ki[row])).or_default().push(row));
    let rank = |v: &V| if let V::I(i) = v { (0, *i) } else { (1, 0) };
    let join =
        |rows: &[usize], by: &str| rows.iter().map(usize::to_string).collect::<Vec<_>>().join(by);
    for limits in [Limits::default(), small(0)] {
        let mut plan = test_plan();
        plan.registry.register(LimitedReduceByKey(limits));
        let given = plan.table(batch.clone());
        let params =
            Params::new().with("keys", Value::names(["ki"])).with("aggregates", aggregates.clone());
        let root = plan.add("stressed", &[given], params);
        // Without memory for groups, their tuples are spilled and read back.
        let budgets = [usize::MAX, 0]
            .into_iter()
            .flat_map(|budget| SETTINGS.map(|setting| (budget, setting)));
        for (budget, (chunk_rows, workers)) in budgets {
            let context = TestContext::with_state_budget(chunk_rows, workers, budget);
            let found = plan.run_in(root, context.clone()).unwrap();
            assert_eq!((context.used(), context.spilled() > 0), (0, budget == 0));
            let columns: Vec<Vec<V>> = found.columns().iter().map(values).collect();
            assert_eq!(found.num_rows(), groups.len());
            for row in 0..found.num_rows() {
                let rows = &groups[&key(&columns[0][row])];
                let mut sorted = rows.clone();
                sorted.sort_by_key(|row| {
                    let (null, value) = rank(&vi[*row]);
                    (null, -value, *row)
                });
                let mut descending = rows.clone();
                descending.reverse();
                let first = rows.iter().min_by_key(|row| (rank(&vl[**row]), **row)).unwrap();
                let mut set: Vec<_> = rows.iter().map(|row| rank(&kb[*row])).collect();
                set.sort();
                set.dedup();
                let set: Vec<_> = set
                    .iter()
                    .map(|(null, v)| match (null, v) {
                        (0, 0) => "false",
                        (0, _) => "true",
                        _ => "",
                    })
                    .collect();
                let wanted = [
                    V::S(join(rows, ",")),
                    V::S(join(&sorted, ",")),
                    V::I(*first as i128),
                    V::I(*rows.last().unwrap() as i128),
                    V::S(format!("[{}]", join(&descending, ", "))),
                    V::S(format!("[{}]", set.join(", "))),
                    V::S(format!("[{}]", join(&sorted[..sorted.len().min(2)], ", "))),
                    V::S(format!("[{}]", join(&rows[..rows.len().min(2)], ", "))),
                ];
                for (i, wanted) in wanted.iter().enumerate() {
                    assert_eq!(
                        &columns[1 + i][row],
                        wanted,
                        "{chunk_rows} {workers} {:?}",
                        aggregates[i].0
                    );
                }
            }
        }
    }
}
