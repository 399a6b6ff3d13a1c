//! Literals that the planner would read in its own way, written so that the evaluator reads them.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Interval,
    Spanned, UnaryOperator, Value,
};
use tessera_types::{Error, Result, Span};

/// An interval as a cast of its text, or as so many times one unit where the number is an expression.
///
/// # Errors
/// A number without a unit.
pub(crate) fn interval(interval: &Interval) -> Result<Expr> {
    let unit = interval.leading_field.as_ref().map(|field| field.to_string().to_lowercase());
    let text = match (&*interval.value, &unit) {
        (Expr::Value(value), unit) => match (&value.value, unit) {
            (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text), None) => text.clone(),
            (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text), Some(unit)) => {
                format!("{text} {unit}")
            }
            (Value::Number(number, _), Some(unit)) => format!("{number} {unit}"),
            (_, Some(unit)) => return Ok(times(&interval.value, unit)),
            (_, None) => return Err(without_unit(interval)),
        },
        (value, Some(unit)) => return Ok(times(value, unit)),
        (_, None) => return Err(without_unit(interval)),
    };
    Ok(cast(text))
}

fn without_unit(interval: &Interval) -> Error {
    let value = &interval.value;
    let error = Error::semantic(format!(
        "an interval needs a unit that is known; write its text in quotes: interval '{value} days'"
    ));
    let start = value.span().start;
    match start.line {
        0 => error,
        line => error.at(Span { line: line as u32, column: start.column as u32 }),
    }
}

fn cast(text: String) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type: DataType::Interval { fields: None, precision: None },
        array: false,
        format: None,
    }
}

fn times(number: &Expr, unit: &str) -> Expr {
    binary(nested(number.clone()), BinaryOperator::Multiply, cast(format!("1 {unit}")))
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// A comparison of two rows written out, as one of their values: a NULL that decides makes it NULL.
pub(crate) fn compared_rows(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let (left, right) = (row(left)?, row(right)?);
    if left.len() != right.len() || left.is_empty() {
        return None;
    }
    let pairs = || left.iter().cloned().zip(right.iter().cloned());
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match op {
        Eq => joined(pairs().map(|(a, b)| binary(a, Eq, b)), And),
        NotEq => joined(pairs().map(|(a, b)| binary(a, NotEq, b)), Or),
        Lt | LtEq | Gt | GtEq => {
            let strict = if matches!(op, Lt | LtEq) { Lt } else { Gt };
            // The last pair decides when all before are equal.
            let mut pairs = pairs().rev();
            let (a, b) = pairs.next()?;
            let last = binary(a, op.clone(), b);
            Some(pairs.fold(last, |rest, (a, b)| {
                let equal = nested(binary(binary(a.clone(), Eq, b.clone()), And, nested(rest)));
                nested(binary(binary(a, strict.clone(), b), Or, equal))
            }))
        }
        _ => None,
    }
}

/// A row written out, in a list of such.
pub(crate) fn row_in_list(value: &Expr, list: &[Expr], negated: bool) -> Option<Expr> {
    row(value)?;
    let equal = list
        .iter()
        .map(|item| compared_rows(value, &BinaryOperator::Eq, item).map(nested))
        .collect::<Option<Vec<_>>>()?;
    let found = joined(equal.into_iter(), BinaryOperator::Or)?;
    Some(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) } } else { found })
}

/// IS NULL or IS NOT NULL of a row written out: whether all of its values are so.
pub(crate) fn null_row(value: &Expr, is_null: bool) -> Option<Expr> {
    let test = |value: &Expr| match is_null {
        true => Expr::IsNull(Box::new(nested(value.clone()))),
        false => Expr::IsNotNull(Box::new(nested(value.clone()))),
    };
    let mut value = value;
    while let Expr::Nested(inner) = value {
        value = inner;
    }
    joined(row(value)?.iter().map(test), BinaryOperator::And)
}

/// The values of `(a, b)` or `ROW(a, b)`.
fn row(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let value = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            };
            list.args.iter().map(value).collect()
        }
        _ => None,
    }
}

fn joined(exprs: impl Iterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    exprs.reduce(|all, next| binary(all, op.clone(), next)).map(nested)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn parsed(text: &str) -> Expr {
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    #[test]
    fn intervals_become_casts() {
        let shown = |text: &str| match parsed(text) {
            Expr::Interval(found) => {
                interval(&found).map_or_else(|error| error.message().to_string(), |e| e.to_string())
            }
            other => panic!("{other}"),
        };
        assert_eq!(shown("interval '1 day'"), "CAST('1 day' AS INTERVAL)");
        assert_eq!(shown("interval '3' month"), "CAST('3 month' AS INTERVAL)");
        assert_eq!(shown("interval 3 month"), "CAST('3 month' AS INTERVAL)");
        assert!(shown("interval 3 lustra").contains("needs a unit"));
    }

    #[test]
    fn rows_are_compared_value_by_value() {
        let shown = |text: &str| match parsed(text) {
            Expr::BinaryOp { left, op, right } => compared_rows(&left, &op, &right).unwrap().to_string(),
            Expr::InList { expr, list, negated } => row_in_list(&expr, &list, negated).unwrap().to_string(),
            other => panic!("{other}"),
        };
        assert_eq!(shown("(a, b) = (1, 2)"), "(a = 1 AND b = 2)");
        assert_eq!(shown("(a, b) <> (1, 2)"), "(a <> 1 OR b <> 2)");
        assert_eq!(shown("(a, b) <= (1, 2)"), "(a < 1 OR (a = 1 AND (b <= 2)))");
        assert_eq!(shown("(a, b) not in ((1, 2))"), "NOT (((a = 1 AND b = 2)))");
        let shown = |is_null| null_row(&parsed("(a, b)"), is_null).map(|expr| expr.to_string());
        assert_eq!(shown(true).as_deref(), Some("((a) IS NULL AND (b) IS NULL)"));
        assert_eq!(shown(false).as_deref(), Some("((a) IS NOT NULL AND (b) IS NOT NULL)"));
    }
}
