//! Unary and binary operators.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Spanned, UnaryOperator};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, Slot, SqlState};

use super::compare::Comparison;
use super::typed::TypedExpr;
use super::{Binder, Place, with_span};

impl Binder<'_> {
    /// Binds a binary operator. Chains are left-deep, so a loop follows the left operands.
    pub(super) fn binary(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        if let Some(between) = self.between_symmetric(expr, place)? {
            return Ok(between);
        }
        let mut chain = Vec::new();
        let mut first = expr;
        while let Ast::BinaryOp { left, op, right } = first {
            if chain.len() > 1 && self.is_key(first, place) {
                break;
            }
            chain.push((left, op, right, first));
            first = left;
            if is_row(left) || is_row(right) {
                break;
            }
        }
        let mut value: Option<TypedExpr> = None;
        let mut rest = chain.into_iter().rev().peekable();
        while let Some((left, op, right, whole)) = rest.next() {
            let at = |error: Error| with_span(error, whole);
            if value.is_none()
                && let Some(found) = self.rows(left, op, right, place).map_err(at)?
            {
                value = Some(found);
                continue;
            }
            let first = match value.take() {
                Some(value) => value,
                None => self.expr(left, place)?,
            };
            value = Some(match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    let mut operands = vec![self.as_condition(first, left)?.expr];
                    let other = self.expr(right, place)?;
                    operands.push(self.as_condition(other, right)?.expr);
                    while let Some((_, _, right, _)) = rest.next_if(|(_, next, ..)| *next == op) {
                        let other = self.expr(right, place)?;
                        operands.push(self.as_condition(other, right)?.expr);
                    }
                    let all = *op == BinaryOperator::And;
                    let expr = if all { Expr::And(operands) } else { Expr::Or(operands) };
                    TypedExpr::boolean(expr)
                }
                _ => {
                    let second = self.expr(right, place)?;
                    self.operate(op, first, second).map_err(at)?
                }
            });
        }
        value.ok_or_else(|| Error::internal("operator without operands"))
    }

    /// Returns whether an expression has the same syntax tree as a key of GROUP BY.
    fn is_key(&self, expr: &Ast, place: &Place<'_, '_>) -> bool {
        place.scope.groups.is_some_and(|groups| groups.borrow().syntactic_key(expr).is_some())
    }

    /// Converts a value to a condition.
    pub(super) fn as_condition(&self, value: TypedExpr, written: &Ast) -> Result<TypedExpr> {
        match value.atom {
            Atom::Boolean => Ok(value),
            _ if value.unknown || value.is_null() => self
                .cast_to(value, &Atom::Boolean, false)
                .map_err(|error| with_span(error, written.span())),
            ref other => {
                let message = format!("condition {written} must be boolean, not {other}");
                let error = Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH);
                Err(with_span(error, written.span()))
            }
        }
    }

    /// Binds a condition.
    pub(super) fn condition(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        let value = self.expr(expr, place)?;
        self.as_condition(value, expr)
    }

    /// Binds `//`: the whole quotient of integers, the quotient of doubles of other numbers.
    fn quotient(&self, left: TypedExpr, right: TypedExpr) -> Result<TypedExpr> {
        let is_fraction = |value: &TypedExpr| value.atom.is_numeric() && !value.atom.is_integer();
        if !is_fraction(&left) && !is_fraction(&right) {
            return self.arithmetic("div", left, right);
        }
        let double = |value: TypedExpr| match value.atom.is_numeric() {
            true => self.cast_to(value, &Atom::Float64, false),
            false => Ok(value),
        };
        self.arithmetic("div", double(left)?, double(right)?)
    }

    /// Applies a binary operator to two values.
    pub(super) fn operate(
        &self,
        op: &BinaryOperator,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<TypedExpr> {
        use BinaryOperator as O;
        if let Some(comparison) = Comparison::of(op) {
            return self.compared(comparison.function(), left, right);
        }
        Ok(match op {
            O::Plus => self.arithmetic("add", left, right)?,
            O::Minus => self.arithmetic("sub", left, right)?,
            O::Multiply => self.arithmetic("mul", left, right)?,
            O::Divide => self.arithmetic("div", left, right)?,
            O::Modulo => self.arithmetic("mod", left, right)?,
            O::PGExp => self.call("power", self.operands_typed("^", vec![left, right])?)?,
            O::DuckIntegerDivide => self.quotient(left, right)?,
            O::MyIntegerDivide => {
                self.call(tessera_functions::WHOLE_QUOTIENT, vec![left, right])?
            }
            O::StringConcat => self.concatenated(left, right)?,
            O::BitwiseAnd => self.bits("bit_and", left, right)?,
            O::BitwiseOr => self.bits("bit_or", left, right)?,
            O::BitwiseXor | O::PGBitwiseXor => self.bits("bit_xor", left, right)?,
            O::PGBitwiseShiftLeft => self.bits("shift_left", left, right)?,
            O::PGBitwiseShiftRight => self.bits("shift_right", left, right)?,
            O::PGRegexMatch => self.pattern_operator("regex", left, right, false)?,
            O::PGRegexIMatch => self.pattern_operator("iregex", left, right, false)?,
            O::PGRegexNotMatch => self.pattern_operator("regex", left, right, true)?,
            O::PGRegexNotIMatch => self.pattern_operator("iregex", left, right, true)?,
            O::PGLikeMatch => self.pattern_operator("like", left, right, false)?,
            O::PGILikeMatch => self.pattern_operator("ilike", left, right, false)?,
            O::PGNotLikeMatch => self.pattern_operator("like", left, right, true)?,
            O::PGNotILikeMatch => self.pattern_operator("ilike", left, right, true)?,
            O::PGStartsWith => {
                self.call("starts_with", self.operands_typed("^@", vec![left, right])?)?
            }
            O::PGOverlap => self.list_operator("array_has_any", "&&", left, right)?,
            O::AtArrow => self.list_operator("array_has_all", "@>", left, right)?,
            O::ArrowAt => self.list_operator("array_has_all", "@>", right, left)?,
            other => {
                return Err(Error::unsupported(format!("the operator {other} is not supported")));
            }
        })
    }

    /// Applies `+`, `-`, `*`, `/` or `%`.
    pub(super) fn arithmetic(
        &self,
        name: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<TypedExpr> {
        let operator = match name {
            "add" => "+",
            "sub" => "-",
            "mul" => "*",
            "div" => "/",
            _ => "%",
        };
        let (left, right) = self.pair_typed(operator, left, right)?;
        let (left, right) = self.operands(name, left, right)?;
        self.call(name, vec![left, right])
    }

    /// Converts operands to types that have arithmetic.
    fn operands(
        &self,
        name: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<(TypedExpr, TypedExpr)> {
        use Atom::{Date, Duration, Interval, Null, Time, TimeTz, Timestamp};
        let cast = |value: TypedExpr, to: Atom| self.cast_to(value, &to, false);
        Ok(match (left.atom.clone(), right.atom.clone()) {
            (Duration(_), _) => return self.operands(name, cast(left, Interval)?, right),
            (_, Duration(_)) => {
                let right = cast(right, Interval)?;
                return self.operands(name, left, right);
            }
            // A time of day counts as an interval where no operator takes a time.
            (Time(_), other) if matches!(name, "mul" | "div") && other.is_numeric() => {
                (cast(left, Interval)?, right)
            }
            (other, Time(_)) if name == "mul" && other.is_numeric() => {
                let right = cast(right, Interval)?;
                (left, right)
            }
            (Interval | TimeTz, Time(_)) if name == "sub" => {
                let right = cast(right, Interval)?;
                (left, right)
            }
            (Null, Null) => (cast(left, Atom::Int32)?, cast(right, Atom::Int32)?),
            (Null, Date) if name == "sub" => (cast(left, Date)?, right),
            (Null, Date | Timestamp(..) | Time(_) | TimeTz) => (cast(left, Interval)?, right),
            (Date | Timestamp(..) | Time(_) | TimeTz, Null) => {
                let right = cast(right, Interval)?;
                (left, right)
            }
            (Interval, other) if matches!(name, "mul" | "div") && other == Null => {
                let right = cast(right, Atom::Float64)?;
                (left, right)
            }
            (Null, other) => (cast(left, other)?, right),
            (other, Null) => {
                let right = cast(right, other)?;
                (left, right)
            }
            (a, b) if a.is_numeric() && b.is_numeric() => {
                let decimal = |atom: &Atom| matches!(atom, Atom::Decimal(..));
                let divided = name == "div" && (decimal(&a) || decimal(&b));
                match a.is_float() || b.is_float() || divided {
                    true => {
                        let single = a == Atom::Float32 && b == Atom::Float32;
                        let to = if single { Atom::Float32 } else { Atom::Float64 };
                        (cast(left, to.clone())?, cast(right, to)?)
                    }
                    false => (left, right),
                }
            }
            _ => (left, right),
        })
    }

    fn bits(&self, name: &str, left: TypedExpr, right: TypedExpr) -> Result<TypedExpr> {
        let operator = match name {
            "bit_and" => "&",
            "bit_or" => "|",
            "bit_xor" => "#",
            "shift_left" => "<<",
            _ => ">>",
        };
        self.call(name, self.operands_typed(operator, vec![left, right])?)
    }

    /// Applies `||` to strings, bytes or lists.
    fn concatenated(&self, left: TypedExpr, right: TypedExpr) -> Result<TypedExpr> {
        let (left, right) = self.pair_typed("||", left, right)?;
        let (left, right) = match (&left.atom, &right.atom) {
            (Atom::List(a), Atom::List(b)) if a != b => {
                let (left, right, _) = self.unified_pair(left, right, "||")?;
                (left, right)
            }
            (Atom::List(slot), other) if other.is_numeric() && slot.atom.is_numeric() => {
                self.list_and_item(left, right)?
            }
            (other, Atom::List(slot)) if other.is_numeric() && slot.atom.is_numeric() => {
                let (right, left) = self.list_and_item(right, left)?;
                (left, right)
            }
            _ => (left.known(), right.known()),
        };
        let depth = |atom: &Atom| {
            let (mut depth, mut atom) = (0, atom);
            while let Atom::List(slot) = atom {
                (depth, atom) = (depth + 1, &slot.atom);
            }
            depth
        };
        let function = match (depth(&left.atom), depth(&right.atom)) {
            (0, 0) => "concat_op",
            (a, b) if a == b => "array_concat",
            (a, b) if a > b => "array_append",
            _ => "array_prepend",
        };
        self.call(function, vec![left, right])
    }

    /// Converts a list of numbers and a further number to their common type.
    fn list_and_item(&self, list: TypedExpr, item: TypedExpr) -> Result<(TypedExpr, TypedExpr)> {
        let Atom::List(slot) = &list.atom else { return Ok((list, item)) };
        let one = TypedExpr::new(Expr::null(slot.atom.clone()), slot.atom.clone());
        let atom = self.common(&[&one, &item], "||")?;
        let of = Atom::List(Box::new(Slot { atom: atom.clone(), nullable: slot.nullable }));
        Ok((self.cast_to(list, &of, false)?, self.cast_to(item, &atom, false)?))
    }

    fn list_operator(
        &self,
        function: &str,
        operator: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<TypedExpr> {
        let (left, right) = self.pair_typed(operator, left, right)?;
        let (left, right, atom) = self.unified_pair(left, right, "an operator of lists")?;
        let left = match &atom {
            // A NULL in a list equals nothing, not even another NULL.
            Atom::List(slot) => {
                let null = TypedExpr::new(Expr::null(slot.atom.clone()), slot.atom.clone());
                self.call("array_remove", vec![left, null])?
            }
            _ => left,
        };
        self.call(function, vec![left, right])
    }

    /// Binds a prefix operator.
    pub(super) fn unary(
        &mut self,
        op: UnaryOperator,
        operand: &Ast,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if op == UnaryOperator::Minus
            && let Some(literal) = self.signed_literal(operand)?
        {
            return Ok(literal);
        }
        if op == UnaryOperator::Not {
            let condition = self.condition(operand, place)?;
            return Ok(TypedExpr::boolean(Expr::Not(Box::new(condition.expr))));
        }
        let value = self.expr(operand, place)?;
        let (operator, function) = match op {
            UnaryOperator::Minus => ("-", "neg"),
            UnaryOperator::Plus => ("+", ""),
            UnaryOperator::BitwiseNot => ("~", "bit_not"),
            UnaryOperator::PGAbs => ("@", "abs"),
            UnaryOperator::PGSquareRoot => ("|/", "sqrt"),
            UnaryOperator::PGCubeRoot => ("||/", "cbrt"),
            other => {
                return Err(Error::unsupported(format!("the operator {other} is not supported")));
            }
        };
        let value = self.single_typed(operator, value)?;
        let value = match &value.atom {
            Atom::Null => self.cast_to(value, &Atom::Int32, false)?,
            Atom::Duration(_) => self.cast_to(value, &Atom::Interval, false)?,
            _ => value,
        };
        match op {
            UnaryOperator::Plus if value.atom.is_numeric() => Ok(value),
            UnaryOperator::Plus => {
                let message = format!("unary + does not take {}; cast it to a number", value.atom);
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
            _ => self.call(function, vec![value]),
        }
    }
}

/// Returns whether an expression is a row constructor.
pub(super) fn is_row(expr: &Ast) -> bool {
    match expr {
        Ast::Tuple(_) => true,
        Ast::Nested(inner) => is_row(inner),
        Ast::Function(function) => super::list::is_called(function, "row"),
        _ => false,
    }
}
