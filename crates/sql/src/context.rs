//! Tables, functions and operators as DataFusion's planner asks for them.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result as PlannerResult, ScalarValue, TableReference};
use datafusion_expr::planner::{
    ContextProvider, ExprPlanner, PlannerResult as Attempt, RawBinaryExpr, TypePlanner,
};
use datafusion_expr::{
    AggregateUDF, Cast, Expr, ExprSchemable, HigherOrderUDF, LogicalPlan, Operator, ScalarUDF, TableSource,
    WindowUDF,
};
use sqlparser::ast::{BinaryOperator, DataType as SqlType, ExactNumberInfo, TimezoneInfo};
use tessera_ops::expression::Library;
use tessera_types::{Code, Error, Result, SqlState};

use crate::catalog::{Catalog, Table};
use crate::common_types::{cast, time_unit};
use crate::error::to_datafusion;
use crate::file_functions;
use crate::functions::{Arithmetic, aggregates};
use crate::operators::NEGATIVE;
use crate::own_functions::{self, OWN};
use crate::standard::STANDARD;
use crate::statement::Settings;
use crate::text_literals::{holding, is_text, literal_type};
use crate::types::planning_schema;
use crate::user_function::planned;

/// Table functions that read files, and the format of each.
const FILE_FUNCTIONS: [(&str, &str); 6] = [
    ("read_parquet", "parquet"),
    ("read_csv", "csv"),
    ("read_csv_auto", "csv"),
    ("read_json", "json"),
    ("read_json_auto", "json"),
    ("read_arrow", "arrow"),
];

/// Whether a table function of this name reads files.
pub(crate) fn reads_files(name: &str) -> bool {
    FILE_FUNCTIONS.iter().any(|(known, _)| *known == name)
}

/// The deepest nesting of views in views.
pub(crate) const VIEW_DEPTH_MAX: usize = 32;

/// A table in a logical plan.
pub(crate) struct Source {
    pub(crate) table: Arc<Table>,
    schema: SchemaRef,
}

/// A view in a logical plan; the planner puts its query in place of it.
struct View {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl TableSource for Source {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl TableSource for View {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

/// The work table of a recursive query.
pub(crate) struct WorkTable {
    schema: SchemaRef,
}

impl WorkTable {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        WorkTable { schema }
    }
}

/// A recursive query whose terms have been planned to the end.
pub(crate) struct Recursion {
    /// The name that its work table has in the step.
    pub(crate) name: String,
    pub(crate) base: LogicalPlan,
    pub(crate) step: LogicalPlan,
    pub(crate) distinct: bool,
    pub(crate) schema: SchemaRef,
}

impl TableSource for Recursion {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl TableSource for WorkTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// What one statement is planned with.
pub(crate) struct Surroundings<'a> {
    catalog: &'a dyn Catalog,
    options: Arc<ConfigOptions>,
    pub(crate) arithmetic: Arithmetic,
    planners: Vec<Arc<dyn ExprPlanner>>,
    /// Functions that stand before DataFusion's of the same names.
    scalars: Vec<Arc<ScalarUDF>>,
    aggregates: Vec<Arc<AggregateUDF>>,
    view_depth: Cell<usize>,
    /// The terms of the recursive queries so far.
    recursions: RefCell<Vec<(LogicalPlan, LogicalPlan, bool)>>,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn new(catalog: &'a dyn Catalog, library: &Arc<Library>, settings: &Settings) -> Self {
        let mut options = ConfigOptions::default();
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.collect_spans = true;
        options.execution.time_zone = Some(settings.time_zone.to_string());
        let arithmetic = Arithmetic::new(library);
        let mut scalars = vec![Arc::new(crate::named_casts::function()), Arc::new(crate::nullif::function())];
        scalars.extend(crate::one_type::functions().map(Arc::new));
        scalars.extend(crate::clock::functions());
        scalars.extend(crate::number_functions::functions(library));
        scalars
            .extend(["octet_length", "bit_length"].into_iter().filter_map(|name| library.scalar_udf(name)));
        scalars.extend(planned(library));
        let planners: Vec<Arc<dyn ExprPlanner>> = vec![
            Arc::new(Operators { arithmetic: arithmetic.clone() }),
            Arc::new(Calls),
            Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
            Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
            Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
            Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner),
            Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner),
            Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
            Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
        ];
        Surroundings {
            catalog,
            options: Arc::new(options),
            arithmetic,
            planners,
            scalars,
            aggregates: aggregates(library),
            view_depth: Cell::new(0),
            recursions: RefCell::default(),
        }
    }

