//! What the pass makes of plans. Where tuples cross is decided once for all platforms whose workers share no memory; here it is
//! how.

use tessera_exec::Platform;
use tessera_plan::{Plan, text, verify};
use tessera_serverless::Serverless;

/// The executor's plan for a plan of nodes after a table, verified.
fn distributed(nodes: &str) -> Plan {
    let table =
        "%0 = parquet_scan() {paths = ['s3://b/t'], columns = <k: int64, g: int32, x: decimal(12,2)>}";
    let plan = text::parse(&format!("plan {{\n{table}\n{nodes}\n}}")).unwrap();
    let mut registry = tessera_ops::standard_registry();
    let platform = Serverless::default();
    platform.register(&mut registry);
    let plan = platform.pass(&plan, registry.catalogue()).unwrap();
    verify(&plan, registry.catalogue()).unwrap();
    assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
    let executor = plan.nodes.iter().find(|node| &*node.operator == "executor").unwrap();
    executor.nested[0].clone()
}

/// The parameters of the exchanges, in order; a scan of what came follows each.
fn exchanges(nodes: &str) -> Vec<String> {
    let plan = distributed(nodes);
    let mut found = Vec::new();
    for (position, node) in plan.nodes.iter().enumerate() {
        if &*node.operator == "object_exchange" {
            assert_eq!(&*plan.nodes[position + 1].operator, "rows_scan");
            let keys = node.params.names_opt("keys").unwrap().join(",");
            let numbers = ["bits", "shift"].map(|name| node.params.integer_opt(name).unwrap());
            let numbers = numbers.into_iter().flatten().map(|number| format!(" {number}"));
            let flags = ["gather", "first"].into_iter().filter(|flag| node.params.flag(flag).unwrap());
            found.push(keys + &numbers.collect::<String>() + &flags.collect::<Vec<_>>().join(" "));
        }
    }
    found
}

#[test]
fn tuples_cross_by_keys_to_all_and_to_the_first() {
    assert_eq!(exchanges("return %0"), ["gather"]);
    let grouped =
        "%1 = reduce_by_key(%0) {keys = [g], aggregates = {n = {function = :count, args = []}}}\nreturn %1";
    assert_eq!(exchanges(grouped), ["g 5 40", "gather"]);
    let total = "%1 = reduce(%0) {aggregates = {m = {function = :max, args = [x]}}}\nreturn %1";
    assert_eq!(exchanges(total), [""]);
}

#[test]
fn what_all_have_is_sent_once() {
    let both = "%1 = reduce(%0) {aggregates = {m = {function = :max, args = [k]}}}\n%2 = map(%0) {exprs = {m = k}}\n\
                %3 = map(%1) {exprs = {m = coalesce(m, 0::int64)}}\n%4 = union(%3, %2)\nreturn %4";
    assert_eq!(exchanges(both), ["", "gather first", "gather"]);
}

#[test]
fn it_cannot_run_where_nobody_works() {
    let mut registry = tessera_ops::standard_registry();
    Serverless::default().register(&mut registry);
    let text = "plan {\n%0 = values() {columns = <k: int64>, rows = [[1::int64]]}\nreturn %0\n}";
    let plan = Serverless::default().pass(&text::parse(text).unwrap(), registry.catalogue()).unwrap();
    let error = tessera_exec::Program::lower(&plan, &registry).unwrap_err();
    assert!(error.message().contains("explained, not run"), "{error}");
}
