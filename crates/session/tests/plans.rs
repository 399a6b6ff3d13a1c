//! The plans of `plans/`: the radix-partitioned form, the direct form and the SQL return the same
//! rows.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tessera_session::{Config, QueryResult, Session, StatementResult};

/// TPC-H at scale factor 0.01, made once.
fn data() -> &'static Path {
    static DATA: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = DATA.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let options = tessera_generate::Options { overwrite: true, ..Default::default() };
        tessera_generate::generate(tessera_generate::Suite::Tpch, 0.01, folder.path(), &options)
            .unwrap();
        folder
    });
    folder.path()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A plan of `plans/` whose files are those of [`data`].
fn plan(name: &str) -> String {
    let text = std::fs::read_to_string(repository().join("plans").join(name)).unwrap();
    text.replace("paths = ['", &format!("paths = ['{}/", data().display()))
}

/// Every value as text, row by row.
fn rows(result: &QueryResult) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for batch in result.batches() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let value = |column| arrow::util::display::array_value_to_string(column, row).unwrap();
            out.push(batch.columns().iter().map(|column| value(column)).collect());
        }
    }
    out
}

/// Runs with one worker and several, with chunks of 1, 7 and 2,048 tuples.
fn everywhere(check: impl Fn(&mut Session)) {
    for (threads, chunk_rows) in [(1, 2_048), (2, 2_048), (3, 7), (2, 1)] {
        let config =
            Config { threads, chunk_rows, database: Some(data().into()), ..Config::default() };
        check(&mut Session::new(config).unwrap());
    }
}

