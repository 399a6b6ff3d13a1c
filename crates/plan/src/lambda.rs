//! Lambdas: functions that stand among the arguments of a call.

use tessera_types::Tuple;

use crate::expr::Expr;

/// A function of its parameters, such as `x -> x + 1`, which `list_transform` computes for each
/// element of a list.
///
/// A lambda is closed: its body reads nothing but its parameters, as fields. What it takes from its
/// surroundings is an argument of the call. So a rewrite of the expression around it never has to
/// look inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lambda {
    /// The parameters and their types.
    pub parameters: Tuple,
    /// The result, over the parameters.
    pub body: Expr,
}
