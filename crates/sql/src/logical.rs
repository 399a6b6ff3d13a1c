//! SQL to a logical plan with names and types, by DataFusion's planner with our functions. No rewrite here evaluates a
//! constant or changes a predicate; `convert` does so on our own expressions.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion_common::{DFSchema, ScalarValue, internal_err, plan_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    Cast, Expr, ExprSchemable, Like, LogicalPlan, LogicalPlanBuilder, Operator, Union, Values,
};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};
use datafusion_optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion_optimizer::{OptimizerConfig, OptimizerContext};
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use sqlparser::ast::{Query, Statement};
use tessera_ops::expression::bytes::BYTES_TEXT;
use tessera_types::{Atom, Error, Result, SqlState};

use crate::check::Names;
use crate::common_types;
use crate::context::Surroundings;
use crate::error::{from_datafusion, names_clash, to_datafusion};
use crate::named_casts::NAMED_CAST;
use crate::parse::Kind;
use crate::standard::STANDARD;

pub(crate) type PlannerResult<T> = datafusion_common::Result<T>;

/// The logical plan of a query: names resolved, types coerced.
/// Filters and subqueries stand where they were written; moving them is the business of later steps.
pub(crate) fn optimised(query: Box<Query>, surroundings: &Surroundings<'_>) -> Result<LogicalPlan> {
    let plan = of_query(query, surroundings)?;
    rewrite(plan, surroundings).map_err(from_datafusion)
}

/// The logical plan of a query, names resolved.
fn of_query(query: Box<Query>, surroundings: &Surroundings<'_>) -> Result<LogicalPlan> {
    let plan = |query: Box<Query>, names: Names| -> Result<PlannerResult<LogicalPlan>> {
        let query = crate::literal_types::typed(crate::check::query(query, names)?)?;
        let mut query = crate::numbers::doubles(query)?;
        let replaced = crate::replaced::mark(&mut query)?;
        let query = crate::named_casts::wrapped(query)?;
        let parser = ParserOptions::from(&surroundings.options().sql_parser);
        let planner = SqlToRel::new_with_options(surroundings, parser);
        let planned = planner.sql_statement_to_plan(Statement::Query(query));
        if let Ok(plan) = &planned {
            crate::replaced::check(plan, &replaced)?;
        }
        Ok(planned)
    };
    match plan(query.clone(), Names::Repeated)? {
        Err(error) if names_clash(&error) => match plan(query, Names::All)? {
            Ok(planned) => Ok(planned),
            Err(_) => Err(from_datafusion(error)),
        },
        planned => planned.map_err(from_datafusion),
    }
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
        Statement::Query(query) => of_query(query, surroundings),
        _ => Err(Error::semantic("a view is a query")),
    }
}

pub(crate) fn rewrite(plan: LogicalPlan, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let options = surroundings.options();
    let plan = crate::recursion::as_tables(plan, surroundings)?;
    let plan = crate::groupings::by_columns(plan)?;
    let mut plan = own_literals(plan, surroundings)?;
    plan = ResolveGroupingFunction::new().analyze(plan, options)?;
    plan = TypeCoercion::new().analyze(plan, options)?;
    let context = OptimizerContext::new_with_config_options(options.clone());
    apply(plan, &RewriteSetComparison::new(), &context)
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

/// Integer literals are 32-bit where they fit, unary minus is ours, and a decimal beside a float becomes one.
fn own_literals(plan: LogicalPlan, surroundings: &Surroundings<'_>) -> PlannerResult<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Limit(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        let schema = merge_schema(&node.inputs());
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| own_expr(expr, &schema, surroundings))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        // The planner keeps the types of a union and of VALUES whatever becomes of what is in them.
        let changed = match changed.data {
            LogicalPlan::Union(union) => {
                let union = common_types::union(union)?;
                let union = Union::try_new_with_loose_types(union.inputs)?;
                return Ok(Transformed::yes(LogicalPlan::Union(union)));
            }
            LogicalPlan::Join(join) => {
                return common_types::join(join)?.recompute_schema().map(Transformed::yes);
            }
            LogicalPlan::Values(values) => {
                let Values { mut values, .. } = common_types::values(values);
                values.iter_mut().flatten().for_each(without_type);
                return LogicalPlanBuilder::values(values)?.build().map(Transformed::yes);
            }
            data => Transformed { data, ..changed },
        };
        if changed.transformed {
            changed.map_data(LogicalPlan::recompute_schema)
        } else {
            changed.data.recompute_schema().map(Transformed::no)
        }
    })?;
    Ok(changed.data)
}

