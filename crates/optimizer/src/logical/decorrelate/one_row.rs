//! Subqueries that have exactly one row.

use tessera_plan::Expr;

use crate::logical::fields::Fields;
use crate::logical::relation::{Join, Kind, Name, Relation};

impl Fields<'_> {
    /// Rewrites a test of a subquery that has exactly one row as a condition on that row, as in
    /// `x NOT IN (SELECT max(y) …)`.
    pub(super) fn test_of_one_row(&mut self, mut join: Join, nested: bool) -> Relation {
        let test = Expr::all(std::mem::take(&mut join.conditions));
        let test = match join.null_aware {
            true => test,
            false => Expr::Coalesce(vec![test, Expr::boolean(false)]),
        };
        let names = join.left.names();
        let mut exprs: Vec<(Name, Expr)> =
            names.iter().map(|name| (name.clone(), Expr::Field(name.clone()))).collect();
        let (kind, mark) = (join.kind, join.mark.take());
        (join.kind, join.null_aware) = (Kind::Inner, false);
        let joined = self.decorrelate_join(join, nested);
        let input = match kind {
            Kind::Semi => joined.filtered(vec![test]),
            Kind::Anti => joined.filtered(vec![Expr::Not(Box::new(test))]),
            _ => {
                exprs.extend(mark.map(|mark| (mark, test)));
                joined
            }
        };
        Relation::Map { input: Box::new(input), exprs }
    }
}
