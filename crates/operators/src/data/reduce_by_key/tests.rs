//! Tests aggregates against a naive reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal64Array, Decimal128Array,
    DictionaryArray, Float64Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch,
    StringViewArray, UInt32Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Field, Int32Type, IntervalMonthDayNano, Schema};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Params, Role, Scalar, SortKey, Value};
use tessera_types::{Atom, Code, Result};

mod naive;
mod order_by;

use naive::{Agg, V, agg, check, key, params, record, reference, table, values};
use order_by::*;

use tessera_context::testing::{TestContext, rows};
use tessera_operator::testing::SETTINGS;

use super::{Limits, ReduceByKey, lower_with};
use crate::testing::test_plan;

/// `reduce_by_key` with other limits.
#[derive(Debug)]
struct LimitedReduceByKey(Limits);

impl Descriptor for LimitedReduceByKey {
    tessera_operator::describe!(
        "stressed",
        "ReduceByKey with other limits.",
        ["keys", "aggregates", "partial"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        ReduceByKey.derive(node, inputs)
    }

    fn role(&self, node: &Node) -> Role {
        ReduceByKey.role(node)
    }
}

impl SubOperator for LimitedReduceByKey {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        lower_with(node, lowering, self.0)
    }
}

fn all_aggregates() -> Vec<Agg> {
    let mut list = vec![Agg { function: "count", arg: None, distinct: false, filter: None }];
    for arg in ["vi", "vl", "vd", "vw", "vf"] {
        for function in
            ["count", "sum", "avg", "min", "max", "var_samp", "stddev_pop", "var_pop", "stddev"]
        {
            if arg != "vw" || !function.contains('v') {
                list.push(agg(function, arg));
            }
        }
    }
    for arg in ["vs", "vt", "vb", "kd"] {
        list.extend(["count", "min", "max"].map(|function| agg(function, arg)));
    }
    list.extend(["bool_and", "bool_or"].map(|function| agg(function, "vb")));
    list
}

fn small(hash_mask: u64) -> Limits {
    Limits { table_bytes_max: 12_000, hash_mask }
}

fn check_everywhere(batch: &RecordBatch, keys: &[&str], aggregates: &[Agg]) {
    let wanted = reference(batch, keys, aggregates);
    let limits = [Limits::default(), small(u64::MAX), small(0xff00_0000_0000_0003), small(0)];
    for (number, limits) in limits.into_iter().enumerate() {
        let mut plan = test_plan();
        plan.registry.register(LimitedReduceByKey(limits));
        let given = plan.table(batch.clone());
        let root = plan.add("stressed", &[given], params(keys, aggregates));
        for (chunk_rows, workers) in SETTINGS {
            if batch.num_rows() > 3000 && chunk_rows < 7 {
                continue;
            }
            let found = plan.run(root, chunk_rows, workers).unwrap();
            let what =
                format!("keys {keys:?}, limits {number}, chunks {chunk_rows}, workers {workers}");
            check(&found, keys.len(), &wanted, &what);
        }
    }
}

#[test]
fn all_functions_over_few_and_many_groups() {
    for (rows, keys) in [(0, 5), (1, 5), (300, 4), (2000, 3000)] {
        let batch = table(rows, keys, rows as u64 * 7 + 11);
        check_everywhere(&batch, &["ki"], &all_aggregates());
    }
}

#[test]
fn keys_of_all_types() {
    let batch = table(1500, 40, 99);
    let aggregates = [agg("count", "n"), agg("sum", "vd"), agg("min", "vs")];
    for keys in [
        &["ks"][..],
        &["kf"],
        &["kb"],
        &["kd"],
        &["kv"],
        &["vt"],
        &["ks", "ki"],
        &["kb", "kf", "kd", "kv", "ks", "ki", "vi"],
    ] {
        check_everywhere(&batch, keys, &aggregates);
    }
}