/// A NULL that took its type from the rows around it has none again.
fn without_type(expr: &mut Expr) {
    if let Expr::Literal(value, _) = expr
        && value.is_null()
    {
        *value = ScalarValue::Null;
    }
}

/// Functions of text that DataFusion gives the text of a list.
const OF_TEXT: [&str; 5] = ["left", "right", "reverse", "translate", "overlay"];

fn own_expr(
    expr: Expr,
    schema: &DFSchema,
    surroundings: &Surroundings<'_>,
) -> PlannerResult<Transformed<Expr>> {
    Ok(match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), metadata) => match i32::try_from(number) {
            Ok(small) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(small)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(number)), metadata)),
        },
        Expr::Literal(ScalarValue::UInt64(Some(number)), metadata) => {
            let digits = number.checked_ilog10().map_or(1, |log| log as u8 + 1);
            let decimal = ScalarValue::Decimal128(Some(number.into()), digits, 0);
            Transformed::yes(Expr::Literal(decimal, metadata))
        }
        Expr::InSubquery(mut test) => {
            let changed = common_types::in_subquery(&mut test, schema)?;
            with_flag(Expr::InSubquery(test), changed)
        }
        Expr::Negative(inner) => Transformed::yes(surroundings.arithmetic.call("neg", vec![*inner])?),
        Expr::BinaryExpr(mut binary) if compares(binary.op) => {
            let parts = (&*binary.left, binary.op, &*binary.right);
            if let Some(call) = common_types::compared_exactly(parts, schema, surroundings) {
                return Ok(Transformed::yes(call));
            }
            let changed = common_types::unify_compared(vec![&mut binary.left, &mut binary.right], schema)?;
            with_flag(Expr::BinaryExpr(binary), changed)
        }
        Expr::Between(mut between) => {
            let whole = Expr::Between(between.clone());
            if let Some(calls) = common_types::list_compared_exactly(&whole, schema, surroundings) {
                return Ok(Transformed::yes(calls));
            }
            let operands = vec![&mut *between.expr, &mut *between.low, &mut *between.high];
            let changed = common_types::unify_compared(operands, schema)?;
            with_flag(Expr::Between(between), changed)
        }
        Expr::InList(mut list) => {
            let whole = Expr::InList(list.clone());
            if let Some(calls) = common_types::list_compared_exactly(&whole, schema, surroundings) {
                return Ok(Transformed::yes(calls));
            }
            let mut operands: Vec<&mut Expr> = list.list.iter_mut().collect();
            operands.push(&mut list.expr);
            let changed = common_types::unify_compared(operands, schema)?;
            with_flag(Expr::InList(list), changed)
        }
        Expr::Case(mut case) => {
            let mut values: Vec<&mut Expr> =
                case.when_then_expr.iter_mut().map(|(_, then)| &mut **then).collect();
            values.extend(case.else_expr.as_deref_mut());
            let mut changed = common_types::unify(values, schema);
            changed |= common_types::case_compared_exactly(&mut case, schema, surroundings);
            if let Some(operand) = case.expr.as_deref_mut() {
                let mut compared = vec![operand];
                compared.extend(case.when_then_expr.iter_mut().map(|(when, _)| &mut **when));
                changed |= common_types::unify_compared(compared, schema)?;
            }
            with_flag(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(mut function) if function.name() == NAMED_CAST && !function.args.is_empty() => {
            Transformed::yes(function.args.swap_remove(0))
        }
        // The length of a list is how many items it has.
        Expr::ScalarFunction(mut function)
            if counts_characters(function.name()) && is_list(function.args.first(), schema) =>
        {
            match STANDARD.scalars.get("array_length") {
                Some(items) => {
                    let length = items.call(std::mem::take(&mut function.args));
                    Transformed::yes(Expr::Cast(Cast::new(Box::new(length), DataType::Int64)))
                }
                None => Transformed::no(Expr::ScalarFunction(function)),
            }
        }
        // Without more arguments NULL is sorted last, as everywhere.
        Expr::ScalarFunction(mut function) if function.name() == "array_sort" && function.args.len() == 1 => {
            let text = |text: &str| Expr::Literal(ScalarValue::Utf8(Some(text.to_string())), None);
            function.args.extend([text("ASC"), text("NULLS LAST")]);
            Transformed::yes(Expr::ScalarFunction(function))
        }
        Expr::ScalarFunction(mut function)
            if counts_characters(function.name()) && is_bytes(function.args.first(), schema) =>
        {
            match surroundings.library_function("octet_length") {
                Some(octets) => Transformed::yes(octets.call(std::mem::take(&mut function.args))),
                None => Transformed::no(Expr::ScalarFunction(function)),
            }
        }
        Expr::ScalarFunction(function)
            if OF_TEXT.contains(&function.name()) && is_list(function.args.first(), schema) =>
        {
            let message = format!("{} takes text, not a list; cast the list to text", function.name());
            return Err(to_datafusion(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)));
        }
        Expr::Like(like) if is_bytes(Some(&like.expr), schema) || is_bytes(Some(&like.pattern), schema) => {
            Transformed::yes(like_of_bytes(like, schema, surroundings)?)
        }
        Expr::ScalarFunction(mut function) => {
            let name = function.func.name().to_string();
            let mut changed = common_types::arguments(&name, &mut function.args, schema);
            if let Some(standard) = crate::one_type::standard(&function.func) {
                (function.func, changed) = (standard, true);
            }
            with_flag(Expr::ScalarFunction(function), changed)
        }
        other => Transformed::no(other),
    })
}

