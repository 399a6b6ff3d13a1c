//! Queries: WITH, a body, ORDER BY and LIMIT.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, OrderBy};
use sqlparser::ast::{
    Fetch, LimitClause, Offset, Query, SelectItem, SetExpr, Spanned, Value, Visit, Visitor,
};
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_optimizer::logical::window::{Window, WindowCall};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::scope::{OutputColumn, Scope};
use super::typed::TypedExpr;
use super::{
    Binder, BoundQuery, Place, refuse, unsupported_at, with_span, with_stack, without_parentheses,
};

impl Binder<'_> {
    /// Binds a query, which may read columns of enclosing queries.
    pub(super) fn query(
        &mut self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        with_stack(|| self.whole_query(query, outer, env))
    }

    fn whole_query(
        &mut self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        tessera_context::interrupt::point();
        check(query)?;
        let Query { with, body, order_by, limit_clause, fetch, .. } = query;
        let env = match with {
            Some(with) => self.with(with, env)?,
            None => env.clone(),
        };
        let bound = self.body(body, order_by.as_ref(), outer, &env)?;
        let arguments = outer.map(Scope::macro_arguments).unwrap_or_default();
        if let Some(LimitClause::LimitPercent { limit, offset }) = limit_clause {
            let scope = Scope::of_arguments(arguments);
            let offset = match offset {
                Some(Offset { value, rows: _ }) => {
                    self.count(constant_of(value), "OFFSET", &scope, &bound.columns)?
                }
                None => None,
            };
            return self.limited_to_percent(bound, constant_of(limit), offset.unwrap_or(0), &env);
        }
        let (limit, offset) = limits(limit_clause.as_ref(), fetch.as_ref())?;
        let (limit, offset) = (limit.as_ref().map(constant_of), offset.as_ref().map(constant_of));
        let ties = fetch.as_ref().filter(|fetch| fetch.with_ties);
        if limit.into_iter().chain(offset).any(has_subquery) {
            refuse(ties.is_some(), "FETCH … WITH TIES with a subquery", query)?;
            return self.limited_to_values(bound, limit, offset, &env);
        }
        if let (Some(_), Some(limit)) = (ties, limit) {
            if order_by.is_none() {
                let error =
                    Error::semantic("FETCH … WITH TIES needs ORDER BY, which says what ties");
                return Err(with_span(error.with_state(SqlState::SYNTAX_ERROR), limit));
            }
            return self.limited_with_ties(bound, limit, offset, arguments);
        }
        self.limited(bound, limit, offset, arguments)
    }

    /// Binds the body of a query and its ORDER BY.
    fn body(
        &mut self,
        body: &SetExpr,
        order_by: Option<&OrderBy>,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        if let SetExpr::Select(select) = body {
            return self.select(select, order_by, outer, env);
        }
        let bound = self.term(body, outer, env)?;
        match order_by {
            Some(order_by) => self.sorted_by_name(bound, order_by, outer, env),
            None => Ok(bound),
        }
    }

    /// Binds a query body without ORDER BY: a SELECT, VALUES, set operation or nested query.
    pub(super) fn term(
        &mut self,
        body: &SetExpr,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        match body {
            SetExpr::Select(select) => self.select(select, None, outer, env),
            SetExpr::Query(query) => self.query(query, outer, env),
            SetExpr::SetOperation { .. } => self.set_operation(body, outer, env),
            SetExpr::Values(values) => self.values(values, outer, env),
            SetExpr::Pivot(pivot) => self.pivot_query(pivot, outer, env),
            SetExpr::Unpivot(unpivot) => self.unpivot_query(unpivot, outer, env),
            SetExpr::Describe(describe) => self.describe_query(describe, outer, env),
            SetExpr::Insert(change)
            | SetExpr::Update(change)
            | SetExpr::Delete(change)
            | SetExpr::Merge(change) => {
                let error = tessera_parser::unsupported_change(change);
                Err(with_span(error.unwrap_or_else(|| Error::internal("no change")), body.span()))
            }
            SetExpr::Table(_) => Err(unsupported_at("TABLE name as a query", body)),
        }
    }

    fn limited(
        &mut self,
        bound: BoundQuery,
        limit: Option<&Ast>,
        offset: Option<&Ast>,
        arguments: Vec<(Arc<str>, TypedExpr)>,
    ) -> Result<BoundQuery> {
        let scope = Scope::of_arguments(arguments);
        let mut count = |expr: Option<&Ast>, clause| {
            expr.map(|expr| self.count(expr, clause, &scope, &bound.columns)).transpose()
        };
        let (offset, limit) =
            (count(offset, "OFFSET")?.flatten(), count(limit, "LIMIT")?.flatten());
        if offset.is_none() && limit.is_none() {
            return Ok(bound);
        }
        let offset = offset.unwrap_or(0);
        let BoundQuery { relation, columns } = bound;
        let relation = Relation::Limit { input: Box::new(relation), offset, limit };
        Ok(BoundQuery { relation, columns })
    }

    /// Keeps the first rows of a sort and those that its keys do not tell from the last of them.
    fn limited_with_ties(
        &mut self,
        bound: BoundQuery,
        limit: &Ast,
        offset: Option<&Ast>,
        arguments: Vec<(Arc<str>, TypedExpr)>,
    ) -> Result<BoundQuery> {
        let scope = Scope::of_arguments(arguments);
        let mut count = |expr, clause| self.count(expr, clause, &scope, &bound.columns);
        let offset = offset.map(|offset| count(offset, "OFFSET")).transpose()?;
        let offset = offset.flatten().unwrap_or(0);
        let Some(count) = count(limit, "LIMIT")? else {
            let error = Error::semantic("the number of rows of FETCH … WITH TIES must not be NULL");
            return Err(with_span(error.with_state(SqlState::INVALID_ROW_COUNT_IN_LIMIT), limit));
        };
        let BoundQuery { relation, columns } = bound;
        let relation = match count {
            0 => Relation::Limit { input: Box::new(relation), offset: 0, limit: Some(0) },
            _ => {
                let rank_max = i128::from(count) + i128::from(offset);
                let rank = self.fields.fresh("rank", Atom::Int64);
                let Some(limited) = first_with_ties(relation, offset, rank_max, &rank) else {
                    return Err(unsupported_at("FETCH … WITH TIES of this query", limit));
                };
                limited
            }
        };
        Ok(BoundQuery { relation, columns })
    }

    /// Converts a row count to an integer. As in PostgreSQL, it is assigned to a bigint.
    pub(super) fn as_count(&self, value: TypedExpr, clause: &str) -> Result<TypedExpr> {
        match &value.atom {
            atom if atom.is_integer() || value.is_null() => Ok(value),
            atom if atom.is_numeric() => self.cast_to(value, &tessera_types::Atom::Int64, false),
            _ => self.implicitly(value, &tessera_types::Atom::Int64, clause),
        }
    }

    /// Evaluates a row count of LIMIT or OFFSET of a query with these columns. `None` means no
    /// limit: NULL or ALL.
    fn count(
        &mut self,
        expr: &Ast,
        clause: &'static str,
        scope: &Scope<'_>,
        columns: &[OutputColumn],
    ) -> Result<Option<u64>> {
        if let Ast::Identifier(word) = expr
            && word.quote_style.is_none()
            && word.value.eq_ignore_ascii_case("all")
        {
            return Ok(None);
        }
        let mut steps = Vec::new();
        let mut place = Place { scope, steps: &mut steps, clause, unnests: None };
        // As in PostgreSQL, a column that is there is another fault than one that is not.
        let is_column = match without_parentheses(expr) {
            Ast::Identifier(name) => {
                columns.iter().any(|column| *column.name == *super::normalized(name))
            }
            _ => false,
        };
        let value = self.expr(expr, &mut place).map_err(|error| {
            match error.sql_state() == SqlState::UNDEFINED_COLUMN && is_column {
                true => error.with_state(SqlState::INVALID_COLUMN_REFERENCE),
                false => error,
            }
        })?;
        if !steps.is_empty() {
            return Err(unsupported_at(&format!("a {clause} that is not constant"), expr));
        }
        let is_text = value.unknown;
        let value = self.as_count(value, clause)?;
        match self.evaluated(value)?.expr {
            tessera_plan::Expr::Constant(Scalar::Null, _) => Ok(None),
            tessera_plan::Expr::Constant(Scalar::Integer(number), _) => {
                u64::try_from(number).map(Some).map_err(|_| {
                    let state = match clause {
                        "LIMIT" => SqlState::INVALID_ROW_COUNT_IN_LIMIT,
                        _ => SqlState::INVALID_ROW_COUNT_IN_OFFSET,
                    };
                    let message = format!("{clause} must not be negative, not {number}");
                    with_span(Error::semantic(message).with_state(state), expr.span())
                })
            }
            _ if is_text => {
                let error = Error::data(format!("{clause} must be a whole number, not {expr}"));
                Err(with_span(error.with_state(SqlState::INVALID_TEXT_REPRESENTATION), expr.span()))
            }
            _ => Err(unsupported_at(&format!("a {clause} that is not constant"), expr)),
        }
    }
}

