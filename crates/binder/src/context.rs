//! What a statement is bound with, and how a query becomes a plan.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use sqlparser::ast::{DataType, Query};
use tessera_functions::Library;
use tessera_optimizer::logical::relation::Name;
use tessera_optimizer::table::TableCatalog;
use tessera_plan::{Plan, Rules};
use tessera_types::{Atom, Result, Tuple};
use tessera_values::temporal::session_zone::SessionZone;

use super::{Binder, BoundQuery};
use crate::clock::StatementTime;
use crate::definitions::Environment;
use crate::parameters::{Inference, Parameters};

/// A query's plan and the display names of its columns.
#[derive(Debug, Clone)]
pub struct PlannedQuery {
    /// The platform-independent plan.
    pub plan: Plan,
    /// The tuple type of the result; field names are unique.
    pub tuple: Tuple,
    /// The display name of each column, as SQL defines it; names may repeat.
    pub names: Vec<String>,
    /// Whether planning it again, with the same tables and settings, would give the same plan: it
    /// calls no function of the current time and no volatile one.
    pub is_repeatable: bool,
}

/// Session settings that affect planning.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether to order joins by estimated cost instead of as written.
    pub join_order: bool,
    /// The enabled rewrite rules.
    pub rules: Rules,
    /// The time zone of timestamps with time zone.
    pub time_zone: SessionZone,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { join_order: true, rules: Rules::ALL, time_zone: SessionZone::default() }
    }
}

/// The context in which a statement is planned.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    catalog: &'a dyn TableCatalog,
    library: &'a Arc<Library>,
    settings: &'a Settings,
    start_time: StatementTime,
    /// What it sees of its session beside the tables.
    pub environment: Environment<'a>,
    mode: Mode<'a>,
}

/// What is known about the parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Mode<'a> {
    /// Their values.
    Given(&'a Parameters),
    /// Nothing: their types are to be found.
    Inferred(&'a Inference),
}

impl fmt::Debug for PlanContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanContext").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl<'a> PlanContext<'a> {
    /// The context of a statement that begins now. The environment has the values of its
    /// parameters.
    pub fn new(
        catalog: &'a dyn TableCatalog,
        library: &'a Arc<Library>,
        settings: &'a Settings,
        environment: Environment<'a>,
    ) -> PlanContext<'a> {
        PlanContext {
            catalog,
            library,
            settings,
            start_time: StatementTime::now(),
            environment,
            mode: Mode::Given(environment.parameters),
        }
    }

    /// Returns the same context with other parameters.
    pub fn in_mode(self, mode: Mode<'a>) -> PlanContext<'a> {
        PlanContext { mode, ..self }
    }

    /// Returns a binder for a part of the statement.
    pub(crate) fn binder(&self) -> Binder<'a> {
        let PlanContext { catalog, library, settings, start_time, environment, mode } = *self;
        Binder::new(catalog, library, start_time, settings, environment, mode)
    }

    /// Runs a query of one column of text while planning, and returns its values.
    ///
    /// # Errors
    /// As [`PlanContext::query`], the query fails, or its columns are others (`None`).
    pub fn texts_of(&self, query: &Query) -> Result<Option<Vec<Option<Arc<str>>>>> {
        let PlannedQuery { plan, tuple, .. } = self.query(query)?;
        match tuple.fields() {
            [field] if field.atom() == Some(&Atom::String) => self.catalog.texts(&plan).map(Some),
            _ => Ok(None),
        }
    }

    /// Converts a SQL type.
    ///
    /// # Errors
    /// The type is not supported.
    pub fn type_of(&self, data_type: &DataType) -> Result<Atom> {
        self.binder().local_type(data_type)
    }

    /// Plans a bound query; duplicate column names get a numeric suffix in its tuple.
    pub(crate) fn planned(&self, binder: Binder<'_>, query: BoundQuery) -> Result<PlannedQuery> {
        let BoundQuery { relation, columns } = query;
        let mut used = HashSet::new();
        let output: Vec<(Name, Name)> = columns
            .iter()
            .map(|column| {
                let mut unique: Name = column.name.clone();
                let mut number = 2;
                while !used.insert(unique.clone()) {
                    unique = Arc::from(format!("{}_{number}", column.name));
                    number += 1;
                }
                (unique, column.field.clone())
            })
            .collect();
        let is_repeatable = !binder.reads_clock.get() && binder.volatile_calls.get() == 0;
        let (plan, tuple) =
            tessera_optimizer::plan(relation, &output, binder.fields, self.settings.join_order)?;
        let names = columns.iter().map(|column| column.name.to_string()).collect();
        Ok(PlannedQuery { plan, tuple, names, is_repeatable })
    }
}
