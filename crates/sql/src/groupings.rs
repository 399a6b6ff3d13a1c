//! Several groupings are by columns: what they group by is computed before.
//!
//! A rewrite that changes an expression keeps its name by an alias, and the planner's own would put one around the list of
//! groupings as a whole, which then is none any more.

use std::sync::Arc;

use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Aggregate, Expr, LogicalPlan, Projection};

use crate::logical::PlannerResult;

/// The plan with the keys of GROUPING SETS, ROLLUP and CUBE as columns.
pub(crate) fn by_columns(plan: LogicalPlan) -> PlannerResult<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if matches!(*aggregate.group_expr, [Expr::GroupingSet(_)]) => {
            with_columns(aggregate)
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(changed.data)
}

fn with_columns(aggregate: Aggregate) -> PlannerResult<Transformed<LogicalPlan>> {
    // A column of its own name, called as the key is called: a cast is called like the column inside it.
    let mut keys: Vec<(Expr, Column)> = Vec::new();
    for key in grouping_set_to_exprlist(&aggregate.group_expr)? {
        if !matches!(key, Expr::Column(_)) && !keys.iter().any(|(known, _)| known == key) {
            keys.push((key.clone(), Column::from_name(format!("grouping key {}", keys.len()))));
        }
    }
    if keys.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    let mut exprs: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    exprs.extend(keys.iter().map(|(key, column)| key.clone().alias(column.name())));
    let column = |expr: Expr| match keys.iter().find(|(key, _)| *key == expr) {
        Some((key, column)) => {
            let column = Expr::Column(column.clone()).alias(key.schema_name().to_string());
            Transformed::new(column, true, TreeNodeRecursion::Jump)
        }
        None => Transformed::no(expr),
    };
    let replaced = |expr: Expr| Ok(expr.transform_down(|expr| Ok(column(expr)))?.data);
    let group_expr = group_expr.into_iter().map(replaced).collect::<PlannerResult<Vec<_>>>()?;
    // The arguments of grouping(…) are found among the keys.
    let aggr_expr = aggr_expr.into_iter().map(|expr| {
        if !matches!(&expr, Expr::AggregateFunction(call) if call.func.name() == "grouping") {
            return Ok(expr);
        }
        let name = NamePreserver::new_for_projection().save(&expr);
        replaced(expr).map(|expr| name.restore(expr))
    });
    let aggr_expr = aggr_expr.collect::<PlannerResult<Vec<_>>>()?;
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, input)?));
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?)))
}