    /// A function of numbers by its name in the library.
    pub(crate) fn number_function(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        self.scalars.iter().find(|function| function.name() == name)
    }

    /// A function of the library.
    pub(crate) fn library_function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.arithmetic.library().scalar_udf(name)
    }

    pub(crate) fn options(&self) -> &Arc<ConfigOptions> {
        &self.options
    }

    /// A number for a recursive query, the same for an equal one: plans that read different ones must not be equal.
    pub(crate) fn recursion_number(&self, base: &LogicalPlan, step: &LogicalPlan, distinct: bool) -> usize {
        let mut known = self.recursions.borrow_mut();
        let same = |(b, s, d): &(LogicalPlan, LogicalPlan, bool)| *d == distinct && b == base && s == step;
        known.iter().position(same).unwrap_or_else(|| {
            known.push((base.clone(), step.clone(), distinct));
            known.len() - 1
        })
    }

    fn source(&self, reference: &[&str]) -> Result<Arc<dyn TableSource>> {
        if let Some(text) = self.catalog.view(reference)? {
            return self.view(&text);
        }
        if let Some(table) = self.catalog.table(reference)? {
            let schema = Arc::new(planning_schema(&table.tuple));
            return Ok(Arc::new(Source { table, schema }));
        }
        let mut names = self.catalog.table_names();
        names.sort();
        let more = if names.len() > 12 { ", …" } else { "" };
        names.truncate(12);
        let known = if names.is_empty() {
            "there are none; name a file in quotes ('data.parquet') or create an external table".to_string()
        } else {
            format!("there are {}{more}", names.join(", "))
        };
        Err(Error::semantic(format!("there is no table {}; {known}", reference.join(".")))
            .with_state(SqlState::UNDEFINED_TABLE))
    }

    /// `read_csv('path', delim = ';')` and its like, whose options are literals here.
    fn files(&self, function: &str, args: &[Expr]) -> Result<Arc<dyn TableSource>> {
        let Some((_, format)) = FILE_FUNCTIONS.iter().find(|(name, _)| *name == function) else {
            return Err(Error::unsupported(format!(
                "the table function {function} is not supported; name a file in quotes instead: FROM 'data.parquet'"
            )));
        };
        let texts: Option<Vec<&String>> = args
            .iter()
            .map(|arg| match arg {
                Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text),
                _ => None,
            })
            .collect();
        let Some((path, options)) = texts.as_ref().and_then(|texts| texts.split_first()) else {
            return Err(Error::unsupported(format!(
                "{function} takes one path or pattern in quotes, and options as {function}('path', header = true)"
            )));
        };
        let table = self.catalog.files(path, format, &file_functions::options(options)?)?;
        let Some(table) = table else {
            return Err(Error::semantic(format!("{function}('{path}'): there is no such file")));
        };
        let schema = Arc::new(planning_schema(&table.tuple));
        Ok(Arc::new(Source { table, schema }))
    }

    fn view(&self, text: &str) -> Result<Arc<dyn TableSource>> {
        let depth = self.view_depth.get() + 1;
        if depth > VIEW_DEPTH_MAX {
            let message =
                format!("views nested deeper than {VIEW_DEPTH_MAX} (VIEW_DEPTH_MAX); does one name itself?");
            return Err(Error::new(Code::Limit, message));
        }
        self.view_depth.set(depth);
        let plan = crate::logical::of_text(text, self);
        self.view_depth.set(depth - 1);
        let plan = plan?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        Ok(Arc::new(View { plan, schema }))
    }
}

