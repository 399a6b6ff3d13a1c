//! Plans all TPC-H and SSB queries and checks that the verifier accepts them and that their join
//! orders are good.

use std::path::Path;

use tessera_binder::{PlannedQuery, Settings};
use tessera_operator::Registry;
use tessera_parser::parse;
use tessera_plan::{NodeId, Plan, Rules, verify};
use tessera_sql::{Statement, plan};
use tessera_testing::standard_registry;

use crate::tables::Tables;

fn planned(sql: &str, catalog: &Tables, registry: &Registry) -> PlannedQuery {
    let statements = parse(sql).unwrap();
    assert_eq!(statements.len(), 1);
    match plan(&statements[0], catalog, registry, &Settings::default()) {
        Ok(Statement::Query(planned)) => planned,
        Ok(other) => panic!("{other:?}"),
        Err(error) => panic!("{error}\n{sql}"),
    }
}

fn check(planned: &PlannedQuery, registry: &Registry, name: &str) {
    let verified = verify(&planned.plan, registry.catalog()).unwrap_or_else(|error| {
        panic!("{name}: {error}\n{}", tessera_plan::text::print(&planned.plan));
    });
    assert_eq!(verified.edges[planned.plan.root.index()].tuple, planned.tuple, "{name}");
    assert_eq!(planned.names.len(), planned.tuple.len(), "{name}");
}

fn queries(suite: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries").join(suite);
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into(),
                std::fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

fn all_verify(suite: &str, catalog: &Tables, count: usize) {
    let registry = standard_registry();
    let queries = queries(suite);
    assert_eq!(queries.len(), count);
    for (name, sql) in queries {
        check(&planned(&sql, catalog, &registry), &registry, &name);
    }
}

#[test]
fn tpch_plans_verify() {
    all_verify("tpch", &Tables::tpch(), 22);
}

#[test]
fn ssb_plans_verify() {
    all_verify("ssb", &Tables::ssb(), 13);
}

/// Prints the joins of a plan: `(stream ⋈ build)`, with scans by table.
fn shape(plan: &Plan, id: NodeId) -> String {
    let node = plan.node(id);
    let input = |position: usize| shape(plan, node.inputs[position]);
    match &*node.operator {
        "parquet_scan" => node.params.strings("paths").unwrap()[0].to_string(),
        "probe" => {
            let kinds = [
                "inner",
                "left",
                "right",
                "full",
                "semi",
                "anti",
                "mark",
                "single",
                "build_semi",
                "build_anti",
            ];
            let kind = node.params.choice("join", &kinds).unwrap();
            let sign = if kind == "inner" { "⋈" } else { kind };
            format!("({} {sign} {})", input(1), input(0))
        }
        "nested_loop" => format!("({} loop {})", input(1), input(0)),
        "cartesian_product" => format!("({} × {})", input(1), input(0)),
        "reduce" | "reduce_by_key" => format!("γ{}", input(0)),
        _ => input(0),
    }
}

fn tpch_shape(number: usize) -> String {
    let (_, sql) = queries("tpch").swap_remove(number - 1);
    let plan = planned(&sql, &Tables::tpch(), &standard_registry()).plan;
    shape(&plan, plan.root)
}

#[test]
fn facts_stream_and_dimensions_are_built() {
    assert_eq!(tpch_shape(3), "γ(lineitem ⋈ (orders ⋈ customer))");
    for number in [2, 3, 5, 8, 9, 10, 21] {
        let shape = tpch_shape(number);
        for bad in ["×", "loop", "⋈ lineitem)"] {
            assert!(!shape.contains(bad), "{number}: {shape}");
        }
    }
}

#[test]
fn groups_are_reduced_to_those_a_small_relation_asks_for() {
    assert_eq!(tpch_shape(17), "γ(lineitem ⋈ (γ(lineitem semi part) right part))");
    assert!(tpch_shape(20).contains("γ(lineitem semi (partsupp semi part))"), "{}", tpch_shape(20));
    let large = "SELECT o_orderdate, q FROM orders,
        (SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey) AS l WHERE o_orderkey = l_orderkey";
    let shape_of = |sql: &str| {
        let plan = planned(sql, &Tables::tpch(), &standard_registry()).plan;
        shape(&plan, plan.root)
    };
    assert!(!shape_of(large).contains("semi"), "{}", shape_of(large));
    // A second evaluation of LIMIT may return other tuples, so the reduction must not copy it.
    let limited = "SELECT q FROM (SELECT o_orderkey FROM orders LIMIT 10) AS o,
        (SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey) AS l WHERE o_orderkey = l_orderkey";
    assert!(!shape_of(limited).contains("semi"), "{}", shape_of(limited));
    assert!(
        shape_of(&limited.replace("LIMIT 10", "WHERE o_orderdate = date '1995-01-01'"))
            .contains("semi")
    );
}

#[test]
fn a_grouping_that_is_read_twice_is_computed_once() {
    let (_, sql) = queries("tpch").swap_remove(14);
    let registry = standard_registry();
    let plan = planned(&sql, &Tables::tpch(), &registry).plan;
    let optimized =
        tessera_optimizer::physical::optimize(&plan, registry.catalog(), Rules::ALL).unwrap();
    let count =
        |operator: &str| optimized.nodes.iter().filter(|node| &*node.operator == operator).count();
    assert_eq!(
        (count("reduce_by_key"), count("parquet_scan")),
        (1, 2),
        "{}",
        tessera_plan::text::print(&optimized)
    );
}
