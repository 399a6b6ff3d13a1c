//! All TPC-H and SSB queries become plans that the verifier accepts, with the joins in a good order.

mod tables;

use std::path::Path;

use tessera_ops::{Registry, standard_registry};
use tessera_plan::{NodeId, Plan, verify};
use tessera_sql::{Planned, Settings, Statement, parse, plan};

use tables::Tables;

fn planned(sql: &str, catalog: &Tables, registry: &Registry) -> Planned {
    let statements = parse(sql).unwrap();
    assert_eq!(statements.len(), 1);
    match plan(&statements[0], catalog, registry, &Settings::default()) {
        Ok(Statement::Query(planned)) => planned,
        Ok(other) => panic!("{other:?}"),
        Err(error) => panic!("{error}\n{sql}"),
    }
}

fn check(planned: &Planned, registry: &Registry, name: &str) {
    let verified = verify(&planned.plan, registry.catalogue()).unwrap_or_else(|error| {
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
            (path.file_stem().unwrap().to_string_lossy().into(), std::fs::read_to_string(path).unwrap())
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

/// The joins of a plan: `(stream ⋈ build)`, with scans by table.
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
