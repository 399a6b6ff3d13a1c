//! Tests the pass: which exchanges it inserts, and that its plans verify.

use tessera_engine::Platform;
use tessera_plan::{Plan, Rules, text, verify};
use tessera_platform_mpi::{ExchangeMode, Link, Mpi};

/// The tables of the plans below.
const TABLES: &str = "
%0 = parquet_scan() {paths = ['big'], columns = <k: int64, g: int32, x: decimal(12,2), s: string?>}
%1 = parquet_scan() {paths = ['other'], columns = <k2: int64, g2: int32, y: int64>}
%2 = parquet_scan() {paths = ['small'], columns = <g3: int32, name: string>}
";

/// Distributes and verifies the plan of these nodes, which follow the tables.
fn distributed(nodes: &str) -> Plan {
    distributed_with(ExchangeMode::OneSided, nodes)
}

fn distributed_with(mode: ExchangeMode, nodes: &str) -> Plan {
    let plan = text::parse(&format!("plan {{{TABLES}{nodes}}}")).unwrap();
    let mut registry = tessera_testing::standard_registry();
    let mpi = Mpi::default();
    mpi.set_exchange(mode);
    mpi.register(&mut registry);
    let plan = mpi.pass(&plan, registry.catalog(), Rules::ALL).unwrap();
    verify(&plan, registry.catalog()).unwrap();
    // The printed plan parses back to the same plan.
    assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
    plan
}

/// The sub-operators `mpi_*` of the executor's plan, in plan order.
fn steps(plan: &Plan) -> Vec<String> {
    let executor = plan.nodes.iter().find(|node| &*node.operator == "executor").unwrap();
    let names = executor.nested[0].nodes.iter().map(|node| node.operator.to_string());
    names.filter(|name| name.starts_with("mpi_")).collect()
}

/// The exchanges of the executor's plan, in its order: their keys, `all`, or `first`.
fn crossings(plan: &Plan) -> Vec<String> {
    let executor = plan.nodes.iter().find(|node| &*node.operator == "executor").unwrap();
    let crossing = |node: &tessera_plan::Node| match &*node.operator {
        "mpi_exchange" => Some(node.params.names("keys").unwrap().join(",")),
        "mpi_broadcast" if node.params.flag("gather").unwrap() => Some("first".to_string()),
        "mpi_broadcast" => Some("all".to_string()),
        "mpi_first" => Some("of first".to_string()),
        _ => None,
    };
    executor.nested[0].nodes.iter().filter_map(crossing).collect()
}

fn check(nodes: &str, expected: &[&str]) {
    assert_eq!(crossings(&distributed(nodes)), expected, "{nodes}");
}

#[test]
fn what_works_on_parts_stays() {
    check("%3 = filter(%0){predicate = k > 5}\nreturn %3", &["first"]);
    check(
        "%3 = map(%0){exprs = {a = k + 1}}\n%4 = sort(%3){keys = [{field = a}]}\nreturn %4",
        &["first"],
    );
}

#[test]
fn groups_meet_where_their_keys_say() {
    let sums = "aggregates = {n = {function = count, args = []}, a = {function = avg, args = [x]}}";
    check(&format!("%3 = reduce_by_key(%0){{keys = [g], {sums}}}\nreturn %3"), &["g", "first"]);
    // Tuples stay where they are if they are grouped by more than the keys they were exchanged by.
    check(
        &format!(
            "%3 = reduce_by_key(%0){{keys = [g], {sums}}}\n%4 = reduce_by_key(%3){{keys = [g, n], aggregates = {{}}}}\nreturn %4"
        ),
        &["g", "first"],
    );
    // Distinct values have no partial aggregation.
    let plan = distributed(
        "%3 = reduce_by_key(%0){keys = [g], aggregates = {n = {function = count, args = [s], distinct = true}}}\nreturn %3",
    );
    assert_eq!(crossings(&plan), ["g", "first"]);
    assert!(!text::print(&plan).contains("partial"));
}

