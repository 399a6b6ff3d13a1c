//! PIVOT: a column for each value of a column.
//!
//! PIVOT is a grouping whose aggregates have a FILTER: `PIVOT t ON c IN ('a') USING sum(x) GROUP BY
//! g` is `SELECT g, sum(x) FILTER (WHERE c = 'a') AS a FROM t GROUP BY g`, and is bound as such.
//! Without IN, a query finds the values first.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, ExprWithAlias, GroupByExpr, Ident, PivotQuery, PivotValueSource,
    Query, Spanned, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result};

use super::cte::{Env, Meaning};
use super::from::{FromContext, Tables};
use super::pivot_cells::PivotInput;
use super::pivot_select::{
    INPUT, add_filter, aggregate_items, aggregates, binary, column_name, equal, input_column, item,
    number_repeated, string, template,
};
use super::scope::{Column, Scope};
use super::steps::with_fields;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, normalized, unsupported_at, with_span};

/// The maximum number of columns that PIVOT makes.
pub(super) const PIVOT_COLUMNS_MAX: usize = 10_000;

/// The parts of PIVOT.
pub(super) struct Pivot<'q> {
    pub(super) on: Vec<PivotOn<'q>>,
    pub(super) aggregates: &'q [ExprWithAlias],
    /// The columns of GROUP BY; empty for all columns that PIVOT does not read.
    pub(super) group_by: &'q [Ident],
    pub(super) place: TokenSpan,
}

/// The expressions whose values get columns, and their values.
pub(super) struct PivotOn<'q> {
    pub(super) exprs: Vec<&'q Ast>,
    /// `None` for all values that occur.
    pub(super) values: Option<&'q PivotValueSource>,
}

/// A value that gets a column.
#[derive(Clone)]
pub(super) struct PivotValue {
    pub(super) name: String,
    pub(super) condition: Ast,
}

/// A column of the input whose values get columns.
struct PivotColumn {
    value: TypedExpr,
    /// The name of the field with the value, and of the one with its text.
    name: String,
    text: String,
}

