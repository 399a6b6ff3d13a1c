//! `value IN (…)` with a long list of literals: tests against one constant array instead of one
//! equality per literal.

use std::borrow::Cow;

use sqlparser::ast::{Expr as Ast, UnaryOperator};
use tessera_parser::{Literals, list_text};
use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

use super::Binder;
use super::table_function::list_of;
use super::typed::TypedExpr;

/// The minimum length of a list. Shorter lists become equalities, which can be compiled, ordered by
/// cost and combined with others.
const LITERALS_MIN: usize = 256;

/// The number of literals read between two checks for cancellation.
const INTERRUPT_EVERY: usize = 1 << 12;

impl Binder<'_> {
    /// Builds the membership test. Returns `None` if the list is short or an item is not a plain
    /// literal that compares in the value's type; equalities then handle the list and its errors.
    pub(super) fn in_literals(&self, value: &TypedExpr, list: &[Ast]) -> Option<TypedExpr> {
        match list_text(list.first()?) {
            Some((text, span)) => {
                let items =
                    Literals::new(text).map(|(literal, _)| Cow::Owned(literal.parsed(span)));
                self.in_items(value, (LITERALS_MIN, items))
            }
            None => self.in_items(value, (list.len(), list.iter().map(Cow::Borrowed))),
        }
    }

    fn in_items<'t>(
        &self,
        value: &TypedExpr,
        (count, list): (usize, impl Iterator<Item = Cow<'t, Ast>>),
    ) -> Option<TypedExpr> {
        let plain = value.atom.is_integer()
            || matches!(
                value.atom,
                Atom::Decimal(..) | Atom::String | Atom::Uuid | Atom::Date | Atom::Timestamp(..)
            );
        if count < LITERALS_MIN || value.unknown || !plain {
            return None;
        }
        let mut items = Vec::with_capacity(count);
        for (at, item) in list.enumerate() {
            if at % INTERRUPT_EVERY == 0 {
                tessera_context::interrupt::point();
            }
            match self.item(&item, &value.atom)? {
                Item::Value(value) => items.push(value),
                // No value of the type equals the item.
                Item::Never => {}
            }
        }
        // `NULL IN ()` is false, not NULL.
        if items.is_empty() {
            return None;
        }
        let array = Expr::Constant(Scalar::Nested(items.into()), list_of(value.atom.clone()));
        Some(TypedExpr::boolean(Expr::call("any_eq", vec![value.expr.clone(), array])))
    }

    /// Converts a literal to the type.
    fn item(&self, item: &Ast, atom: &Atom) -> Option<Item> {
        let literal = match item {
            Ast::Value(value) => self.literal(value).ok()?,
            Ast::UnaryOp { op: UnaryOperator::Minus, expr } => self.signed_literal(expr).ok()??,
            _ => return None,
        };
        if let Some(text) = literal.literal() {
            if *atom == Atom::String {
                return Some(Item::Value(Scalar::String(text.into())));
            }
            let converted = self
                .adapt_literal(literal, atom)
                .ok()
                .filter(|converted| converted.atom == *atom)?;
            return match self.evaluated(converted).ok()?.expr {
                Expr::Constant(value, of) if of == *atom => Some(Item::Value(value)),
                _ => None,
            };
        }
        match literal.expr {
            Expr::Constant(Scalar::Null, _) => Some(Item::Value(Scalar::Null)),
            Expr::Constant(Scalar::Integer(digits), of) => {
                rescaled(digits, scale(&of)?, scale(atom)?, atom)
            }
            _ => None,
        }
    }
}

/// A converted list item.
enum Item {
    Value(Scalar),
    /// An item that equals no value of the type.
    Never,
}

/// Returns the scale of an exact number type.
fn scale(atom: &Atom) -> Option<i8> {
    match atom {
        Atom::Decimal(_, scale) => Some(*scale),
        whole => whole.is_integer().then_some(0),
    }
}

/// Converts a number to another scale if the type can represent it.
fn rescaled(digits: i128, from: i8, to: i8, atom: &Atom) -> Option<Item> {
    let power = 10i128.checked_pow(u32::from(from.abs_diff(to)))?;
    let value = match from <= to {
        true => digits.checked_mul(power),
        false => (digits % power == 0).then_some(digits / power),
    };
    let value = value.map(Scalar::Integer).filter(|value| value.fits(atom));
    Some(value.map_or(Item::Never, Item::Value))
}
