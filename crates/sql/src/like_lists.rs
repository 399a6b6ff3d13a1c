//! `LIKE ANY (ARRAY[…])`, `LIKE ALL (ARRAY[…])` and `LIKE … ESCAPE ''`, which the planner does not take, written out.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
    ValueWithSpan,
};

use crate::precision::call;

/// A LIKE or ILIKE in the form that the planner takes, where it is one of those.
pub(crate) fn planned(expr: &Expr) -> Option<Expr> {
    let (ignore_case, negated, any, value, pattern, escape) = match expr {
        Expr::Like { negated, any, expr, pattern, escape_char } => {
            (false, negated, any, expr, pattern, escape_char)
        }
        Expr::ILike { negated, any, expr, pattern, escape_char } => {
            (true, negated, any, expr, pattern, escape_char)
        }
        _ => return None,
    };
    let one = |pattern: Expr| {
        let (expr, pattern) = (value.clone(), Box::new(pattern));
        let (negated, escape_char) = (*negated, escape.clone());
        match ignore_case {
            true => Expr::ILike { negated, any: false, expr, pattern, escape_char },
            false => Expr::Like { negated, any: false, expr, pattern, escape_char },
        }
    };
    let (operator, list) = match (*any, &**pattern) {
        (true, list) => (BinaryOperator::Or, list),
        (false, Expr::Function(function)) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let operator = match name.as_str() {
                "any" | "some" => BinaryOperator::Or,
                "all" => BinaryOperator::And,
                _ => return without_escape(expr, escape.as_ref()),
            };
            let FunctionArguments::List(list) = &function.args else { return None };
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = &list.args[..] else { return None };
            (operator, list)
        }
        _ => return without_escape(expr, escape.as_ref()),
    };
    let patterns = patterns(list)?;
    let nothing = operator == BinaryOperator::And;
    let tests = patterns.iter().cloned().map(one);
    let joined = tests.reduce(|all, next| Expr::BinaryOp {
        left: Box::new(all),
        op: operator.clone(),
        right: Box::new(next),
    });
    Some(Expr::Nested(Box::new(joined.unwrap_or_else(|| Expr::value(Value::Boolean(nothing))))))
}

fn patterns(list: &Expr) -> Option<&[Expr]> {
    match list {
        Expr::Array(array) => Some(&array.elem),
        Expr::Tuple(patterns) => Some(patterns),
        Expr::Nested(inner) => patterns(inner),
        _ => None,
    }
}

/// With an empty escape there is none; with one of several characters, the function says what is wrong.
fn without_escape(expr: &Expr, escape: Option<&ValueWithSpan>) -> Option<Expr> {
    let Value::SingleQuotedString(mark) = &escape?.value else { return None };
    if mark.chars().count() == 1 {
        return None;
    }
    let (name, negated, value, pattern) = match expr {
        Expr::Like { negated, expr, pattern, .. } => ("like", negated, expr, pattern),
        Expr::ILike { negated, expr, pattern, .. } => ("ilike", negated, expr, pattern),
        _ => return None,
    };
    let mark = Expr::value(Value::SingleQuotedString(mark.clone()));
    let test = call(name, vec![(**value).clone(), (**pattern).clone(), mark]);
    Some(match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(test) },
        false => test,
    })
}
