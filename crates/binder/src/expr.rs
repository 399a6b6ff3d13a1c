//! Scalar expressions.

use sqlparser::ast::{
    CaseWhen, CeilFloorKind, DataType, DateTimeField, Expr as Ast, TrimWhereField, TypedString,
    Value, ValueWithSpan,
};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::pattern::Pattern;
use super::row::{any, table_of};
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at, with_span, with_stack};
use tessera_overloads::Kind;

impl Binder<'_> {
    /// Binds an expression.
    pub(super) fn expr(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        if let Some(groups) = place.scope.groups
            && let Some(key) = groups.borrow().syntactic_key(expr)
        {
            return Ok(key);
        }
        tessera_context::interrupt::point();
        with_stack(|| self.expr_inner(expr, place)).map_err(|error| with_span(error, expr))
    }

    fn expr_inner(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        match expr {
            Ast::Identifier(name) => self.name(std::slice::from_ref(name), place),
            Ast::CompoundIdentifier(parts) => self.name(parts, place),
            Ast::CompoundFieldAccess { root, access_chain } => {
                self.access(root, access_chain, place)
            }
            Ast::Nested(inner) => self.expr(inner, place),
            Ast::Value(ValueWithSpan { value: Value::Placeholder(name), span }) => {
                self.placeholder(name, place).map_err(|error| with_span(error, *span))
            }
            Ast::Value(value) => self.literal(value),
            Ast::TypedString(TypedString { data_type, value, uses_odbc_syntax: _ }) => {
                let text = self.literal(value)?;
                match data_type {
                    // As in PostgreSQL, the word before a literal sets no length.
                    DataType::Char(None) | DataType::Character(None) => Ok(text.known()),
                    DataType::Bit(None) => self.cast_to(text, &Atom::Bits, false),
                    _ => self.cast_as(text, data_type, false),
                }
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
                    (None, Some(_)) => args.push(TypedExpr::int32(1)),
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
            Ast::Collate { expr, collation } => self.collate(expr, collation, place),
            Ast::Function(function) => self.function(function, place),
            Ast::Exists { subquery, negated } => self.exists(subquery, *negated, place),
            Ast::Subquery(query) => self.scalar_subquery(query, place),
            Ast::Array(array) => self.array(array, place),
            Ast::Dictionary(fields) => self.dictionary(fields, place),
            Ast::Struct { values, fields } => self.structure(values, fields, place),
            Ast::Map(map) => self.map(&map.entries, place),
            Ast::Tuple(values) => self.structure(values, &[], place),
            Ast::AtTimeZone { timestamp, time_zone } => {
                let args = vec![self.expr(time_zone, place)?, self.expr(timestamp, place)?];
                self.function_call("timezone", args)
            }
            Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_) => {
                Err(unsupported_at("a grouping set outside of GROUP BY", expr))
            }
            Ast::QualifiedWildcard(name, _) => {
                let row = table_of(name).map(|table| (table, place.scope.row_of(table)));
                match row {
                    Some((table, Some(row))) => self.row_as_struct(table, row),
                    _ => Err(unsupported_at("* in an expression", expr)),
                }
            }
            Ast::Wildcard(_) => Err(unsupported_at("* in an expression", expr)),
            Ast::JsonAccess { .. } => Err(unsupported_at("access to JSON by :", expr)),
            Ast::IsNormalized { .. } => Err(unsupported_at("IS NORMALIZED", expr)),
            Ast::InUnnest { .. } => Err(unsupported_at("IN UNNEST (write = ANY (list))", expr)),
            Ast::RLike { .. } => Err(unsupported_at("RLIKE (write ~)", expr)),
            Ast::Convert { .. } => Err(unsupported_at("CONVERT (write CAST)", expr)),
            Ast::Prefixed { prefix, .. } => {
                Err(unsupported_at(&format!("a literal that begins with {prefix}"), expr))
            }
            Ast::Named { .. } => Err(unsupported_at("a name in an expression", expr)),
            Ast::MatchAgainst { .. } => Err(unsupported_at("MATCH … AGAINST", expr)),
            Ast::OuterJoin(_) => Err(unsupported_at("(+) (write LEFT JOIN)", expr)),
            Ast::Prior(_) => Err(unsupported_at("PRIOR", expr)),
            Ast::ListComprehension(comprehension) => self.comprehension(comprehension, place),
            Ast::Lambda(_) => {
                let construct = "a lambda outside of list_transform, list_filter and list_reduce";
                Err(unsupported_at(construct, expr))
            }
            Ast::MemberOf(_) => Err(unsupported_at("MEMBER OF", expr)),
        }
    }

    /// Prepares a value that is read more than once: a volatile value becomes a field, so that all
    /// readers see the same value.
    pub(super) fn once(
        &mut self,
        value: TypedExpr,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if !self.is_volatile(&value.expr) {
            return Ok(value);
        }
        let name = self.fields.fresh("value", value.atom.clone());
        self.keep_collation(&name, [&value.expr])?;
        place.steps.push(Step::Value(name.clone(), value.expr));
        Ok(TypedExpr::new(Expr::Field(name), value.atom))
    }

    fn is_null(
        &mut self,
        inner: &Ast,
        is_null: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if let Some(test) = self.null_row(inner, is_null, place)? {
            return Ok(test);
        }
        let value = self.expr(inner, place)?;
        self.check_determined(&value)?;
        Ok(self.null_test(value, is_null))
    }

    fn null_test(&self, value: TypedExpr, is_null: bool) -> TypedExpr {
        let test = TypedExpr::boolean(Expr::IsNull(Box::new(value.expr)));
        test.negated_if(!is_null)
    }

    /// Binds a truth test: a condition with NULL replaced by `null_is`, optionally negated.
    fn truth(
        &mut self,
        inner: &Ast,
        null_is: bool,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let value = self.condition(inner, place)?;
        let truth = TypedExpr::boolean(Expr::Coalesce(vec![value.expr, Expr::boolean(null_is)]));
        Ok(truth.negated_if(negated))
    }

    fn distinct_from(
        &mut self,
        function: &str,
        left: &Ast,
        right: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        match (self.row(left, place)?, self.row(right, place)?) {
            (Some(left), Some(right)) => {
                if left.len() != right.len() {
                    let message =
                        format!("cannot compare rows of {} and {} values", left.len(), right.len());
                    return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
                }
                let pairs = left.into_iter().zip(right);
                let tests = pairs.map(|(a, b)| self.compared(function, a, b).map(|test| test.expr));
                let tests = tests.collect::<Result<Vec<_>>>()?;
                let all = function == "is_not_distinct";
                Ok(TypedExpr::boolean(if all { Expr::all(tests) } else { any(tests) }))
            }
            _ => {
                let (left, right) = (self.expr(left, place)?, self.expr(right, place)?);
                self.compared(function, left, right)
            }
        }
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[CaseWhen],
        otherwise: Option<&Ast>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
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
        Ok(TypedExpr::new(Expr::Case { branches, otherwise }, atom))
    }

    fn extract(
        &mut self,
        field: &DateTimeField,
        expr: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let value = self.expr(expr, place)?;
        let field = match field {
            DateTimeField::Custom(name) => name.value.to_lowercase(),
            other => other.to_string().to_lowercase(),
        };
        self.function_call("extract", vec![TypedExpr::text(field.trim_matches('\'')), value])
    }

    fn rounded(
        &mut self,
        function: &str,
        expr: &Ast,
        field: &CeilFloorKind,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                let value = self.expr(expr, place)?;
                self.function_call(function, vec![value])
            }
            _ => Err(unsupported_at(&format!("{function} with a second argument"), expr)),
        }
    }
}