impl ContextProvider for Surroundings<'_> {
    fn get_table_source(&self, name: TableReference) -> PlannerResult<Arc<dyn TableSource>> {
        let parts: Vec<&str> =
            [name.catalog(), name.schema(), Some(name.table())].into_iter().flatten().collect();
        self.source(&parts).map_err(to_datafusion)
    }

    fn create_cte_work_table(&self, _name: &str, schema: SchemaRef) -> PlannerResult<Arc<dyn TableSource>> {
        Ok(Arc::new(WorkTable::new(schema)))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> PlannerResult<Arc<dyn TableSource>> {
        self.files(name, &args).map_err(to_datafusion)
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let name = crate::number_functions::library_name(name);
        match name {
            "mod" => return self.arithmetic.function("mod"),
            NEGATIVE => return self.arithmetic.function("neg"),
            _ => {}
        }
        let own = self.scalars.iter().find(|function| function.name() == name);
        own.or_else(|| OWN.get(name)).or_else(|| STANDARD.scalars.get(name)).cloned()
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let is_named = |function: &&Arc<AggregateUDF>| {
            function.name() == name || function.aliases().iter().any(|alias| alias == name)
        };
        let own = self.aggregates.iter().find(is_named);
        own.or_else(|| STANDARD.aggregates.get(name)).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        STANDARD.windows.get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        let own = self.scalars.iter().map(|function| function.name());
        let standard = STANDARD.scalars.keys().map(String::as_str);
        own.chain(OWN.keys().copied()).chain(standard).map(String::from).collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        STANDARD.aggregates.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        STANDARD.windows.keys().cloned().collect()
    }
}

/// Types whose meaning differs from DataFusion's: PostgreSQL's `float` is double precision, and timestamps count
/// microseconds.
#[derive(Debug)]
struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> PlannerResult<Option<FieldRef>> {
        let data_type = match sql_type {
            SqlType::Float(ExactNumberInfo::None) => DataType::Float64,
            SqlType::Float(ExactNumberInfo::Precision(bits)) if *bits > 24 => DataType::Float64,
            SqlType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
            | SqlType::Datetime(None) => DataType::Timestamp(TimeUnit::Microsecond, None),
            SqlType::Timestamp(None, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            SqlType::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                DataType::Time64(TimeUnit::Microsecond)
            }
            SqlType::CharacterVarying(_) | SqlType::Character(_) => DataType::Utf8,
            SqlType::Binary(_) | SqlType::Varbinary(_) | SqlType::Blob(_) => DataType::Binary,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", data_type, true))))
    }
}

/// What has a syntax of its own becomes calls of functions of ours.
#[derive(Debug)]
struct Calls;

