//! What a session has defined for its statements: macros, variables, prepared statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_parser::{CreateMacro, Macro, StatementKind};
use tessera_system_catalog::SettingValue;
use tessera_types::{Atom, Error, Result, SqlState, did_you_mean};

use crate::parameters::{Constant, Parameters};

/// What a session has defined for its statements.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    macros: BTreeMap<String, Vec<Arc<Macro>>>,
    variables: BTreeMap<String, Constant>,
    prepared: BTreeMap<String, Arc<Prepared>>,
    types: BTreeMap<String, Atom>,
}

/// A prepared statement. It is bound anew each time that it is executed, so that it sees the tables
/// and settings of that time.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The parsed statement.
    pub statement: StatementKind,
    /// The names of the parameters, and their types; `None` where a type depends on the value.
    pub parameters: Vec<(String, Option<Atom>)>,
}

/// What a statement sees of its session beside the tables.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Macros, variables and prepared statements.
    pub definitions: &'a Definitions,
    /// The values of the statement's parameters.
    pub parameters: &'a Parameters,
    /// Reads the settings.
    pub settings: &'a dyn Fn() -> Vec<SettingValue>,
}

impl std::fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("parameters", self.parameters).finish_non_exhaustive()
    }
}

impl Definitions {
    /// Adds a prepared statement.
    ///
    /// # Errors
    /// The name is taken.
    pub fn prepare(&mut self, name: &str, prepared: Prepared) -> Result<()> {
        if self.prepared.contains_key(name) {
            return Err(Error::semantic(format!(
                "prepared statement {name} already exists; DEALLOCATE it first"
            ))
            .with_state(SqlState::DUPLICATE_PREPARED_STATEMENT));
        }
        self.prepared.insert(name.to_string(), Arc::new(prepared));
        Ok(())
    }

    /// Removes a prepared statement, or all of them.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else {
            self.prepared.clear();
            return Ok(());
        };
        match self.prepared.remove(name) {
            Some(_) => Ok(()),
            None => Err(self.unknown_prepared(name)),
        }
    }

    /// Returns a prepared statement.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        self.prepared.get(name).cloned().ok_or_else(|| self.unknown_prepared(name))
    }

    /// Returns the prepared statements by name, each with its text and its parameters.
    pub(crate) fn all_prepared(&self) -> impl Iterator<Item = (&String, &Arc<Prepared>)> {
        self.prepared.iter()
    }

    fn unknown_prepared(&self, name: &str) -> Error {
        let hint = did_you_mean(name, self.prepared.keys().map(String::as_str));
        Error::semantic(format!("unknown prepared statement '{name}'{hint}; PREPARE it first"))
            .with_state(SqlState::INVALID_SQL_STATEMENT_NAME)
    }

    /// Adds a type of the user.
    ///
    /// # Errors
    /// The name is taken.
    pub fn define_type(&mut self, name: &str, atom: Atom, or_replace: bool) -> Result<()> {
        if self.types.contains_key(name) && !or_replace {
            return Err(Error::semantic(format!(
                "type {name} already exists; write CREATE OR REPLACE, or drop it first"
            ))
            .with_state(SqlState::DUPLICATE_OBJECT));
        }
        self.types.insert(name.to_string(), atom);
        Ok(())
    }

    /// Removes a type of the user.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn drop_type(&mut self, name: &str) -> Result<()> {
        match self.types.remove(name) {
            Some(_) => Ok(()),
            None => {
                let hint = did_you_mean(name, self.types.keys().map(String::as_str));
                Err(Error::semantic(format!("unknown type '{name}'{hint}"))
                    .with_state(SqlState::UNDEFINED_OBJECT))
            }
        }
    }

    /// Returns the type of the user with a name.
    pub fn named_type(&self, name: &str) -> Option<&Atom> {
        self.types.get(name)
    }

    /// Gives a variable a value.
    pub fn set_variable(&mut self, name: &str, value: Constant) {
        self.variables.insert(name.to_string(), value);
    }

    /// Removes a variable, if it is there.
    pub fn reset_variable(&mut self, name: &str) {
        self.variables.remove(name);
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Constant> {
        self.variables.get(&name.to_lowercase())
    }

    pub(crate) fn all_variables(&self) -> impl Iterator<Item = (&String, &Constant)> {
        self.variables.iter()
    }

    /// Adds a macro or a function in SQL.
    ///
    /// # Errors
    /// One with this name, and for a function with this number of arguments, is there.
    pub fn define(&mut self, create: CreateMacro) -> Result<()> {
        let CreateMacro { name, overloads, or_replace, if_not_exists, is_function } = create;
        let known = self.macros.get(&name).map_or(&[][..], Vec::as_slice);
        let counts = |one: &Arc<Macro>| {
            overloads.iter().any(|new| new.parameters.len() == one.parameters.len())
        };
        let is_taken = match is_function {
            true => known.iter().any(counts),
            false => !known.is_empty(),
        };
        if is_taken && if_not_exists {
            return Ok(());
        }
        if is_taken && !or_replace {
            let kind = if is_function { "function" } else { "macro" };
            return Err(Error::semantic(format!(
                "{kind} {name} already exists; write CREATE OR REPLACE, or drop it first"
            ))
            .with_state(SqlState::DUPLICATE_FUNCTION));
        }
        let kept = known.iter().filter(|one| is_function && !counts(one)).cloned();
        let all = kept.chain(overloads.iter().cloned().map(Arc::new)).collect();
        self.macros.insert(name, all);
        Ok(())
    }

    /// Removes the macros and functions in SQL of a name; with `count`, those with so many
    /// arguments. Returns whether there were any.
    pub fn undefine(&mut self, name: &str, count: Option<usize>) -> bool {
        let Some(all) = self.macros.get_mut(name) else { return false };
        let before = all.len();
        all.retain(|one| count.is_some_and(|count| one.parameters.len() != count));
        let removed = all.len() < before;
        if all.is_empty() {
            self.macros.remove(name);
        }
        removed
    }

    /// Returns the macros of a name.
    pub(crate) fn macros(&self, name: &str) -> &[Arc<Macro>] {
        self.macros.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of all macros, and the macros.
    pub(crate) fn all_macros(&self) -> impl Iterator<Item = (&String, &Vec<Arc<Macro>>)> {
        self.macros.iter()
    }

    /// Returns the error for a macro that is not there.
    pub fn unknown_macro(&self, name: &str) -> Error {
        let hint = did_you_mean(name, self.macros.keys().map(String::as_str));
        Error::semantic(format!("unknown macro '{name}'{hint}"))
            .with_state(SqlState::UNDEFINED_FUNCTION)
    }
}
