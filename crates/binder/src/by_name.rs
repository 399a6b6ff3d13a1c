//! UNION BY NAME: columns of the same name form one column; a side without it has NULLs there.

use sqlparser::ast::{SetExpr, Spanned};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::scope::OutputColumn;
use super::steps::with_fields;
use super::{Binder, BoundQuery, with_span};

impl Binder<'_> {
    /// Gives both sides the same columns: those of the left side, then those that only the right
    /// side has. As in DuckDB, the case of names does not matter.
    pub(super) fn matched_by_name(
        &mut self,
        [left, right]: [BoundQuery; 2],
        written: &SetExpr,
    ) -> Result<[BoundQuery; 2]> {
        for side in [&left, &right] {
            for (at, column) in side.columns.iter().enumerate() {
                if position(&side.columns[..at], &column.name).is_some() {
                    let message = format!(
                        "UNION BY NAME needs columns of different names, but one side has {} twice",
                        column.name
                    );
                    let error = Error::semantic(message).with_state(SqlState::AMBIGUOUS_COLUMN);
                    return Err(with_span(error, written.span()));
                }
            }
        }
        let only_right = right
            .columns
            .iter()
            .filter(|column| position(&left.columns, &column.name).is_none())
            .cloned();
        let all: Vec<OutputColumn> = left.columns.iter().cloned().chain(only_right).collect();
        Ok([self.with_columns(left, &all), self.with_columns(right, &all)])
    }

    /// Brings the columns of a query in the order of `all`, with NULLs for missing ones.
    fn with_columns(&mut self, bound: BoundQuery, all: &[OutputColumn]) -> BoundQuery {
        let BoundQuery { relation, columns } = bound;
        let mut missing = Vec::new();
        let ordered = all.iter().map(|wanted| match position(&columns, &wanted.name) {
            Some(at) => columns[at].clone(),
            None => {
                let atom = match wanted.atom {
                    Atom::Null => Atom::Int32,
                    _ => wanted.atom.clone(),
                };
                let field = self.fields.fresh(&wanted.name, atom.clone());
                missing.push((field.clone(), Expr::null(atom.clone())));
                OutputColumn { name: wanted.name.clone(), field, atom, literal: None }
            }
        });
        let columns = ordered.collect();
        BoundQuery { relation: with_fields(relation, missing), columns }
    }
}

fn position(columns: &[OutputColumn], name: &str) -> Option<usize> {
    columns.iter().position(|column| column.name.to_lowercase() == name.to_lowercase())
}
