//! TypedExpr expressions.

use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

/// An expression and its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TypedExpr {
    pub(crate) expr: Expr,
    pub(crate) atom: Atom,
    /// Whether it is an untyped string literal, which takes its type from its context.
    pub(crate) unknown: bool,
}

impl TypedExpr {
    pub(crate) fn new(expr: Expr, atom: Atom) -> TypedExpr {
        TypedExpr { expr, atom, unknown: false }
    }

    /// Creates an untyped string literal.
    pub(crate) fn unknown(text: &str) -> TypedExpr {
        TypedExpr { expr: Expr::string(text), atom: Atom::String, unknown: true }
    }

    /// Creates an untyped NULL.
    pub(crate) fn null() -> TypedExpr {
        TypedExpr { expr: Expr::null(Atom::Null), atom: Atom::Null, unknown: false }
    }

    pub(crate) fn boolean(expr: Expr) -> TypedExpr {
        TypedExpr::new(expr, Atom::Boolean)
    }

    pub(crate) fn int32(value: i32) -> TypedExpr {
        TypedExpr::new(Expr::Constant(Scalar::Integer(value.into()), Atom::Int32), Atom::Int32)
    }

    pub(crate) fn int64(value: i64) -> TypedExpr {
        TypedExpr::new(Expr::int64(value), Atom::Int64)
    }

    /// Creates a string constant of type text.
    pub(crate) fn text(text: &str) -> TypedExpr {
        TypedExpr::new(Expr::string(text), Atom::String)
    }

    /// Fixes the type: an untyped literal becomes text.
    pub(crate) fn known(self) -> TypedExpr {
        TypedExpr { unknown: false, ..self }
    }

    /// Negates a condition if `negated` is set.
    pub(crate) fn negated_if(self, negated: bool) -> TypedExpr {
        match negated {
            true => TypedExpr::boolean(Expr::Not(Box::new(self.expr))),
            false => self,
        }
    }

    /// Returns whether it is an untyped NULL.
    pub(crate) fn is_null(&self) -> bool {
        self.atom == Atom::Null && matches!(self.expr, Expr::Constant(Scalar::Null, _))
    }

    /// Returns the text of an untyped literal.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.expr {
            Expr::Constant(Scalar::String(text), _) if self.unknown => Some(text),
            _ => None,
        }
    }
}
