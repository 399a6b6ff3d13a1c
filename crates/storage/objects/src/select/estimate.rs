//! Estimates whether a select request transfers less than a scan.

use tessera_formats::parquet::FileSummary;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Field};

use super::pass::Table;
use super::request::Input;

/// The default selectivities of a range comparison, an equality and a pattern.
const RANGE_SHARE: f64 = 1.0 / 3.0;
const EQUAL_SHARE: f64 = 0.1;
const PATTERN_SHARE: f64 = 0.1;
/// The default number of characters of a string.
const TEXT_CHARS: f64 = 16.0;

/// Whether the selected tuples as text are smaller than the bytes a scan would read: column chunks
/// of Parquet, whole objects of text.
pub(super) fn is_worthwhile(table: &Table, fields: &[&Field]) -> bool {
    let share = match (table.pushed_filter().0, &table.filter) {
        (Some(_), Some(filter)) => share(table, filter),
        _ => 1.0,
    };
    let (sent, read) = match table.input {
        Input::Parquet => {
            let rows: u64 = table.footers.iter().map(|footer| footer.rows).sum();
            let width: f64 = fields.iter().map(|field| chars(field) + 1.0).sum();
            let of_footer = |footer: &FileSummary| -> u64 {
                let columns = table.columns.fields().iter();
                let known = columns
                    .filter_map(|field| footer.columns.get(footer.tuple.index_of(&field.name)?));
                known.map(|column| column.bytes).sum()
            };
            (rows as f64 * width, table.footers.iter().map(of_footer).sum::<u64>())
        }
        Input::Csv { .. } | Input::Json => {
            let columns = fields.len() as f64 / table.width.max(1) as f64;
            (table.bytes as f64 * columns.min(1.0), table.bytes)
        }
    };
    sent * share < read as f64
}

/// The number of characters of a value as text.
fn chars(field: &Field) -> f64 {
    match field.atom() {
        Some(Atom::Boolean) => 5.0,
        Some(Atom::Int8 | Atom::UInt8) => 3.0,
        Some(Atom::Int16 | Atom::UInt16) => 5.0,
        Some(Atom::Date) => 11.0,
        Some(Atom::Decimal(digits, _)) => f64::from(*digits).min(9.0),
        Some(Atom::Float32 | Atom::Float64 | Atom::String) => TEXT_CHARS,
        _ => 8.0,
    }
}

/// The selectivity of a predicate.
fn share(table: &Table, expr: &Expr) -> f64 {
    match expr {
        Expr::And(list) => list.iter().map(|expr| share(table, expr)).product(),
        Expr::Or(list) => list.iter().map(|expr| share(table, expr)).sum::<f64>().min(1.0),
        Expr::Not(inner) => 1.0 - share(table, inner),
        Expr::IsNull(_) => EQUAL_SHARE,
        Expr::Call { function, args } => match (&**function, args.as_slice()) {
            ("eq", [Expr::Field(name), _]) => {
                let distinct = table.footers.iter().filter_map(|footer| {
                    footer.columns.get(footer.tuple.index_of(name)?)?.distinct
                });
                distinct.max().map_or(EQUAL_SHARE, |distinct| 1.0 / distinct.max(1) as f64)
            }
            ("not_eq", _) => 1.0 - EQUAL_SHARE,
            ("like", _) => PATTERN_SHARE,
            (function, [Expr::Field(name), Expr::Constant(value, _)]) => below(table, name, value)
                .map_or(RANGE_SHARE, |below| match function {
                    "lt" | "lt_eq" => below,
                    "gt" | "gt_eq" => 1.0 - below,
                    _ => RANGE_SHARE,
                }),
            _ => RANGE_SHARE,
        },
        _ => 1.0,
    }
}

/// The fraction of a column's range below a value.
fn below(table: &Table, name: &str, value: &Scalar) -> Option<f64> {
    let number = |value: &Scalar| match value {
        Scalar::Integer(number) => Some(*number as f64),
        Scalar::Float(number) => Some(*number),
        _ => None,
    };
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for footer in &table.footers {
        let column = footer.columns.get(footer.tuple.index_of(name)?)?;
        low = low.min(number(column.min.as_ref()?)?);
        high = high.max(number(column.max.as_ref()?)?);
    }
    (high > low).then(|| ((number(value).unwrap_or(low) - low) / (high - low)).clamp(0.0, 1.0))
}
