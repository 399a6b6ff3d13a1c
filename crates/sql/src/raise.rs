//! Which expressions can raise: they stay behind the predicates that were written before them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_ops::expression::Library;
use tessera_plan::{Expr, Functions, Scope};
use tessera_types::{Atom, Field, Tuple};

use crate::relation::Name;

/// The types of all fields of a query, and the functions its expressions call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) library: &'a Arc<Library>,
    pub(crate) atoms: &'a HashMap<Name, Atom>,
}

impl Types<'_> {
    /// Whether the expression must stay where it is: evaluating it can be an error for some tuple, or it gives another
    /// value each time.
    pub(crate) fn stays(self, expr: &Expr) -> bool {
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
        let tuple = Tuple::new(fields.collect::<Vec<_>>());
        self.volatile(expr)
            || tessera_plan::pass::can_raise(
                expr,
                Scope { tuple: &tuple, parameters: &tuple, functions: &**self.library },
            )
    }

    /// Whether the expression gives another value each time it is evaluated.
    pub(crate) fn volatile(self, expr: &Expr) -> bool {
        let mut volatile = false;
        expr.walk(&mut |expr| {
            if let Expr::Call { function, .. } = expr {
                volatile |= self.library.is_volatile(function);
            }
        });
        volatile
    }
}