impl Binder<'_> {
    /// Binds the statement form.
    pub(super) fn pivot_query(
        &mut self,
        query: &PivotQuery,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        let context = FromContext { outer, env, before: &[] };
        let tables = self.with_joins(&query.table, context)?;
        let on = query.on.iter().map(|column| PivotOn {
            exprs: match &column.expr {
                Ast::Tuple(exprs) => exprs.iter().collect(),
                expr => vec![expr],
            },
            values: column.values.as_ref(),
        });
        let pivot = Pivot {
            on: on.collect(),
            aggregates: &query.using,
            group_by: &query.group_by,
            place: query.token.0.span,
        };
        self.pivot(tables, &pivot, context)
    }

    /// Binds PIVOT over its input.
    pub(super) fn pivot(
        &mut self,
        mut tables: Tables,
        pivot: &Pivot<'_>,
        context: FromContext<'_, '_>,
    ) -> Result<BoundQuery> {
        let mut scope = Scope::empty(context.outer, context.env.clone());
        scope.columns = Rc::new(tables.columns.clone());
        let keys = self.pivot_keys(pivot, &scope)?;
        let mut combined: Option<Vec<PivotValue>> = None;
        let input: Rc<[Arc<str>]> = Rc::new([INPUT.into()]);
        let mut number = 0;
        for on in &pivot.on {
            let mut columns = Vec::with_capacity(on.exprs.len());
            for expr in &on.exprs {
                number += 1;
                columns.push(self.pivot_column((expr, number), &scope, &input, &mut tables)?);
            }
            let values = self.pivot_values(on, &columns, &tables, context)?;
            combined = Some(match combined {
                None => values,
                Some(before) => crossed(&before, &values, pivot)?,
            });
        }
        let mut input = PivotInput {
            tables,
            keys: keys.iter().map(|key| (column_name(key), key.name.clone())).collect(),
            aggregates: aggregates(pivot)?,
        };
        if let Some(values) = &combined {
            input = self.pivot_cells(input, values, context)?;
        }
        let PivotInput { tables, keys, aggregates } = input;
        let mut select = template()?;
        let items =
            aggregate_items(pivot, combined.as_deref(), &aggregates, &mut |expr, condition| {
                self.filtered_aggregates(expr, condition)
            })?;
        let shown = keys.iter().map(|(key, name)| item(key.clone(), name));
        select.projection = shown.chain(items).collect();
        if select.projection.is_empty() {
            let message = "PIVOT has no column; name values in IN, or columns in GROUP BY";
            return Err(with_span(Error::semantic(message), pivot.place));
        }
        let keys = keys.into_iter().map(|(key, _)| key).collect();
        select.group_by = GroupByExpr::Expressions(keys, Vec::new());
        let env = context.env.with(INPUT.to_string(), Meaning::Tables(Rc::new(tables)));
        let mut bound = self.select(&select, None, context.outer, &env)?;
        number_repeated(&mut bound);
        Ok(bound)
    }

    /// Returns the columns by which PIVOT groups.
    fn pivot_keys(&mut self, pivot: &Pivot<'_>, scope: &Scope<'_>) -> Result<Vec<Column>> {
        if !pivot.group_by.is_empty() {
            let mut keys = Vec::with_capacity(pivot.group_by.len());
            for name in pivot.group_by {
                let resolved = scope.resolve(std::slice::from_ref(name));
                let value = resolved.map_err(|error| with_span(error, name.span))?.value;
                let is_value = |column: &&Column| value.expr == Expr::Field(column.field.clone());
                keys.extend(scope.visible().find(is_value).cloned());
            }
            return Ok(keys);
        }
        let mut read = Reads { scope, fields: HashSet::new() };
        for on in &pivot.on {
            for expr in &on.exprs {
                let _ = expr.visit(&mut read);
            }
        }
        for aggregate in pivot.aggregates {
            let _ = aggregate.expr.visit(&mut read);
        }
        let is_free = |column: &&Column| !read.fields.contains(&column.field);
        Ok(scope.visible().filter(is_free).cloned().collect())
    }

    /// Adds the columns of a value and of its text to the input.
    fn pivot_column(
        &mut self,
        (expr, number): (&Ast, usize),
        scope: &Scope<'_>,
        input: &Rc<[Arc<str>]>,
        tables: &mut Tables,
    ) -> Result<PivotColumn> {
        let mut steps = Vec::new();
        let place = &mut Place { scope, steps: &mut steps, clause: "PIVOT", unnests: None };
        let value = self.expr(expr, place)?.known();
        if !steps.is_empty() {
            return Err(unsupported_at("a subquery in ON of PIVOT", expr));
        }
        let value = self.finished(value)?;
        let text = self.finished(self.cast_to(value.clone(), &Atom::String, false)?)?;
        let (name, text_name) = (format!("value {number}"), format!("text {number}"));
        let mut added = Vec::new();
        for (name, value) in [(&name, &value), (&text_name, &text)] {
            let field = match &value.expr {
                Expr::Field(field) => field.clone(),
                expr => {
                    let field = self.fields.fresh(name, value.atom.clone());
                    added.push((field.clone(), expr.clone()));
                    field
                }
            };
            tables.columns.push(Column {
                table: input.clone(),
                name: name.as_str().into(),
                field,
                atom: value.atom.clone(),
                hidden: true,
                pseudo: false,
                extended: false,
            });
        }
        let relation = std::mem::replace(&mut tables.relation, Relation::placeholder());
        tables.relation = with_fields(relation, added);
        Ok(PivotColumn { value, name, text: text_name })
    }

    /// Returns the values of an item of ON with their conditions.
    fn pivot_values(
        &mut self,
        on: &PivotOn<'_>,
        columns: &[PivotColumn],
        tables: &Tables,
        context: FromContext<'_, '_>,
    ) -> Result<Vec<PivotValue>> {
        let place = on.exprs.first().map_or_else(TokenSpan::empty, |expr| expr.span());
        let source = match on.values {
            Some(PivotValueSource::List(values)) => {
                let values = values.iter();
                return values.map(|value| self.pivot_value(value, columns, context)).collect();
            }
            Some(PivotValueSource::Any(order)) if !order.is_empty() => {
                return Err(with_span(
                    Error::unsupported("ORDER BY in IN (ANY) of PIVOT is not supported"),
                    place,
                ));
            }
            None | Some(PivotValueSource::Any(_)) => None,
            Some(PivotValueSource::Subquery(query)) => Some(query),
        };
        let [column] = columns else {
            let message =
                "several columns of PIVOT in parentheses need their values: IN ((…), (…))";
            return Err(with_span(Error::semantic(message), place));
        };
        let (relation, text) = match source {
            None => {
                let is_text = |known: &&Column| *known.name == *column.text;
                let found = tables.columns.iter().rev().find(is_text);
                let field = found.map(|found| found.field.clone());
                let field = field.ok_or_else(|| Error::internal("PIVOT without its column"))?;
                (tables.relation.clone(), Expr::Field(field))
            }
            Some(query) => self.value_query(query, context)?,
        };
        let texts = self.distinct_texts(relation, text).map_err(|error| with_span(error, place))?;
        let value = |text: Arc<str>| PivotValue {
            name: text.to_string(),
            condition: equal(&column.text, string(&text)),
        };
        Ok(texts.into_iter().map(value).collect())
    }

    /// Binds a value of IN.
    fn pivot_value(
        &mut self,
        value: &ExprWithAlias,
        columns: &[PivotColumn],
        context: FromContext<'_, '_>,
    ) -> Result<PivotValue> {
        let parts = match &value.expr {
            Ast::Tuple(parts) if columns.len() > 1 => parts.as_slice(),
            part => std::slice::from_ref(part),
        };
        if parts.len() != columns.len() {
            let message = format!(
                "a value in IN of PIVOT has {} parts; it needs {}, one for each column",
                parts.len(),
                columns.len()
            );
            return Err(with_span(Error::semantic(message), &value.expr));
        }
        let mut names = Vec::with_capacity(parts.len());
        let mut condition: Option<Ast> = None;
        for (part, column) in parts.iter().zip(columns) {
            let (name, matches) = self.pivot_part(part, column, context)?;
            names.push(name);
            condition = Some(match condition {
                None => matches,
                Some(before) => binary(before, BinaryOperator::And, matches),
            });
        }
        let name = match &value.alias {
            Some(alias) => normalized(alias),
            None => names.join("_"),
        };
        let missing = || Error::internal("a value of PIVOT without a condition");
        Ok(PivotValue { name, condition: condition.ok_or_else(missing)? })
    }

    /// Returns the text of a part of a value, and the condition that a column has it.
    fn pivot_part(
        &mut self,
        part: &Ast,
        column: &PivotColumn,
        context: FromContext<'_, '_>,
    ) -> Result<(String, Ast)> {
        let scope = Scope::empty(None, context.env.clone());
        let mut steps = Vec::new();
        let place = &mut Place { scope: &scope, steps: &mut steps, clause: "PIVOT", unnests: None };
        let value = self.expr(part, place)?;
        let text = self.cast_to(value.clone().known(), &Atom::String, false)?;
        let text = match self.evaluated(text)?.expr {
            Expr::Constant(Scalar::String(text), _) if steps.is_empty() => text,
            Expr::Constant(Scalar::Null, _) => {
                let is_null = Ast::IsNull(Box::new(input_column(&column.name)));
                return Ok(("NULL".to_string(), is_null));
            }
            _ => {
                let message = "a value in IN of PIVOT must be constant";
                return Err(with_span(Error::semantic(message), part));
            }
        };
        let has_type = match value.unknown {
            true => {
                let typed = self.evaluated(self.cast_to(value, &column.value.atom, true)?)?;
                !matches!(typed.expr, Expr::Constant(Scalar::Null, _))
            }
            false => self.compared("eq", column.value.clone(), value).is_ok(),
        };
        // Values of another type are compared as text.
        let condition = match has_type {
            true => equal(&column.name, part.clone()),
            false => equal(&column.text, string(&text)),
        };
        Ok((text.to_string(), condition))
    }

    /// Adds a FILTER to the aggregates of an expression; there must be one.
    fn filtered_aggregates(&self, expr: &Ast, condition: Option<&Ast>) -> Result<Ast> {
        let mut filtered = expr.clone();
        let mut filters = Filters { binder: self, condition, aggregates: 0, depth: 0 };
        if let ControlFlow::Break(error) = VisitMut::visit(&mut filtered, &mut filters) {
            return Err(with_span(error, expr));
        }
        if filters.aggregates == 0 {
            let message = "a value of PIVOT must be an aggregate, such as sum(x)";
            return Err(with_span(Error::semantic(message), expr));
        }
        Ok(filtered)
    }
}

