//! SELECT.
//!
//! Expressions are bound over the columns of FROM. In a query with groups, aggregate calls are
//! collected at the same time (`group`); afterwards the remaining expressions are rewritten over
//! the fields of the groups (`grouped`).

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use sqlparser::ast::{Distinct, Expr as Ast, GroupByExpr, OrderBy, Select, SelectFlavor};
use tessera_optimizer::logical::relation::{Aggregate, Call, Key, Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Result, SqlState};

use super::cte::Env;
use super::from::Tables;
use super::group::Groups;
use super::grouped::GroupRewriter;
use super::list::{Item, UnnestCall};
use super::order::{SortKey, position};
use super::projection::{Projection, rename};
use super::scope::Scope;
use super::steps::{Step, apply, take_needed};
use super::typed::TypedExpr;
use super::window::{BoundWindowCall, Windows};
use super::{Binder, BoundQuery, Place, refuse, with_span};

impl Binder<'_> {
    /// Binds a SELECT and its ORDER BY.
    pub(super) fn select(
        &mut self,
        select: &Select,
        order_by: Option<&OrderBy>,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        check(select)?;
        let Tables { mut relation, columns } = self.from(&select.from, outer, env)?;
        if let Some(sample) = &select.sample {
            relation = self.sampled(relation, sample)?;
        }
        let columns = Rc::new(columns);
        let mut ungrouped = Scope::empty(outer, env.clone());
        ungrouped.columns = columns.clone();
        let mut items = self.items(&select.projection, &ungrouped)?;
        if let Some(predicate) = &select.selection {
            let expanded = self.without_columns(predicate, &ungrouped)?;
            let predicate = expanded.as_ref().unwrap_or(predicate);
            let mut steps = Vec::new();
            self.results_in_where(predicate, &mut items, &mut ungrouped, &mut steps)?;
            relation = apply(relation, steps);
            let steps = self.filter(predicate, &ungrouped, "WHERE")?;
            relation = apply(relation, steps);
            ungrouped.results = Rc::default();
        }
        let expanded = match order_by {
            Some(order_by) => self.order_without_columns(order_by, &ungrouped)?,
            None => None,
        };
        let order_by = expanded.as_ref().or(order_by);
        let groups = RefCell::new(Groups::default());
        let late = self.results_in_groups(&select.group_by, &items, &mut ungrouped);
        self.group_keys(&select.group_by, (&items[..], &late[..]), &ungrouped, &groups)?;
        let windows = RefCell::new(Windows::default());
        let mut scope = Scope::empty(outer, env.clone());
        (scope.columns, scope.groups, scope.windows) = (columns, Some(&groups), Some(&windows));

        // Bind the list, HAVING and ORDER BY over the columns of FROM and the aggregate results.
        let (mut above, mut unnests) = (Vec::new(), Vec::new());
        self.named_windows(select, &scope, &mut above)?;
        let mut list = self.list(&items, &mut scope, &mut above, &mut unnests)?;
        let having = match &select.having {
            Some(predicate) => Some(self.filter(predicate, &scope.without_windows(), "HAVING")?),
            None => None,
        };
        let mut qualify = match &select.qualify {
            Some(predicate) => self.filter(predicate, &scope.without_unnest(), "QUALIFY")?,
            None => Vec::new(),
        };
        let mut distinct_on = self.distinct_keys(select, &items, &list, &scope, &mut above)?;
        let mut keys = match order_by {
            Some(order_by) => {
                let on = match &select.distinct {
                    Some(Distinct::On(exprs)) => exprs.iter().zip(&distinct_on).collect(),
                    _ => Vec::new(),
                };
                let written: Vec<Option<&Ast>> = items.iter().map(Item::expr).collect();
                let unnests = Some(&mut unnests);
                let place =
                    &mut Place { scope: &scope, steps: &mut above, clause: "ORDER BY", unnests };
                self.sort_keys(order_by, &list, &written, &on, place)?
            }
            None => Vec::new(),
        };
        scope.results = Rc::default();

        let groups = groups.take();
        let mut having = having.unwrap_or_default();
        let mut windows = windows.take();
        if let (Some(predicate), false) = (&select.qualify, windows.has_calls()) {
            let message = "QUALIFY needs a window function, in the SELECT list or in itself";
            let error = Error::semantic(message).with_state(SqlState::SYNTAX_ERROR);
            return Err(with_span(error, predicate));
        }
        if groups.are_wanted(select) {
            let known = (select, order_by, env);
            let item_keys = groups.item_keys();
            let grouped;
            (relation, grouped) = self.grouped(relation, groups, &scope, known)?;
            let steps = having.iter_mut().chain(&mut above).chain(&mut qualify);
            self.rewrite_over_groups(&grouped, steps, &mut unnests)?;
            windows.rewrite_over(&grouped)?;
            let values = list.iter_mut().map(|(_, value)| value);
            let values = values.chain(keys.iter_mut().map(|key| &mut key.value));
            for value in values.chain(&mut distinct_on) {
                grouped.rewrite(&mut value.expr)?;
            }
            for (item, field) in item_keys {
                let sorts = keys.iter_mut().filter(|key| key.item == Some(item));
                let values = list.get_mut(item).map(|(_, value)| value).into_iter();
                for value in values.chain(sorts.map(|key| &mut key.value)) {
                    value.expr = Expr::Field(field.clone());
                }
            }
        }
        let read = having.iter().flat_map(Step::reads).collect();
        relation = apply(relation, take_needed(&mut above, read));
        relation = apply(relation, having);
        if windows.has_calls() {
            let calls = windows.into_calls();
            let mut read: HashSet<Name> = calls.iter().flat_map(BoundWindowCall::reads).collect();
            relation = apply(relation, take_needed(&mut above, read.clone()));
            relation = apply(relation, take_needed(&mut qualify, read));
            relation = self.windowed(relation, calls)?;
            qualify.iter_mut().try_for_each(|step| self.simplify_step(step))?;
            read = qualify.iter().flat_map(Step::reads).collect();
            relation = apply(relation, take_needed(&mut above, read));
            relation = apply(relation, qualify);
        }
        relation = apply(relation, above);
        relation = self.unnested(relation, unnests)?;
        let list = list.into_iter().map(|(name, value)| {
            let collation = self.result_collation(&value)?;
            Ok((name, self.with_collation(self.finished(value)?, collation)))
        });
        let list = list.collect::<Result<Vec<_>>>()?;
        for key in &mut keys {
            key.value = self.finished(key.value.clone())?;
        }
        match &select.distinct {
            None | Some(Distinct::All) => self.plain(relation, list, keys),
            Some(Distinct::Distinct) => self.distinct(relation, list, keys),
            Some(Distinct::On(_)) => {
                let on = distinct_on
                    .into_iter()
                    .map(|key| self.finished(self.sort_key(key)?.0))
                    .collect::<Result<Vec<_>>>()?;
                self.distinct_on(relation, list, keys, on)
            }
        }
    }

    /// Rewrites steps and `unnest` lists over the fields of the groups.
    fn rewrite_over_groups<'s>(
        &mut self,
        grouped: &GroupRewriter,
        steps: impl Iterator<Item = &'s mut Step>,
        unnests: &mut [UnnestCall],
    ) -> Result<()> {
        for step in steps {
            grouped.rewrite_step(step)?;
            self.simplify_step(step)?;
        }
        unnests.iter_mut().try_for_each(|unnest| grouped.rewrite(&mut unnest.list.expr))
    }

    /// Simplifies the expressions of a step.
    fn simplify_step(&self, step: &mut Step) -> Result<()> {
        for expr in step.exprs_mut() {
            self.simplify(expr)?;
        }
        if let Step::Filter(predicates) = step {
            *predicates = predicates.iter().flat_map(Expr::conjuncts).collect();
        }
        Ok(())
    }

    /// Simplifies an expression in place.
    pub(super) fn simplify(&self, expr: &mut Expr) -> Result<()> {
        let atom = self.fields.atom_of(expr)?;
        *expr = self.finished(TypedExpr::new(expr.clone(), atom))?.expr;
        Ok(())
    }

    /// Builds a SELECT without DISTINCT.
    fn plain(
        &mut self,
        relation: Relation,
        list: Vec<(Rc<str>, TypedExpr)>,
        keys: Vec<SortKey>,
    ) -> Result<BoundQuery> {
        let mut projection = Projection::default();
        let columns = projection.outputs(self, list)?;
        let keys = projection.keys(self, keys, &columns)?;
        let relation = projection.over(relation);
        Ok(BoundQuery { relation: sorted(relation, keys), columns })
    }

    /// Builds a SELECT DISTINCT.
    fn distinct(
        &mut self,
        relation: Relation,
        list: Vec<(Rc<str>, TypedExpr)>,
        keys: Vec<SortKey>,
    ) -> Result<BoundQuery> {
        let mut projection = Projection::default();
        let mut columns = projection.outputs(self, list)?;
        let mut order = Vec::with_capacity(keys.len());
        for SortKey { mut value, item, descending, nulls_first, place } in keys {
            if matches!(value.expr, Expr::Constant(..)) {
                continue;
            }
            if let Some(column) = item.and_then(|at| columns.get(at)) {
                value.expr = Expr::Field(column.field.clone());
            } else if !projection.rewrite(&mut value.expr) {
                let message =
                    "for SELECT DISTINCT, ORDER BY expressions must appear in the SELECT list";
                let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
                return Err(with_span(error, place));
            }
            order.push(Key { expr: value.expr, descending, nulls_first });
        }
        let (relation, renamed) = self.distinct_tuples(projection.over(relation), &mut columns)?;
        for key in &mut order {
            rename(&mut key.expr, &renamed);
        }
        Ok(BoundQuery { relation: sorted(relation, order), columns })
    }

    /// Builds a SELECT DISTINCT ON: `first_value` of each column per group, in the order of ORDER
    /// BY.
    fn distinct_on(
        &mut self,
        relation: Relation,
        list: Vec<(Rc<str>, TypedExpr)>,
        keys: Vec<SortKey>,
        on: Vec<TypedExpr>,
    ) -> Result<BoundQuery> {
        let mut projection = Projection::default();
        let mut columns = projection.outputs(self, list)?;
        let on: Vec<Name> =
            on.into_iter().map(|key| projection.field(self, "key", key)).collect::<Result<_>>()?;
        let places: Vec<_> = keys.iter().map(|key| key.place).collect();
        let keys = projection.keys(self, keys, &columns)?;
        let is_on = |key: &Key| matches!(&key.expr, Expr::Field(name) if on.contains(name));
        let first = keys.iter().take_while(|key| is_on(key)).count();
        let named = |name: &Name| {
            projection.is_constant(name)
                || keys[..first].iter().any(|key| key.expr == Expr::Field(name.clone()))
        };
        if first < keys.len() && !on.iter().all(named) {
            let message =
                "SELECT DISTINCT ON expressions must match the first ORDER BY expressions";
            let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
            return Err(places.get(first).map_or(error.clone(), |place| with_span(error, *place)));
        }
        let relation = projection.over(relation);
        let mut groups: Vec<(Name, Expr)> = Vec::new();
        let mut renamed: Vec<(Name, Name)> = Vec::new();
        for name in on {
            if !renamed.iter().any(|(known, _)| *known == name) {
                let key = self.fields.fresh(&name, self.fields.atom(&name)?);
                groups.push((key.clone(), Expr::Field(name.clone())));
                renamed.push((name, key));
            }
        }
        let mut calls: Vec<(Name, Call)> = Vec::new();
        for column in &mut columns {
            let name = self.fields.fresh(&column.name, column.atom.clone());
            let call = Call {
                function: "first_value".into(),
                args: vec![Expr::Field(column.field.clone())],
                distinct: false,
                filter: None,
                order_by: keys.clone(),
                limit: None,
            };
            self.keep_collation(&name, &call.args)?;
            calls.push((name.clone(), call));
            column.field = name;
        }
        let sort = keys[..first].iter().filter_map(|key| {
            let Expr::Field(name) = &key.expr else { return None };
            let (_, field) = renamed.iter().find(|(known, _)| known == name)?;
            Some(Key { expr: Expr::Field(field.clone()), ..key.clone() })
        });
        let sort = sort.collect();
        let aggregate =
            Aggregate { input: relation, keys: groups, sets: None, grouping: None, calls };
        let relation = Relation::Aggregate(Box::new(aggregate));
        Ok(BoundQuery { relation: sorted(relation, sort), columns })
    }

    /// Binds the keys of DISTINCT ON.
    fn distinct_keys(
        &mut self,
        select: &Select,
        items: &[Item<'_>],
        list: &[(Rc<str>, TypedExpr)],
        scope: &Scope<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<Vec<TypedExpr>> {
        let Some(Distinct::On(exprs)) = &select.distinct else { return Ok(Vec::new()) };
        let mut keys = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let item =
                position(expr, list.len(), "DISTINCT ON")?.or_else(|| same_item(expr, items));
            let key = match item.and_then(|at| list.get(at)) {
                Some((_, value)) => value.clone(),
                None => {
                    let place = &mut Place { scope, steps, clause: "DISTINCT ON", unnests: None };
                    self.expr(expr, place)?
                }
            };
            keys.push(key.known());
        }
        Ok(keys)
    }
}

