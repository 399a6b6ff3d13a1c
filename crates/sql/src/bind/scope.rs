//! Names: which columns an expression can read, from the tables of its own query and from those of
//! the queries around it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::Ident;
use tessera_optimizer::logical::relation::Name;
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::group::Groups;
use super::typed::Typed;
use super::{normalized, placed};

/// A column that expressions can read.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The names that may stand in front: an alias, or a table's name in parts.
    pub(crate) table: Rc<[Arc<str>]>,
    pub(crate) name: Arc<str>,
    pub(crate) field: Name,
    pub(crate) atom: Atom,
    /// Only read with its table's name in front: USING has merged it with another one.
    pub(crate) hidden: bool,
    /// Of a table that an outer join may supply NULLs for.
    pub(crate) extended: bool,
}

/// A column of a query's result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: Arc<str>,
    pub(crate) field: Name,
    pub(crate) atom: Atom,
    /// The literal of text that it is, which has no type yet.
    pub(crate) literal: Option<Arc<str>>,
}

/// The columns of a query, within those of the queries around it.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) columns: Rc<Vec<Column>>,
    /// The query around this one.
    pub(crate) outer: Option<&'a Scope<'a>>,
    /// The common table expressions that can be read.
    pub(crate) env: Env,
    /// Where calls of aggregate functions over these columns are collected; none where there can be
    /// no such calls.
    pub(crate) groups: Option<&'a RefCell<Groups>>,
    /// Results that can be read by their names where no column is called so.
    pub(crate) results: Vec<(Arc<str>, Typed)>,
}

/// What a name stands for.
pub(crate) struct Found {
    pub(crate) value: Typed,
    /// How many of the name's parts it takes; those behind are fields of a struct.
    pub(crate) parts: usize,
}