/// Collects the columns of a scope that expressions read.
struct Reads<'r, 's> {
    scope: &'r Scope<'s>,
    fields: HashSet<Name>,
}

impl Visitor for Reads<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
        let parts = match expr {
            Ast::Identifier(name) => std::slice::from_ref(name),
            Ast::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return ControlFlow::Continue(()),
        };
        if let Ok(resolved) = self.scope.resolve(parts) {
            self.fields.extend(resolved.value.expr.fields());
        }
        ControlFlow::Continue(())
    }
}

/// Adds a FILTER to aggregates outside of subqueries.
struct Filters<'f, 'a> {
    binder: &'f Binder<'a>,
    condition: Option<&'f Ast>,
    aggregates: usize,
    depth: usize,
}

impl VisitorMut for Filters<'_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<Error> {
        let Ast::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if function.over.is_some() {
            return ControlFlow::Break(Error::unsupported(
                "a window function in PIVOT is not supported; compute it in a subquery",
            ));
        }
        if self.binder.aggregate_of(function).is_some() {
            self.aggregates += 1;
            add_filter(function, self.condition);
        }
        ControlFlow::Continue(())
    }
}

/// Combines the values of two items of ON.
fn crossed(
    before: &[PivotValue],
    values: &[PivotValue],
    pivot: &Pivot<'_>,
) -> Result<Vec<PivotValue>> {
    check_count(before.len().saturating_mul(values.len()))
        .map_err(|error| with_span(error, pivot.place))?;
    let mut all = Vec::with_capacity(before.len() * values.len());
    for first in before {
        for second in values {
            let (left, right) = (first.condition.clone(), second.condition.clone());
            all.push(PivotValue {
                name: format!("{}_{}", first.name, second.name),
                condition: binary(left, BinaryOperator::And, right),
            });
        }
    }
    Ok(all)
}

pub(super) fn check_count(columns: usize) -> Result<()> {
    if columns <= PIVOT_COLUMNS_MAX {
        return Ok(());
    }
    let message = format!(
        "PIVOT would make more than {PIVOT_COLUMNS_MAX} columns (PIVOT_COLUMNS_MAX); name fewer values in IN"
    );
    Err(Error::new(Code::Limit, message))
}
