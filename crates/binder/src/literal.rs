//! Literals: numbers, strings, bit strings and intervals.

use sqlparser::ast::{
    DateTimeField, Expr as Ast, Interval, IntervalFields, Spanned, UnaryOperator, Value,
    ValueWithSpan,
};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, DECIMAL_PRECISION_MAX, Error, Result, SqlState};

use super::bit_strings::{binary_literal, hexadecimal_literal};
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at, with_span};

impl Binder<'_> {
    /// Binds a literal.
    pub(super) fn literal(&self, value: &ValueWithSpan) -> Result<TypedExpr> {
        let place = value.span;
        Ok(match &value.value {
            Value::Number(digits, _) => {
                number(digits, false).map_err(|error| with_span(error, place))?
            }
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text) => TypedExpr::unknown(text),
            Value::DollarQuotedString(text) => TypedExpr::unknown(&text.value),
            Value::SingleQuotedByteStringLiteral(digits) => {
                binary_literal(digits).map_err(|error| with_span(error, place))?
            }
            Value::HexStringLiteral(digits) => {
                hexadecimal_literal(digits).map_err(|error| with_span(error, place))?
            }
            Value::Boolean(value) => TypedExpr::boolean(Expr::boolean(*value)),
            Value::Null => TypedExpr::null(),
            Value::Placeholder(name) => {
                return self.parameter(name).map_err(|error| with_span(error, place));
            }
            other => {
                let error = Error::unsupported(format!("the literal {other} is not supported"));
                return Err(with_span(error, place));
            }
        })
    }

    /// Binds a number with leading signs. The signs apply before the number gets a type, so that
    /// `-(-2147483648)` does not overflow.
    pub(super) fn signed_literal(&self, operand: &Ast) -> Result<Option<TypedExpr>> {
        let mut negative = true;
        let mut inner = operand;
        loop {
            match inner {
                Ast::Nested(nested) => inner = nested,
                Ast::UnaryOp { op: UnaryOperator::Minus, expr } => {
                    negative = !negative;
                    inner = expr;
                }
                Ast::Value(ValueWithSpan { value: Value::Number(digits, _), span }) => {
                    return number(digits, negative)
                        .map(Some)
                        .map_err(|error| with_span(error, *span));
                }
                _ => return Ok(None),
            }
        }
    }

    /// Binds an interval: a text, possibly with units, or a number of units.
    pub(super) fn interval(
        &mut self,
        interval: &Interval,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let literal = match &**value {
            Ast::Value(ValueWithSpan {
                value: Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text),
                ..
            }) => Some(text.as_str()),
            _ => None,
        };
        if let (Some(text), Some(first)) = (literal, leading_field.as_ref().and_then(unit)) {
            let last = match last_field {
                Some(field) => unit(field),
                None => Some(first),
            };
            let digits = match (first, last) {
                ("second", Some("second")) => fractional_seconds_precision.or(*leading_precision),
                _ => *fractional_seconds_precision,
            };
            let misplaced =
                leading_precision.is_some() && (first, last) != ("second", Some("second"));
            if let (Some(last), false) = (last, misplaced) {
                return self.interval_in(TypedExpr::text(text), first, last, digits, true);
            }
        }
        if leading_precision.is_some() || fractional_seconds_precision.is_some() {
            return Err(unsupported_at("an interval's precision", &**value));
        }
        if last_field.is_some() {
            return Err(unsupported_at("an interval from one field TO another", &**value));
        }
        let field = leading_field.as_ref().map(|field| field.to_string().to_lowercase());
        let number = match &**value {
            Ast::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
                Some(number.as_str())
            }
            _ => None,
        };
        match (literal.or(number), field) {
            (Some(text), None) if literal.is_some() => {
                self.cast_to(TypedExpr::unknown(text), &Atom::Interval, false)
            }
            (Some(text), Some(field)) => {
                self.cast_to(TypedExpr::unknown(&format!("{text} {field}")), &Atom::Interval, false)
            }
            (_, Some(field)) => {
                let number = self.expr(value, place)?;
                let one = self.cast_to(
                    TypedExpr::unknown(&format!("1 {field}")),
                    &Atom::Interval,
                    false,
                )?;
                self.arithmetic("mul", number, one)
            }
            (_, None) => {
                let message = "an interval needs a known unit; write its text in quotes, as in interval '3 days'";
                Err(with_span(
                    Error::semantic(message).with_state(SqlState::SYNTAX_ERROR),
                    value.span(),
                ))
            }
        }
    }

    /// Restricts a text or an interval to units, with `digits` fractional digits of a second.
    pub(super) fn interval_in(
        &self,
        value: TypedExpr,
        largest: &str,
        smallest: &str,
        digits: Option<u64>,
        read: bool,
    ) -> Result<TypedExpr> {
        let digits = digits.map_or(-1, |digits| i32::try_from(digits).unwrap_or(i32::MAX));
        let args = vec![
            value,
            TypedExpr::text(largest),
            TypedExpr::text(smallest),
            TypedExpr::int32(digits),
        ];
        self.call(if read { "interval_in" } else { "interval_to" }, args)
    }
}

