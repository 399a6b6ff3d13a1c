//! `make_interval` with named arguments.

use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr};
use tessera_types::{Error, Result, SqlState, suggest};

use super::typed::TypedExpr;
use super::{Binder, Place, normalized};

/// The names of the arguments, in order.
const INTERVAL_ARGUMENTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

impl Binder<'_> {
    /// Converts named arguments such as `make_interval(days => 3)` to positional ones.
    pub(super) fn interval_parts(
        &mut self,
        list: &[FunctionArg],
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<TypedExpr>> {
        let mut given: Vec<TypedExpr> =
            (0..INTERVAL_ARGUMENTS.len()).map(|_| TypedExpr::int32(0)).collect();
        let wrong = |what: &str| {
            let hint = suggest(what, "expected", &INTERVAL_ARGUMENTS);
            let message = format!("unknown argument '{what}' of make_interval{hint}");
            Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
        };
        for (index, arg) in list.iter().enumerate() {
            let (at, value) = match arg {
                FunctionArg::Unnamed(value) => (index, value),
                FunctionArg::Named { name, arg, .. }
                | FunctionArg::ExprNamed { name: Ast::Identifier(name), arg, .. } => {
                    let called = normalized(name);
                    let at = INTERVAL_ARGUMENTS.iter().position(|known| *known == called);
                    (at.ok_or_else(|| wrong(&called))?, arg)
                }
                other => return Err(wrong(&other.to_string())),
            };
            let FunctionArgExpr::Expr(value) = value else { return Err(wrong("*")) };
            let value = self.expr(value, place)?;
            *given.get_mut(at).ok_or_else(|| wrong(&format!("number {}", at + 1)))? = value;
        }
        Ok(given)
    }
}