#[test]
fn many_groups_overflow_the_table() {
    let batch = table(20_000, 9_000, 5);
    let aggregates = [agg("count", "n"), agg("sum", "vl"), agg("max", "vt")];
    check_everywhere(&batch, &["ki"], &aggregates);
    check_everywhere(&batch, &["ki"], &[]);
}

#[test]
fn groups_that_left_memory_are_merged() {
    let batch = table(6_000, 4_000, 5);
    // States that can be spilled, and states that cannot: then tuples are spilled instead.
    let flat = [agg("count", "n"), agg("sum", "vl"), agg("avg", "vw"), agg("max", "vd")];
    let distinct = Agg { function: "sum", arg: Some("vl"), distinct: true, filter: None };
    let other = [agg("max", "vt"), agg("min", "vs"), distinct, agg("count", "vd")];
    for (keys, aggregates) in
        [(&["ki"][..], &flat), (&["ks", "kd"], &flat), (&["vt"], &flat), (&["ki"], &other)]
    {
        let wanted = reference(&batch, keys, aggregates);
        // Most bits of the hash are masked in the last case, so partitions cannot be subdivided.
        for (budget, limits) in [(0, small(u64::MAX)), (150_000, small(u64::MAX)), (0, small(3))] {
            let mut plan = test_plan();
            plan.registry.register(LimitedReduceByKey(limits));
            let given = plan.table(batch.clone());
            let root = plan.add("stressed", &[given], params(keys, aggregates));
            for (chunk_rows, workers) in [(700, 1), (2048, 3)] {
                let context = TestContext::with_state_budget(chunk_rows, workers, budget);
                let found = plan.run_in(root, context.clone()).unwrap();
                let what = format!(
                    "keys {keys:?}, budget {budget}, chunks {chunk_rows}, workers {workers}"
                );
                check(&found, keys.len(), &wanted, &what);
                assert_eq!(context.used(), 0, "{what}");
                assert!(context.spilled() > 0, "{what}: nothing was spilled");
            }
        }
    }
}

#[test]
fn parts_that_are_passed_on_make_the_whole() {
    let aggregates = [agg("sum", "vl"), agg("count", "vd"), agg("min", "vs"), agg("max", "vt")];
    let merges = ["merge_sum", "merge_count", "min", "max"];
    for (rows, keys) in [(0, 5), (2500, 4), (3000, 1_500), (3000, 1_000_000)] {
        let batch = table(rows, keys, 31);
        let wanted = reference(&batch, &["ki"], &aggregates);
        for limits in [Limits::default(), small(u64::MAX), small(0)] {
            let mut plan = test_plan();
            plan.registry.register(LimitedReduceByKey(limits));
            let given = plan.table(batch.clone());
            let parts =
                plan.add("stressed", &[given], params(&["ki"], &aggregates).with("partial", true));
            let merged = merges.iter().enumerate().map(|(i, merge)| {
                let name: Arc<str> = format!("a{i}").into();
                (name.clone(), record(merge, vec![Expr::field(name)], vec![]))
            });
            let merged: Vec<_> = merged.collect();
            let params =
                Params::new().with("keys", Value::names(["ki"])).with("aggregates", merged);
            let root = plan.add("reduce_by_key", &[parts], params);
            for (chunk_rows, workers) in SETTINGS {
                let found = plan.run(root, chunk_rows, workers).unwrap();
                check(
                    &found,
                    1,
                    &wanted,
                    &format!("{rows} rows, {keys} keys, {limits:?}, chunks {chunk_rows}"),
                );
            }
        }
    }
}

