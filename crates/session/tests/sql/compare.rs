//! Runs a record and compares its result.

use std::cmp::Ordering;

use tessera_session::{Session, StatementResult};

use super::script::{Expected, Record};
use super::values::{self, Answer, Kind};

/// The maximum relative error of a float.
const TOLERANCE: f64 = 1e-12;

/// Runs a record. Returns an error message if the result is wrong.
pub(super) fn run(session: &mut Session, record: &Record) -> Result<(), String> {
    let given = session.execute(&record.sql);
    let told = |wrong: String| format!("{wrong}\n  {}", record.sql.replace('\n', "\n  "));
    match (&record.expected, given) {
        (Expected::Ok, Ok(_)) => Ok(()),
        (Expected::Error(state), Err(error)) if error.sql_state().as_str() == state => Ok(()),
        (Expected::Error(state), Err(error)) => {
            Err(told(format!("fails with {} instead of {state}: {error}", error.sql_state())))
        }
        (_, Err(error)) => Err(told(format!("fails with {}: {error}", error.sql_state()))),
        (Expected::Error(state), Ok(results)) => {
            let rows = answer(results).map(|answer| lines(&answer).join(" / ")).unwrap_or_default();
            Err(told(format!("gives {rows} instead of error {state}")))
        }
        (Expected::Rows { letters, sorted, rows }, Ok(results)) => {
            let answer = answer(results).map_err(told)?;
            if !answer.has_types(letters) {
                let shown = lines(&answer).join(" / ");
                return Err(told(format!(
                    "has the types {} instead of {letters}: {shown}",
                    answer.letters()
                )));
            }
            if same(&answer, rows, *sorted) {
                return Ok(());
            }
            Err(told(format!(
                "gives\n{}\ninstead of\n{}",
                lines(&answer).join("\n"),
                rows.join("\n")
            )))
        }
    }
}

/// The rows of the last statement.
fn answer(results: Vec<StatementResult>) -> Result<Answer, String> {
    match results.last() {
        Some(StatementResult::Rows(rows)) => values::answer(rows),
        _ => Err("gives no rows".to_string()),
    }
}

fn lines(answer: &Answer) -> Vec<String> {
    answer.rows.iter().map(|row| row.join("  ")).collect()
}

fn same(answer: &Answer, expected: &[String], sorted: bool) -> bool {
    let width = answer.kinds.len();
    let mut expected: Vec<Vec<String>> = expected.iter().map(|line| cells(line, width)).collect();
    let mut found: Vec<&Vec<String>> = answer.rows.iter().collect();
    if expected.len() != found.len() || expected.iter().any(|row| row.len() != width) {
        return false;
    }
    if sorted {
        expected.sort_by(|a, b| order(a, b, &answer.kinds));
        found.sort_by(|a, b| order(a, b, &answer.kinds));
    }
    let pairs = found.iter().zip(&expected);
    pairs.into_iter().all(|(a, b)| {
        a.iter().zip(b).zip(&answer.kinds).all(|((a, b), kind)| a == b || same_number(a, b, *kind))
    })
}

/// The values of a line: tabs separate them, or two blanks and more.
fn cells(line: &str, width: usize) -> Vec<String> {
    if width == 1 {
        return vec![line.to_string()];
    }
    if line.contains('\t') {
        return line.split('\t').map(|cell| cell.trim().to_string()).collect();
    }
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_string).collect()
}

/// A sort key of rows that does not depend on the notation of numbers.
fn order(a: &[String], b: &[String], kinds: &[Kind]) -> Ordering {
    let cells = a.iter().zip(b).zip(kinds);
    cells.fold(Ordering::Equal, |known, ((a, b), kind)| {
        known.then_with(|| match (kind, a.parse::<f64>(), b.parse::<f64>()) {
            (Kind::Float | Kind::Decimal, Ok(x), Ok(y)) if close(x, y) => Ordering::Equal,
            (Kind::Float | Kind::Decimal, Ok(x), Ok(y)) => x.total_cmp(&y),
            _ => a.cmp(b),
        })
    })
}

fn same_number(a: &str, b: &str, kind: Kind) -> bool {
    match kind {
        Kind::Text => false,
        Kind::Float => matches!((a.parse(), b.parse()), (Ok(a), Ok(b)) if close(a, b)),
        Kind::Whole | Kind::Decimal => a != "NULL" && b != "NULL" && trimmed(a) == trimmed(b),
    }
}

/// A decimal without the zeros at its end.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn close(a: f64, b: f64) -> bool {
    // Without the test for infinity everything would be close to it.
    let largest = a.abs().max(b.abs());
    a == b
        || (a.is_nan() && b.is_nan())
        || (largest.is_finite() && (a - b).abs() <= TOLERANCE * largest)
}

#[test]
fn values_are_compared_by_their_kind() {
    for (a, b, kind, same) in [
        ("1.50", "1.5", Kind::Decimal, true),
        ("150", "15", Kind::Decimal, false),
        ("0.1", "0.1000000000000000000000000001", Kind::Decimal, false),
        ("0.1", "0.1000000000000000000000000001", Kind::Float, true),
        ("1e20", "100000000000000000000", Kind::Float, true),
        ("NaN", "NaN", Kind::Float, true),
        ("1", "1.00000000001", Kind::Float, false),
        ("Infinity", "1e308", Kind::Float, false),
        ("1", "1.0", Kind::Whole, true),
        ("1", "1.1", Kind::Whole, false),
        ("NULL", "0", Kind::Float, false),
    ] {
        assert_eq!(a == b || same_number(a, b, kind), same, "{a} {b} {kind:?}");
    }
    assert_eq!(cells("1  a b\u{20}\u{20} c", 3), ["1", "a b", "c"]);
    assert_eq!(cells("1\ta  b", 2), ["1", "a  b"]);
}
