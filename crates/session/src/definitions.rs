//! Statements that change what the session has defined: views, functions, macros, variables,
//! prepared statements and settings; and statements with values for their parameters.

use std::time::Instant;

use tessera_binder::{Constant, Environment, Parameters, PlannedQuery};
use tessera_parser::{DropTypes, ParsedStatement};
use tessera_sql::{CreateType, Statement};
use tessera_system_catalog::SettingValue;
use tessera_types::{Code, Error, Result, SqlState};
use tessera_values::scalar::array_value;

use crate::functions;
use crate::plan_cache::{Answers, Recorder};
use crate::planning_catalog::PlanningCatalog;
use crate::session::Session;
use crate::stack::{catch_panics, with_big_stack};
use crate::stream::{ResultStream, StatementOutput};

impl Session {
    /// Runs the only statement of a text with values for its parameters `?`, `$1` or `$name`. As in
    /// [`Session::statement`], the rows are read while it runs.
    ///
    /// A text takes its type from its context, as a string literal does; other values have theirs.
    ///
    /// ```
    /// use tessera_binder::{Constant, Parameters};
    /// use tessera_session::{Config, Session};
    /// let mut session = Session::new(Config { threads: 1, ..Config::default() })?;
    /// let values = Parameters::positional([Constant::from(2), Constant::from("2024-01-31")]);
    /// let rows = session.query_with("select ? + 1 as n, ?::date as d", &values)?;
    /// assert_eq!(rows.collect_all()?.row_count(), 1);
    /// let values = Parameters::named([("n", Constant::from(2))]);
    /// assert!(session.query_with("select $n * $n", &values).is_ok());
    /// # Ok::<(), tessera_types::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::statement`], or a parameter has no value, or a value has no parameter.
    pub fn statement_with(
        &mut self,
        sql: &str,
        parameters: &Parameters,
    ) -> Result<Option<StatementOutput>> {
        with_big_stack(|| {
            let started = Instant::now();
            let mut statements = tessera_parser::parse(sql)?.into_iter();
            match (statements.next(), statements.next()) {
                (None, _) => Ok(None),
                (Some(statement), None) => {
                    catch_panics(|| self.run_with(&statement, parameters, started)).map(Some)
                }
                _ => Err(Error::unsupported(
                    "expected one statement; run several statements one after the other",
                )),
            }
        })
    }

    /// Runs the query of a text with values for its parameters, as [`Session::statement_with`].
    ///
    /// # Errors
    /// As [`Session::statement_with`], or the statement returns no rows.
    pub fn query_with(&mut self, sql: &str, parameters: &Parameters) -> Result<ResultStream> {
        match self.statement_with(sql, parameters)? {
            Some(StatementOutput::Rows(rows)) => Ok(rows),
            _ => Err(Error::unsupported("expected a query; the statement returns no rows")),
        }
    }

    /// Binds and plans a statement. Returns what that asked the catalog, if it can be asked again.
    pub(crate) fn planned(
        &self,
        statement: &ParsedStatement,
        parameters: &Parameters,
    ) -> Result<(Statement, Option<Answers>)> {
        let settings = || self.setting_values();
        let environment =
            Environment { definitions: &self.definitions, parameters, settings: &settings };
        let planning = &self.values.planning;
        let (runner, asked) = (self.runner(), Recorder::default());
        let catalog = PlanningCatalog { tables: &self.catalog, runner, asked };
        let planned =
            tessera_sql::plan_in(statement, &catalog, &self.registry, planning, environment)?;
        Ok((planned, catalog.asked.answers()))
    }

    fn setting_values(&self) -> Vec<SettingValue> {
        let all = self.values.all().into_iter();
        let setting = |(name, meaning): (&str, &str)| {
            let value = self.values.get(name).ok()?;
            Some(SettingValue { name: name.to_string(), value, meaning: meaning.to_string() })
        };
        all.filter_map(setting).collect()
    }

