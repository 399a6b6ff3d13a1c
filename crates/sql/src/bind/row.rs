//! Rows that are written out, compared with one another and with those of subqueries.

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};
use tessera_plan::Expr;
use tessera_types::{Error, Result, SqlState};

use super::compare::Comparison;
use super::operator::is_row;
use super::scope::{Column, as_parameter};
use super::typed::Typed;
use super::{Binder, Place, refuse_at, without_parentheses};

impl Binder<'_> {
    /// The values of a row that is written out; none for other expressions.
    pub(super) fn row(
        &mut self,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Vec<Typed>>> {
        let Some(values) = row_values(expr)? else { return Ok(None) };
        values
            .into_iter()
            .map(|value| self.expr(value, place))
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }

    /// A comparison of rows; none where neither side is one.
    pub(super) fn rows(
        &mut self,
        left: &Ast,
        op: &BinaryOperator,
        right: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Typed>> {
        if !is_row(left) && !is_row(right) {
            return Ok(None);
        }
        if *op == BinaryOperator::Overlaps {
            let (Some(mut left), Some(right)) = (self.row(left, place)?, self.row(right, place)?)
            else {
                return Err(refuse_at("OVERLAPS of other than two rows", left));
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
    ) -> Result<Option<Vec<Typed>>> {
        match without_parentheses(expr) {
            Ast::Subquery(query) => self.only_row(query, place).map(Some),
            other => self.row(other, place),
        }
    }

    /// Rows are compared value by value; the first pair that differs decides, and a NULL that
    /// decides makes it NULL.
    pub(super) fn compared_rows(
        &mut self,
        comparison: Comparison,
        left: Vec<Typed>,
        right: Vec<Typed>,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        if left.len() != right.len() || left.is_empty() {
            let message =
                format!("rows of {} and of {} values are compared", left.len(), right.len());
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        let pairs = left.into_iter().zip(right);
        match comparison {
            Comparison::Eq | Comparison::NotEq => {
                let function = comparison.function();
                let tests = pairs.map(|(a, b)| self.compared(function, a, b).map(|test| test.expr));
                let tests = tests.collect::<Result<Vec<_>>>()?;
                Ok(Typed::boolean(match comparison {
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
                        // The last pair decides where all before are equal.
                        None => self.compared(comparison.function(), a, b)?.expr,
                        Some(rest) => {
                            let (a, b) = (self.once(a, place)?, self.once(b, place)?);
                            let less = self.compared(strict, a.clone(), b.clone())?.expr;
                            let equal = self.compared("eq", a, b)?.expr;
                            Expr::Or(vec![less, Expr::And(vec![equal, rest])])
                        }
                    });
                }
                rest.map(Typed::boolean).ok_or_else(|| Error::internal("rows without values"))
            }
        }
    }

    /// IS NULL or IS NOT NULL of a row: whether all of its values are so.
    pub(super) fn null_row(
        &mut self,
        expr: &Ast,
        is_null: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Typed>> {
        let expr = without_parentheses(expr);
        let values = match (self.row(expr, place)?, expr) {
            (Some(values), _) => values,
            (None, other) => match row_of(other, place) {
                // Whether the row is there or not, its values say it.
                Some((columns, outer)) => {
                    let value = |column: Column| {
                        let value = Typed::new(Expr::Field(column.field), column.atom);
                        if outer { as_parameter(value) } else { value }
                    };
                    columns.into_iter().map(value).collect()
                }
                None => return Ok(None),
            },
        };
        let test = |value: Typed| {
            let test = Expr::IsNull(Box::new(value.expr));
            if is_null { test } else { Expr::Not(Box::new(test)) }
        };
        Ok(Some(Typed::boolean(Expr::all(values.into_iter().map(test).collect()))))
    }
}

/// The columns of the table whose row `t` or `t.*` is, and whether it is of a query around this
/// one.
fn row_of(expr: &Ast, place: &Place<'_, '_>) -> Option<(Vec<Column>, bool)> {
    match expr {
        Ast::Identifier(table) => place.scope.whole_row(table),
        Ast::QualifiedWildcard(name, _) => place.scope.row_of(table_of(name)?),
        _ => None,
    }
}

/// The table that a name of one part is.
pub(super) fn table_of(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [only] => only.as_ident(),
        _ => None,
    }
}

/// The disjunction of conditions.
pub(super) fn any(mut tests: Vec<Expr>) -> Expr {
    match tests.len() {
        0 => Expr::boolean(false),
        1 => tests.remove(0),
        _ => Expr::Or(tests),
    }
}

/// The values of `(a, b)` or `ROW(a, b)`; none for other expressions.
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
