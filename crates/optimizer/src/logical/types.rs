//! Types and properties of expressions in a query, such as whether they can raise errors.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_functions::Library;
use tessera_plan::{Expr, Rule, Rules, Scalar, Scope, type_of};
use tessera_types::{Atom, Field, Tuple};

use crate::expression::{Simplifier, TypeContext};
use crate::logical::relation::{Name, Relation};

/// The types of all fields of a query, its function library and the enabled rules.
#[derive(Debug, Clone, Copy)]
pub struct Types<'a> {
    pub library: &'a Arc<Library>,
    pub atoms: &'a HashMap<Name, Atom>,
    pub rules: Rules,
}

impl Types<'_> {
    /// Whether a rule is enabled.
    pub fn uses(self, rule: Rule) -> bool {
        self.rules.has(rule)
    }

    /// Whether the expression must not be moved: it can raise an error, or it is volatile.
    pub fn must_stay(self, expr: &Expr) -> bool {
        let tuple = self.tuple(expr);
        self.volatile(expr)
            || tessera_plan::rewrite::can_raise(
                expr,
                Scope { tuple: &tuple, parameters: &tuple, functions: &**self.library },
            )
    }

    /// Returns the conjuncts of predicates, in order.
    pub(crate) fn conjuncts(self, predicates: Vec<Expr>) -> Vec<Expr> {
        let mut all: Vec<Expr> = predicates.iter().flat_map(Expr::conjuncts).collect();
        if self.uses(Rule::FactorDisjunctions) {
            all = all.into_iter().flat_map(|predicate| self.factored(predicate)).collect();
        }
        if self.uses(Rule::NeutralOperands) {
            all.retain(|predicate| !matches!(predicate, Expr::Constant(Scalar::Boolean(true), _)));
        }
        all
    }

    /// Splits a disjunction into the conjuncts that all branches share and the rest. A conjunct
    /// that can raise an error or is volatile remains in its branch, behind the conjuncts before
    /// it.
    fn factored(self, predicate: Expr) -> Vec<Expr> {
        let Expr::Or(branches) = predicate else { return vec![predicate] };
        let mut branches: Vec<Vec<Expr>> = branches.iter().map(Expr::conjuncts).collect();
        let Some((first, others)) = branches.split_first() else {
            return vec![Expr::boolean(false)];
        };
        let is_shared = |part: &&Expr| {
            others.iter().all(|branch| branch.contains(part)) && !self.must_stay(part)
        };
        let shared: Vec<Expr> = first.iter().filter(is_shared).cloned().collect();
        for branch in &mut branches {
            branch.retain(|part| !shared.contains(part));
        }
        let mut result = shared;
        // If nothing is left of a branch, the shared part implies the disjunction.
        if !branches.iter().any(Vec::is_empty) {
            result.push(Expr::Or(branches.into_iter().map(Expr::all).collect()));
        }
        result
    }

    /// Simplifies a predicate again after its fields were replaced by expressions.
    pub fn simplified(self, predicate: Expr) -> Expr {
        let simple =
            Simplifier::new(self.library, self).with_rules(self.rules).tree(predicate.clone());
        // The type may depend on whether an operand is a constant; if it changes, keep the
        // predicate.
        if self.atom(&simple) == Some(Atom::Boolean) { simple } else { predicate }
    }

    /// Returns the fields and parameters of an expression as a tuple.
    fn tuple(self, expr: &Expr) -> Tuple {
        let mut names = HashSet::new();
        expr.walk(&mut |expr| {
            if let Expr::Field(name) | Expr::Parameter(name) = expr {
                names.insert(name.clone());
            }
        });
        let fields = names.into_iter().filter_map(|name| {
            let atom = self.atoms.get(&name)?.clone();
            Some(Field::nullable(name, atom))
        });
        Tuple::new(fields.collect::<Vec<_>>())
    }

    /// Whether the relation may yield different tuples each time it is computed. Shared relations
    /// are computed once.
    pub fn is_volatile(self, relation: &Relation) -> bool {
        if matches!(relation, Relation::Shared { .. }) {
            return false;
        }
        relation.exprs().into_iter().any(|expr| self.volatile(expr))
            || relation.inputs().into_iter().any(|input| self.is_volatile(input))
    }

    /// Whether the expression may have a different value each time it is evaluated.
    pub fn volatile(self, expr: &Expr) -> bool {
        tessera_plan::rewrite::is_volatile(expr, &**self.library)
    }
}

impl TypeContext for Types<'_> {
    fn atom(&self, expr: &Expr) -> Option<Atom> {
        if let Expr::Field(name) | Expr::Parameter(name) = expr {
            return self.atoms.get(name).cloned();
        }
        let tuple = self.tuple(expr);
        let scope = Scope { tuple: &tuple, parameters: &tuple, functions: &**self.library };
        type_of(expr, scope).ok().map(|(atom, _)| atom)
    }

    fn must_stay(&self, expr: &Expr) -> bool {
        Types::must_stay(*self, expr)
    }
}
