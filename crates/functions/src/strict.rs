//! Which calls are NULL because an operand is.

use tessera_codegen::{Comparison, Operation};
use tessera_plan::{Expr, Scalar};

/// Whether a call is NULL because of a NULL that is written: nothing beside that is computed.
pub fn is_written_null(function: &str, args: &[Expr]) -> bool {
    let is_written = |arg: &Expr| match arg {
        Expr::Cast { input, .. } => is_null(input),
        other => is_null(other),
    };
    is_strict(function) && args.iter().any(is_written)
}

/// Whether an operator gives NULL wherever an operand is NULL.
pub fn is_strict(function: &str) -> bool {
    match Comparison::named(function) {
        Some(comparison) => !matches!(comparison, Comparison::Distinct | Comparison::NotDistinct),
        None => Operation::named(function).is_some() || matches!(function, "like" | "ilike"),
    }
}

/// Whether this is NULL as it is written.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Scalar::Null, _))
}
