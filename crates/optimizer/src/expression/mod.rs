//! Simplification of expressions while planning: constants are folded, and predicates get the forms
//! that scans can prune by.
//!
//! Each rule is one function that says when it applies; [`tessera_plan::rule::RULES`] lists them. A
//! rule gives the same value for every tuple: with NULLs (three-valued logic), NaN (the greatest
//! value, equal to itself), and errors. It drops an operand only if that cannot raise, or stands
//! beside a NULL that is written down, as in PostgreSQL. None copies a volatile one.

mod branches;
mod comparisons;
mod connectives;
#[cfg(test)]
mod tests;

use std::mem;

use tessera_functions::Library;
use tessera_plan::{Expr, Rule, Rules, Scalar};
use tessera_types::Atom;

/// What a planner knows about the expressions it simplifies.
pub trait Known {
    /// The type of an expression; none where it is not known.
    fn atom(&self, expr: &Expr) -> Option<Atom>;

    /// Whether the expression must not be dropped or copied: it can raise, or it is volatile.
    fn stays(&self, expr: &Expr) -> bool;
}

/// Simplifies expressions.
#[derive(Debug, Clone, Copy)]
pub struct Simplifier<'a, K> {
    library: &'a Library,
    known: K,
    rules: Rules,
}

/// What a rule makes of an expression; as an error, the expression to which it does not apply.
type Rewritten = Result<Expr, Expr>;

impl<'a, K: Known> Simplifier<'a, K> {
    /// The rules, in the order in which they are tried.
    const REWRITES: [(Rule, fn(&Self, Expr) -> Rewritten); 18] = [
        (Rule::FoldConstants, Self::fold_constants),
        (Rule::SameTypeCast, Self::same_type_cast),
        (Rule::StrictNull, Self::strict_null),
        (Rule::FlipComparison, Self::flip_comparison),
        (Rule::DistinctFromNull, Self::distinct_from_null),
        (Rule::BooleanEquality, Self::boolean_equality),
        (Rule::UnwrapCast, Self::unwrap_cast),
        (Rule::DateComparison, Self::date_comparison),
        (Rule::LikeWithoutWildcards, Self::like_without_wildcards),
        (Rule::DoubleNot, Self::double_not),
        (Rule::NegateComparison, Self::negate_comparison),
        (Rule::PushNot, Self::push_not),
        (Rule::FlattenConnectives, Self::flatten_connectives),
        (Rule::NeutralOperands, Self::neutral_operands),
        (Rule::DecidingOperand, Self::deciding_operand),
        (Rule::RepeatedOperands, Self::repeated_operands),
        (Rule::DeadBranches, Self::dead_branches),
        (Rule::CoalesceValues, Self::coalesce_values),
    ];

    /// One that evaluates constants with these functions.
    pub fn new(library: &'a Library, known: K) -> Self {
        Simplifier { library, known, rules: Rules::ALL }
    }

    /// The same with these rules only.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Simplifier { rules, ..self }
    }

    /// The whole expression, simplified from its leaves up.
    pub fn tree(&self, mut expr: Expr) -> Expr {
        for child in expr.children_mut() {
            let taken = mem::replace(child, Expr::boolean(false));
            *child = self.tree(taken);
        }
        self.node(expr)
    }

    /// An expression whose operands are simplified already.
    pub fn node(&self, mut expr: Expr) -> Expr {
        'changed: loop {
            for (_, rewrite) in Self::REWRITES.iter().filter(|(rule, _)| self.rules.has(*rule)) {
                match rewrite(self, expr) {
                    Ok(other) => {
                        expr = other;
                        continue 'changed;
                    }
                    Err(same) => expr = same,
                }
            }
            return expr;
        }
    }

    fn fold_constants(&self, expr: Expr) -> Rewritten {
        tessera_functions::constant(&expr, self.library).ok_or(expr)
    }

    fn same_type_cast(&self, expr: Expr) -> Rewritten {
        match expr {
            Expr::Cast { input, to, .. } if self.known.atom(&input).as_ref() == Some(&to) => {
                Ok(*input)
            }
            other => Err(other),
        }
    }

    fn is_boolean(&self, expr: &Expr) -> bool {
        self.known.atom(expr) == Some(Atom::Boolean)
    }
}

/// Whether this is NULL as it is written.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Scalar::Null, _))
}

/// The value of a boolean constant, none within for NULL; none where it is no boolean constant.
fn truth(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Constant(Scalar::Boolean(value), _) => Some(Some(*value)),
        Expr::Constant(Scalar::Null, Atom::Boolean | Atom::Null) => Some(None),
        _ => None,
    }
}
