//! Output of rows while the query runs.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use crate::support::{program, run};

/// A query with more rows than a test reads.
const ENDLESS: &str = "select a.x, b.x as y, c.x as z from generate_series(1, 10000) as a(x), \
                       generate_series(1, 10000) as b(x), generate_series(1, 10000) as c(x)";
/// A query that fails at its last row.
const DAMAGED: &str = "select 1 / (1999999 - a.x * 1000 - b.x) as n from generate_series(0, 1999) as a(x), \
                       generate_series(0, 999) as b(x)";

#[test]
fn rows_come_at_once_and_a_reader_that_has_enough_ends_the_query() {
    for format in ["csv", "json", "table", "arrow"] {
        let since = Instant::now();
        let mut child =
            program(&["--memory", "64MB", "--format", format, "-c", ENDLESS]).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        match format {
            "arrow" => reader.read_exact(&mut [0; 1000]).unwrap(),
            _ => assert!(reader.read_line(&mut String::new()).unwrap() > 0),
        }
        drop(reader);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{format}");
        assert!(since.elapsed() < Duration::from_secs(20), "{format}");
    }
}

#[test]
fn an_error_after_rows_says_that_the_result_is_incomplete() {
    for format in ["csv", "json", "table"] {
        let ran = run(&[
            "--threads",
            "1",
            "--memory",
            "2MB",
            "--format",
            format,
            "-c",
            DAMAGED,
            "-c",
            "select 7",
        ]);
        assert_eq!(ran.code, Some(1), "{format}");
        let lines: Vec<&str> = ran.err.lines().collect();
        assert!(lines[0].starts_with("error: division by zero"), "{format}: {}", ran.err);
        assert!(
            lines[1].starts_with("the result is incomplete: the error occurred after "),
            "{}",
            ran.err
        );
        assert!(ran.out.lines().count() > 100, "{format}");
        assert!(!ran.out.contains('7'), "the next statement must not run");
    }
}

#[test]
fn an_error_before_the_first_row_leaves_nothing() {
    for format in ["csv", "json", "table", "arrow", "parquet"] {
        let ran = run(&[
            "--format",
            format,
            "-c",
            "select 1 / (x - 1) as n from generate_series(1, 3) as g(x)",
        ]);
        assert!(ran.out.is_empty() && ran.bytes.is_empty(), "{format}: {}", ran.out);
        assert!(ran.error().contains("division by zero"));
    }
}