fn unit(field: &DateTimeField) -> Option<&'static str> {
    match field {
        DateTimeField::Year => Some("year"),
        DateTimeField::Month => Some("month"),
        DateTimeField::Day => Some("day"),
        DateTimeField::Hour => Some("hour"),
        DateTimeField::Minute => Some("minute"),
        DateTimeField::Second => Some("second"),
        _ => None,
    }
}

/// Returns the largest and the smallest unit of an interval type.
pub(super) fn units(fields: &IntervalFields) -> (&'static str, &'static str) {
    match fields {
        IntervalFields::Year => ("year", "year"),
        IntervalFields::Month => ("month", "month"),
        IntervalFields::Day => ("day", "day"),
        IntervalFields::Hour => ("hour", "hour"),
        IntervalFields::Minute => ("minute", "minute"),
        IntervalFields::Second => ("second", "second"),
        IntervalFields::YearToMonth => ("year", "month"),
        IntervalFields::DayToHour => ("day", "hour"),
        IntervalFields::DayToMinute => ("day", "minute"),
        IntervalFields::DayToSecond => ("day", "second"),
        IntervalFields::HourToMinute => ("hour", "minute"),
        IntervalFields::HourToSecond => ("hour", "second"),
        IntervalFields::MinuteToSecond => ("minute", "second"),
    }
}

/// Parses a number. Integers take 32 bits if they fit, then 64; other numbers are decimals, or
/// double precision with an exponent.
pub(super) fn number(text: &str, negative: bool) -> Result<TypedExpr> {
    let digits = text.replace('_', "");
    if digits.contains(['e', 'E']) {
        return double(text, &digits, negative);
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.trim_start_matches('0');
    let mut fraction = fraction;
    if whole.len() + fraction.len() > usize::from(DECIMAL_PRECISION_MAX) {
        fraction = fraction.trim_end_matches('0');
    }
    if whole.len() + fraction.len() > usize::from(DECIMAL_PRECISION_MAX) {
        let message = format!(
            "number {text} has more than {DECIMAL_PRECISION_MAX} digits; write it with an exponent, as 1.5e40, for double \
             precision"
        );
        return Err(Error::new(Code::Overflow, message));
    }
    let all = format!("{whole}{fraction}");
    let value: i128 = if all.is_empty() { 0 } else { all.parse().map_err(|_| unreadable(text))? };
    let value = if negative { -value } else { value };
    let atom = match digits.contains('.') {
        false if i32::try_from(value).is_ok() => Atom::Int32,
        false if i64::try_from(value).is_ok() => Atom::Int64,
        false => Atom::Decimal(whole.len() as u8, 0),
        true => {
            let scale = fraction.len() as i8;
            let significant = all.trim_start_matches('0').len().max(fraction.len()).max(1);
            Atom::Decimal(significant as u8, scale)
        }
    };
    Ok(TypedExpr::new(Expr::Constant(Scalar::Integer(value), atom.clone()), atom))
}

fn double(text: &str, digits: &str, negative: bool) -> Result<TypedExpr> {
    let value: f64 = digits.parse().map_err(|_| unreadable(text))?;
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.contains(|digit: char| ('1'..='9').contains(&digit));
    if value.is_infinite() || (value == 0.0 && !is_zero) {
        let message = format!("{text} is out of range for type double precision");
        return Err(Error::new(Code::Overflow, message));
    }
    let value = if negative { -value } else { value };
    Ok(TypedExpr::new(Expr::Constant(Scalar::Float(value), Atom::Float64), Atom::Float64))
}

fn unreadable(text: &str) -> Error {
    Error::new(Code::Syntax, format!("invalid number {text}"))
}