/// Keeps the tuples of a sort up to a rank, without the first ones; only maps may be above it.
fn first_with_ties(
    relation: Relation,
    offset: u64,
    rank_max: i128,
    rank: &Name,
) -> Option<Relation> {
    match relation {
        Relation::Map { input, exprs } => {
            let input = Box::new(first_with_ties(*input, offset, rank_max, rank)?);
            Some(Relation::Map { input, exprs })
        }
        Relation::Sort { input, keys, offset: 0, limit: None } => {
            let call = WindowCall::plain("rank", Vec::new());
            let (partition, order, calls) = (Vec::new(), keys.clone(), vec![(rank.clone(), call)]);
            let ranked = Window { input: *input, partition, order, calls, limit: None };
            let last = Expr::Constant(Scalar::Integer(rank_max), Atom::Int64);
            let is_first = Expr::call("lt_eq", vec![Expr::Field(rank.clone()), last]);
            let input = Box::new(Relation::Window(Box::new(ranked)).filtered(vec![is_first]));
            let input = Box::new(Relation::Sort { input, keys, offset: 0, limit: None });
            Some(match offset {
                0 => *input,
                offset => Relation::Limit { input, offset, limit: None },
            })
        }
        _ => None,
    }
}

/// Returns the expression in `(SELECT expression)`, or the expression itself.
fn constant_of(expr: &Ast) -> &Ast {
    match without_parentheses(expr) {
        Ast::Subquery(query) => only_value(query).map_or(expr, constant_of),
        _ => expr,
    }
}

