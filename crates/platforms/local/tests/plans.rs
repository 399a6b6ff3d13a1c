//! Tests that a plan wrapped by the pass runs on any number of workers and keeps its order.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_engine::{CompiledPlan, Engine, Governor, Platform, Query, Settings};
use tessera_local::Local;
use tessera_plan::{Builder, Expr, Params, Plan, Rules, Value};
use tessera_types::{Atom, Field, Tuple};

fn squares_of_odd_numbers() -> Plan {
    let mut plan = Builder::new(Tuple::empty());
    let columns = Tuple::new(vec![Field::new("x", Atom::Int64)]);
    let rows: Vec<Value> =
        (0..100).map(|x| Value::List(vec![Value::Expr(Expr::int64(x))])).collect();
    let values = plan.add("values", &[], Params::new().with("columns", columns).with("rows", rows));
    let odd = Expr::call(
        "eq",
        vec![Expr::call("mod", vec![Expr::field("x"), Expr::int64(2)]), Expr::int64(1)],
    );
    let filter = plan.add("filter", &[values], Params::new().with("predicate", odd));
    let exchange = plan.add("exchange", &[filter], Params::new().with("keys", Value::names(["x"])));
    let square = Expr::call("mul", vec![Expr::field("x"), Expr::field("x")]);
    let exprs = Value::exprs([("square".into(), square)]);
    let map = plan.add("map", &[exchange], Params::new().with("exprs", exprs));
    plan.finish(map)
}

#[test]
fn the_pass_wraps_a_plan_in_the_executor_and_merges_its_result() {
    let mut registry = tessera_testing::standard_registry();
    Local.register(&mut registry);
    let wrapped = Local.pass(&squares_of_odd_numbers(), registry.catalog(), Rules::ALL).unwrap();
    assert_eq!(&*wrapped.node(wrapped.root).operator, "executor");
    let inner = &wrapped.nodes[0].nested[0];
    assert_eq!(&*inner.node(inner.root).operator, "merge");
    let expected: Vec<i64> = (0..50).map(|i| (2 * i + 1) * (2 * i + 1)).collect();
    for workers in [1, 3] {
        let compiled = CompiledPlan::lower(&wrapped, &registry).unwrap();
        let settings = Settings { chunk_rows: 7, ..Settings::default() };
        let result = Engine::new(workers)
            .unwrap()
            .run(&compiled, Query::new(settings, &Governor::unlimited()))
            .unwrap();
        let mut squares: Vec<i64> = Vec::new();
        for chunk in result.chunks().map(Result::unwrap) {
            squares.extend(
                chunk.column(0).unwrap().plain().unwrap().as_primitive::<Int64Type>().values(),
            );
        }
        assert_eq!(squares, expected);
    }
}
