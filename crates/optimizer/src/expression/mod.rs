//! Simplification of expressions during planning: folds constants and brings predicates into forms
//! that scans can use for pruning.
//!
//! Each rule is one function; [`tessera_plan::rule::RULES`] lists them. A rule preserves the value
//! for every tuple, including NULLs (three-valued logic), NaN (the greatest value, equal to itself)
//! and errors. It removes an operand only if that cannot raise an error, or if another operand is a
//! literal NULL, as in PostgreSQL. No rule duplicates a volatile operand.

mod branches;
mod comparisons;
mod connectives;
#[cfg(test)]
mod tests;

use std::mem;

use tessera_functions::Library;
use tessera_plan::{Expr, Rule, Rules, Scalar};
use tessera_types::Atom;

/// The planner's knowledge of expressions.
pub trait TypeContext {
    /// Returns the type of an expression; `None` if unknown.
    fn atom(&self, expr: &Expr) -> Option<Atom>;

    /// Whether the expression must not be removed or copied: it can raise an error, or it is
    /// volatile.
    fn must_stay(&self, expr: &Expr) -> bool;
}

/// A simplifier of expressions.
#[derive(Debug, Clone, Copy)]
pub struct Simplifier<'a, K> {
    library: &'a Library,
    context: K,
    rules: Rules,
}

/// The rewritten expression, or the original one as an error if the rule does not apply.
type RewriteResult = Result<Expr, Expr>;

impl<'a, K: TypeContext> Simplifier<'a, K> {
    /// The rules in the order they are tried.
    const REWRITES: [(Rule, fn(&Self, Expr) -> RewriteResult); 18] = [
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

    /// Creates a simplifier that evaluates constants with these functions.
    pub fn new(library: &'a Library, context: K) -> Self {
        Simplifier { library, context, rules: Rules::ALL }
    }

    /// Restricts the simplifier to these rules.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Simplifier { rules, ..self }
    }

    /// Simplifies a whole expression from its leaves up.
    pub fn tree(&self, mut expr: Expr) -> Expr {
        for child in expr.children_mut() {
            let taken = mem::replace(child, Expr::boolean(false));
            *child = self.tree(taken);
        }
        self.node(expr)
    }

    /// Simplifies an expression with simplified operands.
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

    fn fold_constants(&self, expr: Expr) -> RewriteResult {
        tessera_functions::constant(&expr, self.library).ok_or(expr)
    }

    fn same_type_cast(&self, expr: Expr) -> RewriteResult {
        match expr {
            Expr::Cast { input, to, .. } if self.context.atom(&input).as_ref() == Some(&to) => {
                Ok(*input)
            }
            other => Err(other),
        }
    }

    fn is_boolean(&self, expr: &Expr) -> bool {
        self.context.atom(expr) == Some(Atom::Boolean)
    }
}

/// Whether this is a literal NULL.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Scalar::Null, _))
}

/// Returns the value of a boolean constant, with `Some(None)` for NULL; `None` for any other
/// expression.
fn truth(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Constant(Scalar::Boolean(value), _) => Some(Some(*value)),
        Expr::Constant(Scalar::Null, Atom::Boolean | Atom::Null) => Some(None),
        _ => None,
    }
}