#[test]
fn totals_are_at_every_rank() {
    let total = "%3 = reduce(%0){aggregates = {m = {function = max, args = [x]}}}\n";
    check(&format!("{total}return %3"), &["all"]);
    // So a stream can use the total on its own rank.
    check(&format!("{total}%4 = cartesian_product(%3, %1)\nreturn %4"), &["all", "first"]);
}

#[test]
fn joins_shuffle_both_sides_or_copy_the_small_one() {
    let join = |build: i64, probe: i64, kind: &str| {
        format!(
            "%3 = build(%1){{keys = [k2], expected_rows = {build}}}\n\
             %4 = probe(%3, %0){{keys = [k], join = :{kind}, expected_rows = {probe}}}\nreturn %4"
        )
    };
    check(&join(1_000_000, 1_000_000, "inner"), &["k", "k2", "first"]);
    check(&join(1_000, 1_000_000, "inner"), &["all", "first"]);
    check(&join(1_000, 1_000_000, "left"), &["all", "first"]);
    // With a copied table, every rank would return its unmatched rows.
    check(&join(1_000, 1_000_000, "right"), &["k", "k2", "first"]);
    check(&join(1_000, 1_000_000, "full"), &["k", "k2", "first"]);
}

/// N joins on one key take N + 1 shuffles (Modularis §2.4.2).
#[test]
fn joins_on_one_key_shuffle_each_relation_once() {
    check(
        "%3 = build(%1){keys = [k2], expected_rows = 1000000}
         %4 = probe(%3, %0){keys = [k], join = :inner, expected_rows = 1000000}
         %5 = map(%2){exprs = {k4 = CAST(g3 AS int64), name = name}}
         %6 = build(%5){keys = [k4], expected_rows = 1000000}
         %7 = probe(%6, %4){keys = [k2], join = :inner, expected_rows = 1000000}
         %8 = reduce_by_key(%7){keys = [k4], aggregates = {n = {function = count, args = []}}}
         return %8",
        &["k", "k2", "k4", "first"],
    );
}

#[test]
fn not_in_needs_all_of_the_table() {
    check(
        "%3 = build(%1){keys = [k2], expected_rows = 1000000}
         %4 = probe(%3, %0){keys = [k], join = :anti, null_aware = true, expected_rows = 1000}
         return %4",
        &["all", "first"],
    );
}

#[test]
fn first_ones_are_found_in_parts() {
    let plan =
        distributed("%3 = top_k(%0){keys = [{field = x}], limit = 3, offset = 2}\nreturn %3");
    assert_eq!(crossings(&plan), ["first"]);
    let printed = text::print(&plan);
    assert!(printed.contains("limit = 5") && printed.contains("partial = true"), "{printed}");
}

#[test]
fn a_file_is_written_by_the_driver() {
    let plan = distributed("%3 = parquet_materialize(%0){path = 'out'}\nreturn %3");
    assert_eq!(&*plan.node(plan.root).operator, "parquet_materialize");
    assert_eq!(crossings(&plan), ["first"]);
}

#[test]
fn what_is_at_the_first_rank_alone_is_sent_from_there() {
    check(
        "%3 = limit(%1){limit = 10}
         %4 = build(%3){keys = [k2]}
         %5 = probe(%4, %0){keys = [k], join = :inner}
         return %5",
        &["first", "of first", "all", "first"],
    );
}

const JOIN: &str = "%3 = build(%1){keys = [k2], expected_rows = 1000000}
    %4 = probe(%3, %0){keys = [k], join = :inner, expected_rows = 1000000}\n";

