//! SQL to an optimised logical plan, by DataFusion's planner with our functions and the rewrites we trust.

use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};
use datafusion_optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use datafusion_optimizer::{OptimizerConfig, OptimizerContext};
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use sqlparser::ast::{Query, Statement};
use tessera_types::{Atom, Error, Result};

use crate::context::Surroundings;
use crate::error::from_datafusion;
use crate::parse::Kind;

type PlannerResult<T> = datafusion_common::Result<T>;

/// The logical plan of a query: names resolved, types coerced, constants folded.
/// Filters and subqueries stand where they were written; moving them is the business of later steps.
pub(crate) fn optimised(query: Box<Query>, surroundings: &Surroundings<'_>) -> Result<LogicalPlan> {
    let plan = of_query(query, surroundings)?;
    rewrite(plan, surroundings).map_err(from_datafusion)
}

/// The logical plan of a query, names resolved.
fn of_query(query: Box<Query>, surroundings: &Surroundings<'_>) -> Result<LogicalPlan> {
    let query = crate::check::query(query)?;
    let options = surroundings.options();
    let parser = ParserOptions::from(&options.sql_parser);
    SqlToRel::new_with_options(surroundings, parser)
        .sql_statement_to_plan(Statement::Query(query))
        .map_err(from_datafusion)
}

/// The logical plan of a view's text.
pub(crate) fn of_text(text: &str, surroundings: &Surroundings<'_>) -> Result<LogicalPlan> {
    let mut statements = crate::parse::parse(text)?;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(Error::semantic("a view is one query"));
    };
    let Kind::Sql(parsed) = statement.kind else {
        return Err(Error::semantic("a view is a query"));
    };
    match *parsed {
        datafusion_sql::parser::Statement::Statement(statement) => match *statement {
            Statement::Query(query) => of_query(query, surroundings),
            _ => Err(Error::semantic("a view is a query")),
        },
        _ => Err(Error::semantic("a view is a query")),
    }
}

fn rewrite(plan: LogicalPlan, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let options = surroundings.options();
    let mut plan = own_literals(plan, surroundings)?;
    plan = ResolveGroupingFunction::new().analyze(plan, options)?;
    plan = TypeCoercion::new().analyze(plan, options)?;
    let context = OptimizerContext::new_with_config_options(options.clone());
    for rule in [&RewriteSetComparison::new() as &dyn OptimizerRule, &SimplifyExpressions::new()] {
        plan = apply(plan, rule, &context)?;
    }
    Ok(plan)
}

struct Rewriter<'a> {
    rule: &'a dyn OptimizerRule,
    order: ApplyOrder,
    config: &'a dyn OptimizerConfig,
}

impl TreeNodeRewriter for Rewriter<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> PlannerResult<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::TopDown => self.rule.rewrite(node, self.config),
            ApplyOrder::BottomUp => Ok(Transformed::no(node)),
        }
    }

    fn f_up(&mut self, node: LogicalPlan) -> PlannerResult<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::BottomUp => self.rule.rewrite(node, self.config),
            ApplyOrder::TopDown => Ok(Transformed::no(node)),
        }
    }
}

fn apply(
    plan: LogicalPlan,
    rule: &dyn OptimizerRule,
    config: &dyn OptimizerConfig,
) -> PlannerResult<LogicalPlan> {
    match rule.apply_order() {
        Some(order) => {
            plan.rewrite_with_subqueries(&mut Rewriter { rule, order, config }).map(|changed| changed.data)
        }
        None => rule.rewrite(plan, config).map(|changed| changed.data),
    }
}

/// Integer literals are 32-bit where they fit, and unary minus is ours.
fn own_literals(plan: LogicalPlan, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Limit(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| own_literal(expr, surroundings))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        if changed.transformed {
            changed.map_data(LogicalPlan::recompute_schema)
        } else {
            changed.data.recompute_schema().map(Transformed::no)
        }
    })?;
    Ok(changed.data)
}

fn own_literal(expr: Expr, surroundings: &Surroundings<'_>) -> PlannerResult<Transformed<Expr>> {
    Ok(match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), metadata) => match i32::try_from(number) {
            Ok(small) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(small)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(number)), metadata)),
        },
        Expr::Negative(inner) => Transformed::yes(surroundings.arithmetic.call("neg", vec![*inner])?),
        other => Transformed::no(other),
    })
}

/// The type a column is declared with.
pub(crate) fn column_type(data_type: &sqlparser::ast::DataType) -> Result<Atom> {
    let nothing = Nothing;
    let library = std::sync::Arc::default();
    let surroundings = Surroundings::new(&nothing, &library, &crate::statement::Settings::default());
    let options = ParserOptions::from(&surroundings.options().sql_parser);
    let column = sqlparser::ast::ColumnDef {
        name: sqlparser::ast::Ident::new("column"),
        data_type: data_type.clone(),
        options: Vec::new(),
    };
    let schema = SqlToRel::new_with_options(&surroundings, options)
        .build_schema(vec![column])
        .map_err(from_datafusion)?;
    Atom::from_arrow(schema.field(0).data_type())
}

/// A catalog without tables.
struct Nothing;

impl crate::catalog::Catalog for Nothing {
    fn table(&self, _reference: &[&str]) -> Result<Option<std::sync::Arc<crate::catalog::Table>>> {
        Ok(None)
    }

    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }
}