impl<'a> Scope<'a> {
    /// A scope without columns.
    pub(crate) fn empty(outer: Option<&'a Scope<'a>>, env: Env) -> Scope<'a> {
        Scope { columns: Rc::default(), outer, env, groups: None, results: Vec::new() }
    }

    /// The same columns and surroundings as if there were no groups.
    pub(super) fn without_groups(&self) -> Scope<'a> {
        let columns = self.columns.clone();
        Scope {
            columns,
            outer: self.outer,
            env: self.env.clone(),
            groups: None,
            results: Vec::new(),
        }
    }

    /// What a name in parts stands for: a column, or a struct's column of which the last parts are
    /// fields.
    ///
    /// # Errors
    /// No column, or more than one, is called so.
    pub(crate) fn resolve(&self, parts: &[Ident]) -> Result<Found> {
        let mut scope = Some(self);
        let mut outer = false;
        while let Some(current) = scope {
            if let Some((value, taken)) = current.local(parts)? {
                let value = if outer { as_parameter(value) } else { value };
                return Ok(Found { value, parts: taken });
            }
            scope = current.outer;
            outer = true;
        }
        Err(self.unknown(parts))
    }

    /// Whether a column of this query alone is called so, or several are.
    pub(crate) fn has(&self, name: &Ident) -> bool {
        !matches!(self.local(std::slice::from_ref(name)), Ok(None))
    }

    /// The same in this query alone.
    fn local(&self, parts: &[Ident]) -> Result<Option<(Typed, usize)>> {
        // Without regard to case only where nothing is called exactly so.
        for exact in [true, false] {
            // As many parts as possible are names of the table.
            for taken in (1..=parts.len()).rev() {
                let (column, table) = match parts[..taken].split_last() {
                    Some(split) => split,
                    None => continue,
                };
                let found = self.called(table, column, exact);
                match found[..] {
                    [] => {}
                    [only] => {
                        let value = Typed {
                            expr: Expr::Field(only.field.clone()),
                            atom: only.atom.clone(),
                            unknown: false,
                        };
                        return Ok(Some((value, taken)));
                    }
                    [..] => return Err(ambiguous(&parts[..taken], &found)),
                }
            }
            if let Some(first) = parts.first() {
                let found = self.results.iter().filter(|(name, _)| matches(first, name, exact));
                let found: Vec<&Typed> = found.map(|(_, value)| value).collect();
                match found[..] {
                    [] => {}
                    [first, ref rest @ ..] if rest.iter().all(|other| other.expr == first.expr) => {
                        return Ok(Some((first.clone(), 1)));
                    }
                    [..] => {
                        let message = format!(
                            "column {} is ambiguous: several results are called so",
                            first.value
                        );
                        return Err(placed(error(message, SqlState::AMBIGUOUS_COLUMN), first.span));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The columns of the table that a plain name stands for, where it is no column's, and whether
    /// they are of a query around this one.
    pub(crate) fn whole_row(&self, name: &Ident) -> Option<(Vec<Column>, bool)> {
        let parts = std::slice::from_ref(name);
        let is_column = self.around().any(|scope| !matches!(scope.local(parts), Ok(None)));
        if is_column { None } else { self.row_of(name) }
    }

    /// The same for `name.*`, which is no column's.
    pub(crate) fn row_of(&self, name: &Ident) -> Option<(Vec<Column>, bool)> {
        let parts = std::slice::from_ref(name);
        self.around()
            .enumerate()
            .find_map(|(depth, scope)| Some((scope.of_table(parts)?, depth > 0)))
    }

    /// This query and those around it.
    fn around(&self) -> impl Iterator<Item = &Scope<'_>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    fn called(&self, table: &[Ident], name: &Ident, exact: bool) -> Vec<&Column> {
        let is_called = |column: &&Column| {
            matches(name, &column.name, exact)
                && match table {
                    [] => !column.hidden,
                    parts => of_table(column, parts, exact),
                }
        };
        self.columns.iter().filter(is_called).collect()
    }

    /// The columns of the table called so, in order; none where no table is.
    pub(crate) fn of_table(&self, parts: &[Ident]) -> Option<Vec<Column>> {
        [true, false].into_iter().find_map(|exact| {
            let found: Vec<Column> = self
                .columns
                .iter()
                .filter(|column| of_table(column, parts, exact))
                .cloned()
                .collect();
            (!found.is_empty()).then_some(found)
        })
    }

    /// The columns that `*` stands for.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.hidden)
    }

    fn unknown(&self, parts: &[Ident]) -> Error {
        let name = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        let mut known: Vec<String> = Vec::new();
        let mut scope = Some(self);
        while let Some(current) = scope {
            for column in current.shown() {
                let text = match column.table.last() {
                    Some(table) if parts.len() > 1 => format!("{table}.{}", column.name),
                    _ => column.name.to_string(),
                };
                if !known.contains(&text) {
                    known.push(text);
                }
            }
            scope = current.outer;
        }
        let tables =
            |column: &Column| parts.len() > 1 && of_table(column, &parts[..parts.len() - 1], false);
        let has_table = parts.len() < 2 || self.any(&tables);
        let more = if known.len() > 12 { ", …" } else { "" };
        known.truncate(12);
        let hint = match known.is_empty() {
            true => "there are no columns here".to_string(),
            false => format!("there are {}{more}", known.join(", ")),
        };
        let (message, state) = match has_table {
            true => (format!("there is no column {name}; {hint}"), SqlState::UNDEFINED_COLUMN),
            false => {
                let table = parts[..parts.len() - 1].iter().map(|part| part.value.as_str());
                let table = table.collect::<Vec<_>>().join(".");
                (
                    format!("there is no table {table} in FROM here; {hint}"),
                    SqlState::UNDEFINED_TABLE,
                )
            }
        };
        let error = error(message, state);
        parts.first().map_or(error.clone(), |part| placed(error, part.span))
    }

    fn any(&self, test: &dyn Fn(&Column) -> bool) -> bool {
        self.columns.iter().any(test) || self.outer.is_some_and(|outer| outer.any(test))
    }

    /// Whether a field is one of these columns.
    pub(crate) fn has_field(&self, field: &Name) -> bool {
        self.columns.iter().any(|column| column.field == *field)
    }
}

/// The value as a query within this one reads it.
pub(crate) fn as_parameter(value: Typed) -> Typed {
    fn parameters(expr: &mut Expr) {
        if let Expr::Field(name) = expr {
            *expr = Expr::Parameter(name.clone());
            return;
        }
        expr.children_mut().into_iter().for_each(parameters);
    }
    let mut value = value;
    parameters(&mut value.expr);
    value
}

/// Whether a name as written is this one; with `exact`, only by its own case, which is lower
/// without quotes.
pub(crate) fn matches(written: &Ident, name: &str, exact: bool) -> bool {
    match exact {
        true => normalized(written) == name,
        false => {
            written.quote_style.is_none() && written.value.to_lowercase() == name.to_lowercase()
        }
    }
}

/// Whether a column is of the table that is called so; a table may be named by the last ones of its
/// names.
fn of_table(column: &Column, parts: &[Ident], exact: bool) -> bool {
    let names = &column.table;
    parts.len() <= names.len()
        && parts.iter().rev().zip(names.iter().rev()).all(|(part, name)| matches(part, name, exact))
}

fn ambiguous(parts: &[Ident], found: &[&Column]) -> Error {
    let name = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
    let qualified = found.iter().map(|column| match column.table.last() {
        Some(table) => format!("{table}.{}", column.name),
        None => column.name.to_string(),
    });
    let message = format!(
        "column {name} is ambiguous: it may be {}",
        qualified.collect::<Vec<_>>().join(" or ")
    );
    let error = error(message, SqlState::AMBIGUOUS_COLUMN);
    parts.first().map_or(error.clone(), |part| placed(error, part.span))
}

fn error(message: String, state: SqlState) -> Error {
    Error::semantic(message).with_state(state)
}
