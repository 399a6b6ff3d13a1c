//! FROM: a list of tables and joins.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{TableFactor, TableWithJoins};
use tessera_optimizer::logical::relation::{Kind, Relation};
use tessera_types::{Error, Result, SqlState, Tuple};

use super::Binder;
use super::cte::Env;
use super::scope::{Column, Scope};
use super::steps::joined;

/// Tables, joined, and the columns that can be read.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) relation: Relation,
    pub(crate) columns: Vec<Column>,
}

/// What stands around a table in FROM.
#[derive(Clone, Copy)]
pub(super) struct Around<'p, 's> {
    pub(super) outer: Option<&'p Scope<'s>>,
    pub(super) env: &'p Env,
    /// The columns of tables before it, which what is LATERAL can read.
    pub(super) before: &'p [Column],
}

/// One tuple without fields.
pub(super) fn one_row() -> Relation {
    Relation::Values { tuple: Tuple::empty(), rows: vec![Vec::new()] }
}

impl Binder<'_> {
    /// The tables of FROM; without any, one row.
    pub(super) fn from(
        &mut self,
        from: &[TableWithJoins],
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<Tables> {
        let mut tables: Option<Tables> = None;
        for next in from {
            let before = tables.as_ref().map_or(Vec::new(), |tables| tables.columns.clone());
            let next = self.with_joins(next, Around { outer, env, before: &before })?;
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
        let tables = tables.unwrap_or_else(|| Tables { relation: one_row(), columns: Vec::new() });
        check_names(&tables.columns)?;
        Ok(tables)
    }

    /// A table with what is joined to it.
    pub(super) fn with_joins(
        &mut self,
        tables: &TableWithJoins,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let TableWithJoins { relation, joins } = tables;
        let mut left = self.factor(relation, around)?;
        for join in joins {
            left = self.join(left, join, around)?;
        }
        Ok(left)
    }

    /// A table, or what stands for one.
    pub(super) fn factor(
        &mut self,
        factor: &TableFactor,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        tessera_context::interrupt::point();
        self.table_factor(factor, around)
    }
}

/// The queries around a table in FROM as it sees them: with `lateral`, the tables before it, too.
pub(super) fn surroundings<'p>(around: Around<'p, 'p>, lateral: bool) -> Option<Scope<'p>> {
    (lateral && !around.before.is_empty()).then(|| Scope {
        columns: Rc::new(around.before.to_vec()),
        outer: around.outer,
        env: around.env.clone(),
        groups: None,
        results: Vec::new(),
    })
}

/// Refuses two tables of one name.
fn check_names(columns: &[Column]) -> Result<()> {
    let mut known: Vec<&Rc<[Arc<str>]>> = Vec::new();
    for table in columns.iter().map(|column| &column.table).filter(|table| !table.is_empty()) {
        match known.iter().find(|other| **other == table) {
            // The columns of one table share its name.
            Some(same) if Rc::ptr_eq(same, table) => {}
            Some(_) => {
                let name = table.join(".");
                let message =
                    format!("two tables in FROM are called {name}; give one of them another alias");
                return Err(Error::semantic(message).with_state(SqlState::DUPLICATE_ALIAS));
            }
            None => known.push(table),
        }
    }
    Ok(())
}
