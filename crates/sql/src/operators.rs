//! Operators of one operand, and comparisons with lists, as calls of the library's functions; the signs of literals.

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value};

use crate::precision::call_of;

/// The function behind the sign `-`, which no identifier of a user's spells by accident.
pub(crate) const NEGATIVE: &str = "negative of";

/// An operator of one operand as what the planner takes; none where it takes the operator.
pub(crate) fn call(op: UnaryOperator, operand: &Expr) -> Option<Expr> {
    let function = match op {
        UnaryOperator::Minus => match signed_literal(operand) {
            Some(literal) => return Some(literal),
            None if matches!(operand, Expr::Value(_)) => return None,
            None => NEGATIVE,
        },
        UnaryOperator::BitwiseNot => "bit_not",
        UnaryOperator::PGAbs => "abs",
        UnaryOperator::PGSquareRoot => "sqrt",
        UnaryOperator::PGCubeRoot => "cbrt",
        _ => return None,
    };
    Some(function_call(function, vec![operand.clone()]))
}

fn function_call(function: &str, args: Vec<Expr>) -> Expr {
    call_of(Ident::with_quote('"', function), args)
}

/// `value = ANY (list)` or `ALL` as `IN` where the list is written out, else as a call; none for subqueries.
pub(crate) fn quantified(value: &Expr, op: &BinaryOperator, list: &Expr, all: bool) -> Option<Expr> {
    let mut inner = list;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    if matches!(inner, Expr::Subquery(_)) {
        return None;
    }
    let negated = match (op, all) {
        (BinaryOperator::Eq, false) => Some(false),
        (BinaryOperator::NotEq, true) => Some(true),
        _ => None,
    };
    if let (Expr::Array(array), Some(negated)) = (inner, negated)
        && !array.elem.is_empty()
    {
        let (expr, list) = (Box::new(value.clone()), array.elem.clone());
        return Some(Expr::InList { expr, list, negated });
    }
    let name = match op {
        BinaryOperator::Eq => "eq",
        BinaryOperator::NotEq => "not_eq",
        BinaryOperator::Lt => "lt",
        BinaryOperator::LtEq => "lt_eq",
        BinaryOperator::Gt => "gt",
        BinaryOperator::GtEq => "gt_eq",
        _ => return None,
    };
    let quantifier = if all { "all" } else { "any" };
    Some(function_call(&format!("{quantifier}_{name}"), vec![value.clone(), inner.clone()]))
}

/// The negative of a literal in parentheses or with a sign: signs belong to the literal before it has a type, so that
/// `-(-2147483648)` does not overflow.
fn signed_literal(operand: &Expr) -> Option<Expr> {
    let is_number = |expr: &Expr| match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    };
    let mut inner = operand;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    match inner {
        number if is_number(number) && !is_number(operand) => {
            Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number.clone()) })
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match signed_literal(expr) {
            Some(Expr::UnaryOp { expr, .. }) => Some(*expr),
            Some(number) => Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) }),
            None => is_number(expr).then(|| (**expr).clone()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn signs_belong_to_literals() {
        for (text, expected) in [
            ("-5", None),
            ("-(5)", Some("-5")),
            ("-(-5)", Some("5")),
            ("- -5", Some("5")),
            ("-(-(-5))", Some("-5")),
            ("-(((5)))", Some("-5")),
            ("-a", Some("\"negative of\"(a)")),
            ("-(-5)::smallint", None),
        ] {
            let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap();
            let found = match &parsed {
                Expr::UnaryOp { op, expr } => call(*op, expr).map(|expr| expr.to_string()),
                _ => None,
            };
            if text.contains("::") {
                assert_eq!(found.as_deref(), Some("\"negative of\"((-5)::SMALLINT)"));
                continue;
            }
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
