//! Writes predicates in the language of SelectObjectContent.
//!
//! A condition is true for every tuple that satisfies the predicate (a *superset*); an *exact*
//! condition is true for no other tuple. Negations are pushed down to comparisons, so that
//! supersets remain supersets. A conjunct that cannot be written is omitted; a disjunction is
//! omitted as a whole.

use std::sync::Arc;

use tessera_plan::{Expr, Scalar};
use tessera_text::calendar::civil;
use tessera_types::{Atom, Field, Tuple, quote_text};

use super::request::Input;
use super::trust::{Dialect, EXACT_MAX};

/// The pattern of dates that compare correctly as text; tuples with other texts are selected.
const DATE_PATTERN: &str = "'____-__-__'";
/// The longest float literal; some stores reject longer ones.
const FLOAT_CHARS_MAX: usize = 30;

/// A condition that is true for a superset of the tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) sql: String,
    /// Whether it is true for no other tuples.
    pub(super) exact: bool,
}

/// Writes conditions for one store and one table.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) dialect: Dialect,
    pub(super) input: &'a Input,
    pub(super) columns: &'a Tuple,
    /// For CSV, the field number of each column.
    pub(super) positions: Option<&'a [usize]>,
}

impl Writer<'_> {
    /// Returns the store's name for a column.
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

    /// Writes a predicate.
    pub(super) fn predicate(&self, expr: &Expr) -> Option<Condition> {
        self.truth(expr, false)
    }

    /// Writes a predicate or its negation.
    fn truth(&self, expr: &Expr, negated: bool) -> Option<Condition> {
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

    /// Writes the conjunction of those that can be written.
    fn all(&self, list: &[Expr], negated: bool) -> Option<Condition> {
        let conditions: Vec<Condition> =
            list.iter().filter_map(|expr| self.truth(expr, negated)).collect();
        let exact =
            conditions.len() == list.len() && conditions.iter().all(|condition| condition.exact);
        let sql = joined(conditions, " AND ")?;
        Some(Condition { sql, exact })
    }

    /// Writes the disjunction, if all can be written.
    fn any(&self, list: &[Expr], negated: bool) -> Option<Condition> {
        let conditions: Vec<Condition> =
            list.iter().map(|expr| self.truth(expr, negated)).collect::<Option<_>>()?;
        let exact = conditions.iter().all(|condition| condition.exact);
        Some(Condition { sql: joined(conditions, " OR ")?, exact })
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

    /// Returns a condition that excludes NULLs, if the store fails on them.
    fn guard(&self, column: usize, field: &Field) -> Option<Option<String>> {
        let reference = self.reference(column)?;
        Some(match (self.dialect.fails_on_nulls(), self.is_csv()) {
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

    fn is_null(&self, inner: &Expr, negated: bool) -> Option<Condition> {
        let (column, field) = self.column(inner)?;
        let reference = self.reference(column)?;
        // In CSV, an empty field is NULL unless it is quoted; the Tessera endpoint distinguishes
        // them.
        let sql = match (self.is_csv() && self.dialect == Dialect::Minio, negated) {
            (true, true) => format!("{reference} != ''"),
            (true, false) => format!("{reference} = ''"),
            (false, true) => format!("{reference} IS NOT NULL"),
            (false, false) => format!("{reference} IS NULL"),
        };
        let exact = !self.is_csv() || field.atom() == Some(&Atom::String);
        Some(Condition { sql, exact })
    }

    fn like(&self, value: &Expr, pattern: &Arc<str>, negated: bool) -> Option<Condition> {
        let (column, field) = self.column(value)?;
        if field.atom() != Some(&Atom::String) || pattern.contains('\\') || pattern.is_empty() {
            return None;
        }
        // MinIO does not backtrack after `_`.
        if self.dialect == Dialect::Minio && (pattern.contains('_') || !pattern.is_ascii()) {
            return None;
        }
        if !self.is_safe_for_text(pattern, negated) {
            return None;
        }
        // MinIO's parser rejects `a NOT LIKE`.
        let not = if negated { "NOT " } else { "" };
        let value = self.text(column)?;
        let sql = format!("{not}{value} LIKE {}", quoted(pattern)?);
        Some(Condition { sql: self.guarded(&[(column, field)], sql)?, exact: true })
    }

    /// Returns a string column in a form that only matches strings.
    fn text(&self, column: usize) -> Option<String> {
        let reference = self.reference(column)?;
        Some(match self.is_text_form() {
            true => format!("CAST({reference} AS STRING)"),
            false => reference,
        })
    }

    /// Whether no JSON value other than a string can have this text or prefix. The engine reads
    /// other values as their text, which MinIO does not preserve.
    fn is_safe_for_text(&self, text: &str, negated: bool) -> bool {
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
    ) -> Option<Condition> {
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
                    let is_safe = self.is_safe_for_text(text, comparison == Comparison::Unequal);
                    if json_text && (comparison != Comparison::Equal || !is_safe) {
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
        // NaN is greater than every number, but MinIO treats it as nothing.
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
        Some(Condition { sql: self.guarded(&columns, sql)?, exact })
    }

    /// Writes a column or constant as an operand.
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

    /// The equivalent comparison with swapped operands.
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

fn joined(mut conditions: Vec<Condition>, between: &str) -> Option<String> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop().map(|condition| condition.sql),
        _ => {
            let texts: Vec<String> =
                conditions.into_iter().map(|condition| condition.sql).collect();
            Some(format!("({})", texts.join(between)))
        }
    }
}

fn quoted(text: &str) -> Option<String> {
    (!text.contains(char::is_control)).then(|| quote_text(text))
}

fn decimal(digits: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let sign = if digits < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = text.split_at(text.len() - scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// Formats days since 1970 as a date with a four-digit year.
fn date(days: i128) -> Option<String> {
    let (year, month, day) = civil(i32::try_from(days).ok()?.into());
    (1..=9_999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests;