fn run(session: &mut Session, name: &str) -> Vec<Vec<String>> {
    let result = session.run_plan(&plan(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    rows(&result)
}

fn sql(session: &mut Session, text: &str) -> Vec<Vec<String>> {
    let results = session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match results.last() {
        Some(StatementResult::Rows(result)) => rows(result),
        other => panic!("{text}: {other:?}"),
    }
}

const JOIN: &str = "SELECT o_orderpriority, count(*) AS items, sum(l_quantity) AS quantity
    FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_orderpriority ORDER BY o_orderpriority";

const FILTERED_JOIN: &str = "SELECT l_shipmode, count(*) AS items, sum(l_quantity) AS quantity
    FROM orders JOIN lineitem ON o_orderkey = l_orderkey
    WHERE o_orderpriority = '1-URGENT' AND o_orderdate < DATE '1992-02-01' GROUP BY l_shipmode ORDER BY l_shipmode";

const GROUP_BY: &str = "SELECT l_partkey, sum(l_quantity) AS quantity, count(*) AS items
    FROM lineitem GROUP BY l_partkey ORDER BY quantity DESC, l_partkey LIMIT 20";

#[test]
fn a_radix_join_is_a_join() {
    everywhere(|session| {
        let direct = run(session, "join-direct.plan");
        assert_eq!(direct.len(), 5);
        assert_eq!(run(session, "join-radix.plan"), direct);
        assert_eq!(sql(session, JOIN), direct);
    });
}

#[test]
fn a_filter_of_keys_changes_no_join() {
    everywhere(|session| {
        let filtered = run(session, "join-filtered.plan");
        assert!(!filtered.is_empty());
        assert_eq!(sql(session, FILTERED_JOIN), filtered);
    });
}

#[test]
fn a_radix_group_by_is_a_group_by() {
    everywhere(|session| {
        let direct = run(session, "group-by-direct.plan");
        assert_eq!(direct.len(), 20);
        assert_eq!(run(session, "group-by-radix.plan"), direct);
        assert_eq!(sql(session, GROUP_BY), direct);
    });
}

#[test]
fn tpch_by_hand_is_tpch_by_sql() {
    everywhere(|session| {
        for (plan, query) in [("tpch-q01.plan", "q01.sql"), ("tpch-q06.plan", "q06.sql")] {
            let query =
                std::fs::read_to_string(repository().join("queries/tpch").join(query)).unwrap();
            let by_hand = run(session, plan);
            assert!(!by_hand.is_empty());
            assert_eq!(by_hand, sql(session, &query), "{plan}");
        }
    });
}

#[test]
fn a_changed_plan_is_rejected_with_the_place() {
    let mut session = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    for (name, from, to, message) in [
        ("tpch-q06.plan", "[saved]", "[safed]", "safed"),
        ("join-direct.plan", "l_orderkey: int64", "l_orderkey: string", "string"),
        (
            "join-radix.plan",
            "%result = rows_materialize(%joined)",
            "%result = filter(%joined) {predicate = o_orderkey = 1}",
            "sub-operator rows_scan (%10): field data is not a field",
        ),
        ("join-radix.plan", "return %result\n  }", "return %rezult\n  }", "%rezult"),
    ] {
        let text = plan(name);
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed);
        let error = session.run_plan(&changed).unwrap_err();
        assert!(error.to_string().contains(message), "{name}: {error}");
    }
    // Both sides have different partitions, which is detected when they are paired.
    let text = plan("join-radix.plan").replacen(
        "%lineitem_counts = local_histogram(%lineitem) {keys = [l_orderkey], bits = 4",
        "%lineitem_counts = local_histogram(%lineitem) {keys = [l_orderkey], bits = 5",
        1,
    );
    let text = text.replacen(
        "%lineitem_parts  = local_partition(%lineitem, %lineitem_counts) {keys = [l_orderkey], bits = 4",
        "%lineitem_parts  = local_partition(%lineitem, %lineitem_counts) {keys = [l_orderkey], bits = 5",
        1,
    );
    let error = session.run_plan(&text).unwrap_err();
    assert!(error.to_string().contains("zip"), "{error}");
}

/// Partial aggregates of workers without shared memory, merged.
#[test]
fn aggregates_of_parts_put_together_are_those_of_all() {
    let mut session = Session::new(Config { threads: 2, ..Config::default() }).unwrap();
    let values = "%v = values() {columns = <k: int64, part: int64, x: decimal(12,2)?, f: float64?, n: int64?>, rows = [
        [1, 0, 1.25::decimal(12,2), 0.5, 9223372036854775807], [1, 1, 2.50::decimal(12,2), NULL::float64, 5],
        [1, 1, NULL::decimal(12,2), 1.5, -7], [2, 0, NULL::decimal(12,2), NULL::float64, NULL::int64],
        [2, 2, NULL::decimal(12,2), NULL::float64, NULL::int64], [3, 2, -0.01::decimal(12,2), 2.25, 0]]}";
    let direct = format!(
        "plan {{ {values}
        %r = reduce_by_key(%v) {{keys = [k], aggregates = {{c = {{function = count, args = []}}, s = {{function = sum, args = [x]}},
            a = {{function = avg, args = [x]}}, b = {{function = avg, args = [f]}}, d = {{function = avg, args = [n]}}, m = {{function = max, args = [f]}}}}}}
        %s = sort(%r) {{keys = [{{field = k}}]}}
        return %s }}"
    );
    let in_parts = format!(
        "plan {{ {values}
        %p = reduce_by_key(%v) {{keys = [k, part], partial = true, aggregates = {{c = {{function = count, args = []}},
            s = {{function = sum, args = [x]}}, cx = {{function = count, args = [x]}}, f = {{function = sum, args = [f]}},
            cf = {{function = count, args = [f]}}, n = {{function = sum, args = [n]}}, cn = {{function = count, args = [n]}},
            m = {{function = max, args = [f]}}}}}}
        %r = reduce_by_key(%p) {{keys = [k], aggregates = {{c = {{function = merge_count, args = [c]}},
            s = {{function = merge_sum, args = [s]}}, a = {{function = merge_avg, args = [s, cx]}},
            b = {{function = merge_avg, args = [f, cf]}}, d = {{function = merge_avg, args = [n, cn]}}, m = {{function = max, args = [m]}}}}}}
        %s = sort(%r) {{keys = [{{field = k}}]}}
        return %s }}"
    );
    let shown = |result: QueryResult| {
        format!("{:?}", result.batches().map(Result::unwrap).collect::<Vec<_>>())
    };
    let direct = shown(session.run_plan(&direct).unwrap());
    assert_eq!(direct, shown(session.run_plan(&in_parts).unwrap()));
    assert!(direct.contains("1.875"), "{direct}");
}
