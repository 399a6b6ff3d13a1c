//! `value IN (…)` with a long list of literals: one constant array instead of an equality for each.

use std::borrow::Cow;

use sqlparser::ast::{Expr as Ast, UnaryOperator};
use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

use super::Binder;
use super::table_function::list_of;
use super::typed::Typed;
use crate::long_lists::{self, Literals};

/// Shorter lists become equalities, which can be compiled, ordered by cost and joined with others.
const LITERALS_MIN: usize = 256;

/// How many literals are read between two looks at whether the statement goes on.
const INTERRUPT_EVERY: usize = 1 << 12;

impl Binder<'_> {
    /// The test whether a value is one of so many literals; none where the list is short, or one of
    /// its items is not a plain literal that compares in the value's own type. Those lists, and all
    /// errors, are for the equalities.
    pub(super) fn in_literals(&self, value: &Typed, list: &[Ast]) -> Option<Typed> {
        match long_lists::of_literal(list.first()?) {
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
        value: &Typed,
        (count, list): (usize, impl Iterator<Item = Cow<'t, Ast>>),
    ) -> Option<Typed> {
        let plain = value.atom.is_integer()
            || matches!(
                value.atom,
                Atom::Decimal(..) | Atom::String | Atom::Date | Atom::Timestamp(..)
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
                // No value of the type equals it.
                Item::Never => {}
            }
        }
        // NULL in an empty list is false, not NULL.
        if items.is_empty() {
            return None;
        }
        let array = Expr::Constant(Scalar::Nested(items.into()), list_of(value.atom.clone()));
        Some(Typed::boolean(Expr::call("any_eq", vec![value.expr.clone(), array])))
    }

    /// A literal as a value of this type.
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
            let converted =
                self.beside(literal, atom).ok().filter(|converted| converted.atom == *atom)?;
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

/// What becomes of an item.
enum Item {
    Value(Scalar),
    /// It equals no value of the type.
    Never,
}

/// Digits behind the point of a number that is exact.
fn scale(atom: &Atom) -> Option<i8> {
    match atom {
        Atom::Decimal(_, scale) => Some(*scale),
        whole => whole.is_integer().then_some(0),
    }
}

/// A number of one scale in another, where a type has it.
fn rescaled(digits: i128, from: i8, to: i8, atom: &Atom) -> Option<Item> {
    let power = 10i128.checked_pow(u32::from(from.abs_diff(to)))?;
    let value = match from <= to {
        true => digits.checked_mul(power),
        false => (digits % power == 0).then_some(digits / power),
    };
    let value = value.map(Scalar::Integer).filter(|value| value.fits(atom));
    Some(value.map_or(Item::Never, Item::Value))
}