#[test]
fn parts_hold_no_more_than_a_table() {
    let batch = table(20_000, 1_000_000, 7);
    let mut plan = test_plan();
    plan.registry.register(LimitedReduceByKey(small(u64::MAX)));
    let given = plan.table(batch);
    let parts =
        plan.add("stressed", &[given], params(&["ki"], &[agg("max", "vt")]).with("partial", true));
    let sum = (Arc::from("n"), record("count", vec![], vec![]));
    let root = plan.add("reduce", &[parts], Params::new().with("aggregates", vec![sum]));
    // All groups together take more than a megabyte.
    let context = TestContext::with_budget(512, 1, 200_000);
    let found = plan.run_in(root, context.clone()).unwrap();
    let parts = found.column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0);
    // Many keys occur again, but few while they are still in the table.
    assert!((19_000..20_000).contains(&parts), "{parts} parts");
    assert_eq!(context.used(), 0);
}

#[test]
fn distinct_and_filter() {
    let batch = table(1200, 12, 3);
    let mut aggregates = Vec::new();
    for (function, arg) in [
        ("count", "vi"),
        ("sum", "vi"),
        ("avg", "vd"),
        ("count", "vs"),
        ("count", "kf"),
        ("min", "vs"),
    ] {
        for (distinct, filter) in
            [(true, None), (false, Some(100)), (true, Some(-500)), (false, Some(5000))]
        {
            aggregates.push(Agg { function, arg: Some(arg), distinct, filter });
        }
    }
    aggregates.push(Agg { function: "count", arg: None, distinct: false, filter: Some(0) });
    check_everywhere(&batch, &["ki"], &aggregates);
    let wanted = reference(&batch, &[], &aggregates);
    let mut plan = test_plan();
    let given = plan.table(batch);
    let root = plan.add("reduce", &[given], params(&[], &aggregates));
    for (chunk_rows, workers) in SETTINGS {
        check(&plan.run(root, chunk_rows, workers).unwrap(), 0, &wanted, "reduce");
    }
}

#[test]
fn reduce_of_everything_and_of_nothing() {
    for rows in [0, 1, 777] {
        let batch = table(rows, 10, 17);
        let wanted = reference(&batch, &[], &all_aggregates());
        let mut plan = test_plan();
        let given = plan.table(batch);
        let root = plan.add("reduce", &[given], params(&[], &all_aggregates()));
        for (chunk_rows, workers) in SETTINGS {
            let found = plan.run(root, chunk_rows, workers).unwrap();
            assert_eq!(found.num_rows(), 1);
            check(&found, 0, &wanted, "reduce");
        }
    }
}

#[test]
fn dictionary_keys_group_as_plain_ones() {
    let batch = table(1500, 9, 41);
    let aggregates = [agg("count", "n"), agg("sum", "vd"), agg("avg", "vi"), agg("max", "vs")];
    let wanted = reference(&batch, &["ks", "kb"], &aggregates);
    let encode = |rows: RecordBatch, reversed: bool| {
        let strings = rows.column_by_name("ks").unwrap().as_string_view().clone();
        let mut distinct: Vec<Option<&str>> = strings.iter().flatten().map(Some).collect();
        distinct.sort();
        distinct.dedup();
        // NULL as a key and as a dictionary value are the same group.
        distinct.push(None);
        if reversed {
            distinct.reverse();
        }
        let place = |value: Option<&str>| distinct.iter().position(|d| *d == value).unwrap() as i32;
        let keys: Int32Array = strings
            .iter()
            .enumerate()
            .map(
                |(row, value)| {
                    if value.is_none() && row % 2 == 0 { None } else { Some(place(value)) }
                },
            )
            .collect();
        let values = Arc::new(StringViewArray::from_iter(distinct.iter().copied()));
        let dictionary: ArrayRef =
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap());
        let mut columns = rows.columns().to_vec();
        columns[1] = dictionary;
        let booleans = rows.column(3).as_boolean();
        let codes: Int32Array = booleans.iter().map(|b| b.map(i32::from)).collect();
        let both: ArrayRef = Arc::new(BooleanArray::from(vec![false, true]));
        columns[3] = Arc::new(DictionaryArray::<Int32Type>::try_new(codes, both).unwrap());
        let fields: Vec<Field> = rows
            .schema()
            .fields()
            .iter()
            .zip(&columns)
            .map(|(field, column)| {
                Field::new(field.name(), column.data_type().clone(), field.is_nullable())
            })
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    };
    let (first, second) = (batch.slice(0, 700), batch.slice(700, 800));
    let (first, second) = (encode(first, false), encode(second, true));
    for limits in [Limits::default(), small(u64::MAX)] {
        let mut plan = test_plan();
        plan.registry.register(LimitedReduceByKey(limits));
        // Two inputs with different dictionaries, one after the other.
        let (a, b) = (plan.table(first.clone()), plan.table(second.clone()));
        let mut wanted_parts = Vec::new();
        for (node, part) in [(a, &batch.slice(0, 700)), (b, &batch.slice(700, 800))] {
            let root = plan.add("stressed", &[node], params(&["ks", "kb"], &aggregates));
            wanted_parts.push((root, reference(part, &["ks", "kb"], &aggregates)));
        }
        for (root, wanted) in wanted_parts {
            for (chunk_rows, workers) in SETTINGS {
                check(&plan.run(root, chunk_rows, workers).unwrap(), 2, &wanted, "dictionary");
            }
        }
    }
    assert!(wanted.len() > 10);
}

