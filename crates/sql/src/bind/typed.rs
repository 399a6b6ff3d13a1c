//! Expressions with their types.

use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

/// An expression with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) atom: Atom,
    /// A literal of text that takes its type from where it stands.
    pub(crate) unknown: bool,
}

impl Typed {
    pub(crate) fn new(expr: Expr, atom: Atom) -> Typed {
        Typed { expr, atom, unknown: false }
    }

    /// A literal of text without a type.
    pub(crate) fn unknown(text: &str) -> Typed {
        Typed { expr: Expr::string(text), atom: Atom::String, unknown: true }
    }

    /// NULL without a type.
    pub(crate) fn null() -> Typed {
        Typed { expr: Expr::null(Atom::Null), atom: Atom::Null, unknown: false }
    }

    pub(crate) fn boolean(expr: Expr) -> Typed {
        Typed::new(expr, Atom::Boolean)
    }

    pub(crate) fn int32(value: i32) -> Typed {
        Typed::new(Expr::Constant(Scalar::Integer(value.into()), Atom::Int32), Atom::Int32)
    }

    pub(crate) fn int64(value: i64) -> Typed {
        Typed::new(Expr::int64(value), Atom::Int64)
    }

    /// A text that has its type.
    pub(crate) fn text(text: &str) -> Typed {
        Typed::new(Expr::string(text), Atom::String)
    }

    /// The same with a type: a literal that has none is a text.
    pub(crate) fn known(self) -> Typed {
        Typed { unknown: false, ..self }
    }

    /// A condition, or NOT of it.
    pub(crate) fn negated_if(self, negated: bool) -> Typed {
        match negated {
            true => Typed::boolean(Expr::Not(Box::new(self.expr))),
            false => self,
        }
    }

    /// Whether it is NULL as written, without a type.
    pub(crate) fn is_null(&self) -> bool {
        self.atom == Atom::Null && matches!(self.expr, Expr::Constant(Scalar::Null, _))
    }

    /// The text of a literal without a type.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.expr {
            Expr::Constant(Scalar::String(text), _) if self.unknown => Some(text),
            _ => None,
        }
    }
}
