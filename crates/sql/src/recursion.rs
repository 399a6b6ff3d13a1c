//! Recursive queries in the logical plan, as tables whose two terms are planned by themselves.
//!
//! The planner types the recursive term by the first one before literals have got our types, and casts it in silence. So the
//! first term is planned to the end, the work table gets its types, and only then the recursive term follows, without
//! those casts; whether its types fit is looked at when both are relations.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::TableReference;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::TableScanBuilder;
use datafusion_expr::{Expr, LogicalPlan, Projection, RecursiveQuery};

use crate::context::{Recursion, Surroundings, WorkTable};
use crate::logical::{PlannerResult, rewrite};

/// The plan with its recursive queries as tables.
pub(crate) fn as_tables(plan: LogicalPlan, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let changed = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::RecursiveQuery(query) => {
            Ok(Transformed::new(as_table(query, surroundings)?, true, TreeNodeRecursion::Jump))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(changed.data)
}

fn as_table(query: RecursiveQuery, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let RecursiveQuery { name, static_term, recursive_term, is_distinct, .. } = query;
    let base = rewrite(Arc::unwrap_or_clone(static_term), surroundings)?;
    let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
    let fields: Vec<Field> = base.schema().fields().iter().map(nullable).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let step = without_casts(Arc::unwrap_or_clone(recursive_term))?;
    let typed = step.transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan)
            if scan.source.is::<WorkTable>() && scan.table_name.table() == name.as_str() =>
        {
            let work = Arc::new(WorkTable::new(schema.clone()));
            let scan =
                TableScanBuilder::new(scan.table_name, work).with_projection(scan.projection).build()?;
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        node => Ok(Transformed::no(node)),
    })?;
    let step = rewrite(typed.data, surroundings)?;
    let table = format!("{name} {}", surroundings.recursion_number(&base, &step, is_distinct));
    let source = Recursion { name, base, step, distinct: is_distinct, schema };
    Ok(LogicalPlan::TableScan(TableScanBuilder::new(TableReference::bare(table), Arc::new(source)).build()?))
}

/// A recursive term without the casts that the planner put around its columns. Those of the query stay: `check` wrote
/// each of them twice.
fn without_casts(plan: LogicalPlan) -> PlannerResult<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(plan) };
    let names = NamePreserver::new_for_projection();
    let exprs = projection.expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        name.restore(without_cast(expr))
    });
    Ok(LogicalPlan::Projection(Projection::try_new(exprs.collect(), projection.input)?))
}

fn without_cast(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(mut alias) => {
            *alias.expr = without_cast(*alias.expr);
            Expr::Alias(alias)
        }
        Expr::Cast(cast) => *cast.expr,
        other => other,
    }
}