#[test]
fn library_functions_merge() {
    let batch = table(900, 6, 77);
    let field = Expr::field;
    let aggregates: Vec<(Arc<str>, Value)> = vec![
        ("median".into(), record("median", vec![field("vf")], vec![])),
        ("bits".into(), record("bit_xor", vec![field("vl")], vec![])),
        ("corr".into(), record("corr", vec![field("vf"), field("vl")], vec![])),
        ("near".into(), record("approx_distinct", vec![field("vi")], vec![])),
        (
            "part".into(),
            ordered(
                "percentile_cont",
                vec![field("vf"), Expr::Constant(tessera_plan::Scalar::Float(0.25), Atom::Float64)],
                &[("vf", true)],
                false,
            ),
        ),
        ("arrays".into(), record("count", vec![field("vs")], vec![])),
    ];
    let params = |name: &str| {
        let params = Params::new().with("aggregates", aggregates.clone());
        if name == "reduce" { params } else { params.with("keys", Value::names(["ki"])) }
    };
    let mut results: BTreeMap<String, BTreeMap<String, Vec<V>>> = BTreeMap::new();
    for limits in [Limits::default(), small(u64::MAX), small(0)] {
        let mut plan = test_plan();
        plan.registry.register(LimitedReduceByKey(limits));
        let given = plan.table(batch.clone());
        for name in ["stressed", "reduce"] {
            let root = plan.add(name, &[given], params(name));
            for (chunk_rows, workers) in SETTINGS {
                let found = plan.run(root, chunk_rows, workers).unwrap();
                let columns: Vec<Vec<V>> = found.columns().iter().map(values).collect();
                let rows: BTreeMap<String, Vec<V>> = (0..found.num_rows())
                    .map(|row| {
                        let all: Vec<V> = columns
                            .iter()
                            .map(|column| match &column[row] {
                                // The last digits may depend on the order of merging.
                                V::F(f) => V::S(format!("{f:.9}")),
                                other => other.clone(),
                            })
                            .collect();
                        (key(&columns[0][row]), all)
                    })
                    .collect();
                let first = results.entry(name.into()).or_insert_with(|| rows.clone());
                assert_eq!(*first, rows, "{name}, chunks {chunk_rows}, workers {workers}");
            }
        }
    }
    assert_eq!(results["stressed"].len(), 7);
}

