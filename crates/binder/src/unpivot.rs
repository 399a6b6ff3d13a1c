//! UNPIVOT: a row for each of several columns.
//!
//! Each row gets a list of names and a list of values, and `Unnest` makes a row of each element.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, ExprWithAlias, Ident, Spanned, UnpivotQuery};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result};

use super::from::{FromContext, Tables};
use super::scope::{OutputColumn, Scope};
use super::steps::with_fields;
use super::table_function::list_of;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, normalized, unsupported_at, with_span};

/// The parts of UNPIVOT.
struct Unpivot {
    sources: Vec<Source>,
    /// The name of the column that has the names.
    name: String,
    /// The names of the columns that have the values.
    values: Vec<String>,
    include_nulls: bool,
    place: TokenSpan,
}

/// The values of one row, with their name.
struct Source {
    name: String,
    values: Vec<TypedExpr>,
}

impl Binder<'_> {
    /// Binds the statement form.
    pub(super) fn unpivot_query(
        &mut self,
        query: &UnpivotQuery,
        outer: Option<&Scope<'_>>,
        env: &super::cte::Env,
    ) -> Result<BoundQuery> {
        let context = FromContext { outer, env, before: &[] };
        let tables = self.with_joins(&query.table, context)?;
        let scope = unpivot_scope(&tables, context);
        let mut sources = Vec::new();
        for item in self.items(&query.on, &scope)? {
            let written = item.expr().cloned();
            let name = item.has_alias.then(|| item.name.to_string());
            sources.push(match (&written, item.known()) {
                (Some(expr), _) => self.unpivot_source(expr, name, &scope)?,
                (None, Some(value)) => {
                    Source { name: item.name.to_string(), values: vec![value.clone()] }
                }
                (None, None) => return Err(Error::internal("an item of UNPIVOT without a value")),
            });
        }
        let values: Vec<String> = match query.values.as_slice() {
            [] => vec!["value".to_string()],
            names => names.iter().map(normalized).collect(),
        };
        let unpivot = Unpivot {
            sources,
            name: query.name.as_ref().map_or_else(|| "name".to_string(), normalized),
            values,
            include_nulls: query.include_nulls,
            place: query.token.0.span,
        };
        self.unpivot(tables, unpivot)
    }

    /// Binds the form in FROM.
    pub(super) fn unpivot_factor(
        &mut self,
        tables: Tables,
        (value, name): (&Ast, &Ident),
        columns: &[ExprWithAlias],
        (include_nulls, context): (bool, FromContext<'_, '_>),
    ) -> Result<BoundQuery> {
        let scope = unpivot_scope(&tables, context);
        let mut sources = Vec::with_capacity(columns.len());
        for ExprWithAlias { expr, alias } in columns {
            sources.push(self.unpivot_source(expr, alias.as_ref().map(normalized), &scope)?);
        }
        let values = match value {
            Ast::Tuple(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        let column_name = |value: &Ast| match value {
            Ast::Identifier(name) => Ok(normalized(name)),
            other => {
                let message = format!("{other} is not a name for the values of UNPIVOT");
                Err(with_span(Error::semantic(message), other))
            }
        };
        let unpivot = Unpivot {
            sources,
            name: normalized(name),
            values: values.iter().map(column_name).collect::<Result<_>>()?,
            include_nulls,
            place: value.span(),
        };
        self.unpivot(tables, unpivot)
    }

    /// Binds a column of UNPIVOT, or several in parentheses.
    fn unpivot_source(
        &mut self,
        expr: &Ast,
        alias: Option<String>,
        scope: &Scope<'_>,
    ) -> Result<Source> {
        let parts = match expr {
            Ast::Tuple(parts) => parts.as_slice(),
            part => std::slice::from_ref(part),
        };
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for part in parts {
            let mut steps = Vec::new();
            let place = &mut Place { scope, steps: &mut steps, clause: "UNPIVOT", unnests: None };
            let value = self.expr(part, place)?;
            if !steps.is_empty() {
                return Err(unsupported_at("a subquery in UNPIVOT", part));
            }
            let value = self.finished(value)?;
            let read = value.expr.fields();
            let column = scope.visible().find(|column| read.contains(&column.field));
            let Some(column) = column else {
                let message = format!("{part} reads no column of the table of UNPIVOT");
                return Err(with_span(Error::semantic(message), part));
            };
            names.push(column.name.to_string());
            values.push(value);
        }
        Ok(Source { name: alias.unwrap_or_else(|| names.join("_")), values })
    }

    fn unpivot(&mut self, tables: Tables, unpivot: Unpivot) -> Result<BoundQuery> {
        let Unpivot { sources, name, values: value_names, include_nulls, place } = unpivot;
        let odd = sources.iter().find(|source| source.values.len() != value_names.len());
        if let Some(odd) = odd {
            let message = format!(
                "UNPIVOT names {} columns for the values, and {} has {} values",
                value_names.len(),
                odd.name,
                odd.values.len()
            );
            return Err(with_span(Error::semantic(message), place));
        }
        let read = sources.iter().flat_map(|source| &source.values);
        let read: HashSet<Name> = read.flat_map(|value| value.expr.fields()).collect();
        let kept = tables.columns.iter().filter(|column| !column.hidden);
        let mut columns: Vec<OutputColumn> = kept
            .filter(|column| !read.contains(&column.field))
            .map(|column| OutputColumn {
                name: column.name.clone(),
                field: column.field.clone(),
                atom: column.atom.clone(),
                literal: None,
            })
            .collect();
        let names = sources.iter().map(|source| Scalar::String(source.name.as_str().into()));
        let names_atom = list_of(Atom::String);
        let names = Expr::Constant(Scalar::Nested(names.collect()), names_atom.clone());
        let mut lists = vec![(name, TypedExpr::new(names, names_atom), Atom::String)];
        for (position, name) in value_names.into_iter().enumerate() {
            let values = sources.iter().map(|source| source.values[position].clone()).collect();
            let (values, atom) =
                self.unified(values, "UNPIVOT").map_err(|error| with_span(error, place))?;
            let list = self.call("make_array", values)?;
            lists.push((name, self.finished(list)?, atom));
        }
        let (mut exprs, mut pairs, mut not_null) = (Vec::new(), Vec::new(), Vec::new());
        for (position, (name, list, atom)) in lists.into_iter().enumerate() {
            let field = self.fields.fresh("list", list.atom.clone());
            let element = self.fields.fresh(&name, atom.clone());
            exprs.push((field.clone(), list.expr));
            pairs.push((field, element.clone()));
            if position > 0 {
                let is_null = Expr::IsNull(Box::new(Expr::Field(element.clone())));
                not_null.push(Expr::Not(Box::new(is_null)));
            }
            let name: Arc<str> = name.into();
            columns.push(OutputColumn { name, field: element, atom, literal: None });
        }
        let input = Box::new(with_fields(tables.relation, exprs));
        let mut relation = Relation::Unnest { input, lists: pairs, outer: false };
        if !include_nulls {
            relation = relation.filtered(not_null);
        }
        let mut bound = BoundQuery { relation, columns };
        super::pivot_select::number_repeated(&mut bound);
        Ok(bound)
    }
}

/// Returns the scope of the columns of UNPIVOT.
fn unpivot_scope<'s>(tables: &Tables, context: FromContext<'s, 's>) -> Scope<'s> {
    let mut scope = Scope::empty(context.outer, context.env.clone());
    scope.columns = Rc::new(tables.columns.clone());
    scope
}
