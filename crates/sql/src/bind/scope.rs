//! Scopes: the columns that an expression can read, from its own query and from enclosing queries.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::Ident;
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_optimizer::logical::relation::Name;
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState, suggest};

use super::cte::Env;
use super::group::Groups;
use super::typed::TypedExpr;
use super::window::Windows;
use super::{normalized, with_span};

/// A column that expressions can read.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The qualifier: an alias, or the parts of a table's name.
    pub(crate) table: Rc<[Arc<str>]>,
    pub(crate) name: Arc<str>,
    pub(crate) field: Name,
    pub(crate) atom: Atom,
    /// Whether the column needs a qualifier, because USING merged it with another column.
    pub(crate) hidden: bool,
    /// Whether an outer join can set the column to NULL.
    pub(crate) extended: bool,
}

/// A column of a query's result.
#[derive(Debug, Clone)]
pub(crate) struct OutputColumn {
    pub(crate) name: Arc<str>,
    pub(crate) field: Name,
    pub(crate) atom: Atom,
    /// The text of an untyped string literal, if the column is one.
    pub(crate) literal: Option<Arc<str>>,
}

/// The columns of a query, nested in the scopes of enclosing queries.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) columns: Rc<Vec<Column>>,
    /// The enclosing query.
    pub(crate) outer: Option<&'a Scope<'a>>,
    /// The visible common table expressions.
    pub(crate) env: Env,
    /// The collector of aggregate calls over these columns; `None` where aggregates are not
    /// allowed.
    pub(crate) groups: Option<&'a RefCell<Groups>>,
    /// The collector of window function calls; `None` where they are not allowed.
    pub(crate) windows: Option<&'a RefCell<Windows>>,
    /// Results that can be read by alias where no column has that name.
    pub(crate) results: Vec<(Arc<str>, TypedExpr)>,
}

/// A resolved name.
pub(crate) struct ResolvedName {
    pub(crate) value: TypedExpr,
    /// The number of name parts that the value uses; the remaining parts are struct fields.
    pub(crate) parts: usize,
}