#[test]
fn both_sides_of_a_join_step_together() {
    let plan = distributed(&format!("{JOIN}return %4"));
    assert_eq!(
        steps(&plan),
        ["mpi_histogram", "mpi_window", "mpi_exchange", "mpi_exchange", "mpi_broadcast"]
    );
    let printed = text::print(&plan);
    assert!(
        printed.contains("window = :window_1") && printed.contains("window = :window_2"),
        "{printed}"
    );
    // Three relations on one key: one step each for all of them.
    let plan = distributed(&format!(
        "{JOIN} %5 = map(%2){{exprs = {{k4 = CAST(g3 AS int64), name = name}}}}
         %6 = build(%5){{keys = [k4], expected_rows = 1000000}}
         %7 = probe(%6, %4){{keys = [k2], join = :inner, expected_rows = 1000000}}
         return %7"
    ));
    let exchanges = ["mpi_exchange"; 3];
    assert_eq!(
        steps(&plan),
        [&["mpi_histogram", "mpi_window"][..], &exchanges, &["mpi_broadcast"]].concat()
    );
}

#[test]
fn what_waits_for_the_other_side_steps_alone() {
    // The result of a join is exchanged again; that exchange depends on the join's exchanges and
    // cannot share a step with them.
    let plan = distributed(&format!(
        "{JOIN} %5 = map(%2){{exprs = {{g4 = g3, name = name}}}}
         %6 = build(%5){{keys = [g4], expected_rows = 1000000}}
         %7 = probe(%6, %4){{keys = [g], join = :inner, expected_rows = 1000000}}
         return %7"
    ));
    let group = ["mpi_histogram", "mpi_window", "mpi_exchange", "mpi_exchange"];
    assert_eq!(steps(&plan), [&group[..], &group, &["mpi_broadcast"]].concat());
    // One side of the second join comes from the first, and the first join's exchanges still share
    // their steps.
    let plan = distributed(&format!(
        "{JOIN} %5 = map(%4){{exprs = {{k5 = k + 1}}}}
         %6 = build(%5){{keys = [k5], expected_rows = 1000000}}
         %7 = probe(%6, %4){{keys = [k], join = :inner, expected_rows = 1000000}}
         return %7"
    ));
    let alone = ["mpi_histogram", "mpi_window", "mpi_exchange"];
    assert_eq!(steps(&plan), [&group[..], &alone, &["mpi_broadcast"]].concat());
}

#[test]
fn heavy_partitions_may_stay_where_nobody_counts_on_them() {
    let heavy = |plan: &Plan| {
        let executor = plan.nodes.iter().find(|node| &*node.operator == "executor").unwrap();
        let windows =
            executor.nested[0].nodes.iter().filter(|node| &*node.operator == "mpi_window");
        let of = |node: &tessera_plan::Node| node.param("heavy").map(|value| format!("{value:?}"));
        windows.map(|window| of(window).is_some()).collect::<Vec<_>>()
    };
    let join = |kind: &str| {
        format!(
            "%3 = build(%1){{keys = [k2], expected_rows = 1000000}}
             %4 = probe(%3, %0){{keys = [k], join = :{kind}, expected_rows = 1000000}}\n"
        )
    };
    let shown = |kind: &str| text::print(&distributed(&format!("{}return %4", join(kind))));
    assert!(shown("inner").contains("heavy = [:either, :either]"), "{}", shown("inner"));
    assert!(shown("left").contains("heavy = [:split, :copied]"), "{}", shown("left"));
    assert!(shown("anti").contains("heavy = [:split, :copied]"));
    assert!(shown("right").contains("heavy = [:copied, :split]"));
    assert!(!shown("full").contains("heavy"));
    // Grouped by another key, or in parts: the placement of tuples does not matter.
    let sums = "aggregates = {n = {function = count, args = []}}";
    let plan = distributed(&format!(
        "{}%5 = reduce_by_key(%4){{keys = [g], {sums}}}\nreturn %5",
        join("inner")
    ));
    assert_eq!(heavy(&plan), [true, false]);
    // Grouped by the join key: tuples are not sent again.
    let plan = distributed(&format!(
        "{}%5 = reduce_by_key(%4){{keys = [k], {sums}}}\nreturn %5",
        join("inner")
    ));
    assert_eq!(heavy(&plan), [false]);
    // Joined again on the same key.
    let plan = distributed(&format!(
        "{}%5 = map(%2){{exprs = {{k4 = CAST(g3 AS int64), name = name}}}}
         %6 = build(%5){{keys = [k4], expected_rows = 1000000}}
         %7 = probe(%6, %4){{keys = [k2], join = :inner, expected_rows = 1000000}}
         return %7",
        join("inner")
    ));
    assert_eq!(heavy(&plan), [false]);
    // One exchange for two joins.
    let plan = distributed(&format!(
        "{}%5 = build(%0){{keys = [k], expected_rows = 1000000}}
         %6 = probe(%5, %1){{keys = [k2], join = :semi, expected_rows = 1000000}}
         %7 = cartesian_product(%4, %6)
         return %7",
        join("semi")
    ));
    assert!(heavy(&plan).iter().all(|heavy| !heavy), "{}", text::print(&plan));
}

