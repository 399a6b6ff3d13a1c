//! Visits the expressions of a syntax tree with their depth.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr as Ast, Query, Visit, Visitor};

/// Calls `visit` with each expression of a tree, outer ones first, and the number of queries around
/// it within the tree.
pub(super) fn each_expr(tree: &impl Visit, visit: impl FnMut(&Ast, usize)) {
    let _ = tree.visit(&mut Depths { queries: 0, visit });
}

struct Depths<F> {
    queries: usize,
    visit: F,
}

impl<F: FnMut(&Ast, usize)> Visitor for Depths<F> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
        (self.visit)(expr, self.queries);
        ControlFlow::Continue(())
    }
}