#[test]
fn sums_that_overflow_raise() {
    let max = Int64Array::from(vec![i64::MAX, i64::MAX]);
    let wide =
        Decimal128Array::from(vec![10i128.pow(38) - 1, 1]).with_precision_and_scale(38, 0).unwrap();
    let wrap = Decimal128Array::from(vec![10i128.pow(38) - 1, 10i128.pow(38) - 1])
        .with_precision_and_scale(38, 0)
        .unwrap();
    let batch = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef),
        ("max", Arc::new(max)),
        ("wide", Arc::new(wide)),
        ("wrap", Arc::new(wrap)),
    ])
    .unwrap();
    for operator in ["reduce", "reduce_by_key"] {
        for (arg, overflows) in [("max", false), ("wide", true), ("wrap", true)] {
            let mut plan = test_plan();
            let given = plan.table(batch.clone());
            let keys: &[&str] = if operator == "reduce" { &[] } else { &["k"] };
            let root = plan.add(operator, &[given], params(keys, &[agg("sum", arg)]));
            match plan.run(root, 2048, 1) {
                Ok(found) => {
                    assert!(!overflows, "{operator} {arg}");
                    let sum =
                        found.column(keys.len()).as_primitive::<arrow::datatypes::Decimal128Type>();
                    assert_eq!(sum.value(0), i128::from(i64::MAX) * 2);
                }
                Err(error) => {
                    assert!(
                        overflows && error.code() == Code::Overflow,
                        "{operator} {arg}: {error}"
                    )
                }
            }
        }
    }
}

#[test]
fn a_filter_keeps_arguments_from_raising() {
    let batch = RecordBatch::try_from_iter([
        ("x", Arc::new(Int64Array::from(vec![0, 1, 2, 4])) as ArrayRef),
        ("k", Arc::new(UInt32Array::from(vec![1, 1, 1, 2])) as ArrayRef),
    ])
    .unwrap();
    let quotient = || Expr::call("div", vec![Expr::int64(8), Expr::field("x")]);
    let nonzero = Expr::call("not_eq", vec![Expr::field("x"), Expr::int64(0)]);
    for operator in ["reduce", "reduce_by_key"] {
        let aggregates: Vec<(Arc<str>, Value)> = vec![
            (
                "a".into(),
                record("sum", vec![quotient()], vec![("filter", Value::Expr(nonzero.clone()))]),
            ),
            (
                "b".into(),
                record("max", vec![quotient()], vec![("filter", Value::Expr(nonzero.clone()))]),
            ),
        ];
        let mut params = Params::new().with("aggregates", aggregates);
        if operator != "reduce" {
            params.set("keys", Value::names(["k"]));
        }
        let mut plan = test_plan();
        let given = plan.table(batch.clone());
        let root = plan.add(operator, &[given], params);
        let found = plan.run(root, 2048, 1).unwrap();
        let sums = values(found.column(found.num_columns() - 2));
        assert_eq!(
            sums,
            if operator == "reduce" { vec![V::I(14)] } else { vec![V::I(12), V::I(2)] }
        );
    }
}

#[test]
fn memory_is_counted_and_limited() {
    let batch = table(20_000, 1 << 40, 8);
    let mut plan = test_plan();
    let given = plan.table(batch);
    let root = plan.add("reduce_by_key", &[given], params(&["ki", "ks"], &[agg("sum", "vl")]));
    let context = TestContext::with_budget(2048, 2, 300_000);
    let error = plan.run_in(root, context.clone()).unwrap_err();
    assert_eq!(error.code(), Code::Limit);
    assert_eq!(context.used(), 0);
}

#[test]
fn nodes_that_are_wrong_are_rejected() {
    let batch = table(1, 1, 1);
    let rejects = |operator: &str, params: Params, part: &str| {
        let mut plan = test_plan();
        let given = plan.table(batch.clone());
        let root = plan.add(operator, &[given], params);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    };
    rejects("reduce_by_key", Params::new(), "keys is missing");
    rejects("reduce_by_key", params(&["zz"], &[]), "key zz is not a field");
    rejects("reduce", params(&[], &[agg("sum", "vs")]), "aggregate a0");
    rejects("reduce", params(&[], &[agg("nope", "vi")]), "unknown aggregate function nope");
    let bad = Value::Record(vec![("x".into(), Value::Integer(3))]);
    rejects("reduce", Params::new().with("aggregates", bad), "aggregate x");
}
