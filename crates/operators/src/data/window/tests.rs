//! Window functions beside a reference that recomputes each frame.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};

use tessera_context::testing::{TestContext, rows};
use tessera_operator::testing::SETTINGS;
use tessera_plan::{Expr, NodeId, Params, SortKey, Value};

use crate::testing::test_plan;
use tessera_operator::testing::TestPlan;

/// A row: partition, order key, value.
type Row = (Option<i64>, Option<i64>, Option<i64>);

/// Pseudo-random rows with equal keys and NULLs.
fn sample(count: usize, partitions: u64) -> Vec<Row> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = state % (below + 1);
        (value < below).then_some(value as i64)
    };
    (0..count).map(|_| (next(partitions), next(9), next(50))).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let column = |value: fn(&Row) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(value).collect::<Int64Array>())
    };
    let texts: StringViewArray =
        rows.iter().map(|row| row.2.map(|v| format!("text {v}"))).collect();
    let fields = ["p", "o", "v", "i"].map(|name| Field::new(name, DataType::Int64, true));
    let mut fields = fields.to_vec();
    fields.push(Field::new("t", DataType::Utf8View, true));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64));
    let columns = vec![
        column(|row| row.0),
        column(|row| row.1),
        column(|row| row.2),
        numbers,
        Arc::new(texts),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn sort_key(field: &str) -> Value {
    SortKey { field: field.into(), descending: false, nulls_first: false }.to_value()
}

/// Adds sort and bounds; returns the node to put window functions on.
fn bounds(plan: &mut TestPlan, rows: &[Row]) -> NodeId {
    let table = plan.table(batch(rows));
    let keys: Vec<Value> = ["p", "o", "i"].map(sort_key).to_vec();
    let params = Params::new().with("keys", keys).with("partition", 1);
    let sorted = plan.add("sort", &[table], params);
    let params = Params::new()
        .with("partition", Value::names(["p"]))
        .with("order", Value::names(["o"]))
        .with("partition_start", Value::name("ps"))
        .with("peer_start", Value::name("qs"));
    plan.add("window_bounds", &[sorted], params)
}

fn with_calls(
    plan: &mut TestPlan,
    operator: &str,
    input: NodeId,
    calls: Vec<(&str, Value)>,
) -> NodeId {
    let calls: Vec<(Arc<str>, Value)> =
        calls.into_iter().map(|(name, call)| (name.into(), call)).collect();
    let params = Params::new()
        .with("partition_start", Value::name("ps"))
        .with("peer_start", Value::name("qs"))
        .with("calls", calls);
    plan.add(operator, &[input], params)
}

fn record(entries: Vec<(&str, Value)>) -> Value {
    Value::Record(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn call(function: &str, args: &[&str]) -> Vec<(&'static str, Value)> {
    let args = args.iter().map(|arg| Value::Expr(Expr::field(*arg))).collect();
    vec![("function", Value::name(function)), ("args", Value::List(args))]
}

/// The frame up to the current row, or to its last peer.
fn running(unit: &str) -> Value {
    record(vec![
        ("unit", Value::name(unit)),
        ("start", Value::name("unbounded")),
        ("end", Value::name("current")),
    ])
}

/// The side of a frame, for plans and for the reference.
#[derive(Debug, Clone, Copy)]
enum Side {
    Unbounded,
    Current,
    Offset(i64),
}

fn side(side: Side) -> Value {
    match side {
        Side::Unbounded => Value::name("unbounded"),
        Side::Current => Value::name("current"),
        Side::Offset(offset) if offset < 0 => record(vec![("preceding", Value::Integer(-offset))]),
        Side::Offset(offset) => record(vec![("following", Value::Integer(offset))]),
    }
}

/// The rows of a frame, among the rows of a partition and their numbers of peers.
fn frame_rows(
    (unit, start, end, exclude): (&str, Side, Side, &str),
    groups: &[usize],
    row: usize,
) -> Vec<usize> {
    let place = |at: usize| match unit {
        "rows" => at as i64,
        _ => groups[at] as i64,
    };
    let is_inside = |other: &usize| {
        let distance = place(*other) - place(row);
        let after_start = match start {
            Side::Unbounded => true,
            Side::Current => distance >= 0,
            Side::Offset(offset) => distance >= offset,
        };
        let before_end = match end {
            Side::Unbounded => true,
            Side::Current => distance <= 0,
            Side::Offset(offset) => distance <= offset,
        };
        let is_left = match exclude {
            "current_row" => *other != row,
            "group" => groups[*other] != groups[row],
            "ties" => groups[*other] != groups[row] || *other == row,
            _ => true,
        };
        after_start && before_end && is_left
    };
    (0..groups.len()).filter(is_inside).collect()
}

/// Sorted partitions, each with the number of peers of every row.
fn partitions(rows: &[Row]) -> Vec<(Vec<Row>, Vec<usize>)> {
    let last = |value: Option<i64>| value.unwrap_or(i64::MAX);
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(|row| (last(row.0), last(row.1)));
    let mut all: Vec<(Vec<Row>, Vec<usize>)> = Vec::new();
    for row in sorted {
        match all.last_mut() {
            Some((rows, groups)) if rows[0].0 == row.0 => {
                let same = rows[rows.len() - 1].1 == row.1;
                groups.push(groups[groups.len() - 1] + usize::from(!same));
                rows.push(row);
            }
            _ => all.push((vec![row], vec![0])),
        }
    }
    all
}

fn shown(value: Option<i64>) -> String {
    value.map_or("NULL".into(), |value| value.to_string())
}

#[test]
fn aggregates_over_frames_are_those_of_their_rows() {
    let table = sample(700, 12);
    let sides = [
        (Side::Unbounded, Side::Current),
        (Side::Unbounded, Side::Unbounded),
        (Side::Current, Side::Unbounded),
        (Side::Offset(-2), Side::Offset(1)),
        (Side::Offset(-3), Side::Offset(-1)),
        (Side::Offset(1), Side::Offset(2)),
    ];
    for unit in ["rows", "groups"] {
        for (start, end) in sides {
            for exclude in ["", "current_row", "group", "ties"] {
                let mut frame =
                    vec![("unit", Value::name(unit)), ("start", side(start)), ("end", side(end))];
                if !exclude.is_empty() {
                    frame.push(("exclude", Value::name(exclude)));
                }
                let with_frame = |mut entries: Vec<(&'static str, Value)>| {
                    entries.push(("frame", record(frame.clone())));
                    record(entries)
                };
                let mut distinct = call("count", &["v"]);
                distinct.push(("distinct", Value::Boolean(true)));
                let mut plan = test_plan();
                let input = bounds(&mut plan, &table);
                let root = with_calls(
                    &mut plan,
                    "window_frame",
                    input,
                    vec![
                        ("n", with_frame(call("count", &["v"]))),
                        ("s", with_frame(call("sum", &["o"]))),
                        ("m", with_frame(call("max", &["v"]))),
                        ("x", with_frame(call("min", &["t"]))),
                        ("d", with_frame(distinct)),
                        ("f", with_frame(call("first_value", &["v"]))),
                        ("l", with_frame(call("last_value", &["v"]))),
                    ],
                );
                let fields = Value::names(["n", "s", "m", "x", "d", "f", "l"]);
                let root = plan.add("projection", &[root], Params::new().with("fields", fields));
                let mut expected = Vec::new();
                for (rows, groups) in partitions(&table) {
                    for row in 0..rows.len() {
                        let frame = frame_rows((unit, start, end, exclude), &groups, row);
                        let values: Vec<i64> = frame.iter().filter_map(|at| rows[*at].2).collect();
                        let orders: Vec<i64> = frame.iter().filter_map(|at| rows[*at].1).collect();
                        let texts = values.iter().map(|value| format!("text {value}"));
                        let mut different = values.clone();
                        different.sort_unstable();
                        different.dedup();
                        expected.push(
                            [
                                values.len().to_string(),
                                shown((!orders.is_empty()).then(|| orders.iter().sum())),
                                shown(values.iter().max().copied()),
                                texts.min().unwrap_or("NULL".into()),
                                different.len().to_string(),
                                shown(frame.first().and_then(|at| rows[*at].2)),
                                shown(frame.last().and_then(|at| rows[*at].2)),
                            ]
                            .join(" "),
                        );
                    }
                }
                for (chunk, workers) in [(7, 3), (8192, 2)] {
                    let found = rows(&plan.run(root, chunk, workers).unwrap());
                    assert_eq!(found, expected, "{unit} {start:?} {end:?} {exclude}");
                }
            }
        }
    }
}

#[test]
fn ranks_and_neighbors() {
    let table = sample(500, 9);
    let mut lag = call("lag", &["v"]);
    lag[1].1 = Value::List(vec![
        Value::Expr(Expr::field("v")),
        Value::Expr(Expr::int64(2)),
        Value::Expr(Expr::field("i")),
    ]);
    let mut expected = Vec::new();
    let mut position = 0;
    let mut order: Vec<usize> = (0..table.len()).collect();
    let last = |value: Option<i64>| value.unwrap_or(i64::MAX);
    order.sort_by_key(|at| (last(table[*at].0), last(table[*at].1)));
    for (rows, groups) in partitions(&table) {
        for row in 0..rows.len() {
            let rank = groups.iter().position(|group| *group == groups[row]).unwrap() + 1;
            let lag = match row.checked_sub(2) {
                Some(at) => rows[at].2,
                None => Some(order[position] as i64),
            };
            let sum: Vec<i64> = rows[..=row].iter().filter_map(|row| row.2).collect();
            expected.push(
                [
                    (row + 1).to_string(),
                    rank.to_string(),
                    (groups[row] + 1).to_string(),
                    shown(lag),
                    shown(rows[0].2),
                    shown((!sum.is_empty()).then(|| sum.iter().sum())),
                ]
                .join(" "),
            );
            position += 1;
        }
    }
    let with_frame = |function: &str| {
        let mut entries = call(function, &["v"]);
        entries.push(("frame", running("rows")));
        record(entries)
    };
    for operator in ["window_scan", "window_frame"] {
        let mut plan = test_plan();
        let input = bounds(&mut plan, &table);
        let root = with_calls(
            &mut plan,
            operator,
            input,
            vec![
                ("n", record(call("row_number", &[]))),
                ("r", record(call("rank", &[]))),
                ("d", record(call("dense_rank", &[]))),
                ("l", record(lag.clone())),
                ("f", with_frame("first_value")),
                ("s", with_frame("sum")),
            ],
        );
        let fields = Value::names(["n", "r", "d", "l", "f", "s"]);
        let root = plan.add("projection", &[root], Params::new().with("fields", fields));
        for (chunk, workers) in SETTINGS {
            assert_eq!(
                rows(&plan.run(root, chunk, workers).unwrap()),
                expected,
                "{operator} {chunk}"
            );
        }
    }
}

/// Sums and last values up to the last peer; with a small budget peers are spilled.
#[test]
fn a_scan_gives_peers_the_values_of_the_last_one() {
    for (count, partitions_max) in [(500, 9), (3_000, 1), (1, 3)] {
        let table = sample(count, partitions_max);
        let mut expected = Vec::new();
        for (rows, groups) in partitions(&table) {
            for row in 0..rows.len() {
                let end = groups.iter().rposition(|group| *group == groups[row]).unwrap();
                let sum = |rows: &[Row]| {
                    let values: Vec<i64> = rows.iter().filter_map(|row| row.2).collect();
                    shown((!values.is_empty()).then(|| values.iter().sum()))
                };
                let (of_peers, of_rows) = (sum(&rows[..=end]), sum(&rows[..=row]));
                let text = rows[end].2.map_or("NULL".into(), |value| format!("text {value}"));
                expected.push(format!("{of_peers} {text} {of_rows} {}", row + 1));
            }
        }
        for unit in ["range", "groups"] {
            let with_unit = |function: &str, arg: &str, unit: &str| {
                let mut entries = call(function, &[arg]);
                entries.push(("frame", running(unit)));
                record(entries)
            };
            let mut plan = test_plan();
            let input = bounds(&mut plan, &table);
            let root = with_calls(
                &mut plan,
                "window_scan",
                input,
                vec![
                    ("s", with_unit("sum", "v", unit)),
                    ("l", with_unit("last_value", "t", unit)),
                    ("r", with_unit("sum", "v", "rows")),
                    ("n", record(call("row_number", &[]))),
                ],
            );
            let fields = Value::names(["s", "l", "r", "n"]);
            let root = plan.add("projection", &[root], Params::new().with("fields", fields));
            for (chunk, workers) in SETTINGS {
                let found = rows(&plan.run(root, chunk, workers).unwrap());
                assert_eq!(found, expected, "{unit} {chunk} {workers}");
            }
            let little = TestContext::with_state_budget(16, 2, 1 << 12);
            assert_eq!(rows(&plan.run_in(root, little).unwrap()), expected, "{unit}");
        }
    }
}

#[test]
fn partitions_stay_whole_when_the_sort_spills() {
    let table = sample(40_000, 5);
    let plan = || {
        let mut plan = test_plan();
        let input = bounds(&mut plan, &table);
        let root = with_calls(
            &mut plan,
            "window_scan",
            input,
            vec![("n", record(call("row_number", &[])))],
        );
        let fields = Value::names(["p", "n"]);
        let root = plan.add("projection", &[root], Params::new().with("fields", fields));
        (plan, root)
    };
    let mut expected = Vec::new();
    for (rows, _) in partitions(&table) {
        expected.extend((0..rows.len()).map(|row| format!("{} {}", shown(rows[row].0), row + 1)));
    }
    let (plan, root) = plan();
    let found = rows(&plan.run_in(root, TestContext::with_state_budget(1024, 4, 1 << 20)).unwrap());
    assert_eq!(found, expected);
}

#[test]
fn a_window_function_reads_whole_partitions_only() {
    let mut plan = test_plan();
    let table = plan.table(batch(&sample(3, 2)));
    let params = Params::new().with("keys", vec![sort_key("p")]);
    let sorted = plan.add("sort", &[table], params);
    let params = Params::new()
        .with("partition", Value::names(["p"]))
        .with("partition_start", Value::name("ps"))
        .with("peer_start", Value::name("qs"));
    let root = plan.add("window_bounds", &[sorted], params);
    let message = plan.verify(root).unwrap_err().to_string();
    assert!(message.contains("the sort must have the parameter partition = 1"), "{message}");

    let mut plan = test_plan();
    let first = bounds(&mut plan, &sample(3, 2));
    let second = plan.add("limit", &[first], Params::new().with("limit", 1));
    let root =
        with_calls(&mut plan, "window_scan", second, vec![("n", record(call("row_number", &[])))]);
    let message = plan.verify(root).unwrap_err().to_string();
    assert!(message.contains("the input is limit; expected window_bounds"), "{message}");
}
