//! Strict calls: calls that are NULL if an operand is NULL.

use tessera_codegen::{Comparison, Operation};
use tessera_plan::{Expr, Scalar};

/// Whether a literal NULL makes a call NULL; its other operands are then not computed.
pub fn is_written_null(function: &str, args: &[Expr]) -> bool {
    let is_written = |arg: &Expr| match arg {
        Expr::Cast { input, .. } => is_null(input),
        other => is_null(other),
    };
    is_strict(function) && args.iter().any(is_written)
}

/// The functions that return NULL if an argument is NULL, except comparisons and arithmetic. Only
/// functions that are frequent in predicates are listed.
const STRICT: [&str; 12] = [
    "concat_op",
    "date_part",
    "extract",
    "ilike",
    "iregex",
    "like",
    "lower",
    "neg",
    "regex",
    "similar",
    "substr",
    "upper",
];

/// Whether a function is known to return NULL if an argument is NULL.
pub fn is_strict(function: &str) -> bool {
    match Comparison::from_name(function) {
        Some(comparison) => !comparison.is_total(),
        None => Operation::from_name(function).is_some() || STRICT.contains(&function),
    }
}

/// Whether an expression is the literal NULL.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Scalar::Null, _))
}
