//! The plan of every query of the suites round-trips, and a plan that was tampered with is
//! rejected, never a panic.

use std::path::{Path, PathBuf};

use tessera_context::testing::Numbers;
use tessera_generate::{Options, Suite, generate};
use tessera_operator::Registry;
use tessera_optimizer::physical;
use tessera_plan::{NodeId, Plan, Rules, Value, pipeline, text, verify};
use tessera_session::{Config, Session, StatementResult, with_big_stack};
use tessera_types::{Atom, Field, Item, Tuple};

/// The text that EXPLAIN prints for each query of a suite, with the file's name.
fn explained(suite: Suite, queries: &str) -> Vec<(String, String)> {
    let data = tempfile::tempdir().unwrap();
    generate(suite, 0.001, data.path(), &Options { overwrite: true, ..Options::default() })
        .unwrap();
    let config = Config { threads: 1, database: Some(data.path().into()), ..Config::default() };
    let mut session = Session::new(config).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries").join(queries);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    let mut out = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        let sql = format!("EXPLAIN {}", std::fs::read_to_string(&path).unwrap());
        let results = session.execute(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        match results.last() {
            Some(StatementResult::Text(text)) => out.push((name, text.clone())),
            other => panic!("{name}: {other:?}"),
        }
    }
    out
}

fn registry() -> Registry {
    let mut registry = tessera_testing::standard_registry();
    tessera_engine::Platform::register(&tessera_local::Local, &mut registry);
    registry
}

/// Checks that every consumer of plans returns a result or an error.
fn accepted(plan: &Plan, registry: &Registry) -> bool {
    let Ok(verified) = verify(plan, registry.catalog()) else { return false };
    let _ = text::explain(plan, &verified);
    let _ = pipeline::cut(plan, registry.catalog());
    let _ = physical::optimize(plan, registry.catalog(), Rules::ALL);
    let _ = tessera_engine::CompiledPlan::lower(plan, registry);
    true
}

/// The plan with all types declared.
fn declared(written: &str, registry: &Registry) -> Plan {
    let plan = text::parse(written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
    let verified =
        verify(&plan, registry.catalog()).unwrap_or_else(|error| panic!("{error}\n{written}"));
    let declared = text::explain(&plan, &verified);
    let plan = text::parse(&declared).unwrap_or_else(|error| panic!("{error}\n{declared}"));
    assert!(accepted(&plan, registry), "{declared}");
    assert_eq!(text::explain(&plan, &verified), declared);
    plan
}

/// Drops a column of a scan, or changes its type.
fn change_columns(plan: &mut Plan, numbers: &mut Numbers) -> bool {
    let count = plan.nodes.len();
    let start = numbers.index(count);
    for offset in 0..count {
        let node = &mut plan.nodes[(start + offset) % count];
        for inner in &mut node.nested {
            if change_columns(inner, numbers) {
                return true;
            }
        }
        for value in node.params.values_mut() {
            let Value::Tuple(tuple) = value else { continue };
            let mut fields: Vec<Field> = tuple.fields().to_vec();
            let at = numbers.index(fields.len());
            match (numbers.index(2), fields.get_mut(at)) {
                (0, Some(field)) => {
                    let other =
                        if field.atom() == Some(&Atom::Date) { Atom::Boolean } else { Atom::Date };
                    field.item = Item::Atom(other);
                }
                (_, Some(_)) => drop(fields.remove(at)),
                _ => continue,
            }
            *tuple = Tuple::new(fields);
            return true;
        }
    }
    false
}

/// Redirects an edge to another node.
fn move_edge(plan: &mut Plan, numbers: &mut Numbers) {
    let count = plan.nodes.len();
    let node = &mut plan.nodes[numbers.index(count)];
    if let Some(inner) = node.nested.first_mut() {
        return move_edge(inner, numbers);
    }
    let inputs = node.inputs.len();
    if let Some(input) = node.inputs.get_mut(numbers.index(inputs)) {
        *input = NodeId(numbers.index(count + 2) as u32);
    }
}

fn tamper(suite: Suite, queries: &str, expected: usize) {
    let plans = explained(suite, queries);
    assert_eq!(plans.len(), expected);
    with_big_stack(|| {
        let registry = registry();
        let mut numbers = Numbers::new(42);
        for (name, written) in &plans {
            let plan = declared(written, &registry);
            for _ in 0..20 {
                let mut changed = plan.clone();
                assert!(change_columns(&mut changed, &mut numbers));
                assert!(!accepted(&changed, &registry), "{name}:\n{}", text::print(&changed));
            }
            let mut rejected = 0;
            for _ in 0..40 {
                let mut changed = plan.clone();
                move_edge(&mut changed, &mut numbers);
                rejected += usize::from(!accepted(&changed, &registry));
            }
            // An edge may have been moved to where it was, or to a node of the same type.
            assert!(rejected > 0, "{name}");
            // Anything else: characters taken out and put in.
            let printed: Vec<char> = text::print(&plan).chars().collect();
            for _ in 0..60 {
                let mut changed = printed.clone();
                for _ in 0..=numbers.index(3) {
                    let at = numbers.index(changed.len());
                    match numbers.index(3) {
                        _ if changed.is_empty() => {}
                        0 => drop(changed.remove(at)),
                        1 => changed[at] = printed[numbers.index(printed.len())],
                        _ => changed.truncate(at.max(1)),
                    }
                }
                if let Ok(plan) = text::parse(&changed.into_iter().collect::<String>()) {
                    accepted(&plan, &registry);
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn plans_of_tpch() {
    tamper(Suite::Tpch, "tpch", 22);
}

#[test]
fn plans_of_ssb() {
    tamper(Suite::Ssb, "ssb", 13);
}