impl<'a> Scope<'a> {
    /// Creates a scope without columns.
    pub(crate) fn empty(outer: Option<&'a Scope<'a>>, env: Env) -> Scope<'a> {
        Scope {
            columns: Rc::default(),
            outer,
            env,
            groups: None,
            windows: None,
            results: Vec::new(),
        }
    }

    /// Returns the same scope without a collector of aggregate calls.
    pub(super) fn without_groups(&self) -> Scope<'a> {
        let columns = self.columns.clone();
        Scope {
            columns,
            outer: self.outer,
            env: self.env.clone(),
            groups: None,
            windows: None,
            results: Vec::new(),
        }
    }

    /// Returns the same scope without a collector of window function calls.
    pub(super) fn without_windows(&self) -> Scope<'a> {
        Scope {
            columns: self.columns.clone(),
            outer: self.outer,
            env: self.env.clone(),
            groups: self.groups,
            windows: None,
            results: self.results.clone(),
        }
    }

    /// Resolves a qualified name: a column, or a struct column followed by field names.
    ///
    /// # Errors
    /// The column is unknown or ambiguous.
    pub(crate) fn resolve(&self, parts: &[Ident]) -> Result<ResolvedName> {
        let mut scope = Some(self);
        let mut outer = false;
        while let Some(current) = scope {
            if let Some((value, taken)) = current.local(parts)? {
                let value = if outer { as_parameter(value) } else { value };
                return Ok(ResolvedName { value, parts: taken });
            }
            scope = current.outer;
            outer = true;
        }
        Err(self.unknown(parts))
    }

    /// Returns whether this query itself has at least one column with this name.
    pub(crate) fn has(&self, name: &Ident) -> bool {
        !matches!(self.local(std::slice::from_ref(name)), Ok(None))
    }

    /// Resolves a name in this query only.
    fn local(&self, parts: &[Ident]) -> Result<Option<(TypedExpr, usize)>> {
        // Ignore case only if there is no exact match.
        for exact in [true, false] {
            // Prefer the longest table qualifier.
            for taken in (1..=parts.len()).rev() {
                let (column, table) = match parts[..taken].split_last() {
                    Some(split) => split,
                    None => continue,
                };
                let found = self.find_columns(table, column, exact);
                match found[..] {
                    [] => {}
                    [only] => {
                        let value = TypedExpr {
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
                let found: Vec<&TypedExpr> = found.map(|(_, value)| value).collect();
                match found[..] {
                    [] => {}
                    [first, ref rest @ ..] if rest.iter().all(|other| other.expr == first.expr) => {
                        return Ok(Some((first.clone(), 1)));
                    }
                    [..] => {
                        let message = format!(
                            "column {} is ambiguous: several results have this name",
                            first.value
                        );
                        return Err(with_span(
                            error(message, SqlState::AMBIGUOUS_COLUMN),
                            first.span,
                        ));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the columns of the table with this name unless a column has the same name, and
    /// whether the table belongs to an enclosing query.
    pub(crate) fn whole_row(&self, name: &Ident) -> Option<(Vec<Column>, bool)> {
        let parts = std::slice::from_ref(name);
        let is_column = self.enclosing().any(|scope| !matches!(scope.local(parts), Ok(None)));
        if is_column { None } else { self.row_of(name) }
    }

    /// Like `whole_row` for `name.*`, which cannot be a column.
    pub(crate) fn row_of(&self, name: &Ident) -> Option<(Vec<Column>, bool)> {
        let parts = std::slice::from_ref(name);
        self.enclosing()
            .enumerate()
            .find_map(|(depth, scope)| Some((scope.of_table(parts)?, depth > 0)))
    }

    /// Returns this scope and all enclosing scopes.
    fn enclosing(&self) -> impl Iterator<Item = &Scope<'_>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    fn find_columns(&self, table: &[Ident], name: &Ident, exact: bool) -> Vec<&Column> {
        let is_called = |column: &&Column| {
            matches(name, &column.name, exact)
                && match table {
                    [] => !column.hidden,
                    parts => of_table(column, parts, exact),
                }
        };
        self.columns.iter().filter(is_called).collect()
    }

    /// Returns the columns of the table with this name in order, or `None` if the table is unknown.
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

    /// Returns the columns that `*` expands to.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.hidden)
    }

    /// Returns the error for an unknown column, with the nearest name and the readable columns.
    fn unknown(&self, parts: &[Ident]) -> Error {
        let Some((last, qualifier)) = parts.split_last() else {
            return Error::internal("a name without parts");
        };
        let in_table = |column: &&Column| of_table(column, qualifier, false);
        let readable = || self.enclosing().flat_map(Scope::visible);
        if qualifier.is_empty() {
            return unknown_column(last, &of_one_table(&self.columns), readable());
        }
        if !readable().any(|column| in_table(&column)) {
            return self.unknown_table(qualifier);
        }
        let table = format!(" of table {}", shown(qualifier));
        let place = qualifier.first().unwrap_or(last).span;
        unknown_column_at(last, place, &table, readable().filter(in_table))
    }

    /// Returns the error for a qualifier that no table has, with the nearest name and the tables.
    pub(crate) fn unknown_table(&self, parts: &[Ident]) -> Error {
        let mut known: Vec<&str> = Vec::new();
        for column in self.enclosing().flat_map(Scope::visible) {
            match column.table.last() {
                Some(table) if !known.contains(&&**table) => known.push(table),
                _ => {}
            }
        }
        let name = parts.last().map_or("", |part| part.value.as_str());
        let hint = suggest(name, "known tables are", &known);
        let message = format!("unknown table '{}' in FROM{hint}", shown(parts));
        let error = error(message, SqlState::UNDEFINED_TABLE);
        parts.first().map_or(error.clone(), |part| with_span(error, part.span))
    }

    /// Returns whether a field is a column of this scope.
    pub(crate) fn has_field(&self, field: &Name) -> bool {
        self.columns.iter().any(|column| column.field == *field)
    }
}

/// Converts a value to the form that a nested query reads: fields become parameters.
pub(crate) fn as_parameter(value: TypedExpr) -> TypedExpr {
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

/// Returns whether an identifier matches a name. With `exact`, case matters: unquoted identifiers
/// count as lower case. Otherwise unquoted identifiers match in any case.
pub(crate) fn matches(written: &Ident, name: &str, exact: bool) -> bool {
    match exact {
        true => normalized(written) == name,
        false => {
            written.quote_style.is_none() && written.value.to_lowercase() == name.to_lowercase()
        }
    }
}

/// Returns whether a column belongs to a table; trailing parts of the table's name suffice.
fn of_table(column: &Column, parts: &[Ident], exact: bool) -> bool {
    let names = &column.table;
    parts.len() <= names.len()
        && parts.iter().rev().zip(names.iter().rev()).all(|(part, name)| matches(part, name, exact))
}

fn ambiguous(parts: &[Ident], found: &[&Column]) -> Error {
    let name = shown(parts);
    let qualified = found.iter().map(|column| match column.table.last() {
        Some(table) => format!("{table}.{}", column.name),
        None => column.name.to_string(),
    });
    let message = format!(
        "column {name} is ambiguous: it may be {}",
        qualified.collect::<Vec<_>>().join(" or ")
    );
    let error = error(message, SqlState::AMBIGUOUS_COLUMN);
    parts.first().map_or(error.clone(), |part| with_span(error, part.span))
}

/// Returns the error for a column that is not among `known`; `of` says where it was looked for.
pub(super) fn unknown_column<'c>(
    name: &Ident,
    of: &str,
    known: impl IntoIterator<Item = &'c Column>,
) -> Error {
    unknown_column_at(name, name.span, of, known)
}

fn unknown_column_at<'c>(
    name: &Ident,
    place: TokenSpan,
    of: &str,
    known: impl IntoIterator<Item = &'c Column>,
) -> Error {
    let mut names: Vec<&str> = Vec::new();
    for column in known {
        if !names.contains(&&*column.name) {
            names.push(&column.name);
        }
    }
    let hint = match names.is_empty() {
        true => "; no columns can be read here".to_string(),
        false => suggest(&name.value, "known columns are", &names),
    };
    let message = format!("unknown column '{}'{of}{hint}", name.value);
    with_span(error(message, SqlState::UNDEFINED_COLUMN), place)
}

/// Returns ` of table t` if all columns are of one table that has a name.
pub(super) fn of_one_table(columns: &[Column]) -> String {
    let mut tables = columns.iter().map(|column| &column.table);
    match tables.next() {
        Some(first) if !first.is_empty() && tables.all(|table| table == first) => {
            format!(" of table {}", first.join("."))
        }
        _ => String::new(),
    }
}

/// Returns a qualified name as it is written, without quotes.
pub(super) fn shown(parts: &[Ident]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")
}

fn error(message: String, state: SqlState) -> Error {
    Error::semantic(message).with_state(state)
}
