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
use super::{normalized, row_numbers, with_span};

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
    /// Whether the column is found only where nothing else has its name, such as `rowid`.
    pub(crate) pseudo: bool,
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
    /// The parameters of the lambdas around the expression, which hide columns.
    pub(crate) parameters: Vec<Parameter>,
    /// Results that can be read by alias where no column has that name.
    pub(crate) results: Rc<Vec<ResultAlias>>,
    /// The results that the clause can read.
    pub(crate) readable: Origin,
}

/// A parameter of a lambda.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: Arc<str>,
    pub(crate) value: TypedExpr,
}

/// A result of the SELECT list with an alias, which later items and clauses can read.
#[derive(Debug, Clone)]
pub(crate) struct ResultAlias {
    pub(crate) name: Arc<str>,
    pub(crate) value: TypedExpr,
    pub(crate) origin: Origin,
}

/// What computes a result, in the order of computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The columns of FROM.
    Columns,
    /// The groups and their aggregates, or a step above them.
    Groups,
    /// A window function.
    Windows,
    /// `unnest` in the SELECT list.
    Unnest,
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
            parameters: Vec::new(),
            results: Rc::default(),
            readable: Origin::Unnest,
        }
    }

    /// Creates a scope without columns, in which the arguments of a macro can be read.
    pub(crate) fn of_arguments(arguments: Vec<(Arc<str>, TypedExpr)>) -> Scope<'a> {
        let mut scope = Scope::empty(None, Env::default());
        let origin = Origin::Columns;
        let result = |(name, value)| ResultAlias { name, value, origin };
        scope.results = Rc::new(arguments.into_iter().map(result).collect());
        scope
    }

    /// Adds a result that later items and clauses can read.
    pub(super) fn add_result(&mut self, name: &str, value: TypedExpr, origin: Origin) {
        let result = ResultAlias { name: name.into(), value, origin };
        Rc::make_mut(&mut self.results).push(result);
    }

    /// Returns the scope of the arguments of an aggregate function.
    pub(super) fn without_groups(&self) -> Scope<'a> {
        let readable = self.readable.min(Origin::Columns);
        Scope { groups: None, windows: None, parameters: Vec::new(), readable, ..self.copy() }
    }

    /// Returns the scope of HAVING, or of the arguments and keys of a window function.
    pub(super) fn without_windows(&self) -> Scope<'a> {
        let readable = self.readable.min(Origin::Groups);
        Scope { windows: None, parameters: Vec::new(), readable, ..self.copy() }
    }

    /// Returns the scope of QUALIFY.
    pub(super) fn without_unnest(&self) -> Scope<'a> {
        Scope { readable: self.readable.min(Origin::Windows), ..self.copy() }
    }

    /// Returns the scope of the body of a lambda.
    pub(super) fn with_parameters(&self, parameters: Vec<Parameter>) -> Scope<'a> {
        let mut scope = self.copy();
        // Inner parameters hide outer ones.
        scope.parameters.splice(0..0, parameters);
        scope
    }

    fn copy(&self) -> Scope<'a> {
        Scope {
            columns: self.columns.clone(),
            outer: self.outer,
            env: self.env.clone(),
            groups: self.groups,
            windows: self.windows,
            parameters: self.parameters.clone(),
            results: self.results.clone(),
            readable: self.readable,
        }
    }

    /// Resolves a name: a column, or a result with an alias.
    ///
    /// # Errors
    /// The name is unknown or ambiguous.
    pub(crate) fn resolve(&self, parts: &[Ident]) -> Result<ResolvedName> {
        match self.column(parts)? {
            Some(found) => Ok(found),
            None => self.alias(parts),
        }
    }

    /// Resolves a qualified name: a column, or a struct column followed by field names. `None` if
    /// no column has this name.
    ///
    /// # Errors
    /// The column is ambiguous.
    pub(crate) fn column(&self, parts: &[Ident]) -> Result<Option<ResolvedName>> {
        for (depth, scope) in self.enclosing().enumerate() {
            let outer = depth > 0;
            if let Some(first) = parts.first()
                && let Some(parameter) = scope.parameter(first)
            {
                if outer {
                    let message =
                        format!("a subquery in a lambda cannot read the parameter {}", first.value);
                    return Err(with_span(Error::unsupported(message), first.span));
                }
                return Ok(Some(ResolvedName { value: parameter.value.clone(), parts: 1 }));
            }
            if let Some((value, taken)) = scope.local(parts)? {
                let value = if outer { as_parameter(value) } else { value };
                return Ok(Some(ResolvedName { value, parts: taken }));
            }
        }
        Ok(None)
    }

    /// Resolves a name that no column has: a result with an alias, possibly followed by field
    /// names.
    ///
    /// # Errors
    /// The alias is unknown, or computed too late to be read.
    pub(crate) fn alias(&self, parts: &[Ident]) -> Result<ResolvedName> {
        let Some(first) = parts.first() else { return Err(self.unknown(parts)) };
        for (depth, scope) in self.enclosing().enumerate() {
            let Some(result) = scope.result(first) else { continue };
            let outer = depth > 0;
            let readable = match outer {
                true => scope.readable.min(Origin::Windows),
                false => scope.readable,
            };
            if result.origin > readable {
                return Err(with_span(too_late(result), first.span));
            }
            let value = result.value.clone();
            let value = if outer { as_parameter(value) } else { value };
            return Ok(ResolvedName { value, parts: 1 });
        }
        match self.pseudo_column(first)? {
            Some(value) => Ok(ResolvedName { value, parts: 1 }),
            None => Err(self.unknown(parts)),
        }
    }

    fn parameter(&self, name: &Ident) -> Option<&Parameter> {
        let find = |exact| self.parameters.iter().find(|known| matches(name, &known.name, exact));
        find(true).or_else(|| find(false))
    }

    /// Finds a result of this query by its alias; the last one if there are several, as in DuckDB.
    fn result(&self, name: &Ident) -> Option<&ResultAlias> {
        let mut last = self.results.iter().rev();
        let exact = last.clone().find(|known| matches(name, &known.name, true));
        exact.or_else(|| last.find(|known| matches(name, &known.name, false)))
    }

    /// Finds an argument of the innermost macro that has one of this name.
    pub(crate) fn macro_argument(&self, name: &str) -> Option<TypedExpr> {
        self.enclosing().enumerate().find_map(|(depth, scope)| {
            let found = scope.results.iter().find(|known| &*known.name == name)?;
            let value = found.value.clone();
            Some(if depth > 0 { as_parameter(value) } else { value })
        })
    }

    /// Returns the arguments of the macro whose body contains this scope.
    pub(crate) fn macro_arguments(&self) -> Vec<(Arc<str>, TypedExpr)> {
        let outermost = self.enclosing().last().filter(|scope| scope.columns.is_empty());
        let arguments = outermost.into_iter().flat_map(|scope| scope.results.iter());
        arguments.map(|result| (result.name.clone(), result.value.clone())).collect()
    }

    /// Returns the constants that can be read by name and belong to enclosing queries or macros.
    pub(crate) fn outer_constants(&self) -> Vec<(Arc<str>, TypedExpr)> {
        let results = self.enclosing().skip(1).flat_map(|scope| scope.results.iter());
        let constants = results.filter(|result| result.value.expr.fields().is_empty());
        constants.map(|result| (result.name.clone(), result.value.clone())).collect()
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
                    [only] => return Ok(Some((read(only), taken))),
                    [..] => return Err(ambiguous(&parts[..taken], &found)),
                }
            }
        }
        Ok(None)
    }

    /// Returns the columns of the table with this name unless a column has the same name, and
    /// whether the table belongs to an enclosing query.
    pub(crate) fn whole_row(&self, name: &Ident) -> Option<(Vec<Column>, bool)> {
        let parts = std::slice::from_ref(name);
        let is_column = self.enclosing().any(|scope| {
            scope.parameter(name).is_some() || !matches!(scope.local(parts), Ok(None))
        });
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
    pub(super) fn enclosing(&self) -> impl Iterator<Item = &Scope<'_>> {
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
                .filter(|column| !column.pseudo && of_table(column, parts, exact))
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

/// Returns the value of a column.
pub(super) fn read(column: &Column) -> TypedExpr {
    TypedExpr { expr: Expr::Field(column.field.clone()), atom: column.atom.clone(), unknown: false }
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

/// Returns the error for an alias of a value that is computed later than the clause that reads it.
fn too_late(result: &ResultAlias) -> Error {
    let (what, state) = match result.origin {
        Origin::Unnest => ("of unnest", SqlState::FEATURE_NOT_SUPPORTED),
        Origin::Windows => ("of a window function", SqlState::WINDOWING_ERROR),
        _ => ("of an aggregate or a subquery", SqlState::GROUPING_ERROR),
    };
    error(format!("the result {} {what} cannot be read here; use a subquery", result.name), state)
}

pub(super) fn ambiguous(parts: &[Ident], found: &[&Column]) -> Error {
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
        _ if row_numbers::is_name(name) => row_numbers::HINT.to_string(),
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
