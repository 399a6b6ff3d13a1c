//! The FROM clause: a list of tables and joins.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{TableFactor, TableWithJoins};
use tessera_optimizer::logical::relation::{Kind, Relation};
use tessera_types::{Error, Result, SqlState, Tuple};

use super::Binder;
use super::cte::Env;
use super::scope::{Column, Origin, Scope};
use super::steps::joined;

/// The joined tables of a FROM clause and their readable columns.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) relation: Relation,
    pub(crate) columns: Vec<Column>,
}

impl Tables {
    /// No table: one tuple without fields.
    fn one_row() -> Tables {
        Tables { relation: one_row(), columns: Vec::new() }
    }
}

/// The lateral_scope of a table in FROM.
#[derive(Clone, Copy)]
pub(super) struct FromContext<'p, 's> {
    /// The enclosing query.
    pub(super) outer: Option<&'p Scope<'s>>,
    /// The visible common table expressions.
    pub(super) env: &'p Env,
    /// Columns of the preceding tables, which LATERAL items can read.
    pub(super) before: &'p [Column],
}

/// Returns a relation of one tuple without fields.
pub(super) fn one_row() -> Relation {
    Relation::Values { tuple: Tuple::empty(), rows: vec![Vec::new()] }
}

impl Binder<'_> {
    /// Binds the tables of FROM; without tables, the relation is a single row.
    pub(super) fn from(
        &mut self,
        from: &[TableWithJoins],
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<Tables> {
        let mut tables: Option<Tables> = None;
        for next in from {
            let before = tables.as_ref().map_or(Vec::new(), |tables| tables.columns.clone());
            let next = self.with_joins(next, FromContext { outer, env, before: &before })?;
            tables = Some(match tables {
                None => next,
                Some(Tables { relation, mut columns }) => {
                    columns.extend(next.columns);
                    let relation =
                        joined(Kind::Inner, relation, next.relation, Vec::new(), None, false);
                    Tables { relation, columns }
                }
            });
        }
        let tables = tables.unwrap_or_else(Tables::one_row);
        check_names(&tables.columns)?;
        Ok(tables)
    }

    /// Binds a table and the joins that follow it.
    pub(super) fn with_joins(
        &mut self,
        tables: &TableWithJoins,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let TableWithJoins { relation, joins } = tables;
        let mut left = self.factor(relation, context)?;
        for join in joins {
            left = self.join(left, join, context)?;
        }
        Ok(left)
    }

    /// Binds a table factor: a table, subquery, function or parenthesized join.
    pub(super) fn factor(
        &mut self,
        factor: &TableFactor,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        tessera_context::interrupt::point();
        self.table_factor(factor, context)
    }
}

/// Returns the scope that a LATERAL item sees: the preceding tables inside the enclosing query.
/// `None` if there are no preceding tables or the item is not LATERAL.
pub(super) fn lateral_scope<'p>(context: FromContext<'p, 'p>, lateral: bool) -> Option<Scope<'p>> {
    (lateral && !context.before.is_empty()).then(|| Scope {
        columns: Rc::new(context.before.to_vec()),
        outer: context.outer,
        env: context.env.clone(),
        groups: None,
        windows: None,
        parameters: Vec::new(),
        results: Rc::default(),
        readable: Origin::Unnest,
    })
}

/// Rejects two tables with the same name.
fn check_names(columns: &[Column]) -> Result<()> {
    let mut known: Vec<&Rc<[Arc<str>]>> = Vec::new();
    for table in columns.iter().map(|column| &column.table).filter(|table| !table.is_empty()) {
        match known.iter().find(|other| **other == table) {
            // Columns of one table share its name.
            Some(same) if Rc::ptr_eq(same, table) => {}
            Some(_) => {
                let name = table.join(".");
                let message = format!(
                    "table name {name} is used twice in FROM; give one of the tables an alias"
                );
                return Err(Error::semantic(message).with_state(SqlState::DUPLICATE_ALIAS));
            }
            None => known.push(table),
        }
    }
    Ok(())
}
