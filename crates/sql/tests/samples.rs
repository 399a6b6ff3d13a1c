//! Cardinality estimates that table samples improve: correlated columns, correlated keys, frequent
//! values.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_binder::Settings;
use tessera_operator::Registry;
use tessera_optimizer::sample::{Sample, SampledRows, Sampler};
use tessera_optimizer::table::{Table, TableCatalog};
use tessera_parser::parse;
use tessera_plan::{ColumnStatistics, Params, Scalar, Statistics, Value};
use tessera_sql::{Statement, plan};
use tessera_testing::standard_registry;
use tessera_types::{Result, Tuple};

/// A sampler that returns every `nth` row of a generated table, or of a few places in it.
#[derive(Debug)]
struct Every {
    rows: i64,
    nth: usize,
    in_places: bool,
    columns: Vec<fn(i64) -> i64>,
}

impl Sampler for Every {
    fn draw(&self, columns: &[usize]) -> Option<SampledRows> {
        let rows = (0..self.rows).step_by(self.nth);
        let rows: Vec<i64> = rows.filter(|row| !self.in_places || row / 500 % 5 == 0).collect();
        let of = |column: &usize| -> ArrayRef {
            Arc::new(rows.iter().copied().map(self.columns[*column]).collect::<Int64Array>())
        };
        let columns: Vec<ArrayRef> = columns.iter().map(of).collect();
        Some(SampledRows {
            columns,
            rows: rows.len(),
            table_rows: self.rows as f64,
            uniform: !self.in_places,
            distinct: Vec::new(),
        })
    }

    fn replace(&self, _drawn: &SampledRows) -> bool {
        false
    }
}

/// A catalog of sampled tables.
#[derive(Debug)]
struct Sampled {
    tables: Vec<Arc<Table>>,
}

impl TableCatalog for Sampled {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        Ok(self.tables.iter().find(|table| [table.name.as_str()] == reference).cloned())
    }

    fn table_names(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.name.clone()).collect()
    }
}

/// A catalog of a fact table with a few frequent keys, sampled at every seventh row, a table sorted
/// by a key and sampled in a few places, and dimension tables that are sampled in full.
fn catalog(registry: &Registry, sampled: bool) -> Sampled {
    let facts: Vec<fn(i64) -> i64> =
        vec![|i| i, |i| if i % 10 < 6 { 0 } else { i % 100 }, |i| i % 7, |i| i / 4];
    let keys: Vec<fn(i64) -> i64> = vec![|i| i, |i| i / 10, |i| i / 10 * 2];
    let events: Vec<fn(i64) -> i64> = vec![|i| 700 + i / 500];
    let days: Vec<fn(i64) -> i64> = vec![|i| i, |i| i / 3];
    let mut made = Vec::new();
    for (name, tuple, rows, nth, ranges, columns) in [
        (
            "fact",
            "<id: int64, key: int64, seven: int64, four: int64>",
            10_000,
            7,
            vec![(0, 9_999), (0, 99), (0, 6), (0, 2_499)],
            facts,
        ),
        ("dim", "<k: int64, a: int64, b: int64>", 100, 1, vec![(0, 99), (0, 9), (0, 18)], keys),
        ("events", "<day: int64>", 10_000, 7, vec![(700, 719)], events),
        ("calendar", "<d: int64, third: int64>", 1_000, 1, vec![(0, 999), (0, 333)], days),
    ] {
        let tuple: Tuple = tuple.parse().unwrap();
        let known = |(smallest, largest): (i128, i128)| ColumnStatistics {
            min: Some(Scalar::Integer(smallest)),
            max: Some(Scalar::Integer(largest)),
            ..ColumnStatistics::default()
        };
        let statistics = Statistics {
            rows: Some(rows as f64),
            columns: ranges.into_iter().map(known).collect(),
        };
        let draw = Box::new(Every { rows, nth, in_places: name == "events", columns });
        let sample = Sample::new(tuple.clone(), draw, registry.library().clone());
        made.push(Arc::new(Table {
            name: name.to_string(),
            tuple,
            operator: "parquet_scan".into(),
            params: Params::new().with("paths", Value::List(vec![Value::string(name)])),
            filters: true,
            statistics,
            sample: sampled.then(|| Arc::new(sample)),
            row_numbers: None,
        }));
    }
    Sampled { tables: made }
}

/// Returns the estimated rows of the first node with this operator, with and without samples.
fn estimates(sql: &str, operator: &str) -> (u64, u64) {
    estimates_of(sql, operator, |found| found.first().copied())
}