/// Returns whether an expression contains a subquery.
fn has_subquery(expr: &Ast) -> bool {
    struct Subquery;
    impl Visitor for Subquery {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    expr.visit(&mut Subquery).is_break()
}

/// Returns the expression of a query of the form `SELECT expression`; `None` for other queries.
fn only_value(query: &Query) -> Option<&Ast> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let value = match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] => value,
        _ => return None,
    };
    // Any other clause changes the meaning of the query.
    let text = query.to_string();
    (text == format!("SELECT {}", select.projection.first()?)).then_some(value)
}

/// Rejects the unsupported clauses of a query.
pub(super) fn check(query: &Query) -> Result<()> {
    let Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let place = query;
    refuse(!locks.is_empty(), "FOR UPDATE or FOR SHARE", place)?;
    refuse(for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", place)?;
    refuse(settings.is_some(), "SETTINGS", place)?;
    refuse(format_clause.is_some(), "FORMAT", place)?;
    refuse(!pipe_operators.is_empty(), "the pipe operator |>", place)
}

fn fetch_beside_limit() -> Error {
    Error::semantic("a query has both LIMIT and FETCH; remove one of them")
        .with_state(SqlState::SYNTAX_ERROR)
}

/// Returns the LIMIT and OFFSET expressions of a query.
fn limits(
    clause: Option<&LimitClause>,
    fetch: Option<&Fetch>,
) -> Result<(Option<Ast>, Option<Ast>)> {
    let (mut limit, offset) = match clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if let Some(by) = limit_by.first() {
                return Err(unsupported_at("LIMIT BY", by));
            }
            let offset = offset.as_ref().map(|Offset { value, rows: _ }| value.clone());
            (limit.clone(), offset)
        }
        Some(LimitClause::LimitPercent { limit, offset: _ }) => {
            return Err(with_span(fetch_beside_limit(), limit));
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            (Some(limit.clone()), Some(offset.clone()))
        }
    };
    if let Some(Fetch { with_ties: _, percent, quantity }) = fetch {
        let place = quantity.as_ref().map_or(sqlparser::tokenizer::Span::empty(), Spanned::span);
        refuse(*percent, "FETCH … PERCENT", place)?;
        if limit.is_some() {
            return Err(with_span(fetch_beside_limit(), place));
        }
        let one = || Ast::value(Value::Number("1".to_string(), false));
        limit = Some(quantity.clone().unwrap_or_else(one));
    }
    Ok((limit, offset))
}