/// Returns the position of the list item with the same syntax tree as an expression.
pub(super) fn same_item(expr: &Ast, items: &[Item<'_>]) -> Option<usize> {
    items.iter().position(|item| item.expr() == Some(expr))
}

fn sorted(relation: Relation, keys: Vec<Key>) -> Relation {
    match keys.is_empty() {
        true => relation,
        false => Relation::Sort { input: Box::new(relation), keys, offset: 0, limit: None },
    }
}

/// Rejects the unsupported clauses of a SELECT.
fn check(select: &Select) -> Result<()> {
    let place = select.select_token.0.span;
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        sample: _,
        value_table_mode,
        flavor,
    } = select;
    if projection.is_empty() && matches!(distinct, Some(Distinct::Distinct | Distinct::On(_))) {
        let error = Error::new(
            Code::Syntax,
            "SELECT DISTINCT needs at least one column; name columns or write *",
        );
        return Err(with_span(error, place));
    }
    refuse(matches!(flavor, SelectFlavor::FromFirstNoSelect), "FROM without SELECT here", place)?;
    refuse(select_modifiers.is_some(), "a SELECT modifier of MySQL", place)?;
    refuse(top.is_some(), "TOP", place)?;
    refuse(exclude.is_some(), "EXCLUDE after the select list", place)?;
    refuse(into.is_some(), "SELECT INTO", place)?;
    refuse(!lateral_views.is_empty(), "LATERAL VIEW", place)?;
    refuse(prewhere.is_some(), "PREWHERE", place)?;
    refuse(!connect_by.is_empty(), "CONNECT BY", place)?;
    refuse(!cluster_by.is_empty(), "CLUSTER BY", place)?;
    refuse(!distribute_by.is_empty(), "DISTRIBUTE BY", place)?;
    refuse(!sort_by.is_empty(), "SORT BY", place)?;
    refuse(value_table_mode.is_some(), "SELECT AS STRUCT or AS VALUE", place)?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    match modifiers.is_empty() {
        true => Ok(()),
        false => refuse(
            true,
            "WITH ROLLUP, CUBE or TOTALS after GROUP BY (write GROUP BY ROLLUP (…))",
            place,
        ),
    }
}