    /// Runs a statement that changes what the session has defined.
    pub(crate) fn define(&mut self, statement: Statement) -> Result<StatementOutput> {
        let done = match statement {
            Statement::CreateView { name, query, or_replace, planned: _ } => {
                self.catalog.create_view(&name, &query, or_replace)?;
                "CREATE VIEW"
            }
            Statement::Drop { names, view, if_exists } => {
                for name in &names {
                    self.catalog.drop(name, view, if_exists)?;
                }
                if view { "DROP VIEW" } else { "DROP TABLE" }
            }
            Statement::CreateFunction(create) => {
                self.create_function(&create)?;
                "CREATE FUNCTION"
            }
            Statement::DropFunctions { functions, if_exists } => {
                let mut others = Vec::new();
                for (name, args) in functions {
                    let count = args.as_ref().map(Vec::len);
                    if !self.definitions.undefine(&name, count) {
                        others.push((name, args));
                    }
                }
                functions::drop(self.registry.library(), &others, if_exists)?;
                "DROP FUNCTION"
            }
            Statement::CreateMacro(create) => {
                let done = if create.is_function { "CREATE FUNCTION" } else { "CREATE MACRO" };
                self.definitions.define(*create)?;
                done
            }
            Statement::DropMacro { name, if_exists } => {
                if !self.definitions.undefine(&name, None) && !if_exists {
                    return Err(self.definitions.unknown_macro(&name));
                }
                "DROP MACRO"
            }
            Statement::CreateType(create) => {
                let CreateType { name, atom, or_replace, if_not_exists } = *create;
                if !(if_not_exists && self.definitions.named_type(&name).is_some()) {
                    self.definitions.define_type(&name, atom, or_replace)?;
                }
                "CREATE TYPE"
            }
            Statement::DropTypes(DropTypes { names, if_exists }) => {
                for name in &names {
                    if !(if_exists && self.definitions.named_type(name).is_none()) {
                        self.definitions.drop_type(name)?;
                    }
                }
                "DROP TYPE"
            }
            Statement::Prepare { name, prepared } => {
                self.definitions.prepare(&name, *prepared)?;
                "PREPARE"
            }
            Statement::Deallocate { name } => {
                self.definitions.deallocate(name.as_deref())?;
                "DEALLOCATE"
            }
            Statement::SetVariable { name, query } => {
                let value = self.value_of(&query)?;
                self.definitions.set_variable(&name, value);
                "SET"
            }
            Statement::ResetVariable { name } => {
                self.definitions.reset_variable(&name);
                "RESET"
            }
            Statement::Set { name, value } => {
                let mut changed = self.values.clone();
                changed.set(&name, &value)?;
                self.apply(changed)?;
                "SET"
            }
            Statement::Reset { name } => {
                let mut changed = self.values.clone();
                if name == "all" {
                    changed = self.initial.clone();
                } else {
                    changed.set(&name, &self.initial.get(&name)?)?;
                }
                self.apply(changed)?;
                "RESET"
            }
            other => return Err(Error::internal(format!("{other:?} defines nothing"))),
        };
        Ok(StatementOutput::Done(done.to_string()))
    }

    /// Runs a query of one column and returns its only value; NULL without a row.
    fn value_of(&self, query: &PlannedQuery) -> Result<Constant> {
        let (_, finished) = self.runner().run_with_retry(&self.optimized(&query.plan)?)?;
        let [field] = query.tuple.fields() else {
            return Err(Error::internal("the query of a variable has several columns"));
        };
        let atom = field.atom().ok_or_else(|| Error::internal("a variable holds a collection"))?;
        let mut value = None;
        for chunk in finished.collected.chunks() {
            let array = chunk?.column(0)?.plain()?;
            for row in 0..array.len() {
                if value.replace(array_value(&*array, row)?).is_some() {
                    let message = "the query of a variable has more than one row; LIMIT it to 1";
                    return Err(
                        Error::new(Code::Data, message).with_state(SqlState::CARDINALITY_VIOLATION)
                    );
                }
            }
        }
        match value {
            Some(value) if !value.is_null() => Constant::new(value, atom.clone()),
            _ => Ok(Constant::null()),
        }
    }
}
