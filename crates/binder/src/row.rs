//! Row constructors, and their comparison with other rows and with rows of subqueries.

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};
use tessera_plan::Expr;
use tessera_types::{Error, Result, SqlState};

use super::compare::Comparison;
use super::operator::is_row;
use super::scope::{Column, as_parameter};
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at, without_parentheses};

impl Binder<'_> {
    /// Binds the values of a row constructor; returns `None` for other expressions.
    pub(super) fn row(
        &mut self,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Vec<TypedExpr>>> {
        let Some(values) = row_values(expr)? else { return Ok(None) };
        values
            .into_iter()
            .map(|value| self.expr(value, place))
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }

    /// Binds a comparison of rows; returns `None` if neither side is a row.
    pub(super) fn rows(
        &mut self,
        left: &Ast,
        op: &BinaryOperator,
        right: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        if !is_row(left) && !is_row(right) {
            return Ok(None);
        }
        if *op == BinaryOperator::Overlaps {
            let (Some(mut left), Some(right)) = (self.row(left, place)?, self.row(right, place)?)
            else {
                return Err(unsupported_at("OVERLAPS of anything but two rows", left));
            };
            left.extend(right);
            return self.call("overlaps", left).map(Some);
        }
        let Some(comparison) = Comparison::of(op) else { return Ok(None) };
        let (left, right) =
            (self.row_or_subquery(left, place)?, self.row_or_subquery(right, place)?);
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        self.compared_rows(comparison, left, right, place).map(Some)
    }

    fn row_or_subquery(
        &mut self,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Vec<TypedExpr>>> {
        match without_parentheses(expr) {
            Ast::Subquery(query) => self.only_row(query, place).map(Some),
            other => self.row(other, place),
        }
    }

    /// Compares rows value by value: the first differing pair decides, and a NULL in it makes the
    /// result NULL.
    pub(super) fn compared_rows(
        &mut self,
        comparison: Comparison,
        left: Vec<TypedExpr>,
        right: Vec<TypedExpr>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if left.len() != right.len() || left.is_empty() {
            let message =
                format!("cannot compare rows of {} and {} values", left.len(), right.len());
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        let pairs = left.into_iter().zip(right);
        match comparison {
            Comparison::Eq | Comparison::NotEq => {
                let function = comparison.function();
                let tests = pairs.map(|(a, b)| self.compared(function, a, b).map(|test| test.expr));
                let tests = tests.collect::<Result<Vec<_>>>()?;
                Ok(TypedExpr::boolean(match comparison {
                    Comparison::Eq => Expr::all(tests),
                    _ => any(tests),
                }))
            }
            _ => {
                let strict = match comparison {
                    Comparison::Lt | Comparison::LtEq => "lt",
                    _ => "gt",
                };
                let mut rest: Option<Expr> = None;
                for (a, b) in pairs.rev() {
                    rest = Some(match rest {
                        // The last pair decides if all earlier pairs are equal.
                        None => self.compared(comparison.function(), a, b)?.expr,
                        Some(rest) => {
                            let (a, b) = (self.once(a, place)?, self.once(b, place)?);
                            let less = self.compared(strict, a.clone(), b.clone())?.expr;
                            let equal = self.compared("eq", a, b)?.expr;
                            Expr::Or(vec![less, Expr::And(vec![equal, rest])])
                        }
                    });
                }
                rest.map(TypedExpr::boolean)
                    .ok_or_else(|| Error::internal("comparison of rows without values"))
            }
        }
    }

    /// Binds IS NULL or IS NOT NULL of a row: whether all of its values are NULL, or none.
    pub(super) fn null_row(
        &mut self,
        expr: &Ast,
        is_null: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let expr = without_parentheses(expr);
        let values = match (self.row(expr, place)?, expr) {
            (Some(values), _) => values,
            (None, other) => match row_of(other, place) {
                // A missing row of an outer join has only NULLs, so testing the values suffices.
                Some((columns, outer)) => {
                    let value = |column: Column| {
                        let value = TypedExpr::new(Expr::Field(column.field), column.atom);
                        if outer { as_parameter(value) } else { value }
                    };
                    columns.into_iter().map(value).collect()
                }
                None => return Ok(None),
            },
        };
        let test = |value: TypedExpr| {
            let test = Expr::IsNull(Box::new(value.expr));
            if is_null { test } else { Expr::Not(Box::new(test)) }
        };
        Ok(Some(TypedExpr::boolean(Expr::all(values.into_iter().map(test).collect()))))
    }
}

/// Returns the columns of the table that `t` or `t.*` refers to, and whether the table belongs to
/// an enclosing query.
fn row_of(expr: &Ast, place: &Place<'_, '_>) -> Option<(Vec<Column>, bool)> {
    match expr {
        Ast::Identifier(table) => place.scope.whole_row(table),
        Ast::QualifiedWildcard(name, _) => place.scope.row_of(table_of(name)?),
        _ => None,
    }
}

/// Returns the identifier of an unqualified name.
pub(super) fn table_of(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [only] => only.as_ident(),
        _ => None,
    }
}

/// Builds the disjunction of conditions.
pub(super) fn any(mut tests: Vec<Expr>) -> Expr {
    match tests.len() {
        0 => Expr::boolean(false),
        1 => tests.remove(0),
        _ => Expr::Or(tests),
    }
}

/// Returns the expressions of `(a, b)` or `ROW(a, b)`; `None` for other expressions.
pub(super) fn row_values(expr: &Ast) -> Result<Option<Vec<&Ast>>> {
    match expr {
        Ast::Tuple(values) => Ok(Some(values.iter().collect())),
        Ast::Function(function) if super::list::is_called(function, "row") => {
            let FunctionArguments::List(list) = &function.args else { return Ok(None) };
            let value = |arg| match arg {
                &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref value)) => Ok(value),
                other => {
                    Err(Error::unsupported(format!("the argument {other} of ROW is not supported")))
                }
            };
            list.args.iter().map(value).collect::<Result<Vec<_>>>().map(Some)
        }
        _ => Ok(None),
    }
}