#[test]
fn two_sided_plans_send_and_receive() {
    let sends = ["mpi_send", "mpi_receive", "mpi_send", "mpi_receive", "mpi_broadcast"];
    let plan = distributed_with(ExchangeMode::TwoSided, &format!("{JOIN}return %4"));
    assert_eq!(steps(&plan), sends);
    assert!(!text::print(&plan).contains("split"));
    let plan = distributed_with(ExchangeMode::Split, &format!("{JOIN}return %4"));
    assert_eq!(steps(&plan), sends);
    assert!(text::print(&plan).contains("split = true"));
    let plan = distributed_with(ExchangeMode::Rounds, &format!("{JOIN}return %4"));
    assert_eq!(steps(&plan), sends);
    assert_eq!(text::print(&plan).matches("rounds = true").count(), 4);
}

#[test]
fn what_is_gathered_in_rounds_is_put_in_order_where_that_matters() {
    let positions = |nodes: &str| {
        let plan = frugal(nodes);
        let sends = text::print(&plan).matches("position = :position").count();
        let sorts =
            plan.nodes[0].nested[0].nodes.iter().filter(|node| &*node.operator == "sort").count();
        (sends, sorts)
    };
    assert_eq!(positions("return %0"), (1, 1));
    assert_eq!(positions("%3 = limit(%0){limit = 5}\nreturn %3"), (1, 1));
    // A sort restores its own order, and a join has no order.
    assert_eq!(positions("%3 = sort(%0){keys = [{field = k}]}\nreturn %3"), (0, 1));
    assert_eq!(positions(&format!("{JOIN}return %4")), (0, 0));
    let named = frugal("%3 = map(%0){exprs = {position = k}}\nreturn %3");
    assert!(text::print(&named).contains("position = :position_1"));
}

#[test]
fn sends_of_all_tuples_go_in_rounds() {
    for (params, error) in [
        ("gather = true, rounds = true", None),
        ("broadcast = true, rounds = true, position = :p", None),
        ("gather = true", Some("rounds = true only")),
        ("gather = true, broadcast = true, rounds = true", Some("not both")),
        ("gather = true, rounds = true, keys = [k], bits = 2, shift = 40", Some("takes one of")),
        ("gather = true, rounds = true, position = :k", Some("names a field")),
        (
            "keys = [k], bits = 2, shift = 40, rounds = true, position = :p",
            Some("gather or broadcast only"),
        ),
    ] {
        let plan = format!(
            "plan {{{TABLES} %3 = mpi_send(%0){{{params}}} %4 = mpi_receive(%3){{rounds = true}} %5 = rows_scan(%4){{field = data}} return %5}}"
        );
        let mut registry = tessera_testing::standard_registry();
        Mpi::default().register(&mut registry);
        let verified =
            text::parse(&plan).and_then(|plan| verify(&plan, registry.catalog()).map(drop));
        match (verified, error) {
            (Ok(()), None) => {}
            (Err(found), Some(error)) => assert!(found.message().contains(error), "{found}"),
            (found, _) => panic!("{params}: {found:?}"),
        }
    }
}