/// Returns the estimated rows of a chosen node with this operator, with and without samples.
fn estimates_of(sql: &str, operator: &str, choose: fn(&[u64]) -> Option<u64>) -> (u64, u64) {
    let registry = standard_registry();
    let of = |sampled: bool| {
        let catalog = catalog(&registry, sampled);
        let Statement::Query(planned) =
            plan(&parse(sql).unwrap()[0], &catalog, &registry, &Settings::default()).unwrap()
        else {
            panic!("{sql}");
        };
        let nodes = planned.plan.nodes.iter().filter(|node| &*node.operator == operator);
        let found: Vec<u64> = nodes.filter_map(|node| node.estimated_rows).collect();
        choose(&found).unwrap_or_else(|| panic!("{operator} in {sql}"))
    };
    (of(true), of(false))
}

#[test]
fn a_frequent_key_is_seen_in_a_join() {
    // 6,000 facts have key 0; the other 4,000 share 40 keys.
    let (with, without) =
        estimates("SELECT id, b FROM fact, dim WHERE key = k AND k = 0 AND a = 0", "probe");
    assert!((5_000..7_500).contains(&with), "{with}");
    assert!(without < 1_000, "{without}");
}

#[test]
fn a_table_has_only_some_days_of_a_calendar() {
    // The events are of 20 days, of which the sample has four.
    for (third, days) in [(237, 3), (236, 3), (239, 3), (100, 0)] {
        let sql = format!("SELECT d FROM events, calendar WHERE day = d AND third = {third}");
        let (with, _) = estimates(&sql, "probe");
        let rows = days * 500;
        assert!((rows * 9 / 10..=rows * 11 / 10).contains(&with), "{third}: {with}");
    }
}

#[test]
fn samples_are_read_for_joins_below_windows() {
    // Whether the window's aggregate becomes a join is asked before joins are ordered.
    let sql = "SELECT sum(d) OVER (PARTITION BY third), rank() OVER (ORDER BY d) \
        FROM events, calendar WHERE day = d AND third = 237";
    let (with, _) = estimates(sql, "probe");
    assert!((1_350..=1_650).contains(&with), "{with}");
}

#[test]
fn conditions_that_say_the_same_are_counted_once() {
    let sql =
        "SELECT id, b FROM fact, dim WHERE key = k AND a = 3 AND b = 6 AND k >= 30 AND k < 40";
    let (with, without) = estimates(sql, "probe");
    // Keys 36 to 39 have 100 facts each.
    assert!((200..800).contains(&with), "{with}");
    assert!(without < 100, "{without}");
}

#[test]
fn semi_and_anti_joins_keep_what_the_sample_does() {
    let exists = |no: &str| {
        format!("SELECT id FROM fact WHERE {no} EXISTS (SELECT 1 FROM dim WHERE k = key AND b = 0)")
    };
    let keeps = |sql: &str, operator: &str| estimates(sql, operator).0;
    let kept = keeps(&exists(""), "probe");
    let dropped = keeps(&exists("NOT"), "probe");
    assert!((5_500..7_500).contains(&kept), "{kept}");
    assert!((2_500..4_500).contains(&dropped), "{dropped}");
}

#[test]
fn an_outer_join_keeps_what_has_no_match() {
    let (with, _) = estimates("SELECT id, b FROM fact LEFT JOIN dim ON k = key AND b = 4", "probe");
    assert!((9_900..10_100).contains(&with), "{with}");
}

#[test]
fn groups_of_several_keys_are_those_that_occur_together() {
    let (with, without) = estimates(
        "SELECT a, b, count(*) FROM fact, dim WHERE key = k GROUP BY a, b",
        "reduce_by_key",
    );
    assert!(with <= 12, "{with}");
    assert!(without >= 90, "{without}");
}

#[test]
fn few_groups_have_a_sum_far_from_the_mean() {
    // A group of four rows has an average sum of 12 and hardly ever more than 30.
    let large = "SELECT four AS f FROM fact GROUP BY four HAVING sum(seven) > 30";
    let (with, without) =
        estimates(&format!("SELECT k FROM dim, ({large}) AS l WHERE k = f"), "filter");
    assert!(with < 100, "{with}");
    assert!(without > 500, "{without}");
}

#[test]
fn the_smallest_value_of_a_group_is_that_of_one_of_its_tuples() {
    let least = "SELECT key AS of, min(id) AS least FROM fact GROUP BY key";
    let sql = format!(
        "SELECT id, a FROM dim, fact, ({least}) AS l WHERE k = key AND k = of AND id = least AND b < 20"
    );
    // The last join.
    let (with, _) = estimates_of(&sql, "probe", |found| found.last().copied());
    assert!((10..400).contains(&with), "{with}");
}
