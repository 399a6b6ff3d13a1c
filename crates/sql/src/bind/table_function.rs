//! Functions in FROM: a row for each element of a list, files, and the only row of other functions.

use std::sync::Arc;

use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    ObjectName, Spanned, TableAlias,
};
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::factor::aliased;
use super::from::{Around, Tables, one_row, surroundings};
use super::list::idents;
use super::scope::{Output, Scope};
use super::typed::Typed;
use super::{Binder, Bound, Place, normalized, placed, refuse_at};
use crate::file_functions;

/// Functions of which each element of the list that they give is a row.
const SERIES: [&str; 2] = ["generate_series", "range"];

impl Binder<'_> {
    pub(super) fn table_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let [ident] = &idents(name)?[..] else {
            return Err(refuse_at(&format!("the function {name}"), name));
        };
        let function = normalized(ident);
        if file_functions::reads_files(&function) {
            return self.files(&function, args, alias, name);
        }
        if function == "unnest" {
            let exprs = args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr.clone()),
                other => Err(refuse_at(&format!("the argument {other} of unnest"), name)),
            });
            let exprs = exprs.collect::<Result<Vec<_>>>()?;
            return self.unnest(&exprs, alias, around);
        }
        let call = call_of(name.clone(), args.to_vec());
        let lateral = surroundings(around, true);
        let outer = lateral.as_ref().or(around.outer);
        let (value, relation) = self.of_one_row(&call, outer, around)?;
        let list = SERIES.contains(&function.as_str());
        let column = column_name(alias, &function);
        if list {
            return self.unnested_lists(vec![(column, value)], relation, alias, &function);
        }
        let value = self.finished(value)?;
        let field = self.fields.fresh(&column, value.atom.clone());
        let exprs = vec![(field.clone(), value.expr)];
        let columns = vec![Output { name: column, field, atom: value.atom, literal: None }];
        let relation = Relation::Map { input: Box::new(relation), exprs };
        aliased(Bound { relation, columns }, alias, vec![function.into()])
    }

    /// A row for each element of lists, side by side.
    pub(super) fn unnest(
        &mut self,
        exprs: &[Ast],
        alias: Option<&TableAlias>,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let lateral = surroundings(around, true);
        let outer = lateral.as_ref().or(around.outer);
        let mut relation = one_row();
        let mut lists = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let (value, over) = self.of_one_row(expr, outer, around)?;
            match over {
                Relation::Values { .. } => {}
                other if exprs.len() == 1 => relation = other,
                _ => return Err(refuse_at("a subquery beside other arguments of unnest", expr)),
            }
            let name = match exprs.len() {
                1 => column_name(alias, "unnest"),
                _ => Arc::from("unnest"),
            };
            lists.push((name, self.as_list(value).map_err(|error| placed(error, expr.span()))?));
        }
        if lists.is_empty() {
            return Err(
                Error::semantic("unnest takes a list").with_state(SqlState::UNDEFINED_FUNCTION)
            );
        }
        self.unnested_lists(lists, relation, alias, "unnest")
    }

    /// An expression over no row but those of queries around it, and the relation over which it is
    /// computed.
    fn of_one_row(
        &mut self,
        expr: &Ast,
        outer: Option<&Scope<'_>>,
        around: Around<'_, '_>,
    ) -> Result<(Typed, Relation)> {
        let scope = Scope::empty(outer, around.env.clone());
        let mut steps = Vec::new();
        let place = &mut Place { scope: &scope, steps: &mut steps, clause: "FROM", unnests: None };
        let value = self.expr(expr, place)?;
        Ok((value, super::steps::apply(one_row(), steps)))
    }

    fn as_list(&self, value: Typed) -> Result<Typed> {
        match &value.atom {
            Atom::List(_) => Ok(value),
            Atom::Null => self.cast_to(value, &list_of(Atom::Int32), false),
            other => {
                let message = format!("unnest takes a list, not {other}");
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    fn unnested_lists(
        &mut self,
        lists: Vec<(Arc<str>, Typed)>,
        relation: Relation,
        alias: Option<&TableAlias>,
        function: &str,
    ) -> Result<Tables> {
        let mut exprs: Vec<(Name, Expr)> = Vec::new();
        let (mut pairs, mut columns) = (Vec::new(), Vec::new());
        for (name, value) in lists {
            let value = self.finished(value)?;
            let Atom::List(slot) = &value.atom else {
                return Err(Error::internal("no list to unnest"));
            };
            let atom = slot.atom.clone();
            let list = self.fields.fresh("list", value.atom.clone());
            let element = self.fields.fresh(&name, atom.clone());
            exprs.push((list.clone(), value.expr));
            pairs.push((list, element.clone()));
            columns.push(Output { name, field: element, atom, literal: None });
        }
        let input = Box::new(Relation::Map { input: Box::new(relation), exprs });
        let relation = Relation::Unnest { input, lists: pairs, outer: false };
        aliased(Bound { relation, columns }, alias, vec![function.into()])
    }

    /// `read_csv('path', delim = ';')` and its like.
    fn files(
        &mut self,
        function: &str,
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        name: &ObjectName,
    ) -> Result<Tables> {
        let (path, options) = file_functions::arguments(function, args)?;
        let format = file_functions::format_of(function);
        let table = self
            .catalog
            .files(&path, format, &options)
            .map_err(|error| placed(error, name.span()))?;
        let Some(table) = table else {
            let error = Error::semantic(format!("{function}('{path}'): there is no such file"));
            return Err(placed(error, name.span()));
        };
        let bound = self.scan(table, function);
        aliased(bound, alias, vec![function.into()])
    }
}

/// The type of a list.
pub(super) fn list_of(atom: Atom) -> Atom {
    Atom::List(Box::new(tessera_types::Slot { atom, nullable: true }))
}

/// The only column of a function is called like the relation, and that like the function.
fn column_name(alias: Option<&TableAlias>, function: &str) -> Arc<str> {
    match alias {
        Some(alias) => normalized(&alias.name).into(),
        None => function.into(),
    }
}

/// A call of a function, with nothing besides its arguments.
fn call_of(name: ObjectName, args: Vec<FunctionArg>) -> Ast {
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
