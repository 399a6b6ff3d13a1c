//! Decorrelation of subqueries with window functions.

use std::collections::HashSet;

use super::{DecorrelatedSubquery, split_equality};
use crate::logical::fields::Fields;
use crate::logical::relation::{Name, Relation, parameters};
use crate::logical::window::Window;
use tessera_plan::Expr;

impl Fields<'_> {
    /// Moves equalities out of the input of window functions. The tuples of one outer row are those
    /// with its values, so the inner sides of the equalities become keys of PARTITION BY.
    pub(super) fn pull_window(
        &mut self,
        mut window: Window,
        outer: &HashSet<Name>,
    ) -> Option<DecorrelatedSubquery> {
        let reads = |expr: &Expr| parameters(expr).iter().any(|name| outer.contains(name));
        // The calls are then computed for values of no outer row, too, and must not raise errors.
        let types = self.types();
        if window.exprs().any(reads)
            || window.calls.iter().any(|(_, call)| call.exprs().any(|expr| types.must_stay(expr)))
        {
            return None;
        }
        let input = std::mem::replace(&mut window.input, Relation::placeholder());
        let DecorrelatedSubquery { relation, conditions, lifted } =
            self.pull(input, outer, false, &mut Vec::new())?;
        if lifted.is_some() {
            return None;
        }
        let inside: HashSet<Name> = relation.names().into_iter().collect();
        for condition in &conditions {
            let (inner, _) = split_equality(condition, &inside)?;
            if !window.partition.contains(&inner) {
                window.partition.push(inner);
            }
        }
        window.input = relation;
        let relation = Relation::Window(Box::new(window));
        Some(DecorrelatedSubquery { relation, conditions, lifted: None })
    }
}
