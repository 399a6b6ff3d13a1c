//! WITH ORDINALITY: a last column that numbers the rows of a function in FROM.

use std::sync::Arc;

use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Result};

use super::Binder;
use super::scope::OutputColumn;
use super::steps::with_fields;
use super::typed::TypedExpr;

/// The name of the column.
const ORDINALITY: &str = "ordinality";

impl Binder<'_> {
    /// Adds a list of the numbers of the elements to lists that are unnested side by side. Returns
    /// the relation with this list, the list with the field of its elements, and the column.
    pub(super) fn numbered(
        &mut self,
        relation: Relation,
        lists: &[(Name, Name)],
    ) -> Result<(Relation, (Name, Name), OutputColumn)> {
        let mut lengths = Vec::with_capacity(lists.len());
        for (list, _) in lists {
            let length = self.call("array_length", vec![self.field(list)?])?;
            let length = self.cast_to(length, &Atom::Int64, false)?;
            lengths.push(Expr::Coalesce(vec![length.expr, Expr::int64(0)]));
        }
        // The shorter lists are padded.
        let longest = match lengths.len() {
            1 => lengths.remove(0),
            _ => Expr::call("greatest", lengths),
        };
        let end = Expr::call("add", vec![longest, Expr::int64(1)]);
        let atom = self.fields.atom_of(&end)?;
        let numbers = self.call("range", vec![TypedExpr::int64(1), TypedExpr::new(end, atom)])?;
        let numbers = self.finished(numbers)?;
        let list = self.fields.fresh("numbers", numbers.atom);
        let (field, column) = self.ordinality();
        let relation = with_fields(relation, vec![(list.clone(), numbers.expr)]);
        Ok((relation, (list, field), column))
    }

    /// Creates the column and its field.
    pub(super) fn ordinality(&mut self) -> (Name, OutputColumn) {
        let field = self.fields.fresh(ORDINALITY, Atom::Int64);
        let name = Arc::from(ORDINALITY);
        let column = OutputColumn { name, field: field.clone(), atom: Atom::Int64, literal: None };
        (field, column)
    }
}
