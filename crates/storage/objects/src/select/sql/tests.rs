use tessera_plan::text;

use super::*;

const COLUMNS: &str = "<n: int64?, m: int64, f: float64, price: decimal(15,2), t: string?, d: date, e: date, b: boolean>";

/// The SQL of a predicate in the plan language, and whether it is exact.
fn condition(dialect: Dialect, input: &Input, predicate: &str) -> Option<(String, bool)> {
    let plan = format!(
        "plan {{ %0 = json_scan() {{columns = {COLUMNS}, filter = {predicate}}} return %0 }}"
    );
    let plan = text::parse(&plan).unwrap_or_else(|error| panic!("{predicate}: {error}"));
    let params = &plan.nodes[0].params;
    let columns = params.tuple("columns").unwrap();
    let positions: Vec<usize> = (0..columns.len()).collect();
    let positions = matches!(input, Input::Csv { .. }).then_some(&positions[..]);
    let writer = Writer { dialect, input, columns, positions };
    writer
        .predicate(params.expr("filter").unwrap())
        .map(|condition| (condition.sql, condition.exact))
}

fn check(dialect: Dialect, input: &Input, cases: &[(&str, &str, bool)]) {
    for (predicate, sql, exact) in cases {
        let found = condition(dialect, input, predicate);
        assert_eq!(found, Some((sql.to_string(), *exact)), "{predicate}");
    }
}

#[test]
fn our_own_endpoint_over_parquet() {
    check(
        Dialect::Tessera,
        &Input::Parquet,
        &[
            ("n < 5", "s.\"n\" < 5", true),
            ("5 < n", "s.\"n\" > 5", true),
            ("price >= 0.05::decimal(15,2)", "s.\"price\" >= 0.05", true),
            ("price >= -1.50::decimal(15,2)", "s.\"price\" >= -1.50", true),
            ("t = 'it''s'", "s.\"t\" = 'it''s'", true),
            ("d < e", "CAST(s.\"d\" AS TIMESTAMP) < CAST(s.\"e\" AS TIMESTAMP)", true),
            (
                "d < '1994-02-28'::date",
                "CAST(s.\"d\" AS TIMESTAMP) < CAST('1994-02-28T00:00:00Z' AS TIMESTAMP)",
                true,
            ),
            (
                "n = 1 OR n = 2 OR t IS NULL",
                "(s.\"n\" = 1 OR s.\"n\" = 2 OR s.\"t\" IS NULL)",
                true,
            ),
            ("NOT (n = 1 AND m > 2)", "(s.\"n\" != 1 OR s.\"m\" <= 2)", true),
            ("n = 1 AND n + m = 2", "s.\"n\" = 1", false),
        ],
    );
}

#[test]
fn minio_over_parquet() {
    check(
        Dialect::Minio,
        &Input::Parquet,
        &[
            ("m < 5", "s.\"m\" < 5", true),
            ("n < 5", "(s.\"n\" IS NOT NULL AND s.\"n\" < 5)", true),
            ("f > 5.5::float64", "NOT (s.\"f\" <= 5.5)", false),
            ("f < 5.0::float64", "s.\"f\" < 5.0", false),
            ("t LIKE 'a%b'", "(s.\"t\" IS NOT NULL AND s.\"t\" LIKE 'a%b')", true),
            ("NOT t LIKE 'a%'", "(s.\"t\" IS NOT NULL AND NOT s.\"t\" LIKE 'a%')", true),
            ("b = true", "s.\"b\" = TRUE", true),
            ("m = 1 AND price > 1.00::decimal(15,2)", "s.\"m\" = 1", false),
        ],
    );
    for predicate in [
        "price > 1.00::decimal(15,2)",
        "m = 1 OR price > 1.00::decimal(15,2)",
        "f <> 5.0::float64",
        "t LIKE 'a_b'",
        "m < 9007199254740992",
        "b > false",
    ] {
        assert_eq!(condition(Dialect::Minio, &Input::Parquet, predicate), None, "{predicate}");
    }
}

#[test]
fn text_is_cast() {
    let csv = Input::Csv { header: true, delimiter: '|', quote: None };
    check(
        Dialect::Minio,
        &csv,
        &[
            ("n < 5", "(s._1 != '' AND CAST(s._1 AS INT) < 5)", true),
            ("price <= 0.07::decimal(15,2)", "(s._4 != '' AND CAST(s._4 AS FLOAT) <= 0.07)", false),
            ("t = 'x'", "(s._5 != '' AND s._5 = 'x')", true),
            (
                "d < '1994-02-28'::date",
                "(s._6 != '' AND (NOT CAST(s._6 AS STRING) LIKE '____-__-__' OR CAST(s._6 AS STRING) < '1994-02-28'))",
                false,
            ),
        ],
    );
    check(
        Dialect::Tessera,
        &csv,
        &[("n < 5", "CAST(s._1 AS INT) < 5", true), ("t < 'x'", "s._5 < 'x'", true)],
    );
    check(
        Dialect::Minio,
        &Input::Json,
        &[
            ("m < 5", "(s.\"m\" IS NOT NULL AND CAST(s.\"m\" AS INT) < 5)", true),
            ("t = 'MAIL'", "(s.\"t\" IS NOT NULL AND s.\"t\" = 'MAIL')", true),
            ("t LIKE 'P%'", "(s.\"t\" IS NOT NULL AND CAST(s.\"t\" AS STRING) LIKE 'P%')", true),
        ],
    );
    for predicate in
        ["t = '1.50'", "t = 'true'", "t < 'x'", "t LIKE '%x'", "NOT t LIKE 'x%'", "b = true"]
    {
        assert_eq!(condition(Dialect::Minio, &Input::Json, predicate), None, "{predicate}");
    }
}

#[test]
fn dates_and_decimals() {
    assert_eq!(date(0).unwrap(), "1970-01-01");
    assert_eq!(date(-719_162).unwrap(), "0001-01-01");
    assert_eq!(date(11_016).unwrap(), "2000-02-29");
    assert_eq!(date(-719_163), None);
    assert_eq!(decimal(5, 2).unwrap(), "0.05");
    assert_eq!(decimal(-12_345, 2).unwrap(), "-123.45");
    assert_eq!(decimal(7, 0).unwrap(), "7");
}
