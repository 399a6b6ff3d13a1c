//! `ORDER BY` a column of the result that the planner would take for another one.
//!
//! The planner calls a grouped cast what the column under it is called. Where another column of the result has that name, it sorts
//! by the cast instead. Such a query becomes a derived table, whose columns have one meaning each.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Spanned, TableFactor,
    Value, VisitMut, VisitorMut,
};
use tessera_types::{Error, Result};

use crate::check::{Flow, normalised, refuse};

/// The query with every `ORDER BY` meaning what it says.
///
/// # Errors
/// A column that would be taken for another stands beside expressions that are no columns of the result.
pub(crate) fn by_outputs(mut query: Box<Query>) -> Result<Box<Query>> {
    match VisitMut::visit(&mut query, &mut Outputs) {
        ControlFlow::Continue(()) => Ok(query),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Outputs;

impl VisitorMut for Outputs {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        let place = query.span();
        let (SetExpr::Select(select), Some(order_by)) = (&*query.body, &query.order_by) else {
            return ControlFlow::Continue(());
        };
        let OrderByKind::Expressions(keys) = &order_by.kind else { return ControlFlow::Continue(()) };
        let outputs: Vec<Option<usize>> = keys.iter().map(|key| output(&key.expr, select)).collect();
        let Some(name) = outputs.iter().flatten().find_map(|output| taken_for_a_cast(*output, select)) else {
            return ControlFlow::Continue(());
        };
        let mixed = outputs.contains(&None) || matches!(select.distinct, Some(Distinct::On(_)));
        let construct = format!(
            "ORDER BY {name}, a column of the result with the name of one that is cast, beside other expressions (give it \
             another alias)"
        );
        refuse(mixed, &construct, place)?;
        derive(query)
    }
}

/// Makes the body of a query a derived table of which all columns are selected.
fn derive(query: &mut Query) -> Flow {
    let outer = match crate::parse::query("SELECT * FROM (SELECT 1) AS ordered") {
        Ok(outer) => outer,
        Err(error) => return ControlFlow::Break(error),
    };
    let body = std::mem::replace(&mut query.body, outer.body);
    if let SetExpr::Select(select) = &mut *query.body
        && let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        subquery.body = body;
    }
    ControlFlow::Continue(())
}

/// Which column of the result a key of the order names: its position, or its alias.
fn output(key: &Expr, select: &Select) -> Option<usize> {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        Expr::Identifier(name) => {
            let name = normalised(name);
            select.projection.iter().position(|item| alias(item).is_some_and(|alias| alias == name))
        }
        _ => None,
    }
}

fn alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normalised(alias)),
        _ => None,
    }
}

/// The alias of a column of the result, where another one is a cast of what is called so and the query groups.
fn taken_for_a_cast(output: usize, select: &Select) -> Option<String> {
    if matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty()) {
        return None;
    }
    let name = alias(select.projection.get(output)?)?;
    let others = select.projection.iter().enumerate().filter(|(position, _)| *position != output);
    let mut casts = others.filter_map(|(_, item)| match item {
        SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => cast_column(expr),
        _ => None,
    });
    casts.any(|cast| cast == name).then_some(name)
}

/// The name of the column that an expression casts.
fn cast_column(expr: &Expr) -> Option<String> {
    let (mut inner, mut cast) = (expr, false);
    loop {
        inner = match inner {
            Expr::Nested(inner) => inner,
            Expr::Cast { expr, .. } => {
                cast = true;
                expr
            }
            Expr::Identifier(name) if cast => return Some(normalised(name)),
            Expr::CompoundIdentifier(parts) if cast => return parts.last().map(normalised),
            _ => return None,
        };
    }
}
