//! Predicates in the language of SelectObjectContent.
//!
//! What is written is true of every tuple of which the predicate is true (a *superset*), and where
//! it is *exact* of no other. A negation is carried inwards to the comparisons, so that supersets
//! stay ones; of a conjunction, what cannot be written is left out; of a disjunction nothing can
//! be.

use std::sync::Arc;

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Field, Tuple};

use super::request::Input;
use super::trust::{Dialect, EXACT_MAX};

/// Dates as text compare as dates where they have this form; others are passed on.
const DATE_PATTERN: &str = "'____-__-__'";
/// The longest text of a float; longer ones are no literals everywhere.
const FLOAT_CHARS_MAX: usize = 30;

/// Some SQL that is true of a superset of the tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) sql: String,
    /// Of no others.
    pub(super) exact: bool,
}

/// Writes for one store and one table.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) dialect: Dialect,
    pub(super) input: &'a Input,
    pub(super) columns: &'a Tuple,
    /// Of CSV: which field of a record each column is.
    pub(super) positions: Option<&'a [usize]>,
}

impl Writer<'_> {
    /// What the store calls a column.
    pub(super) fn reference(&self, column: usize) -> Option<String> {
        match self.positions {
            Some(positions) => Some(format!("s._{}", positions.get(column)? + 1)),
            None => {
                let name = &self.columns.fields().get(column)?.name;
                let plain = !name.is_empty() && !name.contains(['"', '.', '[', ']', '*', '\\']);
                (plain && !name.contains(char::is_control)).then(|| format!("s.\"{name}\""))
            }
        }
    }

    /// A predicate.
    pub(super) fn predicate(&self, expr: &Expr) -> Option<Written> {
        self.truth(expr, false)
    }

    /// A predicate, or its negation.
    fn truth(&self, expr: &Expr, negated: bool) -> Option<Written> {
        match expr {
            Expr::And(list) if negated => self.any(list, negated),
            Expr::Or(list) if negated => self.all(list, negated),
            Expr::And(list) => self.all(list, negated),
            Expr::Or(list) => self.any(list, negated),
            Expr::Not(inner) => self.truth(inner, !negated),
            Expr::IsNull(inner) => self.is_null(inner, negated),
            Expr::Call { function, args } => match (&**function, args.as_slice()) {
                ("like", [value, Expr::Constant(Scalar::String(pattern), _)]) => {
                    self.like(value, pattern, negated)
                }
                (function, [left, right]) => {
                    self.compare(Comparison::of(function)?, left, right, negated)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// All of these, as far as they can be written.
    fn all(&self, list: &[Expr], negated: bool) -> Option<Written> {
        let written: Vec<Written> =
            list.iter().filter_map(|expr| self.truth(expr, negated)).collect();
        let exact = written.len() == list.len() && written.iter().all(|written| written.exact);
        let sql = joined(written, " AND ")?;
        Some(Written { sql, exact })
    }

    /// One of these.
    fn any(&self, list: &[Expr], negated: bool) -> Option<Written> {
        let written: Vec<Written> =
            list.iter().map(|expr| self.truth(expr, negated)).collect::<Option<_>>()?;
        let exact = written.iter().all(|written| written.exact);
        Some(Written { sql: joined(written, " OR ")?, exact })
    }

    fn column(&self, expr: &Expr) -> Option<(usize, &Field)> {
        let Expr::Field(name) = expr else { return None };
        let position = self.columns.index_of(name)?;
        Some((position, &self.columns.fields()[position]))
    }

    fn is_text_form(&self) -> bool {
        *self.input != Input::Parquet
    }

    fn is_csv(&self) -> bool {
        matches!(self.input, Input::Csv { .. })
    }

    /// Keeps NULLs away, where the store does not stand them.
    fn guard(&self, column: usize, field: &Field) -> Option<Option<String>> {
        let reference = self.reference(column)?;
        Some(match (self.dialect.fears_nulls(), self.is_csv()) {
            (false, _) => None,
            (true, true) => Some(format!("{reference} != ''")),
            (true, false) if field.nullable || self.is_text_form() => {
                Some(format!("{reference} IS NOT NULL"))
            }
            (true, false) => None,
        })
    }

    fn guarded(&self, columns: &[(usize, &Field)], sql: String) -> Option<String> {
        let mut parts = Vec::new();
        for (column, field) in columns {
            parts.extend(self.guard(*column, field)?);
        }
        if parts.is_empty() {
            return Some(sql);
        }
        parts.dedup();
        parts.push(sql);
        Some(format!("({})", parts.join(" AND ")))
    }

    fn is_null(&self, inner: &Expr, negated: bool) -> Option<Written> {
        let (column, field) = self.column(inner)?;
        let reference = self.reference(column)?;
        // In CSV, an empty field is NULL, unless it is text in quotes; our own endpoint sees those.
        let sql = match (self.is_csv() && self.dialect == Dialect::Minio, negated) {
            (true, true) => format!("{reference} != ''"),
            (true, false) => format!("{reference} = ''"),
            (false, true) => format!("{reference} IS NOT NULL"),
            (false, false) => format!("{reference} IS NULL"),
        };
        let exact = !self.is_csv() || field.atom() == Some(&Atom::String);
        Some(Written { sql, exact })
    }

    fn like(&self, value: &Expr, pattern: &Arc<str>, negated: bool) -> Option<Written> {
        let (column, field) = self.column(value)?;
        if field.atom() != Some(&Atom::String) || pattern.contains('\\') || pattern.is_empty() {
            return None;
        }
        // MinIO does not go back where `_` has led it astray.
        if self.dialect == Dialect::Minio && (pattern.contains('_') || !pattern.is_ascii()) {
            return None;
        }
        if !self.is_said_of_text(pattern, negated) {
            return None;
        }
        // MinIO's parser does not get past `a NOT LIKE`.
        let not = if negated { "NOT " } else { "" };
        let value = self.text(column)?;
        let sql = format!("{not}{value} LIKE {}", quoted(pattern)?);
        Some(Written { sql: self.guarded(&[(column, field)], sql)?, exact: true })
    }

    /// A column of strings, where only strings are taken.
    fn text(&self, column: usize) -> Option<String> {
        let reference = self.reference(column)?;
        Some(match self.is_text_form() {
            true => format!("CAST({reference} AS STRING)"),
            false => reference,
        })
    }

    /// Whether no other JSON value than a string can be this text or begin like it: the engine
    /// takes others as their text, which MinIO does not know any more.
    fn is_said_of_text(&self, text: &str, negated: bool) -> bool {
        if self.dialect == Dialect::Tessera || *self.input != Input::Json {
            return true;
        }
        let first = text.bytes().next().unwrap_or(b'{');
        let of_other = first.is_ascii_digit()
            || matches!(first, b'-' | b'{' | b'[' | b't' | b'f' | b'n' | b'%');
        !negated && !of_other
    }

    fn compare(
        &self,
        comparison: Comparison,
        left: &Expr,
        right: &Expr,
        negated: bool,
    ) -> Option<Written> {
        let comparison = if negated { comparison.negated() } else { comparison };
        let (comparison, left, right) = match left {
            Expr::Constant(..) => (comparison.flipped(), right, left),
            _ => (comparison, left, right),
        };
        let (column, field) = self.column(left)?;
        let atom = field.atom()?;
        let mut exact = self.dialect.compares(self.input, atom)?;
        let mut columns = vec![(column, field)];
        let minio = self.dialect == Dialect::Minio;
        let equality = matches!(comparison, Comparison::Equal | Comparison::Unequal);
        match right {
            Expr::Constant(value, of) if of == atom => {
                if let Scalar::String(text) = value {
                    let json_text = *self.input == Input::Json && minio;
                    let said = self.is_said_of_text(text, comparison == Comparison::Unequal);
                    if json_text && (comparison != Comparison::Equal || !said) {
                        return None;
                    }
                }
            }
            Expr::Field(_) => {
                let other = self.column(right)?;
                if other.1.atom() != Some(atom)
                    || (minio && self.is_text_form() && *atom == Atom::String)
                {
                    return None;
                }
                columns.push(other);
            }
            _ => return None,
        }
        let is_float = atom.is_float();
        if (*atom == Atom::Boolean && !equality)
            || (comparison == Comparison::Unequal
                && (is_float || matches!(atom, Atom::Decimal(..)))
                && !exact)
        {
            return None;
        }
        let (a, b) = (self.value(left, atom)?, self.value(right, atom)?);
        // NaN is more than every other number, but to MinIO it is nothing.
        let sql = match comparison {
            Comparison::More if is_float => format!("NOT ({a} <= {b})"),
            Comparison::MoreOrEqual if is_float => format!("NOT ({a} < {b})"),
            _ => format!("{a} {} {b}", comparison.sign()),
        };
        let sql = match self.is_text_form() && *atom == Atom::Date {
            false => sql,
            true => {
                exact = false;
                let mut parts = Vec::new();
                for (column, _) in &columns {
                    parts.push(format!("NOT {} LIKE {DATE_PATTERN}", self.text(*column)?));
                }
                parts.push(sql);
                format!("({})", parts.join(" OR "))
            }
        };
        Some(Written { sql: self.guarded(&columns, sql)?, exact })
    }

    /// A column or constant, as it is compared.
    fn value(&self, expr: &Expr, atom: &Atom) -> Option<String> {
        match expr {
            Expr::Field(_) => {
                let (column, _) = self.column(expr)?;
                let reference = self.reference(column)?;
                Some(match (self.is_text_form(), atom) {
                    (false, Atom::Date) => format!("CAST({reference} AS TIMESTAMP)"),
                    (false, _) | (true, Atom::String) => reference,
                    (true, Atom::Date) => format!("CAST({reference} AS STRING)"),
                    (true, atom) if atom.is_integer() => format!("CAST({reference} AS INT)"),
                    (true, _) => format!("CAST({reference} AS FLOAT)"),
                })
            }
            Expr::Constant(value, _) => self.constant(value, atom),
            _ => None,
        }
    }

    fn constant(&self, value: &Scalar, atom: &Atom) -> Option<String> {
        match (value, atom) {
            (Scalar::Boolean(true), Atom::Boolean) => Some("TRUE".to_string()),
            (Scalar::Boolean(false), Atom::Boolean) => Some("FALSE".to_string()),
            (Scalar::Integer(days), Atom::Date) => {
                let date = date(*days)?;
                Some(match self.is_text_form() {
                    true => format!("'{date}'"),
                    false => format!("CAST('{date}T00:00:00Z' AS TIMESTAMP)"),
                })
            }
            (Scalar::Integer(digits), Atom::Decimal(_, scale)) => decimal(*digits, *scale),
            (Scalar::Integer(number), atom) if atom.is_integer() => {
                (number.unsigned_abs() < u128::from(EXACT_MAX)).then(|| number.to_string())
            }
            (Scalar::Float(number), atom) if atom.is_float() && number.is_finite() => {
                let mut text = number.to_string();
                if !text.contains('.') {
                    text.push_str(".0");
                }
                (text.len() <= FLOAT_CHARS_MAX).then_some(text)
            }
            (Scalar::String(text), Atom::String) => quoted(text),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

impl Comparison {
    fn of(function: &str) -> Option<Comparison> {
        Some(match function {
            "eq" => Comparison::Equal,
            "not_eq" => Comparison::Unequal,
            "lt" => Comparison::Less,
            "lt_eq" => Comparison::LessOrEqual,
            "gt" => Comparison::More,
            "gt_eq" => Comparison::MoreOrEqual,
            _ => return None,
        })
    }

    fn negated(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::Unequal,
            Comparison::Unequal => Comparison::Equal,
            Comparison::Less => Comparison::MoreOrEqual,
            Comparison::LessOrEqual => Comparison::More,
            Comparison::More => Comparison::LessOrEqual,
            Comparison::MoreOrEqual => Comparison::Less,
        }
    }

    /// With the sides swapped.
    fn flipped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::More,
            Comparison::LessOrEqual => Comparison::MoreOrEqual,
            Comparison::More => Comparison::Less,
            Comparison::MoreOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Unequal => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::More => ">",
            Comparison::MoreOrEqual => ">=",
        }
    }
}

fn joined(mut written: Vec<Written>, between: &str) -> Option<String> {
    match written.len() {
        0 => None,
        1 => written.pop().map(|written| written.sql),
        _ => {
            let texts: Vec<String> = written.into_iter().map(|written| written.sql).collect();
            Some(format!("({})", texts.join(between)))
        }
    }
}

fn quoted(text: &str) -> Option<String> {
    (!text.contains(char::is_control)).then(|| format!("'{}'", text.replace('\'', "''")))
}

fn decimal(digits: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let sign = if digits < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = text.split_at(text.len() - scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// A number of days since 1970 as a date of four digits of year (Hinnant's algorithm).
fn date(days: i128) -> Option<String> {
    let shifted = i64::try_from(days).ok()?.checked_add(719_468)?;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (1..=9_999).contains(&year).then(|| format!("{year:04}-{month:02}-{of_month:02}"))
}

#[cfg(test)]
mod tests {
    use tessera_plan::text;

    use super::*;

    const COLUMNS: &str = "<n: int64?, m: int64, f: float64, price: decimal(15,2), t: string?, d: date, e: date, b: boolean>";

    /// The SQL for a predicate in the plan language, and whether it is exact.
    fn written(dialect: Dialect, input: &Input, predicate: &str) -> Option<(String, bool)> {
        let plan = format!(
            "plan {{ %0 = json_scan() {{columns = {COLUMNS}, filter = {predicate}}} return %0 }}"
        );
        let plan = text::parse(&plan).unwrap_or_else(|error| panic!("{predicate}: {error}"));
        let params = &plan.nodes[0].params;
        let columns = params.tuple("columns").unwrap();
        let positions: Vec<usize> = (0..columns.len()).collect();
        let positions = matches!(input, Input::Csv { .. }).then_some(&positions[..]);
        let writer = Writer { dialect, input, columns, positions };
        writer.predicate(params.expr("filter").unwrap()).map(|written| (written.sql, written.exact))
    }

    fn check(dialect: Dialect, input: &Input, cases: &[(&str, &str, bool)]) {
        for (predicate, sql, exact) in cases {
            let found = written(dialect, input, predicate);
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
            assert_eq!(written(Dialect::Minio, &Input::Parquet, predicate), None, "{predicate}");
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
                (
                    "price <= 0.07::decimal(15,2)",
                    "(s._4 != '' AND CAST(s._4 AS FLOAT) <= 0.07)",
                    false,
                ),
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
                (
                    "t LIKE 'P%'",
                    "(s.\"t\" IS NOT NULL AND CAST(s.\"t\" AS STRING) LIKE 'P%')",
                    true,
                ),
            ],
        );
        for predicate in
            ["t = '1.50'", "t = 'true'", "t < 'x'", "t LIKE '%x'", "NOT t LIKE 'x%'", "b = true"]
        {
            assert_eq!(written(Dialect::Minio, &Input::Json, predicate), None, "{predicate}");
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
}
