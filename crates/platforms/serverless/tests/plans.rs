//! Tests the pass. A shared pass decides which exchanges a plan has; these tests check the
//! parameters of `object_exchange`.

use tessera_engine::Platform;
use tessera_plan::{Plan, Rules, Value, text, verify};
use tessera_serverless::Serverless;

/// Returns the executor's plan for these nodes, which follow a table; verified.
fn distributed(nodes: &str) -> Plan {
    planned(nodes, false)
}

/// Like `distributed`; with `is_frugal`, the fallback plan for scarce memory.
fn planned(nodes: &str, is_frugal: bool) -> Plan {
    let table = "%0 = parquet_scan() {paths = ['s3://b/t'], columns = <k: int64, g: int32, x: decimal(12,2)>}";
    let plan = text::parse(&format!("plan {{\n{table}\n{nodes}\n}}")).unwrap();
    let mut registry = tessera_testing::standard_registry();
    let platform = Serverless::default();
    platform.register(&mut registry);
    let plan = match is_frugal {
        false => platform.pass(&plan, registry.catalog(), Rules::ALL).unwrap(),
        true => platform.frugal_pass(&plan, registry.catalog(), Rules::ALL).unwrap().unwrap(),
    };
    verify(&plan, registry.catalog()).unwrap();
    assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
    let executor = plan.nodes.iter().find(|node| &*node.operator == "executor").unwrap();
    executor.nested[0].clone()
}

/// Returns the parameters of the exchanges, in order; each is followed by a `rows_scan`.
fn exchanges(nodes: &str) -> Vec<String> {
    let plan = distributed(nodes);
    let mut found = Vec::new();
    for (position, node) in plan.nodes.iter().enumerate() {
        if &*node.operator == "object_exchange" {
            assert_eq!(&*plan.nodes[position + 1].operator, "rows_scan");
            let keys = node.params.names_opt("keys").unwrap().join(",");
            let numbers = ["bits", "shift"].map(|name| node.params.integer_opt(name).unwrap());
            let numbers = numbers.into_iter().flatten().map(|number| format!(" {number}"));
            let flags =
                ["gather", "first"].into_iter().filter(|flag| node.params.flag(flag).unwrap());
            found.push(keys + &numbers.collect::<String>() + &flags.collect::<Vec<_>>().join(" "));
        }
    }
    found
}

