//! Functions in FROM: rows from lists, from files, or a single row from other functions.

use std::sync::Arc;

use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    ObjectName, Spanned, TableAlias,
};
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::{Expr, FileFacts};
use tessera_types::{Atom, Error, Result, SqlState};

use super::factor::aliased;
use super::from::{FromContext, Tables, lateral_scope, one_row};
use super::list::idents;
use super::scope::{OutputColumn, Scope};
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, normalized, refuse, unsupported_at, with_span};
use crate::file_functions;

/// Functions that return a list, which becomes one row per element.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// The names of functions that become rows in FROM, other than those that read files.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SERIES.into_iter().chain(["unnest"]).chain(tessera_system_catalog::FUNCTIONS)
}

impl Binder<'_> {
    pub(super) fn table_function(
        &mut self,
        (name, args): (&ObjectName, &[FunctionArg]),
        alias: Option<&TableAlias>,
        ordinality: bool,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let [ident] = &idents(name)?[..] else {
            return Err(unsupported_at(&format!("the function {name}"), name));
        };
        let function = normalized(ident);
        let file_functions = self.catalog.file_functions();
        if let Some((_, format)) = file_functions.iter().find(|(known, _)| *known == function) {
            refuse(ordinality, "WITH ORDINALITY of a file, whose rows have no order,", name)?;
            return self.file_function((&function, format), args, alias, name);
        }
        if self.catalog.fact_functions().contains(&function.as_str()) {
            refuse(ordinality, "WITH ORDINALITY of a function of files", name)?;
            return self.fact_function(&function, args, alias, name);
        }
        if let Some(tables) = self.table_macro(&function, args, alias, context, name)? {
            return Ok(tables);
        }
        if let (Some(bound), []) = (self.system_function(&function)?, args) {
            return aliased(bound, alias, vec![function.into()]);
        }
        if function == "unnest" {
            let exprs = args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr.clone()),
                other => Err(unsupported_at(&format!("the argument {other} of unnest"), name)),
            });
            let exprs = exprs.collect::<Result<Vec<_>>>()?;
            return self.unnest(&exprs, alias, ordinality, context);
        }
        let call = call_of(name.clone(), args.to_vec());
        let lateral = lateral_scope(context, true);
        let outer = lateral.as_ref().or(context.outer);
        let (value, relation) = self.single_row_value(&call, outer, context)?;
        let list = SERIES.contains(&function.as_str());
        let column = column_name(alias, &function);
        if list {
            let lists = vec![(column, value)];
            return self.unnest_lists(lists, relation, (alias, &function), ordinality);
        }
        let value = self.finished(value)?;
        let field = self.fields.fresh(&column, value.atom.clone());
        let mut exprs = vec![(field.clone(), value.expr)];
        let mut columns =
            vec![OutputColumn { name: column, field, atom: value.atom, literal: None }];
        if ordinality {
            let (field, column) = self.ordinality();
            exprs.push((field, Expr::int64(1)));
            columns.push(column);
        }
        let relation = Relation::Map { input: Box::new(relation), exprs };
        aliased(BoundQuery { relation, columns }, alias, vec![function.into()])
    }

    /// Binds `unnest` in FROM: one row per element; several lists are unnested side by side.
    pub(super) fn unnest(
        &mut self,
        exprs: &[Ast],
        alias: Option<&TableAlias>,
        ordinality: bool,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let lateral = lateral_scope(context, true);
        let outer = lateral.as_ref().or(context.outer);
        let mut relation = one_row();
        let mut lists = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let (value, over) = self.single_row_value(expr, outer, context)?;
            match over {
                Relation::Values { .. } => {}
                other if exprs.len() == 1 => relation = other,
                _ => {
                    return Err(unsupported_at(
                        "a subquery among several arguments of unnest",
                        expr,
                    ));
                }
            }
            let name = match exprs.len() {
                1 => column_name(alias, "unnest"),
                _ => Arc::from("unnest"),
            };
            lists.push((name, self.as_list(value).map_err(|error| with_span(error, expr.span()))?));
        }
        if lists.is_empty() {
            return Err(
                Error::semantic("unnest takes a list").with_state(SqlState::UNDEFINED_FUNCTION)
            );
        }
        self.unnest_lists(lists, relation, (alias, "unnest"), ordinality)
    }

    /// Binds an expression that reads only enclosing queries; returns it and the single-row
    /// relation that it is computed over.
    fn single_row_value(
        &mut self,
        expr: &Ast,
        outer: Option<&Scope<'_>>,
        context: FromContext<'_, '_>,
    ) -> Result<(TypedExpr, Relation)> {
        let scope = Scope::empty(outer, context.env.clone());
        let mut steps = Vec::new();
        let place = &mut Place { scope: &scope, steps: &mut steps, clause: "FROM", unnests: None };
        let value = self.expr(expr, place)?;
        Ok((value, super::steps::apply(one_row(), steps)))
    }

    fn as_list(&self, value: TypedExpr) -> Result<TypedExpr> {
        match &value.atom {
            Atom::List(_) => Ok(value),
            Atom::Null => self.cast_to(value, &list_of(Atom::Int32), false),
            other => {
                let message = format!("unnest takes a list, not {other}");
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    fn unnest_lists(
        &mut self,
        lists: Vec<(Arc<str>, TypedExpr)>,
        relation: Relation,
        (alias, function): (Option<&TableAlias>, &str),
        ordinality: bool,
    ) -> Result<Tables> {
        let mut exprs: Vec<(Name, Expr)> = Vec::new();
        let (mut pairs, mut columns) = (Vec::new(), Vec::new());
        for (name, value) in lists {
            let value = self.finished(value)?;
            let Atom::List(slot) = &value.atom else {
                return Err(Error::internal("unnest without a list"));
            };
            let atom = slot.atom.clone();
            let list = self.fields.fresh("list", value.atom.clone());
            let element = self.fields.fresh(&name, atom.clone());
            exprs.push((list.clone(), value.expr));
            pairs.push((list, element.clone()));
            columns.push(OutputColumn { name, field: element, atom, literal: None });
        }
        let mut input = Relation::Map { input: Box::new(relation), exprs };
        if ordinality {
            let (numbered, pair, column) = self.numbered(input, &pairs)?;
            input = numbered;
            pairs.push(pair);
            columns.push(column);
        }
        let input = Box::new(input);
        let relation = Relation::Unnest { input, lists: pairs, outer: false };
        aliased(BoundQuery { relation, columns }, alias, vec![function.into()])
    }

    /// Binds a function that reads files, such as `read_csv('path', delim = ';')`.
    fn file_function(
        &mut self,
        (function, format): (&str, &str),
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        name: &ObjectName,
    ) -> Result<Tables> {
        let args = self.without_parameters(args)?;
        let (paths, options) = file_functions::arguments(function, &args)?;
        let table = self
            .catalog
            .files(&paths, format, &options)
            .map_err(|error| with_span(error, name.span()))?;
        let Some(table) = table else {
            return Err(Error::internal(format!("{function} has no format {format}")));
        };
        self.scanned(table, function, alias, vec![function.into()])
    }
}

impl Binder<'_> {
    /// Binds a function that says something about files, such as `glob('*.csv')`.
    fn fact_function(
        &mut self,
        function: &str,
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        name: &ObjectName,
    ) -> Result<Tables> {
        let args = self.without_parameters(args)?;
        let (paths, options) = file_functions::arguments(function, &args)?;
        let facts = self.catalog.facts(function, &paths, &options);
        let FileFacts { columns, rows } = facts.map_err(|error| with_span(error, name.span()))?;
        let bound = self.constant_rows(columns, rows);
        aliased(bound, alias, vec![function.into()])
    }
}

/// Returns the type of a list of nullable elements.
pub(super) fn list_of(atom: Atom) -> Atom {
    Atom::List(Box::new(tessera_types::Slot { atom, nullable: true }))
}

/// Names the single column of a function: the table alias, or the function's name.
fn column_name(alias: Option<&TableAlias>, function: &str) -> Arc<str> {
    match alias {
        Some(alias) => normalized(&alias.name).into(),
        None => function.into(),
    }
}

/// Builds the syntax tree of a plain function call.
pub(super) fn call_of(name: ObjectName, args: Vec<FunctionArg>) -> Ast {
    let args = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Ast::Function(Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
