//! Text literals that the planner would take for texts: in VALUES beside other types, as far as
//! their text shows them, and as conditions.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Query, Select, SetExpr, TimezoneInfo, UnaryOperator, Value,
    VisitorMut,
};
use tessera_types::{Error, Result};

use crate::check::{Flow, visited};

/// The query with such literals as casts.
///
/// # Errors
/// None that text of a user could cause.
pub(crate) fn typed(query: Box<Query>) -> Result<Box<Query>> {
    visited(query, &mut Literals)
}

struct Literals;

impl VisitorMut for Literals {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        if let SetExpr::Values(values) = &mut *query.body {
            let columns = values.rows.first().map_or(0, |row| row.content.len());
            for column in 0..columns {
                one_type(values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)).collect());
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> Flow {
        [&mut select.selection, &mut select.having].into_iter().flatten().for_each(condition);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                condition(left);
                condition(right);
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr),
            Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => condition(inner),
            Expr::Case { operand: None, conditions, .. } => {
                conditions.iter_mut().for_each(|when| condition(&mut when.condition));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A literal that is a condition is a boolean.
fn condition(expr: &mut Expr) {
    if is_text(expr) {
        cast(expr, DataType::Boolean);
    }
}

/// Casts the literals among expressions of one type to the type that another one shows.
fn one_type(exprs: Vec<&mut Expr>) {
    if !exprs.iter().any(|expr| is_text(expr)) {
        return;
    }
    let rank = |data_type: &DataType| match data_type {
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => 2,
        DataType::Timestamp(..) => 1,
        _ => 0,
    };
    let Some(to) = exprs.iter().filter_map(|expr| shown_type(expr)).max_by_key(rank) else { return };
    for expr in exprs {
        if is_text(expr) {
            cast(expr, to.clone());
        }
    }
}

/// The type of an expression, where its text shows one that the planner does not bring together
/// with text.
fn shown_type(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Nested(inner) => shown_type(inner),
        Expr::Cast { data_type, array: false, .. } => without_precision(data_type),
        Expr::TypedString(literal) => without_precision(&literal.data_type),
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::Value(value) => matches!(value.value, Value::Boolean(_)).then_some(DataType::Boolean),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::BinaryOp {
            op:
                BinaryOperator::And
                | BinaryOperator::Or
                | BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq,
            ..
        } => Some(DataType::Boolean),
        _ => None,
    }
}

/// A type of dates, times, bytes, booleans or lists, with all digits; of numbers and texts the
/// planner takes care.
fn without_precision(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Timestamp(_, zone) => DataType::Timestamp(None, *zone),
        DataType::Time(_, zone) => DataType::Time(None, *zone),
        DataType::Interval { .. } => DataType::Interval { fields: None, precision: None },
        DataType::Date | DataType::Boolean | DataType::Bool | DataType::Bytea | DataType::Array(_) => {
            data_type.clone()
        }
        _ => return None,
    })
}

fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_))
        }
        _ => false,
    }
}

fn cast(expr: &mut Expr, data_type: DataType) {
    let inner = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = Expr::Cast { kind: CastKind::Cast, expr: Box::new(inner), data_type, array: false, format: None };
}