/// The plan of the platform, and its fallback for scarce memory.
fn by_default(mpi: &Mpi, nodes: &str) -> (Plan, Option<Plan>) {
    let plan = text::parse(&format!("plan {{{TABLES}{nodes}}}")).unwrap();
    let mut registry = tessera_testing::standard_registry();
    mpi.register(&mut registry);
    let frugal = mpi.frugal_pass(&plan, registry.catalog(), Rules::ALL).unwrap();
    (mpi.pass(&plan, registry.catalog(), Rules::ALL).unwrap(), frugal)
}

/// The verified fallback plan for scarce memory.
fn frugal(nodes: &str) -> Plan {
    let mut registry = tessera_testing::standard_registry();
    let mpi = Mpi::new(Link::new(0, 4, false));
    mpi.register(&mut registry);
    let plan = by_default(&mpi, nodes).1.unwrap();
    verify(&plan, registry.catalog()).unwrap();
    assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
    plan
}

#[test]
fn ranks_that_share_cores_send_in_rounds() {
    let join = format!("{JOIN}return %4");
    let in_rounds = Mpi::new(Link::new(0, 4, false));
    in_rounds.set_exchange(ExchangeMode::Rounds);
    let plan = by_default(&Mpi::new(Link::new(0, 4, false)), &join).0;
    assert!(steps(&plan).contains(&"mpi_window".to_string()));
    assert_eq!(by_default(&Mpi::new(Link::new(0, 4, true)), &join), by_default(&in_rounds, &join));
}

#[test]
fn where_memory_is_lacking_all_goes_in_rounds() {
    let join = format!("{JOIN}return %4");
    // The plan has no collective steps: even the result is sent in rounds.
    let plan = frugal(&join);
    assert_eq!(steps(&plan), ["mpi_send", "mpi_receive"].repeat(3));
    assert_eq!(text::print(&plan).matches("rounds = true").count(), 6);
    for mode in ExchangeMode::ALL {
        let mpi = Mpi::new(Link::new(0, 4, false));
        mpi.set_exchange(mode);
        assert_eq!(by_default(&mpi, &join).1.as_ref(), Some(&plan), "{mode}");
    }
    // So does a plan that only gathers.
    assert_eq!(steps(&frugal("return %0")), ["mpi_send", "mpi_receive"]);
}

#[test]
fn both_ends_of_an_exchange_go_in_rounds() {
    for (sending, receiving, fits) in [
        ("", "", true),
        (", rounds = true", "rounds = true", true),
        (", rounds = true", "", false),
        ("", "rounds = true", false),
    ] {
        let plan = format!(
            "plan {{{TABLES}
             %3 = mpi_send(%0){{keys = [k], bits = 2, shift = 40{sending}}}
             %4 = mpi_receive(%3){{{receiving}}}
             %5 = rows_scan(%4){{field = data}}
             return %5}}"
        );
        let mut registry = tessera_testing::standard_registry();
        Mpi::default().register(&mut registry);
        let verified = text::parse(&plan).and_then(|plan| verify(&plan, registry.catalog()));
        assert_eq!(verified.is_ok(), fits, "{sending}, {receiving}: {verified:?}");
    }
}

#[test]
fn packed_plans_ask_for_ranges() {
    let plan = distributed_with(ExchangeMode::Packed, &format!("{JOIN}return %4"));
    assert_eq!(steps(&plan), steps(&distributed(&format!("{JOIN}return %4"))));
    assert_eq!(text::print(&plan).matches("ranges = [").count(), 2);
}

#[test]
fn ways_have_names() {
    for mode in ExchangeMode::ALL {
        assert_eq!(mode.name().parse::<ExchangeMode>().unwrap(), mode);
    }
    assert!(
        "sideways"
            .parse::<ExchangeMode>()
            .unwrap_err()
            .message()
            .contains("; expected auto, one-sided")
    );
}