fn counts_characters(function: &str) -> bool {
    matches!(function, "character_length" | "len")
}

fn is_list(expr: Option<&Expr>, schema: &DFSchema) -> bool {
    let data_type = expr.and_then(|expr| expr.get_type(schema).ok());
    matches!(data_type, Some(DataType::List(_)))
}

fn is_bytes(expr: Option<&Expr>, schema: &DFSchema) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    let data_type = expr.and_then(|expr| expr.get_type(schema).ok());
    matches!(data_type, Some(Binary | BinaryView | LargeBinary | FixedSizeBinary(_)))
}

/// LIKE over bytes: `_` is any byte. A literal pattern is one of bytes, as in PostgreSQL; a text is not compared with bytes.
fn like_of_bytes(like: Like, schema: &DFSchema, surroundings: &Surroundings<'_>) -> PlannerResult<Expr> {
    let Some(text) = surroundings.library_function(BYTES_TEXT) else {
        return internal_err!("a function of the library is missing");
    };
    if like.case_insensitive {
        return plan_err!("ILIKE is not there for bytes; use LIKE");
    }
    let as_text = |expr: Expr| match expr {
        literal @ Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) => Ok(literal),
        expr if is_bytes(Some(&expr), schema) => Ok(text.call(vec![expr])),
        _ => plan_err!("LIKE of bytes and a text; cast one of them"),
    };
    let pattern = match *like.pattern {
        // Each byte of the literal is a character of the pattern.
        Expr::Literal(ScalarValue::Utf8(Some(pattern)), metadata) => {
            let pattern: String = pattern.bytes().map(char::from).collect();
            Expr::Literal(ScalarValue::Utf8(Some(pattern)), metadata)
        }
        pattern => as_text(pattern)?,
    };
    let expr = Box::new(as_text(*like.expr)?);
    Ok(Expr::Like(Like { expr, pattern: Box::new(pattern), ..like }))
}

fn compares(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn with_flag(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
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