#[test]
fn tuples_cross_by_keys_to_all_and_to_the_first() {
    assert_eq!(exchanges("return %0"), ["gather"]);
    let grouped = "%1 = reduce_by_key(%0) {keys = [g], aggregates = {n = {function = :count, args = []}}}\nreturn %1";
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

/// The sides of a join name each other through `meets`.
#[test]
fn exchanges_that_meet_in_a_join_name_it() {
    let met = |kind: &str, after: &str| {
        let text = format!(
            "%1 = parquet_scan() {{paths = ['s3://b/u'], columns = <k2: int64, y: int64>}}
             %2 = build(%1) {{keys = [k2], expected_rows = 1000000}}
             %3 = probe(%2, %0) {{keys = [k], join = :{kind}, expected_rows = 1000000}}\n{after}"
        );
        let named = |node: &tessera_plan::Node| {
            let heavy = node.params.get("heavy")?;
            Some(format!("{heavy:?} {}", node.params.name("meets").unwrap()))
        };
        distributed(&text).nodes.iter().filter_map(named).collect::<Vec<_>>()
    };
    let [split, copied, either] =
        ["split", "copied", "either"].map(|name| format!("{:?} join_1", Value::name(name)));
    assert_eq!(met("inner", "return %3"), [either.clone(), either]);
    assert_eq!(met("left", "return %3"), [split.clone(), copied.clone()]);
    assert_eq!(met("build_semi", "return %3"), [copied, split]);
    assert!(met("full", "return %3").is_empty());
    // The plan after the exchange relies on where tuples are.
    assert!(
        met("inner", "%4 = reduce_by_key(%3) {keys = [k], aggregates = {}}\nreturn %4").is_empty()
    );
}

#[test]
fn where_memory_is_lacking_all_crosses_in_pieces() {
    // The numbers of exchanges, of those with positions, of sorts, and of those with `meets`.
    let counts = |nodes: &str| {
        let text = text::print(&planned(nodes, true));
        assert_eq!(text.matches("pieces = true").count(), text.matches("object_exchange").count());
        let of = |part: &str| text.matches(part).count();
        (of("pieces = true"), of("position = :position"), of(" sort("), of("meets = "))
    };
    // The order of the source is restored where it matters; a sort has its own order.
    assert_eq!(counts("return %0"), (1, 1, 1, 0));
    assert_eq!(counts("%1 = limit(%0) {limit = 5}\nreturn %1"), (1, 1, 1, 0));
    assert_eq!(counts("%1 = sort(%0) {keys = [{field = k}]}\nreturn %1"), (1, 0, 1, 0));
    let joined = "%1 = parquet_scan() {paths = ['s3://b/u'], columns = <k2: int64, y: int64>}
        %2 = build(%1) {keys = [k2], expected_rows = 1000000}
        %3 = probe(%2, %0) {keys = [k], join = :inner, expected_rows = 1000000}\nreturn %3";
    assert_eq!(counts(joined), (3, 0, 0, 0));
    let named = planned("%1 = map(%0) {exprs = {position = k}}\nreturn %1", true);
    assert!(text::print(&named).contains("position = :position_1"));
}

#[test]
fn what_goes_in_pieces_has_no_heavy_partitions_and_no_order() {
    let mut registry = tessera_testing::standard_registry();
    Serverless::default().register(&mut registry);
    for (params, why) in [
        ("gather = true, pieces = true, position = :p", None),
        ("pieces = true, position = :p", None),
        ("keys = [k], bits = 5, shift = 40, pieces = true", None),
        ("gather = true, position = :p", Some("pieces = true and without keys")),
        ("keys = [k], bits = 5, shift = 40, pieces = true, position = :p", Some("without keys")),
        ("gather = true, pieces = true, position = :k", Some("names a field")),
        (
            "keys = [k], bits = 5, shift = 40, heavy = :split, meets = :j, pieces = true",
            Some("or pieces = true"),
        ),
    ] {
        let text = format!(
            "plan {{ %0 = values() {{columns = <k: int64>, rows = [[1::int64]]}} %1 = object_exchange(%0) {{{params}}} \
             %2 = rows_scan(%1) {{field = data}} return %2 }}"
        );
        let verified =
            text::parse(&text).and_then(|plan| verify(&plan, registry.catalog()).map(drop));
        match (verified, why) {
            (Ok(()), None) => {}
            (Err(error), Some(why)) => assert!(error.message().contains(why), "{error}"),
            (found, _) => panic!("{params}: {found:?}"),
        }
    }
}

#[test]
fn what_meets_has_partitions() {
    let mut registry = tessera_testing::standard_registry();
    Serverless::default().register(&mut registry);
    for (params, why) in [
        ("keys = [k], bits = 5, shift = 40, heavy = :split", "heavy and meets together"),
        (
            "keys = [k], bits = 5, shift = 40, heavy = :most, meets = :j",
            ":split, :copied or :either",
        ),
        ("heavy = :split, meets = :j", "with keys only"),
    ] {
        let text = format!(
            "plan {{ %0 = values() {{columns = <k: int64>, rows = [[1::int64]]}} %1 = object_exchange(%0) {{{params}}} return %1 }}"
        );
        let error = verify(&text::parse(&text).unwrap(), registry.catalog()).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn it_cannot_run_where_nobody_works() {
    let mut registry = tessera_testing::standard_registry();
    Serverless::default().register(&mut registry);
    let text = "plan {\n%0 = values() {columns = <k: int64>, rows = [[1::int64]]}\nreturn %0\n}";
    let plan = Serverless::default()
        .pass(&text::parse(text).unwrap(), registry.catalog(), Rules::ALL)
        .unwrap();
    let error = tessera_engine::CompiledPlan::lower(&plan, &registry).unwrap_err();
    assert!(error.message().contains("it can explain the plan but not run it"), "{error}");
}
