//! Expressions.

use std::borrow::Cow;

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CeilFloorKind, DateTimeField, Expr as Ast, Spanned, TrimWhereField,
    TypedString,
};
use sqlparser::tokenizer::Span;
use tessera_plan::Expr;
use tessera_types::{Error, Result, SqlState};

use super::compare::Comparison;
use super::pattern::Pattern;
use super::row::{any, table_of};
use super::steps::Step;
use super::typed::Typed;
use super::{Binder, Place, placed, refuse_at, with_stack, without_parentheses};
use crate::long_lists::{self, Literals};
use crate::postgres::Kind;

impl Binder<'_> {
    /// An expression with its type.
    pub(super) fn expr(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<Typed> {
        if let Some(groups) = place.scope.groups
            && let Some(key) = groups.borrow().written(expr)
        {
            return Ok(key);
        }
        tessera_context::interrupt::point();
        with_stack(|| self.written(expr, place)).map_err(|error| placed(error, expr))
    }

    fn written(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<Typed> {
        match expr {
            Ast::Identifier(name) => self.name(std::slice::from_ref(name), place),
            Ast::CompoundIdentifier(parts) => self.name(parts, place),
            Ast::CompoundFieldAccess { root, access_chain } => {
                self.access(root, access_chain, place)
            }
            Ast::Nested(inner) => self.expr(inner, place),
            Ast::Value(value) => self.literal(value),
            Ast::TypedString(TypedString { data_type, value, uses_odbc_syntax: _ }) => {
                let text = self.literal(value)?;
                self.cast_as(text, data_type, false)
            }
            Ast::Interval(interval) => self.interval(interval, place),
            Ast::UnaryOp { op, expr: operand } => self.unary(*op, operand, place),
            Ast::BinaryOp { .. } => self.binary(expr, place),
            Ast::IsNull(inner) => self.is_null(inner, true, place),
            Ast::IsNotNull(inner) => self.is_null(inner, false, place),
            Ast::IsUnknown(inner) => {
                let value = self.condition(inner, place)?;
                Ok(self.null_test(value, true))
            }
            Ast::IsNotUnknown(inner) => {
                let value = self.condition(inner, place)?;
                Ok(self.null_test(value, false))
            }
            Ast::IsTrue(inner) => self.truth(inner, false, false, place),
            Ast::IsNotTrue(inner) => self.truth(inner, false, true, place),
            Ast::IsFalse(inner) => self.truth(inner, true, true, place),
            Ast::IsNotFalse(inner) => self.truth(inner, true, false, place),
            Ast::IsDistinctFrom(left, right) => {
                self.distinct_from("is_distinct", left, right, place)
            }
            Ast::IsNotDistinctFrom(left, right) => {
                self.distinct_from("is_not_distinct", left, right, place)
            }
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated, place),
            Ast::InSubquery { expr, subquery, negated } => {
                self.in_subquery(expr, subquery, *negated, place)
            }
            Ast::Between { expr, negated, low, high } => {
                self.between(expr, *negated, low, high, place)
            }
            Ast::Like { negated, any, expr, pattern, escape_char } => {
                let (value, escape) = (expr, escape_char.as_ref());
                let (function, negated, any) = ("like", *negated, *any);
                self.pattern(Pattern { function, negated, any, value, pattern, escape }, place)
            }
            Ast::ILike { negated, any, expr, pattern, escape_char } => {
                let (value, escape) = (expr, escape_char.as_ref());
                let (function, negated, any) = ("ilike", *negated, *any);
                self.pattern(Pattern { function, negated, any, value, pattern, escape }, place)
            }
            Ast::SimilarTo { negated, expr, pattern, escape_char } => {
                let (value, escape) = (expr, escape_char.as_ref());
                let (function, negated, any) = ("similar", *negated, false);
                self.pattern(Pattern { function, negated, any, value, pattern, escape }, place)
            }
            Ast::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(left, compare_op, right, false, place)
            }
            Ast::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, true, place)
            }
            Ast::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), place)
            }
            Ast::Cast { kind, expr: inner, data_type, array, format } => {
                self.refuse_cast(*array, format.is_some(), inner)?;
                self.cast(kind, inner, data_type, place)
            }
            Ast::Extract { field, syntax: _, expr } => self.extract(field, expr, place),
            Ast::Ceil { expr, field } => self.rounded("ceil", expr, field, place),
            Ast::Floor { expr, field } => self.rounded("floor", expr, field, place),
            Ast::Position { expr, r#in } => {
                let (part, whole) = (self.expr(expr, place)?, self.expr(r#in, place)?);
                let args = self.arguments_typed("position", Kind::Scalar, vec![whole, part])?;
                self.call("strpos", args)
            }
            Ast::Substring { expr, substring_from, substring_for, special: _, shorthand } => {
                let mut args = vec![self.expr(expr, place)?];
                match (substring_from, substring_for) {
                    (None, Some(_)) => args.push(Typed::int32(1)),
                    (from, _) => {
                        args.extend(from.as_ref().map(|from| self.expr(from, place)).transpose()?)
                    }
                }
                args.extend(
                    substring_for.as_ref().map(|count| self.expr(count, place)).transpose()?,
                );
                self.function_call(if *shorthand { "substr" } else { "substring" }, args)
            }
            Ast::Trim { expr, trim_where, trim_what, trim_characters } => {
                let mut args = vec![self.expr(expr, place)?];
                if let Some(what) = trim_what {
                    args.push(self.expr(what, place)?);
                }
                for what in trim_characters.iter().flatten() {
                    args.push(self.expr(what, place)?);
                }
                let function = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                self.function_call(function, args)
            }
            Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut args = vec![self.expr(expr, place)?, self.expr(overlay_what, place)?];
                args.push(self.expr(overlay_from, place)?);
                args.extend(overlay_for.as_ref().map(|count| self.expr(count, place)).transpose()?);
                self.function_call("overlay", args)
            }
            Ast::Collate { expr, collation } => {
                let name =
                    collation.0.last().and_then(|part| part.as_ident()).map(|name| &*name.value);
                match name {
                    // By its bytes is how text compares.
                    Some("C" | "POSIX" | "ucs_basic") => self.expr(expr, place),
                    _ => Err(refuse_at(
                        &format!("COLLATE {collation} (text compares by its bytes, as in \"C\")"),
                        &**expr,
                    )),
                }
            }
            Ast::Function(function) => self.function(function, place),
            Ast::Exists { subquery, negated } => self.exists(subquery, *negated, place),
            Ast::Subquery(query) => self.scalar_subquery(query, place),
            Ast::Array(array) => self.array(array, place),
            Ast::Dictionary(fields) => self.dictionary(fields, place),
            Ast::Struct { values, fields } => self.structure(values, fields, place),
            Ast::Map(map) => self.map(&map.entries, place),
            Ast::Tuple(values) => self.structure(values, &[], place),
            Ast::AtTimeZone { .. } => Err(refuse_at("AT TIME ZONE", expr)),
            Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_) => {
                Err(refuse_at("a grouping set outside of GROUP BY", expr))
            }
            Ast::QualifiedWildcard(name, _) => {
                let row = table_of(name).map(|table| (table, place.scope.row_of(table)));
                match row {
                    Some((table, Some(row))) => self.row_as_struct(table, row),
                    _ => Err(refuse_at("* in an expression", expr)),
                }
            }
            Ast::Wildcard(_) => Err(refuse_at("* in an expression", expr)),
            Ast::JsonAccess { .. } => Err(refuse_at("access to JSON by :", expr)),
            Ast::IsNormalized { .. } => Err(refuse_at("IS NORMALIZED", expr)),
            Ast::InUnnest { .. } => Err(refuse_at("IN UNNEST (write = ANY (list))", expr)),
            Ast::RLike { .. } => Err(refuse_at("RLIKE (write ~)", expr)),
            Ast::Convert { .. } => Err(refuse_at("CONVERT (write CAST)", expr)),
            Ast::Prefixed { prefix, .. } => {
                Err(refuse_at(&format!("a literal that begins with {prefix}"), expr))
            }
            Ast::Named { .. } => Err(refuse_at("a name in an expression", expr)),
            Ast::MatchAgainst { .. } => Err(refuse_at("MATCH … AGAINST", expr)),
            Ast::OuterJoin(_) => Err(refuse_at("(+) (write LEFT JOIN)", expr)),
            Ast::Prior(_) => Err(refuse_at("PRIOR", expr)),
            Ast::Lambda(_) => Err(refuse_at("a lambda", expr)),
            Ast::MemberOf(_) => Err(refuse_at("MEMBER OF", expr)),
        }
    }

    /// A value that is read more than once. A volatile one becomes a field, so that all readers see
    /// the same value.
    pub(super) fn once(&mut self, value: Typed, place: &mut Place<'_, '_>) -> Result<Typed> {
        if !self.is_volatile(&value.expr) {
            return Ok(value);
        }
        let name = self.fields.fresh("value", value.atom.clone());
        place.steps.push(Step::Value(name.clone(), value.expr));
        Ok(Typed::new(Expr::Field(name), value.atom))
    }

    fn is_null(&mut self, inner: &Ast, is_null: bool, place: &mut Place<'_, '_>) -> Result<Typed> {
        if let Some(test) = self.null_row(inner, is_null, place)? {
            return Ok(test);
        }
        let value = self.expr(inner, place)?;
        Ok(self.null_test(value, is_null))
    }

    fn null_test(&self, value: Typed, is_null: bool) -> Typed {
        let test = Typed::boolean(Expr::IsNull(Box::new(value.expr)));
        test.negated_if(!is_null)
    }

    /// A condition with NULL taken as `null_is`; perhaps negated.
    fn truth(
        &mut self,
        inner: &Ast,
        null_is: bool,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let value = self.condition(inner, place)?;
        let truth = Typed::boolean(Expr::Coalesce(vec![value.expr, Expr::boolean(null_is)]));
        Ok(truth.negated_if(negated))
    }

    fn distinct_from(
        &mut self,
        function: &str,
        left: &Ast,
        right: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        match (self.row(left, place)?, self.row(right, place)?) {
            (Some(left), Some(right)) => {
                if left.len() != right.len() {
                    let message = format!(
                        "rows of {} and of {} values are compared",
                        left.len(),
                        right.len()
                    );
                    return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
                }
                let pairs = left.into_iter().zip(right);
                let tests = pairs.map(|(a, b)| self.compared(function, a, b).map(|test| test.expr));
                let tests = tests.collect::<Result<Vec<_>>>()?;
                let all = function == "is_not_distinct";
                Ok(Typed::boolean(if all { Expr::all(tests) } else { any(tests) }))
            }
            _ => {
                let (left, right) = (self.expr(left, place)?, self.expr(right, place)?);
                self.compared(function, left, right)
            }
        }
    }

    fn in_list(
        &mut self,
        value: &Ast,
        list: &[Ast],
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let written = list.first().and_then(long_lists::of_literal);
        let is_long = list.len() > 1 || written.is_some();
        let mut tests = Vec::new();
        if let Some(row) = self.row(value, place)? {
            let mut values = Vec::with_capacity(row.len());
            for value in row {
                values.push(if is_long { self.once(value, place)? } else { value });
            }
            for item in &*parsed(list, written) {
                let Some(item) = self.row(item, place)? else {
                    return Err(refuse_at("IN of a row and values that are no rows", item));
                };
                tests.push(self.compared_rows(Comparison::Eq, values.clone(), item, place)?.expr);
            }
        } else {
            let mut value = self.expr(value, place)?;
            if is_long {
                value = self.once(value, place)?;
            }
            if let Some(found) = self.in_literals(&value, list) {
                return Ok(found.negated_if(negated));
            }
            let list = parsed(list, written);
            let mut items = Vec::with_capacity(list.len());
            for item in &*list {
                items.push(self.expr(item, place)?);
            }
            if value.unknown {
                // A literal has the type that the items have in common.
                let all: Vec<&Typed> = items.iter().chain([&value]).collect();
                let common = self.common(&all, "IN")?;
                value = self.cast_to(value, &common, false)?;
            }
            for item in items {
                tests.push(self.compared("eq", value.clone(), item)?.expr);
            }
        }
        let found = Typed::boolean(any(tests));
        Ok(found.negated_if(negated))
    }

    fn between(
        &mut self,
        value: &Ast,
        negated: bool,
        low: &Ast,
        high: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let (low, high) = (self.expr(low, place)?, self.expr(high, place)?);
        self.within(value, low, high, negated)
    }

    fn within(&self, value: Typed, low: Typed, high: Typed, negated: bool) -> Result<Typed> {
        let (below, above) = if negated { ("lt", "gt") } else { ("gt_eq", "lt_eq") };
        let tests = vec![
            self.compared(below, value.clone(), low)?.expr,
            self.compared(above, value, high)?.expr,
        ];
        Ok(Typed::boolean(if negated { Expr::Or(tests) } else { Expr::And(tests) }))
    }

    /// BETWEEN SYMMETRIC; none for other expressions. The value and each bound are computed once.
    pub(super) fn between_symmetric(
        &mut self,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<Typed>> {
        let Some((value, low, high, negated)) = symmetric(expr) else { return Ok(None) };
        let mut operands = Vec::with_capacity(3);
        for operand in [value, low, high] {
            let operand = self.expr(operand, place)?;
            operands.push(self.once(operand, place)?);
        }
        let [value, low, high] = <[Typed; 3]>::try_from(operands)
            .map_err(|_| Error::internal("three operands are not"))?;
        let one = self.within(value.clone(), low.clone(), high.clone(), negated)?.expr;
        let other = self.within(value, high, low, negated)?.expr;
        Ok(Some(Typed::boolean(match negated {
            true => Expr::And(vec![one, other]),
            false => Expr::Or(vec![one, other]),
        })))
    }

    /// `value = ANY (list)`, `ALL` and the same with subqueries.
    fn quantified(
        &mut self,
        value: &Ast,
        op: &BinaryOperator,
        list: &Ast,
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let Some(comparison) = Comparison::of(op) else {
            if let Ast::Array(array) = without_parentheses(list)
                && !array.elem.is_empty()
            {
                return self.each_of(value, op, &array.elem, all, place);
            }
            return Err(refuse_at(&format!("ANY or ALL with the operator {op}"), value));
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
                _ => {}
            }
        }
        let (value, list) = (self.expr(value, place)?, self.expr(inner, place)?);
        if !matches!(list.atom, tessera_types::Atom::List(_)) && !list.unknown && !list.is_null() {
            let message = format!("ANY and ALL take a list or a subquery, not {}", list.atom);
            return Err(placed(
                Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE),
                inner.span(),
            ));
        }
        let function = format!("{}_{}", if all { "all" } else { "any" }, comparison.function());
        self.call(&function, vec![value.known(), list.known()])
    }

    /// `value ~ ANY (ARRAY[…])`: an operator that is no comparison, with each of the items.
    fn each_of(
        &mut self,
        value: &Ast,
        op: &BinaryOperator,
        items: &[Ast],
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let written = value;
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let items = items.iter().map(|item| self.expr(item, place)).collect::<Result<Vec<_>>>()?;
        let (items, _) = self.unified(items, "a list")?;
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            let test = self.operate(op, value.clone(), item)?;
            if test.atom != tessera_types::Atom::Boolean {
                let message =
                    format!("ANY and ALL take an operator that gives a boolean, not {op}");
                let error = Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE);
                return Err(placed(error, written.span()));
            }
            tests.push(test.expr);
        }
        Ok(Typed::boolean(if all { Expr::all(tests) } else { any(tests) }))
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[CaseWhen],
        otherwise: Option<&Ast>,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let operand = operand.map(|operand| self.expr(operand, place)).transpose()?;
        let operand = operand.map(|operand| self.once(operand, place)).transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut values = Vec::with_capacity(conditions.len() + 1);
        for CaseWhen { condition, result } in conditions {
            let test = match &operand {
                Some(operand) => {
                    let when = self.expr(condition, place)?;
                    self.compared("eq", operand.clone(), when)?
                }
                None => self.condition(condition, place)?,
            };
            tests.push(test.expr);
            values.push(self.expr(result, place)?);
        }
        let has_else = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            values.push(self.expr(otherwise, place)?);
        }
        let (mut values, atom) = self.unified(values, "CASE")?;
        let otherwise =
            if has_else { values.pop().map(|value| Box::new(value.expr)) } else { None };
        let branches = tests.into_iter().zip(values.into_iter().map(|value| value.expr)).collect();
        Ok(Typed::new(Expr::Case { branches, otherwise }, atom))
    }

    fn extract(
        &mut self,
        field: &DateTimeField,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let value = self.expr(expr, place)?;
        let field = match field {
            DateTimeField::Custom(name) => name.value.to_lowercase(),
            other => other.to_string().to_lowercase(),
        };
        self.function_call("extract", vec![Typed::text(field.trim_matches('\'')), value])
    }

    fn rounded(
        &mut self,
        function: &str,
        expr: &Ast,
        field: &CeilFloorKind,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                let value = self.expr(expr, place)?;
                self.function_call(function, vec![value])
            }
            _ => Err(refuse_at(&format!("{function} with a second argument"), expr)),
        }
    }
}

/// What the parser makes of BETWEEN SYMMETRIC: two tests of one value, with the bounds in either
/// order. The value, the bounds, and whether it is negated.
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

/// The items of a list, also where it is one text.
fn parsed<'l>(list: &'l [Ast], written: Option<(&str, Span)>) -> Cow<'l, [Ast]> {
    match written {
        Some((text, span)) => {
            Literals::new(text).map(|(literal, _)| literal.parsed(span)).collect()
        }
        None => Cow::Borrowed(list),
    }
}