impl ExprPlanner for Calls {
    fn plan_array_literal(
        &self,
        mut exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> PlannerResult<Attempt<Vec<Expr>>> {
        crate::text_literals::typed_literals(&mut exprs.iter_mut().collect::<Vec<_>>(), schema);
        Ok(Attempt::Original(exprs))
    }

    fn plan_extract(&self, args: Vec<Expr>) -> PlannerResult<Attempt<Vec<Expr>>> {
        own_functions::call("extract", args).map(Attempt::Planned)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> PlannerResult<Attempt<Vec<Expr>>> {
        own_functions::call("substr", args).map(Attempt::Planned)
    }

    fn plan_position(&self, args: Vec<Expr>) -> PlannerResult<Attempt<Vec<Expr>>> {
        own_functions::call("strpos", args).map(Attempt::Planned)
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> PlannerResult<Attempt<Vec<Expr>>> {
        own_functions::call("overlay", args).map(Attempt::Planned)
    }
}

/// Arithmetic operators become functions of ours.
#[derive(Debug)]
struct Operators {
    arithmetic: Arithmetic,
}

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<Attempt<RawBinaryExpr>> {
        let name = match raw.op {
            BinaryOperator::Plus => "add",
            BinaryOperator::Minus => "sub",
            BinaryOperator::Multiply => "mul",
            BinaryOperator::Divide => "div",
            BinaryOperator::Modulo => "mod",
            BinaryOperator::PGStartsWith | BinaryOperator::PGOverlap => {
                let name = match raw.op {
                    BinaryOperator::PGOverlap => "array_has_any",
                    _ => "starts_with",
                };
                let function = STANDARD.scalars.get(name).cloned();
                let planned =
                    function.map(|function| function.call(vec![raw.left.clone(), raw.right.clone()]));
                return Ok(planned.map_or(Attempt::Original(raw), Attempt::Planned));
            }
            _ => return Ok(times_in_one_unit(beside_literal(raw, schema), schema)),
        };
        let (left, right) = (raw.left, raw.right);
        // Types are asked for only where a literal takes one from the other side: asking is dear in long chains.
        let left_type = if is_text(&right) { Some(left.get_type(schema)?) } else { None };
        let right_type = if is_text(&left) { Some(right.get_type(schema)?) } else { None };
        let typed = |operand, beside: Option<DataType>| match beside {
            Some(beside) => typed_literal(operand, &beside, name),
            None => operand,
        };
        let (left, right) = (typed(left, right_type), typed(right, left_type));
        self.arithmetic.call(name, vec![left, right]).map(Attempt::Planned)
    }
}

/// A comparison of a text literal and another type: a literal of that type, where the planner finds
/// no type for both.
fn beside_literal(mut raw: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let (literal, other) = match (is_text(&raw.left), is_text(&raw.right)) {
        (true, false) => (&mut raw.left, &raw.right),
        (false, true) => (&mut raw.right, &raw.left),
        _ => return raw,
    };
    let compares = matches!(
        raw.op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    );
    if compares && let Some(to) = other.get_type(schema).ok().and_then(|found| literal_type(&[found])) {
        let to = holding(&to, literal);
        *literal = typed_literal(std::mem::take(literal), &to, "");
    }
    raw
}

/// A comparison of times of several units, for which the planner finds no type.
fn times_in_one_unit(raw: RawBinaryExpr, schema: &DFSchema) -> Attempt<RawBinaryExpr> {
    let operator = match raw.op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return Attempt::Original(raw),
    };
    // Only of what tells its type at once: asking is dear in long chains.
    let data_type = |expr: &Expr| match expr {
        Expr::Column(_) | Expr::Cast(_) => expr.get_type(schema).ok(),
        _ => None,
    };
    let types = (data_type(&raw.left), data_type(&raw.right));
    let is_interval = |data_type: &Option<DataType>| matches!(data_type, Some(DataType::Interval(_)));
    let unit = |data_type: &Option<DataType>| data_type.as_ref().and_then(time_unit);
    let (mut left, mut right) = (raw.left, raw.right);
    let interval = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
    match (unit(&types.0), unit(&types.1)) {
        // A time is an interval since midnight.
        (Some(_), None) if is_interval(&types.1) => cast(&mut left, interval),
        (None, Some(_)) if is_interval(&types.0) => cast(&mut right, interval),
        (Some(a), Some(b)) if a != b => {
            crate::common_types::unify(vec![&mut left, &mut right], schema);
        }
        _ => return Attempt::Original(RawBinaryExpr { op: raw.op, left, right }),
    }
    Attempt::Planned(datafusion_expr::binary_expr(left, operator, right))
}

/// A string literal beside another type is a literal of a type that fits it, as PostgreSQL's are.
fn typed_literal(literal: Expr, beside: &DataType, operator: &str) -> Expr {
    use datafusion_common::ScalarValue;
    let Expr::Literal(ScalarValue::Utf8(_), _) = &literal else { return literal };
    let wanted = match beside {
        DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) if operator == "add" => {
            DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano)
        }
        DataType::Utf8 | DataType::Null => return literal,
        other => other.clone(),
    };
    Expr::Cast(Cast::new(Box::new(literal), wanted))
}
