//! Membership and range tests: IN, BETWEEN, ANY and ALL.

use std::borrow::Cow;

use sqlparser::ast::{BinaryOperator, Expr as Ast, Spanned};
use sqlparser::tokenizer::Span;
use tessera_parser::{Literals, list_text};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::compare::Comparison;
use super::row::any;
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at, with_span, without_parentheses};

impl Binder<'_> {
    pub(super) fn in_list(
        &mut self,
        value: &Ast,
        list: &[Ast],
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let written = list.first().and_then(list_text);
        let is_long = list.len() > 1 || written.is_some();
        let mut tests = Vec::new();
        if let Some(row) = self.row(value, place)? {
            let mut values = Vec::with_capacity(row.len());
            for value in row {
                values.push(if is_long { self.once(value, place)? } else { value });
            }
            for item in &*parsed(list, written) {
                let Some(item) = self.row(item, place)? else {
                    return Err(unsupported_at(
                        "IN with a row on the left and single values on the right",
                        item,
                    ));
                };
                tests.push(self.compared_rows(Comparison::Eq, values.clone(), item, place)?.expr);
            }
        } else {
            let mut value = self.expr(value, place)?;
            if is_long {
                value = self.once(value, place)?;
            }
            if self.text_collation(&value)?.is_none()
                && let Some(found) = self.in_literals(&value, list)
            {
                return Ok(found.negated_if(negated));
            }
            let list = parsed(list, written);
            let mut items = Vec::with_capacity(list.len());
            for item in &*list {
                items.push(self.expr(item, place)?);
            }
            if value.unknown {
                // A literal takes the common type of the items.
                let all: Vec<&TypedExpr> = items.iter().chain([&value]).collect();
                let common = self.common(&all, "IN")?;
                value = self.cast_to(value, &common, false)?;
            }
            for item in items {
                tests.push(self.compared("eq", value.clone(), item)?.expr);
            }
        }
        let found = TypedExpr::boolean(any(tests));
        Ok(found.negated_if(negated))
    }

    pub(super) fn between(
        &mut self,
        value: &Ast,
        negated: bool,
        low: &Ast,
        high: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if let (Some(row), Some(low), Some(high)) =
            (self.row(value, place)?, self.row(low, place)?, self.row(high, place)?)
        {
            let row = row.into_iter().map(|value| self.once(value, place));
            let row = row.collect::<Result<Vec<_>>>()?;
            return Ok(self.row_within(row, low, high, place)?.negated_if(negated));
        }
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let (low, high) = (self.expr(low, place)?, self.expr(high, place)?);
        self.within(value, low, high, negated)
    }

    /// Tests whether a row, whose values can be read several times, is within bounds.
    fn row_within(
        &mut self,
        row: Vec<TypedExpr>,
        low: Vec<TypedExpr>,
        high: Vec<TypedExpr>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        Ok(TypedExpr::boolean(Expr::And(vec![
            self.compared_rows(Comparison::GtEq, row.clone(), low, place)?.expr,
            self.compared_rows(Comparison::LtEq, row, high, place)?.expr,
        ])))
    }

    fn within(
        &self,
        value: TypedExpr,
        low: TypedExpr,
        high: TypedExpr,
        negated: bool,
    ) -> Result<TypedExpr> {
        let (below, above) = if negated { ("lt", "gt") } else { ("gt_eq", "lt_eq") };
        let tests = vec![
            self.compared(below, value.clone(), low)?.expr,
            self.compared(above, value, high)?.expr,
        ];
        Ok(TypedExpr::boolean(if negated { Expr::Or(tests) } else { Expr::And(tests) }))
    }

    /// Binds BETWEEN SYMMETRIC; returns `None` for other expressions. The value and each bound are
    /// computed once.
    pub(super) fn between_symmetric(
        &mut self,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let Some((value, low, high, negated)) = symmetric(expr) else { return Ok(None) };
        if let (Some(row), Some(low), Some(high)) =
            (self.row(value, place)?, self.row(low, place)?, self.row(high, place)?)
        {
            let mut once = |row: Vec<TypedExpr>| {
                row.into_iter().map(|value| self.once(value, place)).collect::<Result<Vec<_>>>()
            };
            let (row, low, high) = (once(row)?, once(low)?, once(high)?);
            let one = self.row_within(row.clone(), low.clone(), high.clone(), place)?.expr;
            let other = self.row_within(row, high, low, place)?.expr;
            return Ok(Some(TypedExpr::boolean(Expr::Or(vec![one, other])).negated_if(negated)));
        }
        let mut operands = Vec::with_capacity(3);
        for operand in [value, low, high] {
            let operand = self.expr(operand, place)?;
            operands.push(self.once(operand, place)?);
        }
        let [value, low, high] = <[TypedExpr; 3]>::try_from(operands)
            .map_err(|_| Error::internal("expected three operands"))?;
        let one = self.within(value.clone(), low.clone(), high.clone(), negated)?.expr;
        let other = self.within(value, high, low, negated)?.expr;
        Ok(Some(TypedExpr::boolean(match negated {
            true => Expr::And(vec![one, other]),
            false => Expr::Or(vec![one, other]),
        })))
    }

    /// Binds `value = ANY (list)`, `ALL`, and the same with subqueries.
    pub(super) fn quantified(
        &mut self,
        value: &Ast,
        op: &BinaryOperator,
        list: &Ast,
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let Some(comparison) = Comparison::of(op) else {
            if let Ast::Array(array) = without_parentheses(list)
                && !array.elem.is_empty()
            {
                return self.quantified_operator(value, op, &array.elem, all, place);
            }
            return Err(unsupported_at(&format!("ANY or ALL with the operator {op}"), value));
        };
        let inner = without_parentheses(list);
        if let Ast::Subquery(query) = inner {
            return self.quantified_subquery(value, comparison, query, all, place);
        }
        if let Ast::Array(array) = inner
            && !array.elem.is_empty()
        {
            match (comparison, all) {
                (Comparison::Eq, false) => return self.in_list(value, &array.elem, false, place),
                (Comparison::NotEq, true) => return self.in_list(value, &array.elem, true, place),
                _ if self.has_collations.get() => {
                    return self.quantified_operator(value, op, &array.elem, all, place);
                }
                _ => {}
            }
        }
        let (value, list) = (self.expr(value, place)?, self.expr(inner, place)?);
        match comparison {
            Comparison::Eq | Comparison::NotEq => {
                self.refuse_joined("ANY or ALL", std::slice::from_ref(&value))?
            }
            _ => self.refuse_collation("ANY or ALL", std::slice::from_ref(&value))?,
        }
        if !matches!(list.atom, Atom::List(_)) && !list.unknown && !list.is_null() {
            let message = format!("ANY and ALL take a list or a subquery, not {}", list.atom);
            return Err(with_span(
                Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE),
                inner.span(),
            ));
        }
        let function = format!("{}_{}", if all { "all" } else { "any" }, comparison.function());
        self.call(&function, vec![value.known(), list.known()])
    }

    /// Binds `value ~ ANY (ARRAY[…])` for an operator that is not a comparison, item by item.
    fn quantified_operator(
        &mut self,
        value: &Ast,
        op: &BinaryOperator,
        items: &[Ast],
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let written = value;
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let items = items.iter().map(|item| self.expr(item, place)).collect::<Result<Vec<_>>>()?;
        let (items, _) = self.unified(items, "a list")?;
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            let test = self.operate(op, value.clone(), item)?;
            if test.atom != Atom::Boolean {
                let message =
                    format!("ANY and ALL take an operator that returns a boolean, not {op}");
                let error = Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE);
                return Err(with_span(error, written.span()));
            }
            tests.push(test.expr);
        }
        Ok(TypedExpr::boolean(if all { Expr::all(tests) } else { any(tests) }))
    }
}

/// Recognizes BETWEEN SYMMETRIC, which the parser returns as two BETWEEN tests with swapped bounds.
/// Returns the value, the bounds, and whether it is negated.
pub(super) fn symmetric(expr: &Ast) -> Option<(&Ast, &Ast, &Ast, bool)> {
    let Ast::BinaryOp { left, op, right } = expr else { return None };
    let Ast::Between { expr: value, negated, low, high } = &**left else { return None };
    let Ast::Between { expr: other, negated: same, low: l, high: h } = &**right else {
        return None;
    };
    let joined = if *negated { BinaryOperator::And } else { BinaryOperator::Or };
    let swapped = *op == joined && negated == same && value == other && low == h && high == l;
    swapped.then_some((value, low, high, *negated))
}

/// Returns the items of a list, parsing a long list that is stored as text.
fn parsed<'l>(list: &'l [Ast], written: Option<(&str, Span)>) -> Cow<'l, [Ast]> {
    match written {
        Some((text, span)) => {
            Literals::new(text).map(|(literal, _)| literal.parsed(span)).collect()
        }
        None => Cow::Borrowed(list),
    }
}
